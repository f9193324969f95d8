"""Graphs to measure and to test activation on: power laws, preferential attachment, clusters; up to 1e8 edges.

All are drawn by whole columns, so that 1e7 edges take seconds. Edges stand once; there are no loops. Strengths are
uniform in (0, 1], base levels uniform in [0, 1), relations four of the default ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..cognition.graph import RELATIONS, EdgeList

IntColumn = npt.NDArray[np.int64]

DRAWN_RELATIONS = ("causes", "is_similar_to", "co_occurs_with", "precedes")
GAMMA = 2.5  # exponent of the degree distribution
SPREAD = 300  # scale of the distance of a local edge, in node numbers
WINDOW = 1_000  # and the furthest


def random_graph(n_nodes: int, mean_degree: float = 10, local: float = 0.0, seed: int = 0) -> EdgeList:
    """A directed graph whose in- and out-degrees follow a power law of exponent 2.5, independently of each other.

    Chung and Lu (2002): both ends of an edge are drawn in proportion to weights w_i ~ i^(-1 / (gamma - 1)), here from
    the inverse of their continuous distribution. Which node has which weight is drawn too, apart for both ends.

    Args:
        n_nodes: N >= 2.
        mean_degree: edges drawn per node; a few per cent fewer remain, since edges stand once and loops go.
        local: share of the edges whose ends are neighbours in number, as in a memory that grows with time.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    n_edges = _n_edges(n_nodes, mean_degree)
    source = _heavy_tailed(rng, n_nodes, n_edges)
    target = _heavy_tailed(rng, n_nodes, n_edges)
    if local:
        chosen = np.flatnonzero(rng.random(n_edges) < local)
        start = rng.integers(0, n_nodes, len(chosen))
        step = np.clip(np.rint(rng.laplace(0, SPREAD, len(chosen))), -WINDOW, WINDOW).astype(np.int64)
        source[chosen], target[chosen] = start, np.clip(start + step, 0, n_nodes - 1)
    return _finished(rng, n_nodes, source, target)


def scale_free_graph(n_nodes: int, mean_degree: int = 10, seed: int = 0) -> EdgeList:
    """A directed graph that grew by preferential attachment (Barabasi and Albert 1999); each edge points either way.

    A new node takes an end of an earlier edge, which is a node in proportion to its degree. Edge e belongs to node
    e div m; its other end is found by following references to earlier edges, all at once.
    """
    rng = np.random.default_rng(seed)
    m = max(1, mean_degree)
    own = np.repeat(np.arange(n_nodes, dtype=np.int64), m)
    place = (rng.random(len(own)) * 2 * m * own).astype(np.int64)  # an end of an edge of an earlier node
    while (follows := np.flatnonzero(place % 2)).size:  # odd: the other end of edge place div 2, wherever that is
        place[follows] = place[place[follows] // 2]
    other = own[place // 2]
    flipped = rng.random(len(own)) < 0.5
    return _finished(rng, n_nodes, np.where(flipped, other, own), np.where(flipped, own, other))


def clustered_graph(
    n_nodes: int, mean_degree: float = 10, size: int = 50, inside: float = 0.8, seed: int = 0
) -> EdgeList:
    """A directed graph of clusters of `size` nodes: a share `inside` of the edges stays in the cluster of its source.

    With inside=0 it is uniformly random (Erdos and Renyi).
    """
    rng = np.random.default_rng(seed)
    n_edges = _n_edges(n_nodes, mean_degree)
    source = rng.integers(0, n_nodes, n_edges)
    target = rng.integers(0, n_nodes, n_edges)
    stays = rng.random(n_edges) < inside
    first = source // size * size
    width = np.minimum(first + size, n_nodes) - first
    target = np.where(stays, first + (rng.random(n_edges) * width).astype(np.int64), target)
    return _finished(rng, n_nodes, source, target)


def queries(edges: EdgeList, n_queries: int, n_sources: int = 8, seed: int = 1) -> npt.NDArray[np.int32]:
    """[n_queries, n_sources] i32: different nodes with out-edges, drawn uniformly; what a recall starts from."""
    rng = np.random.default_rng(seed)
    able = np.flatnonzero(edges.out_degree() > 0)
    if len(able) < n_sources:
        raise ValueError(f"`n_sources` must be at most {len(able)}, the nodes with out-edges, got {n_sources}.")
    return np.stack([rng.choice(able, n_sources, replace=False) for _ in range(n_queries)]).astype(np.int32)


def _n_edges(n_nodes: int, mean_degree: float) -> int:
    if n_nodes < 2:
        raise ValueError(f"`n_nodes` must be at least 2, got {n_nodes}; an edge needs two ends.")
    return round(n_nodes * mean_degree)


def _heavy_tailed(rng: np.random.Generator, n_nodes: int, size: int) -> IntColumn:
    """[size] node numbers, i-th likeliest with density ~ i^(-a), a = 1 / (gamma - 1), on [1, N + 1)."""
    power = 1.0 - 1.0 / (GAMMA - 1.0)
    draws = rng.random(size)
    draws *= (n_nodes + 1.0) ** power - 1.0
    draws += 1.0
    rank = np.minimum((draws ** (1.0 / power)).astype(np.int64) - 1, n_nodes - 1)
    return rng.permutation(n_nodes)[rank]


def _finished(rng: np.random.Generator, n_nodes: int, source: IntColumn, target: IntColumn) -> EdgeList:
    """Edges once each, in order of source and target, with drawn strengths, relations and base levels."""
    keys = source * n_nodes + target
    keys = keys[source != target]
    keys.sort()
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if keys.size else keys
    numbers = np.array([RELATIONS.index(name) for name in DRAWN_RELATIONS], np.uint8)
    source, target = np.divmod(keys, n_nodes)
    return EdgeList(
        n_nodes=n_nodes,
        source=source.astype(np.int32),
        target=target.astype(np.int32),
        strength=(1.0 - rng.random(len(keys), dtype=np.float32)).astype(np.float64),
        relation=numbers[rng.integers(0, len(numbers), len(keys))],
        base=rng.random(n_nodes, dtype=np.float32).astype(np.float64),
    )
