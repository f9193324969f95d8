"""The nodes of a layout as a pure function of JAX arrays, for compiled code: in NumPy, `FeatureEncoder.encode`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import intervals
from .bins import BinTable
from .layout import Layout, ScalarCode
from .values import Path, at

if TYPE_CHECKING:
    from jax import Array


def paths_of(layout: Layout) -> Callable[[Any], tuple[Any, Any, Any]]:
    """A function of one observation, as `FeatureEncoder.pure` documents it: ([P] i32, [P] f32, [] f32)."""
    import jax.numpy as jnp

    table = BinTable([one.bins for one in layout.binned]) if layout.binned else None
    first, n, start, stride = (_of_codes(layout, name) for name in ("first", "n", "start", "stride"))
    is_off = layout.is_on[first] == 0  # codes whose first node says nothing

    def flat(observation: Any, path: Path, positions: Any, kind: Any = np.float32) -> Array:
        return jnp.reshape(jnp.asarray(at(observation, path)), (-1,))[positions].astype(kind)

    def codes(observation: Any) -> Array:
        """[V] i32: all codes, counted from 0."""
        raw = [flat(observation, one.path, slice(1), np.int32) for one in layout.scalars]
        raw += [flat(observation, vector.path, vector.positions, np.int32) for vector in layout.vectors]
        return jnp.clip(jnp.concatenate(raw) - start, 0, n - 1) if raw else jnp.zeros((0,), jnp.int32)

    def paths(observation: Any) -> tuple[Array, Array, Array]:
        code = codes(observation)
        nodes: list[Any] = [jnp.zeros((1,), jnp.int32), first + code]
        activation = [jnp.ones((1,), jnp.float32), jnp.where(is_off & (code == 0), np.float32(0), np.float32(1))]
        if table is not None:
            numbers = jnp.stack([flat(observation, one.path, one.position) for one in layout.binned])
            is_known = jnp.stack(
                [
                    jnp.ones((), bool) if one.status is None else flat(observation, (one.status,), 0, np.int32) == 0
                    for one in layout.binned
                ]
            )
            on_bins, ranks = table.activate(_finite(numbers), is_known)
            nodes.append(on_bins)
            activation.append(ranks)
        if layout.grids is not None:
            parts = [flat(observation, path, positions) for path, positions in layout.gridded]
            on_tiles = layout.grids.pure(_finite(jnp.concatenate(parts)))
            nodes.append(on_tiles)
            activation.append(jnp.ones(on_tiles.shape, jnp.float32))
        if layout.joint is not None:
            nodes.append(jnp.reshape(layout.joint + jnp.sum(code * stride, dtype=jnp.int32), (1,)))
            activation.append(jnp.ones((1,), jnp.float32))
        stake = jnp.ones((), jnp.float32)
        if layout.stake is not None:
            observed = flat(observation, (layout.stake,), 0)
            stake = jnp.where(jnp.isfinite(observed) & (observed > 0), observed, np.float32(1))
            nodes.append(jnp.full((1,), len(layout.labels) - 1, jnp.int32))
            activation.append(jnp.reshape(1 / stake, (1,)))
        return jnp.concatenate(nodes), jnp.concatenate(activation), stake

    return paths


def entity_of(field: ScalarCode | None) -> Callable[[Any], Array]:
    """A function of one observation: [] i32, the code of an entity field; 0 where there is none."""
    import jax.numpy as jnp

    def entity(observation: Any) -> Array:
        if field is None:
            return jnp.zeros((), jnp.int32)
        return jnp.reshape(jnp.asarray(at(observation, field.path)), (-1,))[0].astype(jnp.int32)

    return entity


def _of_codes(layout: Layout, name: str) -> npt.NDArray[np.int32]:
    """One attribute of all codes, in the order of their paths."""
    scalars = np.array([getattr(one, name) for one in layout.scalars], np.int32)
    return np.concatenate([scalars, *(getattr(vector, name) for vector in layout.vectors)], dtype=np.int32)


def _finite(numbers: Array) -> Array:
    import jax.numpy as jnp

    return jnp.nan_to_num(numbers, nan=0.0, posinf=intervals.LARGEST, neginf=-intervals.LARGEST)
