"""An environment is pickled as it stands: a copy of it continues with the same bytes."""

import copy
import pickle
import sys

import gymnasium
import habitus
import jax
import numpy as np
import pytest
from habitus import envs


@pytest.fixture(autouse=True)
def module_of_toys(toys, monkeypatch):
    """Pickle finds a class by the name of its module."""
    monkeypatch.setitem(sys.modules, toys.__name__, toys)


def made(toys, kind):
    if kind in habitus.WORLD_IDS:
        return gymnasium.make(kind, regime="drift", horizon=400, disable_env_checker=True)
    world = toys.toy(ends=0.0)
    return envs.WorldEnv(world if kind == "integers" else toys.Plain(world), horizon=400)


def goes_on(env, n, reset=True):
    """All that comes, beyond one chunk of the scalar executor and into the next episode."""
    is_vector = isinstance(env.unwrapped, envs.WorldVectorEnv)
    seen = []
    for number in range(n):
        seen.append(env.step(np.full(env.num_envs, number % 3) if is_vector else number % 3))
    seen.append(jax.tree.map(np.asarray, env.unwrapped.state))
    seen.append(env.unwrapped.audit())
    if reset:
        seen += [env.reset(), env.step([0] * env.num_envs if is_vector else 0)]
    return repr(seen)


@pytest.mark.parametrize(
    "duplicate", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy], ids=["pickle", "deep"]
)
@pytest.mark.parametrize("kind", ["integers", "compiled", *habitus.WORLD_IDS])
def test_a_copy_of_a_running_environment_continues_with_the_same_bytes(toys, kind, duplicate):
    env = made(toys, kind)
    env.reset(seed=3)
    for number in range(100):
        env.step(number % 3)
    twin = duplicate(env)
    assert twin.unwrapped.np_random is not env.unwrapped.np_random
    expected = goes_on(env, 290)
    assert goes_on(twin, 290) == expected


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("per_env_params", [False, True])
def test_a_copy_of_a_running_vector_environment_continues_with_the_same_bytes(toys, mode, per_env_params):
    world = toys.toy(ends=0.0)
    params = jax.tree.map(lambda leaf: np.stack([leaf] * 3), world.params) if per_env_params else None
    env = envs.WorldVectorEnv(world, 3, horizon=60, autoreset_mode=mode, params=params, per_env_params=per_env_params)
    env.reset(seed=[1, None, 3])
    for number in range(20):
        env.step([number % 3] * 3)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.np_random_seed == env.np_random_seed
    n = 30 if mode == "Disabled" else 150
    expected = goes_on(env, n)
    assert goes_on(twin, n) == expected
    before = pickle.dumps(jax.tree.map(np.asarray, twin.state))
    goes_on(env, 5)
    assert pickle.dumps(jax.tree.map(np.asarray, twin.state)) == before


def test_environments_are_pickled_before_a_reset_and_once_they_are_measured(toys):
    fresh = pickle.loads(pickle.dumps(envs.GameNPCEnv()))
    measured = envs.GameNPCEnv()
    measured.reset(seed=1)
    values = measured.action_values()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(measured)).action_values(), values)
    fresh.reset(seed=1)
    np.testing.assert_array_equal(fresh.action_values(), values)
    vector = pickle.loads(pickle.dumps(envs.WorldVectorEnv(measured.world, 2)))
    vector.reset(seed=1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(vector)).action_values()[0], values)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_environment_that_tells_is_pickled_with_its_narrator(language):
    env = gymnasium.make("habitus/CustomerService-v0", text=language, disable_env_checker=True)
    env.reset(seed=2)
    env.step(0)
    twin = pickle.loads(pickle.dumps(env))
    assert twin.step(1)[4]["text"] == env.step(1)[4]["text"]
