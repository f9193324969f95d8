"""What goes into a compiled call and what comes out, packed: a call costs as much as a hundred edges for each array.

Sources are one int32 array [..., 3, F]: nodes (-1 = none), bits of the values, rounds. A result is one int32 array
[..., 3 top + 3]: nodes, bits of the values, bits of raw, then how many are active, rounds, and bits of the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..result import NOBODY, Activation, Dropped
from ..rule import RuleCode, RuleParams
from ..sources import Sources
from .rounds import End, Inject, Nodes

Array = jax.Array
IntArray = npt.NDArray[np.int32]

N_NUMBERS = 6
FEWEST_SOURCES = 8
MOST_INLINE = 64
"""Nodes up to which a call stays in its thread, see `_statistics`."""
SMALLEST = np.finfo(np.float32).tiny
"""At least as much is above 0: smaller numbers are 0 to XLA."""
NO_SOURCES = np.array([[NOBODY], [0], [0]], np.int32)
"""Packed sources of nobody; broadcasts with others."""


def bucket(size: int, least: int = 1) -> int:
    """The power of two that holds `size`, at least `least`."""
    return max(least, 1 << max(0, size - 1).bit_length())


def stepped(size: int) -> int:
    """The smallest m 2^k with 8 <= m < 16 that holds `size`, at most an eighth more; `size` itself below 16."""
    if size < 16:
        return size
    step = bucket(size + 1) // 16
    return -(-size // step) * step


def packed_numbers(params: RuleParams) -> npt.NDArray[np.float32]:
    """[N_NUMBERS] f32: the numbers of a rule that rounds read."""
    numbers = (params.threshold, params.cap, params.leak, params.restart, params.softness, params.tolerance)
    return np.array(numbers, np.float32)


def numbers_of(packed: Array, *, leaks: bool = True) -> RuleParams:
    """The parameters of a rule whose weights and retention are folded into a form.

    Args:
        packed: see `packed_numbers`.
        leaks: whether `leak` is not 0, else nothing is compiled for it.
    """
    threshold, cap, leak, restart, softness, tolerance = (packed[number] for number in range(N_NUMBERS))
    return RuleParams(None, threshold, cap, leak if leaks else 0.0, restart, softness, tolerance, None, None)


def nodes_of(columns: Array) -> Nodes:
    """The columns of [..., 4, N]."""
    return Nodes(columns[..., 0, :], columns[..., 1, :], columns[..., 2, :], columns[..., 3, :])


def dense_sources(sources: Sources, size: int) -> npt.NDArray[np.float32]:
    """[size] f32: what is injected into each node, all at once."""
    # node -1, which is none, is the first
    return np.bincount(sources.nodes + 1, sources.values, size + 1)[1:].astype(np.float32)


def packed_sources(sources: Sources) -> IntArray:
    """[3, F] i32, or [B, 3, F] for sources with a leading axis; F is a power of two."""
    nodes = sources.nodes
    n_entries = nodes.shape[-1]
    packed = np.zeros((*nodes.shape[:-1], 3, bucket(n_entries, FEWEST_SOURCES)), np.int32)
    packed[..., 0, n_entries:] = NOBODY
    packed[..., 0, :n_entries] = nodes
    packed[..., 1, :n_entries].view(np.float32)[...] = sources.values
    packed[..., 2, :n_entries] = sources.rounds
    return packed


def batch_of(
    sources: Sources | Sequence[Any],
    n_nodes: Sequence[int],
    rounds: int,
    is_node: Sequence[npt.NDArray[np.bool_] | None],
) -> Sources:
    """Sources of many queries with a leading axis [B].

    Args:
        sources: a sequence of what `Sources.of` takes; or `Sources` with a leading axis, taken as checked.
        n_nodes: nodes of the graph of each query, or of the one graph of all.
        rounds: of the rule.
        is_node: which numbers are nodes, None for all, of the graph of each query, or of the one graph of all.

    Raises:
        TypeError, ValueError: an entry is wrong, with the number of its query.
    """
    if isinstance(sources, Sources):
        if np.ndim(sources.nodes) != 2:
            raise ValueError(
                f"`sources` of many queries must have shape [queries, entries], got {np.shape(sources.nodes)}."
            )
        return sources
    if isinstance(sources, str | Mapping) or not isinstance(sources, Sequence | np.ndarray):
        raise TypeError(f"`sources` must be a sequence with an entry for each query, got {type(sources).__name__}.")
    if not len(sources):
        raise ValueError("`sources` must have an entry for at least one query, got none.")
    found = []
    for number, one in enumerate(sources):
        try:
            at = number if len(n_nodes) > 1 else 0
            found.append(Sources.of(one, n_nodes[at], rounds=rounds, is_node=is_node[at]))
        except (TypeError, ValueError) as error:
            raise type(error)(f"query {number}: {error}") from error
    longest = max(len(one.nodes) for one in found)
    return Sources(*(np.stack(parts) for parts in zip(*(one.padded(longest) for one in found), strict=True)))


def injection(packed: Array, size: int, *, is_timed: bool, nodes_first: bool = False) -> Inject:
    """What sources inject, as [N], [B, N], or [N, B] with `nodes_first`.

    Args:
        packed: [3, F] or [B, 3, F] i32; or [N] f32, which is injected before the first round as it is.
        size: N.
        is_timed: whether any round is not 0; else rounds are not read.
        nodes_first: see above.
    """
    if packed.ndim == 1:
        return lambda number: packed
    nodes, rounds = packed[..., 0, :], packed[..., 2, :]
    values = jax.lax.bitcast_convert_type(packed[..., 1, :], jnp.float32)
    shape: tuple[int, ...] = (size,)
    places = nodes
    if packed.ndim == 3:
        query = jnp.arange(packed.shape[0], dtype=jnp.int32)[:, None]
        shape = (size, packed.shape[0]) if nodes_first else (packed.shape[0], size)
        places = nodes * packed.shape[0] + query if nodes_first else query * size + nodes
    n_places = size * (packed.shape[0] if packed.ndim == 3 else 1)
    places = jnp.where(nodes < 0, n_places, places).reshape(-1)

    def inject(number: Any) -> Array:
        now = jnp.where(rounds == number, values, 0.0) if is_timed else values
        return jnp.zeros(n_places, jnp.float32).at[places].add(now.reshape(-1), mode="drop").reshape(shape)

    return inject


def packed_result(end: End, params: RuleParams, code: RuleCode, top: int, *, nodes_first: bool = False) -> Array:
    """[..., 3 top + 3] i32, see the head of this module."""
    if nodes_first:
        end = end._replace(before=end.before.T, activation=end.activation.T, raw=end.raw.T)
    threshold = jnp.maximum(params.threshold, SMALLEST)
    nodes, raw = _ranked(end, threshold, top)
    values = jnp.minimum(raw, params.cap) if code.is_capped else raw
    n_active, change = _statistics(end.activation, end.before, threshold)
    shape = n_active.shape
    bits = jax.lax.bitcast_convert_type(jnp.concatenate([values, raw, change[..., None]], axis=-1), jnp.int32)
    whole = jnp.stack([n_active, end.rounds.reshape(shape)], axis=-1)
    return jnp.concatenate([nodes, bits[..., : 2 * top], whole, bits[..., 2 * top :]], axis=-1)


def _ranked(end: End, threshold: Array, top: int) -> tuple[Array, Array]:
    """The most active nodes, [..., top] i32, and their raw activation."""
    size = end.raw.shape[-1]
    ranks = jnp.where(end.activation >= threshold, end.raw, 0.0)
    raw, nodes = jax.lax.top_k(ranks, min(top, size))  # lower numbers first among equals
    nodes = jnp.where(raw > 0, nodes.astype(jnp.int32), NOBODY)
    if top > size:
        missing = [(0, 0)] * (raw.ndim - 1) + [(0, top - size)]
        nodes, raw = jnp.pad(nodes, missing, constant_values=NOBODY), jnp.pad(raw, missing)
    return nodes, raw


def _statistics(activation: Array, before: Array, threshold: Array) -> tuple[Array, Array]:
    """[...] how many nodes are active, and the largest change of one."""
    if activation.ndim > 1 or activation.shape[0] != MOST_INLINE:
        n_active = jnp.sum(activation >= threshold, axis=-1, dtype=jnp.int32)
        return n_active, jnp.max(jnp.abs(activation - before), axis=-1)
    # XLA runs a call in the thread that makes it, which saves 10 us, if it counts less than 1,000 operations on
    # numbers in it, those of a loop once: so the largest of the small sizes is looked at in parts
    parts = activation.reshape(4, -1), before.reshape(4, -1)

    def part(number: Array, so_far: tuple[Array, Array]) -> tuple[Array, Array]:
        after, earlier = parts[0][number], parts[1][number]
        n_active = so_far[0] + jnp.sum(after >= threshold, dtype=jnp.int32)
        return n_active, jnp.maximum(so_far[1], jnp.max(jnp.abs(after - earlier)))

    found: tuple[Array, Array] = jax.lax.fori_loop(0, 4, part, (jnp.int32(0), jnp.zeros((), before.dtype)))
    return found


NOTHING_DROPPED = Dropped(np.int32(0), np.int32(0), np.int32(0), np.int32(0))


def unpacked_result(packed: IntArray, top: int) -> Activation:
    """The result as NumPy arrays."""
    floats = packed.view(np.float32)
    dropped = NOTHING_DROPPED
    if packed.ndim > 1:
        dropped = Dropped(*(np.zeros(packed.shape[:-1], np.int32) for _ in Dropped._fields))
    return Activation(
        packed[..., :top],
        floats[..., top : 2 * top],
        floats[..., 2 * top : 3 * top],
        packed[..., 3 * top],
        packed[..., 3 * top + 1],
        floats[..., 3 * top + 2],
        dropped,
    )
