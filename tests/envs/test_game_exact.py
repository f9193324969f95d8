"""Exactness of the solution and the filter: every chance of a step enumerated through the dynamics themselves."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import contract, draws, regimes, visitors
from habitus.envs import rollout as rollouts
from habitus.envs.arithmetic import INTEGERS, as_integers
from habitus.envs.game_npc import GameNPCEnv, opponents, rules
from habitus.envs.game_npc.rules import NEGOTIATE
from habitus.envs.game_npc.solution import position, problem, solve
from scipy import sparse
from scipy.sparse import linalg

N_STYLES = 3
N_PLAYERS = 2
DRIFT = 0.3
ONE = 65536


@functools.cache
def world():
    """Two players of three random styles, who change often and whose moves are mostly unseen."""
    rng = np.random.default_rng(4)
    moves = rng.dirichlet(np.full(6, 0.4), (N_STYLES, 4, 3, 2, 2))
    moves[0, ..., rules.HIDE] = 0
    moves /= moves.sum(axis=-1, keepdims=True)
    env = GameNPCEnv(
        opponents=moves,
        negotiation=[[0.1, 0.5, 0.9], [0.8, 0.3, 0.2]],
        regime=((0, 0.0), (14, 1.0)),
        redraw_styles=True,
        capacity=12,
    )
    arrivals = visitors.arrivals(visitors.Preset(N_PLAYERS, DRIFT, 0.5, 0.0, 0), 12)
    params = env.params._replace(arrivals=arrivals, see=jnp.int32(draws.threshold(0.4)))
    return env.world, params


def chances_of_halves(state, action, level):
    """(chance, halves) of everything that can happen in a step to a state of Python integers."""
    plain = plain_params()
    fight = rules.fight(level == 10)
    low = int(state.player_health <= 1)
    style = state.known.types[state.player]
    situation = (state.terrain * 3 + state.distance) * 2 + state.hidden
    row = ((style * 24 + situation) * 2 + low) * 6
    agrees = plain.agrees[(level * N_STYLES + style) * 2 + low]
    first_half = [-(-slot * ONE // 6) for slot in range(7)]
    for slot in range(6):
        packed = plain.moves[row + slot]
        for stays in (True, False):
            of_slot = (first_half[slot + 1] - first_half[slot]) / ONE
            threshold = packed & rules.THRESHOLD_MASK
            move = slot if stays else packed >> rules.THRESHOLD_BITS
            of_move = of_slot * (threshold if stays else ONE - threshold) / ONE
            if of_move == 0:
                continue
            at = state.terrain, state.distance, state.hidden, action, move
            hit = round(fight.hit[at] * ONE)
            if action == NEGOTIATE and state.hidden == 0:
                hit = agrees
            for events in itertools.product((True, False), repeat=4):
                thresholds = hit, round(fight.blow[at] * ONE), rules.PARTING, plain.see
                chance = of_move
                for happens, threshold in zip(events, thresholds, strict=True):
                    chance *= (threshold if happens else ONE - threshold) / ONE
                if chance > 0:
                    halves = [0 if happens else ONE - 1 for happens in (stays, *events)]
                    yield chance, [first_half[slot], *halves, *(0 for _ in range(visitors.N_HALVES))]


@functools.cache
def plain_params():
    return as_integers(world()[1])


def copied(state):
    known = state.known
    lists = {name: list(getattr(known, name)) for name in ("types", "last_arrival", "last_step", "recent")}
    return state._replace(known=known._replace(**lists))


def outcomes(state, action, level):
    """(chance, state after, outcome) of everything that can happen in a step."""
    dynamics, _ = world()
    for chance, halves in chances_of_halves(state, action, level):
        after, outcome = dynamics.advance(copied(state), action, halves, plain_params(), INTEGERS)
        yield chance, after, outcome


def states(n, seed):
    """Different states under either set of rules, with their level."""
    rng = np.random.default_rng(seed)
    dynamics, params = world()
    first = as_integers(jax.jit(dynamics.initial)(jax.random.key(0), params))
    for _ in range(n):
        state = copied(first)._replace(
            terrain=int(rng.integers(4)),
            distance=int(rng.integers(3)),
            npc_health=int(rng.integers(1, 6)),
            player_health=int(rng.choice([1, 1, 2, 3, 5])),
            hidden=int(rng.integers(2)),
        )
        state.known.types[state.player] = int(rng.integers(N_STYLES))
        level = int(rng.choice([0, 10]))
        yield state._replace(step=0 if level == 0 else 14), level


def test_values_are_those_of_every_chance_in_the_dynamics():
    dynamics, params = world()
    solution = dynamics.solve(params)
    assert solution.levels.tolist() == [0, 10]
    rewards, values = np.asarray(solution.rewards), np.asarray(solution.values)
    best = values.max(axis=-1)
    for state, level in states(40, seed=1):
        style, index = state.known.types[state.player], level // 10
        at = position(style, state.terrain, state.distance, state.hidden, state.npc_health, state.player_health)
        for action in range(8):
            total = reward = value = 0.0
            for chance, after, outcome in outcomes(state, action, level):
                total, reward = total + chance, reward + chance * outcome.reward
                if not outcome.boundary:
                    then = after.terrain, after.distance, after.hidden, after.npc_health, after.player_health
                    value += chance * best[index, position(style, *then)]
            assert total == pytest.approx(1, abs=1e-12)
            assert rewards[index, at, action] == pytest.approx(reward, abs=2e-6)
            expected = reward - float(solution.average[index]) + value
            assert values[index, at, action] == pytest.approx(expected, abs=2e-5)


def test_every_level_is_solved_to_rounding():
    env = GameNPCEnv(regime="drift")
    solution = env.world.solve(env.params)
    assert solution.levels.tolist() == list(range(11))
    assert float(solution.residual.max()) < 1e-9
    assert (np.diff(solution.average) < 0).all()  # the second rules are harder, and every mixture lies between
    assert env.world.solve(env.params) is solution


def test_an_encounter_begins_worth_nothing_on_average():
    posed = problem(0, opponents.opponents().moves, opponents.opponents().agrees)
    solution = GameNPCEnv().world.solve(GameNPCEnv().params)
    assert posed.start @ np.asarray(solution.values[0]).max(axis=-1) == pytest.approx(0, abs=1e-5)
    assert posed.start.sum() == pytest.approx(1)
    assert (posed.start > 0).sum() == 5 * 4 * 2 * 2


def exact_average(posed, chances):
    """Reward per step of a policy that takes each action with the same chance in every state."""
    n_states, n_actions = posed.rewards.shape
    moves = sparse.csr_matrix((posed.chances, (posed.rows, posed.next_states)), shape=(n_states * n_actions, n_states))
    mixture = sparse.kron(sparse.identity(n_states), sparse.csr_matrix(chances)).tocsr()
    within = linalg.splu(sparse.csc_matrix(sparse.identity(n_states) - mixture @ moves))
    return posed.start @ within.solve(posed.rewards @ chances) / (posed.start @ within.solve(np.ones(n_states)))


@pytest.mark.parametrize(
    ("level", "random", "ambush", "oracle"), [(0, -0.219, -0.016, 0.663), (10, -0.239, -0.042, 0.516)]
)
def test_scores_of_the_page_are_exact(level, random, ambush, oracle):
    behaviour = opponents.opponents()
    posed = problem(level, behaviour.moves, behaviour.agrees)
    fixed = [exact_average(posed, np.eye(8)[action]) for action in range(8)]
    assert exact_average(posed, np.full(8, 1 / 8)) == pytest.approx(random, abs=6e-4)
    assert (np.argmax(fixed), max(fixed)) == (rules.AMBUSH, pytest.approx(ambush, abs=6e-4))
    assert float(solve([level], behaviour.moves, behaviour.agrees).average[0]) == pytest.approx(oracle, abs=6e-4)


@pytest.mark.parametrize("level", [0.0, 0.4, 1.0])
def test_the_oracle_earns_the_average_of_its_solution(level):
    env = GameNPCEnv(regime=((0, level),))
    params = env.params._replace(arrivals=env.params.arrivals._replace(drift=jnp.int32(ONE)))  # the mixture of styles
    solution = env.world.solve(params)
    key_data = rollouts.seeds_to_key_data(range(100))
    player = rollouts.OraclePlayer(solution)
    reward = np.asarray(rollouts.rollout(env.world, player, key_data, n_steps=1000, params=params).reward)
    means = reward.mean(axis=1)
    error = means.std(ddof=1) / 10
    assert error < 0.008
    assert abs(means.mean() - float(solution.average[0])) < 4 * error  # false alarm 6e-5
    assert abs(means.mean() - float(solution.average[0]) - 0.05) > 4 * error


def test_expected_rewards_and_values_are_read_at_the_state_and_level():
    dynamics, params = world()
    solution = dynamics.solve(params)
    for plain, level in states(5, seed=2):
        state = jax.tree.map(jnp.int32, plain._replace(known=None))._replace(
            known=jax.tree.map(jnp.asarray, plain.known, is_leaf=lambda leaf: isinstance(leaf, list))
        )
        style = plain.known.types[plain.player]
        at = position(style, plain.terrain, plain.distance, plain.hidden, plain.npc_health, plain.player_health)
        index = level // 10
        np.testing.assert_array_equal(dynamics.expected_rewards(state, params, solution), solution.rewards[index, at])
        np.testing.assert_array_equal(dynamics.action_values(state, params, solution), solution.values[index, at])
        assert int(contract.oracle(dynamics, state, params, solution)) == int(np.argmax(solution.values[index, at]))
    with pytest.raises(ValueError, match="solution"):
        dynamics.action_values(state, params, None)


@functools.cache
def history(seed, n_steps):
    """Steps of random play as an agent sees them (`Seen`), and the states before them."""
    dynamics, params = world()
    rng = np.random.default_rng(seed)
    state = jax.jit(dynamics.initial)(jax.random.key(seed), params)
    observe, step = (
        jax.jit(lambda state: dynamics.observe(state, None, params)),
        jax.jit(lambda state, action, key: dynamics.step(state, action, key, params)),
    )
    steps = []
    observation = observe(state)
    for number in range(n_steps):
        action = jnp.int32(rng.choice([0, 1, 1, 3, 5, NEGOTIATE, NEGOTIATE]))
        level = jnp.int32(0 if number < 14 else 10)
        before, (state, outcome) = state, step(state, action, jax.random.key(100 * seed + number))
        following = observe(state)
        seen = contract.Seen(observation, action, outcome, following, jnp.int32(number), level, jnp.ones(8, bool))
        steps.append((as_integers(before), as_integers(state), seen))
        observation = following
    return steps


def chance_of_what_showed(before, after, seen, style):
    """Chance of a step's visible results if the player at hand had `style`, through the dynamics."""
    state = copied(before)
    state.known.types[state.player] = style
    shown = as_integers(seen.outcome)
    total = 0.0
    for chance, then, outcome in outcomes(state, int(seen.action), int(seen.level)):
        if outcome == shown and (outcome.boundary or then._replace(known=None) == after._replace(known=None)):
            total += chance
    return total


def enumerated_posteriors(steps):
    """[N_PLAYERS, N_STYLES]: by the sum over all paths of hidden styles, drawn at the start and at every arrival."""
    likelihoods = np.array([[chance_of_what_showed(*step, style) for style in range(N_STYLES)] for step in steps])
    arrivals = [number for number, (_, _, seen) in enumerate(steps) if bool(seen.outcome.boundary)]
    fresh = np.bincount(np.arange(ONE) * N_STYLES >> 16) / ONE
    drift = draws.threshold(DRIFT) / ONE
    posterior = np.zeros((N_PLAYERS, N_STYLES))
    for path in itertools.product(range(N_STYLES), repeat=N_PLAYERS + len(arrivals)):
        styles, drawn = list(path[:N_PLAYERS]), iter(path[N_PLAYERS:])
        chance = float(np.prod(fresh[styles]))
        left = {}
        for number, (before, after, seen) in enumerate(steps):
            chance *= likelihoods[number, styles[before.player]]
            if bool(seen.outcome.boundary):
                left[before.player] = number
                comes, style = after.player, next(drawn)
                renewed = number + 1 >= 14 and left.get(comes, 14) < 14
                stays = 0.0 if renewed else (1 - drift) * (style == styles[comes])
                chance *= stays + (1.0 if renewed else drift) * fresh[style]
                styles[comes] = style
        for player in range(N_PLAYERS):
            posterior[player, styles[player]] += chance
    return posterior / posterior.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
def test_the_filter_is_the_sum_over_all_paths_of_hidden_styles(seed):
    dynamics, params = world()
    steps = history(seed, 24)
    boundaries = sum(bool(seen.outcome.boundary) for _, _, seen in steps)
    assert boundaries >= 3
    solved = dynamics.solve(params)
    update = jax.jit(dynamics.filter(solved).update)
    belief = dynamics.filter(solved).initial(steps[0][2].observation, params)
    checked = 0
    for number, (_, _, seen) in enumerate(steps):
        belief = update(belief, seen, params)
        arrived = sum(bool(seen.outcome.boundary) for _, _, seen in steps[: number + 1])
        if number in (5, 11, 15, 19, 23) and arrived <= 5:
            expected = enumerated_posteriors(steps[: number + 1])
            np.testing.assert_allclose(belief.styles[:N_PLAYERS], expected, atol=2e-5)
            assert np.abs(expected - 1 / N_STYLES).max() > 0.02
            checked += 1
    assert checked >= 3


def test_the_forgetful_filter_knows_only_the_encounter_at_hand():
    dynamics, params = world()
    forgetful = dynamics.filter(dynamics.solve(params), forgets=True)
    steps = history(1, 24)
    belief = forgetful.initial(steps[0][2].observation, params)
    expected = fresh = np.bincount(np.arange(ONE) * N_STYLES >> 16) / ONE
    update = jax.jit(forgetful.update)
    for before, after, seen in steps:
        belief = update(belief, seen, params)
        expected = expected * [chance_of_what_showed(before, after, seen, style) for style in range(N_STYLES)]
        expected = fresh if bool(seen.outcome.boundary) else expected / expected.sum()
        np.testing.assert_allclose(belief.styles[after.player], expected, atol=2e-5)


def test_the_filter_acts_on_values_averaged_over_its_belief():
    dynamics, params = world()
    solution = dynamics.solve(params)
    acting = dynamics.filter(solution)
    state = jax.jit(dynamics.initial)(jax.random.key(3), params)
    observation = dynamics.observe(state, None, params)
    belief = acting.initial(observation, params)
    weights = jnp.array([0.2, 0.5, 0.3])
    belief = belief._replace(styles=belief.styles.at[state.player].set(weights))
    place = state.terrain, state.distance, state.hidden, state.npc_health, state.player_health
    by_style = np.stack([solution.values[1, position(style, *place)] for style in range(N_STYLES)])
    values = acting.values(belief, observation, jnp.int32(10), params)
    np.testing.assert_allclose(values, np.asarray(weights) @ by_style, atol=1e-5)


def test_without_the_players_number_the_filter_cannot_but_forget():
    env = GameNPCEnv(observe_entity=False)
    solution = env.world.solve(env.params)
    assert env.world.filter(solution).forgets
    assert not GameNPCEnv().world.filter(solution).forgets
    key_data = rollouts.seeds_to_key_data(range(2))
    player = rollouts.FilterPlayer(env.world.filter(solution))
    assert np.isfinite(np.asarray(rollouts.rollout(env.world, player, key_data, n_steps=50).reward)).all()


def test_the_oracle_never_takes_what_is_impossible():
    env = GameNPCEnv(regime="drift")
    best = np.asarray(env.world.solve(env.params).values).argmax(axis=-1).reshape(regimes.LEVELS + 1, 5, 4, 3, 2, 5, 5)
    assert not (best[:, :, :, :, 1] == NEGOTIATE).any()
    assert (best[:, :, :, :, 0] == NEGOTIATE).any()


def test_solutions_belong_to_the_content_of_the_params():
    one = solve([0, 0, 10], opponents.opponents().moves, opponents.opponents().agrees)
    assert solve([10, 0], opponents.opponents().moves, opponents.opponents().agrees) is one
    calm = opponents.opponents(negotiation=[0.9] * 5)
    assert float(solve([0], calm.moves, calm.agrees).average[0]) > float(one.average[0])
