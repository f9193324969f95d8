"""The kernel of whole graphs: every edge in each round, at the speed at which activation can be read.

In-edges stand in rows of at most `LONGEST`, one or more for each node. Rows of about one length stand together in
blocks of C, so that a block is as many slices of C edges as its longest row has, and hardly any slot is empty: without
this a third of all slots is. Rows are ordered only within windows of nodes, so that neighbours in number, which often
share their sources, stay near each other. A slice is one flat gather.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .ell import excites, taken
from .rounds import Pull

Array = jax.Array

AT_ONCE = 2
"""Slices of one turn of the loop; the turns cost more than an empty slice does."""


def sweep_pull(
    source: Array, weights: Array, bounds: Array, place: Array, more: Array, owner: Array, *, counts: bool
) -> Pull:
    """What arrives by blocks of rows; see `SweepForm` for the arrays.

    Returns:
        A pull for x of shape [N] or [N, B]. It has dynamic loops, and no derivative in reverse mode.
    """
    width, n_blocks = source.shape[1], bounds.shape[0] - 1

    def pull(x: Array) -> tuple[Array, Array | None]:
        per_row = x.ndim > 1
        shape = (width, *x.shape[1:])
        empty = (jnp.zeros(shape, jnp.float32),) * (1 + counts)

        def slices(turn: Array, sums: tuple[Array, ...]) -> tuple[Array, ...]:
            for part in range(AT_ONCE):
                found = taken(x, source[turn * AT_ONCE + part])
                weight = weights[turn * AT_ONCE + part]
                weight = weight[:, None] if per_row else weight
                inflow = sums[0] + found * weight
                sums = (inflow, sums[1] + ((found > 0) & excites(weight))) if counts else (inflow,)
            return sums

        def block(number: Array, rows: tuple[Array, ...]) -> tuple[Array, ...]:
            sums = jax.lax.fori_loop(bounds[number], bounds[number + 1], slices, empty)
            return tuple(
                jax.lax.dynamic_update_slice_in_dim(all_, one[None], number, 0)
                for all_, one in zip(rows, sums, strict=True)
            )

        start = (jnp.zeros((n_blocks, *shape), jnp.float32),) * (1 + counts)
        rows = jax.lax.fori_loop(jnp.int32(0), jnp.int32(n_blocks), block, start)
        sums = tuple(_gathered(found.reshape(-1, *x.shape[1:]), place, more, owner) for found in rows)
        return sums[0], sums[1] if counts else None

    return pull


def _gathered(rows: Array, place: Array, more: Array, owner: Array) -> Array:
    first = taken(rows, place)
    if owner.shape[0] == 0:
        return first
    return first.at[owner].add(taken(rows, more), mode="promise_in_bounds", indices_are_sorted=True)
