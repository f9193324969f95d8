"""The one call: spread activation over a graph by a rule, with the kernel that is fastest for it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .choosing import Kernel
from .derived import Graph, derived_of, rule_key, version_of
from .frontier.kernel import check_limits
from .frontier.query import Limits
from .named import recall
from .own import EachSpreader
from .prepared import SourcesLike, Spreader, takes_frontier
from .result import Activation
from .rule import SpreadRule
from .sources import Sources


def spread(
    graph: Graph,
    sources: SourcesLike,
    rule: SpreadRule | None = None,
    *,
    top: int = 32,
    kernel: Kernel = "auto",
    evidence: int = 0,
    everything: bool = False,
    limits: Limits | None = None,
) -> Activation:
    """Spread activation from sources over a graph.

    What is worked out of the graph is kept with it until it changes; a `Spreader` also saves looking that up.

    Args:
        graph: a `MemoryGraph` or an `EdgeList`.
        sources: `{node: value}`, nodes, (node, value) pairs or (node, value, round) triples; see `Sources.of`.
        rule: the rule; None = `recall()`.
        top: how many of the most active nodes to return.
        kernel: which kernel; all agree in values. "auto" takes the fastest.
        evidence: how many of the edges that carried most to return, with the history of the returned nodes.
        everything: whether to return the activation of every node.
        limits: what a frontier starts from; None = `Limits()`.

    Raises:
        TypeError, ValueError: an argument is wrong, by name.

    Warns:
        GrowthWarning: the rule has no cap and diverges on this graph; once for each graph and rule.
    """
    return _spreader(graph, rule, top, kernel, evidence, everything, limits)(sources)


def spread_many(
    graph: Graph,
    sources: Sources | Sequence[SourcesLike],
    rule: SpreadRule | None = None,
    *,
    top: int = 32,
    kernel: Kernel = "auto",
    evidence: int = 0,
    everything: bool = False,
    limits: Limits | None = None,
) -> Activation:
    """Spread from many sets of sources over one graph, each for itself; much faster than as many calls.

    Args:
        graph: as in `spread`.
        sources: a sequence of what `spread` takes; or `Sources` with a leading axis, which are taken as checked.
        rule: as in `spread`.
        top: as in `spread`.
        kernel: as in `spread`.
        evidence: as in `spread`.
        everything: as in `spread`.
        limits: as in `spread`.

    Returns:
        The results, with a leading axis [B] in every array.

    Raises:
        TypeError, ValueError: as in `spread`, with the number of the query.
    """
    return _spreader(graph, rule, top, kernel, evidence, everything, limits).many(sources)


def spread_each(
    graphs: Sequence[Graph],
    sources: Sources | Sequence[SourcesLike],
    rule: SpreadRule | None = None,
    *,
    top: int = 32,
    kernel: Kernel = "auto",
    evidence: int = 0,
    everything: bool = False,
) -> Activation:
    """Spread over many graphs, each from its own sources; much faster than as many calls.

    Who spreads over the same graphs again and again saves their preparation with an `EachSpreader`.

    Args:
        graphs: B graphs.
        sources: a sequence of B times what `spread` takes; or `Sources` with a leading axis, taken as checked.
        rule: as in `spread`.
        top: as in `spread`.
        kernel: as in `spread`.
        evidence: as in `spread`.
        everything: as in `spread`; 0 for numbers beyond a graph's nodes.

    Returns:
        The results, with a leading axis [B] in every array.

    Raises:
        TypeError, ValueError: as in `spread`, with the number of the query.
    """
    rule = _default() if rule is None else rule
    spreader = EachSpreader(graphs, rule, top=top, kernel=kernel, evidence=evidence, everything=everything)
    return spreader(sources)


@functools.cache
def _default() -> SpreadRule:
    return recall()


def _spreader(
    graph: Graph,
    rule: SpreadRule | None,
    top: int,
    kernel: Kernel,
    evidence: int,
    everything: bool,
    limits: Limits | None,
) -> Spreader:
    rule = _default() if rule is None else rule
    check_limits(limits)  # before it is looked up by them
    options: dict[str, Any] = {
        "top": top,
        "kernel": kernel,
        "evidence": evidence,
        "everything": everything,
        "limits": limits,
    }
    make = functools.partial(Spreader, graph, rule, **options)
    if not isinstance(rule, SpreadRule) or kernel == "reference" or takes_frontier(graph, rule, kernel, everything):
        return make()  # quickly made, or wrong; and it holds the graph, which must not outlive its last user for it
    key: Any = (rule_key(rule), *options.values())
    return derived_of(graph).get(version_of(graph), key, make)
