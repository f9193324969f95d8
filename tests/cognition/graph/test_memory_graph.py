import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from habitus.cognition.graph import MemoryGraph


def labelled():
    graph = MemoryGraph(32, row=2, pool=64, labels=True)
    graph.add_nodes(3, base=[1, 0.5, 0.25], need=[0, 2, 0], labels=["rain", "wet", "umbrella"])
    graph.add_edges([0, 0, 1], [1, 2, 2], [0.5, 0.75, -0.25], "causes")
    return graph


def same(one, other):
    return all(
        np.array_equal(getattr(one.edges(), name), getattr(other.edges(), name))
        for name in ("source", "target", "strength", "relation", "base", "need")
    )


def test_a_graph_reads_as_a_person_reads_it():
    graph = labelled()
    assert [(edge.target, edge.relation, edge.strength) for edge in graph.neighbours("rain")] == [
        (2, "causes", 0.75),
        (1, "causes", 0.5),
    ]
    assert graph.edge("wet", "umbrella", "causes") == -0.25
    assert graph.node("umbrella") == 2
    assert graph.labels == ["rain", "wet", "umbrella"]
    assert "3 nodes, 3 edges" in repr(graph)


def test_a_change_gives_a_new_version_and_a_new_edge_list():
    graph = labelled()
    version, edges = graph.version, graph.edges()
    assert graph.edges() is edges
    graph.add_edges(0, 1, 0.25)
    assert graph.version == version + 1
    assert graph.edges() is not edges
    assert edges.n_edges == 3


def test_a_deleted_node_gives_up_its_number_and_its_label():
    graph = labelled()
    assert graph.delete_nodes(1) == 2
    assert graph.n_living == 2
    with pytest.raises(ValueError, match=r"`source` must be nodes of the graph, got 1 in row 0"):
        graph.add_edges(1, 2, 0.5)
    assert graph.add_nodes(1, labels=["wet"]).tolist() == [1]
    assert graph.neighbours(1) == []
    assert graph.edges().base[1] == 1


def test_a_copy_and_a_pickle_live_on_their_own():
    graph = labelled()
    for twin in (graph.copy(), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert same(twin, graph)
        twin.add_edges(2, 0, 0.5)
        twin.delete_nodes(0)
        assert graph.n_edges == 3
        assert graph.node("rain") == 0


def test_arrays_of_an_earlier_version_are_refused():
    graph = labelled()
    before = graph.arrays
    graph.add_edges(0, 1, 0.25)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(before.rows)


def test_arrays_that_compiled_code_changed_are_taken_back():
    graph = labelled()
    version = graph.version
    graph.adopt(graph.arrays)
    assert graph.version == version + 1
    assert graph.n_edges == 3
    with pytest.raises(ValueError, match="`arrays` must have the shapes"):
        graph.adopt(MemoryGraph(64).arrays)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: MemoryGraph(0), ValueError, r"`capacity` must be in \[1, \d+\], got 0"),
        (lambda g: MemoryGraph(2.5), TypeError, r"`capacity` must be a whole number, got 2.5"),
        (lambda g: MemoryGraph(row=0), ValueError, r"`row` must be in \[1, 1024\], got 0"),
        (lambda g: MemoryGraph(labels=["a"]), TypeError, r"`labels` must be True or False"),
        (lambda g: g.add_nodes(2, base=[0.5, 1.5]), ValueError, r"`base` must be in \[0, 1\], got 1.5 in row 1"),
        (lambda g: g.add_nodes(2, base=[0.5]), ValueError, r"`base` must be a number or have shape \(2,\), got \(1,\)"),
        (lambda g: g.add_nodes(1, need=0.5), TypeError, r"`need` must be whole numbers, got float64"),
        (lambda g: g.add_nodes(1, labels=["rain"]), ValueError, r"`labels` must be new .* got 'rain' in place 0"),
        (lambda g: g.add_nodes(2, labels=["a"]), ValueError, r"`labels` must have one label per node, 2, got 1"),
        (lambda g: g.add_edges([0, 3], 1, 0.5), ValueError, r"`source` must be nodes of the graph, got 3 in row 1"),
        (lambda g: g.add_edges(0, -1, 0.5), ValueError, r"`target` must be nodes of the graph, got -1 in row 0"),
        (lambda g: g.add_edges(0.0, 1, 0.5), TypeError, r"`source` must be whole numbers of nodes, got float64"),
        (lambda g: g.add_edges([0, 1], [1, 2, 0], 0.5), ValueError, r"`source` must have one entry per edge, 3, got 2"),
        (lambda g: g.add_edges(0, 1, np.nan), ValueError, r"`strength` must be in \[-1, 1\], got nan in row 0"),
        (lambda g: g.add_edges(0, [1, 2], [0.5, 2]), ValueError, r"`strength` must be in \[-1, 1\], got 2.0 in row 1"),
        (lambda g: g.add_edges(0, 1, 0.5, "cause"), ValueError, r"`relation` must be one of .* got 'cause' in row 0"),
        (lambda g: g.add_edges(0, 1, 0.5, 9), ValueError, r"`relation` must be in \[0, 8\], got 9 in row 0"),
        (lambda g: g.decay(1.5), ValueError, r"`factor` must be in \[0, 1\], got 1.5"),
        (lambda g: g.decay(0.5, -1), ValueError, r"`floor` must be in \[0, 1\], got -1"),
        (lambda g: g.decay({"cause": 0.5}), ValueError, r"`relation` must be one of"),
        (lambda g: g.delete_nodes([0, 7]), ValueError, r"`nodes` must be nodes of the graph, got 7 in row 1"),
        (lambda g: g.node("umbrela"), ValueError, r"no node has the label 'umbrela'; near ones are \['umbrella'\]"),
        (lambda g: MemoryGraph().node("x"), ValueError, r"`node` must be a number, got 'x'; this graph has no labels"),
        (lambda g: MemoryGraph().add_nodes(1, labels=["x"]), ValueError, r"`labels` need a graph with labels"),
    ],
)
def test_a_wrong_argument_is_named_and_nothing_changes(call, error, message):
    graph = labelled()
    version = graph.version
    with pytest.raises(error, match=message):
        call(graph)
    assert graph.version == version
    assert graph.n_edges == 3
    assert graph.n_living == 3


@pytest.mark.parametrize("n_nodes", [1, 8, 9, 17, 1_000, 1_000_000, 10_000_000])
def test_capacity_is_close_to_what_is_needed(n_nodes):
    from habitus.cognition.graph.packing import fitting

    assert n_nodes <= fitting(n_nodes) <= max(8, n_nodes * 9 / 8)


MEASURE = """
import resource, sys
import numpy as np
from habitus.cognition.graph import MemoryGraph
import jax; jax.numpy.zeros(1).block_until_ready()
n = int(sys.argv[1])
rng = np.random.default_rng(0)
source = np.repeat(np.arange(n, dtype=np.int32), 10)
target = rng.integers(0, n, 10 * n, dtype=np.int32)
strength = rng.uniform(0.1, 1, 10 * n)
columns = sum(column.nbytes for column in (source, target, strength))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
graph = MemoryGraph.from_edges((source, target, strength), duplicates="last")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(sum(leaf.nbytes for leaf in graph.arrays), peak - before, columns)
"""


@pytest.mark.slow
def test_a_million_nodes_with_ten_million_edges_take_less_than_200_mb():
    done = subprocess.run([sys.executable, "-c", MEASURE, "1000000"], capture_output=True, text=True, check=True)
    arrays, peak, _ = map(int, done.stdout.split())
    assert arrays < 200e6
    assert peak < 2e9  # of building, beyond the columns
