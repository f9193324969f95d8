"""Changes of a memory graph as compiled functions that work in place.

Each takes `GraphArrays` and gives back the changed ones; the given ones are used up (donated) where it is called from
outside compiled code. They trust their arguments: `MemoryGraph` is where they are checked.

Edges are written one after the other, so that a batch means what its edges mean one by one. Edges of nodes whose row
suffices go first; those of nodes that need the pool, or come to need it, wait and follow in their order. The order
between edges of different nodes makes no difference.
"""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from . import spill
from .layout import EMPTY, NOWHERE, GraphArrays, keys_of, packed_rows, strengths_of

Array = jax.Array
Mode = Literal["add", "set", "delete"]

SMALLEST = 2.0**-126
"""|strength| below which an edge counts as 0: f32 has no normal number there, and processors round it differently."""

_WAITS = -(1 << 31)  # marks the first key of a row while a batch is written
_REFUSED = 1 << 30  # marks a degree
_DEGREE = _REFUSED - 1


class EdgeBatch(NamedTuple):
    """Edges to write; B places, of which the first `n` count.

    Attributes:
        source: [B] i32, node numbers.
        key: [B] i32, packed keys (`layout.packed_keys`).
        strength: [B] f32.
        n: [] i32.
    """

    source: Any
    key: Any
    strength: Any
    n: Any


class Written(NamedTuple):
    """What became of a batch.

    Attributes:
        refused: [B] bool, edges that are not stored because the pool is full; once one of a node is refused, so are the
            following ones of that node, so that writing these again in a larger pool is exact.
        counts: [4] i32: edges made, edges removed, edges refused, change of the number of nodes with edges in the pool.
    """

    refused: Array
    counts: Array


@functools.partial(jax.jit, static_argnames="mode", donate_argnums=0)
def write_edges(arrays: GraphArrays, batch: EdgeBatch, *, mode: Mode) -> tuple[GraphArrays, Written]:
    """Write edges in their order.

    Args:
        arrays: the graph.
        batch: edges from nodes of the graph; entries of source N do nothing.
        mode: "add" makes W = clip(W + strength, -1, 1), with 0 for the W of a new edge; "set" makes W = strength;
            "delete" removes. An edge whose strength becomes 0 is removed.
    """
    places = jnp.arange(batch.source.shape[0], dtype=jnp.int32)
    source, zero, width = batch.source, jnp.int32(0), arrays.width
    has_spilled = (arrays.out_degree[source] > width) & (places < batch.n)
    first_keys = arrays.rows[source, 0]
    rows = arrays.rows.at[source, 0].set(jnp.where(has_spilled, first_keys | _WAITS, first_keys))
    effects = jnp.zeros(batch.source.shape, jnp.int32)

    def quick(number: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        return _write_in_row(number, carry, batch, mode)

    start = (rows, spill.line_at(rows, source[0]), effects)
    rows, _, effects = lax.fori_loop(zero, batch.n, quick, start)

    lines = rows[source]
    degree, total = arrays.out_degree[source], arrays.out_strength[source]
    counted = jnp.sum(keys_of(lines) != EMPTY, axis=1, dtype=jnp.int32)
    summed = jnp.sum(jnp.abs(strengths_of(lines)), axis=1)
    arrays = arrays._replace(
        rows=rows,
        out_degree=arrays.out_degree.at[source].set(jnp.where(degree > width, degree, counted)),
        out_strength=arrays.out_strength.at[source].set(jnp.where(degree > width, total, summed)),
    )
    waits = effects == _WAITS
    n_waiting = jnp.sum(waits, dtype=jnp.int32)
    order = jnp.cumsum(waits, dtype=jnp.int32) - 1
    waiting = jnp.zeros_like(places).at[jnp.where(waits, order, len(places))].set(places, mode="drop")
    made, removed = (jnp.sum(effects == effect, dtype=jnp.int32) for effect in (1, -1))
    once = jnp.minimum(n_waiting, 1)

    def slow(place: Array, carry: tuple[GraphArrays, Written]) -> tuple[GraphArrays, Written]:
        return _write_anywhere(spill.value_at(waiting, place), once, *carry, batch, mode)

    counts = jnp.stack([made, removed, zero, zero])
    written = Written(jnp.zeros(places.shape, bool), counts)
    arrays, written = lax.fori_loop(jnp.int32(0), n_waiting, slow, (arrays, written))
    out_degree = arrays.out_degree.at[source].set(arrays.out_degree[source] & _DEGREE)
    return arrays._replace(out_degree=out_degree), written


def _wanted(old: Array, strength: Array, mode: Mode) -> Array:
    """[] f32: the strength after writing."""
    match mode:
        case "add":
            wanted = jnp.clip(old + strength, -1.0, 1.0)
        case "set":
            wanted = strength
        case "delete":
            wanted = jnp.zeros_like(old)
    return jnp.where(jnp.abs(wanted) < SMALLEST, 0.0, wanted)


def _write_in_row(
    number: Array, carry: tuple[Array, Array, Array], batch: EdgeBatch, mode: Mode
) -> tuple[Array, Array, Array]:
    """One edge of a node that has all its edges in its row; others wait, and mark the row so that later ones do too.

    The row was read in the turn before, after that turn's write: what was carried is read once; the compiler would
    repeat a read of the arrays for each of its uses, and copy them to have it before the write. One reduction finds the
    place, because each costs as much as all the rest.
    """
    rows, line, effects = carry
    width = rows.shape[1] // 2
    lane = spill.lanes(width)
    node, key, strength = (spill.value_at(column, number) for column in batch[:3])
    keys, strengths = keys_of(line), strengths_of(line)
    is_it, is_free = keys == key, keys == EMPTY
    wanted = _wanted(jnp.where(is_it, strengths, 0.0), strength, mode)
    full, waits = 2 * width, -1
    found = jnp.where(is_it, lane, jnp.where(is_free, width + lane, full))
    found = jnp.where(keys < 0, waits, found)
    if mode != "delete":
        found = jnp.where(is_it & (wanted == 0), waits, found)
    place = jnp.min(found)
    is_there = (place >= 0) & (place < width)
    if mode == "delete":
        makes, waits_now, removes = jnp.bool(False), place < 0, is_there
        is_last = lane == jnp.sum(~is_free, dtype=jnp.int32) - 1
        filled = removes & is_it
        keys_after = jnp.where(filled, spill.chosen(is_last, keys), keys)
        after = jnp.where(filled, spill.chosen(is_last, strengths), strengths)
        keys_after = jnp.where(removes & is_last, EMPTY, keys_after)
        after = jnp.where(removes & is_last, 0.0, after)
    else:
        is_edge = (_wanted(jnp.zeros_like(strength), strength, mode) != 0) & (node < rows.shape[0] - 1)
        makes, removes = (place >= width) & (place < full) & is_edge, jnp.bool(False)
        waits_now = (place < 0) | ((place == full) & is_edge)
        here = (is_there & (lane == place)) | (makes & (lane == place - width))
        keys_after, after = jnp.where(here, key, keys), jnp.where(here, wanted, strengths)
    keys_after = jnp.where(waits_now & (lane == 0), keys_after | _WAITS, keys_after)
    effect = jnp.where(waits_now, _WAITS, makes.astype(jnp.int32) - removes.astype(jnp.int32))
    rows = spill.with_line(rows, node, packed_rows(keys_after, after))
    following = spill.value_at(batch.source, jnp.minimum(number + 1, batch.source.shape[0] - 1))
    return rows, spill.line_at(rows, following), spill.with_value(effects, number, effect)


def _write_anywhere(
    number: Array, once: Array, arrays: GraphArrays, written: Written, batch: EdgeBatch, mode: Mode
) -> tuple[GraphArrays, Written]:
    """One edge of any node. The row keeps the node's strongest edges."""
    width = arrays.width
    lane = spill.lanes(width)
    node, key, strength = (spill.value_at(column, number) for column in batch[:3])

    def read() -> tuple[Array, ...]:
        columns = (arrays.out_degree, arrays.out_strength, arrays.spill)
        return spill.line_at(arrays.rows, node), *(spill.value_at(column, node) for column in columns)

    line, marked, before, first = spill.settled(once, read)
    keys, strengths = keys_of(line) & ~_WAITS, strengths_of(line)
    sizes = jnp.abs(strengths)
    degree = marked & _DEGREE
    beyond = jnp.maximum(degree - width, 0)
    pool, scan = spill.scanned(arrays.pool, first, beyond, key)

    is_it = keys == key
    in_row, in_pool = jnp.any(is_it), scan.slot >= 0
    is_there = in_row | in_pool
    wanted = _wanted(spill.chosen(is_it, strengths) + scan.strength, strength, mode)
    is_edge = wanted != 0

    # a new edge may need a new row, and the row a segment twice as long
    n_rows = beyond // width
    is_full = (beyond % width == 0) & ((n_rows & (n_rows - 1)) == 0)
    needs = ~is_there & is_edge & (degree >= width) & is_full
    is_at_end = (n_rows > 0) & (first + n_rows == arrays.n_pool)
    rows_more = jnp.where(is_at_end, n_rows, jnp.maximum(2 * n_rows, 1))
    refused = ((marked & _REFUSED) != 0) | (needs & (arrays.n_pool + rows_more > pool.shape[0]))
    needs = needs & ~refused
    moves = needs & ~is_at_end
    pool = spill.moved_rows(pool, first, arrays.n_pool, jnp.where(moves, n_rows, 0))
    first = jnp.where(moves, arrays.n_pool, first)

    makes = ~refused & ~is_there & is_edge
    removes = ~refused & is_there & ~is_edge
    changes = ~refused & is_there & is_edge
    size = jnp.abs(wanted)
    weakest = jnp.min(jnp.where(keys == EMPTY, jnp.inf, sizes))
    weakest_lane = jnp.min(jnp.where((sizes == weakest) & (keys != EMPTY), lane, width - 1))
    is_weakest = lane == weakest_lane
    has_room, spilled = degree < width, beyond > 0

    def read_pool() -> tuple[Array, ...]:
        strongest = spill.edge_at(pool, first, jnp.maximum(scan.strongest_slot, 0))
        return *strongest, *spill.edge_at(pool, first, jnp.maximum(beyond - 1, 0))

    best_key, best, last_key, last = spill.settled(once, read_pool)
    is_last = lane == degree - 1

    # what goes into the row, and where
    rises = ((changes & in_pool) | (makes & ~has_room)) & (size > weakest)
    from_pool = in_row & spilled & (removes | (changes & (scan.strongest > size)))
    closes = removes & in_row & ~spilled
    written_here = (changes & is_it & ~from_pool) | (makes & has_room & (lane == degree)) | (rises & is_weakest)
    replaced = from_pool & is_it
    keys_after = jnp.where(written_here, key, jnp.where(replaced, best_key, keys))
    after = jnp.where(written_here, wanted, jnp.where(replaced, best, strengths))
    keys_after = jnp.where(closes & is_it, spill.chosen(is_last, keys), keys_after)
    after = jnp.where(closes & is_it, spill.chosen(is_last, strengths), after)
    keys_after = jnp.where(closes & is_last, EMPTY, keys_after)
    after = jnp.where(closes & is_last, 0.0, after)

    # what goes into the pool: a removed edge's place is taken by the last one
    shrinks = removes & spilled
    falls_key = jnp.where(rises, spill.chosen(is_weakest, keys), jnp.where(shrinks, last_key, key))
    falls = jnp.where(rises, spill.chosen(is_weakest, strengths), jnp.where(shrinks, last, wanted))
    slot = jnp.where(in_row, scan.strongest_slot, jnp.where(in_pool, scan.slot, beyond))
    writes = jnp.where(in_row, from_pool, ((changes | removes) & in_pool) | (makes & ~has_room))
    pool = spill.with_edge(pool, first, slot, falls_key, falls, where=writes)
    nothing = (jnp.int32(EMPTY), jnp.float32(0.0))
    pool = spill.with_edge(pool, first, beyond - 1, *nothing, where=shrinks)

    made, gone, lost = (flag.astype(jnp.int32) for flag in (makes, removes, refused))
    degree_after = degree + made - gone
    now_spilled = degree_after > width
    others = jnp.sum(jnp.where(is_it, 0.0, sizes)) + scan.total
    total = jnp.where(refused, before, others + size)
    change = now_spilled.astype(jnp.int32) - spilled.astype(jnp.int32)
    arrays = arrays._replace(
        rows=spill.with_line(arrays.rows, node, packed_rows(keys_after, after)),
        pool=pool,
        spill=spill.with_value(arrays.spill, node, jnp.where(now_spilled, first, NOWHERE)),
        out_degree=spill.with_value(arrays.out_degree, node, degree_after | (marked & ~_DEGREE) | (lost * _REFUSED)),
        out_strength=spill.with_value(arrays.out_strength, node, total),
        n_pool=arrays.n_pool + jnp.where(needs, rows_more, 0),
    )
    counts = written.counts + jnp.stack([made, gone, lost, change])
    return arrays, Written(spill.with_value(written.refused, number, refused), counts)


@functools.partial(jax.jit, donate_argnums=0)
def add_nodes(arrays: GraphArrays, nodes: Array, base: Array, need: Array) -> GraphArrays:
    """Give numbers to nodes.

    Args:
        arrays: the graph.
        nodes: [B] i32, numbers without a node; N in empty places.
        base: [B] f32 in [0, 1], 0 in empty places.
        need: [B] i32 >= 0, 0 in empty places.
    """
    highest = jnp.max(jnp.where(nodes < arrays.capacity, nodes, -1), initial=-1)
    return arrays._replace(
        base=arrays.base.at[nodes].set(base),
        need=arrays.need.at[nodes].set(need),
        n_nodes=jnp.maximum(arrays.n_nodes, highest + 1),
    )


@functools.partial(jax.jit, static_argnames="capacity")
def with_capacity(arrays: GraphArrays, capacity: int) -> GraphArrays:
    """A copy with room for more nodes; the row of nobody becomes the last one again."""
    more = capacity - arrays.capacity
    width = arrays.width
    rows = jnp.concatenate([arrays.rows, jnp.broadcast_to(spill.empty_line(width), (more, 2 * width))])

    def longer(column: Array) -> Array:
        return jnp.concatenate([column, jnp.zeros(more, column.dtype)])

    return GraphArrays(
        rows=rows,
        pool=arrays.pool,
        spill=longer(arrays.spill),
        out_degree=longer(arrays.out_degree),
        out_strength=longer(arrays.out_strength),
        base=longer(arrays.base),
        need=longer(arrays.need),
        n_nodes=arrays.n_nodes,
        n_pool=arrays.n_pool,
    )


@jax.jit
def with_pool_rows(pool: Array, chosen: Array) -> Array:
    """[Q', 2K] a pool of the chosen rows of `pool`; [Q'] i32, 0 for an empty row."""
    return pool[chosen]
