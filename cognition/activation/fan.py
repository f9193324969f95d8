"""The fan effect in two cognitive architectures: the more a memory is linked to, the less each link counts.

ACT-R does not spread in rounds: activation goes once, from the sources to what holds them, over strengths that are
logarithms and may be negative. Soar spreads in rounds (`soar_fan`) and takes the logarithm afterwards.

Sources: Anderson & Lebiere (1998), The Atomic Components of Thought; ACT-R reference manual, `:mas`; Soar manual 9.6,
semantic memory, and its source, `smem_activation.cpp`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..graph.edge_list import EdgeList
from .rule import HasEdges, edges_of
from .sources import Sources

FloatArray = npt.NDArray[np.float64]


def actr_strength(fan: Any, maximum: float = 1.6) -> FloatArray:
    """Strength of association, S_ji = S - ln(fan_ji).

    Args:
        fan: any shape, > 0; (1 + slots of all memories that hold j) / (slots of i that hold j).
        maximum: S, `:mas` of ACT-R.

    Raises:
        ValueError: a fan is not above 0.
    """
    values = np.asarray(fan, np.float64)
    wrong = values[~(values > 0)]
    if wrong.size:
        raise ValueError(f"`fan` must be above 0, got {wrong[0]}.")
    return np.asarray(maximum - np.log(values))


def actr_fan(
    edges: EdgeList | HasEdges,
    sources: Sequence[int] | Mapping[int, float],
    *,
    maximum: float = 1.6,
    weight: float = 1.0,
) -> FloatArray:
    """Associative activation of every node in ACT-R, sum_j W_j S_ji, to which its base level is added.

    Args:
        edges: an edge j -> i for every slot of memory i that holds j; several slots are several relations. Strengths
            and signs do not count: ACT-R makes its own out of the fan.
        sources: nodes in the slots of the buffers, which share `weight`; or their W_j.
        maximum: S.
        weight: W, source activation of a buffer.

    Returns:
        [N] f64. A memory that holds no source has 0; a source is associated with itself.

    Raises:
        TypeError, ValueError: see `Sources.of`; sources that come in later rounds are refused.
    """
    edges = edges_of(edges)
    given = Sources.of(sources, edges.n_nodes)
    if given.rounds.any():
        raise ValueError(f"`sources` must all be there from the start, got round {given.rounds.max()}.")
    level = np.zeros(edges.n_nodes)
    level[given.nodes] = given.values if isinstance(sources, Mapping) else weight * given.values / given.values.sum()
    fan = 1.0 + edges.out_degree()
    pairs, slots = np.unique(edges.source.astype(np.int64) * edges.n_nodes + edges.target, return_counts=True)
    source, target = np.divmod(pairs, edges.n_nodes)
    flow = level[source] * actr_strength(fan[source] / slots, maximum)
    total = np.bincount(target, flow, edges.n_nodes).astype(np.float64)
    alone = given.nodes[~np.isin(given.nodes.astype(np.int64) * (edges.n_nodes + 1), pairs)]
    total[alone] = total[alone] + level[alone] * actr_strength(fan[alone], maximum)
    return total


def soar_sources(sources: Any, depth: int, n_nodes: int) -> Sources:
    """Sources that are there in every round of `soar_fan`: after `depth` rounds A is the sum over all paths.

    Args:
        sources: see `Sources.of`, none in a later round.
        depth: rounds of the rule.
        n_nodes: nodes of the graph.

    Raises:
        TypeError, ValueError: see `Sources.of`; sources that come in later rounds are refused.
    """
    given = Sources.of(sources, n_nodes)
    if given.rounds.any():
        raise ValueError(f"`sources` must all be there from the start, got round {given.rounds.max()}.")
    times = depth + 1
    return Sources(
        np.tile(given.nodes, times),
        np.tile(given.values, times),
        np.repeat(np.arange(times, dtype=np.int32), len(given.nodes)),
    )


def soar_spread(
    activation: Any, *, probability: float = 0.9, depth: int = 10, baseline: float = 1e-4, own: Any = 0.0
) -> FloatArray:
    """What Soar adds to the base level of a memory: ln(spread / offset), 0 below the offset.

    The offset is `baseline` over the most that can arrive, p + p^2 + ... + p^(depth + 1).

    Args:
        activation: any shape, A after the last round of `soar_fan`.
        probability: p in (0, 1).
        depth: rounds of the rule.
        baseline: `spreading-baseline` in (0, 1).
        own: what the sources injected in the last round, which no path has brought.

    Raises:
        ValueError: `probability` or `baseline` is outside its range.
    """
    for name, value in (("probability", probability), ("baseline", baseline)):
        if not 0 < value < 1:
            raise ValueError(f"`{name}` must be in (0, 1), got {value}.")
    offset = baseline / np.sum(probability ** np.arange(1, depth + 2))
    spread = np.asarray(activation, np.float64) - own
    return np.asarray(np.log(np.maximum(spread, offset) / offset))
