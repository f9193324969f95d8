"""`recall` neither floods a graph nor dies out in it; the constants of the documents do flood it.

A memory of N nodes has mean out-degree 10, strengths even in (0, 1], relations at random, base levels 1. Half a percent
of the nodes, at least 8, are sources of 1. "Reached" is how many edges from the nearest source the farthest active node
is. The degree cap of `recall` was chosen on seeds 0 to 19; what is tested here are seeds from 1000 on.

The tables: python tests/cognition/activation/test_flooding.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from habitus.cognition.activation import named
from habitus.cognition.activation.reference import spread_reference
from habitus.cognition.activation.rule import SpreadRule
from habitus.cognition.graph.edge_list import EdgeList
from habitus.cognition.graph.relations import RELATIONS

FAMILIES = ("random", "scale_free", "clustered")
DEGREE = 10
COMMUNITY = 50  # nodes; nine in ten edges of "clustered" stay inside
LEAST, MOST = 0.01, 0.20  # of all nodes
SEEDS = {1_000: range(1_000, 1_012), 10_000: range(1_000, 1_003), 100_000: range(1_000, 1_001)}


def memory(family: str, n: int, seed: int, degree: int = DEGREE) -> EdgeList:
    rng = np.random.default_rng(seed)
    size = n * degree
    if family == "random":
        source, target = rng.integers(0, n, (2, size))
    elif family == "scale_free":  # Chung-Lu, exponent 2.5, for edges that leave and that reach
        weight = np.cumsum(np.arange(1, n + 1) ** (-1 / 1.5))
        source, target = rng.permutation(n)[np.searchsorted(weight / weight[-1], rng.random((2, size)))]
    else:
        source = rng.integers(0, n, size)
        target = np.minimum(source // COMMUNITY * COMMUNITY + rng.integers(0, COMMUNITY, size), n - 1)
        away = rng.random(size) < 0.1
        target[away] = rng.integers(0, n, away.sum())
    pairs = np.unique((source * n + target)[source != target])
    source, target = np.divmod(pairs, n)
    relation = rng.integers(0, len(RELATIONS), len(pairs))
    return EdgeList(n, source, target, 1.0 - rng.random(len(pairs)), relation)


def context(edges: EdgeList, seed: int, share: float = 0.005) -> list[int]:
    size = max(8, round(share * edges.n_nodes))
    return np.random.default_rng(seed + 1).choice(edges.n_nodes, size, replace=False).tolist()


def share_and_reach(edges: EdgeList, sources: list[int], rule: SpreadRule) -> tuple[float, int]:
    activation = spread_reference(edges, sources, rule).activation[-1]
    is_active = activation.astype(np.float32) >= np.float32(rule.threshold)
    distance = np.full(edges.n_nodes, -1)
    distance[sources] = 0
    for step in range(1, rule.rounds + 1):
        near = edges.target[distance[edges.source] == step - 1]
        distance[near[distance[near] < 0]] = step
    return float(is_active.mean()), int(distance[is_active].max())


@pytest.mark.parametrize("n", [1_000, 10_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_recall_neither_floods_nor_dies_out(family, n):
    for seed in SEEDS[n]:
        edges = memory(family, n, seed)
        share, reach = share_and_reach(edges, context(edges, seed), named.recall())
        assert LEAST <= share <= MOST, (seed, share)
        assert reach >= 2, seed


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("degree", [3, 20])
def test_it_holds_for_sparser_and_denser_memories(family, degree):
    edges = memory(family, 10_000, 1_000, degree)
    share, reach = share_and_reach(edges, context(edges, 1_000), named.recall())
    assert LEAST <= share <= MOST
    assert reach >= 2


@pytest.mark.parametrize("family", FAMILIES)
def test_without_the_degree_cap_recall_would_flood(family):
    edges = memory(family, 10_000, 1_000)
    share, _ = share_and_reach(edges, context(edges, 1_000), named.recall(normalisation="none"))
    assert share > MOST


@pytest.mark.parametrize("is_two_way", [False, True])
def test_a_chain_of_strong_edges_is_followed(is_two_way):
    # causes, strength .9: .72, .5184, .373 in three rounds
    forth = [(i, i + 1) for i in range(9)]
    ends = np.array(forth + [(b, a) for a, b in forth] if is_two_way else forth)
    causes = np.full(len(ends), RELATIONS.index("causes"))
    edges = EdgeList(10, ends[:, 0], ends[:, 1], np.full(len(ends), 0.9), causes)
    found = spread_reference(edges, [0], named.recall()).activation[-1]
    assert found[3] == pytest.approx(0.72**3, abs=1e-12)
    assert share_and_reach(edges, [0], named.recall())[1] == 3


@pytest.mark.parametrize("n", [1_000, 10_000])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_constants_of_the_documents_diverge_on_the_same_memories(family, n):
    edges = memory(family, n, 1_000)
    growth = named.literal().growth(edges)
    assert growth > 2
    course = spread_reference(edges, context(edges, 1_000), named.literal(rounds=22))
    total = course.activation.sum(axis=1)
    assert total[-1] / total[-2] == pytest.approx(growth, rel=0.05)  # in the long run it grows by just that
    assert (course.activation[10] >= 0.2).mean() > 0.5
    assert total[-1] > 1e9


def main() -> None:
    """Print how it is, and how it would be otherwise."""
    print("| memory | N | active, % (least to most) | reached | `literal`, 5 rounds, % | growth of `literal` |")
    print("| --- | --- | --- | --- | --- | --- |")
    for family in FAMILIES:
        for n, seeds in SEEDS.items():
            found, flooded, growth = [], [], 0.0
            for seed in seeds:
                edges = memory(family, n, seed)
                sources = context(edges, seed)
                found.append(share_and_reach(edges, sources, named.recall()))
                flooded.append(share_and_reach(edges, sources, named.literal())[0])
                growth = max(growth, named.literal().growth(edges))
            share, reach = np.array(found).T
            print(
                f"| {family} | {n:,} | {100 * share.mean():.1f} ({100 * share.min():.1f} to {100 * share.max():.1f}) "
                f"| {reach.min():.0f} | {100 * np.mean(flooded):.0f} | {growth:.1f} |"
            )
    print(f"\n| seed 1,000, N = 10,000: active, % (reached) | {' | '.join(FAMILIES)} |")
    print("| --- | --- | --- | --- |")
    variants: list[tuple[str, dict[str, Any], int, float]] = [
        *((f"mean degree {degree}", {}, degree, 0.005) for degree in (3, 5, 10, 20, 40)),
        *((f"{share:.1%} of the nodes are sources", {}, DEGREE, share) for share in (0.001, 0.01, 0.02)),
        *((f"{rounds} rounds", {"rounds": rounds}, DEGREE, 0.005) for rounds in (4, 5)),
        *((f"degree cap {cap:g}", {"degree_cap": cap}, DEGREE, 0.005) for cap in (1.0, 1.5, 3.0, 16.0)),
        *((f"normalisation {name}", {"normalisation": name}, DEGREE, 0.005) for name in ("row", "none")),
    ]
    for name, changes, degree, share in variants:
        cells = []
        for family in FAMILIES:
            edges = memory(family, 10_000, 1_000, degree)
            active, reach = share_and_reach(edges, context(edges, 1_000, share), named.recall(**changes))
            cells.append(f"{100 * active:.1f} ({reach})")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
