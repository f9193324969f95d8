"""What was worked out of a graph, kept as long as the graph lives and stays as it is."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..graph.edge_list import EdgeList
from ..graph.memory_graph import MemoryGraph
from .rule import HasEdges, SpreadRule, edges_of

Value = TypeVar("Value")
Graph = EdgeList | HasEdges

MOST_FORMS = 16
"""Things kept of one graph; the one asked for longest ago goes first."""


class Derived:
    """Things worked out of one graph. It does not hold the graph itself, which would then live for ever."""

    def __init__(self) -> None:
        self._version = 0
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self.shapes: dict[Hashable, Any] = {}
        self.growth: dict[Hashable, tuple[bool, int, int]] = {}
        """By rule: whether it diverges, as far as is known for so many edges and this version."""
        self.floods: set[Hashable] = set()
        """Rules that were found to activate so much that a sweep is faster than a frontier."""

    def get(self, version: int, key: Hashable, make: Callable[[], Value]) -> Value:
        """What `make` gave for this key and version of the graph; it is called at most once while that is kept."""
        if version != self._version:
            self._kept.clear()
            self._version = version
        if key in self._kept:
            self._kept.move_to_end(key)
        else:
            self._kept[key] = make()
            if len(self._kept) > MOST_FORMS:
                self._kept.popitem(last=False)
        found: Value = self._kept[key]
        return found


_OF_GRAPH: weakref.WeakKeyDictionary[Any, Derived] = weakref.WeakKeyDictionary()
_OF_RULE: weakref.WeakKeyDictionary[SpreadRule, tuple[Hashable, Hashable]] = weakref.WeakKeyDictionary()


def derived_of(graph: Graph) -> Derived:
    """What is kept of a graph."""
    found = _OF_GRAPH.get(graph)
    if found is None:
        found = _OF_GRAPH[graph] = Derived()
    return found


def version_of(graph: Graph) -> int:
    """Number of changes of a graph; an edge list never changes."""
    return 0 if isinstance(graph, EdgeList) else int(getattr(graph, "version", 0))


def count_nodes(graph: Graph) -> int:
    """N.

    Raises:
        TypeError: it is no graph.
    """
    found = getattr(graph, "n_nodes", None)
    return found if isinstance(found, int) else edges_of(graph).n_nodes


def living(graph: Graph) -> npt.NDArray[np.bool_] | None:
    """[N] bool: which numbers of a memory graph are nodes; None where all are."""
    if not isinstance(graph, MemoryGraph) or graph.n_living == graph.n_nodes:
        return None
    return graph.is_node


def rule_key(rule: SpreadRule) -> Hashable:
    """The same for rules of the same settings."""
    return _keys(rule)[0]


def folding_key(rule: SpreadRule) -> Hashable:
    """The same for rules that fold into the same form of a graph."""
    return _keys(rule)[1]


def _keys(rule: SpreadRule) -> tuple[Hashable, Hashable]:
    found = _OF_RULE.get(rule)
    if found is None:
        retention = rule.retention.tobytes() if isinstance(rule.retention, np.ndarray) else float(rule.retention)
        decay = tuple(sorted(rule.decay.items())) if not isinstance(rule.decay, float | int) else rule.decay
        folding = (retention, decay, rule.normalisation, rule.degree_cap, rule.spends, rule.use_base, rule.conjunctions)
        numbers = (rule.threshold, rule.cap, rule.leak, rule.restart, rule.softness, rule.tolerance)
        found = _OF_RULE[rule] = ((rule.code, numbers, folding), folding)
    return found
