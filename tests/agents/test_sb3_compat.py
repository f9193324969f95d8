"""`evaluate_policy` and `get_env`: an agent of ours where stable-baselines3 expects one of its own."""

import copy
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from habitus.agents import LinUCB, Substrate, TabularQ
from habitus.agents.online import calls_of
from habitus.agents.sb3_vec_env import GymnasiumVecEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecMonitor

KINDS = [Substrate, LinUCB, TabularQ]


def contents(agent, folder):
    """All that an agent knows, as bytes."""
    if hasattr(agent, "save"):
        return agent.save(folder / "contents.zip").read_bytes()
    return pickle.dumps({name: value for name, value in vars(agent).items() if name not in ("env", "stage")})


def greedy_returns(agent, env, n_episodes, seed):
    """The slow reference: episodes by hand, one observation at a time."""
    returns = []
    for episode in range(n_episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(int(agent.predict(observation)[0]))
            total, is_over = total + reward, terminated or truncated
        returns.append(total)
    return returns


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_policy_scores_the_greedy_policy_and_writes_nothing(lanterns, tmp_path, kind):
    agent = kind(lanterns(), seed=0).learn(300)
    before = contents(agent, tmp_path)
    env = Monitor(lanterns(horizon=40))
    expected = greedy_returns(agent, lanterns(horizon=40), 3, seed=5)
    env.reset(seed=5)
    vec = DummyVecEnv([lambda: env])
    vec.seed(5)
    returns, lengths = evaluate_policy(agent, vec, n_eval_episodes=3, return_episode_rewards=True)
    assert returns == pytest.approx(expected)
    assert lengths == [40, 40, 40]
    mean, deviation = evaluate_policy(agent, env, n_eval_episodes=2, deterministic=False)
    assert 0 <= mean <= 40
    assert deviation >= 0
    assert contents(agent, tmp_path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_policy_takes_several_environments_at_once(lanterns, tmp_path, kind):
    agent = kind(lanterns(), seed=0).learn(300)
    before = contents(agent, tmp_path)
    expected = [greedy_returns(agent, lanterns(horizon=30), 1, seed=7 + i)[0] for i in range(3)]
    vec = DummyVecEnv([lambda: Monitor(lanterns(horizon=30))] * 3)
    vec.seed(7)
    returns, _ = evaluate_policy(agent, vec, n_eval_episodes=3, return_episode_rewards=True)
    assert sorted(returns) == pytest.approx(sorted(expected))
    assert contents(agent, tmp_path) == before


def test_evaluate_policy_takes_vector_environments_of_gymnasium(lanterns):
    agent = LinUCB(lanterns()).learn(20)
    vec = SyncVectorEnv([lambda: lanterns(horizon=15)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    _, lengths = evaluate_policy(
        agent, VecMonitor(GymnasiumVecEnv(vec)), n_eval_episodes=5, return_episode_rewards=True
    )
    assert lengths == [15] * 5


@pytest.mark.parametrize("env_id", ["MountainCar-v0", "FrozenLake-v1"])  # a Box, and a number
def test_evaluate_policy_takes_other_observations(env_id):
    env = gymnasium.make(env_id, max_episode_steps=20)
    agent = LinUCB(env).learn(50)
    mean, _ = evaluate_policy(agent, Monitor(gymnasium.make(env_id, max_episode_steps=20)), n_eval_episodes=2)
    assert -20 <= mean <= 1


def test_predict_gives_a_batch_what_it_gives_each_of_its_members(lanterns):
    agent, env = Substrate(lanterns()).learn(200), lanterns()
    singles = [env.reset(seed=i)[0] for i in range(5)]
    batch = {name: np.stack([one[name] for one in singles]) for name in singles[0]}
    state = ("kept",)
    actions, returned = agent.predict(batch, state, np.ones(5, bool), deterministic=False)
    assert actions.tolist() == [int(agent.predict(one)[0]) for one in singles]
    assert returned is state
    single, _ = agent.predict(singles[0])
    assert (single.shape, actions.shape, actions.dtype) == ((), (5,), np.int64)


def test_the_view_of_an_environment_is_a_monitored_vec_env_and_touches_nothing(lanterns):
    env = lanterns()
    agent = Substrate(env).learn(10)
    n_calls = calls_of(env).n
    view = agent.get_env()
    assert isinstance(view, VecEnv)
    assert view.env_is_wrapped(Monitor) == [True]
    assert (view.num_envs, agent.n_envs) == (1, 1)
    assert (view.observation_space, view.action_space) == (agent.observation_space, agent.action_space)
    assert agent.get_env() is view
    assert agent.get_vec_normalize_env() is None
    assert agent.env is env
    assert calls_of(env).n == n_calls
    agent.env = None
    assert Substrate.get_env(copy.copy(agent)) is None


def test_a_monitor_of_the_users_is_not_wrapped_again(lanterns):
    env = Monitor(lanterns())
    assert Substrate(env).get_env().envs == [env]


def test_evaluating_in_the_view_ends_the_episode_of_the_agent_and_nothing_else(lanterns, tmp_path):
    env, ids = lanterns(delay=3, horizon=25), []
    agent = Substrate(env, seed=0)
    agent.learn(5, lambda _, t: ids.append(t.info["decision_id"]))
    before = contents(agent, tmp_path)
    evaluate_policy(agent, agent.get_env(), n_eval_episodes=2)
    assert contents(agent, tmp_path) == before
    agent.learn(3, lambda _, t: ids.append(t.info["decision_id"]))
    assert ids == [0, 1, 2, 3, 4, 0, 1, 2]


def test_learning_without_stable_baselines3_does_not_import_it():
    code = (
        "import sys, gymnasium; from habitus.agents import LinUCB, Substrate, TabularQ\n"
        "env = gymnasium.make('CliffWalking-v1', max_episode_steps=9)\n"
        "seen = []\n"
        "for agent in (TabularQ(env), LinUCB(env)):\n"
        "    agent.learn(20).learn(5, lambda a, t: None).learn(5, [lambda a, t: seen.append(t), lambda a, t: True])\n"
        "print(len(seen), [name for name in ('torch', 'stable_baselines3', 'tensorboard') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "10 []"
