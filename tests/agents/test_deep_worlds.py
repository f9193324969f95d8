"""The algorithms that everybody compares with learn in every world, as anybody would use them: through the adapters.

Settings were chosen once, on seeds 0 to 4, for 20,000 steps: small nets, short rollouts, a discount of .9, for nothing
in these worlds reaches further than an encounter. DQN has the scalar environment behind `FlattenObservation`, the
others the vector environment.
"""

import gymnasium
import habitus
import numpy as np
import pytest
import torch
from gymnasium.wrappers import FlattenObservation
from habitus.agents.sb3_vec_env import GymnasiumVecEnv
from habitus.envs import rollout
from sb3_contrib import RecurrentPPO
from scipy import stats
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback

N_STEPS, N_LATE = 20_000, 5_000
SEEDS = (2000, 2001, 2002)
N_ENVS = 8
COMMON = {"gamma": 0.9, "verbose": 0, "device": "cpu"}
SMALL = {"net_arch": [64]}

DEEP = {
    "PPO": lambda env, seed: PPO(
        "MultiInputPolicy",
        env,
        seed=seed,
        n_steps=32,
        batch_size=64,
        n_epochs=4,
        learning_rate=1e-3,
        policy_kwargs=SMALL,
        **COMMON,
    ),
    "A2C": lambda env, seed: A2C(
        "MultiInputPolicy", env, seed=seed, n_steps=8, learning_rate=2e-3, policy_kwargs=dict(SMALL), **COMMON
    ),
    "DQN": lambda env, seed: DQN(
        "MlpPolicy",
        env,
        seed=seed,
        train_freq=8,
        learning_starts=500,
        learning_rate=1e-3,
        target_update_interval=500,
        exploration_fraction=0.3,
        policy_kwargs=SMALL,
        **COMMON,
    ),
    "RecurrentPPO": lambda env, seed: RecurrentPPO(
        "MultiInputLstmPolicy",
        env,
        seed=seed,
        n_steps=64,
        batch_size=128,
        n_epochs=3,
        learning_rate=1e-3,
        policy_kwargs={"net_arch": [32], "lstm_hidden_size": 32},
        **COMMON,
    ),
}


class Rewards(BaseCallback):
    """Notes the mean reward of every call of the environment."""

    def __init__(self):
        super().__init__()
        self.noted = []

    def _on_step(self):
        self.noted.append(float(np.mean(self.locals["rewards"])))
        return True


def reward_of_learning(algorithm, world_id, seed):
    """Mean reward over the last N_LATE of N_STEPS training steps."""
    horizon = N_STEPS if algorithm == "DQN" else N_STEPS // N_ENVS
    if algorithm == "DQN":
        env = FlattenObservation(gymnasium.make(world_id, horizon=horizon))
    else:
        env = GymnasiumVecEnv(gymnasium.make_vec(world_id, N_ENVS, horizon=horizon, autoreset_mode="SameStep"))
    rewards = Rewards()
    DEEP[algorithm](env, seed).learn(N_STEPS, callback=rewards)
    late = N_LATE if algorithm == "DQN" else N_LATE // N_ENVS
    return np.mean(rewards.noted[-late:])


def reward_of_chance(world_id):
    """Mean reward of random actions, over 20 x 2,000 steps: its standard error is far below a learner's."""
    env = gymnasium.make(world_id, horizon=N_STEPS).unwrapped
    player = rollout.RandomPlayer(env.action_space.n)
    return rollout.rollout(env.world, player, rollout.seeds_to_key_data(range(20)), n_steps=2_000).reward.mean()


@pytest.fixture
def _one_thread():
    """Small nets: more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("_one_thread")
@pytest.mark.parametrize("world_id", habitus.WORLD_IDS)
@pytest.mark.parametrize("algorithm", DEEP)
def test_learns_more_than_chance(algorithm, world_id):
    rewards = [reward_of_learning(algorithm, world_id, seed) for seed in SEEDS]
    low, _ = stats.t.interval(0.95, len(rewards) - 1, np.mean(rewards), stats.sem(rewards))
    assert low > reward_of_chance(world_id), rewards
