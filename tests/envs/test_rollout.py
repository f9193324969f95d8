import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import envs
from habitus.envs import rollout as rollouts

N_STEPS = 200


@pytest.fixture
def world():
    return envs.CreditReviewEnv(regime="shift", horizon=N_STEPS).world


def test_an_episode_equals_the_scalar_environment_of_its_seed(world):
    env = envs.CreditReviewEnv(regime="shift", horizon=N_STEPS)
    seeds = [3, 11]
    trace = rollouts.rollout(
        world, rollouts.RandomPlayer(5), rollouts.seeds_to_key_data(seeds), n_steps=N_STEPS, params=env.params
    )
    for episode, seed in enumerate(seeds):
        env.reset(seed=seed)
        for step, action in enumerate(np.asarray(trace.action[episode]).tolist()):
            expected, level = env.expected_rewards()[action], env.regime_level()
            _, reward, _, _, info = env.step(action)
            shown = [np.asarray(part[episode, step]).item() for part in trace[1:5]]
            assert shown == [reward, expected, info["boundary"], round(10 * level)]


@pytest.mark.slow
def test_a_player_does_not_disturb_the_world_and_draws_all_actions_alike(world):
    key_data = rollouts.seeds_to_key_data(range(64))
    random = rollouts.rollout(world, rollouts.RandomPlayer(5), key_data, n_steps=N_STEPS)
    counts = np.bincount(np.asarray(random.action).ravel(), minlength=5)
    mean = counts.sum() / 5
    assert np.abs(counts - mean).max() < 5 * np.sqrt(mean)  # five standard errors
    alone = rollouts.rollout(world, rollouts.RandomPlayer(5), key_data[5:6], n_steps=N_STEPS)
    jax.tree.map(lambda one, all_: np.testing.assert_array_equal(one[0], all_[5]), alone, random)


@pytest.mark.slow
def test_the_oracle_beats_the_best_fixed_action_and_the_random_one(world):
    key_data = rollouts.seeds_to_key_data(range(32))
    players = [rollouts.OraclePlayer(None), rollouts.FixedPlayer(1), rollouts.RandomPlayer(5)]
    means = [float(rollouts.rollout(world, player, key_data, n_steps=N_STEPS).expected.mean()) for player in players]
    assert means[0] > 0.2 > means[1] == 0 > -0.1 > means[2]


@pytest.mark.slow
def test_a_filter_plays_better_than_chance_and_no_better_than_who_knows_the_hidden():
    world = envs.GameNPCEnv().world
    solution = world.solve(world.params)
    players = [
        rollouts.OraclePlayer(solution),
        rollouts.FilterPlayer(world.filter(solution)),
        rollouts.RandomPlayer(len(world.schema.actions)),
    ]
    key_data = rollouts.seeds_to_key_data(range(48))
    oracle, filtered, random = (
        float(rollouts.rollout(world, player, key_data, n_steps=400, solution=solution).reward.mean())
        for player in players
    )
    assert oracle + 0.03 > filtered > 0.5 * oracle > 0 > random


def test_params_of_each_episode_equal_runs_of_their_own(world):
    others = [envs.CreditReviewEnv(regime=regime, horizon=N_STEPS).params for regime in ("none", "shift", "drift")]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *others)
    key_data = rollouts.seeds_to_key_data([1, 2, 3])
    player = rollouts.RandomPlayer(5)
    together = rollouts.rollout(world, player, key_data, n_steps=N_STEPS, params=stacked, per_episode_params=True)
    for index, params in enumerate(others):
        alone = rollouts.rollout(world, player, key_data[index : index + 1], n_steps=N_STEPS, params=params)
        jax.tree.map(lambda one, all_: np.testing.assert_array_equal(one[0], all_[index]), alone, together)  # noqa: B023
    with pytest.raises(ValueError, match=r"`params.*` must have shape \(3,.*\), got"):
        rollouts.rollout(world, player, key_data, n_steps=1, params=others[0], per_episode_params=True)


class _Memory:
    """Carries what it saw: the number of steps and the last action."""

    def initial(self, observation, key):
        return jnp.zeros(2, jnp.int32)

    def act(self, carry, turn):
        return carry[0] % 5, carry

    def learn(self, carry, seen):
        return jnp.stack([seen.step + 1, seen.action])


def test_a_player_carries_what_it_learns(world):
    trace = rollouts.rollout(world, _Memory(), rollouts.seeds_to_key_data([0, 1]), n_steps=12)
    np.testing.assert_array_equal(trace.action, [np.arange(12) % 5] * 2)
    np.testing.assert_array_equal(trace.carry, [[12, 11 % 5]] * 2)


def test_seeds_and_equal_worlds_do_not_compile_again(world):
    player = rollouts.RandomPlayer(5)
    rollouts.rollout(world, player, rollouts.seeds_to_key_data([0]), n_steps=7)
    before = rollouts._run._cache_size()
    other = envs.CreditReviewEnv(regime="drift").world
    rollouts.rollout(other, rollouts.RandomPlayer(5), rollouts.seeds_to_key_data([9]), n_steps=7)
    assert rollouts._run._cache_size() == before
    rollouts.rollout(other, rollouts.RandomPlayer(5), rollouts.seeds_to_key_data([9]), n_steps=8)
    assert rollouts._run._cache_size() == before + 1


def test_without_scores_nothing_is_expected(world):
    trace = rollouts.rollout(world, rollouts.FixedPlayer(1), rollouts.seeds_to_key_data([0]), n_steps=3, scores=False)
    assert np.isnan(trace.expected).all()


@pytest.mark.parametrize("key_data", [np.zeros((0, 2)), np.zeros(2), np.zeros((3, 4))])
def test_key_data_of_another_shape_is_refused(world, key_data):
    with pytest.raises(ValueError, match=r"`key_data` must be \[N, 2\]"):
        rollouts.rollout(world, rollouts.FixedPlayer(1), key_data, n_steps=3)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class First:
    """Takes action 0 whatever its array says."""

    number: jax.Array

    def initial(self, observation, key):
        return ()

    def act(self, carry, turn):
        return self.number * 0, carry

    def learn(self, carry, seen):
        return carry


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Second(First):
    """Takes action 1."""

    def act(self, carry, turn):
        return self.number * 0 + 1, carry


def test_players_of_two_classes_with_equal_fields_are_two_players():
    # Tree definitions of different registered classes compare equal in JAX when their fields do.
    world, keys = envs.GameNPCEnv().world, rollouts.seeds_to_key_data([0])
    number = jnp.zeros((), jnp.int32)
    played = [
        np.unique(rollouts.rollout(world, player, keys, n_steps=5).action).tolist()
        for player in (First(number), Second(number), First(number))
    ]
    assert played == [[0], [1], [0]]


@pytest.mark.parametrize(
    ("seeds", "error", "message"),
    [
        ([], ValueError, "`seeds` must be whole numbers, one per episode, got none"),
        ([1, 2.0], TypeError, r"`seeds\[1\]` must be a whole number, got 2.0"),
        (["3"], TypeError, r"`seeds\[0\]` must be a whole number, got '3'"),
        ([True], TypeError, r"`seeds\[0\]` must be a whole number, got True"),
        ([4, 5, -1], ValueError, r"`seeds\[2\]` must lie in"),
    ],
)
def test_seeds_that_no_environment_takes_are_refused(seeds, error, message):
    with pytest.raises(error, match=message):
        rollouts.seeds_to_key_data(seeds)


def test_whole_numbers_of_numpy_are_seeds():
    found = rollouts.seeds_to_key_data(np.arange(3))
    np.testing.assert_array_equal(found, rollouts.seeds_to_key_data(range(3)))


@pytest.mark.parametrize(
    ("key_data", "error", "message"),
    [
        (np.zeros((1, 2)), TypeError, "`key_data` must be whole numbers, got float64"),
        (np.zeros((1, 2), bool), TypeError, "`key_data` must be whole numbers, got bool"),
        ([[0, -1]], ValueError, r"`key_data` must lie in \[0, 4294967295\], got -1 at \[0, 1\]"),
        (np.uint64([[1, 0], [2**32, 0]]), ValueError, r"`key_data` must lie in .*, got 4294967296 at \[1, 0\]"),
    ],
)
def test_key_data_that_is_no_word_is_refused(world, key_data, error, message):
    with pytest.raises(error, match=message):
        rollouts.rollout(world, rollouts.FixedPlayer(1), key_data, n_steps=3)


@pytest.mark.parametrize(
    ("player", "error", "message"),
    [
        (rollouts.FixedPlayer(5), ValueError, r"`action` must lie in \[0, 4\], got 5"),
        (rollouts.FixedPlayer(-1), ValueError, r"`action` must lie in \[0, 4\], got -1"),
        (rollouts.FixedPlayer(1.0), TypeError, "`action` must be a whole number, got 1.0"),
        (rollouts.RandomPlayer(6), ValueError, r"`n_actions` must lie in \[1, 5\], got 6"),
        (rollouts.RandomPlayer(0), ValueError, r"`n_actions` must lie in \[1, 5\], got 0"),
    ],
)
def test_players_of_another_world_are_refused(world, player, error, message):
    with pytest.raises(error, match=message):
        rollouts.rollout(world, player, rollouts.seeds_to_key_data([0]), n_steps=3)


def test_params_are_checked_as_those_of_environments(world):
    run = functools.partial(rollouts.rollout, player=rollouts.FixedPlayer(1), n_steps=3)
    key_data = rollouts.seeds_to_key_data([0, 1])
    with pytest.raises(TypeError, match=r"`params` must be a pytree like `world.params`"):
        run(world, key_data=key_data, params=(1, 2))
    with pytest.raises(ValueError, match=r"`params.n_applicants` must lie in \[1, 80\], got 81"):
        run(world, key_data=key_data, params=world.params._replace(n_applicants=jnp.int32(81)))
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), world.params)
    stacked = stacked._replace(n_applicants=jnp.int32([80, 81]))
    with pytest.raises(ValueError, match=r"`params.n_applicants` must lie in \[1, 80\], got 81 at \[1\]"):
        run(world, key_data=key_data, params=stacked, per_episode_params=True)
    with pytest.raises(TypeError, match=r"`world` must be a World .* got an object of type CreditReviewEnv"):
        run(envs.CreditReviewEnv(), key_data=key_data)


@dataclasses.dataclass(frozen=True)
class Stubborn:
    """Returns the same Python number at every turn."""

    number: int

    def initial(self, observation, key):
        return ()

    def act(self, carry, turn):
        return self.number, carry

    def learn(self, carry, seen):
        return carry


@pytest.mark.parametrize("action", [-1, 8, 99])
def test_a_player_that_returns_no_action_of_the_world_is_refused(action):
    world, keys = envs.GameNPCEnv().world, rollouts.seeds_to_key_data([0])
    with pytest.raises(ValueError, match=rf"`player.act` must return actions in \[0, 8\), got {action}"):
        rollouts.rollout(world, Stubborn(action), keys, n_steps=3)
    assert np.unique(rollouts.rollout(world, Stubborn(7), keys, n_steps=3).action).tolist() == [7]
