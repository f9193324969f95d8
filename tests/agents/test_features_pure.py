"""`FeatureEncoder.pure` finds the nodes of `encode`: the compiled loop learns on the same edges."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from habitus.agents.declared import schema_of
from habitus.agents.features import FeatureEncoder

SYMBOLS = np.array([11, 6, 4])  # codes of a cell of a symbolic grid
GRID = spaces.Dict({"image": spaces.Box(0, 255, (7, 7, 3), np.uint8), "direction": spaces.Discrete(4)})

SPACES: dict[str, gymnasium.Space[Any]] = {
    "discrete": spaces.Discrete(5),
    "discrete from -2": spaces.Discrete(4, start=-2),
    "multi-discrete": spaces.MultiDiscrete([2, 3, 4]),
    "multi-discrete with starts": spaces.MultiDiscrete([[3, 2], [2, 4]], start=[[1, 0], [5, -3]]),
    "multi-binary": spaces.MultiBinary(4),
    "multi-binary array": spaces.MultiBinary([2, 3]),
    "box": spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 5.0], np.float32)),
    "box array": spaces.Box(-1.0, 2.0, (2, 2)),
    "box without bounds": spaces.Box(-np.inf, np.inf, (2,)),
    "box half open": spaces.Box(np.array([0.0, -np.inf], np.float32), np.array([np.inf, 5.0], np.float32)),
    "box of 5": spaces.Box(-1.0, 1.0, (5,)),
    "box of 9": spaces.Box(-np.inf, np.inf, (9,)),
    "box of whole numbers": spaces.Box(-3, 9, (2,), np.int64),
    "tuple": spaces.Tuple((spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2))),
    "nested": spaces.Dict(
        {
            "a": spaces.Dict({"b": spaces.Discrete(3), "c": spaces.Box(-1.0, 1.0, (2,))}),
            "t": spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(2), spaces.Box(0.0, 1.0, (1,)))),
        }
    ),
    "symbolic grid": GRID,
}
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "game npc": ("habitus/GameNPC-v0", {}),
    "customer service": ("habitus/CustomerService-v0", {}),
    "credit review": ("habitus/CreditReview-v0", {}),
    "credit review, spanish": ("habitus/CreditReview-v0", {"applicants": "spanish"}),
}

N = 1_000
BOX_CODES = ("uniform", "tiles", "random")
PLAIN = [(name, "auto") for name in SPACES if not name.startswith("box")]
BOXES = [(name, box) for name in SPACES if name.startswith("box") for box in BOX_CODES]
ROUNDING = 2e-6  # of a rank in float32 (a number within a narrow bin far from 0 has few digits left)


def samples(name: str, n: int, seed: int = 0) -> list[Any]:
    """`n` random observations of one of `SPACES`; unbounded numbers have heavy tails."""
    space, rng = SPACES[name], np.random.default_rng(seed)
    space.seed(seed)
    found = [space.sample() for _ in range(n)]
    if name == "symbolic grid":
        return [one | {"image": rng.integers(0, SYMBOLS, (7, 7, 3)).astype(np.uint8)} for one in found]
    if isinstance(space, spaces.Box) and not space.is_bounded():
        wild = [rng.standard_t(1.0, space.shape) for _ in range(n)]
        return [np.clip(one, space.low, space.high).astype(np.float32) for one in wild]
    return found


def world(name: str) -> tuple[gymnasium.Env[Any, Any], Any]:
    """One of `WORLDS` and its schema."""
    env = gymnasium.make(WORLDS[name][0], **WORLDS[name][1])
    return env, schema_of(env)


def lived(env: gymnasium.Env[Any, Any], n: int, seed: int = 0) -> list[Any]:
    """`n` observations of an environment under random actions."""
    env.action_space.seed(seed)
    found = [env.reset(seed=seed)[0]]
    while len(found) < n:
        observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
        found.append(env.reset()[0] if terminated or truncated else observation)
    return found


def stacked(observations):
    return jax.tree.map(lambda *values: np.stack(values), *observations)


def assert_same(encoder, observations):
    found = jax.jit(jax.vmap(encoder.pure()))(stacked(observations))
    expected = [encoder.encode(one) for one in observations]
    np.testing.assert_array_equal(found.nodes, np.stack([one.nodes for one in expected]))
    np.testing.assert_allclose(found.activation, np.stack([one.activation for one in expected]), atol=ROUNDING)
    np.testing.assert_array_equal(found.stake, np.array([one.stake for one in expected], np.float32))
    assert (found.nodes.dtype, found.activation.dtype, found.stake.dtype) == (np.int32, np.float32, np.float32)
    assert found.nodes.shape == (len(observations), encoder.n_active)


@pytest.mark.parametrize(("name", "box"), PLAIN + BOXES, ids=lambda value: str(value))
def test_pure_finds_the_nodes_of_encode_in_every_space(name, box):
    encoder = FeatureEncoder(SPACES[name], box=box)
    observations = samples(name, N)
    assert_same(encoder, observations)
    assert len({tuple(encoder.encode(one).nodes) for one in observations[:100]}) > 2  # and they are not all alike


@pytest.mark.parametrize("name", WORLDS)
def test_pure_finds_the_nodes_of_encode_in_every_world(name):
    env, schema = world(name)
    observations = lived(env, N)
    encoder = FeatureEncoder(env.observation_space, schema)
    assert_same(encoder, observations)
    entity = jax.vmap(encoder.pure_entity())(stacked(observations))
    np.testing.assert_array_equal(entity, [encoder.entity(one) for one in observations])
    assert (len(set(np.asarray(entity).tolist())) > 1) == (schema.entity_field is not None)


@pytest.mark.parametrize("rank", ["poles", "none"])
def test_every_form_of_rank_is_pure(rank):
    env, schema = world("credit review, spanish")
    assert_same(FeatureEncoder(env.observation_space, schema, rank=rank), lived(env, 200))


@pytest.mark.parametrize("box", BOX_CODES)
def test_numbers_on_an_edge_fall_into_the_same_bin(box):
    low, high = np.float32(-0.7), np.float32(1.3)  # edges that float32 does not hold
    edges = np.linspace(float(low), float(high), 8 * 8 + 1).astype(np.float32)
    near = [edges, np.nextafter(edges, np.float32(2)), np.nextafter(edges, np.float32(-2))]
    numbers = np.clip(np.concatenate(near), low, high)
    numbers[np.abs(numbers) < np.finfo(np.float32).tiny] = 0.0  # XLA takes numbers as small as these for 0
    assert_same(FeatureEncoder(spaces.Box(low, high, (1,)), box=box), [one[None] for one in numbers])


def test_hashed_tiles_are_pure():
    encoder = FeatureEncoder(spaces.Box(-1.0, 1.0, (4,)), box="tiles", n_bins=20)
    space = spaces.Box(-1.0, 1.0, (4,))
    space.seed(1)
    assert_same(encoder, [space.sample() for _ in range(N)])


def test_pure_never_gives_nan_and_takes_the_nearest_code():
    space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-np.inf, np.inf, (2,))})
    for box in BOX_CODES:
        pure = jax.jit(FeatureEncoder(space, box=box).pure())
        for number in (np.nan, np.inf, -np.inf, 3e38):
            found = pure({"a": jnp.int32(7), "b": jnp.array([number, 0.5])})
            expected = pure(
                {"a": jnp.int32(2), "b": jnp.array([np.nan_to_num(number, posinf=1e30, neginf=-1e30), 0.5])}
            )
            assert np.isfinite(found.activation).all()
            np.testing.assert_array_equal(found.nodes, expected.nodes)


def test_pure_takes_a_world_as_the_compiled_loop_sees_it():
    env = gymnasium.make("habitus/CreditReview-v0", applicants="spanish")
    encoder = FeatureEncoder(env.observation_space, env.unwrapped.schema)
    raw, shown = env.reset(seed=3)[0], env.unwrapped
    seen = jax.tree.map(jnp.asarray, raw)
    assert shown.schema.stake_field in seen
    scalars = {name: value.reshape(()) for name, value in seen.items()}  # numbers of no shape instead of (1,)
    found, expected = encoder.pure()(scalars), encoder.encode(raw)
    np.testing.assert_array_equal(found.nodes, expected.nodes)
