"""The contract, over everything registered and a table of applicants: who registers a world is covered."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import habitus
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from habitus import envs
from habitus.envs import episode, frame, integers
from habitus.envs import rollout as rollouts_module
from habitus.envs.contract import IntegerWorld
from stable_baselines3.common import env_checker as sb3_env_checker

PROGRAM = Path(__file__).parent / "rollouts.py"
TABLE = "table"
NAMES = (*habitus.WORLD_IDS, TABLE)
SHOWN = {
    "habitus/GameNPC-v0": "0fc232917f85353ed7291a06c2550b4bf09b11ecf7c2af4c8305688836040fd7",
    "habitus/CustomerService-v0": "abcb48d4b2231cce4c2d10fd07b2cb6a9cee2fb7d05587cf82d60044857562c2",
}
DIFFICULTIES = ("easy", "medium", "hard")
REGIMES = ("none", "shift", "periodic", "drift")
PUBLISHED = {
    "6054a85b730bafc0b904a8f8d937c8b7ef1e5da1119bad7e472b022324617f95",
    "1efceb7290446552ec1447945757af1af0f3e995dcaac238aa971367791c6505",
}


@pytest.fixture(params=NAMES)
def make(request, toy_table):
    """Makes the environment of a name, unwrapped."""

    def make(**arguments):
        world_id = request.param
        if world_id == TABLE:
            world_id, arguments = "habitus/CreditReview-v0", {"applicants": toy_table()} | arguments
        return gymnasium.make(world_id, disable_env_checker=True, **arguments).unwrapped

    make.name = request.param
    return make


def random_actions(env, n, seed=0):
    return np.random.default_rng(seed).integers(env.action_space.n, size=n).tolist()


def test_the_checkers_of_gymnasium_and_stable_baselines3_pass(make, capsys):
    env = make(horizon=20)
    check_env(env)
    sb3_env_checker.check_env(env)


def test_everything_shown_lies_in_its_space_and_is_finite(make):
    env, vector_env = make(regime="shift", horizon=150), make(regime="shift", horizon=150)
    vector = envs.WorldVectorEnv(vector_env.world, 4, horizon=150)
    stakes = [field.high for field in env.schema.fields if field.name == env.schema.stake_field]
    bound = np.float32(env.schema.reward_bound * max(stakes, default=1)) * (1 + 1e-6)  # rewards are float32
    labels = {signal.name: set(signal.labels) for signal in env.schema.signals}
    observation, info = env.reset(seed=1)
    vector.reset(seed=1)
    for number, action in enumerate(random_actions(env, 300)):
        assert env.observation_space.contains(observation)
        assert all(np.isfinite(value).all() for value in observation.values())
        assert 0 <= info["regime"] <= 1
        assert all(info[name] in known for name, known in labels.items())
        assert info["action_mask"].shape == (env.action_space.n,)
        assert info["action_mask"].any()
        observation, reward, terminated, truncated, info = env.step(action)
        assert abs(reward) <= bound
        assert not terminated
        assert env.observation_space.contains(observation)
        if truncated:
            observation, info = env.reset()
        shown, rewards, *_ = vector.step(np.full(4, (action + number) % env.action_space.n))
        assert vector.observation_space.contains(shown)
        assert np.isfinite(rewards).all()


def test_the_mask_of_the_info_is_that_of_the_method_and_of_the_world(make):
    env = make(horizon=200)
    _, info = env.reset(seed=2)
    mask = jax.jit(env.world.action_mask)
    for action in random_actions(env, 60):
        assert info["action_mask"].dtype == np.int8
        env.action_space.seed(0)
        assert info["action_mask"][env.action_space.sample(info["action_mask"])]
        np.testing.assert_array_equal(info["action_mask"].astype(np.bool_), env.action_masks())
        np.testing.assert_array_equal(info["action_mask"].astype(np.bool_), mask(env.state, env.params))
        *_, info = env.step(action)


def test_both_executors_show_the_same_bytes(make):
    env = make(regime="drift", horizon=600)
    if not isinstance(env.world, IntegerWorld):
        pytest.skip("the world is not written in integers; it has one executor")
    runs = integers.IntegerRun(env.world, env.params), frame.CompiledRun(env.world, env.params)
    generator = np.random.default_rng(3)
    for number, action in enumerate(random_actions(env, 2000)):
        if number % 600 == 0:
            key_data = episode.key_data_of(generator)
            one, other = (run.start(key_data) for run in runs)
            assert repr(one) == repr(other)  # types, too: True is not 1
        one, other = (run.step(action) for run in runs)
        assert repr(one) == repr(other), f"step {number}"
        if number % 97 == 0:
            words = [np.asarray(run.words)[-len(runs[0].words) :] for run in runs]
            np.testing.assert_array_equal(*words)


@pytest.mark.slow
@pytest.mark.parametrize("mode", tuple(AutoresetMode), ids=lambda mode: mode.name)
def test_the_vector_environment_equals_scalar_ones_bit_by_bit(make, mode, vectors):
    env = make(regime="drift", horizon=600)
    vectors.compare(
        lambda: make(regime="drift", horizon=600),
        lambda n, mode: envs.WorldVectorEnv(env.world, n, horizon=600, autoreset_mode=mode),
        n_steps=2000,
        mode=mode,
    )


def test_the_time_limit_truncates_and_does_not_terminate(make):
    env = make(horizon=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    with pytest.raises(gymnasium.error.ResetNeeded, match="`step` needs a running episode"):
        env.step(0)


def test_a_seed_gives_the_same_episodes_and_none_continues(make, rollouts):
    env, other = make(), make()
    first, second = env.reset(seed=4)[0], env.reset()[0]
    assert first == other.reset(seed=4)[0]
    assert second == other.reset()[0]
    actions = random_actions(env, 50)
    digests = [rollouts.digest(rollouts.rollout(env, seed, actions)) for seed in (0, 0, 1)]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("world_id", SHOWN)
def test_an_episode_of_a_seed_stays_as_it_was_published(world_id, rollouts):
    env = gymnasium.make(world_id, disable_env_checker=True, regime="drift", horizon=400).unwrapped
    actions = np.random.default_rng(0).integers(env.action_space.n, size=300)
    assert rollouts.digest(rollouts.shown_rollout(env, 3, actions)) == SHOWN[world_id]


def test_a_rollout_equals_the_scalar_environment(make):
    env = make(regime="shift", shift_at=15, horizon=30)
    env.reset(seed=4)
    player = rollouts_module.RandomPlayer(int(env.action_space.n))
    key_data = rollouts_module.seeds_to_key_data([4])
    trace = rollouts_module.rollout(env.world, player, key_data, n_steps=30, scores=False)
    steps = [env.step(int(action)) for action in np.asarray(trace.action[0])]
    np.testing.assert_array_equal(trace.reward[0], np.float32([reward for _, reward, *_ in steps]))
    assert trace.boundary[0].tolist() == [info["boundary"] for *_, info in steps]


@pytest.fixture
def compiled():
    """Names of what is compiled while the test runs, one for each time."""
    names = []

    def note(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            names.append(duration)

    jax.monitoring.register_event_duration_secs_listener(note)
    yield names
    jax.monitoring.unregister_event_duration_listener(note)


def test_nothing_is_compiled_after_the_first_steps(make, compiled):
    env = make(regime="shift", horizon=300)
    vector = envs.WorldVectorEnv(env.world, 3, horizon=40, autoreset_mode="SameStep")

    def run(seed):
        env.reset(seed=seed)
        vector.reset(seed=seed)
        for action in random_actions(env, 290, seed):
            env.step(action)
            env.expected_rewards()
        for action in random_actions(env, 100, seed):
            vector.step(np.full(3, action))

    jax.jit(lambda x: x + seed_of_this_test)(0)
    assert compiled, "the listener hears nothing"
    run(0)
    before = len(compiled)
    run(1)
    assert len(compiled) == before


seed_of_this_test = 20_260


@pytest.mark.slow
def test_no_key_is_used_twice(make):
    env = make(regime="shift")

    def some_steps(key, params):
        now, observation = episode.start(env.world, key, params)
        for action in range(3):
            now, outcome, observation = episode.step(env.world, now, jnp.asarray(action, jnp.int32), params)
        return outcome.reward, observation

    with jax.debug_key_reuse(True):
        jax.jit(some_steps)(jax.random.key(0), env.params)

        def wasteful(key, params):
            state = env.world.initial(key, params)
            return state, env.world.step(state, jnp.asarray(0, jnp.int32), key, params)

        with pytest.raises(jax.errors.KeyReuseError):  # the check sees what it looks for
            jax.jit(wasteful)(jax.random.key(0), env.params)


@pytest.mark.slow
def test_one_compiled_call_over_difficulties_equals_one_call_each(make):
    if make.name == TABLE:
        pytest.skip("a table has one difficulty")
    arguments = {"regime": "shift", "shift_at": 60, "horizon": 120}
    capacity = max(len(_entities(make(difficulty=difficulty))) for difficulty in DIFFICULTIES)
    made = [make(difficulty=difficulty, capacity=capacity, **arguments) for difficulty in DIFFICULTIES]
    assert len({env.world for env in made}) == 1
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(env.params for env in made))
    player, key_data = (
        rollouts_module.RandomPlayer(int(made[0].action_space.n)),
        rollouts_module.seeds_to_key_data([1] * 3),
    )
    run = functools.partial(rollouts_module.rollout, made[0].world, player, n_steps=120, scores=False)
    together = run(key_data, params=stacked, per_episode_params=True)
    for i, env in enumerate(made):
        alone = run(key_data[i : i + 1], params=env.params)
        jax.tree.map(lambda one, all_: np.testing.assert_array_equal(one[0], all_[i]), alone, together)  # noqa: B023
    assert len({np.asarray(together.reward[i]).tobytes() for i in range(3)}) == 3
    vector = envs.WorldVectorEnv(made[0].world, 3, params=stacked, per_env_params=True)
    vector.reset(seed=[1] * 3)
    rewards = np.stack([vector.step(np.asarray(together.action[:, step]))[1] for step in range(120)], axis=1)
    np.testing.assert_array_equal(rewards, together.reward)


def _entities(env):
    """Labels of the entities that an environment has room for."""
    field = next(field for field in env.schema.fields if field.name == env.schema.entity_field)
    return field.labels[1:]


@pytest.mark.slow
def test_another_process_with_wide_numbers_shows_the_same_bytes(rollouts, capsys):
    other = subprocess.Popen(
        [sys.executable, str(PROGRAM)], env={**os.environ, "JAX_ENABLE_X64": "1"}, stdout=subprocess.PIPE, text=True
    )
    rollouts.main()
    here = capsys.readouterr().out
    assert other.communicate()[0] == here
    lines = here.splitlines()
    assert set(lines[:2]) == PUBLISHED
    assert [line.split()[0] for line in lines[2:]] == list(NAMES)


@pytest.mark.parametrize("regime", REGIMES)
def test_every_schedule_and_difficulty_can_be_made(make, regime):
    for difficulty in DIFFICULTIES if make.name != TABLE else ("medium",):
        env = make(regime=regime, difficulty=difficulty, horizon=100)
        assert int(np.asarray(env.params.regime_levels).max()) == (0 if regime == "none" else 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"difficulty": "impossible"}, "`difficulty` must be one of"),
        ({"horizon": 0}, r"`horizon` must lie in \[1, "),
        ({"horizon": 2.5}, "`horizon` must be a whole number"),
        ({"regime": "sometimes"}, "`regime` must be one of"),
        ({"regime": [(50, 1), (20, 0)]}, r"`regime\[1\] step` must be greater than the one before"),
        ({"regime": "shift", "shift_at": 10_000}, "`shift_at` must lie in"),
        ({"feedback": "never"}, "`feedback` must be one of"),
        ({"observe_entity": "yes"}, "`observe_entity` must be True or False"),
        ({"render_mode": "hologram"}, "`render_mode` must be one of"),
        ({"capacity": 0}, "`capacity` must"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_bad_arguments_fail_at_construction_by_name(make, arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(**arguments)


def test_params_that_do_not_fit_fail_at_construction_with_the_name_of_the_leaf(make):
    env = make()
    leaves, tree = jax.tree.flatten(env.params)

    def with_first(leaf):
        return jax.tree.unflatten(tree, [leaf, *leaves[1:]])

    name = jax.tree_util.keystr(jax.tree.leaves_with_path(env.params)[0][0])
    first = np.asarray(leaves[0])
    for wrong, message in (
        (np.full(first.shape, np.nan, np.float32), "must be finite numbers, got nan"),
        (first.astype(np.float32), f"must be {first.dtype}, got float32"),
        (np.zeros((*first.shape, 2), first.dtype), "must have shape"),
    ):
        for build in (envs.WorldEnv, envs.WorldVectorEnv):
            with pytest.raises((TypeError, ValueError), match=message) as caught:
                build(env.world, params=with_first(wrong))
            assert str(caught.value).startswith(f"`params{name}`")
    with pytest.raises(TypeError, match=r"`params` must be a pytree like `world\.params`"):
        envs.WorldEnv(env.world, params={"rate": 1.0})


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_text_of_a_vector_environment_is_that_of_scalar_ones(language, vectors):
    world_id = "habitus/CustomerService-v0"
    vectors.compare(
        lambda: gymnasium.make(world_id, text=language, horizon=30).unwrapped,
        lambda n, mode: gymnasium.make_vec(world_id, n, text=language, horizon=30, autoreset_mode=mode.value),
        n_steps=120,
        mode=AutoresetMode.SAME_STEP,
    )


@pytest.mark.parametrize("world_id", habitus.WORLD_IDS)
def test_a_spec_can_be_written_as_json_and_read_again(world_id):
    env = gymnasium.make(world_id, regime="shift", horizon=30)
    spec = EnvSpec.from_json(json.loads(json.dumps(env.spec.to_json())))
    assert spec == env.spec
    again = gymnasium.make(spec)
    assert again.reset(seed=1)[0] == env.reset(seed=1)[0]
    vector = gymnasium.make_vec(world_id, num_envs=2, horizon=30)
    assert EnvSpec.from_json(vector.spec.to_json()) == vector.spec
    assert isinstance(vector, envs.WorldVectorEnv)
    assert vector.horizon == 30


@pytest.mark.parametrize("world_id", habitus.WORLD_IDS)
def test_a_fresh_process_finds_a_world_by_its_module_and_name(world_id):
    code = (
        "import gymnasium; name = 'habitus:" + world_id + "';"
        "print(type(gymnasium.make(name).unwrapped).__name__, gymnasium.make_vec(name, 2).num_envs)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [type(gymnasium.make(world_id).unwrapped).__name__, "2"]


@pytest.mark.parametrize("world_id", habitus.WORLD_IDS)
def test_gymnasium_can_step_scalar_environments_together_in_one_process(world_id):
    vector = gymnasium.make_vec(world_id, 2, vectorization_mode="sync", horizon=5)
    assert isinstance(vector, SyncVectorEnv)
    fused = gymnasium.make_vec(world_id, 2, horizon=5)
    one, other = vector.reset(seed=1)[0], fused.reset(seed=1)[0]
    for _ in range(12):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])
        one, other = vector.step(np.array([0, 1]))[0], fused.step(np.array([0, 1]))[0]
    vector.close()


@pytest.mark.slow
def test_gymnasium_can_step_scalar_environments_in_processes_of_their_own():
    world_id = habitus.WORLD_IDS[-1]
    vector = gymnasium.make_vec(
        f"habitus:{world_id}", 2, vectorization_mode="async", vector_kwargs={"context": "spawn"}, horizon=5
    )
    fused = gymnasium.make_vec(world_id, 2, horizon=5)
    one, other = vector.reset(seed=1)[0], fused.reset(seed=1)[0]
    for _ in range(12):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])
        one, other = vector.step(np.array([0, 1]))[0], fused.step(np.array([0, 1]))[0]
    vector.close()
