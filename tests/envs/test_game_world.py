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


@pytest.mark.parametrize(("difficulty", "drift"), [("easy", 0.002), ("medium", 0.01), ("hard", 0.06)])
def test_styles_drift_at_the_stated_rate(difficulty, drift):
    returns, changes = style_changes(long_run(6000, 8, difficulty=difficulty))
    chance = drift * 4 / 5  # a new style is the old one with 1 / 5
    error = np.sqrt(chance * (1 - chance) / returns)
    assert abs(changes / returns - chance) < 4 * error  # false alarm 6e-5
    assert abs(changes / returns - 2 * chance) > 4 * error


def test_popularity_follows_the_slope():
    counts = sum(np.bincount(players, minlength=12) for players, _, _ in encounters(long_run(6000, 8)))
    weight = 1 / (1 + 0.35 * np.arange(12))
    chances, total = weight / weight.sum(), counts.sum()
    assert (np.abs(counts / total - chances) < 4.5 * np.sqrt(chances / total)).all()  # 12 comparisons: 8e-5
    assert np.abs(counts / total - 1 / 12).max() > 0.1


def test_hard_players_stay_away_for_sixty_encounters_and_mostly_move_unseen():
    run = long_run(6000, 8, difficulty="hard")
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
            [
                np.mean(players[1:] == players[:-1])
                for players, _, _ in encounters(long_run(6000, 8, difficulty=difficulty))
            ]
        )
        for difficulty in ("easy", "medium")
    }
    # medium: the sum of squared popularities, .125; easy: .3 of a fifth or more beside .7 of .162
    assert repeats["easy"] > repeats["medium"] > 0.1


def test_redraw_renews_the_style_of_everybody_who_left_before_the_change():
    changed = {}
    for redraws in (False, True):
        run = long_run(3000, 40, regime=((0, 0.0), (1500, 0.0)), redraw_styles=redraws)
        returned = kept = 0
        for players, styles, begins in encounters(run):
            before = {}
            after = set()
            for player, style, begin in zip(players, styles, begins, strict=True):
                if begin < 1500:
                    before[player] = style
                elif player in before and player not in after:
                    after.add(player)
                    returned, kept = returned + 1, kept + (before[player] == style)
        changed[redraws] = 1 - kept / returned, returned
    (quiet, _), (renewed, returned) = changed[False], changed[True]
    assert quiet < 0.05  # drift alone
    # a fifth of the new styles is the old one, and the player at hand keeps its own: 1 of about 12
    assert abs(renewed - 0.8 * 11.2 / 12) < 4 * np.sqrt(0.2 / returned) + 0.03


def test_a_redraw_happens_once():
    after = style_changes(long_run(3000, 40, regime=((0, 0.0), (1500, 0.0)), redraw_styles=True), since=2200)
    chance = 0.01 * 4 / 5
    assert abs(after[1] / after[0] - chance) < 0.02


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
