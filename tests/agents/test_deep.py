"""The adapter of the deep baselines: what they see, when they stop, and that they learn at all."""

import random

import gymnasium
import numpy as np
import pytest
import torch
from habitus.agents.deep import ALGORITHMS, DeepAgent
from habitus.agents.online import run

CORE = ("DQN", "PPO", "A2C")


@pytest.mark.parametrize("algorithm", CORE)
@pytest.mark.parametrize("n_steps", [1, 300])
def test_lives_exactly_the_steps_asked_for_and_shows_each_once(lanterns, algorithm, n_steps):
    env, shown = lanterns(horizon=120), []
    agent = DeepAgent(env, algorithm, seed=3)
    agent.learn(n_steps, callback=lambda who, transition: shown.append((who, transition)))
    assert agent.num_timesteps == len(shown) == n_steps
    assert all(who is agent for who, _ in shown)
    twin = lanterns(horizon=120)  # replayed: each transition is what the environment gave, in order
    observation, _ = twin.reset(seed=3)
    for _, seen in shown:
        assert seen.observation == observation
        after, reward, terminated, truncated, info = twin.step(seen.action)
        assert (seen.reward, seen.terminated, seen.truncated) == (reward, terminated, truncated)
        assert seen.next_observation == after
        assert seen.info == info
        observation = twin.reset()[0] if truncated else after


@pytest.mark.parametrize("boundary_terminates", [False, True])
def test_an_episode_that_others_touched_is_left(lanterns, boundary_terminates):
    env, shown = lanterns(delay=2), []
    agent = DeepAgent(env, "DQN", boundary_terminates=boundary_terminates).learn(10)
    env.reset(seed=1)
    env.step(0)
    agent.learn(5, callback=lambda _, t: shown.append(t.info["decision_id"]))
    agent.learn(5, callback=lambda _, t: shown.append(t.info["decision_id"]))
    assert shown == list(range(10))


@pytest.mark.parametrize("algorithm", CORE)
def test_a_callback_that_returns_false_stops(lanterns, algorithm):
    shown = []
    agent = DeepAgent(lanterns(), algorithm)
    agent.learn(500, callback=lambda _, transition: shown.append(transition) or len(shown) < 37)
    assert agent.num_timesteps == len(shown) == 37


@pytest.mark.parametrize("algorithm", CORE)
def test_a_second_call_goes_on_in_the_same_episode(lanterns, algorithm):
    shown = []
    agent = DeepAgent(lanterns(), algorithm)
    for n_steps in (37, 40):
        agent.learn(n_steps, callback=lambda _, t: shown.append(t) and None, reset_num_timesteps=False)
    assert agent.num_timesteps == 77
    assert shown[37].observation is shown[36].next_observation
    np.testing.assert_array_equal(agent.model._last_obs[0], agent._view.vector(shown[-1].next_observation))


def test_a_boundary_is_shown_as_an_end_but_the_episode_goes_on(lanterns):
    view = DeepAgent(lanterns(horizon=3), boundary_terminates=True)._view
    vector, _ = view.reset(seed=0)
    for is_last in (False, False, True):
        ended, _, terminated, truncated, _ = view.step(0)
        assert (terminated, truncated) == (not is_last, is_last)
        vector, _ = view.reset()
        # after a boundary the next lantern is the one already shown, after the true end a new one
        assert (vector.tolist() == ended.tolist()) is not is_last


def test_without_boundaries_the_long_episode_is_shown_as_it_is(lanterns):
    view = DeepAgent(lanterns(horizon=3), boundary_terminates=False)._view
    view.reset(seed=0)
    assert [view.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_the_variant_sets_the_discount_unless_it_is_given(lanterns):
    attributed, stream = DeepAgent(lanterns()), DeepAgent(lanterns(9, "stream"), credit="stream")
    assert attributed.model.gamma < stream.model.gamma
    assert DeepAgent(lanterns(), gamma=0.5).model.gamma == 0.5


def test_a_world_that_pays_late_is_refused_in_the_attributed_variant(lanterns):
    with pytest.raises(ValueError, match="cannot credit a late outcome"):
        DeepAgent(lanterns(9, "stream"), credit="attributed")


def test_sees_the_nodes_of_the_encoder_and_if_wished_what_it_did_and_got(lanterns):
    plain = DeepAgent(lanterns(), "A2C")
    agent = DeepAgent(lanterns(), "A2C", previous=True)
    n_nodes = plain._view.observation_space.shape[0]
    assert n_nodes == 3 + 4 + 1 + 3  # colours, bins, rank, guests
    assert agent._view.observation_space.shape == (n_nodes + 4,)  # three levers and the reward
    vector, _ = agent._view.reset(seed=0)
    assert not vector[n_nodes:].any()
    vector, reward, *_ = agent._view.step(1)
    assert vector[n_nodes:].tolist() == [0, 1, 0, reward]
    assert agent._view.observation_space.contains(vector)


def test_predict_takes_raw_observations_single_or_batched(lanterns):
    agent = DeepAgent(lanterns(), "PPO").learn(10)
    observations = [lanterns().reset(seed=seed)[0] for seed in range(4)]
    batch = {key: np.stack([observation[key] for observation in observations]) for key in observations[0]}
    single = [int(agent.predict(observation)[0]) for observation in observations]
    assert agent.predict(observations[0])[0].shape == ()
    assert agent.predict(batch)[0].tolist() == single


def test_a_run_neither_disturbs_the_global_generators_nor_depends_on_them(lanterns):
    def live():
        shown = []
        DeepAgent(lanterns(), "DQN", seed=5, learning_starts=20).learn(60, callback=lambda _, t: shown.append(t.action))
        return shown

    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002 - the global state is what is tested
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    first = live()
    assert states == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    random.seed(2), np.random.seed(2), torch.manual_seed(2)  # noqa: NPY002
    assert live() == first


def test_the_loop_of_others_is_refused_with_the_way_out(lanterns):
    env = lanterns()
    with pytest.raises(NotImplementedError, match=r"runs its own loop: call `learn\(n, callback=...\)`"):
        run(DeepAgent(env), env, 3)


@pytest.mark.parametrize("name", ["dqn", "DQNN"])
def test_an_unknown_algorithm_names_the_near_one(lanterns, name):
    with pytest.raises(ValueError, match="did you mean 'DQN'"):
        DeepAgent(lanterns(), name)


def test_a_misspelt_hyperparameter_names_the_near_one(lanterns):
    with pytest.raises(TypeError, match="'learning_rat' is not a setting of DQN; did you mean 'learning_rate'"):
        DeepAgent(lanterns(), "DQN", learning_rat=1e-3)
    with pytest.raises(TypeError, match="'buffer_size' is not a setting of PPO"):
        DeepAgent(lanterns(), "PPO", buffer_size=10)


def test_zero_steps_are_refused(lanterns):
    with pytest.raises(ValueError, match="`total_timesteps` must be at least 1, got 0"):
        DeepAgent(lanterns()).learn(0)


@pytest.mark.parametrize("algorithm", sorted(set(ALGORITHMS) - set(CORE)))
def test_every_further_algorithm_lives(lanterns, algorithm):
    agent = DeepAgent(lanterns(), algorithm).learn(20)
    assert 0 <= int(agent.predict(lanterns().reset(seed=0)[0])[0]) < 3


@pytest.mark.parametrize("algorithm", CORE)
def test_learns_the_levers_a_bit(lanterns, score, algorithm):
    settings = {"DQN": {"learning_starts": 50, "target_update_interval": 100}, "A2C": {}, "PPO": {"n_steps": 128}}
    assert score(DeepAgent(lanterns(), algorithm, **settings[algorithm]), 2_000) > 0.4


def test_an_algorithm_leaves_nothing_behind_for_the_next_one():
    # seen before: a DQN built after an A2C learnt with RMSprop, because A2C writes into settings that defaults shared
    env = gymnasium.make("FrozenLake-v1")
    before = DeepAgent(env, "DQN").model.policy.optimizer
    DeepAgent(env, "A2C")
    after = DeepAgent(env, "DQN").model.policy.optimizer
    assert type(after) is type(before)
    assert type(DeepAgent(env, "PPO").model.policy.optimizer) is type(before)
