"""Laws of spreading that hold on every graph, in the reference and in the kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from habitus.cognition.activation import named
from habitus.cognition.activation.reference import spread_reference
from habitus.cognition.activation.rule import SpreadRule
from habitus.cognition.activation.sources import Sources
from habitus.cognition.activation.spreading import spread
from habitus.cognition.graph.edge_list import EdgeList
from habitus.cognition.graph.memory_graph import MemoryGraph
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

N = 12  # nodes, with 40 edges; one size, so that a kernel is compiled once for a rule
KERNELS = ("reference", "dense", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ell", "sweep")))
"""Of `spread`; that a frontier gives the values of the reference is in test_frontier.py and test_published.py."""
pytestmark = pytest.mark.filterwarnings("ignore::habitus.cognition.activation.rule.GrowthWarning")
EXACT = {"reference": 1e-12}
SEEDS = st.integers(0, 2**32 - 1)

LINEAR = SpreadRule(retention=0.6, decay=0.7, rounds=4)
SIGNED = SpreadRule(retention=0.6, decay=0.7, threshold=0.2, rounds=4)


def law(n_examples: int = 12) -> Callable[[Any], Any]:
    """A law over random graphs, for every kernel; few examples, since every kernel is compared with the reference."""

    def decorate(test: Any) -> Any:
        checked = settings(
            max_examples=n_examples,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
        )(given(seed=SEEDS)(test))
        return pytest.mark.parametrize("kernel", KERNELS)(checked)

    return decorate


def memory(rng: np.random.Generator, n: int = N, *, signed: bool = False, need: bool = False) -> EdgeList:
    pairs = rng.choice(n * (n - 1), 40, replace=False)
    source, target = pairs // (n - 1), pairs % (n - 1)
    target = target + (target >= source)  # no edge leads to its own node
    strength = 1.0 - rng.random(len(source))
    if signed:
        strength *= rng.choice([1.0, 1.0, -1.0], len(source))
    needs = np.minimum(np.bincount(target[strength > 0], minlength=n), 2) * (rng.random(n) < 0.3) if need else ()
    return EdgeList(
        n, source, target, strength, rng.integers(0, 9, len(source)), rng.uniform(0.2, 1, n), np.asarray(needs, int)
    )


def sources_of(rng: np.random.Generator, n: int = N) -> dict[int, float]:
    return {int(node): float(rng.uniform(0.3, 1)) for node in rng.choice(n, 3, replace=False)}


def run(kernel: str, edges: EdgeList, sources: Any, rule: SpreadRule) -> np.ndarray:
    """Activation of every node after the last round."""
    return np.asarray(spread(edges, sources, rule, kernel=kernel, everything=True).everything, np.float64)


def is_far_from_the_threshold(edges: EdgeList, sources: Any, rule: SpreadRule) -> bool:
    raw = spread_reference(edges, sources, rule).activation
    return bool((np.abs(raw - rule.threshold) > 1e-4).all())


def close(kernel: str, found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT.get(kernel, 1e-5) * max(1.0, expected.max()))


@law()
@pytest.mark.parametrize("rule", [named.recall(), named.literal(), SIGNED], ids=["recall", "literal", "signed"])
def test_kernels_agree_with_the_reference(kernel, rule, seed):
    rng = np.random.default_rng(seed)
    edges, sources = memory(rng, signed=True, need=True), sources_of(rng)
    assume(is_far_from_the_threshold(edges, sources, rule))
    close("dense", run(kernel, edges, sources, rule), spread_reference(edges, sources, rule).activation[-1])


@law()
def test_names_of_nodes_do_not_count(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, sources, rule = memory(rng, signed=True, need=True), sources_of(rng), named.recall()
    assume(is_far_from_the_threshold(edges, sources, rule))
    name = rng.permutation(N)
    order = rng.permutation(edges.n_edges)  # nor does the order of edges
    inverse = np.argsort(name)
    renamed = EdgeList(
        N,
        name[edges.source][order],
        name[edges.target][order],
        edges.strength[order],
        edges.relation[order],
        edges.base[inverse],
        edges.need[inverse],
    )
    found = run(kernel, renamed, {int(name[node]): value for node, value in sources.items()}, rule)
    close(kernel, found[name], run(kernel, edges, sources, rule))


@law()
def test_without_a_threshold_activation_is_linear_in_its_sources(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, one, other = memory(rng), sources_of(rng), sources_of(rng)
    both = [(node, 2.0 * value) for node, value in one.items()] + [(node, 0.5 * value) for node, value in other.items()]
    expected = 2.0 * run(kernel, edges, one, LINEAR) + 0.5 * run(kernel, edges, other, LINEAR)
    close(kernel, run(kernel, edges, both, LINEAR), expected)


@law()
def test_stronger_edges_never_lessen_activation(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, sources = memory(rng), sources_of(rng)
    rule = dataclasses.replace(named.recall(), normalisation="none")
    stronger = dataclasses.replace(edges, strength=edges.strength + rng.random(edges.n_edges) * (1 - edges.strength))
    assume(is_far_from_the_threshold(edges, sources, rule) and is_far_from_the_threshold(stronger, sources, rule))
    assert (run(kernel, stronger, sources, rule) >= run(kernel, edges, sources, rule) - 1e-6).all()


@law()
def test_stronger_sources_never_lessen_activation(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, sources, rule = memory(rng), sources_of(rng), named.recall()
    stronger = {node: value + 0.3 for node, value in sources.items()}
    assume(is_far_from_the_threshold(edges, sources, rule) and is_far_from_the_threshold(edges, stronger, rule))
    assert (run(kernel, edges, stronger, rule) >= run(kernel, edges, sources, rule) - 1e-6).all()


@law()
def test_spreadr_neither_makes_nor_loses_activation(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, sources = memory(rng), sources_of(rng)
    found = run(kernel, edges, sources, named.spreadr(rng.random(N), rounds=5))
    assert found.sum() == pytest.approx(sum(sources.values()), rel=EXACT.get(kernel, 1e-6))


@law()
def test_decay_of_spreadr_takes_its_share_in_every_round(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, sources = memory(rng), sources_of(rng)
    found = run(kernel, edges, sources, named.spreadr(0.3, leak=0.2, rounds=5))
    assert found.sum() == pytest.approx(0.8**5 * sum(sources.values()), rel=EXACT.get(kernel, 1e-6))


@law()
def test_nodes_without_edges_and_empty_sources_change_nothing(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, sources, rule = memory(rng, signed=True, need=True), sources_of(rng), named.recall()
    assume(is_far_from_the_threshold(edges, sources, rule))
    more = 30
    longer = dataclasses.replace(
        edges, n_nodes=N + more, base=np.r_[edges.base, rng.random(more)], need=np.r_[edges.need, np.ones(more, int)]
    )
    padded = Sources.of(sources, N).padded(8)
    found = run(kernel, longer, padded, rule)
    np.testing.assert_array_equal(found[N:], 0)
    close(kernel, found[:N], run(kernel, edges, sources, rule))


@law()
def test_what_is_deleted_leaves_no_trace(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, rule = memory(rng, signed=True), named.recall()
    gone = int(rng.integers(N))
    stays = (edges.source != gone) & (edges.target != gone)
    without = dataclasses.replace(
        edges,
        source=edges.source[stays],
        target=edges.target[stays],
        strength=edges.strength[stays],
        relation=edges.relation[stays],
    )
    sources = {node: value for node, value in sources_of(rng).items() if node != gone}
    assume(sources and is_far_from_the_threshold(without, sources, rule))
    name = np.delete(np.arange(N), gone)
    place = np.full(N, -1)
    place[name] = np.arange(N - 1)
    never = EdgeList(
        N - 1,
        place[without.source],
        place[without.target],
        without.strength,
        without.relation,
        edges.base[name],
        edges.need[name],
    )
    found = run(kernel, without, sources, rule)
    assert found[gone] == 0
    close(kernel, found[name], run(kernel, never, {int(place[n]): value for n, value in sources.items()}, rule))


@pytest.mark.parametrize("seed", range(5))
def test_edges_deleted_from_a_memory_leave_no_trace(seed):
    rng = np.random.default_rng(seed)
    edges, rule = memory(rng), named.recall()
    graph = MemoryGraph.from_edges(edges)
    gone = rng.random(edges.n_edges) < 0.4
    graph.delete_edges(edges.source[gone], edges.target[gone], edges.relation[gone])
    columns = {name: getattr(edges, name)[~gone] for name in ("source", "target", "strength", "relation")}
    sources = sources_of(rng)
    never = spread_reference(dataclasses.replace(edges, **columns), sources, rule).activation
    np.testing.assert_allclose(spread_reference(graph.edges(), sources, rule).activation, never, atol=1e-6)
    graph.add_edges(edges.source[gone], edges.target[gone], edges.strength[gone], edges.relation[gone])
    again = spread_reference(graph.edges(), sources, rule).activation
    np.testing.assert_allclose(again, spread_reference(edges, sources, rule).activation, atol=1e-6)


@law()
def test_held_sources_never_fall_below_what_was_injected(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, rule = memory(rng, signed=True), named.recall(cap=None, retention=0.1)
    given_ = [(0, 0.1, 0), (0, 0.4, 2), (5, 0.15, 0), (7, 0.9, 1)]  # some below the threshold, some later
    assume(is_far_from_the_threshold(edges, given_, rule))
    for below in ("gate", "zero"):
        found = run(kernel, edges, given_, dataclasses.replace(rule, below=below))
        assert (found[[0, 5, 7]] >= np.array([0.5, 0.15, 0.9]) - 1e-6).all()


@law()
def test_inhibition_stops_at_zero(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, sources = memory(rng, signed=True), sources_of(rng)
    assume(is_far_from_the_threshold(edges, sources, SIGNED))
    found = run(kernel, edges, sources, SIGNED)
    assert (found >= 0).all()
    only = dataclasses.replace(edges, strength=-np.abs(edges.strength))
    silent = run(kernel, only, sources, dataclasses.replace(SIGNED, retention=0.0))
    np.testing.assert_array_equal(silent, 0)  # nothing but inhibition, and nothing kept


@law()
def test_a_restart_settles_where_the_linear_system_does(kernel, seed):
    rng = np.random.default_rng(seed)
    edges, sources = memory(rng), sources_of(rng)
    rule = SpreadRule(retention=0.3, decay=0.5, normalisation="row", restart=0.25, rounds=300, tolerance=1e-7)
    if kernel == "reference":
        rule = dataclasses.replace(rule, tolerance=1e-15)
    update = np.diag(rule.retentions(edges))
    np.add.at(update, (edges.target, edges.source), edges.base[edges.target] * rule.weights(edges))
    start = np.zeros(N)
    for node, value in sources.items():
        start[node] = value
    solved = np.linalg.solve(np.eye(N) - 0.75 * update, 0.25 * start)
    np.testing.assert_allclose(run(kernel, edges, sources, rule), solved, atol=EXACT.get(kernel, 2e-6))


# what can be worked out by hand


def chain(*strengths: float, **columns: Any) -> EdgeList:
    size = len(strengths)
    return EdgeList(size + 1, np.arange(size), np.arange(1, size + 1), np.array(strengths), **columns)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("threshold", [0.25, 0.2])
def test_activation_that_equals_the_threshold_transmits_and_counts_as_active(kernel, threshold):
    # node 1 gets exactly the threshold, .25 without rounding and .2 with the rounding of float32
    rule = SpreadRule(retention=1.0, threshold=threshold, rounds=2)
    found = spread(chain(threshold, 1.0), {0: 1.0}, rule, kernel=kernel, everything=True)
    np.testing.assert_allclose(found.everything, (1.0, 2 * threshold, threshold), rtol=1e-6)
    assert found.n_active == 3
    one_round = spread(chain(threshold, 1.0), {0: 1.0}, dataclasses.replace(rule, rounds=1), kernel=kernel)
    assert one_round.n_active == 2
    above = np.nextafter(np.float32(threshold), np.float32(1))
    rule = dataclasses.replace(rule, threshold=float(above), rounds=1)
    assert spread(chain(threshold, 1.0), {0: 1.0}, rule, kernel=kernel).n_active == 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_below_the_threshold_a_gate_keeps_and_zero_loses(kernel):
    # node 1 gets .125 a round, below .25 in the first and, if it keeps it, .25 in the second; it transmits in the third
    rule = SpreadRule(retention=1.0, threshold=0.25, rounds=3)
    for below, expected in (("gate", (1.0, 0.375, 0.25)), ("zero", (1.0, 0.0, 0.0))):
        found = run(kernel, chain(0.125, 1.0), {0: 1.0}, dataclasses.replace(rule, below=below))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_injected_below_the_threshold_waits_behind_a_gate_and_goes_on_under_zero(kernel):
    rule = SpreadRule(retention=0.5, threshold=0.25, rounds=1)
    np.testing.assert_array_equal(run(kernel, chain(1.0), {0: 0.125}, rule), (0.0625, 0.0))
    zero = dataclasses.replace(rule, below="zero", threshold=0.125)
    np.testing.assert_array_equal(run(kernel, chain(1.0), {0: 0.125}, zero), (0.0, 0.125))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_active", [0, 1, 2, 3])
def test_a_conjunction_fires_only_when_all_its_constituents_do(kernel, n_active):
    edges = EdgeList(
        5,
        np.array([0, 1, 2, 4]),
        np.full(4, 3),
        np.array([0.5, 0.5, 0.5, -0.25]),  # an inhibiting edge is no constituent
        need=np.array([0, 0, 0, 3, 0]),
    )
    rule = named.recall(normalisation="none", decay=1.0, rounds=1)
    sources = {4: 1.0, **dict.fromkeys(range(n_active), 1.0), **dict.fromkeys(range(n_active, 3), 0.125)}
    found = run(kernel, edges, sources, rule)
    assert found[3] == (1.0 if n_active == 3 else 0.0)  # 1.5 - .25, capped
    ungated = run(kernel, edges, sources, dataclasses.replace(rule, conjunctions=False))
    assert ungated[3] == min(1.0, max(0.0, 0.5 * n_active - 0.25))


@pytest.mark.parametrize("kernel", KERNELS)
def test_conjunctions_keep_pairs_of_features_from_firing_on_one_of_them(kernel):
    # 8 features, a node for each pair: with 3 features on, 3 pairs are whole and 15 touch one
    pairs = [(i, j) for i in range(8) for j in range(i)]
    source, target = np.array([(f, 8 + k) for k, pair in enumerate(pairs) for f in pair]).T
    need = np.r_[np.zeros(8, int), np.full(len(pairs), 2)]
    edges = EdgeList(8 + len(pairs), source, target, np.ones(len(source)), need=need)
    rule = named.recall(normalisation="none")
    assert (run(kernel, edges, [0, 1, 2], rule)[8:] > 0).sum() == 3
    assert (run(kernel, edges, [0, 1, 2], dataclasses.replace(rule, conjunctions=False))[8:] > 0).sum() == 18


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_most_active_are_ranked_before_the_cap_and_then_by_number(kernel):
    edges = EdgeList(5, np.zeros(4, np.int32), np.array([4, 3, 2, 1]), np.array([0.5, 1.0, 0.75, 0.5]))
    rule = SpreadRule(retention=0.5, cap=1.0, rounds=1)
    found = spread(edges, {0: 4.0}, rule, kernel=kernel, top=8)
    # 4 is capped to 1 before it is transmitted
    np.testing.assert_array_equal(found.nodes, (3, 2, 0, 1, 4, -1, -1, -1))
    np.testing.assert_array_equal(found.raw, (1.0, 0.75, 0.5, 0.5, 0.5, 0, 0, 0))
    assert found.n_active == 5
