"""The one call: spread activation over a graph by a rule, with the kernel that is fastest for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.edge_list import EdgeList
from .named import recall
from .prepared import Kernel, Spreader
from .result import Activation
from .rule import SpreadRule
from .sources import Sources

SourcesLike = Sources | Mapping[int, float] | Sequence[Any]


def spread(
    graph: EdgeList,
    sources: SourcesLike,
    rule: SpreadRule | None = None,
    *,
    top: int = 32,
    kernel: Kernel = "auto",
    evidence: int = 0,
    everything: bool = False,
) -> Activation:
    """Spread activation from sources over a graph.

    Args:
        graph: the graph.
        sources: `{node: value}`, nodes, (node, value) pairs or (node, value, round) triples; see `Sources.of`.
        rule: the rule; None = `recall()`.
        top: how many of the most active nodes to return.
        kernel: which kernel; all agree in values.
        evidence: how many of the edges that carried most to return, with the history of the returned nodes.
        everything: whether to return the activation of every node.

    Raises:
        TypeError, ValueError: an argument is wrong, by name.
    """
    spreader = Spreader(
        graph, recall() if rule is None else rule, top=top, kernel=kernel, evidence=evidence, everything=everything
    )
    return spreader(sources)


__all__ = ["Kernel", "spread"]
