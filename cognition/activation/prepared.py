"""A graph and a rule made ready, so that a decision costs one compiled call and no check is paid twice."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from ..graph.edge_list import EdgeList
from ..graph.memory_graph import MemoryGraph
from .choosing import Kernel, PullKernel, check_settings, is_local, pull_kernel, size_for
from .derived import Derived, Graph, count_nodes, derived_of, folding_key, living, rule_key, version_of
from .exact import listed_flows, stacked, told
from .frontier.kernel import FrontierKernel, check_limits, check_query
from .frontier.query import Limits
from .growth import warn_of_growth
from .pull.compiled import ROWS, Plan, compiled, compiled_shared
from .pull.forms import columns_of, dense_form, edge_form, ell_form, ell_shape, waits
from .pull.packing import (
    MOST_INLINE,
    NO_SOURCES,
    batch_of,
    bucket,
    dense_sources,
    packed_numbers,
    packed_sources,
    stepped,
    unpacked_result,
)
from .pull.sweep_form import sweep_form
from .reference import spread_reference
from .result import Activation, Dropped
from .rule import SpreadRule, edges_of
from .sources import Sources

SourcesLike = Sources | Mapping[int, float] | Sequence[Any] | npt.NDArray[Any]

FEWEST_BY_ROWS = {"ell": 16, "sweep": 48}
"""Queries from which one gather for 64 of them is faster than a gather for each, by kernel."""
GROWTH_ROOM = 2.0
"""Room for edges beyond what a graph has when it fills its capacity at the present number for each node."""


class Ready(NamedTuple):
    """What a compiled call takes, on the device.

    Attributes:
        columns: [4, N] f32.
        form: of the kernel.
        waits: whether any node waits for a number of its in-edges.
    """

    columns: Any
    form: Any
    waits: bool


class Spreader:
    """Spreads over one graph by one rule.

    It keeps what it needs of the graph as it is now: one that changes later needs a new spreader. Only a frontier
    reads the graph itself, with all changes.

    Args:
        graph: a `MemoryGraph` or an `EdgeList`.
        rule: the rule.
        top: how many of the most active nodes to return, at least 1.
        kernel: which kernel; all agree in values. "auto" takes the fastest for the graph and the rule.
        evidence: how many of the edges that carried most to return, with the history of the returned nodes.
        everything: whether to return the activation of every node.
        limits: what a frontier starts from; None = `Limits()`.

    Attributes:
        kernel: that one query is made with.
        n_nodes: of the graph.

    Raises:
        TypeError, ValueError: an argument is wrong, by name.
    """

    def __init__(
        self,
        graph: Graph,
        rule: SpreadRule,
        *,
        top: int = 32,
        kernel: Kernel = "auto",
        evidence: int = 0,
        everything: bool = False,
        limits: Limits | None = None,
    ) -> None:
        check_settings(rule, top, kernel, evidence)
        check_limits(limits)
        self._rule, self._top, self._evidence, self._everything = rule, top, evidence, everything
        self.n_nodes = count_nodes(graph)
        self._is_node = living(graph)
        self._frontier: FrontierRuns | None = None
        if takes_frontier(graph, rule, kernel, everything):
            self.kernel: Kernel = "frontier"
            self._frontier = FrontierRuns(graph, rule, top, evidence, limits, or_sweep=kernel == "auto")
            return
        warn_of_growth(graph, rule)
        edges = edges_of(graph)
        self._flow_columns = (edges.source, edges.target, edges.relation)
        self._edges: EdgeList | None = None  # else a spreader that is kept for a graph would keep the graph
        if kernel == "reference":
            self.kernel, self._edges = kernel, edges
            return
        assert kernel != "frontier"
        self._pull = pull_kernel(self.n_nodes) if kernel == "auto" else kernel
        self._pull_of_many = pull_kernel(self.n_nodes, many=True) if kernel == "auto" else kernel
        self.kernel = self._pull
        self._prepare(graph, edges)

    def _prepare(self, graph: Graph, edges: EdgeList) -> None:
        rule, kept, version = self._rule, derived_of(graph), version_of(graph)
        self._numbers = jax.device_put(packed_numbers(rule.params(edges.relations)))
        self._size = size = size_for(graph, edges.n_nodes)
        self._ready: dict[PullKernel, Ready] = {}
        for name in (self._pull, self._pull_of_many):
            make = functools.partial(_made, name, kept, version, edges, rule, size)
            self._ready[name] = kept.get(version, (name, folding_key(rule)), make)
        self._more: tuple[Any, ...] = ()
        if self._evidence:
            n_places = stepped(max(1, edges.n_edges)) if isinstance(graph, EdgeList) else bucket(edges.n_edges)
            columns = functools.partial(edge_form, edges, rule, n_places)
            self._more = (kept.get(version, ("edges", folding_key(rule)), lambda: jax.device_put(columns())),)
        self._calls = [compiled(self._plan(self._pull, is_timed, self._evidence)) for is_timed in (False, True)]
        self._takes_dense = size <= MOST_INLINE

    def __call__(self, sources: SourcesLike) -> Activation:
        """Spread from sources; `Sources` are taken as checked, everything else is checked by `Sources.of`."""
        if self._frontier is not None:
            return self._frontier.one(sources)
        given = sources
        if not isinstance(given, Sources):
            given = Sources.of(given, self.n_nodes, rounds=self._rule.rounds, is_node=self._is_node)
        if self._edges is not None:
            return self._by_reference(self._edges, given)
        is_timed = bool(np.count_nonzero(given.rounds))
        dense = self._takes_dense and not is_timed
        packed = dense_sources(given, self._size) if dense else packed_sources(given)
        ready = self._ready[self._pull]
        found = self._calls[is_timed](ready.columns, ready.form, self._numbers, packed, *self._more)
        result = unpacked_result(np.asarray(found[0]), self._top)
        if self._everything:
            result = result._replace(everything=np.asarray(found[1])[: self.n_nodes])
        return self._with_flows(result, found) if self._evidence else result

    def many(self, sources: Sources | Sequence[SourcesLike]) -> Activation:
        """Spread from many sets of sources, each for itself.

        Args:
            sources: a sequence of what one call takes, or `Sources` with a leading axis, which are taken as checked.

        Returns:
            The results, with a leading axis [B] in every array.
        """
        if self._frontier is not None:
            return self._frontier.many(sources)
        batch = batch_of(sources, [self.n_nodes], self._rule.rounds, [self._is_node])
        n_queries = len(batch.nodes)
        if self._edges is not None or self._evidence:
            return stacked([self(Sources(*(part[number] for part in batch))) for number in range(n_queries)])
        by_rows = n_queries >= FEWEST_BY_ROWS.get(self._pull_of_many, np.inf)
        packed = packed_sources(batch)
        n_places = ROWS * bucket(-(-n_queries // ROWS)) if by_rows else bucket(n_queries)
        filled = np.empty((n_places, *packed.shape[1:]), np.int32)
        filled[:n_queries], filled[n_queries:] = packed, NO_SOURCES
        plan = self._plan(self._pull_of_many, bool(np.count_nonzero(batch.rounds)), 0)
        ready = self._ready[self._pull_of_many]
        call = compiled_shared(plan, by_rows)
        found = call(ready.columns, ready.form, self._numbers, filled, np.int32(n_queries))
        result = unpacked_result(np.asarray(found[0])[:n_queries], self._top)
        if self._everything:
            result = result._replace(everything=np.asarray(found[1])[:n_queries, : self.n_nodes])
        return result

    def _plan(self, kernel: PullKernel, is_timed: bool, evidence: int) -> Plan:
        return Plan(
            kernel=kernel,
            code=self._rule.code,
            waits=self._ready[kernel].waits,
            is_timed=is_timed,
            top=self._top,
            everything=self._everything,
            evidence=evidence,
            leaks=self._rule.leak > 0,
        )

    def _by_reference(self, edges: EdgeList, sources: Sources) -> Activation:
        return told(
            spread_reference(edges, sources, self._rule),
            edges,
            self._rule,
            top=self._top,
            evidence=self._evidence,
            everything=self._everything,
        )

    def _with_flows(self, result: Activation, found: tuple[Any, ...]) -> Activation:
        rows, amount, by_round, history, n_flows = (np.asarray(part) for part in found[2:])
        missing = self._evidence - len(rows)
        flows = listed_flows(
            self._flow_columns, rows[rows >= 0], np.pad(amount, (0, missing)), np.pad(by_round, ((0, missing), (0, 0)))
        )
        dropped = Dropped(*result.dropped[:3], np.int32(max(0, int(n_flows) - self._evidence)))
        return result._replace(flows=flows, history=history, dropped=dropped)


def takes_frontier(graph: Graph, rule: SpreadRule, kernel: Kernel, everything: bool) -> bool:
    """Whether a spreader of these settings follows the frontier.

    Raises:
        ValueError: it must and cannot.
    """
    if kernel == "auto":
        local = is_local(count_nodes(graph), rule) and not everything
        return local and rule_key(rule) not in derived_of(graph).floods
    if kernel == "frontier" and everything:
        raise ValueError('`everything` needs a kernel that looks at all nodes, got kernel="frontier".')
    return kernel == "frontier"


class FrontierRuns:
    """Follows the frontier of one rule on one graph.

    Args:
        graph: an `EdgeList` is packed into a memory graph once.
        rule: the rule.
        top: as for `Spreader`.
        evidence: as for `Spreader`.
        limits: as for `Spreader`.
        or_sweep: whether a query that does not fit the largest limits is made by a sweep.
    """

    def __init__(
        self, graph: Graph, rule: SpreadRule, top: int, evidence: int, limits: Limits | None, *, or_sweep: bool
    ) -> None:
        warn_of_growth(graph, rule, rarely=True)
        if not isinstance(graph, MemoryGraph):
            edges = edges_of(graph)
            graph = derived_of(graph).get(version_of(graph), "memory", lambda: MemoryGraph.from_edges(edges))
        rule.decays(graph.relations)  # refuses what the graph does not have
        check_query(rule, graph.n_nodes, None)
        self._graph, self._rule, self._or_sweep = graph, rule, or_sweep
        self._options: dict[str, Any] = {"top": top, "evidence": evidence}
        self._limits = limits

    def one(self, sources: SourcesLike) -> Activation:
        """One query."""
        given = sources
        if not isinstance(given, Sources):
            graph = self._graph
            given = Sources.of(given, graph.n_nodes, rounds=self._rule.rounds, is_node=living(graph))
        found = _kernel().spread(self._graph, given, self._rule, limits=self._limits, **self._options)
        return self._swept()(given) if self._or_sweep and _lacks(found) else found

    def many(self, sources: Sources | Sequence[SourcesLike]) -> Activation:
        """Many queries."""
        batch = batch_of(sources, [self._graph.n_nodes], self._rule.rounds, [living(self._graph)])
        found = _kernel().spread_many(self._graph, batch, self._rule, limits=self._limits, **self._options)
        return self._swept().many(batch) if self._or_sweep and _lacks(found) else found

    def _swept(self) -> Spreader:
        derived_of(self._graph).floods.add(rule_key(self._rule))
        return Spreader(self._graph, self._rule, kernel="sweep", **self._options)


def _lacks(found: Activation) -> bool:
    return any(np.any(part) for part in found.dropped[:3])


_LOCAL = threading.local()


def _kernel() -> FrontierKernel:
    """The one of this thread, since threads must not share scratch."""
    if not hasattr(_LOCAL, "kernel"):
        _LOCAL.kernel = FrontierKernel()
    found: FrontierKernel = _LOCAL.kernel
    return found


def _made(kernel: PullKernel, kept: Derived, version: int, edges: EdgeList, rule: SpreadRule, size: int) -> Ready:
    form: Any
    match kernel:
        case "dense":
            form = dense_form(edges, rule, size, counts=waits(edges, rule))
        case "ell":
            form = ell_form(edges, rule, size, ell_shape([edges], size))
        case "sweep":
            former = kept.shapes.get("sweep")
            # a graph that has changed will grow until it fills its capacity
            room = size / max(1, edges.n_nodes) * GROWTH_ROOM if version or former is not None else 1.0
            form, kept.shapes["sweep"] = sweep_form(edges, rule, size, room, former)
    return Ready(jax.device_put(columns_of(edges, rule, size)), jax.device_put(form), waits(edges, rule))
