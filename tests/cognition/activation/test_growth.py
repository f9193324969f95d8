"""The growth of a rule on a graph: never below the spectral radius, and hardly above it."""

import time

import numpy as np
import pytest
from habitus.cognition.activation import named
from habitus.cognition.activation.reference import spread_reference
from habitus.cognition.activation.rule import SpreadRule
from habitus.cognition.activation.spectrum import spectral_radius
from habitus.cognition.graph.edge_list import EdgeList
from habitus.cognition.graph.memory_graph import MemoryGraph
from habitus.cognition.graph.relations import RELATIONS
from hypothesis import given, settings
from hypothesis import strategies as st

ONE_TO_ONE = SpreadRule(retention=0.0)


def radius(n, source, target, weight, kept=0.0):
    return spectral_radius(
        n,
        np.asarray(source, np.int32),
        np.asarray(target, np.int32),
        np.asarray(weight, np.float64),
        np.broadcast_to(np.asarray(kept, np.float64), (n,)),
    )


def true_radius(n, source, target, weight, kept=0.0):
    matrix = np.diag(np.broadcast_to(np.asarray(kept, np.float64), (n,))).copy()
    np.add.at(matrix, (np.asarray(target), np.asarray(source)), weight)
    return np.abs(np.linalg.eigvals(matrix)).max()


def check(n, source, target, weight, kept=0.0):
    found, true = radius(n, source, target, weight, kept), true_radius(n, source, target, weight, kept)
    assert found >= true * (1 - 1e-9)  # what eigenvalues are known to
    assert found <= true * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("kept", [0.0, 0.9])
@pytest.mark.parametrize("n", [5, 60, pytest.param(350, marks=pytest.mark.slow)])
def test_random_graphs(n, kept):
    rng = np.random.default_rng(n)
    size = 4 * n
    check(n, rng.integers(0, n, size), rng.integers(0, n, size), rng.random(size), kept)


@pytest.mark.parametrize("n", [6, 60, pytest.param(340, marks=pytest.mark.slow)])
def test_bipartite_graphs_do_not_swing_for_ever(n):
    rng = np.random.default_rng(n)
    half, size = n // 2, 3 * n
    left, right, weight = rng.integers(0, half, size), rng.integers(half, n, size), rng.random(size)
    check(n, np.r_[left, right], np.r_[right, left], np.r_[weight, weight])


@pytest.mark.parametrize("seed", range(4))
def test_reducible_graphs_are_as_their_largest_component(seed):
    rng = np.random.default_rng(seed)
    n = 90
    size = n + 10 * seed
    check(n, rng.integers(0, n, size), rng.integers(0, n, size), rng.random(size), rng.random(n) * 0.3)


def test_a_graph_without_cycles_keeps_what_its_nodes_keep():
    assert radius(4, [0, 1, 2], [1, 2, 3], [5.0, 5.0, 5.0], [0.1, 0.7, 0.2, 0.3]) == 0.7
    assert radius(3, [], [], [], 0.4) == 0.4
    assert radius(0, [], [], []) == 0.0


def test_an_edge_to_itself_is_a_cycle():
    assert radius(3, [0, 1], [1, 1], [0.8, 0.25], [0.9, 0.9, 0.95]) == pytest.approx(1.15, abs=1e-12)


@pytest.mark.parametrize("n", [50, 500])
def test_a_long_ring_is_the_geometric_mean_of_its_edges(n):
    weight = np.random.default_rng(n).uniform(0.2, 1, n)  # every eigenvalue has the same size: the slowest case
    found = radius(n, np.arange(n), (np.arange(n) + 1) % n, weight)
    assert found == pytest.approx(np.exp(np.log(weight).mean()), rel=1e-6)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0.05, 0.6))
@settings(max_examples=40, deadline=None)
def test_any_small_graph(n, seed, density):
    rng = np.random.default_rng(seed)
    target, source = np.nonzero(rng.random((n, n)) < density)
    check(n, source, target, rng.random(len(source)), rng.random(n))


@pytest.mark.parametrize(
    "family",
    ["random", "hubs", "pairs", *(pytest.param(name, marks=pytest.mark.slow) for name in ("chain", "communities"))],
)
def test_a_hundred_thousand_nodes_take_seconds(family):
    rng = np.random.default_rng(0)
    n = 100_000
    if family == "random":
        source, target = rng.integers(0, n, (2, 5 * n))
    elif family == "hubs":
        weight = np.cumsum(np.arange(1, n + 1) ** (-1 / 1.5))
        source, target = np.searchsorted(weight / weight[-1], rng.random((2, 5 * n)))
    elif family == "chain":
        source, target = np.arange(n - 1), np.arange(1, n)
    elif family == "pairs":
        source, target = np.arange(0, n, 2), np.arange(1, n, 2)
    else:
        source = rng.integers(0, n, 5 * n)
        target = np.minimum(source // 50 * 50 + rng.integers(0, 50, 5 * n), n - 1)
        away = rng.random(5 * n) < 0.05
        target[away] = rng.integers(0, n, away.sum())
    weight = rng.random(len(source))
    if family in ("chain", "pairs"):
        source, target, weight = np.r_[source, target], np.r_[target, source], np.r_[weight, weight]
    begin = time.process_time()
    found = radius(n, source, target, weight, 0.9)
    assert time.process_time() - begin < 15  # 0.1 to 5 when measured
    assert found >= 0.9 + np.bincount(source, weight, n).mean() * 0.5
    if family == "pairs":
        assert found == pytest.approx(0.9 + weight.max(), rel=1e-9)


def test_signed_edges_count_by_their_size():
    edges = EdgeList(2, np.array([0, 1]), np.array([1, 0]), np.array([0.8, -0.8]))
    bound = ONE_TO_ONE.growth(edges)
    assert bound == pytest.approx(0.8, abs=1e-12)
    signed = np.array([[0, -0.8], [0.8, 0]])
    assert bound >= np.abs(np.linalg.eigvals(signed)).max() - 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_above_one_a_rule_diverges_and_below_it_converges(seed):
    rng = np.random.default_rng(seed)
    mask = (rng.random((12, 12)) < 0.25) & ~np.eye(12, dtype=bool)
    source, target = np.nonzero(mask)
    edges = EdgeList(12, source, target, 1.0 - rng.random(len(source)))
    unit = SpreadRule(retention=0.0).growth(edges)
    for scale, diverges in ((1.1, True), (0.9, False)):
        rule = SpreadRule(retention=0.0, decay=scale / unit, rounds=400)
        assert rule.growth(edges) == pytest.approx(scale, rel=1e-8)
        total = spread_reference(edges, list(range(12)), rule).activation.sum(axis=1)
        assert (total[-1] > total[0]) == diverges
        assert total[-1] / total[-13] == pytest.approx(scale**12, rel=1e-3)


@pytest.mark.parametrize("normalisation", ["none", "sqrt", "capped_sqrt", "fan", "row", "symmetric"])
@pytest.mark.parametrize("spends", [False, True])
def test_growth_is_that_of_one_round_of_the_reference(normalisation, spends):
    rng = np.random.default_rng(7)
    source, target = np.nonzero((rng.random((9, 9)) < 0.4) & ~np.eye(9, dtype=bool))
    relation = rng.integers(0, len(RELATIONS), len(source))
    edges = EdgeList(9, source, target, 1.0 - rng.random(len(source)), relation, base=rng.random(9))
    rule = named.literal(
        retention=rng.random(9), threshold=0.0, normalisation=normalisation, spends=spends, leak=0.1, rounds=1
    )
    update = np.array([spread_reference(edges, [node], rule).activation[1] for node in range(9)]).T
    assert rule.growth(edges) == pytest.approx(np.abs(np.linalg.eigvals(update)).max(), rel=1e-8)


def test_leak_restart_base_levels_and_retention_are_in_it():
    edges = EdgeList(2, np.array([0, 1]), np.array([1, 0]), np.array([1.0, 1.0]), base=np.array([0.5, 0.5]))
    rule = SpreadRule(retention=0.3, decay=0.6, leak=0.1, restart=0.2)
    assert rule.growth(edges) == pytest.approx(0.8 * 0.9 * (0.3 + 0.6 * 0.5), abs=1e-12)


def test_pagerank_keeps_alpha_whatever_the_graph():
    rng = np.random.default_rng(0)
    source, target = np.nonzero((rng.random((20, 20)) < 0.1) & ~np.eye(20, dtype=bool))
    edges = EdgeList(20, source, target, 1.0 - rng.random(len(source)))
    assert (edges.out_degree() == 0).any()
    assert named.pagerank(0.85).growth(edges) == pytest.approx(0.85, rel=1e-9)


def test_spreadr_makes_nothing_out_of_nothing():
    rng = np.random.default_rng(1)
    source, target = np.nonzero((rng.random((20, 20)) < 0.2) & ~np.eye(20, dtype=bool))
    edges = EdgeList(20, source, target, 1.0 - rng.random(len(source)))
    assert named.spreadr(0.4).growth(edges) == pytest.approx(1.0, rel=1e-9)


def test_a_memory_has_the_growth_of_its_edges_now():
    graph = MemoryGraph.from_edges(EdgeList(3, np.array([0, 1]), np.array([1, 0]), np.array([0.8, 0.8])))
    assert named.literal().growth(graph) == pytest.approx(1.46, abs=1e-6)
    graph.set_edges([0], [1], [0.4])
    assert named.literal().growth(graph) == pytest.approx(0.9 + 0.7 * 0.32**0.5, abs=1e-6)
    graph.delete_edges([0], [1])
    assert named.literal().growth(graph) == pytest.approx(0.9, abs=1e-12)


@pytest.mark.parametrize("wrong", [[(0, 1)], None, {0: [1]}])
def test_what_has_no_edges_is_refused(wrong):
    with pytest.raises(TypeError, match=r"`graph` must be an EdgeList or a MemoryGraph, got"):
        named.literal().growth(wrong)
