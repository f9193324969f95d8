"""A memory graph that grows: the host object that owns the arrays and hands them to compiled edits."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from . import checks, edits, packing
from .edge_list import MAX_NODES, EdgeList
from .layout import DEFAULT_ROW, GraphArrays
from .relations import RELATIONS, checked_relations

LARGEST_BATCH = 1 << 16
BATCHES = (16, 1024, LARGEST_BATCH)
"""Sizes to which batches are padded; each is compiled once for a size of the graph."""


class Edge(NamedTuple):
    """An edge as a person reads it."""

    source: int
    target: int
    relation: str
    strength: float


class MemoryGraph:
    """A directed graph with typed edges of strengths in [-1, 1], changed in place and never too small.

    Nodes are numbers from 0; a deleted node's number is given to a later one. An edge is known by its source, target
    and relation. Strengths are f32.

    Edits use up the arrays that they change: arrays taken from `arrays` earlier are deleted, and JAX refuses them by
    name. Take `arrays` anew after each edit, or `copy()` the graph.

    Args:
        capacity: nodes for which room is made at once; it doubles when they fill 7/8 of it.
        row: K, edges in the row of a node; further ones go to the pool. A power of two is fastest.
        pool: pool rows for which room is made at once; None = an eighth of the capacity.
        relations: names of the relations.
        labels: whether nodes have names.

    Raises:
        TypeError, ValueError: an argument is wrong, by name.
    """

    def __init__(
        self,
        capacity: int = 1024,
        *,
        row: int = DEFAULT_ROW,
        pool: int | None = None,
        relations: Sequence[str] = RELATIONS,
        labels: bool = False,
    ) -> None:
        checks.whole("capacity", capacity, 1, MAX_NODES)
        checks.whole("row", row, 1, 1024)
        names = checked_relations(relations)
        nothing = np.zeros(0, np.int32)
        self._hold(EdgeList(0, nothing, nothing, np.zeros(0), relations=names), capacity, row, pool)
        self._labels: list[str | None] | None = [] if labels else None

    @classmethod
    def from_edges(
        cls,
        edges: EdgeList,
        *,
        capacity: int | None = None,
        row: int = DEFAULT_ROW,
        pool: int | None = None,
    ) -> Self:
        """The graph of an edge list."""
        graph = cls.__new__(cls)
        graph._hold(edges, edges.n_nodes if capacity is None else capacity, row, pool)
        graph._labels = None
        return graph

    def _hold(self, edges: EdgeList, capacity: int, row: int, pool: int | None) -> None:
        needed = 1 + int(packing.segments(edges.out_degree(), row).sum())
        capacity = packing.fitting(max(capacity, edges.n_nodes))
        if pool is None:
            pool = max(capacity // 8 if not edges.n_edges else 0, needed)
        self._arrays = packing.packed(edges, capacity, row, packing.fitting(max(pool, needed)))
        self._relations = edges.relations
        self._n_edges = edges.n_edges
        self._n_spilled = int((edges.out_degree() > row).sum())
        self._version = 0
        self._edges: EdgeList | None = None
        self._is_node = np.zeros(self._arrays.capacity, bool)
        self._is_node[: edges.n_nodes] = True
        self._n_nodes = edges.n_nodes
        self._free: list[int] = []

    @property
    def arrays(self) -> GraphArrays:
        """The arrays, until the next edit."""
        return self._arrays

    @property
    def relations(self) -> tuple[str, ...]:
        """Names of the relations."""
        return self._relations

    @property
    def version(self) -> int:
        """Number of edits so far."""
        return self._version

    @property
    def n_nodes(self) -> int:
        """Node numbers given out so far; those of deleted nodes that wait for reuse included."""
        return self._n_nodes

    @property
    def n_edges(self) -> int:
        """Edges."""
        return self._n_edges

    @property
    def has_spilled(self) -> bool:
        """Whether any node has more edges than its row holds."""
        return self._n_spilled > 0

    def edges(self) -> EdgeList:
        """The graph as columns; the same object until the next edit."""
        if self._edges is None:
            self._edges = packing.unpacked(self._arrays, self._relations)
        return self._edges

    def add_nodes(self, n: int = 1, base: Any = 1.0, need: Any = 0) -> npt.NDArray[np.int32]:
        """New nodes without edges; returns their numbers."""
        checks.whole("n", n, 0, MAX_NODES)
        bases = checks.column("base", base, n, np.float32, 0, 1)
        needs = checks.column("need", need, n, np.int32, 0, 2**31 - 1)
        reused = [heapq.heappop(self._free) for _ in range(min(n, len(self._free)))]
        fresh = np.arange(self._n_nodes, self._n_nodes + n - len(reused))
        self._make_room(self._n_nodes + len(fresh))
        nodes = np.concatenate([np.array(reused, np.int32), fresh.astype(np.int32)])
        for begin in range(0, n, LARGEST_BATCH):
            part = slice(begin, begin + LARGEST_BATCH)
            size = padded(len(nodes[part]))
            self._arrays = edits.add_nodes(
                self._arrays,
                fill(nodes[part], size, self._arrays.capacity),
                fill(bases[part], size, 0),
                fill(needs[part], size, 0),
            )
        self._is_node[nodes] = True
        self._n_nodes += len(fresh)
        self._changed()
        return nodes

    def add_edges(self, source: Any, target: Any, strength: Any, relation: Any = 0) -> None:
        """Add edges, or strengthen them where they stand: W = clip(W + strength, -1, 1)."""
        self._write("add", source, target, strength, relation)

    def set_edges(self, source: Any, target: Any, strength: Any, relation: Any = 0) -> None:
        """Set strengths of edges, new or old; 0 removes."""
        self._write("set", source, target, strength, relation)

    def delete_edges(self, source: Any, target: Any, relation: Any = 0) -> int:
        """Remove edges; returns how many stood."""
        before = self._n_edges
        self._write("delete", source, target, 0.0, relation)
        return before - self._n_edges

    def _write(self, mode: edits.Mode, source: Any, target: Any, strength: Any, relation: Any) -> None:
        sources, keys, strengths = checks.edge_columns(
            self._is_node, self._relations, source, target, strength, relation
        )
        for begin in range(0, len(sources), LARGEST_BATCH):
            part = slice(begin, begin + LARGEST_BATCH)
            self._write_batch(mode, sources[part], keys[part], strengths[part])
        if len(sources):
            self._changed()

    def _write_batch(self, mode: edits.Mode, source: Any, key: Any, strength: Any) -> None:
        while len(source):
            size = padded(len(source))
            batch = edits.EdgeBatch(
                fill(source, size, self._arrays.capacity),
                fill(key, size, 0),
                fill(strength, size, 0),
                np.int32(len(source)),
            )
            self._arrays, written = edits.write_edges(self._arrays, batch, mode=mode)
            made, removed, refused, spilled = np.asarray(written.counts).tolist()
            self._n_edges += made - removed
            self._n_spilled += spilled
            if not refused:
                return
            again = np.asarray(written.refused)[: len(source)]
            source, key, strength = source[again], key[again], strength[again]
            self._renew_pool()

    def _make_room(self, n_nodes: int) -> None:
        capacity = self._arrays.capacity
        while n_nodes > capacity - capacity // 8:
            capacity *= 2
        if capacity == self._arrays.capacity:
            return
        if capacity > MAX_NODES:
            raise ValueError(f"a graph must have at most {MAX_NODES} nodes, got {n_nodes}.")
        self._arrays = edits.with_capacity(self._arrays, capacity)
        self._is_node = np.concatenate([self._is_node, np.zeros(capacity - len(self._is_node), bool)])

    def _renew_pool(self) -> None:
        """Close gaps in the pool, and double it where they are less than half of it."""
        arrays = self._arrays
        degree, first = packing.host(arrays.out_degree), packing.host(arrays.spill)
        hubs = np.flatnonzero(degree > arrays.width)
        owned = packing.segments(degree[hubs], arrays.width)
        n_pool = 1 + int(owned.sum())
        size = arrays.pool.shape[0]
        if 2 * n_pool > size:
            size *= 2
        begins = 1 + np.cumsum(owned) - owned
        kept = np.zeros(size, np.int32)
        within = np.arange(n_pool - 1) - np.repeat(begins - 1, owned)
        used = -(-(degree[hubs] - arrays.width) // arrays.width)
        kept[1:n_pool] = np.where(within < np.repeat(used, owned), np.repeat(first[hubs], owned) + within, 0)
        spill = np.zeros_like(first)
        spill[hubs] = begins
        self._arrays = arrays._replace(
            pool=edits.with_pool_rows(arrays.pool, kept), spill=jnp.array(spill), n_pool=jnp.int32(n_pool)
        )

    def _changed(self) -> None:
        self._version += 1
        self._edges = None


def padded(size: int) -> int:
    """The size to which a batch is padded."""
    return next(batch for batch in BATCHES if size <= batch)


def fill(column: npt.NDArray[Any], size: int, value: Any) -> npt.NDArray[Any]:
    """The column, with `value` from its end to `size`."""
    longer = np.full(size, value, column.dtype)
    longer[: len(column)] = column
    return longer
