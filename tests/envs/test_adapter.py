import gymnasium
import jax
import numpy as np
import pytest
from habitus import envs
from habitus.envs import frame, integers
from habitus.envs.credit_review.terms import APPROVE, REJECT, REQUEST_DOCUMENT

KINDS = ("synthetic", "table")


@pytest.fixture
def make(toy_table):
    """Environment of a kind, with any arguments."""
    return lambda kind, **arguments: envs.CreditReviewEnv(toy_table() if kind == "table" else kind, **arguments)


def test_a_reset_without_a_seed_continues_the_stream(make):
    env = make("synthetic")
    episodes = [env.reset(seed=3)[0], env.reset()[0], env.reset()[0], env.reset(seed=3)[0], env.reset()[0]]
    assert episodes[0] == episodes[3]
    assert episodes[1] == episodes[4]
    assert len({str(episode) for episode in episodes[:3]}) == 3


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


def test_worlds_that_differ_only_in_parameters_share_what_is_compiled(make, toy_table):
    def begins(**arguments):
        return integers._compiled_begin(make("synthetic", **arguments).world)

    assert begins(regime="shift", feedback="stream", horizon=50) is begins()
    assert begins(observe_group=True) is not begins()
    assert begins(difficulty="easy") is not begins()
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


def toy_env(toys, kind, **arguments):
    world = toys.toy()
    return envs.WorldEnv(world if kind == "integers" else toys.Plain(world), horizon=60, **arguments)


def test_both_executors_show_numbers_noise_feedback_and_ends_alike(toys):
    shown = []
    for kind in ("integers", "compiled"):
        env = toy_env(toys, kind)
        seen = [env.reset(seed=2)]
        for action in np.random.default_rng(0).integers(3, size=2000).tolist():
            seen.append((*env.step(action), env.expected_rewards(), env.audit(), env.regime_level()))
            if seen[-1][2] or seen[-1][3]:
                seen.append(env.reset())
        shown.append(seen)
    assert repr(shown[0]) == repr(shown[1])
    steps = [part for part in shown[0] if len(part) > 2]
    assert all(part[0]["size"].dtype == np.float32 and part[0]["size"].shape == (1,) for part in steps)
    assert sum(part[2] for part in steps) > 10  # terminated
    assert sum(part[3] for part in steps) > 5  # truncated
    assert sum(len(part[4]["feedback"]) for part in steps) > 300


@pytest.mark.parametrize("kind", ["integers", "compiled"])
def test_what_measurement_costs_is_paid_only_where_it_is_asked_for(toys, kind, monkeypatch):
    env = toy_env(toys, kind)
    env.reset(seed=0)
    asked = []
    monkeypatch.setattr(type(env), "solution", property(lambda _: asked.append("solution")))
    env.step(0)
    assert env.regime_level() == 0
    assert asked == []
    values = env.action_values()
    assert env.oracle_action() == int(np.argmax(values))
    env.expected_rewards()[:] = 7.0  # what is handed out is the caller's
    assert (env.expected_rewards() != 7.0).all()
    assert asked == ["solution"]  # once a step
    env.step(0)
    env.audit()
    assert asked == ["solution"] * 2


@pytest.mark.parametrize("kind", ["integers", "compiled"])
def test_a_narrator_is_given_what_an_agent_sees(toys, kind):
    told = []

    def narrate(before, action, info, after, number):
        told.append((before, action, info["weather"], after, number))
        return {"agent": f"step {number}"}

    env = toy_env(toys, kind, narrate=narrate)
    first, info = env.reset(seed=0)
    assert info["text"] == {"agent": "step 0"}
    second, *_, info = env.step(2)
    assert info["text"] == {"agent": "step 1"}
    assert told == [(None, None, "none", first, 0), (first, 2, info["weather"], second, 1)]
    assert "text" not in toy_env(toys, kind).reset(seed=0)[1]
