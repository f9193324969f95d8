"""What few graphs have: edges that let nothing through, rules without rounds, long rows, and bytes in a new process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from habitus.cognition.activation import SpreadRule, spread, spread_each, spread_many
from habitus.cognition.activation.frontier.top import top_of
from habitus.cognition.activation.pull.sweep import sweep_pull
from habitus.cognition.activation.pull.sweep_form import LONGEST, sweep_form
from habitus.cognition.graph import EdgeList

ALL = ("reference", "dense", "ell", "sweep", "frontier")
slow = pytest.mark.slow


def of_kernels(*default: str, of: tuple[str, ...] = ALL) -> list[Any]:
    return [pytest.param(kernel, marks=() if kernel in default else slow) for kernel in of]


def waiting(lets_through: float = 0.0) -> tuple[EdgeList, SpreadRule]:
    """0 -> 1, 0 -> 2 and twice 1 -> 3, where 3 waits for two; the second of each pair is of the weak relation."""
    edges = EdgeList(4, [0, 0, 1, 1], [1, 2, 3, 3], [1.0, 1.0, 1.0, 0.5], [0, 1, 0, 1], need=[0, 0, 0, 2])
    decay = {edges.relations[1]: lets_through}
    return edges, SpreadRule(decay=decay, conjunctions=True, rounds=2, retention=1.0)


@pytest.mark.parametrize("kernel", ALL)
@pytest.mark.parametrize("lets_through", [0.0, pytest.param(1e-40, marks=slow)])
def test_an_edge_that_lets_nothing_through_is_counted_and_activates_nothing(kernel, lets_through):
    edges, rule = waiting(lets_through)  # what is below 1e-38 is nothing to kernels
    found = spread(edges, {0: 1.0}, rule, top=4, kernel=kernel)
    active = [0, 1, 3, *([2] if kernel == "reference" and lets_through else [])]
    assert sorted(found.nodes[found.nodes >= 0].tolist()) == sorted(active)  # 3 has both its edges from 1
    assert found.n_active == len(active)


@pytest.mark.parametrize("kernel", of_kernels("reference", "ell", "sweep"))
def test_an_inhibiting_edge_that_lets_nothing_through_is_not_counted(kernel):
    edges, rule = waiting()
    edges = EdgeList(4, edges.source, edges.target, [1.0, -1.0, 1.0, -0.5], edges.relation, need=edges.need)
    found = spread(edges, {0: 1.0}, rule, top=4, kernel=kernel)  # compiled already
    assert sorted(found.nodes.tolist()) == [-1, -1, 0, 1]


@slow
@pytest.mark.parametrize("kernel", ["dense", "ell"])
def test_many_queries_and_graphs_do_not_activate_what_nothing_reaches(kernel):
    edges, rule = waiting()
    batches = [
        spread_many(edges, [{0: 1.0}] * 2, rule, top=4, kernel=kernel),
        spread_many(edges, [{0: 1.0}] * 64, rule, top=4, kernel=kernel),
        spread_each([edges, edges], [{0: 1.0}] * 2, rule, top=4, kernel=kernel),
    ]
    for found in batches:
        assert (found.n_active == 3).all()
        assert not (found.nodes == 2).any()


@pytest.mark.parametrize("kernel", ALL)
@pytest.mark.parametrize("tolerance", [0.0, pytest.param(0.1, marks=slow)])
def test_without_rounds_evidence_is_empty_and_history_the_start(kernel, tolerance):
    edges, _ = waiting()
    found = spread(edges, {0: 0.5}, SpreadRule(rounds=0, tolerance=tolerance), top=2, kernel=kernel, evidence=3)
    assert found.nodes.tolist() == [0, -1]
    assert found.history.tolist() == [[0.5, 0.0]]
    assert found.flows.by_round.shape == (3, 0)
    assert found.flows.amount.tolist() == [0, 0, 0]
    for names in found.flows[:3]:
        assert names.tolist() == [-1, -1, -1]
    assert (found.rounds, found.dropped.flows) == (0, 0)


@pytest.mark.parametrize("kernel", of_kernels("reference", "ell", "frontier"))
def test_what_a_node_takes_up_in_a_round_is_the_sum_of_its_flows(kernel):
    rng = np.random.default_rng(0)
    keys = rng.choice(64, 24, replace=False)
    edges = EdgeList(8, keys // 8, keys % 8, rng.uniform(0.1, 1, 24), base=rng.uniform(0.2, 1, 8))
    rule = SpreadRule(retention=0.5, rounds=3, leak=0.1, cap=100.0)
    found = spread(edges, {0: 1.0, 3: 0.5}, rule, top=8, kernel=kernel, evidence=24)
    assert found.n_active == 6
    assert found.dropped.flows == 0
    inflow = np.zeros((3, 8))
    listed = found.flows.source >= 0
    np.add.at(inflow.T, found.flows.target[listed], found.flows.by_round[listed])
    shown = found.nodes[:6]
    assert inflow[:, shown].sum() == pytest.approx(inflow.sum())  # all that is taken up is of active nodes
    before, after = found.history[:-1, :6], found.history[1:, :6]  # no cap and no floor is met
    np.testing.assert_allclose(after, 0.9 * (0.5 * before + inflow[:, shown]), rtol=1e-5)
    np.testing.assert_allclose(found.flows.amount[listed], found.flows.by_round[listed].sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("kernel", of_kernels("reference", "dense", of=ALL[:4]))
def test_what_dangling_nodes_return_is_shared_by_the_sources_whatever_their_sum(kernel):
    edges = EdgeList(4, [0, 1], [2, 3], [1.0, 0.5])  # 2 and 3 are dangling
    rule = SpreadRule(retention=0.0, restart=0.25, dangling=True, rounds=4, normalisation="row")
    found = spread(edges, {0: 0.3, 1: 0.1}, rule, kernel=kernel, everything=True).everything
    np.testing.assert_allclose(found.sum(), 0.4, rtol=1e-6)  # a random surfer is never lost
    np.testing.assert_allclose(found[0], 3 * found[1], rtol=1e-6)


@pytest.mark.parametrize("kernel", ["reference", "frontier"])
def test_inhibition_does_not_count_for_a_conjunction_and_little_is_enough(kernel):
    """0 excites and 1 inhibits 2, which waits for two; 0 excites 3, which waits for none."""
    edges = EdgeList(4, [0, 1, 0], [2, 2, 3], [1.0, -0.25, 1.0], need=[0, 0, 2, 0])
    rule = SpreadRule(conjunctions=True, rounds=1, retention=1.0)
    found = spread(edges, {0: 1e-4, 1: 1e-4}, rule, top=4, kernel=kernel)
    assert sorted(found.nodes.tolist()) == [-1, 0, 1, 3]


def test_of_equals_one_more_than_there_is_room_for_the_largest_number_is_left_out():
    raw, node = jnp.ones(3), jnp.array([5, 3, 1], jnp.int32)
    assert top_of(raw, node, raw > 0, 2).node.tolist() == [1, 3]


def test_a_node_of_more_edges_than_a_row_holds_is_swept_whole():
    n = 2 * LONGEST + 4
    rng = np.random.default_rng(0)
    source, target = np.arange(n), np.r_[np.zeros(n - 1, int), 1]
    edges = EdgeList(n, source, target, rng.uniform(0.1, 1, n))
    form, _ = sweep_form(edges, SpreadRule(), n)
    x = rng.uniform(0.5, 1, n).astype(np.float32)
    inflow, _ = sweep_pull(*(jnp.asarray(part) for part in form), counts=False)(jnp.asarray(x))
    wanted = np.bincount(edges.target, edges.strength * x[edges.source], n)
    np.testing.assert_allclose(inflow, wanted, rtol=1e-5)


BYTES = """
import numpy as np
from habitus.cognition.activation import recall, spread
from habitus.experiments.kernel_graphs import random_graph
for kernel in ("ell", "frontier"):
    found = spread(random_graph(500, 6, 0.5), [1, 2, 3], recall(rounds=2), top=16, kernel=kernel)
    print(found.nodes.tobytes().hex(), found.raw.tobytes().hex())
"""


@slow
def test_a_new_process_gives_the_same_bytes(capsys):
    exec(BYTES, {})
    here = capsys.readouterr().out
    fresh = subprocess.run([sys.executable, "-c", BYTES], capture_output=True, text=True, check=True)
    assert fresh.stdout == here
    assert len(here) > 200
