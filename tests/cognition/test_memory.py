"""The memory as a person reads it."""

import networkx
import numpy as np
import pytest
from habitus import cognition

DECISIONS = ("approve", "reject", "review")
N = 12 + 10 + 4 + 3 * 17  # context, own actions, advice, three prototypes with seventeen nodes
LABELS = ("bias", *(f"fact {k}" for k in range(1, N)))


@pytest.fixture(scope="module")
def lived(kept_life):
    """(state, snapshot) of a learner after 80 steps."""
    state, shape = kept_life
    assert shape.n_nodes == N
    names = dict(labels=LABELS, kinds=("bias", *["context"] * (N - 1)), decisions=DECISIONS)
    return state, cognition.memory_of(state.edges, shape, **names, step=int(state.step), version=int(state.version))


def test_strengths_are_the_two_sides_of_the_net_weights(lived):
    state, memory = lived
    net = np.asarray(state.edges.net).reshape(N, 2, 4)
    np.testing.assert_array_equal(memory.gain_exc - memory.gain_inh, net[:, 0])
    np.testing.assert_array_equal(memory.loss_exc - memory.loss_inh, net[:, 1])
    for strength in (memory.gain_exc, memory.gain_inh, memory.loss_exc, memory.loss_inh):
        assert strength.min() >= 0.0
        assert strength.max() <= 1.0
    assert (memory.gain_exc * memory.gain_inh == 0).all()
    assert memory.uses.sum() > 0
    assert memory.last_activated.max() == 79


def test_common_edges_are_those_to_any_action(lived):
    _, memory = lived
    assert memory.decisions == (*DECISIONS, "any action")
    np.testing.assert_array_equal(memory.uses[:, 3], memory.uses[:, :3].sum(axis=1))
    np.testing.assert_array_equal(memory.last_activated[:, 3], memory.last_activated[:, :3].max(axis=1))
    assert abs(memory.edge("bias", "any action").balance) > 0


def test_a_snapshot_does_not_move_with_the_learner_and_cannot_be_written(lived):
    _, memory = lived
    with pytest.raises(ValueError, match="read-only"):
        memory.gain[0, 0] = 1.0


def test_an_edge_is_found_by_its_labels(lived):
    _, memory = lived
    edge = memory.edge("fact 3", "review")
    assert (edge.node, edge.decision) == ("fact 3", "review")
    assert edge.gain_exc - edge.gain_inh == pytest.approx(float(memory.gain[3, 2]))
    with pytest.raises(KeyError, match="no node is called 'fact 99'"):
        memory.edge("fact 99", "review")
    with pytest.raises(KeyError, match="no decision is called 'flee'"):
        memory.edge("fact 3", "flee")


def test_the_strongest_edges_come_first(lived):
    _, memory = lived
    edges = memory.strongest("reject", 5)
    balance = [abs(edge.balance) for edge in edges]
    assert len(edges) == 5
    assert balance == sorted(balance, reverse=True)
    assert balance[0] == pytest.approx(float(np.abs(memory.gain - memory.loss)[memory.uses[:, 1] > 0, 1].max()))


def test_the_graph_has_the_used_edges_and_their_strengths(lived):
    _, memory = lived
    graph = memory.to_networkx()
    assert isinstance(graph, networkx.DiGraph)
    assert graph.number_of_edges() == np.count_nonzero(memory.uses)
    for node, decision, data in graph.edges(data=True):
        assert graph.nodes[decision]["kind"] == "decision"
        balance = data["gain_exc"] - data["gain_inh"] - data["loss_exc"] + data["loss_inh"]
        assert data["type"] == ("supports" if balance >= 0 else "opposes")
        assert data["uses"] == memory.edge(node, decision.removeprefix("decision: ")).uses
