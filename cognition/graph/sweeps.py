"""Changes of all edges of a memory graph in one pass: decay, and the deletion of nodes.

Compiled and in place like `edits`, block by block. What is removed leaves no holes: rows are closed block by block,
then the pool rows of each node with more edges than its row holds, whose strongest move up into the row.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
from jax import lax

from . import spill
from .edge_list import SMALLEST
from .layout import EMPTY, NOWHERE, GraphArrays, keys_of, packed_rows, relations_of, strengths_of, targets_of

Array = jax.Array

BLOCK = 256


@functools.partial(jax.jit, donate_argnums=0)
def decay(arrays: GraphArrays, factor: Array, floor: Array) -> tuple[GraphArrays, Array]:
    """Multiply all strengths, and remove the edges that fall below `floor`.

    Args:
        arrays: the graph.
        factor: [] f32, or [MAX_RELATIONS] f32 by number of the relation, in [0, 1].
        floor: [] f32 >= 0, |strength| below which an edge is removed.

    Returns:
        The graph, and [2] i32: its edges, and its nodes with edges in the pool.
    """
    return _swept(arrays, factor, jnp.maximum(floor, SMALLEST), None)


@functools.partial(jax.jit, donate_argnums=0)
def delete_nodes(arrays: GraphArrays, nodes: Array) -> tuple[GraphArrays, Array]:
    """Remove nodes with all edges that leave or reach them.

    Args:
        arrays: the graph.
        nodes: [B] i32, N in empty places.

    Returns:
        The graph, and [2] i32: its edges, and its nodes with edges in the pool.
    """
    lives = jnp.ones(arrays.capacity + 1, bool).at[nodes].set(False)
    arrays = arrays._replace(base=arrays.base.at[nodes].set(0.0), need=arrays.need.at[nodes].set(0))
    return _swept(arrays, jnp.float32(1.0), jnp.float32(SMALLEST), lives)


def _swept(arrays: GraphArrays, factor: Array, floor: Array, lives: Array | None) -> tuple[GraphArrays, Array]:
    capacity, width = arrays.capacity, arrays.width

    def kept(lines: Array) -> tuple[Array, Array, Array]:
        """Keys, strengths and which edges stay, of lines of the graph."""
        keys = keys_of(lines)
        by = factor if factor.ndim == 0 else factor[relations_of(keys)]
        strengths = strengths_of(lines) * by
        stays = (keys != EMPTY) & (jnp.abs(strengths) >= floor)
        if lives is not None:
            stays = stays & lives[jnp.minimum(targets_of(keys), capacity)]
        return keys, strengths, stays

    # hubs are listed first: their degrees are set last
    n_pool = arrays.pool.shape[0]
    is_hub = arrays.out_degree > width
    hubs = jnp.nonzero(is_hub, size=n_pool, fill_value=capacity)[0].astype(jnp.int32)
    n_hubs = jnp.sum(is_hub, dtype=jnp.int32)

    once = jnp.minimum(arrays.n_pool, 1)  # row 0 of the pool is always given out
    block = math.gcd(capacity, BLOCK)

    def close_rows(number: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rows, out_degree, out_strength = carry
        begin = number * block
        at = (begin, jnp.zeros_like(begin))
        (lines,) = spill.settled(once, lambda: (lax.dynamic_slice(rows, at, (block, 2 * width)),))
        keys, strengths, stays = kept(lines)
        if lives is not None:
            stays = stays & lax.dynamic_slice(lives, (begin,), (block,))[:, None]
        keys, strengths = _closed(keys, strengths, stays)
        degree = lax.dynamic_slice(out_degree, (begin,), (block,))
        degree = jnp.where(degree > width, degree, jnp.sum(stays, axis=1, dtype=jnp.int32))
        total = jnp.sum(jnp.abs(strengths), axis=1)
        return (
            lax.dynamic_update_slice(rows, packed_rows(keys, strengths), at),
            lax.dynamic_update_slice(out_degree, degree, (begin,)),
            lax.dynamic_update_slice(out_strength, total, (begin,)),
        )

    stores = (arrays.rows, arrays.out_degree, arrays.out_strength)
    n_blocks = (arrays.n_nodes + block - 1) // block
    rows, out_degree, out_strength = lax.fori_loop(jnp.int32(0), n_blocks, close_rows, stores)

    pool_block = math.gcd(n_pool, BLOCK)

    def thin_pool(number: Array, pool: Array) -> Array:
        begin = number * pool_block
        at = (begin, jnp.zeros_like(begin))
        (lines,) = spill.settled(once, lambda: (lax.dynamic_slice(pool, at, (pool_block, 2 * width)),))
        keys, strengths, stays = kept(lines)
        lines = packed_rows(jnp.where(stays, keys, EMPTY), jnp.where(stays, strengths, 0.0))
        return lax.dynamic_update_slice(pool, lines, at)

    n_blocks = (arrays.n_pool + pool_block - 1) // pool_block
    pool = lax.fori_loop(jnp.int32(0), n_blocks, thin_pool, arrays.pool)
    arrays = arrays._replace(rows=rows, out_degree=out_degree, out_strength=out_strength, pool=pool)

    def close_hub(number: Array, arrays: GraphArrays) -> GraphArrays:
        return _hub_closed(spill.value_at(hubs, number), once, arrays, lives)

    arrays = lax.fori_loop(jnp.int32(0), n_hubs, close_hub, arrays)
    counts = [jnp.sum(arrays.out_degree, dtype=jnp.int32), jnp.sum(arrays.out_degree > width, dtype=jnp.int32)]
    return arrays, jnp.stack(counts)


def _closed(keys: Array, strengths: Array, stays: Array) -> tuple[Array, Array]:
    """[..., K] the edges that stay, in their order and without holes."""
    width = keys.shape[-1]
    place = jnp.cumsum(stays, axis=-1, dtype=jnp.int32) - 1

    def lane(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        # where lane `number` goes; a loop, since all places at once would be [..., K, K]
        keys_after, after = carry
        goes = lax.dynamic_slice_in_dim(stays, number, 1, -1) & (
            lax.dynamic_slice_in_dim(place, number, 1, -1) == spill.lanes(width)
        )
        return (
            jnp.where(goes, lax.dynamic_slice_in_dim(keys, number, 1, -1), keys_after),
            jnp.where(goes, lax.dynamic_slice_in_dim(strengths, number, 1, -1), after),
        )

    start = (jnp.full(keys.shape, EMPTY, jnp.int32), jnp.zeros(keys.shape, jnp.float32))
    closed: tuple[Array, Array] = lax.fori_loop(jnp.int32(0), jnp.int32(width), lane, start)
    return closed


def _hub_closed(node: Array, once: Array, arrays: GraphArrays, lives: Array | None) -> GraphArrays:
    """A node that had edges in the pool: holes there closed, and the strongest moved up into the row."""
    width = arrays.width
    lane = spill.lanes(width)

    def read() -> tuple[Array, ...]:
        columns = (arrays.out_degree, arrays.spill)
        return spill.line_at(arrays.rows, node), *(spill.value_at(column, node) for column in columns)

    line, degree, first = spill.settled(once, read)
    n_rows = (degree - width + width - 1) // width
    stays_whole = jnp.bool(True) if lives is None else spill.value_at(lives, node)
    pool, beyond = _rows_closed(arrays.pool, first, n_rows, once, stays_whole)

    def is_unsettled(carry: tuple[Array, ...]) -> Array:
        return carry[-1]

    def rise(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        """Move the strongest edge of the pool up, if there is room, or in exchange for a weaker one."""
        pool, line, beyond, _, _ = carry
        keys, strengths = keys_of(line), strengths_of(line)
        pool, scan = spill.scanned(pool, first, beyond, jnp.int32(spill.ABSENT))
        sizes = jnp.where(keys == EMPTY, jnp.inf, jnp.abs(strengths))
        n_inside = jnp.sum(keys != EMPTY, dtype=jnp.int32)
        weakest = jnp.min(sizes)
        place = jnp.min(jnp.where(sizes == weakest, lane, width - 1))
        has_room = (beyond > 0) & (n_inside < width)
        swaps = (beyond > 0) & ~has_room & (scan.strongest > weakest)
        here = (has_room & (lane == n_inside)) | (swaps & (lane == place))

        def read_pool() -> tuple[Array, ...]:
            strongest = spill.edge_at(pool, first, jnp.maximum(scan.strongest_slot, 0))
            return *strongest, *spill.edge_at(pool, first, jnp.maximum(beyond - 1, 0))

        best_key, best, last_key, last = spill.settled(once, read_pool)
        falls_key = jnp.where(swaps, spill.chosen(lane == place, keys), last_key)
        falls = jnp.where(swaps, spill.chosen(lane == place, strengths), last)
        pool = spill.with_edge(pool, first, scan.strongest_slot, falls_key, falls, where=has_room | swaps)
        pool = spill.with_edge(pool, first, beyond - 1, jnp.int32(EMPTY), jnp.float32(0.0), where=has_room)
        line = packed_rows(jnp.where(here, best_key, keys), jnp.where(here, best, strengths))
        total = jnp.sum(jnp.abs(strengths_of(line))) + scan.total
        return pool, line, beyond - has_room.astype(jnp.int32), total, has_room | swaps

    start: tuple[Array, ...] = (pool, line, beyond, jnp.float32(0.0), jnp.bool(True))
    pool, line, beyond, total, _ = lax.while_loop(is_unsettled, rise, start)
    inside = jnp.sum(keys_of(line) != EMPTY, dtype=jnp.int32)
    return arrays._replace(
        rows=spill.with_line(arrays.rows, node, line),
        pool=pool,
        spill=spill.with_value(arrays.spill, node, jnp.where(beyond > 0, first, NOWHERE)),
        out_degree=spill.with_value(arrays.out_degree, node, inside + beyond),
        out_strength=spill.with_value(arrays.out_strength, node, total),
    )


def _rows_closed(pool: Array, first: Array, n_rows: Array, once: Array, stays_whole: Array) -> tuple[Array, Array]:
    """The pool with the holes in some rows closed, and [] i32 the edges in them.

    Edges are read row by row into a buffer of two rows, whose first is written once it is full. It is written to a row
    that was read already, as there are never more edges than places read.
    """
    width = pool.shape[1] // 2
    places = jnp.arange(2 * width, dtype=jnp.int32)

    def row(number: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        pool, keys_left, left, n_left, written = carry
        (line,) = spill.settled(once, lambda: (spill.line_at(pool, first + number),))
        stays = (keys_of(line) != EMPTY) & stays_whole
        keys, strengths = _closed(keys_of(line), strengths_of(line), stays)
        n_all = n_left + jnp.sum(stays, dtype=jnp.int32)
        at = jnp.clip(places - n_left, 0, width - 1)
        is_new = places >= n_left
        is_kept = places < n_all
        old = jnp.minimum(places, width - 1)
        keys_all = jnp.where(is_kept, jnp.where(is_new, keys[at], keys_left[old]), EMPTY)
        all_ = jnp.where(is_kept, jnp.where(is_new, strengths[at], left[old]), 0.0)
        is_full = n_all >= width
        pool = spill.with_line(pool, first + written, packed_rows(keys_all[:width], all_[:width]))
        return (
            pool,
            jnp.where(is_full, keys_all[width:], keys_all[:width]),
            jnp.where(is_full, all_[width:], all_[:width]),
            jnp.where(is_full, n_all - width, n_all),
            written + is_full.astype(jnp.int32),
        )

    start = (pool, jnp.full(width, EMPTY, jnp.int32), jnp.zeros(width, jnp.float32), jnp.int32(0), jnp.int32(0))
    pool, keys, left, n_left, written = lax.fori_loop(jnp.int32(0), n_rows, row, start)
    full = written

    def finish(number: Array, pool: Array) -> Array:
        line = jnp.where(number == full, packed_rows(keys, left), spill.empty_line(width))
        return spill.with_line(pool, first + number, line)

    return lax.fori_loop(full, n_rows, finish, pool), full * width + n_left
