"""Every kernel, one query or many, gives the values of the reference; and what the one call does around them."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from typing import Any

import numpy as np
import pytest
from habitus.cognition.activation import (
    Activation,
    EachSpreader,
    GrowthWarning,
    Sources,
    Spreader,
    SpreadRule,
    literal,
    pagerank,
    recall,
    spread,
    spread_each,
    spread_many,
    spreadr,
)
from habitus.cognition.activation.pull import rounds
from habitus.cognition.graph import EdgeList, MemoryGraph

N, E = 40, 240
KERNELS = ("dense", "ell", "sweep")
ignores_growth = pytest.mark.filterwarnings("ignore::habitus.cognition.activation.rule.GrowthWarning")

RULES = {
    "recall": recall(),
    "literal": literal(),
    "spreadr": spreadr(),
    "pagerank": pagerank(rounds=20, tolerance=0.0),
    "pagerank stops": pagerank(tolerance=1e-3),
    "recall stops": recall(retention=0.5, tolerance=0.02, rounds=30),
    "signed, conjunctions": SpreadRule(retention=0.6, threshold=0.1, conjunctions=True, rounds=4),
    "zeroes": SpreadRule(retention=0.4, threshold=0.05, below="zero", normalisation="sqrt", rounds=5),
    "leaks, held": SpreadRule(leak=0.1, sources="held", normalisation="symmetric", cap=0.7, rounds=4),
    "restarts": SpreadRule(restart=0.3, normalisation="fan", rounds=6, decay={"causes": 0.5, "default": 0.9}),
    "soft": SpreadRule(retention=0.5, threshold=0.2, softness=0.05, normalisation="capped_sqrt", degree_cap=4.0),
    "per node": SpreadRule(retention=np.linspace(0, 1, N), threshold=0.01, spends=True, normalisation="row"),
    "no round": recall(rounds=0),
}
MIXED = ("recall", "signed, conjunctions", "pagerank stops")
"""Rules that together have most features; the other pairs of rule and kernel are slow tests."""


def pairs(*, default: dict[str, tuple[str, ...]], rules: tuple[str, ...]) -> list[Any]:
    """(kernel, rule) of all kernels and rules; slow but for those named."""
    return [
        pytest.param(kernel, name, marks=() if name in default[kernel] else pytest.mark.slow)
        for kernel in KERNELS
        for name in rules
    ]


QUERIES: list[Any] = [{0: 1.0, 5: 0.5}, {3: 1.0}, [(7, 1.0, 1), (3, 0.5, 0)], [9, 11], {2: 0.3}]


def graph(seed: int = 0, n: int = N, n_edges: int = E) -> EdgeList:
    """Signed strengths, several relations between two nodes, conjunctions, nodes without out-edges."""
    rng = np.random.default_rng(seed)
    keys = rng.choice(n * (n - 3) * 2, n_edges, replace=False)
    pair, relation = keys // 2, keys % 2
    return EdgeList(
        n,
        pair % (n - 3),
        pair // (n - 3),
        rng.uniform(-0.3, 1, n_edges),
        relation,
        rng.uniform(0.2, 1, n),
        rng.integers(0, 3, n) * (rng.random(n) < 0.3),
    )


def assert_same(found: Activation, wanted: Activation, *, stops: bool = False) -> None:
    np.testing.assert_array_equal(found.nodes, wanted.nodes)
    for name in ("values", "raw", "everything", "change", "history"):
        if getattr(wanted, name) is not None and getattr(found, name) is not None:
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-5, err_msg=name)
    assert found.n_active == wanted.n_active
    assert found.rounds == wanted.rounds
    assert found.dropped == wanted.dropped
    if wanted.flows is not None:
        for name in ("amount", "by_round"):
            np.testing.assert_allclose(getattr(found.flows, name), getattr(wanted.flows, name), atol=1e-5)
        named = [set(zip(*(part.tolist() for part in flows[:3]), strict=True)) for flows in (found.flows, wanted.flows)]
        assert named[0] == named[1]


def of_batch(found: Activation, number: int) -> Activation:
    parts = {name: getattr(found, name) for name in found._fields}
    dropped = type(found.dropped)(*(part[number] for part in found.dropped))
    return Activation(**{k: v if v is None or k == "dropped" else v[number] for k, v in parts.items()})._replace(
        dropped=dropped
    )


@ignores_growth
@pytest.mark.parametrize(
    ("kernel", "name"),
    pairs(default={"ell": tuple(RULES)[3:10], "dense": MIXED[:2], "sweep": MIXED[1:]}, rules=tuple(RULES)),
)
def test_kernels_agree_with_the_reference(kernel, name):
    rule = RULES[name]
    for seed in range(3):
        edges = graph(seed)
        for query in QUERIES if rule.rounds else QUERIES[:2]:  # no source comes after the last round
            wanted = spread(edges, query, rule, top=10, kernel="reference", everything=True)
            assert_same(spread(edges, query, rule, top=10, kernel=kernel, everything=True), wanted)


@ignores_growth
@pytest.mark.parametrize(
    ("kernel", "name"),
    pairs(default={"ell": MIXED[1:], "dense": MIXED[:1], "sweep": MIXED[1:2]}, rules=(*MIXED, "restarts")),
)
def test_evidence_is_that_of_the_reference(kernel, name):
    rule, edges = RULES[name], graph(4)
    for query in QUERIES[:3]:
        found = spread(edges, query, rule, top=6, kernel=kernel, evidence=15)
        assert_same(found, spread(edges, query, rule, top=6, kernel="reference", evidence=15))
        assert found.flows.by_round.shape == (15, rule.rounds)
        assert found.history.shape == (rule.rounds + 1, 6)


@ignores_growth
@pytest.mark.parametrize("n_queries", [3, 50])
@pytest.mark.parametrize(
    ("kernel", "name"),
    pairs(
        default={"ell": MIXED[2:], "dense": ("recall stops",), "sweep": MIXED[1:2]},
        rules=(*MIXED, "recall stops"),
    ),
)
def test_many_queries_are_as_one_after_the_other(kernel, n_queries, name):
    rule, edges = RULES[name], graph(1)
    queries = (QUERIES * 10)[:n_queries]
    found = spread_many(edges, queries, rule, top=10, kernel=kernel, everything=True)
    for number, query in enumerate(queries):
        if 5 <= number < n_queries - 5:
            continue
        wanted = spread(edges, query, rule, top=10, kernel="reference", everything=True)
        assert_same(of_batch(found, number), wanted)


@ignores_growth
@pytest.mark.parametrize("kernel", ["dense", "ell", "reference"])
@pytest.mark.parametrize("name", ["recall stops", "signed, conjunctions"])
def test_graphs_of_their_own_are_as_one_after_the_other(kernel, name):
    rule = RULES[name]
    graphs = [graph(seed, n=20 + seed, n_edges=80 + 9 * seed) for seed in range(5)]
    found = spread_each(graphs, QUERIES, rule, top=10, kernel=kernel)
    for number, (edges, query) in enumerate(zip(graphs, QUERIES, strict=True)):
        wanted = spread(edges, query, rule, top=10, kernel="reference")
        assert_same(of_batch(found, number), wanted)


def test_many_blocks_of_own_graphs_do_not_touch_each_other():
    graphs = [graph(seed, n=100, n_edges=500) for seed in range(3)] * 30
    queries = [{number % 90: 1.0} for number in range(len(graphs))]
    found = spread_each(graphs, queries, recall(), top=5)
    for number in (0, 31, 63, 89):
        assert_same(of_batch(found, number), spread(graphs[number], queries[number], recall(), top=5, kernel="ell"))


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_pads_changes_nothing(kernel):
    edges = graph(2, n=33, n_edges=200)  # 64 places
    larger = dataclasses.replace(
        edges, n_nodes=64, base=np.append(edges.base, np.ones(31)), need=np.append(edges.need, np.zeros(31, int))
    )
    for query in QUERIES:
        assert_same(
            spread(edges, query, recall(), top=40, kernel=kernel),
            spread(larger, query, recall(), top=40, kernel=kernel),
        )


@pytest.mark.parametrize("kernel", [*KERNELS, "reference"])
def test_equally_active_nodes_are_ranked_by_number(kernel):
    star = EdgeList(9, np.zeros(8, int), np.arange(8, 0, -1), np.full(8, 0.5))
    found = spread(star, {0: 1.0}, SpreadRule(rounds=1, threshold=0.125), top=12, kernel=kernel)
    assert found.nodes.tolist() == [*range(9), -1, -1, -1]
    assert found.values.tolist() == [0.5] * 9 + [0.0] * 3
    assert found.n_active == 9


@pytest.mark.parametrize("kernel", [*KERNELS, "reference"])
def test_nodes_at_the_cap_are_ranked_by_what_they_had_before_it(kernel):
    edges = EdgeList(3, np.array([0, 0]), np.array([1, 2]), np.array([0.75, 1.0]))
    found = spread(edges, {0: 4.0}, SpreadRule(rounds=1, retention=0.25, cap=2.0), top=3, kernel=kernel)
    assert found.nodes.tolist() == [2, 1, 0]  # 2 x 1, 2 x .75, and 2 x .25: the cap holds from the start
    assert found.raw.tolist() == [2.0, 1.5, 0.5]


@pytest.mark.parametrize("kernel", KERNELS)
def test_activation_at_the_threshold_is_transmitted(kernel):
    chain = EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([0.25, 1.0]))
    rule = SpreadRule(threshold=0.25, rounds=2, retention=1.0)
    assert spread(chain, {0: 1.0}, rule, kernel=kernel, everything=True).everything.tolist() == [1.0, 0.5, 0.25]


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_exciting_edge_that_lets_nothing_through_still_counts(kernel):
    edges = EdgeList(
        3, np.array([0, 1]), np.array([2, 2]), np.array([0.5, 0.5]), np.array([0, 1]), need=np.array([0, 0, 2])
    )
    rule = SpreadRule(conjunctions=True, rounds=1, decay={"causes": 0.0})
    assert spread(edges, [0, 1], rule, kernel=kernel, everything=True).everything[2] == 0.5
    assert spread(edges, [0], rule, kernel=kernel, everything=True).everything[2] == 0.0


def test_entries_of_one_node_add_up_and_padding_is_none():
    sources = Sources(np.array([3, -1, 3], np.int32), np.array([0.25, 9.0, 0.5]), np.zeros(3, np.int32))
    for kernel in KERNELS:
        found = spread(graph(), sources, recall(rounds=0), top=2, kernel=kernel)
        assert (found.nodes.tolist(), found.values.tolist()) == ([3, -1], [0.75, 0.0])


def test_the_kernel_is_chosen_by_size():
    def kernel_of(n: int, rule: SpreadRule) -> str:
        nothing = np.zeros(0, int)
        return Spreader(EdgeList(n, nothing, nothing, np.zeros(0)), rule).kernel

    assert [kernel_of(n, recall()) for n in (40, 1024, 1025, 20_000, 20_001)] == [
        "ell",
        "ell",
        "sweep",
        "sweep",
        "frontier",
    ]
    assert kernel_of(20_001, pagerank()) == "sweep"
    assert Spreader(graph(), recall(), kernel="dense").kernel == "dense"


@pytest.mark.slow
@ignores_growth
def test_a_big_graph_gives_the_same_by_every_kernel():
    rng = np.random.default_rng(0)
    n = 30_000
    keys = np.unique(rng.integers(0, n * n, 5 * n))
    edges = EdgeList(n, keys // n, keys % n, rng.uniform(0.1, 0.6, len(keys)))
    memory = MemoryGraph.from_edges(edges)
    query = {5: 1.0, 77: 1.0, 900: 0.5}
    wanted = spread(edges, query, recall(), top=10, kernel="reference")
    for of, kernel in ((edges, "auto"), (memory, "auto"), (memory, "sweep")):
        assert_same(spread(of, query, recall(), top=10, kernel=kernel), wanted)
        assert_same(of_batch(spread_many(of, [query, {1: 1.0}], recall(), top=10, kernel=kernel), 0), wanted)


def test_a_changed_graph_gives_changed_results():
    memory = MemoryGraph.from_edges(graph())
    before = spread(memory, {0: 1.0}, everything=True)
    prepared = Spreader(memory, recall(), everything=True)
    memory.set_edges([0], [39], [1.0])
    after = spread(memory, {0: 1.0}, everything=True)
    assert before.everything[39] == 0.0 != after.everything[39]
    np.testing.assert_array_equal(prepared({0: 1.0}).everything, before.everything)
    assert_same(after, spread(memory.edges(), {0: 1.0}, kernel="reference", everything=True))


def count_traces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    traces: list[int] = []
    original = rounds._round

    def counted(*args: Any) -> Any:
        traces.append(1)
        return original(*args)

    monkeypatch.setattr(rounds, "_round", counted)
    return traces


def test_a_number_of_a_rule_is_not_compiled_in(monkeypatch):
    edges = graph()
    spread(edges, {0: 1.0}, recall(rounds=7))
    traces = count_traces(monkeypatch)
    for threshold in (0.1, 0.3):
        for retention in (0.2, 0.9):
            spread(edges, {1: 0.4}, recall(rounds=7, threshold=threshold, retention=retention))
    assert traces == []
    spread(edges, {1: 0.4}, recall(rounds=8))
    assert traces  # what counts can count


@pytest.mark.slow
def test_a_growing_graph_is_compiled_at_most_once_for_a_doubling(monkeypatch):
    traces = count_traces(monkeypatch)
    rng = np.random.default_rng(0)
    memory, compiled = MemoryGraph(), []
    while memory.n_nodes < 100_000:
        new = len(memory.add_nodes(max(100, memory.n_nodes // 5)))
        n = memory.n_nodes
        keys = np.unique(rng.integers(0, n * n, 5 * new))
        memory.set_edges(keys // n, keys % n, rng.uniform(0.1, 0.6, len(keys)))
        if n < 1_000:
            continue
        before = len(traces)
        spread(memory, {0: 1.0}, recall(rounds=9), kernel="sweep", top=3)
        compiled.append((memory.arrays.capacity, len(traces) - before))
    traced = [capacity for capacity, times in compiled if times]
    assert 7 <= len(traced) <= np.log2(compiled[-1][0] / compiled[0][0]) + 1, compiled


def test_nothing_is_kept_of_a_graph_that_is_gone():
    edges = graph(3)
    for kernel in KERNELS:
        spread(edges, {0: 1.0}, RULES["recall"], top=10, kernel=kernel, everything=True)
    alive = weakref.ref(edges)
    del edges
    gc.collect()
    assert alive() is None


def test_a_rule_that_diverges_warns_once_with_the_number():
    edges = EdgeList(2, np.array([0, 1]), np.array([1, 0]), np.array([1.0, 1.0]))
    with pytest.warns(GrowthWarning, match=r"factor of up to 1\.9 ") as caught:
        spread(edges, {0: 1.0}, SpreadRule(retention=0.9))
    assert [one.filename for one in caught] == [__file__]
    spread(edges, {0: 1.0}, SpreadRule(retention=0.9), top=3)  # a second warning would be an error


def test_a_rule_that_converges_does_not_warn():
    edges = EdgeList(2, np.array([0, 1]), np.array([1, 0]), np.array([1.0, 1.0]))
    for rule in (spreadr(), pagerank(), recall(), SpreadRule(retention=0.1, decay=0.9)):
        spread(edges, {0: 1.0}, rule)


def test_wrong_arguments_are_named():
    edges = graph()
    with pytest.raises(ValueError, match=r"`kernel` must be one of .*'sweep'.*got 'fast'"):
        spread(edges, {0: 1.0}, kernel="fast")
    with pytest.raises(ValueError, match="`top` must be at least 1, got 0"):
        spread(edges, {0: 1.0}, top=0)
    with pytest.raises(TypeError, match=r"`evidence` must be a whole number, got 1\.5"):
        spread(edges, {0: 1.0}, evidence=1.5)
    with pytest.raises(TypeError, match="`rule` must be a SpreadRule, got str"):
        spread(edges, {0: 1.0}, "recall")
    with pytest.raises(TypeError, match="`graph` must be an EdgeList or a MemoryGraph, got dict"):
        spread({0: [1]}, {0: 1.0})
    with pytest.raises(ValueError, match=r"query 1: the node of entry 0 of `sources` must be in \[0, 40\), got 40"):
        spread_many(edges, [[0], [40]])
    with pytest.raises(ValueError, match="at least one query, got none"):
        spread_many(edges, [])
    with pytest.raises(ValueError, match="each of the 2 graphs, got 1"):
        EachSpreader([edges, edges], recall())([[0]])
    with pytest.raises(ValueError, match="`everything` needs a kernel that looks at all nodes"):
        spread(edges, {0: 1.0}, kernel="frontier", everything=True)
    with pytest.raises(ValueError, match=r"relations of the graph.*got 'cuases'"):
        spread(edges, {0: 1.0}, recall(decay={"cuases": 0.5}))
