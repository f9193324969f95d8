import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from habitus import envs
from habitus.envs import frame
from habitus.envs.credit_review.terms import APPROVE, REJECT, REQUEST_DOCUMENT
from stable_baselines3.common import env_checker as sb3_env_checker

PROGRAM = Path(__file__).parent / "rollouts.py"
KINDS = ("synthetic", "table")


@pytest.fixture
def make(toy_table):
    """Environment of a kind, with any arguments."""
    return lambda kind, **arguments: envs.CreditReviewEnv(toy_table() if kind == "table" else kind, **arguments)


@pytest.mark.parametrize("feedback", ["attributed", "stream"])
@pytest.mark.parametrize("kind", KINDS)
def test_checkers_of_gymnasium_and_stable_baselines3_pass(kind, feedback, toy_table, capsys):
    applicants = toy_table() if kind == "table" else kind
    env = gymnasium.make("habitus/CreditReview-v0", applicants=applicants, feedback=feedback, horizon=20).unwrapped
    # Rendering takes longest and is checked once; a mode that failed would be found here.
    check_env(env, skip_render_check=feedback == "stream")
    sb3_env_checker.check_env(env)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_episode_and_another_seed_another(make, kind, rollouts):
    actions = np.random.default_rng(1).integers(5, size=200)
    first, second, other = (rollouts.digest(rollouts.rollout(make(kind), seed, actions)) for seed in (0, 0, 1))
    assert first == second != other


def test_a_reset_without_a_seed_continues_the_stream(make):
    env = make("synthetic")
    episodes = [env.reset(seed=3)[0], env.reset()[0], env.reset()[0], env.reset(seed=3)[0], env.reset()[0]]
    assert episodes[0] == episodes[3]
    assert episodes[1] == episodes[4]
    assert len({str(episode) for episode in episodes[:3]}) == 3


def test_another_process_with_wide_numbers_gives_the_same_bytes(rollouts, capsys):
    rollouts.main()
    here = capsys.readouterr().out
    run = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, "JAX_ENABLE_X64": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == here
    assert len(set(here.split())) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_stepped_scanned_and_vmapped_episodes_agree_bit_by_bit(make, kind):
    world = make(kind, regime="drift", horizon=400).world
    n_worlds, n_steps, n_stepped = 3, 300, 40
    params = world.params
    actions = np.random.default_rng(1).integers(5, size=n_steps, dtype=np.int32)

    def step(state, decision):
        key, action = decision
        state, outcome = world.step(state, action, key, params)
        return state, (outcome, world.observe(state, key, params), world.expected_rewards(state, params))

    def episode(key):
        initial_key, steps_key = jax.random.split(key)
        state = world.initial(initial_key, params)
        return state, jax.lax.scan(step, state, (jax.random.split(steps_key, n_steps), actions))[1]

    keys = jax.random.split(jax.random.key(0), n_worlds)
    together = jax.tree.map(np.asarray, jax.jit(jax.vmap(episode))(keys)[1])
    single, stepped = jax.jit(episode), jax.jit(step)
    for index, key in enumerate(keys):
        state, alone = single(key)
        alone = jax.tree.map(np.asarray, alone)
        jax.tree.map(lambda one, all_: np.testing.assert_array_equal(one, all_[index]), alone, together)  # noqa: B023
    step_keys = list(jax.random.split(jax.random.split(keys[-1])[1], n_steps)[:n_stepped])
    for number in range(n_stepped):
        state, now = stepped(state, (step_keys[number], actions[number]))
        jax.tree.map(lambda one, all_: np.testing.assert_array_equal(one, all_[number]), now, alone)  # noqa: B023


@pytest.mark.parametrize("kind", KINDS)
def test_every_outcome_is_listed_once_after_20_to_100_steps_and_pays_the_same_in_both_modes(make, kind):
    rng = np.random.default_rng(5)
    actions = [*rng.integers(5, size=700), *[REJECT] * 100]
    totals, values, attributed = {}, {}, {}
    for feedback in ("attributed", "stream"):
        env = make(kind, feedback=feedback, horizon=1000)
        env.reset(seed=8)
        decided, listed, total = {}, {}, 0.0
        for step, action in enumerate(actions):
            _, reward, *_, info = env.step(int(action))
            total += reward
            if info["decision_id"] >= 0:
                assert action not in (REJECT, REQUEST_DOCUMENT)
                decided[info["decision_id"]] = step
                if feedback == "attributed":
                    attributed[info["decision_id"]] = reward
            for decision, value in info["feedback"]:
                assert decision not in listed
                assert 20 <= step - decided[decision] <= 100
                listed[decision] = value
        assert listed.keys() == decided.keys()
        totals[feedback], values[feedback] = total, listed
    assert totals["attributed"] == pytest.approx(totals["stream"], abs=1e-3)
    assert values["attributed"] == values["stream"]
    # Beyond its outcome an attributed reward holds only the fee of a review.
    assert all(reward - values["stream"][decision] < 1e-6 for decision, reward in attributed.items())


@pytest.mark.parametrize("kind", KINDS)
def test_a_rejected_applicant_never_shows_an_outcome(make, kind):
    env = make(kind)
    env.reset(seed=0)
    for _ in range(300):
        _, reward, *_, info = env.step(REJECT)
        assert (reward, info["decision_id"], info["feedback"], info["verdict"]) == (0.0, -1, [], "none")


@pytest.mark.parametrize("kind", KINDS)
def test_the_regime_switches_at_its_step(make, kind):
    env = make(kind, regime="shift", shift_at=7, horizon=20)
    _, info = env.reset(seed=0)
    assert info["regime"] == 0.0
    for step in range(20):
        coming = env.regime_level()
        *_, info = env.step(APPROVE)
        assert info["regime"] == coming == float(step >= 7)


def test_the_horizon_truncates_and_does_not_terminate(make):
    env = make("synthetic", horizon=3)
    env.reset(seed=0)
    assert [env.step(REJECT)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    with pytest.raises(gymnasium.error.ResetNeeded, match="`step` needs a running episode"):
        env.step(REJECT)
    env.reset()
    env.step(REJECT)


def test_nothing_can_be_asked_before_the_first_reset(make):
    env = make("synthetic")
    for ask in (lambda: env.step(0), lambda: env.state, env.expected_rewards, env.oracle_action, env.audit):
        with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset` first"):
            ask()


@pytest.mark.parametrize("action", [5, -1, 1.0, "approve", None, [0], np.array([0])])
def test_an_unknown_action_is_refused_with_the_list_of_actions(make, action):
    env = make("synthetic")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"`action` must be one of 0 = approve, 1 = reject.*; got "):
        env.step(action)
    env.step(REJECT)


@pytest.mark.parametrize("action", [0, np.int64(0), np.array(0)])
def test_integers_of_python_and_numpy_are_actions(make, action):
    env = make("synthetic")
    env.reset(seed=0)
    env.step(action)


@pytest.mark.parametrize("kind", KINDS)
def test_observations_and_infos_are_new_objects_of_plain_types(make, kind):
    env = make(kind)
    observation, info = env.reset(seed=0)
    kept = {name: np.copy(value) for name, value in observation.items()}
    following, reward, terminated, truncated, following_info = env.step(APPROVE)
    assert following is not observation
    assert following_info["feedback"] is not info["feedback"]
    assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
    assert {type(following_info[name]) for name in ("decision_id", "boundary", "regime")} == {int, bool, float}
    for name, value in observation.items():
        np.testing.assert_array_equal(value, kept[name])
        if isinstance(value, np.ndarray):
            assert not np.shares_memory(value, following[name])
            assert value.flags.writeable
        else:
            assert isinstance(value, np.int64)


def test_worlds_that_differ_only_in_parameters_share_one_compiled_step(make, toy_table):
    shared = frame.compiled(make("synthetic").world)
    assert frame.compiled(make("synthetic", regime="shift", feedback="stream", horizon=50).world) is shared
    assert frame.compiled(make("synthetic", observe_group=True).world) is not shared
    assert frame.compiled(make("synthetic", difficulty="easy").world) is not shared
    table = frame.compiled(make("table").world)
    assert frame.compiled(make("table", loss=2.0, hide_probability=0.1).world) is table
    assert frame.compiled(envs.CreditReviewEnv(toy_table(), observe_group=True).world) is not table


def test_the_state_is_the_pytree_of_the_world(make):
    env = make("synthetic")
    env.reset(seed=0)
    env.step(REJECT)
    world, state = env.world, env.state
    assert int(state.step) == 1
    shapes = jax.eval_shape(world.initial, jax.random.key(0), env.params)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), shapes
    )
    np.testing.assert_array_equal(np.float64(world.expected_rewards(state, env.params)), env.expected_rewards())


def test_environments_can_be_vectorised_by_gymnasium():
    vector = gymnasium.make_vec("habitus/CreditReview-v0", num_envs=2, vectorization_mode="sync", horizon=5)
    observation, _ = vector.reset(seed=1)
    assert observation["income"].shape == (2,)
    single = gymnasium.make("habitus/CreditReview-v0", horizon=5)
    assert single.reset(seed=2)[0]["income"] == observation["income"][1]
    vector.step(np.array([0, 1]))
    vector.close()
