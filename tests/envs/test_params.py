"""Params are looked at before they are run: compiled code cannot refuse what is out of range."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import envs
from habitus.envs.contract import ChecksParams

MADE = {
    "game": lambda toy_table: envs.GameNPCEnv(capacity=20),
    "service": lambda toy_table: envs.CustomerServiceEnv(difficulty="easy", capacity=20),
    "synthetic": lambda toy_table: envs.CreditReviewEnv(difficulty="easy", capacity=40),
    "table": lambda toy_table: envs.CreditReviewEnv(toy_table()),
}
SCHEDULE = [
    ("regime_levels", 0, 11, r"\[0, 10\], got 11"),
    ("regime_levels", 3, -1, r"\[0, 10\], got -1"),
    ("regime_steps", 0, 1, "start with 0, got 1"),
    ("regime_steps", 1, -5, "got -5"),
    ("regime_steps", 3, 7, "ascend, got 7 after 1073741824"),
    ("regime_steps", 2, 2**31 - 1, r"\[0, 1073741824\], got 2147483647"),
]
ARRIVALS = [
    ("arrivals.n", (), 500, r"\[1, 20\], got 500"),
    ("arrivals.n", (), 0, r"\[1, 20\], got 0"),
    ("arrivals.alias", 0, 12, r"\[0, 11\], got 12"),
    ("arrivals.alias", 2, -1, r"\[0, 11\], got -1"),
    ("arrivals.stays", 1, 65537, r"\[0, 65536\], got 65537"),
    ("arrivals.drift", (), -1, r"\[0, 65536\], got -1"),
    ("arrivals.hot", (), 70_000, r"\[0, 65536\], got 70000"),
    ("arrivals.gap", (), -1, "got -1"),
    ("redraws", (), 2, r"\[0, 1\], got 2"),
]
CASES = {
    "game": [
        *SCHEDULE,
        *ARRIVALS,
        ("see", (), 65537, r"\[0, 65536\], got 65537"),
        ("agrees", 4, -1, r"\[0, 65536\], got -1"),
        ("moves", 9, 2**31 - 1, r"\[0, 5\], got 16383"),
        ("moves", 0, -1, r"\[0, 5\], got -1"),
        ("moves", 8, 65537, r"\[0, 65536\], got 65537"),
    ],
    "service": [*SCHEDULE, *ARRIVALS],
    "synthetic": [
        *SCHEDULE,
        ("n_applicants", (), 41, r"\[1, 40\], got 41"),
        ("n_applicants", (), 0, r"\[1, 40\], got 0"),
        ("arrivals.returning", (), 65537, r"\[0, 65536\], got 65537"),
        ("arrivals.drift_kept", (), 16385, r"\[0, 16384\], got 16385"),
        ("arrivals.drift_fresh", (), -1, r"\[0, 16384\], got -1"),
    ],
    "table": [
        *SCHEDULE,
        ("codes", (3, 0), 4, r"\[0, 3\], got 4"),
        ("codes", (3, 1), -1, r"\[0, 1\], got -1"),
        ("withheld_codes", 0, -2, r"\[-1, 3\], got -2"),
        ("stakes", 5, 0, "got 0"),
        ("stakes", 5, 10**8, "got 100000000"),
        ("loss", (), 2**31 - 1, "got 2147483647"),
        ("gain", (), -1, "got -1"),
        ("capped_gain", (), 10**8, "got"),
        ("charge", (), -1, "got -1"),
        ("review_fee", (), 2**30, "got 1073741824"),
        ("document_fee", (), -1, "got -1"),
        ("reduced", (), 1001, r"\[0, 1000\], got 1001"),
        ("reliability", (), -1, r"\[0, 1000\], got -1"),
        ("hides", (), 65537, r"\[0, 65536\], got 65537"),
    ],
}
FLAT = [(kind, *case) for kind, cases in CASES.items() for case in cases]


@pytest.fixture(scope="module")
def made(toy_table):
    return {kind: make(toy_table) for kind, make in MADE.items()}


def replaced(params, name, at, value):
    """Params with one entry of the leaf of a dotted name changed."""
    first, *rest = name.split(".")
    part = getattr(params, first)
    if rest:
        return params._replace(**{first: replaced(part, ".".join(rest), at, value)})
    array = np.array(part)
    array[at] = value
    return params._replace(**{first: jnp.asarray(array)})


@pytest.mark.parametrize(("kind", "name", "at", "value", "message"), FLAT)
def test_values_out_of_range_are_refused_by_the_name_of_their_leaf(made, kind, name, at, value, message):
    env = made[kind]
    wrong = replaced(env.params, name, at, value)
    with pytest.raises(ValueError, match=message) as caught:
        envs.WorldEnv(env.world, params=wrong)
    assert f"`params.{name}" in str(caught.value)
    with pytest.raises(ValueError, match=message):
        envs.WorldVectorEnv(env.world, 2, params=wrong)
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), env.params, wrong)
    with pytest.raises(ValueError, match=message) as caught:
        envs.WorldVectorEnv(env.world, 2, params=both, per_env_params=True)
    assert f"`params.{name}" in str(caught.value)


@pytest.mark.parametrize("kind", MADE)
def test_every_leaf_that_can_be_out_of_range_is_tried(made, kind):
    free = {"codes", "numbers", "withheld_numbers", "group"}  # of a table: shown or measured, nothing is read by them
    tried = {name for name, *_ in CASES[kind]} | free
    for path, leaf in jax.tree.leaves_with_path(made[kind].params):
        name = jax.tree_util.keystr(path).removeprefix(".")
        assert name in tried or leaf.dtype == np.bool_, name


@pytest.mark.parametrize("kind", MADE)
def test_the_ends_of_the_ranges_are_accepted(made, kind):
    params = made[kind].params
    params = replaced(replaced(params, "regime_levels", 0, 10), "regime_steps", 1, 0)
    if kind in ("game", "service"):
        for name in ("drift", "hot", "stays"):
            for value in (0, 2**16):
                params = replaced(params, f"arrivals.{name}", (), value)
        params = replaced(replaced(params, "arrivals.n", (), 20), "arrivals.alias", -1, 19)
    if kind == "synthetic":
        params = replaced(params, "n_applicants", (), 40)
    env = envs.WorldEnv(made[kind].world, params=params)
    env.reset(seed=0)
    env.step(0)


@pytest.mark.parametrize("difficulty", ["easy", "medium", "hard"])
@pytest.mark.parametrize("regime", ["none", "shift", "periodic", "drift"])
def test_what_the_environments_make_is_accepted(difficulty, regime):
    for make in (envs.GameNPCEnv, envs.CustomerServiceEnv, envs.CreditReviewEnv):
        env = make(difficulty=difficulty, regime=regime, horizon=50)
        assert isinstance(env.world, ChecksParams)
        env.world.check(env.params)


def test_a_world_without_check_is_taken_as_it_is(toys):
    world = toys.toy()
    assert not isinstance(world, ChecksParams)
    envs.WorldEnv(world, params=world.params._replace(regime_levels=world.params.regime_levels + 1))


@pytest.mark.parametrize("build", [envs.WorldEnv, envs.WorldVectorEnv])
def test_what_is_no_world_and_no_narrator_is_refused_by_name(toys, build):
    world = toys.toy()
    for wrong, message in (
        (None, "`world` must be a World .*, got an object of type NoneType without `schema`"),
        (envs.WorldEnv(world), r"got an object of type WorldEnv without `initial`; .* `env.unwrapped.world`"),
        (toys.Toy, "`world` must be a World .*, got the class Toy"),
        ("habitus/GameNPC-v0", "`world` must be a World .*, got an object of type str without `schema`"),
    ):
        with pytest.raises(TypeError, match=message):
            build(wrong)
    for wrong in ("en", True, {"agent": "hello"}):
        with pytest.raises(TypeError, match="`narrate` must be callable or None, got"):
            build(world, narrate=wrong)
    build(world, narrate=None)
