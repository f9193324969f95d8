"""Recall, decide and learn in one call: its rule of learning, and that nothing is copied."""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.cognition.activation import SpreadRule, recall, spread_reference
from habitus.cognition.activation.frontier import Limits, new_scratch
from habitus.cognition.activation.online import (
    Decision,
    Trace,
    decide,
    empty_trace,
    joined,
    online_step,
    parted,
    strengthen,
    trace_rows,
)
from habitus.cognition.activation.reference import Course
from habitus.cognition.graph.edge_list import EdgeList
from habitus.cognition.graph.layout import GraphArrays
from habitus.cognition.graph.memory_graph import MemoryGraph
from habitus.experiments.kernel_graphs import queries, random_graph

LIMITS = Limits((8, 64, 256), (16, 64, 256))


def by_numpy(edges: EdgeList, course: Course, rule: SpreadRule, choice: int) -> Any:
    """[E] f64: eligibility by the formulas at the head of online.py, edge by edge."""
    kept = (1.0 - rule.leak) * (1.0 - rule.restart)
    through = kept * rule.weights(edges) * rule.bases(edges)[edges.target]
    reaches = np.zeros(edges.n_nodes)
    reaches[choice] = 1.0
    total = np.zeros(edges.n_edges)
    for before, flow in zip(course.activation[-2::-1], course.flow[::-1], strict=True):
        x = np.where(before >= rule.threshold, before, 0.0)[edges.source]
        passes = np.where(flow != 0, through * reaches[edges.target], 0.0)
        total += x * passes
        reaches = kept * rule.retentions(edges) * reaches + np.bincount(edges.source, passes, edges.n_nodes)
    return np.abs(total)


def memory() -> EdgeList:
    drawn = random_graph(2_000, 8, 0.5)
    assert drawn.out_degree().max() > 40  # hubs learn too
    return drawn


def by_edge(edges: EdgeList, values: Any) -> dict[Any, float]:
    return dict(zip(zip(edges.source, edges.target, edges.relation, strict=True), values, strict=True))


def run(arrays: GraphArrays, nodes: Any, candidates: Any, rule: SpreadRule, edges: EdgeList) -> tuple[Decision, Trace]:
    call = jax.jit(
        functools.partial(decide, code=rule.code, limits=LIMITS if edges.n_nodes > 8 else Limits((8,), (8,)), top=2)
    )
    found, trace, _ = call(
        arrays, new_scratch(arrays.capacity), jnp.asarray(nodes), jnp.ones(len(nodes)), candidates,
        params=rule.params(edges.relations),
    )  # fmt: skip
    return found, trace


@pytest.mark.parametrize("reward", [1.0, pytest.param(-0.5, marks=pytest.mark.slow)])
def test_edges_change_by_what_they_brought_the_decision(reward: float) -> None:
    edges, rule = memory(), recall(leak=0.05, degree_cap=16)
    graph = MemoryGraph.from_edges(edges)
    nodes = queries(edges, 1)[0]
    course = spread_reference(edges, nodes.tolist(), rule)
    order = np.argsort(-course.raw[-1])
    others = order[~np.isin(order, nodes)][:4]
    decision, trace = run(graph.arrays, nodes, jnp.asarray(np.append(others[::-1], -1), jnp.int32), rule, edges)
    assert decision.choice == others[0]
    np.testing.assert_allclose(decision.value, course.raw[-1][others[0]], atol=1e-5)
    expected = by_numpy(edges, course, rule, int(decision.choice))
    assert (expected > 0).sum() > 3  # over several hops
    assert (expected[edges.target != others[0]] > 0).any()

    arrays = jax.jit(strengthen)(graph.arrays, trace, jnp.float32(reward), jnp.float32(0.5))
    graph._arrays = arrays
    graph._edges = None
    after = graph.edges()
    assert (after.source == edges.source).all()
    wanted = np.clip(edges.strength + 0.5 * reward * expected, -1, 1)
    found, changed = by_edge(after, after.strength), by_edge(edges, wanted)
    assert found.keys() == changed.keys()
    np.testing.assert_allclose([found[key] for key in changed], list(changed.values()), atol=1e-5)
    sums = np.bincount(after.source, np.abs(after.strength), edges.n_nodes)
    np.testing.assert_allclose(np.asarray(arrays.out_strength)[: edges.n_nodes], sums, atol=1e-4)


def test_without_candidates_the_most_active_other_node_is_chosen() -> None:
    edges = EdgeList(4, *np.array([[0, 0, 1], [1, 2, 3]]), np.array([0.4, 0.4, 0.9]))
    decision, trace = run(MemoryGraph.from_edges(edges).arrays, np.array([0]), None, SpreadRule(1.0, rounds=2), edges)
    assert (decision.choice, decision.value) == (1, np.float32(0.8))  # node 2 equals it
    # to node 1 came 1 * .4 in each of two rounds, and nothing over the other edges
    assert trace.node[0] == 0
    assert np.asarray(trace.eligibility[0, :2]).tolist() == [np.float32(0.8), 0.0]
    assert trace.eligibility.sum() == np.float32(0.8)


def test_nothing_is_learned_where_nothing_reached_a_candidate() -> None:
    edges = EdgeList(4, *np.array([[0, 1], [1, 2]]), np.array([0.4, 0.9]))
    arrays = MemoryGraph.from_edges(edges).arrays
    decision, trace = run(arrays, np.array([0]), jnp.array([3, -1]), SpreadRule(1.0, rounds=1), edges)
    assert (decision.choice, decision.value) == (-1, 0)
    assert not trace.eligibility.any()


def test_an_edge_that_has_changed_its_place_since_is_left_alone() -> None:
    edges = EdgeList(4, *np.array([[0, 0], [1, 2]]), np.array([0.4, 0.2]))
    graph, rule = MemoryGraph.from_edges(edges), SpreadRule(1.0, rounds=1)
    decision, trace = run(graph.arrays, np.array([0]), None, rule, edges)
    assert decision.choice == 1
    graph.delete_edges([0], [1])  # the edge to 2 moves up
    arrays = jax.jit(strengthen)(graph.arrays, trace, jnp.float32(1.0), jnp.float32(1.0))
    assert (arrays.rows == graph.arrays.rows).all()


def test_without_rounds_a_source_is_chosen_and_nothing_learned():
    edges = EdgeList(4, *np.array([[0, 1], [1, 2]]), np.array([0.4, 0.9]))
    arrays, rule = MemoryGraph.from_edges(edges).arrays, SpreadRule(1.0, rounds=0)
    decision, trace = run(arrays, np.array([2]), jnp.array([2, 1]), rule, edges)
    assert (decision.choice, decision.value) == (2, 1)
    assert trace.node.shape[0] == trace_rows(arrays, rule.code, LIMITS, 1)[0] == 0
    assert (strengthen(arrays, trace, jnp.float32(1.0), jnp.float32(1.0)).rows == arrays.rows).all()


def test_a_rule_that_stops_early_is_refused() -> None:
    edges = memory()
    with pytest.raises(ValueError, match="tolerance"):
        run(MemoryGraph.from_edges(edges).arrays, np.array([0]), None, recall(tolerance=0.1), edges)


def test_steps_learn_in_place() -> None:
    edges, rule, limits = memory(), recall(rounds=2), Limits((8, 32), (8, 32))
    graph = MemoryGraph.from_edges(edges)
    arrays, capacity, n_pool = graph.arrays, graph.arrays.capacity, graph.arrays.pool.shape[0]
    trace = empty_trace(arrays, *trace_rows(arrays, rule.code, limits, 8))
    changing, rest = parted(arrays)

    def one(changing: Any, scratch: Any, trace: Any, rest: Any, *numbers: Any, params: Any) -> Any:
        changed, *others = online_step(
            joined(changing, rest), scratch, trace, *numbers, code=rule.code, params=params, limits=limits
        )
        return parted(changed)[0], *others

    step = jax.jit(one, donate_argnums=(0, 1, 2))
    state = (changing, new_scratch(capacity), trace)
    numbers = (rest, jnp.float32(1.0), jnp.float32(0.1), jnp.asarray(queries(edges, 1)[0]), jnp.ones(8), None)
    text = step.lower(*state, *numbers, params=rule.params(edges.relations)).compile().as_text()
    assert f"s32[{capacity + 1},32]" in text
    assert not re.findall(rf"\[({capacity + 1}|{n_pool})[,\]]\S* copy\(", text)
    assert "kind=kCustom" not in text  # of libraries that bring threads of their own, which cost more than the step
    values = []
    for _ in range(4):
        *state, decision = step(*state, *numbers, params=rule.params(edges.relations))
        values.append(float(decision.value))
    assert decision.choice >= 0
    assert values == sorted(values)  # what is rewarded comes to mind more easily
    assert values[-1] > values[0]
    assert step._cache_size() == 1
