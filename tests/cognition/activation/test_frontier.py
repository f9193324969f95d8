"""The frontier kernel: the values of the reference, at a cost that does not depend on the size of the graph."""

from __future__ import annotations

import dataclasses
import functools
import re
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.cognition.activation import Activation, SpreadRule, literal, pagerank, recall, spread_reference, spreadr
from habitus.cognition.activation.frontier import Limits, Scratch, frontier_many, frontier_spread, new_scratch, supports
from habitus.cognition.activation.frontier.kernel import FrontierKernel
from habitus.cognition.activation.reference import Course
from habitus.cognition.activation.sources import Sources
from habitus.cognition.graph.edge_list import EdgeList
from habitus.cognition.graph.memory_graph import MemoryGraph
from habitus.experiments.kernel_graphs import queries, random_graph

SIGNED = SpreadRule(retention=0.6, decay={"causes": 0.9, "default": 0.6}, threshold=0.15, conjunctions=True, rounds=4)
ROOMY = Limits((64, 512), (64, 512), 4096)


def memory(n_nodes: int = 2_000, seed: int = 0) -> EdgeList:
    """With inhibition, conjunctions, hubs beyond a row and four relations."""
    drawn = random_graph(n_nodes, 8, 0.5, seed)
    rng = np.random.default_rng(seed)
    strength = drawn.strength * np.where(rng.random(drawn.n_edges) < 0.2, -1, 1)
    need = np.where(rng.random(n_nodes) < 0.1, 2, 0)
    assert drawn.out_degree().max() > 40
    return dataclasses.replace(drawn, strength=strength, need=need.astype(np.int32))


def clear_of_threshold(course: Course, rule: SpreadRule) -> bool:
    """Whether no node is so near the threshold that rounding decides; sums of f32 err by less than 1e-5."""
    away = np.abs(course.activation - np.float32(rule.threshold))
    return rule.threshold == 0 or bool((away[course.activation > 0] > 1e-5).all())


def best_of(course: Course, rule: SpreadRule, top: int) -> tuple[Any, Any, int]:
    raw, activation = course.raw[-1], course.activation[-1]
    active = (activation.astype(np.float32) >= np.float32(rule.threshold)) & (activation > 0)
    order = np.lexsort((np.arange(len(raw)), -raw))
    order = order[active[order]][:top]
    return order, raw[order], int(active.sum())


def assert_agrees(found: Activation, course: Course, rule: SpreadRule) -> None:
    nodes, raw, n_active = best_of(course, rule, len(found.nodes))
    size = len(nodes)
    assert found.n_active == n_active
    np.testing.assert_allclose(found.raw[:size], raw, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.values[:size], course.activation[-1][found.nodes[:size]], rtol=1e-5, atol=1e-5)
    apart = np.diff(raw, prepend=np.inf, append=-np.inf) < -1e-5
    settled = apart[:-1] & apart[1:]  # neither neighbour in the order is as active
    np.testing.assert_array_equal(found.nodes[:size][settled], nodes[settled])
    assert (found.nodes[size:] == -1).all()
    assert (found.raw[size:] == 0).all()
    assert found.rounds == len(course.raw) - 1
    if found.rounds:
        change = np.abs(course.activation[-1] - course.activation[-2]).max()
        np.testing.assert_allclose(found.change, change, rtol=1e-5, atol=1e-5)


def compiled(rule: SpreadRule, **settings: Any) -> Any:
    return jax.jit(functools.partial(frontier_spread, code=rule.code, **settings), donate_argnums=(1,))


def assert_rule_agrees(edges: EdgeList, rule: SpreadRule, *, timed: bool = False, n_queries: int = 3) -> None:
    kernel, graph = FrontierKernel(), MemoryGraph.from_edges(edges)
    n_checked = 0
    for number, nodes in enumerate(queries(edges, n_queries + 3, 6)):
        last = min(2, rule.rounds) if timed else 0  # no source after the last round
        sources = [(int(node), 1.0 + 0.1 * at, at % (last + 1)) for at, node in enumerate(nodes)]
        course = spread_reference(edges, sources, rule)
        if clear_of_threshold(course, rule) and n_checked < n_queries:
            n_checked += 1
            found = kernel.spread(graph, sources, rule, limits=ROOMY)
            assert found.dropped == (0, 0, 0, 0), number
            assert_agrees(found, course, rule)
    assert n_checked >= 2


@pytest.mark.parametrize(
    ("rule", "timed"),
    [
        pytest.param(SIGNED, False, id="signed, conjunctions"),
        pytest.param(recall(leak=0.1), True, id="held, timed", marks=pytest.mark.slow),
        pytest.param(spreadr(rounds=7, threshold=0.02, leak=0.05), False, id="spends, zero or gate, loop"),
    ],
)
def test_values_are_those_of_the_reference(rule: SpreadRule, timed: bool) -> None:
    assert_rule_agrees(memory(), rule, timed=timed)


PARTS: dict[str, dict[str, Any]] = {
    "zero": {"below": "zero"},
    "held": {"sources": "held"},
    "sqrt": {"normalisation": "sqrt"},
    "capped_sqrt": {"normalisation": "capped_sqrt", "degree_cap": 4.0},
    "fan": {"normalisation": "fan"},
    "row": {"normalisation": "row"},
    "spends": {"spends": True, "retention": 0.3},
    "spends and divides": {"spends": True, "normalisation": "row", "use_base": False},
    "no base": {"use_base": False, "decay": 0.3},
    "own retention": {"retention": np.linspace(0, 1, 2_000)},
    "restart": {"restart": 0.2},
    "leak": {"leak": 0.2},
    "cap": {"cap": 0.7},
    "soft": {"softness": 0.1, "rounds": 2},
    "tolerance": {"tolerance": 0.05, "rounds": 30, "retention": 0.3, "normalisation": "row"},
    "no conjunctions": {"conjunctions": False},
    "no rounds": {"rounds": 0},
    "many rounds": {"rounds": 9, "normalisation": "row"},
}


@pytest.mark.slow
@pytest.mark.parametrize("timed", [False, True], ids=["at once", "timed"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_of_the_rule_gives_the_values_of_the_reference(part: str, timed: bool) -> None:
    assert_rule_agrees(memory(), dataclasses.replace(SIGNED, **PARTS[part]), timed=timed)


@pytest.mark.slow
@pytest.mark.parametrize("n_nodes", [20_000, 100_000])
@pytest.mark.parametrize(
    "rule", [recall(), recall(degree_cap=16), literal(rounds=3)], ids=["recall", "wide", "literal"]
)
def test_large_graphs_give_the_values_of_the_reference(n_nodes: int, rule: SpreadRule) -> None:
    assert_rule_agrees(memory(n_nodes), rule, n_queries=5)


def test_a_node_at_the_threshold_transmits() -> None:
    edges = EdgeList(3, *np.array([[0, 1], [1, 2]]), np.array([0.25, 0.5]))
    found = FrontierKernel().spread(MemoryGraph.from_edges(edges), [0], SpreadRule(1.0, threshold=0.25, rounds=2))
    # 1 * .25 reaches node 1 in each round; it transmits .25 * .5 in the second
    assert found.nodes[:3].tolist() == [0, 1, -1]
    assert found.raw[:2].tolist() == [1.0, 0.5]
    everyone = FrontierKernel().spread(MemoryGraph.from_edges(edges), [0], SpreadRule(1.0, threshold=0.125, rounds=2))
    assert everyone.raw[:3].tolist() == [1.0, 0.5, 0.125]


def test_of_equals_the_smallest_numbers_are_returned_in_order() -> None:
    targets = np.random.default_rng(0).permutation(np.arange(1, 61))
    edges = EdgeList(61, np.zeros(60, int), targets, np.full(60, 0.5))
    found = FrontierKernel().spread(MemoryGraph.from_edges(edges), [0], SpreadRule(0.0, rounds=1), top=8)
    assert found.nodes.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert found.n_active == 60


@pytest.mark.slow
def test_many_queries_in_one_call_equal_single_ones() -> None:
    edges, kernel, rule = memory(), FrontierKernel(), recall()
    graph, starts = MemoryGraph.from_edges(edges), queries(edges, 5)
    together = kernel.spread_many(graph, starts.tolist(), rule, limits=Limits((8, 16), (4, 16)))
    for number, nodes in enumerate(starts):
        alone = kernel.spread(graph, nodes.tolist(), rule)
        for left, right in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(left[number], right, rtol=1e-6)


def test_flows_are_those_of_the_reference_round_by_round() -> None:
    edges, rule = memory(), recall(rounds=2)
    nodes = queries(edges, 1)[0].tolist()
    course = spread_reference(edges, nodes, rule)
    found = FrontierKernel().spread(MemoryGraph.from_edges(edges), nodes, rule, evidence=20)
    assert found.flows is not None
    total = course.flow.sum(axis=0)
    known = {key: at for at, key in enumerate(zip(edges.source, edges.target, edges.relation, strict=True))}
    which = [known[key] for key in zip(found.flows.source, found.flows.target, found.flows.relation, strict=True)]
    np.testing.assert_allclose(found.flows.by_round, course.flow[:, which].T, atol=1e-6)
    np.testing.assert_allclose(np.abs(found.flows.amount), np.sort(np.abs(total))[::-1][:20], atol=1e-6)
    assert found.dropped.flows == (total != 0).sum() - 20
    size = min(found.n_active, 32)
    np.testing.assert_allclose(found.history[:, :size], course.activation[:, found.nodes[:size]], atol=1e-6)


@pytest.mark.slow
def test_what_does_not_fit_in_many_rounds_is_counted() -> None:
    hub = EdgeList(101, np.zeros(100, int), np.arange(1, 101), np.full(100, 0.5))
    graph, kernel = MemoryGraph.from_edges(hub), FrontierKernel()
    twice, long = SpreadRule(1.0, rounds=2), SpreadRule(1.0, rounds=6)
    few = kernel.spread(graph, [0], twice, limits=Limits((8, 8), (8,)), exact=False)
    assert few.dropped.active == 101 - 8
    held = kernel.spread(graph, [0], long, limits=Limits((128,), (8,), 64), exact=False)
    assert held.n_active == 63 - 7  # places: 64, one is nobody's, 7 are of empty sources
    assert held.dropped.touched == 100 - 55
    assert kernel.spread(graph, [0], long, limits=Limits((8,), (8,), 64)).n_active == 101


def test_what_does_not_fit_is_counted() -> None:
    hub = EdgeList(101, np.zeros(100, int), np.arange(1, 101), np.full(100, 0.5))
    graph, kernel, rule = MemoryGraph.from_edges(hub), FrontierKernel(), SpreadRule(1.0, rounds=1)
    row_only = kernel.spread(graph, [0], rule, hubs=False)
    assert (row_only.dropped.edges, row_only.n_active) == (84, 17)
    # two of the six pool rows fit, 16 edges each
    bounded = kernel.spread(graph, [0], rule, limits=Limits((8,), (2,)), exact=False)
    assert (bounded.dropped.edges, bounded.n_active) == (52, 49)
    assert kernel.spread(graph, [0], rule, limits=Limits((8,), (2,))).n_active == 101  # looks again


def test_the_weakest_do_not_transmit_where_too_many_would() -> None:
    source = np.repeat([0, 1, 2, 3], [3, 1, 1, 1])
    target = np.array([1, 2, 3, 4, 5, 6])
    edges = EdgeList(7, source, target, np.array([0.3, 0.9, 0.6, 1.0, 1.0, 1.0]))
    call = compiled(SpreadRule(0.0, rounds=2), limits=Limits((1, 2)))
    graph = MemoryGraph.from_edges(edges)
    found, _ = call(
        graph.arrays, new_scratch(graph.arrays.capacity), jnp.array([0]), jnp.ones(1), None,
        params=SpreadRule(0.0).params(edges.relations),
    )  # fmt: skip
    assert found.nodes[:3].tolist() == [5, 6, -1]  # node 1, with .3, was left out
    assert found.dropped.active == 1


def test_one_compilation_serves_all_queries_and_numbers() -> None:
    edges, rule = memory(), recall(rounds=1)
    graph = MemoryGraph.from_edges(edges)
    call = compiled(rule, limits=Limits((8,)))
    scratch = new_scratch(graph.arrays.capacity)
    for nodes, threshold in zip(queries(edges, 4), (0.1, 0.2, 0.3, 0.4), strict=True):
        params = dataclasses.replace(rule, threshold=threshold, retention=threshold).params(edges.relations)
        _, scratch = call(graph.arrays, scratch, nodes, np.ones(8, np.float32), None, params=params)
    assert call._cache_size() == 1


def test_scratch_means_nothing_to_the_next_query_even_where_its_numbers_run_out() -> None:
    edges, rule = memory(), recall(rounds=1)
    graph = MemoryGraph.from_edges(edges)
    call = compiled(rule, limits=Limits((8, 32)))
    capacity = graph.arrays.capacity
    params = rule.params(edges.relations)
    nodes = queries(edges, 2)
    ones = np.ones(8, np.float32)
    fresh, _ = call(graph.arrays, new_scratch(capacity), nodes[0], ones, None, params=params)
    _, scratch = call(graph.arrays, new_scratch(capacity), nodes[1], ones, None, params=params)
    used = int(scratch.start)
    again, scratch = call(graph.arrays, scratch, nodes[0], ones, None, params=params)
    assert scratch.start == 2 * used
    # as if 2^31 places had been given: what is left there must be cleared, not taken for this query's
    worn = Scratch(jnp.full(capacity + 1, 5, jnp.int32), jnp.int32(2**31 - 10))
    renewed, scratch = call(graph.arrays, worn, nodes[0], ones, None, params=params)
    assert scratch.start == used
    for other in (again, renewed):
        assert jax.tree.all(jax.tree.map(lambda left, right: bool((left == right).all()), fresh, other))


def test_nothing_as_long_as_the_graph_is_copied() -> None:
    edges, rule = memory(), recall(rounds=2)
    graph = MemoryGraph.from_edges(edges)
    shape = jax.ShapeDtypeStruct((2, 8), jnp.int32)
    many = jax.jit(functools.partial(frontier_many, code=rule.code), donate_argnums=(1,))
    text = many.lower(
        graph.arrays, new_scratch(graph.arrays.capacity), shape, shape.update(dtype=jnp.float32), None,
        params=rule.params(edges.relations),
    ).compile().as_text()  # fmt: skip
    assert f"s32[{graph.arrays.capacity + 1}]" in text
    assert not re.findall(rf"\[{graph.arrays.capacity + 1}[,\]]\S* copy\(", text)


def test_x64_changes_nothing() -> None:
    edges, rule = memory(), recall(rounds=1)
    nodes = queries(edges, 1)[0].tolist()
    graph = MemoryGraph.from_edges(edges)
    plain = FrontierKernel().spread(graph, nodes, rule, evidence=4)
    with jax.enable_x64(True):
        wide = FrontierKernel().spread(graph, nodes, rule, evidence=4)
    for left, right in zip(jax.tree.leaves(plain), jax.tree.leaves(wide), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_rule_that_needs_the_whole_graph_is_refused_by_name() -> None:
    graph = MemoryGraph.from_edges(memory())
    for rule, name in ((SpreadRule(normalisation="symmetric"), "symmetric"), (pagerank(), "dangling")):
        assert name in (supports(rule.code) or "")
        with pytest.raises(ValueError, match=name):
            FrontierKernel().spread(graph, [0], rule)
    assert supports(recall().code) is None


def test_sources_may_repeat_and_may_be_missing() -> None:
    edges, kernel = memory(), FrontierKernel()
    graph, rule = MemoryGraph.from_edges(edges), recall(rounds=1)
    twice = Sources(np.array([3, -1, 3], np.int32), np.array([0.25, 9.0, 0.5]), np.zeros(3, np.int32))
    once = kernel.spread(graph, {3: 0.75}, rule)
    for left, right in zip(jax.tree.leaves(kernel.spread(graph, twice, rule)), jax.tree.leaves(once), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_the_cost_does_not_grow_with_the_graph() -> None:
    rule, kernel = recall(), FrontierKernel()
    calls = []
    for n_nodes in (100_000, 1_000_000):
        edges = random_graph(n_nodes, 10, 0.7)
        graph, starts = MemoryGraph.from_edges(edges), [Sources.of(q, n_nodes) for q in queries(edges, 32)]
        calls.append(lambda graph=graph, starts=starts: [kernel.spread(graph, start, rule) for start in starts])
        calls[-1]()
    times: list[list[float]] = [[], []]
    for _ in range(7):
        for call, known in zip(calls, times, strict=True):
            start = time.process_time()
            call()
            known.append(time.process_time() - start)
    small, large = map(statistics.median, times)
    assert large <= 2.0 * small  # 10 times the graph; the slack is for caches under load
