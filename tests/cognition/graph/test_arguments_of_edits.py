"""What edits take: nothing at all, labels, and arrays that come back."""

import jax.numpy as jnp
import numpy as np
import pytest
from habitus.cognition.activation.rule import OTHERS as OTHERS_OF_RULES
from habitus.cognition.graph import EdgeList, MemoryGraph
from habitus.cognition.graph.relations import OTHERS


def labelled():
    graph = MemoryGraph(32, row=2, pool=64, labels=True)
    graph.add_nodes(4, labels=["rain", "wet", "umbrella", "sun"])
    graph.add_edges([0, 0, 1], [1, 2, 2], [0.5, 0.75, -0.25], "causes")
    return graph


@pytest.mark.parametrize("nothing", [[], (), np.zeros(0), np.zeros(0, np.int32), np.array([], str)], ids=repr)
@pytest.mark.parametrize(
    "call",
    [
        lambda g, n: g.add_edges(n, n, []),
        lambda g, n: g.add_edges(n, n, 0.5, "causes"),
        lambda g, n: g.add_edges(0, n, []),
        lambda g, n: g.set_edges(n, n, [], []),
        lambda g, n: g.delete_edges(n, n),
        lambda g, n: g.delete_nodes(n),
        lambda g, n: g.add_nodes(0),
        lambda g, n: g.add_nodes(0, base=[], need=[], labels=[]),
    ],
)
def test_nothing_does_nothing(call, nothing):
    graph = labelled()
    version = graph.version
    call(graph, nothing)
    assert (graph.version, graph.n_edges, graph.n_living) == (version, 3, 4)


def test_nodes_are_given_by_label_or_number_alike():
    graph = labelled()
    graph.add_edges(["sun", "sun"], ["rain", 1], [-0.5, 0.25])
    graph.set_edges("rain", np.array(["wet", "umbrella"]), 0.125, "causes")
    assert [(edge.target, edge.strength) for edge in graph.neighbours("sun")] == [(0, -0.5), (1, 0.25)]
    assert graph.edge("rain", "wet", "causes") == graph.edge(0, 2, "causes") == 0.125
    assert graph.delete_edges("sun", ["wet", 0]) == 2
    assert graph.delete_nodes(["umbrella", 3]) == 2
    assert graph.labels == ["rain", "wet", None, None]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda g: g.add_edges(["sun", "rian"], 0, 0.5),
            ValueError,
            r"label 'rian' \(`source` in row 1\); near .*rain",
        ),
        (lambda g: g.delete_edges(0, "wt"), ValueError, r"no node has the label 'wt' \(`target` in row 0\)"),
        (lambda g: g.delete_nodes(["sun", 9]), ValueError, r"`nodes` must be nodes of the graph, got 9 in row 1"),
        (lambda g: g.delete_nodes(["sun", 2**70]), ValueError, r"`nodes` must be nodes of the graph"),
        (
            lambda g: g.set_edges(["sun", None], 1, 0.5),
            TypeError,
            r"`source` must be numbers or labels .* None in row 1",
        ),
        (lambda g: g.delete_nodes(None), TypeError, r"`nodes` must be numbers or labels of nodes, got None in row 0"),
        (lambda g: g.delete_nodes([0, [1]]), ValueError, r"`nodes` must be a node or a sequence of nodes, got \[0, \["),
        (lambda g: MemoryGraph().delete_nodes("x"), ValueError, r"`nodes` must be numbers .* 'x' .* has no labels"),
    ],
)
def test_a_label_without_a_node_is_named_and_nothing_changes(call, error, message):
    graph = labelled()
    version = graph.version
    with pytest.raises(error, match=message):
        call(graph)
    assert (graph.version, graph.n_edges, graph.n_living) == (version, 3, 4)


def test_arrays_of_another_kind_are_refused_and_the_graph_keeps_its_own():
    graph = labelled()
    arrays, version, edges = graph.arrays, graph.version, graph.edges()
    for wrong, error, message in (
        (tuple(arrays), TypeError, "must be GraphArrays, got tuple"),
        (arrays._replace(base=np.asarray(arrays.base)), TypeError, r"`arrays\.base` must be a JAX array, got ndarray"),
        (arrays._replace(base=arrays.base.astype(jnp.int32)), ValueError, r"`base` is float32\[33\], got int32\[33\]"),
        (arrays._replace(pool=arrays.pool[:8]), ValueError, r"`pool` is int32\[64, 4\], got int32\[8, 4\]"),
        (arrays._replace(n_nodes=jnp.int32(3)), ValueError, "must have the nodes of this graph, 4, got 3"),
    ):
        with pytest.raises(error, match=message):
            graph.adopt(wrong)
        assert graph.version == version
        assert graph.edges() is edges
    graph.add_edges(3, 0, 0.5)
    with pytest.raises(ValueError, match="was used up by an edit"):
        graph.adopt(arrays)
    assert graph.n_edges == 4


def test_decay_of_the_relations_that_are_not_named_is_that_of_default():
    graph = labelled()
    graph.add_edges("sun", "wet", 0.5, "scene")
    graph.decay({OTHERS: 0.5, "scene": 1})
    assert graph.edge("rain", "wet", "causes") == 0.25
    assert graph.edge("sun", "wet", "scene") == 0.5
    assert OTHERS == OTHERS_OF_RULES
    with pytest.raises(ValueError, match=r"`relation` must be one of .* got 'scenes'"):
        graph.decay({OTHERS: 0.5, "scenes": 1})


@pytest.mark.parametrize("strength", [1e-50, -1e-40, 2.0**-127])
def test_an_edge_that_counts_as_nothing_in_f32_is_none(strength):
    with pytest.raises(ValueError, match=r"`strength` must not be 0 .* got -?\d.*e-\d+ in row 1"):
        EdgeList(2, [0, 1], [1, 0], [0.5, strength])
    with pytest.raises(ValueError, match=r"`strength` must be in \[-1, 1\] and not 0 in f32, got .* in row 1"):
        MemoryGraph.from_edges(([0, 1], [1, 0], [0.5, strength]))
    with pytest.raises(ValueError, match=r"`strength` must be in .* after division by 2"):
        MemoryGraph.from_edges(([0, 1], [1, 0], [0.5, strength * 2]), scale=2)
    graph = labelled()
    graph.add_edges(3, 1, strength)
    assert graph.n_edges == 3
    assert EdgeList(2, [0], [1], [2.0**-126]).n_edges == 1
