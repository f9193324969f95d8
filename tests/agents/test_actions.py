"""Actions by number, and environments whose actions have several parts."""

import gymnasium
import numpy as np
import pytest
from habitus.agents import DeepAgent, Substrate, make
from habitus.agents.actions import MAX_ACTIONS, Actions
from stable_baselines3.common.evaluation import evaluate_policy


class Locks(gymnasium.Env):
    """Shows one of six numbers; pays where both dials are set to it, [number // 3 + 1, number % 3]."""

    def __init__(self):
        self.observation_space = gymnasium.spaces.Discrete(6)
        self.action_space = gymnasium.spaces.MultiDiscrete([2, 3], start=[1, 0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._shown, self._t = int(self.np_random.integers(6)), 0
        return self._shown, {}

    def step(self, action):
        assert self.action_space.contains(action)
        is_right = list(action) == [self._shown // 3 + 1, self._shown % 3]
        self._shown, self._t = int(self.np_random.integers(6)), self._t + 1
        return self._shown, float(is_right), False, self._t == 50, {"boundary": True}


def test_combinations_are_numbered_with_the_last_entry_fastest():
    space = gymnasium.spaces.MultiDiscrete([2, 3], start=[1, 0])
    actions = Actions(space)
    found = [actions.of_env(number) for number in range(actions.n)]
    assert [each.tolist() for each in found] == [[1, 0], [1, 1], [1, 2], [2, 0], [2, 1], [2, 2]]
    assert all(space.contains(each) for each in found)
    assert actions.labels == ("1, 0", "1, 1", "1, 2", "2, 0", "2, 1", "2, 2")
    np.testing.assert_array_equal(actions.predicted(np.arange(6)), found)
    np.testing.assert_array_equal(actions.predicted(np.asarray(4)), [2, 1])


def test_a_number_of_a_discrete_space_stays_as_it_is():
    actions = Actions(gymnasium.spaces.Discrete(4))
    assert (actions.n, actions.labels, actions.of_env(3)) == (4, ("0", "1", "2", "3"), 3)
    assert actions.predicted(np.asarray(3)).shape == ()


def test_too_many_combinations_are_refused():
    with pytest.raises(ValueError, match=rf"at most {MAX_ACTIONS} combinations, got 4356 of MultiDiscrete"):
        Actions(gymnasium.spaces.MultiDiscrete([66, 66]))


def test_the_substrate_learns_combinations_and_says_them(tmp_path):
    env = Locks()
    agent, rewards = Substrate(env, seed=0), []
    agent.learn(3_000, callback=lambda _, t: rewards.append(t.reward))
    assert np.mean(rewards[2_000:]) > 0.8  # chance is 1 / 6
    action, _ = agent.predict(4)
    assert action.tolist() == [2, 1]
    assert agent.decide(4).choice == "2, 1"
    assert agent.predict(np.array([0, 5]))[0].tolist() == [[1, 0], [2, 2]]
    assert agent.action_space == env.action_space
    mean, _ = evaluate_policy(agent, gymnasium.wrappers.RecordEpisodeStatistics(Locks()), 2, warn=False)
    assert mean > 40
    again = Substrate.load(agent.save(tmp_path / "agent"), Locks())
    assert again.decide(4) == agent.decide(4)


@pytest.mark.parametrize("kind", ["random", "tabular_q", "linucb"])
def test_every_agent_of_the_common_loop_takes_them(kind):
    shown = []
    make(kind, Locks(), seed=0).learn(60, callback=lambda _, t: shown.append(t.action))
    assert set(shown) <= set(range(6))
    assert len(set(shown)) > 1


def test_a_deep_learner_refuses_them():
    with pytest.raises(TypeError, match="must be Discrete for a deep learner here, got MultiDiscrete"):
        DeepAgent(Locks())
