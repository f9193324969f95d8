"""Between columns of edges and the packed arrays of a graph, in NumPy and whole columns at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from . import ranges
from .edge_list import EdgeList
from .layout import EMPTY, NOWHERE, TARGET_BITS, TARGET_MASK, GraphArrays

IntArray = npt.NDArray[np.int32]

LEAST = 8


class Edge(NamedTuple):
    """An edge as a person reads it."""

    source: int
    target: int
    relation: str
    strength: float


def fitting(size: int) -> int:
    """Smallest m 2^k >= size with 8 <= m < 16: closer than powers of two, and doubling leaves no other sizes."""
    step = 1 << max(0, (max(size, LEAST) - 1).bit_length() - 4)
    return -(-max(size, LEAST) // step) * step


def segments(degree: IntArray, width: int) -> IntArray:
    """[N] i32: pool rows that nodes of these out-degrees own."""
    n_rows = np.maximum(-(-(degree - width) // width), 0)
    power = np.left_shift(1, np.ceil(np.log2(np.maximum(n_rows, 1))).astype(np.int32))
    return np.where(n_rows > 0, power, 0).astype(np.int32)


def packed(edges: EdgeList, capacity: int, width: int, pool_rows: int) -> GraphArrays:
    """The arrays of a graph.

    Args:
        edges: the graph.
        capacity: N, at least its nodes.
        width: K.
        pool_rows: Q, at least `segments(edges.out_degree(), width).sum() + 1`.
    """
    degree = np.zeros(capacity + 1, np.int32)
    degree[: edges.n_nodes] = edges.out_degree()
    owned = segments(degree, width)
    first = np.where(owned > 0, 1 + np.cumsum(owned) - owned, NOWHERE).astype(np.int32)
    n_pool = 1 + int(owned.sum())
    rows, pool = _empty(capacity + 1, width), _empty(pool_rows, width)
    total = np.zeros(capacity + 1, np.float32)
    for low, high, chosen in ranges.by_source(edges.source, degree):
        source = edges.source[chosen]
        starts = np.zeros(high - low, np.int64)
        np.cumsum(degree[low : high - 1], out=starts[1:])
        _strongest_first(edges, chosen, degree[source] > width)
        slot = np.arange(len(chosen)) - starts[source - low]
        key = edges.target[chosen] | (edges.relation[chosen].astype(np.int32) << TARGET_BITS)
        strength = edges.strength[chosen].astype(np.float32)
        total[low:high] = np.bincount(source - low, np.abs(strength), high - low)
        is_inside = slot < width
        for lines, line, place, where in (
            (rows, source, slot, is_inside),
            (pool, first[source] + (slot - width) // width, (slot - width) % width, ~is_inside),
        ):
            at = line[where].astype(np.int64) * (2 * width) + place[where]
            lines.reshape(-1)[at] = key[where]
            lines.reshape(-1)[at + width] = strength[where].view(np.int32)
    return GraphArrays(
        rows=jnp.array(rows),
        pool=jnp.array(pool),
        spill=jnp.array(first),
        out_degree=jnp.array(degree),
        out_strength=jnp.array(total),
        base=jnp.array(_longer(edges.base, capacity + 1, np.float32)),
        need=jnp.array(_longer(edges.need, capacity + 1, np.int32)),
        n_nodes=jnp.int32(edges.n_nodes),
        n_pool=jnp.int32(n_pool),
    )


def unpacked(arrays: GraphArrays, relations: tuple[str, ...]) -> EdgeList:
    """The graph as columns, by (source, target, relation)."""
    n_nodes, width = int(arrays.n_nodes), arrays.width
    degree = host(arrays.out_degree)[:n_nodes]
    beyond = np.maximum(degree - width, 0)
    source = np.repeat(np.arange(n_nodes, dtype=np.int32), degree)
    slot = np.arange(len(source)) - np.repeat(np.cumsum(degree, dtype=np.int64) - degree, degree)
    key, bits = np.empty(len(source), np.int32), np.empty(len(source), np.int32)
    rows = host(arrays.rows)
    is_inside = slot < width
    at = source[is_inside].astype(np.int64) * (2 * width) + slot[is_inside]
    key[is_inside], bits[is_inside] = rows.reshape(-1)[at], rows.reshape(-1)[at + width]
    if beyond.any():
        pool, first = host(arrays.pool), host(arrays.spill)
        outside = ~is_inside
        slot = slot[outside] - width
        at = (first[source[outside]].astype(np.int64) + slot // width) * (2 * width) + slot % width
        key[outside], bits[outside] = pool.reshape(-1)[at], pool.reshape(-1)[at + width]
    target, relation = key & TARGET_MASK, key >> TARGET_BITS
    order = np.argsort((source.astype(np.int64) << 31) | (target.astype(np.int64) << 4) | relation)
    return EdgeList(
        n_nodes,
        source[order],
        target[order],
        bits.view(np.float32)[order].astype(np.float64),
        relation[order].astype(np.uint8),
        host(arrays.base)[:n_nodes].astype(np.float64),
        host(arrays.need)[:n_nodes],
        relations,
    )


def edges_of(arrays: GraphArrays, node: int, relations: tuple[str, ...]) -> list[Edge]:
    """The edges that leave a node, as they stand."""
    degree, width = int(host(arrays.out_degree)[node]), arrays.width
    first, n_rows = int(host(arrays.spill)[node]), max(0, -(-(degree - width) // width))
    lines = np.concatenate([host(arrays.rows)[node : node + 1], host(arrays.pool)[first : first + n_rows]])
    keys, bits = lines[:, :width].reshape(-1)[:degree], lines[:, width:].reshape(-1)[:degree]
    strengths = np.ascontiguousarray(bits).view(np.float32).tolist()
    return [
        Edge(node, key & TARGET_MASK, relations[key >> TARGET_BITS], strength)
        for key, strength in zip(keys.tolist(), strengths, strict=True)
    ]


def host(array: Any) -> npt.NDArray[Any]:
    """The array in NumPy, to be read at once: its memory is written again by the next edit."""
    return np.asarray(array)


def _empty(n_rows: int, width: int) -> IntArray:
    lines = np.zeros((n_rows, 2 * width), np.int32)
    lines[:, :width] = EMPTY
    return lines


def _longer(column: npt.NDArray[Any], size: int, dtype: Any) -> npt.NDArray[Any]:
    longer = np.zeros(size, dtype)
    longer[: len(column)] = column
    return longer


def _strongest_first(edges: EdgeList, chosen: npt.NDArray[np.int64], is_of_hub: npt.NDArray[np.bool_]) -> None:
    """Put edges, given in order of their source, by |strength| downwards where a row does not hold all of a node's."""
    of_hub = chosen[is_of_hub]
    chosen[is_of_hub] = of_hub[np.lexsort((-np.abs(edges.strength[of_hub]), edges.source[of_hub]))]
