import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import visitors
from habitus.envs.arithmetic import ARRAYS, INTEGERS, as_integers
from habitus.envs.game_npc import GameNPCEnv, opponents, rules
from habitus.envs.game_npc import world as game
from habitus.envs.game_npc.rules import ATTACK, NEGOTIATE
from scipy import stats

N_ACTIONS = 8


@functools.cache
def env(**arguments):
    return GameNPCEnv(**arguments)


def noisy_params(seed, n_players=12, **arguments):
    """Parameters in which everything that can be random is."""
    rng = np.random.default_rng(seed)
    moves = rng.dirichlet(np.ones(6), (5, 4, 3, 2, 2))
    levels = [
        (0, 0.0),
        *((int(step), int(level) / 10) for step, level in zip((50, 90, 400), rng.integers(0, 11, 3), strict=True)),
    ]
    behaviour = opponents.opponents(moves, rng.random((2, 5)))
    arrivals = visitors.arrivals(
        visitors.Preset(n_players, rng.random() / 2, rng.random(), rng.random(), int(rng.integers(20))), 12
    )
    base = env(regime=tuple(levels), capacity=12, redraw_styles=True).params
    return base._replace(
        arrivals=arrivals,
        see=jnp.int32(rng.integers(65537)),
        moves=jnp.asarray(behaviour.moves),
        agrees=jnp.asarray(behaviour.agrees),
    )


@functools.cache
def compiled_advance():
    world = env().world
    return jax.jit(lambda *arguments: world.advance(*arguments, ARRAYS)), jax.jit(
        lambda *arguments: world.show(*arguments, (), world.params, ARRAYS)
    )


@pytest.mark.parametrize("seed", range(3))
def test_both_executors_agree_bit_for_bit(seed):
    world, params, rng = env().world, noisy_params(seed, n_players=8 + seed), np.random.default_rng(seed)
    advance, show = compiled_advance()
    state = jax.jit(world.initial)(jax.random.key(seed), params)
    plain, plain_params = as_integers(state), as_integers(params)
    endings = set()
    for _ in range(1500):
        halves, action = rng.integers(0, 65536, world.n_step_halves), int(rng.integers(N_ACTIONS))
        state, outcome = advance(state, jnp.int32(action), jnp.asarray(halves, jnp.int32), params)
        plain, plain_outcome = world.advance(plain, action, halves.tolist(), plain_params, INTEGERS)
        assert as_integers(state) == plain
        assert as_integers(outcome) == plain_outcome
        assert as_integers(show(state)) == world.show(plain, (), plain_params, INTEGERS)
        assert as_integers(world.action_mask(state, params)) == world.mask(plain, plain_params, INTEGERS)
        endings.add(plain_outcome.signals["ending"])
    assert endings == set(range(len(rules.ENDINGS)))


def test_vmapping_over_params_is_a_loop_over_params():
    world, seeds = env().world, range(4)
    params = [noisy_params(seed, n_players=6 + seed) for seed in seeds]

    def episode(key, params):
        def step(state, key):
            action_key, step_key = jax.random.split(key)
            action = jax.random.randint(action_key, (), 0, N_ACTIONS, jnp.int32)
            state, outcome = world.step(state, action, step_key, params)
            return state, (outcome, world.observe(state, key, params))

        return jax.lax.scan(step, world.initial(key, params), jax.random.split(key, 500))

    keys = jax.random.split(jax.random.key(5), len(seeds))
    together = jax.jit(jax.vmap(episode))(keys, jax.tree.map(lambda *leaves: jnp.stack(leaves), *params))
    single = jax.jit(episode)
    for number in seeds:
        alone = single(keys[number], params[number])
        jax.tree.map(lambda one, all_, i=number: np.testing.assert_array_equal(one, all_[i]), alone, together)


def test_difficulties_of_one_capacity_are_one_world():
    worlds = [env(difficulty=difficulty, capacity=200).world for difficulty in ("easy", "medium", "hard")]
    assert len({*worlds}) == 1
    shapes = [jax.tree.map(jnp.shape, world.params) for world in worlds]
    assert shapes[0] == shapes[1] == shapes[2]
    assert env().world != env(capacity=13).world != env(observe_entity=False).world


def a_state(**changes):
    """The first player of an episode, close and visible on the plain, both in full health."""
    world = env().world
    state = as_integers(world.initial(jax.random.key(0), world.params))
    codes = {"terrain": 0, "distance": 0, "npc_health": 5, "player_health": 5, "last_move": 0, "hidden": 0} | changes
    style = codes.pop("style", 0)
    state.known.types[state.player] = style
    return state._replace(**codes)


ALWAYS, NEVER = 0, 65535  # halves that make every chance above 0 happen, and none below 1


def advanced(action, *, move, hit, blow, parts=NEVER, **changes):
    """Outcome and state after a step in which the halves decide as told; the player makes `move`."""
    world = env().world
    table = np.zeros((1, 1, 1, 1, 1, 6))
    table[..., move] = 1
    behaviour = opponents.opponents(np.repeat(table, 5, axis=0), [0.5] * 5)
    params = as_integers(world.params)._replace(moves=behaviour.moves.tolist(), agrees=behaviour.agrees.tolist())
    halves = [0, NEVER, hit, blow, parts, *(40000 for _ in range(world.n_step_halves - 5))]
    state, outcome = world.advance(a_state(**changes), action, halves, params, INTEGERS)
    return outcome, state


@pytest.mark.parametrize(
    ("action", "arguments", "cents", "ending"),
    [
        (ATTACK, {"move": rules.STRIKE, "hit": ALWAYS, "blow": NEVER}, 95, "none"),
        (ATTACK, {"move": rules.STRIKE, "hit": ALWAYS, "blow": ALWAYS}, -5, "none"),
        (ATTACK, {"move": rules.STRIKE, "hit": NEVER, "blow": ALWAYS, "hidden": 1}, -205, "none"),
        (ATTACK, {"move": rules.STRIKE, "hit": ALWAYS, "blow": NEVER, "player_health": 1}, 295, "killed"),
        (ATTACK, {"move": rules.STRIKE, "hit": NEVER, "blow": ALWAYS, "npc_health": 1}, -505, "died"),
        # both fall: the player counts, the NPC's fall does not
        (
            ATTACK,
            {"move": rules.STRIKE, "hit": ALWAYS, "blow": ALWAYS, "npc_health": 1, "player_health": 1},
            195,
            "killed",
        ),
        # damage beyond the last health pays nothing: 1 + 2 - .05
        (rules.AMBUSH, {"move": rules.ADVANCE, "hit": ALWAYS, "blow": NEVER, "player_health": 1}, 295, "killed"),
        (rules.AMBUSH, {"move": rules.ADVANCE, "hit": ALWAYS, "blow": NEVER, "player_health": 2}, 395, "killed"),
        (rules.SCOUT, {"move": rules.STRIKE, "hit": NEVER, "blow": ALWAYS, "hidden": 1, "npc_health": 2}, -608, "died"),
        (rules.HEAL, {"move": rules.STRIKE, "hit": NEVER, "blow": ALWAYS, "npc_health": 1}, -105, "none"),
        (rules.RETREAT, {"move": rules.SHOOT, "hit": ALWAYS, "blow": ALWAYS, "distance": 2}, -55, "fled"),
        (NEGOTIATE, {"move": rules.STRIKE, "hit": ALWAYS, "blow": ALWAYS}, 195, "agreed"),
        (NEGOTIATE, {"move": rules.STRIKE, "hit": ALWAYS, "blow": NEVER, "hidden": 1}, -5, "none"),  # impossible
        (NEGOTIATE, {"move": rules.STRIKE, "hit": NEVER, "blow": ALWAYS}, -105, "none"),
        (rules.DEFEND, {"move": rules.GUARD, "hit": NEVER, "blow": NEVER, "parts": ALWAYS}, -5, "parted"),
    ],
)
def test_rewards_and_endings_are_those_of_the_page(action, arguments, cents, ending):
    outcome, _ = advanced(action, **arguments)
    assert outcome.reward == pytest.approx(cents / 100)
    assert rules.ENDINGS[outcome.signals["ending"]] == ending
    assert outcome.boundary == (ending != "none")
    assert abs(cents / 100) <= env().schema.reward_bound


def test_signals_tell_the_move_and_its_situation_unless_the_encounter_ended():
    outcome, state = advanced(ATTACK, move=rules.BACK_OFF, hit=NEVER, blow=NEVER, hidden=1, distance=1)
    signals = {signal.name: signal.labels[outcome.signals[signal.name]] for signal in env().schema.signals}
    assert signals == {"move": "back_off", "situation": "near, hidden", "ending": "none"}
    assert game.MOVE_LABELS[state.last_move] == "back_off"
    outcome, state = advanced(ATTACK, move=rules.BACK_OFF, hit=NEVER, blow=NEVER, parts=ALWAYS, hidden=1, distance=1)
    signals = {signal.name: signal.labels[outcome.signals[signal.name]] for signal in env().schema.signals}
    assert signals == {"move": "none", "situation": "none", "ending": "parted"}
    assert state.last_move == game.UNSEEN


def test_health_never_exceeds_five():
    _, state = advanced(rules.HEAL, move=rules.GUARD, hit=NEVER, blow=NEVER)
    assert state.npc_health == 5
    _, state = advanced(rules.HEAL, move=rules.GUARD, hit=NEVER, blow=NEVER, npc_health=3)
    assert state.npc_health == 4


def test_only_negotiating_with_a_hidden_player_is_impossible():
    world = env().world
    for hidden in (0, 1):
        mask = world.mask(a_state(hidden=hidden), as_integers(world.params), INTEGERS)
        assert mask == [True] * 7 + [hidden == 0]


def test_the_players_number_can_be_withheld():
    world = env(observe_entity=False).world
    assert "player" not in world.observe(world.initial(jax.random.key(0), world.params), None, world.params)
    assert world.schema.entity_field is None
    assert [field.name for field in env().schema.fields] == [
        *(field.name for field in world.schema.fields),
        "player",
    ]


@functools.cache
def long_run(n_steps, n_episodes, **arguments):
    """(visitor, style, boundary, step) of each step of random play, and its params."""
    world, params = env(**arguments).world, env(**arguments).params

    def episode(key):
        def step(state, key):
            action_key, step_key = jax.random.split(key)
            action = jax.random.randint(action_key, (), 0, N_ACTIONS, jnp.int32)
            shown = state.player, state.known.types[state.player], state.hidden, state.last_move
            state, outcome = world.step(state, action, step_key, params)
            return state, (*shown, outcome.boundary)

        start_key, steps_key = jax.random.split(key)
        return jax.lax.scan(step, world.initial(start_key, params), jax.random.split(steps_key, n_steps))[1]

    keys = jax.random.split(jax.random.key(17), n_episodes)
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(episode))(keys))


def encounters(run):
    """Per episode: (visitor, style, first step) of each encounter."""
    players, styles, _, _, ends = run
    for player, style, end in zip(players, styles, ends, strict=True):
        begins = np.concatenate([[0], np.flatnonzero(end[:-1]) + 1])
        yield player[begins], style[begins], begins


def style_changes(run, since=0):
    """(number of returns, number of them with another style); only visitors first seen from step `since` on count."""
    returns = changes = 0
    for players, styles, begins in encounters(run):
        known = {}
        for player, style, begin in zip(players, styles, begins, strict=True):
            if begin >= since and player in known:
                returns, changes = returns + 1, changes + (known[player] != style)
            known[player] = style
    return returns, changes


FALSE_ALARM = 1e-4


def likely(n, chance):
    """Counts of n events of this chance that a right world passes but with FALSE_ALARM."""
    return stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], n, chance)


def preset_run(difficulty):
    """As many episodes as a rare drift takes to be measured."""
    return long_run(6000, {"easy": 128, "medium": 32, "hard": 8}[difficulty], difficulty=difficulty)


@pytest.mark.parametrize(("difficulty", "drift"), [("easy", 0.002), ("medium", 0.01), ("hard", 0.06)])
def test_styles_drift_at_the_stated_rate(difficulty, drift):
    returns, changes = style_changes(preset_run(difficulty))
    chance = drift * 4 / 5  # a new style is the old one with 1 / 5
    low, high = likely(returns, chance)
    assert low <= changes <= high
    # half or twice the rate would pass in one of 200 worlds
    assert stats.binom.sf(low - 1, returns, chance / 2) < 0.005 > stats.binom.cdf(high, returns, 2 * chance)


def test_popularity_follows_the_slope():
    counts = sum(np.bincount(players, minlength=12) for players, _, _ in encounters(preset_run("medium")))
    weight = 1 / (1 + 0.35 * np.arange(12))
    chances, total = weight / weight.sum(), counts.sum()
    assert (np.abs(counts / total - chances) < 4.5 * np.sqrt(chances / total)).all()  # 12 comparisons: 8e-5
    assert np.abs(counts / total - 1 / 12).max() > 0.1


def test_hard_players_stay_away_for_sixty_encounters_and_mostly_move_unseen():
    run = preset_run("hard")
    gaps, early = [], []
    for players, _, _ in encounters(run):
        last = {}
        for number, player in enumerate(players):
            if player in last:
                gaps.append(number - last[player])
            last[player] = number
    assert np.mean(np.array(gaps) < 60) < 0.02  # four candidates, rarely all of the last 59 of 200
    _, _, _, last_moves, ends = run
    went_on = ~ends[:, :-1]
    seen = (last_moves[:, 1:] != 0)[went_on]
    assert abs(seen.mean() - 0.35) < 4 * np.sqrt(0.35 * 0.65 / seen.size)
    early = [len(set(players[:50])) for players, _, _ in encounters(run)]
    assert min(early) > 40  # mostly strangers at first


def test_the_easy_preset_brings_the_last_players_back():
    repeats = {
        difficulty: np.mean(
            [np.mean(players[1:] == players[:-1]) for players, _, _ in encounters(preset_run(difficulty))]
        )
        for difficulty in ("easy", "medium")
    }
    # medium: the sum of squared popularities, .125; easy: .3 of a fifth or more beside .7 of .162
    assert repeats["easy"] > repeats["medium"] > 0.1


@pytest.mark.slow
def test_redraw_renews_the_style_of_everybody_who_left_before_the_change():
    for redraws in (False, True):
        run = long_run(4000, 40, regime=((0, 0.0), (1500, 0.0)), redraw_styles=redraws)
        changed = {True: [], False: []}  # by whether the player was at hand when the rules changed
        for players, styles, begins in encounters(run):
            at_hand = players[np.searchsorted(begins, 1500) - 1] if 1500 not in begins else None
            before, after = {}, set()
            for player, style, begin in zip(players, styles, begins, strict=True):
                if begin < 1500:
                    before[player] = style
                elif player in before and player not in after:
                    after.add(player)
                    changed[player == at_hand].append(before[player] != style)
        for was_at_hand, found in changed.items():
            low, high = likely(len(found), 0.8 * (1.0 if redraws and not was_at_hand else 0.01))
            assert low <= sum(found) <= high


def test_a_redraw_happens_once():
    run = long_run(4000, 40, regime=((0, 0.0), (1500, 0.0)), redraw_styles=True)
    returns, changes = style_changes(run, since=2600)  # 180 encounters after the change: everybody has come
    low, high = likely(returns, 0.01 * 4 / 5)
    assert low <= changes <= high < 2 * 0.008 * returns


NEW_STYLE = 4


def style_of_comer(step, last_step, *, redraws=1, at_hand=False):
    """Style of a player of style 0 who comes after the decision of `step` and had left at `last_step`.

    The rules change with decision 100; a style drawn anew is NEW_STYLE. `at_hand`: it has just left.
    """
    world = env().world
    params = as_integers(env(regime=((0, 0.0), (100, 0.0))).params)._replace(redraws=redraws)
    state = a_state()._replace(step=step)
    comer = state.player if at_hand else (state.player + 1) % 12
    state.known.types[comer], state.known.last_step[comer] = 0, last_step
    halves = [*(NEVER for _ in range(4)), ALWAYS, 20000, *(ALWAYS for _ in range(10)), NEVER, 65535]
    halves[6 : 6 + 8 : 2] = [-(-65536 * comer // 12)] * 4
    params = params._replace(arrivals=params.arrivals._replace(stays=[65536] * 12))
    assert len(halves) == world.n_step_halves
    state, outcome = world.advance(state, rules.DEFEND, halves, params, INTEGERS)
    assert (outcome.boundary, state.player) == (True, comer)
    return state.known.types[comer]


def test_a_redraw_reaches_whoever_comes_with_the_first_decision_under_the_new_entry():
    assert style_of_comer(99, 50) == NEW_STYLE  # decides at 100
    assert style_of_comer(98, 50) == 0  # decides at 99
    assert style_of_comer(150, 98) == style_of_comer(150, 99) == NEW_STYLE
    assert style_of_comer(150, 100) == 0  # met the new entry already
    assert style_of_comer(99, 50, at_hand=True) == NEW_STYLE  # left with 99, before the entry
    assert style_of_comer(100, 50, at_hand=True) == 0  # was at hand when it came
    assert style_of_comer(150, visitors.NEVER) == 0  # never seen: nothing to be drawn anew
    assert style_of_comer(99, 50, redraws=0) == 0


def test_dynamics_keep_their_types_with_wide_numbers():
    with jax.enable_x64(True):
        wide = GameNPCEnv()
        state = wide.world.initial(jax.random.key(0), wide.params)
        after, outcome = jax.jit(wide.world.step)(state, jnp.int32(0), jax.random.key(1), wide.params)
        assert all(leaf.dtype == jnp.int32 for leaf in jax.tree.leaves((state, after)))
        assert outcome.reward.dtype == jnp.float32
    narrow = env()
    same, _ = narrow.world.step(
        narrow.world.initial(jax.random.key(0), narrow.params), jnp.int32(0), jax.random.key(1), narrow.params
    )
    jax.tree.map(np.testing.assert_array_equal, after, same)
