"""An evaluation with feedback: a copy learns on, the agent itself stays as it is."""

import gymnasium
import numpy as np
import pytest
from habitus.agents import LinUCB, Substrate, TabularQ, run
from habitus.agents.deep import DeepAgent
from habitus.agents.evaluation import OnlineScore, evaluate_online
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor


class Alternating:
    """An agent of three methods and nothing of this package: takes one lever after the other, and counts."""

    def __init__(self, env):
        self.env, self.told = env, []

    def begin(self, observation, info):
        self.told.append("begin")

    def act(self, observation):
        return len(self.told) % 3

    def observe(self, transition):
        self.told.append(transition.reward)


def test_scores_by_hand():
    rewards = np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    score = OnlineScore(rewards, np.array([False, True, False, True, False]), seed=0)
    assert score.mean == 4.0
    assert score.episode_returns.tolist() == [3.0, 7.0]  # the last episode has not ended
    assert score.windows(2).tolist() == [1.5, 3.5, 10.0]
    assert score.windows(9).tolist() == [4.0]
    assert OnlineScore(rewards, np.zeros(5, bool), seed=0).episode_returns.shape == (0,)
    with pytest.raises(ValueError, match="`size` must be at least 1, got 0"):
        score.windows(0)


def test_any_agent_of_three_methods_is_taken_and_left_alone(lanterns):
    env = lanterns(horizon=4)
    agent = Alternating(env)
    run(agent, env, 3, seed=0)
    told = list(agent.told)
    score = evaluate_online(agent, lanterns(horizon=4), 6, seed=1)
    assert agent.told == told
    twin, rewards = Alternating(env), []
    twin.told = list(told)
    run(twin, lanterns(horizon=4), 6, seed=1, callback=lambda _, t: rewards.append(t.reward))
    assert score.rewards.tolist() == rewards
    assert score.ends.tolist() == [False, False, False, True, False, False]
    assert score.seed == 1


@pytest.mark.parametrize("kind", [Substrate, LinUCB, TabularQ])
def test_the_score_is_what_the_agent_itself_would_have_got(lanterns, kind):
    def agent():
        return kind(lanterns(delay=2), seed=3).learn(40)

    rewards = []
    run(agent(), lanterns(delay=2), 150, seed=8, callback=lambda _, t: rewards.append(t.reward))
    evaluated = agent()
    scores = [evaluate_online(evaluated, lanterns(delay=2), 150, seed=8) for _ in range(2)]
    assert scores[0].rewards.tolist() == scores[1].rewards.tolist() == rewards
    assert evaluate_online(evaluated, lanterns(delay=2), 150, seed=9).rewards.tolist() != rewards


@pytest.mark.parametrize("kind", [Substrate, LinUCB, TabularQ])
def test_the_life_of_the_agent_goes_on_as_if_nobody_had_looked(lanterns, kind):
    def life(is_evaluated):
        env, shown = lanterns(delay=2), []
        agent = kind(env, seed=3)
        for _ in range(3):
            agent.learn(30, lambda _, t: shown.append((t.action, t.reward)), reset_num_timesteps=False)
            if is_evaluated:
                evaluate_online(agent, lanterns(delay=2), 25, seed=0)
        return shown, agent.num_timesteps

    assert life(is_evaluated=True) == life(is_evaluated=False)


def test_the_file_of_an_evaluated_agent_is_the_same_to_the_byte(lanterns, tmp_path):
    agent = Substrate(lanterns(delay=4), seed=1).learn(60)
    before = agent.save(tmp_path / "before").read_bytes()
    evaluate_online(agent, lanterns(delay=4), 80, seed=2)
    assert agent.save(tmp_path / "after").read_bytes() == before


def test_an_agent_is_worth_more_than_its_frozen_policy_where_it_can_learn(lanterns):
    env = lanterns(horizon=400)
    unborn = Substrate(lanterns(), seed=0)
    score = evaluate_online(unborn, env, 800, seed=0)
    frozen, _ = evaluate_policy(unborn, Monitor(env), n_eval_episodes=2)
    # frozen it pulls one lever for ever: .37 a step, sd of the mean .017; the best lever pays .90
    assert frozen / 400 < 0.37 + 5 * 0.017
    assert score.windows(400)[1] > 0.7
    assert len(score.episode_returns) == 2


def test_the_environment_of_the_agent_is_shared_and_its_episode_left(lanterns):
    env, ids = lanterns(delay=1), []
    agent = LinUCB(env)
    agent.learn(3, lambda _, t: ids.append(t.info["decision_id"]))
    evaluate_online(agent, env, 5, seed=0)
    agent.learn(2, lambda _, t: ids.append(t.info["decision_id"]))
    assert ids == [0, 1, 2, 0, 1]


def test_an_environment_is_never_copied(lanterns):
    class Single(lanterns):
        def __deepcopy__(self, memo):
            raise AssertionError("copied")

    env = gymnasium.wrappers.TimeLimit(Single(), 10)
    deep = Alternating(env)
    deep.inner = env.unwrapped
    for agent in (Alternating(env), deep, TabularQ(env).learn(4)):
        assert len(evaluate_online(agent, lanterns(), 5, seed=0).rewards) == 5
        assert len(evaluate_online(agent, env, 5, seed=0).rewards) == 5


def test_what_cannot_be_evaluated_is_refused(lanterns):
    env = lanterns()
    agent = TabularQ(env)
    with pytest.raises(ValueError, match="`n_steps` must be at least 1, got 0"):
        evaluate_online(agent, env, 0, seed=0)
    with pytest.raises(ValueError, match="`seed` must be at least 0, got -1"):
        evaluate_online(agent, env, 5, seed=-1)
    with pytest.raises(TypeError, match=r"must have the methods .* without \['begin', 'act', 'observe'\]"):
        evaluate_online(object(), env, 5, seed=0)
    with pytest.raises(ValueError, match=r"`env.observation_space` must be the one that the agent was built for"):
        evaluate_online(agent, gymnasium.make("CliffWalking-v1"), 5, seed=0)
    holder = Alternating(env)
    holder.stream = (i for i in range(3))
    with pytest.raises(TypeError, match=r"that `copy.deepcopy` can copy, .*generator"):
        evaluate_online(holder, env, 5, seed=0)
    with pytest.raises(TypeError, match="DeepAgent, which owns its loop"):
        evaluate_online(DeepAgent(env, algorithm="A2C"), env, 5, seed=0)
