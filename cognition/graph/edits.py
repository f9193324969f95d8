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

from . import spill
from .edge_list import SMALLEST
from .layout import EMPTY, NOWHERE, GraphArrays, keys_of, packed_rows, strengths_of

Array = jax.Array
Mode = Literal["add", "set", "delete"]

# marks of a degree while a batch is written
_REFUSED = 1 << 30
_WAITS = 1 << 29
_DEGREE = _WAITS - 1

_Columns = tuple[Array, Array, Array]


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


class _Quick(NamedTuple):
    """While edges of nodes whose row suffices are written.

    Attributes:
        columns: rows, out_degree and out_strength of the graph.
        following: row and degree of the node of the next edge.
        waiting: [B] i32, places of the edges that wait, of which the first `n_waiting` count.
        n_waiting: [] i32.
        changed: [] i32, edges made, or removed where the mode is "delete"; nothing else happens to rows here.
    """

    columns: _Columns
    following: tuple[Array, Array]
    waiting: Array
    n_waiting: Array
    changed: Array


@functools.partial(jax.jit, static_argnames="mode", donate_argnums=0)
def write_edges(arrays: GraphArrays, batch: EdgeBatch, *, mode: Mode) -> tuple[GraphArrays, Written]:
    """Write edges in their order.

    Args:
        arrays: the graph.
        batch: edges from nodes of the graph; entries of source N do nothing.
        mode: "add" makes W = clip(W + strength, -1, 1), with 0 for the W of a new edge; "set" makes W = strength;
            "delete" removes. An edge whose strength becomes 0 is removed.
    """
    places = batch.source.shape[0]
    zero = _met(arrays, batch)

    def quick(number: Array, carry: _Quick) -> _Quick:
        return _write_in_row(number, carry, batch, mode)

    columns = arrays.rows, arrays.out_degree, arrays.out_strength
    start = _Quick(columns, _read(columns, batch.source[0]), jnp.full(places, zero), zero, zero)
    done = spill.repeated(batch.n, quick, start)
    rows, out_degree, out_strength = done.columns
    arrays = arrays._replace(rows=rows, out_degree=out_degree, out_strength=out_strength)
    once = jnp.minimum(done.n_waiting, 1)

    def slow(place: Array, carry: tuple[GraphArrays, Written]) -> tuple[GraphArrays, Written]:
        return _write_anywhere(spill.value_at(done.waiting, place), once, *carry, batch, mode)

    made_and_removed = [zero, done.changed] if mode == "delete" else [done.changed, zero]
    counts = jnp.stack([*made_and_removed, zero, zero])
    arrays, written = spill.repeated(done.n_waiting, slow, (arrays, Written(jnp.full(places, zero > 0), counts)))

    def unmark(place: Array, out_degree: Array) -> Array:
        node = spill.value_at(batch.source, spill.value_at(done.waiting, place))
        return spill.with_value(out_degree, node, spill.value_at(out_degree, node) & _DEGREE)

    n_marked = jnp.where(written.counts[2] > 0, done.n_waiting, 0)
    return arrays._replace(out_degree=spill.repeated(n_marked, unmark, arrays.out_degree)), written


def _met(arrays: GraphArrays, batch: EdgeBatch) -> Array:
    """[] i32: 0, which the compiler does not know (see `spill.repeated`), from a look at all that the batch will read.

    Here the reads do not wait for each other, so that far ones come together; the loops then find them near.
    """
    read = arrays.rows[batch.source, 0], arrays.out_degree[batch.source], arrays.out_strength[batch.source]
    least = [jnp.min(column).astype(jnp.int32) for column in read]  # keys, degrees and sums are never below 0
    zero: Array = functools.reduce(jnp.minimum, least, jnp.int32(0))
    return zero


def _edge(batch: EdgeBatch, number: Array, mode: Mode) -> tuple[Array, Array, Array]:
    """[] node, key and strength of an edge; a deletion does not read what it has no use for."""
    node, key = spill.value_at(batch.source, number), spill.value_at(batch.key, number)
    return node, key, jnp.float32(0.0) if mode == "delete" else spill.value_at(batch.strength, number)


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


def _read(columns: _Columns, node: Array) -> tuple[Array, Array]:
    """[2K] row and [] degree of a node."""
    return spill.line_at(columns[0], node), spill.value_at(columns[1], node)


def _write_in_row(number: Array, carry: _Quick, batch: EdgeBatch, mode: Mode) -> _Quick:
    """One edge of a node that has all its edges in its row; others wait, and mark the node so that later ones do too.

    The row was read in the turn before, after that turn's write: what was carried is read once; the compiler would
    repeat a read of the arrays for each of its uses, and copy them to have it before the write. One reduction finds the
    place, because each costs as much as all the rest.
    """
    (rows, out_degree, out_strength), (line, degree), waiting, n_waiting, changed = carry
    width = rows.shape[1] // 2
    lane = spill.lanes(width)
    node, key, strength = _edge(batch, number, mode)
    keys, strengths = keys_of(line), strengths_of(line)
    is_it, is_free = keys == key, keys == EMPTY
    wanted = _wanted(jnp.where(is_it, strengths, 0.0), strength, mode)
    full, waits = 2 * width, -1
    found = jnp.where(is_it, lane, jnp.where(is_free, width + lane, full))
    if mode != "delete":
        found = jnp.where(is_it & (wanted == 0), waits, found)
    place = jnp.where(degree > width, waits, jnp.min(found))  # a mark is more than any width
    is_there = (place >= 0) & (place < width)
    if mode == "delete":
        makes, waits_now, removes = jnp.bool(False), place < 0, is_there
        is_last = lane == degree - 1
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
    made, removed, waited = (flag.astype(jnp.int32) for flag in (makes, removes, waits_now))
    total = jnp.where(waits_now, spill.value_at(out_strength, node), jnp.sum(jnp.abs(after)))
    columns = (
        spill.with_line(rows, node, packed_rows(keys_after, after)),
        spill.with_value(out_degree, node, (degree + made - removed) | (waited * _WAITS)),
        spill.with_value(out_strength, node, total),
    )
    following = spill.value_at(batch.source, jnp.minimum(number + 1, batch.source.shape[0] - 1))
    return _Quick(
        columns,
        _read(columns, following),
        spill.with_value(waiting, n_waiting, number),
        n_waiting + waited,
        changed + made + removed,
    )


def _write_anywhere(
    number: Array, once: Array, arrays: GraphArrays, written: Written, batch: EdgeBatch, mode: Mode
) -> tuple[GraphArrays, Written]:
    """One edge of any node. The row keeps the node's strongest edges."""
    width = arrays.width
    lane = spill.lanes(width)
    node, key, strength = _edge(batch, number, mode)

    def read() -> tuple[Array, ...]:
        columns = (arrays.out_degree, arrays.out_strength, arrays.spill)
        return spill.line_at(arrays.rows, node), *(spill.value_at(column, node) for column in columns)

    line, marked, before, first = spill.settled(once, read)
    keys, strengths = keys_of(line), strengths_of(line)
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
        out_degree=spill.with_value(arrays.out_degree, node, degree_after | (marked & _REFUSED) | (lost * _REFUSED)),
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
