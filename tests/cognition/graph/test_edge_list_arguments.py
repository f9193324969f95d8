"""An edge list says which column is wrong, in which row, and does not change with the arrays it was given."""

from typing import Any

import numpy as np
import pytest
from habitus.cognition.graph.edge_list import MAX_NODES, EdgeList
from habitus.cognition.graph.relations import MAX_RELATIONS, RELATIONS


def of(**changes: Any) -> EdgeList:
    columns: dict[str, Any] = dict(n_nodes=3, source=[0, 1], target=[1, 2], strength=[0.5, -1.0])
    return EdgeList(**{**columns, **changes})


def test_columns_are_filled_in():
    edges = of()
    assert (edges.n_nodes, edges.n_edges, edges.relations) == (3, 2, RELATIONS)
    np.testing.assert_array_equal(edges.relation, (0, 0))
    np.testing.assert_array_equal(edges.base, (1, 1, 1))
    np.testing.assert_array_equal(edges.need, (0, 0, 0))
    np.testing.assert_array_equal(edges.out_degree(), (1, 1, 0))
    kinds = (edges.source, edges.target, edges.strength, edges.relation, edges.base, edges.need)
    assert [array.dtype for array in kinds] == [np.int32, np.int32, np.float64, np.uint8, np.float64, np.int32]


def test_a_graph_without_edges_or_nodes_is_one():
    assert of(source=[], target=[], strength=[]).n_edges == 0
    assert of(n_nodes=0, source=[], target=[], strength=[]).n_nodes == 0


def test_arrays_are_read_only_copies():
    source = np.array([0, 1])
    edges = of(source=source)
    source[0] = 2
    np.testing.assert_array_equal(edges.source, (0, 1))
    with pytest.raises(ValueError, match="read-only"):
        edges.strength[0] = 0.1


def test_an_edge_may_stand_once_for_each_relation_and_each_way():
    assert of(source=[0, 0, 1], target=[1, 1, 0], strength=[1.0, 1.0, 1.0], relation=[0, 1, 0]).n_edges == 3


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"n_nodes": 3.0}, TypeError, r"`n_nodes` must be a whole number, got 3\.0"),
        ({"n_nodes": True}, TypeError, "`n_nodes` must be a whole number, got True"),
        ({"n_nodes": -1}, ValueError, rf"`n_nodes` must be in \[0, {MAX_NODES}\], got -1"),
        ({"n_nodes": MAX_NODES + 1}, ValueError, rf"`n_nodes` must be in \[0, {MAX_NODES}\], got {MAX_NODES + 1}"),
        ({"source": [0, 3]}, ValueError, r"`source` must be in \[0, 2\], got 3 in row 1"),
        ({"source": [-1, 1]}, ValueError, r"`source` must be in \[0, 2\], got -1 in row 0"),
        ({"source": [0.0, 1.0]}, TypeError, "`source` must be whole numbers, got float64"),
        ({"target": [1, 9]}, ValueError, r"`target` must be in \[0, 2\], got 9 in row 1"),
        ({"target": [1]}, ValueError, r"`target` must have shape \(2,\), got \(1,\)"),
        ({"target": ["a", "b"]}, TypeError, "`target` must be whole numbers, got <U1"),
        ({"target": [True, False]}, TypeError, "`target` must be whole numbers, got bool"),
        ({"strength": [0.5, 1.5]}, ValueError, r"`strength` must be in \[-1, 1\], got 1\.5 in row 1"),
        ({"strength": [0.5, np.nan]}, ValueError, r"`strength` must be in \[-1, 1\], got nan in row 1"),
        ({"strength": [0.5, 0.0]}, ValueError, r"`strength` must not be 0 \(.*\), got 0 in row 1"),
        ({"strength": [[0.5, 0.5]]}, ValueError, r"`strength` must have shape \(2,\), got \(1, 2\)"),
        ({"strength": ["weak", "weak"]}, TypeError, "`strength` must be numbers, got <U4"),
        (
            {"relation": [0, len(RELATIONS)]},
            ValueError,
            rf"`relation` must be in \[0, {len(RELATIONS) - 1}\], got 9 in",
        ),
        ({"relation": [0]}, ValueError, r"`relation` must have shape \(2,\), got \(1,\)"),
        ({"relation": [0.0, 1.0]}, TypeError, "`relation` must be whole numbers, got float64"),
        ({"base": [1.0, 1.0]}, ValueError, r"`base` must have shape \(3,\), got \(2,\)"),
        ({"base": [1.0, 1.1, 1.0]}, ValueError, r"`base` must be in \[0, 1\], got 1\.1 in row 1"),
        ({"need": [0, 0, -1]}, ValueError, r"`need` must be in \[0, \d+\], got -1 in row 2"),
        ({"need": [0, 0.5, 0]}, TypeError, "`need` must be whole numbers, got float64"),
        ({"relations": ()}, ValueError, f"`relations` must be 1 to {MAX_RELATIONS} names, got 0"),
        (
            {"relations": [str(n) for n in range(17)]},
            ValueError,
            f"`relations` must be 1 to {MAX_RELATIONS} names, got 17",
        ),
        ({"relations": ("causes", "")}, ValueError, "`relations` must be names that are not empty, got ''"),
        ({"relations": ("causes", 3)}, ValueError, "`relations` must be names that are not empty, got 3"),
        ({"relations": ("causes", "causes")}, ValueError, "`relations` must differ, got 'causes' 2 times"),
        (
            {"source": [0, 0], "target": [1, 1]},
            ValueError,
            r"an edge must stand once, but rows 0 and 1 are both 0 -> 1 \(co_occurs_with\); add their strengths",
        ),
    ],
    ids=str,
)
def test_a_wrong_column_is_named(changes, error, message):
    with pytest.raises(error, match=message):
        of(**changes)
