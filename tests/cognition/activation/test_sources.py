"""Sources in every form that means the same, and none in a form that means nothing."""

import numpy as np
import pytest
from habitus.cognition.activation.sources import Sources


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
        ([(3, -0.1)], ValueError, r"the value of entry 0 of `sources` must be finite and at least 0, got -0\.1"),
        ([(3, np.inf)], ValueError, "the value of entry 0 of `sources` must be finite and at least 0, got inf"),
        ([(3, np.nan)], ValueError, "the value of entry 0 of `sources` must be finite and at least 0, got nan"),
        ([(3, "much")], TypeError, "the value of entry 0 of `sources` must be a number, got 'much'"),
        ([(3, True)], TypeError, "the value of entry 0 of `sources` must be a number, got True"),
        ([(3, 1.0, -1)], ValueError, "the round of entry 0 of `sources` must be at least 0, got -1"),
        ([(3, 1.0, 0.5)], TypeError, r"the round of entry 0 of `sources` must be a whole number, got 0\.5"),
        (
            [(3, 1.0, 0, 9)],
            ValueError,
            r"an entry of `sources` must be node, \(node, value\) or \(node, value, round\)",
        ),
        ([()], ValueError, r"an entry of `sources` must be node, \(node, value\) or \(node, value, round\), got \(\)"),
        (np.array([[3, 1.0]]), TypeError, r"the node of entry 0 of `sources` must be a whole number, got 3\.0"),
    ],
    ids=str,
)
def test_a_wrong_entry_is_named(given, error, message):
    with pytest.raises(error, match=message):
        Sources.of(given, 10)
