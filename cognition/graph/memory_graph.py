"""A memory graph that grows: the host object that owns the arrays and hands them to compiled edits."""

from __future__ import annotations

import copy
import heapq
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from . import checks, convert, edits, growth, packing, saving, sweeps
from .edge_list import MAX_NODES, EdgeList
from .labels import Labels
from .layout import DEFAULT_ROW, GraphArrays
from .relations import RELATIONS, checked_relations

Mask = npt.NDArray[np.bool_]
Sizes = tuple[int | None, int, int | None]  # capacity, row, pool


class MemoryGraph:
    """A directed graph with typed edges of strengths in [-1, 1], changed in place and never too small.

    Nodes are numbers from 0; a deleted node's number is given to a later one, the smallest first. An edge is known by
    its source, target and relation. Strengths are f32. Wherever nodes are given, their labels, if any, do as well.

    Edits use up the arrays that they change: arrays taken from `arrays` earlier are deleted, and JAX says so when they
    are used. Take `arrays` anew after each edit, or work on a `copy()`.

    Args:
        capacity: nodes for which room is made at once; it doubles when they fill 7/8 of it.
        row: K, edges in the row of a node; further ones go to the pool.
        pool: pool rows for which room is made at once; None = an eighth of the capacity. It grows when it is full.
        relations: names of the relations.
        labels: whether nodes have labels.

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
        if not isinstance(labels, bool):
            raise TypeError(f"`labels` must be True or False, got {labels!r}; give names in `add_nodes`.")
        nothing = np.zeros(0, np.int32)
        edges = EdgeList(0, nothing, nothing, np.zeros(0), relations=checked_relations(relations))
        self._hold(edges, (capacity, row, pool), Labels() if labels else None)

    @classmethod
    def from_edges(
        cls,
        edges: convert.Columns,
        *,
        capacity: int | None = None,
        row: int = DEFAULT_ROW,
        pool: int | None = None,
        relations: Sequence[str] | None = None,
        columns: Mapping[str, str] | None = None,
        duplicates: convert.Duplicates = "error",
        scale: float | None = None,
        labels: bool = False,
    ) -> Self:
        """The graph of a table of edges.

        Args:
            edges: an `EdgeList`; a tuple of columns (source, target[, strength[, relation]]), or a list of such rows;
                a pandas DataFrame; or the path of a CSV or Parquet file. Nodes are numbers, or labels, which are
                numbered as they appear, row by row. Strength is the column "strength", else "weight", else 1, and not
                below 2^-126, which counts as 0; relation is the first where there is no such column.
            capacity: nodes for which room is made; None = as many as there are.
            row: see the class.
            pool: see the class; None = as many as are needed.
            relations: names of the relations; None = `RELATIONS`, or those of the edge list.
            columns: names of the columns of a table, where they are not "source", "target", "strength", "relation".
            duplicates: what becomes of rows of one edge: "error" refuses them, "add" adds their strengths up, within
                [-1, 1], and drops what is only rounding; "last" keeps the last.
            scale: what strengths of a table are divided by, such as their largest; None = 1.
            labels: whether numbers are labels too, so that nodes 10, 20 and 30 are three and not 31.

        Raises:
            TypeError, ValueError: an argument or a row is wrong, with the numbers of the first wrong rows.
            FileNotFoundError: no such file.
            ImportError: a Parquet file, and pyarrow is not installed.
        """
        table, names = convert.edge_list(edges, relations, columns, duplicates, scale, labels)
        graph = cls.__new__(cls)
        graph._hold(table, (capacity, row, pool), names)
        return graph

    @classmethod
    def from_networkx(
        cls,
        graph: convert.NetworkX,
        *,
        capacity: int | None = None,
        row: int = DEFAULT_ROW,
        pool: int | None = None,
        relations: Sequence[str] | None = None,
        scale: float | None = None,
        labels: bool | None = None,
    ) -> Self:
        """The graph of a networkx graph; see `from_edges` for sizes and `scale`.

        Edges may have the attributes `strength` (else `weight`, else 1) and `relation` (else the key of the edge,
        unless networkx gave it, else the first relation), nodes `base` and `need`. Undirected edges go both ways.
        Whole numbers that are nodes stay the numbers of these nodes, others get labels and the numbers that are left.
        Numbers beyond those of so many nodes are refused, unless labels=True makes labels of all, or labels=False keeps
        them and counts the numbers between as deleted nodes: so a graph of `to_networkx` comes back.

        Raises:
            TypeError, ValueError: an attribute is wrong, with the edge or node.
        """
        made = cls.__new__(cls)
        table, names, is_node = convert.from_networkx(graph, relations, scale, labels)
        made._hold(table, (capacity, row, pool), names, is_node)
        return made

    def to_networkx(self) -> convert.MultiNetworkX:
        """A networkx graph of the living nodes, by label where they have one; edges are keyed by relation."""
        return convert.to_networkx(self.edges(), self._is_node, self._labels)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        capacity: int | None = None,
        row: int | None = None,
        pool: int | None = None,
    ) -> Self:
        """A graph that `save` wrote, into as much room as is wanted.

        Raises:
            FileNotFoundError: no such file.
            DamagedFileError, NewerFileError, MismatchError: see `cognition.errors`.
        """
        saved = saving.read(path)
        graph = cls.__new__(cls)
        sizes = (capacity, saved.row if row is None else row, pool)
        graph._hold(saved.edges, sizes, saved.labels, saved.is_node)
        return graph

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the graph as npz, whole or not at all; equal graphs give equal bytes, however they came about."""
        is_node = self._is_node[: self._n_nodes]
        return saving.write(path, saving.Saved(self.edges(), is_node, self._arrays.width, self._labels))

    def copy(self) -> Self:
        """Another graph of the same content; edits of one leave the other as it is."""
        return copy.deepcopy(self)

    def __copy__(self) -> Self:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrays": jax.tree.map(np.array, self._arrays), "_edges": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_arrays": jax.tree.map(jnp.array, state["_arrays"])})

    def __repr__(self) -> str:
        return (
            f"MemoryGraph({self.n_living} nodes, {self._n_edges} edges, capacity {self._arrays.capacity}, "
            f"row {self._arrays.width}, pool {self._arrays.pool.shape[0]}, version {self._version})"
        )

    def _hold(self, edges: EdgeList, sizes: Sizes, labels: Labels | None, lives: Mask | None = None) -> None:
        capacity, row, pool = sizes
        capacity = edges.n_nodes if capacity is None else capacity
        checks.whole("capacity", capacity, 0, MAX_NODES)
        checks.whole("row", row, 1, 1024)
        degree = edges.out_degree()
        needed = 1 + int(packing.segments(degree, row).sum())
        capacity = packing.fitting(max(capacity, edges.n_nodes))
        if pool is None:
            pool = needed if edges.n_edges else capacity // 8
        checks.whole("pool", pool, 0, 2**31 - 1)
        self._arrays = packing.packed(edges, capacity, row, packing.fitting(max(pool, needed)))
        self._relations = edges.relations
        self._labels = labels
        self._n_nodes = edges.n_nodes
        self._n_edges = edges.n_edges
        self._n_spilled: int | None = int((degree > row).sum())
        self._version = 0
        self._edges: EdgeList | None = None
        self._is_node = np.zeros(capacity, bool)
        self._is_node[: edges.n_nodes] = True if lives is None else lives
        self._free: list[int] = [] if lives is None else np.flatnonzero(~lives).tolist()  # a heap

    @property
    def arrays(self) -> GraphArrays:
        """The arrays, until the next edit."""
        return self._arrays

    def adopt(self, arrays: GraphArrays) -> None:
        """Take back arrays that compiled code of the caller's changed.

        Its nodes must be those of this graph; edges may differ.

        Raises:
            TypeError, ValueError: they are of other types, sizes or nodes; the graph keeps what it had.
        """
        checks.arrays_like(arrays, self._arrays, self._n_nodes)
        self._arrays, self._n_edges, self._n_spilled = arrays, -1, None
        self._changed()

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
    def n_living(self) -> int:
        """Nodes that were not deleted."""
        return self._n_nodes - len(self._free)

    @property
    def n_edges(self) -> int:
        """Edges."""
        if self._n_edges < 0:
            self._n_edges = int(packing.host(self._arrays.out_degree).sum())
        return self._n_edges

    @property
    def has_spilled(self) -> bool:
        """Whether any node has more edges than its row holds."""
        if self._n_spilled is None:
            self._n_spilled = int((packing.host(self._arrays.out_degree) > self._arrays.width).sum())
        return self._n_spilled > 0

    @property
    def is_node(self) -> Mask:
        """[n_nodes] whether a number is that of a living node; a copy."""
        return self._is_node[: self._n_nodes].copy()

    def edges(self) -> EdgeList:
        """The graph as columns, by (source, target, relation); the same object until the next edit.

        Numbers of deleted nodes stand in it as nodes with base level 0 and without edges.
        """
        if self._edges is None:
            self._edges = packing.unpacked(self._arrays, self._relations)
        return self._edges

    def neighbours(self, node: int | str) -> list[packing.Edge]:
        """Edges that leave a node, strongest first."""
        found = packing.edges_of(self._arrays, self.node(node), self._relations)
        return sorted(found, key=lambda edge: (-abs(edge.strength), edge.target, edge.relation))

    def edge(self, source: int | str, target: int | str, relation: int | str = 0) -> float:
        """Strength of an edge, 0 where there is none."""
        key = (self.node(target), self._relations[int(checks.relation_numbers(relation, 1, self._relations)[0])])
        found = packing.edges_of(self._arrays, self.node(source), self._relations)
        return sum(edge.strength for edge in found if (edge.target, edge.relation) == key)

    @property
    def labels(self) -> list[str | None] | None:
        """Label of every number, None where it has none; None for a graph without labels."""
        return None if self._labels is None else self._labels.column(self._n_nodes)

    def node(self, node: int | str) -> int:
        """Number of a living node, by label or number.

        Raises:
            ValueError: there is none.
        """
        if isinstance(node, str):
            if self._labels is None:
                raise ValueError(f"`node` must be a number, got {node!r}; this graph has no labels.")
            return self._labels.number(node)
        checks.whole("node", node, 0, MAX_NODES)
        return int(checks.nodes("node", node, self._is_node, None)[0])

    def add_nodes(
        self, n: int = 1, base: Any = 1.0, need: Any = 0, labels: Sequence[str] | None = None
    ) -> npt.NDArray[np.int32]:
        """New nodes without edges.

        Args:
            n: how many.
            base: base level in [0, 1], one for all or one per node.
            need: see `EdgeList.need`, one for all or one per node.
            labels: one per node, new to the graph.

        Returns:
            [n] i32, their numbers.
        """
        checks.whole("n", n, 0, MAX_NODES)
        bases = checks.column("base", base, n, np.float32, 0, 1)
        needs = checks.column("need", need, n, np.int32, 0, 2**31 - 1)
        names = None
        if labels is not None:
            if self._labels is None:
                raise ValueError("`labels` need a graph with labels; make it with MemoryGraph(labels=True).")
            names = self._labels.checked(labels, n)
        n_fresh = max(0, n - len(self._free))
        self._arrays = growth.with_room(self._arrays, self._n_nodes + n_fresh)
        self._is_node = np.pad(self._is_node, (0, self._arrays.capacity - len(self._is_node)))
        reused = [heapq.heappop(self._free) for _ in range(n - n_fresh)]
        fresh = np.arange(self._n_nodes, self._n_nodes + n_fresh, dtype=np.int32)
        nodes = np.concatenate([np.array(reused, np.int32), fresh])
        self._arrays = growth.with_nodes(self._arrays, nodes, bases, needs)
        self._is_node[nodes] = True
        self._n_nodes += n_fresh
        if names is not None and self._labels is not None:
            self._labels.give(nodes.tolist(), names)
        if n:
            self._changed()
        return nodes

    def delete_nodes(self, nodes: Any) -> int:
        """Remove nodes with all their edges; returns how many edges went. Their numbers are free for new nodes."""
        gone = np.unique(checks.nodes("nodes", nodes, self._is_node, self._labels))
        before = self.n_edges
        if not len(gone):
            return 0
        self._arrays, (self._n_edges, self._n_spilled) = growth.without_nodes(self._arrays, gone)
        self._is_node[gone] = False
        self._free = sorted([*self._free, *gone.tolist()])  # a heap too
        if self._labels is not None:
            self._labels.take(gone.tolist())
        self._changed()
        return before - self.n_edges

    def decay(self, factor: float | Mapping[str, float], floor: float = 0.0) -> int:
        """Multiply all strengths, and remove edges whose |strength| falls below `floor`; returns how many.

        Args:
            factor: in [0, 1]; or by name of the relation, "default" for all others, 1 without it.
            floor: in [0, 1].
        """
        checks.column("floor", floor, 1, np.float32, 0, 1)
        factors = checks.factors(factor, self._relations)
        before = self.n_edges
        self._arrays, counts = sweeps.decay(self._arrays, factors, np.float32(floor))
        self._n_edges, self._n_spilled = np.asarray(counts).tolist()
        self._changed()
        return before - self._n_edges

    def add_edges(self, source: Any, target: Any, strength: Any, relation: Any = 0) -> None:
        """Add edges, or strengthen those that stand: W = clip(W + strength, -1, 1). An edge that becomes 0 is removed.

        Args:
            source: nodes by number or label, one for all or one per edge.
            target: nodes, likewise.
            strength: in [-1, 1], likewise.
            relation: names or numbers, likewise.

        Raises:
            TypeError, ValueError: a column is wrong, by its name and first wrong row; nothing is written then.
        """
        self._write("add", source, target, strength, relation)

    def set_edges(self, source: Any, target: Any, strength: Any, relation: Any = 0) -> None:
        """Set strengths of edges, new or old; 0 removes. Arguments and errors as for `add_edges`."""
        self._write("set", source, target, strength, relation)

    def delete_edges(self, source: Any, target: Any, relation: Any = 0) -> int:
        """Remove edges; returns how many of them stood. Arguments and errors as for `add_edges`."""
        before = self.n_edges
        self._write("delete", source, target, 0.0, relation)
        return before - self.n_edges

    def _write(self, mode: edits.Mode, source: Any, target: Any, strength: Any, relation: Any) -> None:
        columns = checks.edge_columns(self._is_node, self._labels, self._relations, source, target, strength, relation)
        if not len(columns[0]):
            return
        before = self.n_edges, self.has_spilled
        self._arrays, (change, spilled) = growth.written(self._arrays, mode, *columns)
        self._n_edges = before[0] + change
        self._n_spilled = (self._n_spilled or 0) + spilled
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        self._edges = None
