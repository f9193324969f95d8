"""A graph and a rule made ready, so that a decision costs one compiled call and no check is paid twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import jax
import numpy as np

from ..graph.edge_list import EdgeList
from .compiled import Plan, compiled
from .exact import listed_flows, told
from .forms import columns_of, dense_form, edge_form
from .packing import bucket, packed_numbers, packed_sources, unpacked_result
from .reference import spread_reference
from .result import Activation, Dropped
from .rule import SpreadRule
from .sources import Sources

Kernel = Literal["auto", "reference", "dense", "ell", "sweep", "frontier"]
FEWEST_NODES = 8


class Spreader:
    """Spreads over one graph, as it is now, by one rule.

    Args:
        graph: the graph.
        rule: the rule.
        top: how many of the most active nodes to return, at least 1.
        kernel: which kernel; all agree in values.
        evidence: how many of the edges that carried most to return, with the history of the returned nodes.
        everything: whether to return the activation of every node.

    Raises:
        TypeError, ValueError: an argument is wrong, by name.
    """

    def __init__(
        self,
        graph: EdgeList,
        rule: SpreadRule,
        *,
        top: int = 32,
        kernel: Kernel = "auto",
        evidence: int = 0,
        everything: bool = False,
    ) -> None:
        _whole("top", top, 1)
        _whole("evidence", evidence, 0)
        if kernel not in get_args(Kernel):
            raise ValueError(f"`kernel` must be one of {list(get_args(Kernel))}, got {kernel!r}.")
        if not isinstance(rule, SpreadRule):
            raise TypeError(f"`rule` must be a SpreadRule, got {type(rule).__name__}.")
        self.edges = graph
        self.rule, self.top, self.evidence, self.everything = rule, top, evidence, everything
        self.kernel = kernel
        if kernel == "reference":
            return
        size = bucket(graph.n_nodes, FEWEST_NODES)
        self._numbers = jax.device_put(packed_numbers(rule.params(graph.relations)))
        self._columns = jax.device_put(columns_of(graph, rule, size))
        self._form = jax.device_put(dense_form(graph, rule, size))
        self._more: tuple[Any, ...] = ()
        if evidence:
            self._more = (jax.device_put(edge_form(graph, rule, bucket(graph.n_edges))),)
        self._calls = {
            is_timed: compiled(Plan("dense", rule.code, is_timed, top, everything, evidence))
            for is_timed in (False, True)
        }

    def __call__(self, sources: Sources | Mapping[int, float] | Sequence[Any]) -> Activation:
        """Spread from sources; `Sources` are taken as checked, everything else is checked by `Sources.of`."""
        given = sources if isinstance(sources, Sources) else Sources.of(sources, self.edges.n_nodes)
        if self.kernel == "reference":
            return told(
                spread_reference(self.edges, given, self.rule),
                self.edges,
                self.rule,
                top=self.top,
                evidence=self.evidence,
                everything=self.everything,
            )
        packed = packed_sources(given)
        call = self._calls[bool(packed[2].any())]
        found = call(self._columns, self._form, self._numbers, packed, *self._more)
        result = unpacked_result(np.asarray(found[0]), self.top)
        if self.everything:
            result = result._replace(everything=np.asarray(found[1])[: self.edges.n_nodes])
        return self._with_flows(result, found) if self.evidence else result

    def _with_flows(self, result: Activation, found: tuple[Any, ...]) -> Activation:
        rows, amount, by_round, history, n_flows = (np.asarray(part) for part in found[2:])
        missing = self.evidence - len(rows)
        flows = listed_flows(
            self.edges, rows[rows >= 0], np.pad(amount, (0, missing)), np.pad(by_round, ((0, missing), (0, 0)))
        )
        dropped = Dropped(
            *result.dropped[:3],
            np.int32(max(0, int(n_flows) - self.evidence)),
        )
        return result._replace(flows=flows, history=history, dropped=dropped)


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"`{name}` must be a whole number, got {value!r}.")
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}, got {value}.")
