"""Sources in every form that means the same, and none in a form that means nothing."""

import numpy as np
import pytest
from habitus.cognition.activation import recall, spread, spread_many
from habitus.cognition.activation.sources import Sources
from habitus.cognition.graph import EdgeList, MemoryGraph


def entries(given, n_nodes=10):
    found = Sources.of(given, n_nodes)
    assert (found.nodes.dtype, found.values.dtype, found.rounds.dtype) == (np.int32, np.float64, np.int32)
    return sorted(zip(*(part.tolist() for part in found), strict=True))


@pytest.mark.parametrize(
    "given",
    [
        {3: 1.0, 5: 1.0},
        [3, 5],
        (3, 5),
        range(3, 6, 2),
        np.array([3, 5]),
        [(3, 1.0), (5, 1)],
        [[3, 1.0, 0], [5, 1.0, 0]],
        [np.int64(3), np.int32(5)],
        [(np.int64(3), np.float32(1.0)), 5],
        Sources(np.array([3, -1, 5]), np.array([1.0, 7.0, 1.0]), np.array([0, 0, 0])),
    ],
    ids=str,
)
def test_all_forms_of_the_same_sources(given):
    assert entries(given) == [(3, 1.0, 0), (5, 1.0, 0)]


def test_entries_of_one_node_and_round_add_up():
    assert entries([(3, 0.5), (3, 0.25), (3, 1.0, 2), 3]) == [(3, 1.0, 2), (3, 1.75, 0)]


def test_padding_is_nobody():
    padded = Sources.of([(3, 0.5, 1)], 10).padded(4)
    np.testing.assert_array_equal(padded.nodes, (3, -1, -1, -1))
    np.testing.assert_array_equal(padded.values, (0.5, 0, 0, 0))
    assert entries(padded) == [(3, 0.5, 1)]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ([], ValueError, "`sources` must name at least one node, got none"),
        ({}, ValueError, "`sources` must name at least one node, got none"),
        (5, TypeError, "`sources` must be a mapping of nodes to values or a sequence, got int"),
        ("35", TypeError, "`sources` must be a mapping of nodes to values or a sequence, got str"),
        ([3, 10], ValueError, r"the node of entry 1 of `sources` must be in \[0, 10\), got 10"),
        ([3, -2], ValueError, r"the node of entry 1 of `sources` must be in \[0, 10\), got -2"),
        ([3, 2.0], TypeError, r"the node of entry 1 of `sources` must be a whole number, got 2\.0"),
        ([True], TypeError, "the node of entry 0 of `sources` must be a whole number, got True"),
        (["bank"], TypeError, "the node of entry 0 of `sources` must be a whole number, got 'bank'"),
        ([(3, -0.1)], ValueError, r"the value of entry 0 of `sources` must be in \[0, 1e\+30\], got -0\.1"),
        ([(3, np.inf)], ValueError, r"the value of entry 0 of `sources` must be in \[0, 1e\+30\], got inf"),
        ([(3, np.nan)], ValueError, r"the value of entry 0 of `sources` must be in \[0, 1e\+30\], got nan"),
        ([(3, "much")], TypeError, "the value of entry 0 of `sources` must be a number, got 'much'"),
        ([(3, True)], TypeError, "the value of entry 0 of `sources` must be a number, got True"),
        ([(3, 1.0, -1)], ValueError, r"the round of entry 0 of `sources` must be in \[0, 10000\].*got -1"),
        ([(3, 1.0, 0.5)], TypeError, r"the round of entry 0 of `sources` must be a whole number, got 0\.5"),
        (
            [(3, 1.0, 0, 9)],
            ValueError,
            r"an entry of `sources` must be node, \(node, value\) or \(node, value, round\)",
        ),
        ([()], ValueError, r"an entry of `sources` must be node, \(node, value\) or \(node, value, round\), got \(\)"),
        (np.array([[3.5, 1.0]]), TypeError, r"the node of entry 0 of `sources` must be a whole number, got 3\.5"),
    ],
    ids=str,
)
def test_a_wrong_entry_is_named(given, error, message):
    with pytest.raises(error, match=message):
        Sources.of(given, 10)


def test_a_round_after_the_last_is_refused():
    graph = EdgeList(2, [0], [1], [1.0])
    with pytest.raises(ValueError, match=r"round of entry 1 of `sources` must be in \[0, 3\].*got 4"):
        spread(graph, [0, (1, 1.0, 4)], recall(rounds=3))
    with pytest.raises(ValueError, match="query 1: the round of entry 0"):
        spread_many(graph, [[0], [(1, 1.0, 4)]], recall(rounds=3))


@pytest.mark.parametrize("kernel", ["auto", "sweep", "frontier"])
def test_a_deleted_node_is_no_source(kernel):
    graph = MemoryGraph(8)
    graph.add_nodes(3)
    graph.delete_nodes([1])
    with pytest.raises(ValueError, match="1 was deleted"):
        spread(graph, {1: 1.0}, recall(), kernel=kernel)
    with pytest.raises(ValueError, match=r"query 0: .* 1 was deleted"):
        spread_many(graph, [{1: 1.0}], recall(), kernel=kernel)


def test_pairs_may_stand_in_an_array():
    given = Sources.of(np.array([[0, 1.0], [2, 0.5]]), 3)
    assert given.nodes.tolist() == [0, 2]
    assert given.values.tolist() == [1.0, 0.5]
    with pytest.raises(TypeError, match=r"node of entry 0 .* got 0\.5"):
        Sources.of(np.array([[0.5, 1.0]]), 3)


def test_a_label_is_pointed_to_its_number():
    with pytest.raises(TypeError, match=r"got 'rain'; `graph\.node` has the number of a label"):
        Sources.of({"rain": 1.0}, 3)
