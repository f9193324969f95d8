"""The rule gives the figures that others have published, in the reference and in every kernel that can run it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.cognition.activation import fan, named
from habitus.cognition.activation.frontier import Limits, frontier_spread, supports
from habitus.cognition.activation.frontier_state import new_scratch
from habitus.cognition.activation.reference import spread_reference
from habitus.cognition.activation.rule import SpreadRule
from habitus.cognition.activation.sources import Sources
from habitus.cognition.activation.spreading import spread
from habitus.cognition.graph.edge_list import EdgeList
from habitus.cognition.graph.memory_graph import MemoryGraph

KERNELS = ("dense", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ell", "sweep")))
pytestmark = pytest.mark.filterwarnings("ignore::habitus.cognition.activation.rule.GrowthWarning")
LONG = dict(tolerance=1e-15, rounds=3_000)
"""What makes `pagerank` converge in float64."""


def graph(n_nodes: int, edges: Sequence[tuple[Any, ...]], **columns: Any) -> EdgeList:
    """Of (source, target) or (source, target, strength); strengths above 1 are scaled, which rows do not notice."""
    rows = [(*edge, 1.0)[:3] for edge in edges]
    strength = np.array([row[2] for row in rows], np.float64)
    strength = strength / max(1.0, np.abs(strength).max(initial=0.0))
    ends = np.array([row[:2] for row in rows], np.int32).reshape(-1, 2)
    return EdgeList(n_nodes, ends[:, 0], ends[:, 1], strength, **columns)


def both_ways(edges: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [way for edge in edges for way in (edge, (edge[1], edge[0], *edge[2:]))]


@dataclasses.dataclass(frozen=True)
class Case:
    """What one source has published.

    Attributes:
        name, origin: of the case.
        edges, rule, sources: what goes in.
        expected: activation of all nodes, by round; -1 for the last one made.
        digits: half a unit of the last digit that was published, 1e-12 for figures that are exact.
    """

    name: str
    origin: str
    edges: EdgeList
    rule: SpreadRule
    sources: Any
    expected: dict[int, Sequence[float]]
    digits: float = 1e-12


PAIR = graph(2, [(0, 1)])
THREE_CHAINS = graph(9, [(0, 1), (1, 2), (3, 4), (4, 5), (6, 7), (7, 8)])
RING = graph(8, [(i, (i + 1) % 8) for i in range(8)])
WEIGHTED = graph(5, [(0, 1, 0.8), (0, 2, 0.2), (1, 3, 0.9), (1, 4, 0.1), (2, 4, 0.6), (3, 4, 0.5), (4, 0, 0.3)])
SURVEY = graph(6, [(0, 1), (0, 2), (2, 0), (2, 1), (2, 4), (3, 4), (3, 5), (4, 3), (4, 5), (5, 3)])
COMPLETE = graph(4, [(i, j) for i in range(4) for j in range(4) if i != j])
IPRCOM_1 = [(0, 1), (1, 2), (2, 0), (3, 2), (0, 2)]
IPRCOM_2 = [(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0), (3, 4), (3, 5), (3, 6), (3, 7), (4, 0), (5, 0), (6, 0)]
WEIGHTS_3 = [(0, 5, 4), (1, 5, 5), (2, 0, 5), (3, 1, 4), (5, 4, 4), (5, 7, 4), (6, 0, 3), (8, 0, 4), (8, 1, 4)]
CHAIN = graph(3, [(0, 1, 0.8), (1, 2, 0.9)])
STAR = both_ways([(0, leaf, 0.8) for leaf in range(1, 17)])
TWO_WAY = graph(2, [(0, 1, 0.8), (1, 0, 0.8)])


def uniform(n: int) -> dict[int, float]:
    return dict.fromkeys(range(n), 1.0 / n)


SPREADR = [
    Case(
        "both nodes start",
        "spreadr, test-start-run",
        PAIR,
        named.spreadr(0.5, rounds=3),
        {0: 10, 1: 10},
        {1: (5, 15), 2: (2.5, 17.5), 3: (1.25, 18.75)},
    ),
    Case(
        "activation comes later",
        "spreadr, test-start-run",
        PAIR,
        named.spreadr(0.5, rounds=3),
        [(0, 10.0, 1), (0, 10.0, 2)],
        {0: (0, 0), 1: (10, 0), 2: (15, 5), 3: (7.5, 12.5)},
    ),
    Case(
        "weights",
        "spreadr, test-weighted-matrix",
        graph(3, both_ways([(0, 1, 1), (0, 2, 9)])),
        named.spreadr(0.0, rounds=1),
        {0: 10},
        {0: (10, 0, 0), 1: (0, 1, 9)},
    ),
    Case(
        "terminal nodes keep what they have",
        "spreadr, test-terminal-nodes (its issue 1)",
        graph(5, [(0, 1), (0, 4), (1, 3), (1, 4), (3, 0), (3, 1), (3, 2)]),
        named.spreadr(0.0, rounds=3),
        {0: 20},
        {1: (0, 10, 0, 0, 10), 2: (0, 0, 0, 5, 15), 3: (5 / 3, 5 / 3, 5 / 3, 0, 15)},
    ),
    Case(
        "one step",
        "spreadr, test-stop-conditions",
        PAIR,
        named.spreadr(0.5, rounds=4),
        {0: 20},
        {1: (10, 10), 2: (5, 15), 3: (2.5, 17.5), 4: (1.25, 18.75)},
    ),
    Case(
        "decay",
        "spreadr, test-stop-conditions",
        PAIR,
        named.spreadr(0.5, leak=0.5, rounds=3),
        {0: 20},
        {1: (5, 5), 2: (1.25, 3.75), 3: (0.3125, 2.1875)},
    ),
    Case(
        "a retention for each node",
        "spreadr, test-per-node-retention",
        THREE_CHAINS,
        named.spreadr(np.array([0, 0, 0, 0, 0.5, 0, 0, 1, 0]), rounds=5),
        {0: 100, 3: 100, 6: 100},
        {
            1: (0, 100, 0, 0, 100, 0, 0, 100, 0),
            2: (0, 0, 100, 0, 50, 50, 0, 100, 0),
            3: (0, 0, 100, 0, 25, 75, 0, 100, 0),
            4: (0, 0, 100, 0, 12.5, 87.5, 0, 100, 0),
            5: (0, 0, 100, 0, 6.25, 93.75, 0, 100, 0),
        },
    ),
    Case(
        "four injections into a ring",
        "spreadr, test-include-t0, its snapshot",
        RING,
        named.spreadr(0.05, rounds=16),
        [(0, 100.0, 0), (0, 100.0, 2), (0, 100.0, 4), (0, 100.0, 6)],
        {
            1: (5, 95, 0, 0, 0, 0, 0, 0),
            2: (100.25, 9.5, 90.25, 0, 0, 0, 0, 0),
            4: (100.250625, 9.5475, 91.60375, 17.1475, 81.450625, 0, 0, 0),
            6: (100.250627, 9.547678, 91.612211, 17.361844, 84.505023, 23.213428, 73.509189, 0),
            8: (66.592670, 9.547679, 91.612250, 17.363344, 84.540658, 23.755075, 78.654832, 27.933492),
            12: (74.010770, 33.245835, 69.761354, 34.343858, 57.126311, 23.761216, 78.752374, 28.998282),
            16: (51.684539, 33.285650, 70.134930, 36.793695, 66.944129, 39.533482, 63.495298, 38.128277),
        },
        digits=5e-7,
    ),
    *(
        Case(
            f"retention {retention}, decay {decay}",
            "spreadr, vignette, several parameters; by hand from its description",
            PAIR,
            named.spreadr(retention, leak=decay, rounds=2),
            {0: 10},
            {1: one, 2: two},
        )
        for retention, decay, one, two in [
            (0.0, 0.0, (0, 10), (0, 10)),
            (0.5, 0.0, (5, 5), (2.5, 7.5)),
            (0.0, 0.5, (0, 5), (0, 2.5)),
            (0.5, 0.5, (2.5, 2.5), (0.625, 1.875)),
        ]
    ),
]

PAGERANK = [
    *(
        Case(
            f"weighted, alpha {alpha}",
            "networkx, igraph (prpack) and rustworkx, which agree to 1e-9",
            WEIGHTED,
            named.pagerank(alpha, **LONG),
            {0: 1.0},
            {-1: values},
            digits=5e-10,
        )
        for alpha, values in [
            (0.5, (0.543478261, 0.217391304, 0.054347826, 0.097826087, 0.086956522)),
            (0.85, (0.331711265, 0.225563660, 0.056390915, 0.172556200, 0.213777959)),
        ]
    ),
    Case(
        "survey of Langville and Meyer, one node without out-edges",
        "networkx, test_pagerank",
        SURVEY,
        named.pagerank(0.9, **LONG),
        uniform(6),
        {-1: (0.03721197, 0.05395735, 0.04150565, 0.37508082, 0.20599833, 0.28624589)},
        digits=1e-8,
    ),
    Case(
        "personalised by four nodes",
        "networkx, test_personalization (iterated to 1e-6)",
        COMPLETE,
        named.pagerank(0.85, **LONG),
        {0: 0.1, 1: 0.1, 2: 0.4, 3: 0.4},
        {-1: (0.23246732615667579, 0.23246732615667579, 0.267532673843324, 0.2675326738433241)},
        digits=2e-6,
    ),
    Case(
        "personalised by one node",
        "networkx, test_one_nonzero_personalization_value (iterated to 1e-6)",
        COMPLETE,
        named.pagerank(0.85, **LONG),
        {3: 1.0},
        {-1: (0.22077931820379187, 0.22077931820379187, 0.22077931820379187, 0.3376620453886241)},
        digits=2e-6,
    ),
    Case(
        "a node removed",
        "rustworkx, test_with_removed_node (iterated to 1e-6)",
        graph(4, [(0, 1), (1, 2), (3, 0), (3, 1), (3, 2), (0, 3)]),
        named.pagerank(0.85, **LONG),
        uniform(4),
        {-1: (0.17401467654615052, 0.2479710438690554, 0.3847906219106203, 0.19322365767417365)},
        digits=4e-6,
    ),
    Case(
        "four pages",
        "metagraph, test_pagerank",
        graph(4, [(0, 1), (0, 2), (2, 0), (1, 2), (3, 2)]),
        named.pagerank(0.85, **LONG),
        uniform(4),
        {-1: (0.37252685132844066, 0.19582391181458728, 0.3941492368569718, 0.0375)},
        digits=1e-6,
    ),
    Case(
        "iprcom 1, undirected",
        "igraph, igraph_pagerank.out",
        graph(4, [(a, b, w) for a, b, w in both_ways([(0, 1, 1), (1, 2, 1), (0, 2, 2), (3, 2, 1)])]),
        named.pagerank(0.85, **LONG),
        uniform(4),
        {-1: (0.288717, 0.201989, 0.389109, 0.120186)},
        digits=5e-7,
    ),
    Case(
        "star, undirected",
        "igraph, igraph_pagerank.out",
        graph(11, both_ways([(0, leaf) for leaf in range(1, 11)])),
        named.pagerank(0.85, **LONG),
        uniform(11),
        {-1: (0.46683, *[0.053317] * 10)},
        digits=5e-6,
    ),
    Case(
        "star, personalised by a leaf",
        "igraph, igraph_pagerank.out",
        graph(11, both_ways([(0, leaf) for leaf in range(1, 11)])),
        named.pagerank(0.5, **LONG),
        {1: 1.0},
        {-1: (0.333333, 0.516667, *[0.0166667] * 9)},
        digits=5e-7,
    ),
    Case(
        "no edge at all, personalised",
        "igraph, igraph_pagerank.out",
        graph(4, []),
        named.pagerank(0.85, **LONG),
        {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4},
        {-1: (0.1, 0.2, 0.3, 0.4)},
    ),
    Case(
        "one edge and two lonely nodes, personalised",
        "igraph, igraph_pagerank.out",
        graph(4, both_ways([(0, 1)])),
        named.pagerank(0.85, **LONG),
        {0: 0.1, 1: 0.2, 2: 0.3, 3: 0.4},
        {-1: (0.36036, 0.38038, 0.111111, 0.148148)},
        digits=5e-6,
    ),
    Case(
        "weights, several nodes without out-edges",
        "igraph, igraph_pagerank.out (its bug 792352)",
        graph(9, WEIGHTS_3),
        named.pagerank(0.85, **LONG),
        uniform(9),
        {-1: (0.143734, 0.104639, 0.045995, 0.045995, 0.155268, 0.257112, 0.045995, 0.155268, 0.045995)},
        digits=5e-7,
    ),
    Case(
        "edges that stand twice",
        "igraph, igraph_pagerank.out",
        graph(3, both_ways([(0, 1, 1), (1, 2, 2)])),
        named.pagerank(0.85, **LONG),
        uniform(3),
        {-1: (0.187838, 0.486486, 0.325676)},
        digits=5e-7,
    ),
]

LITERAL = [
    Case(
        "chain: the farthest node is the most active",
        "the seed formula, rounds 1 to 5",
        CHAIN,
        named.literal(),
        {0: 1.0},
        {
            1: (0.9, 0.56, 0),
            2: (0.81, 1.008, 0.3528),
            3: (0.729, 1.3608, 0.95256),
            5: (0.59049, 1.83708, 2.571912),
        },
    ),
    *(
        Case(
            f"hub of 16, {normalisation}",
            "the seed formula, one round",
            graph(17, STAR),
            named.literal(normalisation=normalisation, rounds=1),
            {0: 1.0},
            {1: (0.9, *[leaf] * 16)},
        )
        for normalisation, leaf in (("none", 0.56), ("sqrt", 0.14), ("row", 0.04375))
    ),
    *(
        Case(
            f"below the threshold: {below}",
            "the seed formula, base levels 1, .5, .9, 5 rounds",
            graph(3, [(0, 1, 0.5), (1, 2, 0.9)], base=np.array([1, 0.5, 0.9])),
            named.literal(below=below),
            {0: 1.0},
            {5: (0.59049, *rest)},
            digits=5e-4,
        )
        for below, rest in (("gate", (0.574, 0.651)), ("zero", (0.0, 0.0)))
    ),
    Case(
        "pair of strength .8",
        "the seed formula, 10 rounds",
        TWO_WAY,
        named.literal(rounds=10),
        {0: 1.0},
        {5: (3.32, 3.31), 10: (22.0, 22.0)},
        digits=6e-3,
    ),
    Case(
        "contraction",
        "closed form: A(t) = ((.82^t + .18^t) / 2, (.82^t - .18^t) / 2)",
        TWO_WAY,
        SpreadRule(retention=0.5, decay=0.4, rounds=4),
        {0: 1.0},
        {4: (0.22658576, 0.225536)},
    ),
]

SOAR = [
    Case(
        "child and grandchild",
        "Soar manual 9.6, spreading-continue-probability .9",
        graph(3, [(0, 1), (1, 2)]),
        named.soar_fan(),
        fan.soar_sources({0: 1.0}, 10, 3),
        {-1: (1.0, 0.9, 0.81)},
    ),
    Case(
        "divided among children",
        "Soar manual 9.6: 90 % are divided among the direct children",
        graph(6, [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5)]),
        named.soar_fan(),
        fan.soar_sources({0: 1.0}, 10, 6),
        {-1: (1.0, 0.3, 0.3, 0.3, 0.135, 0.135)},
    ),
    Case(
        "depth limit",
        "Soar manual 9.6, spreading-depth-limit 1, as in its alphabet agent",
        graph(3, [(0, 1), (1, 2)]),
        named.soar_fan(depth=1),
        fan.soar_sources({0: 1.0}, 1, 3),
        {-1: (1.0, 0.9, 0.0)},
    ),
    Case(
        "every path counts, loops too",
        "by hand: 0 -> 1 -> 0 -> 1, .9 + .9^3 and .9^2 beside the source",
        graph(2, [(0, 1), (1, 0)]),
        named.soar_fan(depth=3),
        fan.soar_sources({0: 1.0}, 3, 2),
        {-1: (1 + 0.9**2, 0.9 + 0.9**3)},
    ),
]

CASES = [*SPREADR, *PAGERANK, *LITERAL, *SOAR]


def case_id(case: Case) -> str:
    return f"{case.origin.split(',')[0]}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_the_reference_gives_the_published_figures(case):
    course = spread_reference(case.edges, case.sources, case.rule)
    for number, expected in case.expected.items():
        np.testing.assert_allclose(
            course.activation[number], expected, rtol=0, atol=case.digits * max(1.0, np.max(np.abs(expected)))
        )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_every_kernel_gives_the_published_figures(case, kernel):
    number, expected = max(case.expected.items(), key=lambda item: item[0] if item[0] >= 0 else np.inf)
    rule = case.rule if number < 0 else dataclasses.replace(case.rule, rounds=number)
    if rule.tolerance:  # what converges does so to the default of the rule
        rule = dataclasses.replace(rule, tolerance=1e-7, rounds=1_000)
    found = spread(case.edges, case.sources, rule, kernel=kernel, everything=True, top=8)
    size = max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(found.everything, expected, rtol=0, atol=max(case.digits, 1e-6) * size)
    exact = spread_reference(case.edges, case.sources, rule).activation[-1]
    np.testing.assert_allclose(found.everything, exact, rtol=0, atol=1e-6 * size)


FEW_ROUNDS = [case for case in CASES if supports(case.rule.code) is None and max(case.expected) in range(1, 6)]


@pytest.mark.slow
@pytest.mark.parametrize("case", FEW_ROUNDS, ids=case_id)
def test_a_frontier_gives_the_published_figures(case):
    number, expected = max(case.expected.items())
    rule, n_nodes = dataclasses.replace(case.rule, rounds=number), case.edges.n_nodes
    given = Sources.of(case.sources, n_nodes)
    graph = MemoryGraph.from_edges(case.edges)
    found, _ = jax.jit(frontier_spread, static_argnames=("code", "limits", "top"))(
        graph.arrays,
        new_scratch(graph.arrays.capacity),
        jnp.asarray(given.nodes),
        jnp.asarray(given.values, jnp.float32),
        jnp.asarray(given.rounds),
        code=rule.code,
        params=rule.params(graph.relations),
        limits=Limits(active=(32,)),
        top=n_nodes,
    )
    assert sum(found.dropped) == 0
    activation = np.zeros(n_nodes)  # of active nodes; others are not listed
    is_node = np.asarray(found.nodes) >= 0
    activation[np.asarray(found.nodes)[is_node]] = np.asarray(found.values)[is_node]
    listed = np.where(np.asarray(expected) >= rule.threshold, expected, 0.0)
    size = max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(activation, listed, rtol=0, atol=max(case.digits, 1e-6) * size)


@pytest.mark.parametrize("alpha", [0.5, 0.85])
def test_pagerank_is_the_linear_solve(alpha):
    edges = WEIGHTED  # (1 - alpha) (I - alpha P^T)^-1 s
    step = np.zeros((5, 5))
    np.add.at(step, (edges.target, edges.source), named.pagerank().weights(edges))
    solved = (1 - alpha) * np.linalg.solve(np.eye(5) - alpha * step, np.eye(5)[0])
    found = spread_reference(edges, {0: 1.0}, named.pagerank(alpha, **LONG)).activation[-1]
    np.testing.assert_allclose(found, solved, atol=1e-12)


def test_pagerank_is_the_discounted_sum_of_a_spread_without_retention():
    course = spread_reference(WEIGHTED, {0: 1.0}, named.spreadr(0.0, leak=0.5, rounds=60))
    total = 0.5 * course.activation.sum(axis=0)
    np.testing.assert_allclose(total, PAGERANK[0].expected[-1], atol=5e-10)


@pytest.mark.parametrize(("tolerance", "rounds"), [(1e-3, 24), (1e-6, 59)])
@pytest.mark.parametrize("kernel", ["reference", *KERNELS])
def test_a_contraction_stops_when_its_closed_form_says(tolerance, rounds, kernel):
    rule = SpreadRule(retention=0.5, decay=0.4, rounds=200, tolerance=tolerance)
    found = spread(TWO_WAY, {0: 1.0}, rule, kernel=kernel)
    assert found.rounds == rounds
    assert found.change < tolerance


def test_a_contraction_adds_up_to_its_closed_form():
    rule = SpreadRule(retention=0.5, decay=0.4, rounds=400)
    total = spread_reference(TWO_WAY, {0: 1.0}, rule).activation.sum(axis=0)
    np.testing.assert_allclose(total, (3.387534, 2.168022), atol=5e-7)


def test_even_a_lonely_node_takes_as_long_to_settle_as_the_documents_overlook():
    for tolerance, round_ in ((0.01, 23), (0.001, 45)):
        rule = named.literal(rounds=100, tolerance=tolerance)
        assert len(spread_reference(graph(1, []), {0: 1.0}, rule).flow) == round_


@pytest.mark.parametrize(
    ("edges", "n", "normalisation", "expected"),
    [
        (both_ways([(0, 1, 0.8)]), 2, "none", 1.46),
        (both_ways([(0, 1, 0.8), (1, 2, 0.8), (2, 0, 0.8)]), 3, "none", 2.02),
        (both_ways([(0, leaf, 0.8) for leaf in range(1, 11)]), 11, "none", 2.67),
        ([(i, j, 0.5) for i in range(10) for j in range(10) if i != j], 10, "none", 4.05),
        (both_ways([(0, leaf, 0.8) for leaf in range(1, 11)]), 11, "sqrt", 1.90),
        ([(i, j, 0.5) for i in range(10) for j in range(10) if i != j], 10, "sqrt", 1.95),
        (both_ways([(0, leaf, 0.8) for leaf in range(1, 11)]), 11, "row", 1.6),
        (both_ways([(0, leaf, 0.8) for leaf in range(1, 11)]), 11, "symmetric", 1.6),
        ([(i, j, 0.5) for i in range(10) for j in range(10) if i != j], 10, "row", 1.6),
        ([(i, j, 0.5) for i in range(10) for j in range(10) if i != j], 10, "symmetric", 1.6),
    ],
)
def test_the_growth_of_the_documents_constants(edges, n, normalisation, expected):
    assert named.literal(normalisation=normalisation).growth(graph(n, edges)) == pytest.approx(expected, abs=5e-3)


def test_a_two_way_pair_grows_above_one_seventh():
    assert named.literal().growth(graph(2, both_ways([(0, 1, 1 / 7)]))) == pytest.approx(1.0, abs=1e-9)
    assert named.literal().growth(graph(2, both_ways([(0, 1, 0.15)]))) > 1.0
    assert named.literal().growth(graph(2, both_ways([(0, 1, 0.14)]))) < 1.0


def as_spreadr(weights, start, retention, decay, suppress, rounds):
    """Spreadr as its manual describes a step: spread, decay, set to 0 what is less than suppress, add start_run."""
    total = weights.sum(axis=1)
    activation, course = np.zeros(len(weights)), []
    for number in range(rounds + 1):
        sent = np.where(total > 0, (1 - retention) * activation, 0.0)
        activation = activation - sent + (sent / np.where(total > 0, total, 1.0)) @ weights
        activation = (1 - decay) * activation
        activation[activation < suppress] = 0.0
        for node, value, when in start:
            if when == number:
                activation[node] += value
        course.append(activation)
    return np.array(course)


@pytest.mark.parametrize("seed", range(5))
def test_spreadr_acts_in_the_order_of_its_manual(seed):
    rng = np.random.default_rng(seed)
    weights = np.round(rng.random((8, 8)) * (rng.random((8, 8)) < 0.4), 3)
    np.fill_diagonal(weights, 0.0)
    retention = rng.random(8)
    start = [(int(rng.integers(8)), float(rng.uniform(5, 20)), when) for when in (0, 0, 2, 3)]
    edges = graph(8, [(i, j, weights[i, j]) for i, j in zip(*np.nonzero(weights), strict=True)])
    rule = named.spreadr(retention, leak=0.1, threshold=0.7, below="zero", rounds=6)
    course = spread_reference(edges, start, rule)
    np.testing.assert_allclose(course.activation, as_spreadr(weights, start, retention, 0.1, 0.7, 6), atol=1e-12)


def test_spreadr_keeps_what_equals_suppress():
    # after one round the nodes have 2 and 2; less than 2 is suppressed, 2 is not
    rule = named.spreadr(0.5, threshold=2.0, below="zero", rounds=1)
    np.testing.assert_array_equal(spread_reference(PAIR, {0: 4.0}, rule).activation[1], (2, 2))
    rule = named.spreadr(0.5, threshold=2.001, below="zero", rounds=1)
    np.testing.assert_array_equal(spread_reference(PAIR, {0: 4.0}, rule).activation[1], (0, 0))


def test_soar_adds_the_logarithm_of_what_was_spread():
    # smem_activation.cpp: offset = baseline / (p + ... + p^(depth + 1)), ln(spread) - ln(offset), 0 below the offset
    offset = 1e-4 / sum(0.9**k for k in range(1, 12))
    found = fan.soar_spread([0.0, offset / 2, 0.9, 0.81, 1.81], own=[0, 0, 0, 0, 1.0])
    np.testing.assert_allclose(found, [0, 0, *np.log(np.array([0.9, 0.81, 0.81]) / offset)], atol=1e-12)


def test_associative_activation_of_act_r():
    # ACTRModels.jl, "spreading activation": memories (a, b, c) and (a, b, a); a and b are in the buffer, S is 1.6
    slots = [(0, 2, 0), (1, 2, 1), (3, 2, 2), (0, 4, 0), (1, 4, 1), (0, 4, 2)]  # word, memory, slot
    source, target, slot = np.array(slots).T
    edges = EdgeList(5, source, target, np.ones(6), slot)
    found = fan.actr_fan(edges, [0, 1], maximum=1.6)
    np.testing.assert_allclose(found[[2, 4]], (0.3575467, 0.7041203), atol=1e-7)
    assert found[3] == 0.0  # holds no source


def test_more_facts_about_a_word_make_each_harder_to_reach():
    # the fan experiment of unit 5: S 1.6, weight 1 over person and place, fan = 1 + facts
    edges = graph(6, [(0, 3), (1, 3), (0, 4), (2, 4), (0, 5), (1, 5)])  # hippie in park, in church, in bank...
    found = fan.actr_fan(edges, [0, 1], maximum=1.6)
    assert found[3] == pytest.approx(0.5 * (1.6 - np.log(4)) + 0.5 * (1.6 - np.log(3)), abs=1e-12)
    assert found[4] == pytest.approx(0.5 * (1.6 - np.log(4)), abs=1e-12)
    assert found[0] == pytest.approx(0.5 * (1.6 - np.log(4)), abs=1e-12)  # a source is associated with itself


def test_sources_of_act_r_times_their_strengths_as_in_a_trace():
    # trace of Lisp ACT-R in jACT-R's DefaultBaseLevelLearningTest: level .25 times Sji, added to the base level
    strengths = np.array([0.0, 0.0, 2.190562, 1.8540899])
    np.testing.assert_allclose(0.25 * strengths, (0, 0, 0.5476405, 0.46352246), atol=5e-8)
    maximum = 4.0
    fans = np.exp(maximum - strengths[2:])
    found = 0.25 * fan.actr_strength(fans, maximum)
    assert -3.5563608 + found.sum() == pytest.approx(-2.5451978, abs=5e-7)


def test_sources_that_come_later_are_refused_where_they_mean_nothing():
    for call in (
        lambda: fan.soar_sources([(0, 1.0, 2)], 3, 2),
        lambda: fan.actr_fan(PAIR, Sources.of([(0, 1.0, 2)], 2)),
    ):
        with pytest.raises(ValueError, match="`sources` must all be there from the start, got round 2"):
            call()
