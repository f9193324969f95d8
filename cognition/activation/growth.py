"""Says once when a rule without cap cannot converge on a graph."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from ..graph.edge_list import EdgeList
from .derived import Graph, derived_of, rule_key, version_of
from .rule import GrowthWarning, SpreadRule, edges_of

ROUNDING = 1e-6
"""Relative; a rule that conserves activation has a growth of 1, up to rounding."""


def warn_of_growth(graph: Graph, rule: SpreadRule, *, rarely: bool = False) -> None:
    """Warn with the number where the rule diverges on the graph; once for each rule of a graph.

    Args:
        graph: the graph.
        rule: the rule.
        rarely: whether to look again only once the graph has doubled, since to look costs as much as many queries.
    """
    if rule.cap is not None:
        return
    kept, key = derived_of(graph), rule_key(rule)
    n_edges, version = graph.n_edges if rarely else 0, version_of(graph)
    looked_at = kept.growth.get(key)
    if looked_at is not None:
        diverges, old_edges, old_version = looked_at
        if diverges or (n_edges < 2 * old_edges if rarely else version == old_version):
            return
    edges = edges_of(graph)
    growth = 0.0 if sums_bound(edges, rule) <= 1.0 + ROUNDING else rule.growth(edges)
    diverges = growth > 1.0 + ROUNDING
    kept.growth[key] = (diverges, edges.n_edges, version)
    if diverges:
        warnings.warn(
            f"`rule` has no cap, and on this graph activation can grow by a factor of up to {growth:.4g} in each "
            "round, without end; give it a `cap`, or less `retention` or `decay`.",
            GrowthWarning,
            stacklevel=_callers_level(),
        )


def sums_bound(edges: EdgeList, rule: SpreadRule) -> float:
    """A bound on `SpreadRule.growth` at the cost of one pass: no eigenvalue exceeds the largest sum of a row or column.

    Where nodes without out-edges return what they have (`dangling`), only the sums of what leaves a node count.
    """
    kept = (1.0 - rule.restart) * (1.0 - rule.leak)
    stays = kept * rule.retentions(edges)
    through = kept * rule.bases(edges)[edges.target] * np.abs(rule.weights(edges))
    leaves = stays + np.bincount(edges.source, through, edges.n_nodes)
    if rule.dangling:
        return float((leaves + kept * (edges.out_degree() == 0)).max(initial=0.0))
    arrives = stays + np.bincount(edges.target, through, edges.n_nodes)
    return float(min(leaves.max(initial=0.0), arrives.max(initial=0.0)))


def _callers_level() -> int:
    """`stacklevel` of the first caller outside this package, for a warning in the function that calls this one."""
    package, level = __name__.rpartition(".")[0], 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(package):
        frame, level = frame.f_back, level + 1
    return level
