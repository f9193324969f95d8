import gymnasium
import habitus
import numpy as np
import pytest
from habitus.agents.sb3_vec_env import GymnasiumVecEnv
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

GAME = "habitus/GameNPC-v0"
N = 3


def fused(world_id=GAME, n=N, **arguments):
    return GymnasiumVecEnv(gymnasium.make_vec(world_id, n, autoreset_mode="SameStep", **arguments))


def comparable(info):
    """Info without what the scalar and the vector environment write in different forms."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in info.items()
        if "feedback" not in name and name != "terminal_observation"
    }


@pytest.mark.parametrize("world_id", habitus.WORLD_IDS)
def test_it_shows_what_scalar_environments_show_stable_baselines3(world_id):
    one = DummyVecEnv([lambda: gymnasium.make(world_id, horizon=20, disable_env_checker=True)] * N)
    other = fused(world_id, horizon=20)
    one.seed(4)
    other.seed(4)
    rng = np.random.default_rng(0)
    shown = [one.reset(), other.reset()]
    for number in range(65):
        for name, values in shown[0].items():
            np.testing.assert_array_equal(values, shown[1][name])
        assert list(map(comparable, one.reset_infos)) == list(map(comparable, other.reset_infos))
        actions = rng.integers(one.action_space.n, size=N)
        *expected, expected_infos = one.step(actions)
        *found, infos = other.step(actions)
        np.testing.assert_array_equal(expected[1], found[1])
        np.testing.assert_array_equal(expected[2], found[2])
        assert found[1].dtype == np.float32
        assert found[2].all() == (number % 20 == 19)
        for info, its in zip(expected_infos, infos, strict=True):
            assert comparable(info) == comparable(its)
            assert ("terminal_observation" in info) == ("terminal_observation" in its)
            if "terminal_observation" in info:
                assert its["TimeLimit.truncated"] is True
                assert info["terminal_observation"] == its["terminal_observation"]
        shown = [expected[0], found[0]]


def test_any_gymnasium_vector_environment_in_same_step_mode_will_do():
    vector = gymnasium.make_vec(
        "CartPole-v1", 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": "SameStep"}
    )
    env = GymnasiumVecEnv(vector)
    env.seed(0)
    env.reset()
    ends = 0
    for _ in range(60):
        _, _, dones, infos = env.step(np.array([0, 0]))
        ends += dones.sum()
        assert [("terminal_observation" in info) for info in infos] == dones.tolist()
        assert not any(info["TimeLimit.truncated"] for info in infos)
    assert ends >= 8
    env.set_attr("marker", 1)
    env.set_attr("marker", 2, indices=[1])
    assert env.get_attr("marker") == [1, 2]
    assert env.env_is_wrapped(gymnasium.wrappers.TimeLimit) == [True, True]
    env.close()


def test_attributes_and_methods_of_sub_environments_are_found():
    env = fused()
    env.reset()
    assert env.get_attr("horizon", indices=[0, 2]) == [2000, 2000]
    masks = env.env_method("action_masks")
    assert [mask.shape for mask in masks] == [(8,)] * N
    assert len(env.env_method("action_masks", indices=1)) == 1
    assert env.env_is_wrapped(Monitor) == [False] * N
    assert env.env_method("oracle_action") == env.env_method("oracle_actions")
    assert env.env_method("regime_level", indices=[1]) == [0.0]
    assert [set(audit) for audit in env.env_method("audit")] == [{"type", "visitor"}] * N
    assert env.get_attr("action_space") == [env.action_space] * N
    assert env.get_attr("observation_space", indices=0) == [env.observation_space]
    assert env.has_attr("schema")
    assert not env.has_attr("no_such_thing")
    with pytest.raises(AttributeError, match="`horizon` cannot be set"):
        env.set_attr("horizon", 3)


class Bare(gymnasium.vector.VectorEnv):
    """A vector environment without `get_attr`."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self):
        inner = gymnasium.make_vec(GAME, N)
        self.num_envs, self.single_action_space = N, inner.single_action_space
        self.action_space, self.observation_space = inner.action_space, inner.observation_space
        self.single_observation_space = inner.single_observation_space


def test_spaces_of_sub_environments_are_theirs_even_where_attributes_are_those_of_all():
    env = GymnasiumVecEnv(Bare())
    assert env.get_attr("action_space") == [env.action_space] * N
    assert env.get_attr("observation_space", indices=[1]) == [env.observation_space]
    assert env.get_attr("num_envs") == [N] * N


def test_only_vector_environments_in_same_step_mode_are_taken():
    with pytest.raises(ValueError, match=r"`venv` must reset in AutoresetMode.SAME_STEP, got .*NEXT_STEP"):
        GymnasiumVecEnv(gymnasium.make_vec(GAME, 2))
    with pytest.raises(TypeError, match=r"`venv` must be a gymnasium.vector.VectorEnv, got"):
        GymnasiumVecEnv(gymnasium.make(GAME))


def test_ppo_learns_and_is_evaluated_on_it():
    env = VecMonitor(fused(n=8, horizon=32))
    model = PPO("MultiInputPolicy", env, n_steps=32, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(512)
    assert model.num_timesteps == 512
    assert len(model.ep_info_buffer) == 16
    assert {episode["l"] for episode in model.ep_info_buffer} == {32}
    rewards, lengths = evaluate_policy(model, env, n_eval_episodes=9, return_episode_rewards=True)
    assert lengths == [32] * 9
    assert len(set(rewards)) > 1


def test_stable_baselines3_makes_environments_by_their_names():
    env = make_vec_env(f"habitus:{GAME}", n_envs=2, seed=0)
    assert env.reset().keys() == env.observation_space.spaces.keys()
    env.step(np.array([0, 1]))
