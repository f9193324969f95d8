"""Tables are read as they stand, or refused with the row: nothing is shifted, dropped or guessed."""

import networkx
import numpy as np
import pandas
import pytest
from habitus.cognition.graph import EdgeList, MemoryGraph


def rows(graph):
    edges = graph.edges()
    return list(zip(edges.source.tolist(), edges.target.tolist(), edges.strength.tolist(), strict=True))


@pytest.fixture
def file(tmp_path):
    def written(text):
        path = tmp_path / "edges.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return written


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("source,target\n0,1,2,3\n", ValueError, r"edges\.csv must have as many fields .*, 2, got 4 in row 0: 0,1,2,3"),
        ("source,target\n0,1\n\n1,2,5\n", ValueError, r"as many fields .*, 2, got 3 in row 1: 1,2,5"),
        ("source,target\na,b\n,c\n", ValueError, r"`source` must be filled in .*edges\.csv, got '' in row 1"),
        ("source,target\n1,\n2,3\n", ValueError, r"`target` must be filled in .*edges\.csv, got '' in row 0"),
        ("source,target\na,b\nc\n", ValueError, r"`target` must be filled in .* in row 1"),
        ("source,target,strength\n0,1\n2,3,.5\n", ValueError, r"`strength` must be filled in .* in row 0"),
        ("source,target,strength\n0,1,.5\n2,3,x\n", TypeError, r"`strength` must be numbers, got 'x' in row 1"),
        ("source,target,strength\n0,1,.5\n2,3,nan\n", TypeError, r"`strength` must be numbers, got 'nan' in row 1"),
        ("source,target,strength\n0,1,1e-40\n", ValueError, r"`strength` must be in .* not 0 in f32, got 1e-40 in row"),
        (
            "source,target,strenght\n0,1,.5\n",
            ValueError,
            r"no columns but .* got also \['strenght'\]; say what they are",
        ),
        ("a,b\n0,1\n", ValueError, r"edges\.csv must have a column 'source', got \['a', 'b'\]"),
        ("", ValueError, r"edges\.csv must be a \.csv or \.parquet file with columns source, target.*No columns"),
        (b"source,target\n\xff,b\n", ValueError, r"edges\.csv must be .* in UTF-8"),
        ("source,target\n0,a\n", TypeError, r"both be numbers or both labels, .* labels=True takes numbers as labels"),
    ],
)
def test_a_row_that_does_not_fit_is_named(file, text, error, message):
    with pytest.raises(error, match=message):
        MemoryGraph.from_edges(file(text))


def test_words_that_stand_for_nothing_elsewhere_are_labels(file):
    graph = MemoryGraph.from_edges(file("source,target\nNA,null\nNone,nan\n"))
    assert graph.labels == ["NA", "null", "None", "nan"]


def test_a_missing_file_is_named_with_what_was_expected(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"none\.csv, which does not exist; give .* with columns source, target"
    ):
        MemoryGraph.from_edges(tmp_path / "none.csv")


def test_numbers_are_labels_on_request(file):
    frame = pandas.DataFrame({"source": [10, 20], "target": [20, 30]})
    for table in (file("source,target\n10,20\n20,30\n"), frame, ([10, 20], [20, 30])):
        assert MemoryGraph.from_edges(table).n_nodes == 31
        graph = MemoryGraph.from_edges(table, labels=True)
        assert graph.labels == ["10", "20", "30"]
        assert graph.edge("20", "30") == 1
    assert MemoryGraph.from_edges(file("source,target\n007,a\n"), labels=True).labels == ["007", "a"]
    with pytest.raises(ValueError, match=r"`source` must be labels, as texts or whole numbers, got 0\.5 in row 0"):
        MemoryGraph.from_edges(([0.5], [1]), labels=True)
    with pytest.raises(TypeError, match="`labels` must be True or False, got 'yes'"):
        MemoryGraph.from_edges(frame, labels="yes")
    with pytest.raises(ValueError, match="`labels` must be False for an EdgeList"):
        MemoryGraph.from_edges(EdgeList(2, [0], [1], [0.5]), labels=True)


def test_a_weight_is_a_strength_where_there_is_none(file):
    frame = pandas.DataFrame({"source": [0], "target": [1], "weight": [0.25]})
    assert rows(MemoryGraph.from_edges(frame)) == [(0, 1, 0.25)]
    assert rows(MemoryGraph.from_edges(file("source,target,weight\n0,1,3\n"), scale=4)) == [(0, 1, 0.75)]
    with pytest.raises(ValueError, match=r"got also \['weight'\]; say what they are .* or leave them out: frame\["):
        MemoryGraph.from_edges(frame.assign(strength=0.5))
    renamed = frame.assign(strength=0.5).drop(columns="weight")
    assert rows(MemoryGraph.from_edges(renamed)) == [(0, 1, 0.5)]


def test_rows_are_told_from_columns_or_refused():
    five = [(0, 5, 0.5), (1, 2, 0.25), (2, 3, 1), (3, 4, 1), (4, 0, -1)]
    for given in (five, [list(row) for row in five], tuple(zip(*five, strict=True))):
        assert rows(MemoryGraph.from_edges(given)) == five
    assert rows(MemoryGraph.from_edges([(0, 5)])) == [(0, 5, 1)]
    assert MemoryGraph.from_edges([]).n_nodes == 0
    assert rows(MemoryGraph.from_edges([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))[4] == (4, 0, 1)  # no row has five entries
    assert rows(MemoryGraph.from_edges([np.array([0, 1]), np.array([5, 2])])) == [(0, 5, 1), (1, 2, 1)]
    pairs = [(0, 5), (1, 2)]
    with pytest.raises(ValueError, match=r"whether 2 sequences of 2 are columns or rows; .* tuple\(zip\(\*rows\)\)"):
        MemoryGraph.from_edges(pairs)
    assert rows(MemoryGraph.from_edges(tuple(zip(*pairs, strict=True)))) == [(0, 5, 1), (1, 2, 1)]
    with pytest.raises(ValueError, match=r"must have rows .* of one length, got \(3, 4\) in row 3"):
        MemoryGraph.from_edges([*five[:3], (3, 4), *five[4:]])
    with pytest.raises(ValueError, match=r"`source` must be a column, of shape \(E,\), got shape \(\)"):
        MemoryGraph.from_edges(("ab", "cd"))
    with pytest.raises(ValueError, match=r"`target` must be a column, of shape \(E,\), got \[1, \[2\]\]"):
        MemoryGraph.from_edges(([0, 1], [1, [2]]))
    with pytest.raises(TypeError, match=r"got ndarray; give the rows of an array as tuple\(array\.T\)"):
        MemoryGraph.from_edges(np.array(pairs))


def test_strengths_that_add_up_to_rounding_are_none():
    columns = ([0, 0, 0, 1], [1, 1, 1, 2], [0.1, 0.2, -0.3, 1e-30])  # .1 + .2 - .3 = 5.6e-17
    assert rows(MemoryGraph.from_edges(columns, duplicates="add")) == [(1, 2, float(np.float32(1e-30)))]


def same(one, other):
    assert one.labels == other.labels
    np.testing.assert_array_equal(one.is_node, other.is_node)
    for name in ("source", "target", "strength", "relation", "base", "need"):
        np.testing.assert_array_equal(getattr(one.edges(), name), getattr(other.edges(), name))


def test_a_graph_that_went_to_networkx_comes_back_as_it_was():
    mixed = MemoryGraph(32, row=2, pool=64, labels=True)
    mixed.add_nodes(2, labels=["2", "a"])
    mixed.add_nodes(1)  # without a label, beside a label of its number
    mixed.add_edges([0, 2], [2, 1], [0.5, -0.25])
    same(MemoryGraph.from_networkx(mixed.to_networkx()), mixed)
    with pytest.raises(
        ValueError, match="the label of the node 2 must be a text of its own, got '2', the label of '2'"
    ):
        MemoryGraph.from_networkx(mixed.to_networkx(), labels=True)
    holed = MemoryGraph.from_edges(([0, 1, 3], [1, 2, 2]))
    holed.delete_nodes(1)
    with pytest.raises(
        ValueError, match=r"below the number of nodes, 3, got 3; labels=True .* labels=False keeps them"
    ):
        MemoryGraph.from_networkx(holed.to_networkx())
    again = MemoryGraph.from_networkx(holed.to_networkx(), labels=False)
    same(again, holed)
    assert again.add_nodes(2).tolist() == [1, 4]
    assert MemoryGraph.from_networkx(holed.to_networkx(), labels=True).labels == ["0", "2", "3"]


def test_a_key_that_names_no_relation_is_refused_unless_it_is_networkxs_own():
    graph = networkx.MultiDiGraph([("a", "b")])
    assert rows(MemoryGraph.from_networkx(graph)) == [(0, 1, 1)]
    graph.add_edge("b", "a", key="cause")
    with pytest.raises(ValueError, match=r"`relation` \(else the key\) of the edge 'b' -> 'a' must be .* got 'cause'"):
        MemoryGraph.from_networkx(graph)
    with pytest.raises(ValueError, match=r"number must be in \[0, \d+\], got -1; labels=True"):
        MemoryGraph.from_networkx(networkx.Graph([(-1, 0)]))
