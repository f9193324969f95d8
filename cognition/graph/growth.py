"""Edits in batches of few sizes, and the room that they need: nothing is lost because something is full."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from . import edits, packing, sweeps
from .edge_list import MAX_NODES
from .layout import GraphArrays

Column = npt.NDArray[Any]

BATCHES = (16, 1024, 1 << 16)
"""Sizes to which batches are padded; each is compiled once for a size of the graph."""


def written(
    arrays: GraphArrays, mode: edits.Mode, source: Column, key: Column, strength: Column
) -> tuple[GraphArrays, tuple[int, int]]:
    """Write edges (`edits.write_edges`); the pool grows until all are stored.

    Returns:
        The graph, and by how many its edges and its nodes with edges in the pool became more.
    """
    change = np.zeros(4, np.int64)
    for part in _parts(len(source)):
        left = (source[part], key[part], strength[part])
        while len(left[0]):
            size = _padded(len(left[0]))
            padding = (arrays.capacity, 0, 0)
            columns = [_filled(column, size, value) for column, value in zip(left, padding, strict=True)]
            batch = edits.EdgeBatch(columns[0], columns[1], columns[2], np.int32(len(left[0])))
            arrays, outcome = edits.write_edges(arrays, batch, mode=mode)
            counts = np.asarray(outcome.counts)
            change += counts
            if not counts[2]:
                break
            refused = np.asarray(outcome.refused)[: len(left[0])]
            left = (left[0][refused], left[1][refused], left[2][refused])
            arrays = with_tidy_pool(arrays)
    return arrays, (int(change[0] - change[1]), int(change[3]))


def with_nodes(arrays: GraphArrays, nodes: Column, base: Column, need: Column) -> GraphArrays:
    """Add nodes (`edits.add_nodes`) for which there is room."""
    for part in _parts(len(nodes)):
        size = _padded(len(nodes[part]))
        numbers = _filled(nodes[part], size, arrays.capacity)
        arrays = edits.add_nodes(arrays, numbers, _filled(base[part], size, 0), _filled(need[part], size, 0))
    return arrays


def without_nodes(arrays: GraphArrays, nodes: Column) -> tuple[GraphArrays, tuple[int, int]]:
    """Delete nodes (`sweeps.delete_nodes`); also the edges that are left, and the nodes with edges in the pool."""
    counts: Any = (0, 0)
    for part in _parts(len(nodes)):
        numbers = _filled(nodes[part], _padded(len(nodes[part])), arrays.capacity)
        arrays, counts = sweeps.delete_nodes(arrays, numbers)
    n_edges, n_spilled = np.asarray(counts).tolist()
    return arrays, (n_edges, n_spilled)


def with_room(arrays: GraphArrays, n_nodes: int) -> GraphArrays:
    """The capacity doubled until `n_nodes` fill at most 7/8 of it.

    Raises:
        ValueError: more nodes than a packed edge can name.
    """
    capacity = arrays.capacity
    while n_nodes > capacity - capacity // 8:
        capacity *= 2
    if n_nodes > MAX_NODES:
        raise ValueError(f"a graph must have at most {MAX_NODES} nodes, got {n_nodes}.")
    return arrays if capacity == arrays.capacity else edits.with_capacity(arrays, min(capacity, MAX_NODES))


def with_tidy_pool(arrays: GraphArrays) -> GraphArrays:
    """The pool without the segments that nodes have left; twice as large where that frees less than half of it."""
    degree, first = packing.host(arrays.out_degree), packing.host(arrays.spill)
    width = arrays.width
    hubs = np.flatnonzero(degree > width)
    owned = packing.segments(degree[hubs], width)
    n_pool = 1 + int(owned.sum())
    size = arrays.pool.shape[0]
    if 2 * n_pool > size:
        size *= 2
    begins = 1 + np.cumsum(owned) - owned
    within = np.arange(n_pool - 1) - np.repeat(begins - 1, owned)
    used = -(-(degree[hubs] - width) // width)
    chosen = np.zeros(size, np.int32)
    chosen[1:n_pool] = np.where(within < np.repeat(used, owned), np.repeat(first[hubs], owned) + within, 0)
    spill = np.zeros_like(first)
    spill[hubs] = begins
    pool = edits.with_pool_rows(arrays.pool, chosen)
    return arrays._replace(pool=pool, spill=jnp.array(spill), n_pool=jnp.int32(n_pool))


def _parts(size: int) -> list[slice]:
    largest = BATCHES[-1]
    return [slice(begin, begin + largest) for begin in range(0, size, largest)]


def _padded(size: int) -> int:
    return next(batch for batch in BATCHES if size <= batch)


def _filled(column: Column, size: int, value: Any) -> Column:
    if len(column) == size:
        return column
    longer = np.full(size, value, column.dtype)
    longer[: len(column)] = column
    return longer
