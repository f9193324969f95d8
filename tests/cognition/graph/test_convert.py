import networkx
import numpy as np
import pandas
import pytest
from habitus.cognition.graph import EdgeList, MemoryGraph


def rows(graph):
    edges = graph.edges()
    return sorted(
        zip(edges.source.tolist(), edges.target.tolist(), edges.relation.tolist(), edges.strength.tolist(), strict=True)
    )


def test_columns_of_numbers_make_a_graph():
    graph = MemoryGraph.from_edges(([0, 2], [1, 0], [0.5, -0.25], ["causes", "scene"]))
    assert rows(graph) == [(0, 1, 1, 0.5), (2, 0, 5, -0.25)]
    assert graph.n_nodes == 3


def test_columns_of_labels_number_the_nodes_as_they_appear():
    graph = MemoryGraph.from_edges((["b", "a"], ["c", "b"]))
    assert graph.labels == ["b", "c", "a"]
    assert rows(graph) == [(0, 1, 0, 1.0), (2, 0, 0, 1.0)]


def test_a_data_frame_may_name_its_columns():
    frame = pandas.DataFrame({"from": ["x", "y"], "to": ["y", "x"], "w": [0.5, 0.25], "relation": ["causes"] * 2})
    graph = MemoryGraph.from_edges(frame, columns={"source": "from", "target": "to", "strength": "w"})
    assert graph.edge("x", "y", "causes") == 0.5
    with pytest.raises(ValueError, match=r"`edges` must have a column 'source', got \['from', 'to', 'w', 'relation'\]"):
        MemoryGraph.from_edges(frame, columns={"target": "to"})


def test_a_csv_file_makes_the_graph_of_its_rows(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,strength\nrain,wet,0.5\nwet,cold,0.25\n")
    graph = MemoryGraph.from_edges(path)
    assert graph.edge("wet", "cold") == 0.25
    with pytest.raises(FileNotFoundError, match="does not exist"):
        MemoryGraph.from_edges(tmp_path / "none.csv")
    other = tmp_path / "edges.txt"
    other.write_text("")
    with pytest.raises(ValueError, match=r"must name a \.csv or \.parquet file"):
        MemoryGraph.from_edges(other)


def test_a_parquet_file_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "edges.parquet"
    path.write_bytes(b"")

    def missing(*_, **__):
        raise ImportError("Unable to find a usable engine")

    monkeypatch.setattr(pandas, "read_parquet", missing)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        MemoryGraph.from_edges(path)


def test_a_parquet_file_makes_the_graph_of_its_rows(tmp_path, monkeypatch):
    path = tmp_path / "edges.parquet"
    path.write_bytes(b"")
    frame = pandas.DataFrame({"source": [0], "target": [1]})
    monkeypatch.setattr(pandas, "read_parquet", lambda given: {path: frame}[given])
    assert rows(MemoryGraph.from_edges(path)) == [(0, 1, 0, 1.0)]


def test_duplicates_are_refused_added_or_overwritten():
    columns = ([0, 0, 0, 1, 1], [1, 1, 1, 0, 0], [0.5, 0.25, 0.5, 0.5, -0.5])
    with pytest.raises(ValueError, match=r"rows 1, 2, 4 repeat one \(row 1: 0 -> 1\)"):
        MemoryGraph.from_edges(columns)
    assert rows(MemoryGraph.from_edges(columns, duplicates="add")) == [(0, 1, 0, 1.0)]
    assert rows(MemoryGraph.from_edges(columns, duplicates="last")) == [(0, 1, 0, 0.5), (1, 0, 0, -0.5)]
    with pytest.raises(ValueError, match="`duplicates` must be one of"):
        MemoryGraph.from_edges(columns, duplicates="first")


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (([0, -1], [1, 1]), ValueError, r"`source` must be a node number .* got -1 in row 1"),
        (([0.0, 0.5], [1, 1]), ValueError, r"`source` must be a node number .* got 0.5 in row 1"),
        (([0, 1], [1, np.nan]), ValueError, r"`target` must be a node number .* got nan in row 1"),
        ((["a", ""], ["b", "b"]), ValueError, r"`source` must be a label .* got '' in row 1"),
        ((["a", "b"], [0, 1]), TypeError, r"`source` and `target` must both be"),
        (([0] * 8, range(8), [2.0] * 8), ValueError, r"`strength` .* in rows 0, 1, 2, 3, 4 and 3 more"),
        (([0], [1], [0.0]), ValueError, r"`strength` must be in \[-1, 1\] and not 0 in f32, got 0.0 in row 0"),
        (([0], [1], [1e-60]), ValueError, r"`strength` must be in \[-1, 1\] and not 0 in f32"),
        (([0], [1], ["much"]), TypeError, r"`strength` must be numbers, got 'much' in row 0"),
        (([0, 1], [1, 0], [0.5, "0.5"]), TypeError, r"`strength` must be numbers, got '0.5' in row 1"),
        ((["a", 3], ["b", "c"]), ValueError, r"`source` must be a label .* got 3 in row 1"),
        (([0], [1], [0.5], ["caused"]), ValueError, r"`relation` must be one of .* got 'caused' in row 0"),
        (([0, 1], [1]), ValueError, r"`target` must have shape \(2,\), got \(1,\)"),
        (([0],), TypeError, r"`edges` must be an EdgeList, columns"),
    ],
)
def test_a_bad_row_is_named(columns, error, message):
    with pytest.raises(error, match=message):
        MemoryGraph.from_edges(columns)


def test_an_edge_list_keeps_its_relations():
    edges = EdgeList(2, np.array([0]), np.array([1]), np.array([0.5]), relations=("likes",))
    assert MemoryGraph.from_edges(edges).relations == ("likes",)
    with pytest.raises(ValueError, match="`relations` must be those of the edge list"):
        MemoryGraph.from_edges(edges, relations=("hates",))


def test_networkx_there_and_back_is_the_same_graph():
    graph = networkx.MultiDiGraph()
    graph.add_node("rain", base=0.5, need=0)
    graph.add_node("wet", base=1.0, need=2)
    graph.add_node("alone", base=0.25, need=0)
    graph.add_edge("rain", "wet", key="causes", relation="causes", strength=0.5)
    graph.add_edge("rain", "wet", key="scene", relation="scene", strength=-0.25)
    back = MemoryGraph.from_networkx(graph).to_networkx()
    assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True))
    assert sorted(back.edges(keys=True, data=True)) == sorted(graph.edges(keys=True, data=True))


def test_an_undirected_graph_goes_both_ways_and_weight_counts():
    graph = MemoryGraph.from_networkx(networkx.Graph([(0, 1, {"weight": 0.5}), (1, 2)]))
    assert rows(graph) == [(0, 1, 0, 0.5), (1, 0, 0, 0.5), (1, 2, 0, 1.0), (2, 1, 0, 1.0)]


def test_deleted_nodes_are_not_in_the_networkx_graph():
    graph = MemoryGraph.from_edges(([0, 1], [1, 2]))
    graph.delete_nodes(1)
    assert sorted(graph.to_networkx().nodes) == [0, 2]


def test_strengths_above_one_are_refused_with_the_edge_and_divided_on_request():
    graph = networkx.karate_club_graph()  # weights up to 7
    with pytest.raises(ValueError, match=r"of the edge 0 -> 1 must be .* got 4; scale=7 divides by the largest"):
        MemoryGraph.from_networkx(graph)
    with pytest.raises(ValueError, match=r"of the edge 0 -> 1 .* got 4; scale=7 divides"):
        MemoryGraph.from_networkx(graph, scale=2)
    made = MemoryGraph.from_networkx(graph, scale=7)
    assert made.edge(0, 1) == made.edge(1, 0) == np.float32(4 / 7)
    assert made.edges().strength.max() == 1


def test_strengths_of_a_table_are_divided_by_the_scale():
    columns = ([0, 1], [1, 2], [3, -6.0])
    with pytest.raises(ValueError, match=r"got 3.0, -6.0 in rows 0, 1; scale=6 divides by the largest"):
        MemoryGraph.from_edges(columns)
    with pytest.raises(ValueError, match=r"after division by 4, got -6.0 in row 1; scale=6 divides"):
        MemoryGraph.from_edges(columns, scale=4)
    assert rows(MemoryGraph.from_edges(columns, scale=6)) == [(0, 1, 0, 0.5), (1, 2, 0, -1.0)]


@pytest.mark.parametrize(
    ("scale", "error", "message"),
    [
        (0, ValueError, "`scale` must be above 0 and finite, got 0"),
        (np.nan, ValueError, "`scale` must be above 0 and finite, got nan"),
        ("7", TypeError, "`scale` must be a number, or None"),
    ],
)
def test_a_wrong_scale_is_named(scale, error, message):
    with pytest.raises(error, match=message):
        MemoryGraph.from_edges(([0], [1]), scale=scale)
    with pytest.raises(error, match=message):
        MemoryGraph.from_networkx(networkx.Graph(), scale=scale)


@pytest.mark.parametrize(
    ("node", "edge", "error", "message"),
    [
        ({}, {"weight": 0}, ValueError, r"edge 'a' -> 'b' must be in \[-1, 1\] and not 0 in f32, got 0\.$"),
        ({}, {"weight": np.nan}, ValueError, r"edge 'a' -> 'b' must be in \[-1, 1\] and not 0 in f32, got nan\.$"),
        ({}, {"strength": "much"}, TypeError, r"the strength of the edge 'a' -> 'b' must be a number, got 'much'"),
        ({}, {"relation": "likes"}, ValueError, r"`relation` .* of the edge 'a' -> 'b' must be one of"),
        ({"base": 3}, {}, ValueError, r"`base` of the node 'a' must be a number in \[0, 1\], got 3"),
        ({"need": 0.5}, {}, ValueError, r"`need` of the node 'a' must be a whole number .* got 0.5"),
        ({"need": "2"}, {}, ValueError, r"`need` of the node 'a' must be a whole number .* got '2'"),
        ({"need": 2**40}, {}, ValueError, r"`need` of the node 'a' must be a whole number .* got 1099511627776"),
        ({"need": True}, {}, ValueError, r"`need` of the node 'a' must be a whole number .* got True"),
        ({}, {"weight": 1e-40}, ValueError, r"edge 'a' -> 'b' must be in \[-1, 1\] and not 0 in f32, got 1e-40"),
        ({}, {"weight": 10**400}, ValueError, r"edge 'a' -> 'b' must be in \[-1, 1\] and not 0 in f32, got 1e\+300"),
        ({}, {"weight": np.complex64(1j)}, TypeError, r"the strength of the edge 'a' -> 'b' must be a number"),
    ],
)
def test_a_wrong_attribute_of_a_networkx_graph_is_named_with_its_edge_or_node(node, edge, error, message):
    graph = networkx.DiGraph()
    graph.add_node("a", **node)
    graph.add_edge("a", "b", **edge)
    with pytest.raises(error, match=message):
        MemoryGraph.from_networkx(graph)


def test_a_networkx_edge_that_stands_twice_is_named():
    with pytest.raises(ValueError, match=r"'a' -> 'b' \(co_occurs_with\) stands twice; give its edges different rel"):
        MemoryGraph.from_networkx(networkx.MultiDiGraph([("a", "b"), ("a", "b")]))
    with pytest.raises(TypeError, match="got Graph; use `from_networkx`"):
        MemoryGraph.from_edges(networkx.Graph())


@pytest.mark.parametrize("in_order", [True, False])
def test_edges_in_portions_make_the_graph_of_all(in_order, monkeypatch):
    from habitus.cognition.graph import ranges

    monkeypatch.setattr(ranges, "CHUNK", 64)
    monkeypatch.setattr(ranges, "LEAST_CHUNK", 1)
    rng = np.random.default_rng(0)
    pairs = np.unique((rng.random((900, 2)) ** [3, 1] * 40).astype(np.int32), axis=0)  # one node has over 64 edges
    strength = rng.uniform(0.1, 1, len(pairs)).astype(np.float32)
    order = np.arange(len(pairs)) if in_order else rng.permutation(len(pairs))
    graph = MemoryGraph.from_edges((pairs[order, 0], pairs[order, 1], strength[order]), row=4)
    assert rows(graph) == [(a, b, 0, v) for (a, b), v in zip(pairs.tolist(), strength.tolist(), strict=True)]
    assert [edge.strength for edge in graph.neighbours(0)][:4] == sorted(strength[pairs[:, 0] == 0].tolist())[:-5:-1]
    again = np.append(order, order[7])
    a, b = pairs[order[7]]
    with pytest.raises(ValueError, match=rf"row {len(pairs)} repeat one \(row {len(pairs)}: {a} -> {b}\)"):
        MemoryGraph.from_edges((pairs[again, 0], pairs[again, 1]))
