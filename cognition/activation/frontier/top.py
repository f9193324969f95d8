"""The most active of the reached nodes, without sorting them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...graph.edge_list import MAX_NODES
from ..result import NOBODY
from .state import IN_BOUNDS

Array = jax.Array

SMALLEST_NORMAL = 1 << 23
"""Bits of the smallest float that is not denormal."""


class Top(NamedTuple):
    """The most active by (raw downwards, number upwards).

    Attributes:
        place: [top] i32, their places.
        node: [top] i32, NOBODY where there is none.
        raw: [top] f32, 0 where there is none.
    """

    place: Array
    node: Array
    raw: Array


def top_of(raw: Array, node: Array, is_active: Array, top: int) -> Top:
    """The `top` most active of [P] places."""
    size = min(top, raw.shape[0])
    masked = jnp.where(is_active, raw, -1.0)
    found, place = jax.lax.top_k(masked, size)
    place = place.astype(jnp.int32)
    last = jnp.min(found)  # found[-1] would make XLA sort all places instead of searching for the best
    is_last = (masked == last) & is_active
    n_tied = jnp.sum(is_last, dtype=jnp.int32)
    n_better = jnp.sum(found > last, dtype=jnp.int32)

    def smallest_numbers() -> Array:
        """Of those that equal the last one, who of them is in depends on the numbers."""
        # as the bits of floats, whose order is the same: of whole numbers XLA's top_k sorts all, 80 times slower
        bits = jnp.where(is_last, SMALLEST_NORMAL + MAX_NODES - node, SMALLEST_NORMAL)
        _, tied = jax.lax.top_k(jax.lax.bitcast_convert_type(bits, jnp.float32), size)
        at = jnp.arange(size, dtype=jnp.int32)
        follows = tied.astype(jnp.int32).at[jnp.maximum(at - n_better, 0)].get(mode=IN_BOUNDS)
        return jnp.where(at < n_better, place, follows)

    place = jax.lax.cond(n_better + n_tied > size, smallest_numbers, lambda: place)
    number = jnp.where(found > 0, node.at[place].get(mode=IN_BOUNDS), jnp.int32(2**31 - 1))
    # `top` is short: each counts who goes before it
    equal = found[:, None] == found[None, :]
    goes_before = (found[None, :] > found[:, None]) | (equal & (number[None, :] < number[:, None]))
    at = jnp.arange(size, dtype=jnp.int32)
    goes_before |= equal & (number[None, :] == number[:, None]) & (at[None, :] < at[:, None])
    rank = jnp.sum(goes_before, axis=1, dtype=jnp.int32)
    order = jnp.zeros(size, jnp.int32).at[rank].set(at, mode=IN_BOUNDS)
    place, found, number = (part.at[order].get(mode=IN_BOUNDS) for part in (place, found, number))
    is_there = found > 0
    missing = (0, top - size)
    return Top(
        jnp.pad(place, missing),
        jnp.pad(jnp.where(is_there, number, NOBODY), missing, constant_values=NOBODY),
        jnp.pad(jnp.where(is_there, found, 0.0), missing),
    )
