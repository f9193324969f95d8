import functools

import numpy as np
import pytest
from habitus.envs import rollout as rollouts
from habitus.envs.game_npc import GameNPCEnv, opponents, rules

N_ACTIONS = 8


@functools.cache
def env(**arguments):
    return GameNPCEnv(**arguments)


def trace(world_env, player, n_episodes, n_steps):
    key_data = rollouts.seeds_to_key_data(range(n_episodes))
    return rollouts.rollout(world_env.world, player, key_data, n_steps=n_steps)


def oracle(world_env):
    return rollouts.OraclePlayer(world_env.world.solve(world_env.params))


# Means of the C prototype in which the dynamics were designed, with their standard errors: 32 seeds for the first
# rules, 6 for the second.
@pytest.mark.parametrize(
    ("level", "is_oracle", "prototype", "prototype_error"),
    [
        (0.0, False, -0.217, 0.005),
        (0.0, True, 0.665, 0.0065),
        (1.0, False, -0.233, 0.010),
        (1.0, True, 0.510, 0.014),
    ],
)
def test_raw_scores_are_those_of_the_measured_prototype(level, is_oracle, prototype, prototype_error):
    world_env = env(regime=((0, level),))
    player = oracle(world_env) if is_oracle else rollouts.RandomPlayer(N_ACTIONS)
    scores = np.asarray(trace(world_env, player, 100, 2000).expected).mean(axis=1)
    error = np.hypot(scores.std(ddof=1) / np.sqrt(scores.size), prototype_error)
    assert error < 0.02
    assert abs(scores.mean() - prototype) < 4 * error  # false alarm 6e-5
    assert abs(scores.mean() - prototype - 0.15) > 4 * error  # a world that pays .15 more would be noticed


@functools.cache
def normalised(difficulty, n_seeds, n_steps):
    """Player -> [n_seeds] scores; 0 = random, 1 = oracle, both over all seeds."""
    world_env = env(difficulty=difficulty)
    solution = world_env.world.solve(world_env.params)
    players = {
        "random": rollouts.RandomPlayer(N_ACTIONS),
        "oracle": rollouts.OraclePlayer(solution),
        "filter": rollouts.FilterPlayer(world_env.world.filter(solution)),
        "forgets": rollouts.FilterPlayer(world_env.world.filter(solution, forgets=True)),
    }
    scores = {
        name: np.asarray(trace(world_env, player, n_seeds, n_steps).expected).mean(axis=1)
        for name, player in players.items()
    }
    low, high = scores["random"].mean(), scores["oracle"].mean()
    return {name: (score - low) / (high - low) for name, score in scores.items()}


def difference(scores, more, less):
    """Mean of the paired difference of two players, and its standard error."""
    paired = scores[more] - scores[less]
    return paired.mean(), paired.std(ddof=1) / np.sqrt(paired.size)


@pytest.mark.slow
def test_memory_is_worth_a_tenth_of_the_way_from_random_to_oracle():
    scores = normalised("medium", 40, 2000)
    worth, error = difference(scores, "filter", "forgets")
    assert worth > 0.10
    assert worth - 3 * error > 0.05
    assert scores["filter"].mean() > 0.9


@pytest.mark.slow
def test_the_hard_preset_is_hard_for_the_best_reasoner():
    easy, easy_error = difference(normalised("easy", 20, 2000), "oracle", "filter")
    hard, hard_error = difference(normalised("hard", 20, 2000), "oracle", "filter")
    assert hard - easy > 0.03 + 3 * np.hypot(easy_error, hard_error)


def always(move, n_styles=1):
    table = np.zeros((n_styles, 1, 1, 1, 1, rules.N_MOVES))
    table[..., move] = 1
    return table


def test_players_of_a_users_table_move_as_it_says():
    guards = GameNPCEnv(opponents=always(rules.GUARD), negotiation=[0.0])
    assert guards.world.n_styles == 1
    guards.reset(seed=0)
    moves = set()
    for action in (0, 1, 2, 3, 6, 0, 1) * 20:
        *_, info = guards.step(action)
        moves.add(info["move"])
    assert moves == {"none", "guard"}


def test_the_best_play_follows_the_users_table():
    guards = GameNPCEnv(opponents=always(rules.GUARD), negotiation=[0.0])
    talkers = GameNPCEnv(opponents=always(rules.GUARD), negotiation=[0.9])
    stalkers = GameNPCEnv(opponents=always(rules.ADVANCE), negotiation=[0.0])
    played = {}
    for name, world_env in (("guards", guards), ("talkers", talkers), ("stalkers", stalkers)):
        actions = np.asarray(trace(world_env, oracle(world_env), 10, 200).action)
        played[name] = np.bincount(actions.ravel(), minlength=N_ACTIONS) / actions.size
    assert played["guards"][rules.NEGOTIATE] == 0
    assert played["talkers"][rules.NEGOTIATE] > 0.9
    assert played["stalkers"][rules.AMBUSH] > 0.5 > played["guards"][rules.AMBUSH]


def test_the_negotiation_of_the_built_in_styles_can_be_replaced():
    stubborn = env(negotiation=(0.0,) * 5)
    assert (np.asarray(stubborn.params.agrees) == 0).all()
    split = GameNPCEnv(negotiation=[[0.1] * 5, [1.0] * 5])
    agrees = np.asarray(split.params.agrees).reshape(11, 5, 2)
    np.testing.assert_allclose(agrees[[0, 5, 10], 0, 0] / 65536, [0.1, 0.55, 1.0], atol=2e-5)
    np.testing.assert_allclose(agrees[[0, 10], 0, 1] / 65536, [0.13, 1.0], atol=2e-5)  # low health: x 1.3, at most 1


def table_with(value, at):
    table = opponents.built_in_moves()
    table[at] = value
    return table


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"horizon": 0}, ValueError, "`horizon`"),
        ({"difficulty": "brutal"}, ValueError, "`difficulty`"),
        ({"feedback": "late"}, ValueError, "`feedback`"),
        ({"observe_entity": 1}, TypeError, "`observe_entity`"),
        ({"redraw_styles": "yes"}, TypeError, "`redraw_styles`"),
        ({"regime": [(5, 0.0), (5, 1.0)]}, ValueError, r"`regime\[1\] step`"),
        ({"regime": "shift", "shift_at": 2000}, ValueError, "`shift_at`"),
        ({"capacity": 11}, ValueError, "`capacity`"),
        ({"capacity": 40000}, ValueError, "`capacity`"),
        ({"render_mode": "braille"}, ValueError, "`render_mode`"),
        ({"opponents": always(0)}, ValueError, "`negotiation` must be given"),
        ({"opponents": always(0) * 1j, "negotiation": [0]}, TypeError, "`opponents` must be an array of chances"),
        (
            {"opponents": always(0).astype(str), "negotiation": [0]},
            TypeError,
            "`opponents` must be an array of chances",
        ),
        ({"opponents": np.ones((2, 6)) / 6, "negotiation": [0, 0]}, ValueError, "`opponents` must have the shape"),
        (
            {"opponents": np.ones((2, 4, 3, 2, 2, 5)) / 5, "negotiation": [0, 0]},
            ValueError,
            "`opponents` must have the shape",
        ),
        (
            {"opponents": np.ones((2, 3, 3, 2, 2, 6)) / 6, "negotiation": [0, 0]},
            ValueError,
            "`opponents` must have the shape",
        ),
        ({"opponents": always(0, 0), "negotiation": []}, ValueError, "`opponents` must have 1 to 64 styles"),
        ({"opponents": always(0, 65), "negotiation": [0] * 65}, ValueError, "`opponents` must have 1 to 64 styles"),
        (
            {"opponents": table_with(0.5, (1, 2, 0, 1, 0)), "negotiation": [0] * 5},
            ValueError,
            r"`opponents` must sum to 1 .* got 3 at \(1, 2, 0, 1, 0\)",
        ),
        (
            {"opponents": table_with(np.nan, (0, 0, 0, 0, 0, 0)), "negotiation": [0] * 5},
            ValueError,
            "`opponents` must be finite",
        ),
        (
            {"opponents": table_with(-0.1, (0, 0, 0, 0, 0, 0)), "negotiation": [0] * 5},
            ValueError,
            r"`opponents` must hold chances in \[0, 1\], got -0.1",
        ),
        ({"opponents": "builtin", "negotiation": [0] * 5}, TypeError, "`opponents` must be an array"),
        ({"negotiation": [0.5] * 4}, ValueError, r"`negotiation` must have the shape \(5,\)"),
        ({"negotiation": [1.5] * 5}, ValueError, r"`negotiation` must hold chances in \[0, 1\], got 1.5"),
        ({"negotiation": [float("inf")] * 5}, ValueError, "`negotiation` must be finite"),
    ],
)
def test_a_wrong_argument_is_named_at_construction(arguments, error, message):
    with pytest.raises(error, match=message):
        GameNPCEnv(**arguments)


def test_feedback_makes_no_difference_where_nothing_is_delayed():
    shown = []
    for feedback in ("attributed", "stream"):
        world_env = GameNPCEnv(feedback=feedback)
        assert world_env.schema.feedback == feedback
        world_env.reset(seed=3)
        steps = [world_env.step(action) for action in range(N_ACTIONS)]
        assert all(info["feedback"] == [] and info["decision_id"] == -1 for *_, info in steps)
        shown.append([(observation, reward) for observation, reward, *_ in steps])
    assert shown[0] == shown[1]


def test_memory_load_grows_from_easy_to_hard():
    presets = [env(difficulty=difficulty).params for difficulty in ("easy", "medium", "hard")]
    for rises in (
        [int(params.arrivals.n) for params in presets],
        [int(params.arrivals.drift) for params in presets],
        [-int(params.see) for params in presets],
        [-int(params.arrivals.hot) for params in presets],
    ):
        assert rises == sorted(rises)
        assert rises[0] < rises[-1]
