import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from habitus.cognition import persistence
from habitus.cognition.errors import DamagedFileError, MismatchError, NewerFileError
from habitus.cognition.graph import EdgeList, MemoryGraph
from hypothesis import given, settings
from hypothesis import strategies as st

COLUMNS = ("source", "target", "strength", "relation", "base", "need")


def labelled():
    graph = MemoryGraph(32, row=2, pool=64, labels=True, relations=("likes", "fears"))
    graph.add_nodes(5, base=[1, 0.5, 0.3, 1, 1], need=[0, 2, 0, 0, 0], labels=["ä", "b", "c", "d", "e"])
    graph.add_edges([0, 0, 0, 0, 3], [1, 2, 3, 4, 0], [0.1, 0.2, -0.3, 0.4, 0.5], [0, 1, 0, 0, 1])
    graph.delete_nodes(2)
    return graph


def test_a_loaded_graph_is_the_saved_one_and_goes_on(tmp_path):
    graph = labelled()
    loaded = MemoryGraph.load(graph.save(tmp_path / "graph.npz"), capacity=100, row=8)
    assert loaded.arrays.capacity >= 100
    assert loaded.arrays.width == 8
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(loaded.edges(), name), getattr(graph.edges(), name))
    assert loaded.labels == graph.labels == ["ä", "b", None, "d", "e"]
    assert loaded.relations == ("likes", "fears")
    for some in (graph, loaded):
        assert some.add_nodes(2, labels=["f", "g"]).tolist() == [2, 5]
        some.add_edges(2, 5, 0.5)
    np.testing.assert_array_equal(loaded.edges().strength, graph.edges().strength)


def test_equal_graphs_give_equal_bytes_however_they_came_about(tmp_path):
    one = MemoryGraph.from_edges(([0, 1, 2], [1, 2, 0], [0.5, 0.25, 0.75]), row=2)
    other = MemoryGraph(32, row=2, pool=64)
    other.add_nodes(3)
    other.add_edges([2, 1, 0], [0, 2, 1], [0.75, 0.5, 0.5])
    other.add_edges(1, 2, -0.25)
    first, second = one.save(tmp_path / "one.npz"), other.save(tmp_path / "other.npz")
    assert first.read_bytes() == second.read_bytes()


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8)),
        st.floats(-1, 1, width=32).filter(lambda v: abs(v) > 1e-30),
        max_size=40,
    )
)
def test_saving_and_loading_is_the_identity(tmp_path_factory, edges):
    keys = np.array(list(edges), np.int64).reshape(-1, 3)
    table = EdgeList(9, keys[:, 0], keys[:, 1], np.array(list(edges.values()), float), keys[:, 2])
    graph = MemoryGraph.from_edges(table, row=2)
    loaded = MemoryGraph.load(graph.save(tmp_path_factory.mktemp("graphs") / "graph.npz"))
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(loaded.edges(), name), getattr(graph.edges(), name))


def rewritten(path, **changes):
    header, arrays = persistence.read(path)
    arrays = {**arrays, **{name: changes.pop(name) for name in list(changes) if name in arrays}}
    return persistence.write(path, {**header, **changes}, arrays)


def test_a_newer_file_and_one_of_something_else_are_refused(tmp_path):
    path = labelled().save(tmp_path / "graph.npz")
    with pytest.raises(NewerFileError, match="format 2, this version of habitus reads up to 1"):
        MemoryGraph.load(rewritten(path, format=2))
    with pytest.raises(MismatchError, match="holds no memory graph but 'learner'"):
        MemoryGraph.load(rewritten(path, kind="learner"))


def test_a_file_with_a_member_too_few_or_too_many_is_damaged(tmp_path):
    path = labelled().save(tmp_path / "graph.npz")
    header, arrays = persistence.read(path)
    for name in arrays:
        persistence.write(path, header, {key: array for key, array in arrays.items() if key != name})
        with pytest.raises(DamagedFileError, match=f"is damaged.*{name}"):
            MemoryGraph.load(path)
    persistence.write(path, header, {**arrays, "weight": np.zeros(4)})
    with pytest.raises(DamagedFileError, match=r"is damaged: it must hold \['base', .* got .*'weight'\]"):
        MemoryGraph.load(path)


SAVE = """
import sys
from habitus.cognition.graph import MemoryGraph
columns = (["ä", "b", "ä"], ["b", "c", "c"], [0.1, -0.2, 0.3], ["causes", "scene", "supports"])
MemoryGraph.from_edges(columns, row=2).save(sys.argv[1])
"""


def test_a_new_process_writes_the_same_bytes(tmp_path, monkeypatch):
    mine, other = tmp_path / "mine.npz", tmp_path / "other.npz"
    subprocess.run([sys.executable, "-c", SAVE, str(other)], check=True)
    monkeypatch.setattr(sys, "argv", ["", str(mine)])
    exec(SAVE, {})
    assert mine.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    "changes",
    [
        {"n_edges": 3},
        {"n_nodes": 2},
        {"relations": ["likes"]},
        {"row": "x"},
        {"row": 0},
        {"format": "x"},
        {"strength": np.full(4, 2, np.float32)},
        {"strength": np.zeros(4)},
        {"is_node": np.ones(2, bool)},
        {"label_ends": np.arange(2)},
    ],
)
def test_a_file_whose_parts_do_not_fit_is_damaged(tmp_path, changes):
    path = rewritten(labelled().save(tmp_path / "graph.npz"), **changes)
    with pytest.raises(DamagedFileError, match="is damaged"):
        MemoryGraph.load(path)


def test_a_truncated_or_changed_file_is_damaged(tmp_path):
    path = labelled().save(tmp_path / "graph.npz")
    content = path.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(DamagedFileError):
            MemoryGraph.load(path)
    for at in range(60, len(content) - 30, len(content) // 20):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        try:
            loaded = MemoryGraph.load(path)
        except (DamagedFileError, NewerFileError):
            continue
        np.testing.assert_array_equal(loaded.edges().strength, labelled().edges().strength)  # a byte of no meaning


def test_the_header_says_what_the_file_holds(tmp_path):
    with zipfile.ZipFile(labelled().save(tmp_path / "graph.npz")) as archive:
        full = json.loads(archive.read("header.json"))
    assert full["header"] == {
        "kind": "memory graph",
        "format": 1,
        "row": 2,
        "relations": ["likes", "fears"],
        "n_nodes": 5,
        "n_edges": 4,
        "has_labels": True,
    }
    assert set(full["sha256"]) >= {"source.npy", "strength.npy", "labels.npy"}
