"""What does not fit a graph or cannot be compiled for is refused by name, before anything is read wrongly."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.cognition.activation import (
    FrontierKernel,
    Limits,
    Spreader,
    SpreadRule,
    dense_spread,
    ell_spread,
    frontier_many,
    frontier_spread,
    new_scratch,
    sample,
    spread,
    spread_many,
)
from habitus.cognition.activation.online import decide
from habitus.cognition.graph import EdgeList, MemoryGraph

EDGES = EdgeList(4, [0, 1, 2], [1, 2, 3], [0.5, 0.5, 0.5])
PLAIN = SpreadRule(threshold=0.1, cap=1.0)


def own(n: int) -> SpreadRule:
    return dataclasses.replace(PLAIN, retention=np.full(n, 0.5))


def test_a_retention_per_node_must_be_of_all_nodes():
    graph = MemoryGraph.from_edges(EDGES)
    calls: list[Any] = [
        lambda: spread(EDGES, [0], own(2), kernel="frontier"),
        lambda: spread_many(EDGES, [[0]], own(2), kernel="frontier"),
        lambda: Spreader(graph, own(2), kernel="frontier"),
        lambda: FrontierKernel().spread(graph, [0], own(2)),
        lambda: FrontierKernel().spread_many(graph, [[0]], own(2)),
        lambda: sample(graph, [0], rule=own(2)),
        lambda: spread(EDGES, [0], own(2), kernel="ell"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="`retention` must be a number or one per node, 4, got 2"):
            call()


def test_a_graph_that_has_grown_needs_the_retention_of_its_new_nodes():
    graph = MemoryGraph.from_edges(EDGES)
    kept, taken = Spreader(graph, own(4), kernel="frontier"), sample(graph, [0], rule=own(4))
    graph.add_nodes(1)
    for call in (lambda: kept([0]), lambda: kept.many([[0]]), lambda: taken.pull(graph)):
        with pytest.raises(ValueError, match="`retention` must be a number or one per node, 5, got 4"):
            call()


def test_pure_functions_refuse_a_retention_that_is_longer_than_the_graph():
    graph = MemoryGraph.from_edges(EDGES)
    arrays, rule = graph.arrays, own(graph.arrays.capacity + 1)
    given = (arrays, new_scratch(arrays.capacity), jnp.zeros(1, jnp.int32), jnp.ones(1))
    rest = (rule.code, rule.params(EDGES.relations))
    many = (*given[:2], given[2][None], given[3][None])
    calls: list[Any] = [
        lambda: frontier_spread(*given, None, *rest),
        lambda: frontier_many(*many, None, *rest),
        lambda: decide(*given, None, *rest),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"`params.retention` must be a number or one for each"):
            call()


@pytest.mark.parametrize(
    ("limits", "error", "text"),
    [
        (Limits(active=()), ValueError, r"`limits.active` must have a number for at least one round, got \(\)"),
        (Limits(active=(8, -1)), ValueError, "`limits.active` must be of numbers of at least 1, got -1"),
        (Limits(active=(0,)), ValueError, "`limits.active` must be of numbers of at least 1, got 0"),
        (Limits(active=(8.0,)), TypeError, "`limits.active` must be of whole numbers, got 8.0"),
        (Limits(active=(True,)), TypeError, "`limits.active` must be of whole numbers, got True"),
        (Limits(active=[8]), TypeError, "`limits.active` must be a tuple"),
        (Limits(active=8), TypeError, "`limits.active` must be a tuple"),
        (Limits(pool=()), ValueError, "`limits.pool` must have a number"),
        (Limits(pool=(1.5,)), TypeError, "`limits.pool` must be of whole numbers"),
        (Limits(touched=0), ValueError, "`limits.touched` must be of numbers of at least 1, got 0"),
        (Limits(touched=64.0), TypeError, "`limits.touched` must be of whole numbers"),
        (((8,), (8,), 64), TypeError, "`limits` must be Limits"),
    ],
)
def test_limits_that_cannot_be_compiled_for_are_refused_by_name(limits, error, text):
    graph = MemoryGraph.from_edges(EDGES)
    calls: list[Any] = [
        lambda: FrontierKernel().spread(graph, [0], PLAIN, limits=limits),
        lambda: FrontierKernel().spread_many(graph, [[0]], PLAIN, limits=limits),
        lambda: Spreader(graph, PLAIN, limits=limits),
        lambda: spread(EDGES, [0], PLAIN, kernel="ell", limits=limits),
    ]
    for call in calls:
        with pytest.raises(error, match=text):
            call()


def test_few_touched_nodes_still_hold_all_sources_and_what_is_lost_is_counted():
    """A loop of six rounds over 0..7 -> 8; places for the eight sources and nobody, and none for node 8."""
    edges = EdgeList(9, np.arange(8), np.full(8, 8), np.full(8, 0.5))
    graph, rule = MemoryGraph.from_edges(edges), SpreadRule(1.0, rounds=6, cap=2.0)
    kernel, few = FrontierKernel(), Limits((8,), (8,), 1)
    found = kernel.spread(graph, list(range(8)), rule, limits=few, exact=False, top=16)
    assert sorted(found.nodes[:8].tolist()) == list(range(8))
    assert found.raw[:8].tolist() == [1.0] * 8
    assert found.n_active == 8
    assert found.dropped.touched == 1
    whole = kernel.spread(graph, list(range(8)), rule, limits=few, top=16)
    assert (whole.n_active, whole.nodes[0], whole.raw[0]) == (9, 8, 6.0)
    assert whole.dropped == (0, 0, 0, 0)


@pytest.mark.parametrize("kernel", ["dense", "ell"])
def test_a_rule_that_stops_has_a_derivative_in_forward_mode_only(kernel):
    rule = SpreadRule(0.5, rounds=9, tolerance=1e-3)
    square = jnp.zeros((4, 4)).at[0, 1].set(0.5)
    rows, source = square.T[:1].at[0].set(jnp.array([0.0, 0.5, 0.0, 0.0])), jnp.array([[0, 0, 2, 3]], jnp.int32)

    def total(scale: Any) -> Any:
        if kernel == "dense":
            return dense_spread(square * scale, jnp.eye(4)[0], rule).sum()
        return ell_spread(source, rows * scale, jnp.eye(4)[0], rule).sum()

    _, slope = jax.jvp(total, (1.0,), (1.0,))
    assert slope > 0
    with pytest.raises(ValueError, match="while_loop"):
        jax.grad(total)(1.0)
    assert "while_loop" in (dense_spread.__doc__ or "")
    assert "while_loop" in (ell_spread.__doc__ or "")
