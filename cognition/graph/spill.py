"""Reading and writing the pool rows of one node inside compiled code.

Every function that changes the pool takes it and gives it back, and a write depends on what was read before it: so the
compiler can work in place. `first` is the node's first pool row; a slot counts its edges in the pool from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from .layout import EMPTY, keys_of, packed_rows, strengths_of

Array = jax.Array

ABSENT = -1

TRIED = ((0, 10),)
"""Versions of JAX in which `repeated` makes native loops."""

T = TypeVar("T")


class Scan(NamedTuple):
    """What a node has in the pool; all []. "Others" are its edges there without the one that was looked for.

    Attributes:
        slot: i32, slot of the edge that was looked for, ABSENT if it is not there.
        strength: f32, its strength, 0 if it is not there.
        strongest_slot: i32, slot of the strongest other, ABSENT if there is none.
        strongest: f32, its |strength|, -1 if there is none.
        total: f32, sum of |strength| of all others, exact to a few units in the last place.
    """

    slot: Array
    strength: Array
    strongest_slot: Array
    strongest: Array
    total: Array


def line_at(lines: Array, index: Array) -> Array:
    """[2K] row `index` of [M, 2K]."""
    return lax.dynamic_slice(lines, (index, jnp.zeros_like(index)), (1, lines.shape[1]))[0]


def with_line(lines: Array, index: Array, line: Array) -> Array:
    """[M, 2K] with `line` as row `index`."""
    return lax.dynamic_update_slice(lines, line[None], (index, jnp.zeros_like(index)))


def value_at(column: Array, index: Array) -> Array:
    """[] entry `index` of a column."""
    return lax.dynamic_slice(column, (index,), (1,))[0]


def with_value(column: Array, index: Array, value: Array) -> Array:
    """The column with `value` as entry `index`."""
    return lax.dynamic_update_slice(column, value[None].astype(column.dtype), (index,))


def settled(once: Array, read: Callable[[], tuple[Array, ...]]) -> tuple[Array, ...]:
    """What `read` reads from arrays that are written afterwards, read once and before.

    The compiler repeats a read for each of its uses, and copies the whole array to have it before the write. It cannot
    repeat what comes out of a loop, nor dissolve a loop of `once` turns: [] i32, 1, which it does not know.
    """
    shapes = jax.eval_shape(read)
    start = tuple(jnp.zeros(shape.shape, shape.dtype) for shape in shapes)
    found: tuple[Array, ...] = lax.fori_loop(jnp.int32(0), once, lambda _, __: read(), start)
    return found


def repeated(n_turns: Array, turn: Callable[[Array, T], T], start: T) -> T:
    """`lax.fori_loop` from 0, on a processor as one native function.

    There each operation of a turn is dispatched by itself otherwise, which costs more than the operation: with the
    attributes the compiler makes one function of the loop. It knows no scatter, sort or product in it, and fails
    on what is handed in and not used: `start` must hold no constants but things that change in `turn`, and `turn` must
    read all that it closes over.

    The attributes are the compiler's own and no promise, so versions of JAX that were not tried do without.
    """
    marked: Any = set_xla_metadata  # has no types

    def loop(n_turns: Array, start: T) -> T:
        with marked(xla_cpu_small_call=None, inlineable=None):  # of the loop, not of what it calls
            found: T = lax.fori_loop(jnp.int32(0), n_turns, turn, start)
        return found

    if jax.default_backend() != "cpu" or jax.__version_info__[:2] not in TRIED:
        return loop(n_turns, start)
    with marked(xla_cpu_small_call="true", inlineable="false"):
        found: T = jax.jit(loop)(n_turns, start)
    return found


def lanes(width: int) -> Array:
    """[K] i32: 0, 1, ..., K - 1."""
    return jnp.arange(width, dtype=jnp.int32)


def chosen(mask: Array, values: Array) -> Array:
    """[] the value where the mask, true at most once, is true; else 0."""
    return jnp.sum(jnp.where(mask, values, jnp.zeros_like(values)), dtype=values.dtype)


def scanned(pool: Array, first: Array, n_edges: Array, key: Array) -> tuple[Array, Scan]:
    """Look through the pool edges of one node; no turn of a loop for nodes without.

    Args:
        pool: [Q, 2K] i32.
        first: [] i32.
        n_edges: [] i32, edges that the node has in the pool.
        key: [] i32, packed key that is looked for.
    """
    width = pool.shape[1] // 2
    lane = lanes(width)

    def row(number: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        pool, slot, strength, best_slot, best, total, lost = carry
        line = line_at(pool, first + number)
        keys, strengths = keys_of(line), strengths_of(line)
        here = number * width + lane
        is_it, is_edge = keys == key, keys != EMPTY
        size = jnp.where(is_it | ~is_edge, -1.0, jnp.abs(strengths))
        is_better = size > best
        # Kahan's sum, a lane each: hubs have thousands of rows
        added = jnp.maximum(size, 0.0) - lost
        summed = total + added
        return (
            pool,
            jnp.where(is_it, here, slot),
            jnp.where(is_it, strengths, strength),
            jnp.where(is_better, here, best_slot),
            jnp.where(is_better, size, best),
            summed,
            (summed - total) - added,
        )

    nothing = jnp.full(width, ABSENT, jnp.int32)
    zeros = jnp.zeros(width, jnp.float32)
    carry = (pool, nothing, zeros, nothing, jnp.full(width, -1.0, jnp.float32), zeros, zeros)
    n_rows = (n_edges + width - 1) // width
    pool, slot, strength, best_slot, best, total, _ = lax.fori_loop(jnp.int32(0), n_rows, row, carry)
    strongest = jnp.max(best)
    first_lane = jnp.min(jnp.where(best == strongest, lane, width))
    scan = Scan(
        slot=jnp.max(slot),
        strength=jnp.sum(strength),
        strongest_slot=chosen(lane == first_lane, best_slot),
        strongest=strongest,
        total=jnp.sum(total),
    )
    return pool, scan


def edge_at(pool: Array, first: Array, slot: Array) -> tuple[Array, Array]:
    """([] i32 key, [] f32 strength) in a slot of the pool."""
    width = pool.shape[1] // 2
    line = line_at(pool, first + slot // width)
    here = lanes(width) == slot % width
    return chosen(here, keys_of(line)), chosen(here, strengths_of(line))


def with_edge(pool: Array, first: Array, slot: Array, key: Array, strength: Array, *, where: Array) -> Array:
    """The pool with an edge in a slot, where `where` is true; else unchanged."""
    width = pool.shape[1] // 2
    row = jnp.where(where, first + slot // width, 0)
    line = line_at(pool, row)
    here = where & (lanes(width) == slot % width)
    line = packed_rows(jnp.where(here, key, keys_of(line)), jnp.where(here, strength, strengths_of(line)))
    return with_line(pool, row, line)


def moved_rows(pool: Array, first: Array, to: Array, n_rows: Array) -> Array:
    """The pool with `n_rows` rows moved from `first` to `to`; they leave nothing behind."""
    empty = empty_line(pool.shape[1] // 2)

    def row(number: Array, pool: Array) -> Array:
        pool = with_line(pool, to + number, line_at(pool, first + number))
        return with_line(pool, first + number, empty)

    moved: Array = lax.fori_loop(jnp.int32(0), n_rows, row, pool)
    return moved


def empty_line(width: int) -> Array:
    """[2K] i32: a row without edges."""
    return jnp.where(jnp.arange(2 * width, dtype=jnp.int32) < width, jnp.int32(EMPTY), jnp.int32(0))


def segment(n_edges: Array, width: int) -> Array:
    """Rows that a node with so many edges in the pool owns: a power of two, 0 without edges."""
    n_rows = (n_edges + width - 1) // width
    power: Array = jnp.ones_like(n_rows) << (32 - lax.clz(jnp.maximum(n_rows - 1, 0)))
    return jnp.where(n_rows > 0, power, 0)
