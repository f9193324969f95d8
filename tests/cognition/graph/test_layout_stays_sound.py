"""Single edits after which the arrays must be what `layout` promises: small changes of the code would break them."""

import importlib.util
from pathlib import Path

import numpy as np
from habitus.cognition.graph import MemoryGraph
from habitus.cognition.graph.layout import targets_of

_SPEC = importlib.util.spec_from_file_location("dictionary_model", Path(__file__).with_name("dictionary_model.py"))
dictionary_model = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(dictionary_model)


def hub(strengths, relation="causes"):
    """Edges 0 -> 1, 2, ... of a node whose row holds two."""
    graph = MemoryGraph(32, row=2, pool=64)
    graph.add_nodes(8)
    graph.add_edges(0, np.arange(1, 1 + len(strengths)), strengths, relation)
    return graph


def row(graph):
    return np.asarray(targets_of(graph.arrays.rows[0, :2])).tolist()


def test_an_edge_as_strong_as_the_strongest_of_the_pool_keeps_its_place():
    graph = hub([0.5, 0.75, 0.25])
    graph.add_edges(0, 2, -0.5, "causes")  # .25, as much as what is in the pool
    assert row(graph) == [1, 2]
    dictionary_model.assert_sound(graph)


def test_a_node_gives_its_pool_rows_up_with_its_last_edge_there():
    for target in (1, 3):  # of the row, and of the pool
        graph = hub([0.5, 0.75, 0.25])
        assert graph.has_spilled
        graph.delete_edges(0, target, "causes")
        assert not graph.has_spilled
        dictionary_model.assert_sound(graph)
        graph.add_edges(0, [4, 5], 0.125, "causes")
        dictionary_model.assert_sound(graph)


def test_decay_of_a_relation_moves_the_strongest_of_the_pool_up():
    graph = hub([1, 0.75, 0.5, 0.375, 0.25], ["causes", "causes", "scene", "scene", "causes"])
    assert row(graph) == [1, 2]
    graph.decay({"causes": 0.25})  # .25, .1875, .5, .375, .0625
    assert sorted(row(graph)) == [3, 4]
    dictionary_model.assert_sound(graph)
