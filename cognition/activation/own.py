"""Many graphs at once, each with its own sources: agents with memories of their own.

Up to `MOST_DENSE` nodes a block of graphs is a stack of matrices. Larger ones stand side by side as one graph without
edges between them, which is swept as in `sweep.py`: a gather from one flat array is ten times as fast as one from each
of many, and rows of one length can be found among all of them. Graphs go through in blocks that the cache of a core
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ..graph.edge_list import EdgeList
from .choosing import MOST_ELL, Kernel, check_settings, pull_kernel, size_for
from .derived import Graph, living
from .exact import stacked
from .growth import warn_of_growth
from .prepared import SourcesLike, Spreader
from .pull.compiled import Plan, compiled_own
from .pull.forms import DenseForm, columns_of, dense_form, folded_weights, waits
from .pull.packing import NO_SOURCES, batch_of, packed_numbers, packed_sources, stepped, unpacked_result
from .pull.sweep_form import SweepForm, SweepShape, swept_rows
from .result import Activation
from .rule import SpreadRule, edges_of
from .sources import Sources

CACHE_BYTES = 2**20
"""Weights of one block of graphs, about the second-level cache of a core."""


class EachSpreader:
    """Spreads over many graphs, as they are now, by one rule, each from its own sources.

    Args:
        graphs: B >= 1 graphs; the same may stand more than once.
        rule: the rule.
        top: how many of the most active nodes of each to return, at least 1.
        kernel: which kernel; "dense" and "ell" make all graphs in one call, the others one after the other.
        evidence: as for `Spreader`; with it graphs are made one after the other.
        everything: whether to return the activation of every node, 0 for numbers beyond a graph's nodes.

    Raises:
        TypeError, ValueError: an argument is wrong, by name.
    """

    def __init__(
        self,
        graphs: Sequence[Graph],
        rule: SpreadRule,
        *,
        top: int = 32,
        kernel: Kernel = "auto",
        evidence: int = 0,
        everything: bool = False,
    ) -> None:
        check_settings(rule, top, kernel, evidence)
        if not len(graphs):
            raise ValueError("`graphs` must have at least one graph, got none.")
        edges = [edges_of(graph) for graph in graphs]
        self._n_nodes = [one.n_nodes for one in edges]
        self._is_node = [living(graph) for graph in graphs]
        self._rounds, self._top, self._everything = rule.rounds, top, everything
        largest = max(self._n_nodes)
        if kernel == "auto":
            kernel = pull_kernel(largest, many=True) if largest <= MOST_ELL else "auto"
        self._single: list[Spreader] = []
        if evidence or kernel not in ("dense", "ell"):
            self._single = [
                Spreader(graph, rule, top=top, kernel=kernel, evidence=evidence, everything=everything)
                for graph in graphs
            ]
            return
        for graph in graphs:
            warn_of_growth(graph, rule)
        self._numbers = jax.device_put(packed_numbers(rule.params(edges[0].relations)))
        counts = any(waits(one, rule) for one in edges)
        size = max(size_for(one, one.n_nodes) for one in edges)
        blocks: _Blocks = _dense(edges, rule, size, counts) if kernel == "dense" else _flat(edges, rule, size, counts)
        self._columns, self._forms = jax.device_put(blocks)
        self._plans = [
            Plan(
                kernel="dense" if kernel == "dense" else "sweep",
                code=rule.code,
                waits=counts,
                is_timed=is_timed,
                top=top,
                everything=everything,
                evidence=0,
                leaks=rule.leak > 0,
            )
            for is_timed in (False, True)
        ]

    def __call__(self, sources: Sources | Sequence[SourcesLike]) -> Activation:
        """Spread over each graph.

        Args:
            sources: of each graph, see `spread`; or `Sources` with a leading axis [B], which are taken as checked.

        Returns:
            The results, with a leading axis [B] in every array.

        Raises:
            TypeError, ValueError: an entry is wrong, with its number.
        """
        n_graphs = len(self._n_nodes)
        if len(sources.nodes if isinstance(sources, Sources) else sources) != n_graphs:
            got = len(sources.nodes if isinstance(sources, Sources) else sources)
            raise ValueError(f"`sources` must have an entry for each of the {n_graphs} graphs, got {got}.")
        batch = batch_of(sources, self._n_nodes, self._rounds, self._is_node)
        if self._single:
            every = (Sources(*(part[number] for part in batch)) for number in range(n_graphs))
            return stacked([one(given) for one, given in zip(self._single, every, strict=True)])
        packed = packed_sources(batch)
        is_timed = bool(packed[:, 2].any())
        n_blocks, in_block = self._columns.shape[:2]
        filled = np.empty((n_blocks * in_block, *packed.shape[1:]), np.int32)
        filled[:n_graphs], filled[n_graphs:] = packed, NO_SOURCES
        filled = filled.reshape(n_blocks, in_block, *packed.shape[1:])
        found = compiled_own(self._plans[is_timed])(self._columns, self._forms, self._numbers, filled)
        result = unpacked_result(np.asarray(found[0])[:n_graphs], self._top)
        if self._everything:
            largest = max(self._n_nodes)
            result = result._replace(everything=np.asarray(found[1])[:n_graphs, :largest])
        return result


_Blocks = tuple[Any, Any]
"""Columns [G, b, 4, S], and forms with a leading axis [G]."""


def _dense(graphs: Sequence[EdgeList], rule: SpreadRule, size: int, counts: bool) -> _Blocks:
    n_blocks, in_block = _blocks(len(graphs), 4 * size * size * (1 + counts))
    columns = np.zeros((n_blocks * in_block, 4, size), np.float32)
    weights = np.zeros((n_blocks * in_block, size, size), np.float32)
    exciting = np.zeros((n_blocks * in_block, *((size, size) if counts else (0, 0))), np.float32)
    for number, edges in enumerate(graphs):
        columns[number] = columns_of(edges, rule, size)
        weights[number], exciting[number] = dense_form(edges, rule, size, counts=counts)
    in_blocks = (n_blocks, in_block)
    form = DenseForm(weights.reshape(*in_blocks, size, size), exciting.reshape(*in_blocks, *exciting.shape[1:]))
    return columns.reshape(*in_blocks, 4, size), form


def _flat(graphs: Sequence[EdgeList], rule: SpreadRule, size: int, counts: bool) -> _Blocks:
    most_edges = max(1, *(edges.n_edges for edges in graphs))
    n_blocks, in_block = _blocks(len(graphs), 8 * most_edges)
    columns = np.zeros((n_blocks * in_block, 4, size), np.float32)
    parts: list[list[Any]] = [[] for _ in range(n_blocks)]
    for number, edges in enumerate(graphs):
        columns[number] = columns_of(edges, rule, size)
        before = size * (number % in_block)
        weights = folded_weights(edges, rule, counts=counts)
        parts[number // in_block].append((edges.source + before, edges.target + before, weights))
    nothing = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32))
    unions: list[tuple[Any, Any, Any]] = [_joined(part or [nothing]) for part in parts]
    n_nodes = in_block * size
    shapes = [swept_rows(*union, n_nodes)[1] for union in unions]
    largest = SweepShape(*(max(sizes) for sizes in zip(*shapes, strict=True)))
    forms = [swept_rows(*union, n_nodes, former=largest)[0] for union in unions]
    form = SweepForm(*(np.stack(arrays) for arrays in zip(*forms, strict=True)))
    return columns.reshape(n_blocks, in_block, 4, size), form


def _joined(parts: list[Any]) -> tuple[Any, Any, Any]:
    source, target, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    return source, target, weights


def _blocks(n_graphs: int, n_bytes: int) -> tuple[int, int]:
    """How many blocks, and how many graphs in each, of so many bytes."""
    in_block = max(1, min(n_graphs, CACHE_BYTES // n_bytes))
    return stepped(-(-n_graphs // in_block)), in_block
