"""The vector environment against N scalar ones side by side, bit by bit."""

import copy

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from habitus import envs

MODES = tuple(AutoresetMode)


@pytest.fixture(params=["integers", "integers, one draw", "compiled"])
def toy(request, toys):
    """A toy world, stepped one by one in either executor."""
    world = toys.toy(draws_apart=request.param != "integers, one draw")
    return toys.Plain(world) if request.param == "compiled" else world


def tell(before, action, info, after, number):
    """A narrator that looks at everything; at a reset it has one key less."""
    said = {
        "world": f"{number}: {before and int(before['mood'])} {action} {info['feedback']} {float(after['size'][0])}"
    }
    return said if action is None else said | {"agent": f"{info['weather']} {info['action_mask'].tolist()}"}


@pytest.mark.parametrize("narrate", [None, tell], ids=["silent", "told"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_every_mode_equals_scalar_environments_bit_by_bit(toy, mode, narrate, vectors):
    vectors.compare(
        lambda: envs.WorldEnv(toy, horizon=40, narrate=narrate),
        lambda n, mode: envs.WorldVectorEnv(toy, n, horizon=40, autoreset_mode=mode, narrate=narrate),
        n_steps=2000 if narrate is None else 300,
        mode=mode,
    )


def test_resetting_one_sub_environment_does_not_touch_another(toys):
    world = toys.toy(ends=0.0)
    vector = envs.WorldVectorEnv(world, 3, autoreset_mode="Disabled")
    alone = envs.WorldEnv(world)
    vector.reset(seed=7)
    alone.reset(seed=8)
    for number in range(50):
        if number % 5 == 0:
            before = jax.tree.map(np.asarray, vector.state)
            mask = np.array([True, False, number % 2 == 0])
            _, infos = vector.reset(options={"reset_mask": mask})
            after = jax.tree.map(np.asarray, vector.state)
            jax.tree.map(lambda one, other: np.testing.assert_array_equal(one[~mask], other[~mask]), before, after)  # noqa: B023
            assert (after.step == np.where(mask, 0, before.step)).all()
            np.testing.assert_array_equal(infos["_regime"], mask)
        observations, rewards, *_ = vector.step([0, number % 3, 1])
        observation, reward, *_ = alone.step(number % 3)
        assert rewards[1] == reward
        assert {name: values[1] for name, values in observations.items()} == observation


def test_the_time_limit_truncates_and_does_not_terminate(toys):
    vector = envs.WorldVectorEnv(toys.toy(ends=0.0), 2, horizon=3)
    vector.reset(seed=0)
    ends = [tuple(part.tolist() for part in vector.step([0, 0])[2:4]) for _ in range(8)]
    running, truncated = ([False] * 2, [False] * 2), ([False] * 2, [True] * 2)
    assert ends == [running, running, truncated, running, running, running, truncated, running]


def test_nothing_is_compiled_after_the_first_reset_and_step(toys):
    vector = envs.WorldVectorEnv(toys.toy(), 4, horizon=10, autoreset_mode="SameStep")
    vector.reset(seed=0)
    vector.step([0, 1, 2, 0])
    calls = vector._calls
    before = calls.step._cache_size(), calls.restart._cache_size()
    others = envs.WorldVectorEnv(toys.toy(regime="shift", ends=0.3), 4, horizon=7)
    others.reset(seed=5)
    for number in range(50):
        vector.step([number % 3] * 4)
        others.step(np.array([0, 0, number % 3, 1]))
    assert (calls.step._cache_size(), calls.restart._cache_size()) == before


def test_params_of_each_sub_environment_equal_environments_of_their_own(toys, vectors):
    worlds = [toys.toy(regime=regime, ends=ends) for regime, ends in (("none", 0.0), ("shift", 0.05), ("drift", 0.3))]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(world.params for world in worlds))
    vector = envs.WorldVectorEnv(worlds[0], 3, horizon=100, params=stacked, per_env_params=True)
    scalar = SyncVectorEnv([lambda world=world: envs.WorldEnv(world, horizon=100) for world in worlds])
    vectors.assert_same(scalar.reset(seed=1)[0], vector.reset(seed=1)[0])
    rng = np.random.default_rng(0)
    for _ in range(150):
        actions = rng.integers(3, size=3)
        vectors.assert_same(scalar.step(actions)[:4], vector.step(actions)[:4])


def test_measurement_is_that_of_scalar_environments(toys):
    world = toys.toy(ends=0.0)
    vector, scalar = envs.WorldVectorEnv(world, 2), [envs.WorldEnv(world) for _ in range(2)]
    vector.reset(seed=3)
    for i, env in enumerate(scalar):
        env.reset(seed=3 + i)
    for number in range(20):
        for env in scalar:
            env.step(number % 3)
        vector.step([number % 3] * 2)
        for of_all, of_one in (
            (vector.expected_rewards(), [env.expected_rewards() for env in scalar]),
            (vector.action_values(), [env.action_values() for env in scalar]),
            (vector.oracle_actions(), [env.oracle_action() for env in scalar]),
            (vector.action_masks(), [env.action_masks() for env in scalar]),
            (vector.regime_levels(), [env.regime_level() for env in scalar]),
            (vector.audit()["mood"], [env.audit()["mood"] for env in scalar]),
        ):
            np.testing.assert_array_equal(of_all, of_one)
    assert [row.tolist() for row in vector.call("action_masks")] == vector.action_masks().tolist()
    assert vector.call("audit")[1] == {"mood": scalar[1].audit()["mood"]}
    assert vector.get_attr("horizon") == (2000, 2000)


def test_shown_arrays_are_new_and_stay_as_they_were(toys, vectors):
    vector = envs.WorldVectorEnv(toys.toy(ends=0.0), 2)
    shown = [vector.reset(seed=0)]
    kept = [jax.tree.map(np.copy, shown[0])]
    for _ in range(5):
        observation, *_, infos = vector.step([1, 1])
        for array in (*observation.values(), *infos.values()):
            assert array.flags.writeable
        shown.append((observation, infos))
        kept.append(jax.tree.map(np.copy, shown[-1]))
        state = vector.state
    vectors.assert_same(tuple(shown), tuple(kept))
    vector.step([0, 0])
    assert state.step.tolist() == [5, 5]  # a state that was asked for outlives the step that follows


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_what_was_shown_belongs_to_the_user(toys, mode, vectors):
    kept, changed = (envs.WorldVectorEnv(toys.toy(ends=0.2), 5, horizon=9, autoreset_mode=mode) for _ in range(2))
    shown = [kept.reset(seed=0)]
    changed.reset(seed=0)
    copies = [copy.deepcopy(shown[0])]
    for number in range(40):
        found, other = kept.step([number % 3] * 5), changed.step([number % 3] * 5)
        vectors.assert_same(found, other, f"step {number}")
        shown.append(found)
        copies.append(copy.deepcopy(found))
        for array in (*other[0].values(), *other[1:4], *other[4].values()):
            if isinstance(array, np.ndarray) and array.dtype != object:
                array[:] = 1
        ended = found[2] | found[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            shown.append(kept.reset(options={"reset_mask": ended}))
            copies.append(copy.deepcopy(shown[-1]))
            changed.reset(options={"reset_mask": ended})
    for before, after in zip(copies, shown, strict=True):
        vectors.assert_same(before, after)


def test_wrappers_of_gymnasium_work(toys):
    world = toys.toy()
    vector = envs.WorldVectorEnv(world, 4, horizon=20)
    recorded = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector)
    recorded.reset(seed=0)
    total, length, seen = np.zeros(4), np.zeros(4, int), 0
    ended = np.zeros(4, bool)
    for number in range(200):
        _, rewards, terminated, truncated, infos = recorded.step(np.full(4, number % 3))
        total, length = np.where(ended, 0, total + rewards), np.where(ended, 0, length + 1)
        ended = terminated | truncated
        if ended.any():
            seen += 1
            np.testing.assert_allclose(infos["episode"]["r"][ended], total[ended], rtol=1e-6)
            np.testing.assert_array_equal(infos["episode"]["l"][ended], length[ended])
    assert seen > 5
    flat = gymnasium.wrappers.vector.FlattenObservation(envs.WorldVectorEnv(world, 64, horizon=20))
    normalised = gymnasium.wrappers.vector.NormalizeObservation(flat)
    normalised.reset(seed=0)
    shown = np.stack([normalised.step(np.zeros(64, int))[0] for _ in range(200)])[100:]
    assert shown.shape == (100, 64, 4)
    assert np.abs(shown.mean((0, 1))).max() < 0.1
    assert np.abs(shown.std((0, 1)) - 1).max() < 0.1


@pytest.mark.parametrize(
    ("actions", "reason"),
    [([0], "shape"), ([0, 3], "range"), ([-1, 0], "range"), ([0.0, 1.0], "type"), (None, "type")],
)
def test_unknown_actions_are_refused(toys, actions, reason):
    vector = envs.WorldVectorEnv(toys.toy(), 2)
    vector.reset(seed=0)
    with pytest.raises(ValueError, match=r"`actions` must be 2 whole numbers of 0 = wait, 1 = ask, 2 = leave; got"):
        vector.step(actions)


def test_steps_and_resets_out_of_order_are_refused(toys):
    world = toys.toy(ends=0.0)
    vector = envs.WorldVectorEnv(world, 2, horizon=1, autoreset_mode="Disabled")
    with pytest.raises(gymnasium.error.ResetNeeded, match="call `reset` first"):
        vector.step([0, 0])
    with pytest.raises(gymnasium.error.ResetNeeded, match="first `reset` must be of all"):
        vector.reset(options={"reset_mask": np.array([True, False])})
    vector.reset(seed=0)
    vector.step([0, 0])
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"those of \[0, 1\] have ended"):
        vector.step([0, 0])
    for mask in ([True, False], np.array([1, 0])):
        with pytest.raises(TypeError, match="must be an array of bool"):
            vector.reset(options={"reset_mask": mask})
    for mask in (np.array([True]), np.array([False, False])):
        with pytest.raises(ValueError, match="must have shape"):
            vector.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="`seed` must be an int or a list of 2"):
        vector.reset(seed=[1, 2, 3])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_envs": 0}, r"`num_envs` must lie in \[1, "),
        ({"horizon": 0}, r"`horizon` must lie in \[1, "),
        ({"autoreset_mode": "sometimes"}, "`autoreset_mode` must be one of"),
        ({"render_mode": "rgb_array"}, "`render_mode` must be None"),
        ({"per_env_params": True}, r"`params.regime_steps` must have shape \(2, 16\), got \(16,\)"),
    ],
)
def test_bad_arguments_are_refused_by_name(toys, changes, message):
    with pytest.raises(ValueError, match=message):
        envs.WorldVectorEnv(toys.toy(), **({"num_envs": 2} | changes))


def test_a_list_of_seeds_gives_each_its_own_and_none_continues(toys):
    world = toys.toy(ends=0.0)
    vector, one = envs.WorldVectorEnv(world, 2), envs.WorldEnv(world)
    first = vector.reset(seed=[4, 9])[0]["size"][:, 0].tolist()
    again = vector.reset(seed=[None, 9])[0]["size"][:, 0].tolist()
    assert first == [one.reset(seed=seed)[0]["size"][0] for seed in (4, 9)]
    one.reset(seed=4)
    assert again == [one.reset()[0]["size"][0], first[1]]
    assert vector.np_random_seed == (4, 9)


def stacked(made):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *(env.params for env in made))


SWEEPS = {
    "regimes": lambda: [envs.GameNPCEnv(regime=regime) for regime in ("none", [(0, 1.0)], [(0, 0), (4, 1)], "none")],
    "opponents": lambda: [
        envs.GameNPCEnv(regime=regime, negotiation=negotiation)
        for regime, negotiation in (("none", None), ("none", [0.9] * 5), ([(3, 1)], [0.0, 0.1, 0.2, 0.3, 1.0]))
    ],
    "rules of a service": lambda: [
        envs.CustomerServiceEnv(regime=regime) for regime in ("none", [(0, 1.0)], [(0, 0), (4, 1)])
    ],
    "no solution": lambda: [envs.CreditReviewEnv(regime=regime) for regime in ("none", [(0, 1.0)])],
}


@pytest.mark.parametrize(
    "sweep",
    [pytest.param(sweep, marks=pytest.mark.slow if sweep in ("regimes", "no solution") else ()) for sweep in SWEEPS],
)
def test_each_sub_environment_is_measured_by_the_solution_of_its_own_params(sweep):
    made = SWEEPS[sweep]()
    vector = envs.WorldVectorEnv(made[0].world, len(made), params=stacked(made), per_env_params=True)
    vector.reset(seed=3)
    for i, env in enumerate(made):
        env.reset(seed=3 + i)
    for number in range(12):
        for measured in ("expected_rewards", "action_values"):
            np.testing.assert_array_equal(
                getattr(vector, measured)(), [getattr(env, measured)() for env in made], f"{measured}, step {number}"
            )
        assert vector.oracle_actions().tolist() == [env.oracle_action() for env in made]
        assert vector.regime_levels().tolist() == [env.regime_level() for env in made]
        audits = [env.audit() for env in made]
        assert {name: values.tolist() for name, values in vector.audit().items()} == {
            name: [audit[name] for audit in audits] for name in audits[0]
        }
        action = number % len(vector.schema.actions)
        vector.step([action] * len(made))
        for env in made:
            env.step(action)
    for its, env in zip(vector.solutions, made, strict=True):
        jax.tree.map(np.testing.assert_array_equal, its, env.solution)


def test_equal_params_are_solved_once_and_only_when_they_are_asked_for(toys, monkeypatch):
    made = [toys.toy(regime=regime, ends=0.0) for regime in ("none", "shift", "none", "shift", "none")]
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(world.params for world in made))
    solved = []
    monkeypatch.setattr(toys.Toy, "solve", lambda self, params: solved.append(params))
    vector = envs.WorldVectorEnv(made[0], 5, params=params, per_env_params=True)
    vector.reset(seed=0)
    vector.step([0] * 5)
    assert solved == []
    vector.action_values()
    vector.oracle_actions()
    assert [int(np.asarray(params.regime_levels).max()) for params in solved] == [0, 10]


def test_one_solution_is_only_shown_where_there_is_one():
    made = [envs.GameNPCEnv(regime=regime) for regime in ("none", [(0, 1.0)], "none")]
    vector = envs.WorldVectorEnv(made[0].world, 3, params=stacked(made), per_env_params=True)
    with pytest.raises(ValueError, match=r"`solution` .* read `solutions`"):
        _ = vector.solution
    alike = envs.WorldVectorEnv(made[0].world, 2, params=stacked(made[::2]), per_env_params=True)
    assert alike.solution is alike.solutions[0] is alike.solutions[1]
    shared = envs.WorldVectorEnv(made[0].world, 2)
    assert shared.solutions == (shared.solution,) * 2


@pytest.mark.parametrize("seed", [[1, 2], [1, 2, "three"], -2, "seven", 1.5, [1, -1, 2]])
def test_a_refused_seed_leaves_everything_as_it_was(toys, seed):
    fresh, kept = (envs.WorldVectorEnv(toys.toy(ends=0.0), 3) for _ in range(2))
    with pytest.raises((TypeError, ValueError, gymnasium.error.Error)):
        fresh.reset(seed=seed)
    fresh.reset()
    assert len(set(fresh.np_random_seed)) == 3
    assert len({generator.random() for generator in fresh.np_random}) == 3
    kept.reset(seed=5)
    with pytest.raises((TypeError, ValueError, gymnasium.error.Error)):
        kept.reset(seed=seed)
    assert kept.np_random_seed == (5, 6, 7)
    other = envs.WorldVectorEnv(toys.toy(ends=0.0), 3)
    other.reset(seed=5)
    jax.tree.map(np.testing.assert_array_equal, kept.reset()[0], other.reset()[0])


def test_a_first_list_of_seeds_with_none_draws_the_missing_ones_apart(toys):
    vector = envs.WorldVectorEnv(toys.toy(ends=0.0), 3)
    vector.reset(seed=[None, 3, None])
    seeds = vector.np_random_seed
    assert seeds[1] == 3
    assert len(set(seeds)) == 3


@pytest.mark.parametrize("n", [1, 5, 7])
def test_what_belongs_to_a_sub_environment_is_handed_out_one_each(n):
    # n is also the number of fields of `Solution` (5), of the params (7) and of smaller tuples.
    made = [envs.GameNPCEnv() for _ in range(n)]
    vector = envs.WorldVectorEnv(made[0].world, n)
    swept = envs.WorldVectorEnv(made[0].world, n, params=stacked(made), per_env_params=True)
    for i, env in enumerate(made):
        env.reset(seed=i)
    for of_all in (vector, swept):
        of_all.reset(seed=0)
        for name in ("state", "params", "solution"):
            for its, env in zip(of_all.get_attr(name), made, strict=True):
                jax.tree.map(np.testing.assert_array_equal, its, getattr(env, name))
        for name in ("action_space", "observation_space", "schema", "horizon", "world", "np_random_seed"):
            assert list(of_all.get_attr(name)) == [getattr(env, name) for env in made]
        for name in ("oracle_action", "regime_level", "audit"):
            assert list(of_all.call(name)) == [getattr(env, name)() for env in made]
        for name in ("expected_rewards", "action_values", "action_masks"):
            np.testing.assert_array_equal(of_all.call(name), [getattr(env, name)() for env in made])
        assert of_all.call("oracle_actions") == of_all.call("oracle_action")
        assert of_all.call("regime_levels") == of_all.call("regime_level")
    with pytest.raises(AttributeError, match="no_such_thing"):
        vector.call("no_such_thing")
