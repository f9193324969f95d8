"""A graph and a rule, folded on the host into the arrays that kernels read.

Normalisation, decay and what `spends` leaves are folded into the weights here, in f64, so that no kernel has to know
them. Arrays are padded to sizes from a short list, so that a growing graph is compiled once for a doubling; what pads
changes nothing: nodes of base 0 and retention 0, edges of weight 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..graph.edge_list import EdgeList
from .rule import SpreadRule

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

TINY = np.float32(1e-37)
"""Weight of an exciting edge that lets nothing through: a conjunction counts edges by the sign of their weight."""


class DenseForm(NamedTuple):
    """Weights from every node to every node; of small graphs.

    Attributes:
        weights: [S, S] f32, from row to column.
        exciting: [S, S] f32, number of exciting edges; [0, 0] where no node counts them.
    """

    weights: npt.NDArray[np.float32]
    exciting: npt.NDArray[np.float32]


class EdgeForm(NamedTuple):
    """Edges one by one, in the order of the edge list; for evidence.

    Attributes:
        source, target: [E] i32.
        weight: [E] f32.
    """

    source: IntArray
    target: IntArray
    weight: FloatArray


def waits(edges: EdgeList, rule: SpreadRule) -> bool:
    """Whether any node waits for a number of its in-edges."""
    return rule.conjunctions and bool((edges.need > 0).any())


def columns_of(edges: EdgeList, rule: SpreadRule, size: int) -> FloatArray:
    """[4, size] f32: base, retention, need, and 1 for nodes without out-edges."""
    columns = np.zeros((4, size), np.float32)
    n = edges.n_nodes
    columns[0, :n] = rule.bases(edges)
    columns[1, :n] = rule.retentions(edges)
    columns[2, :n] = edges.need
    columns[3, :n] = edges.out_degree() == 0
    return columns


def folded_weights(edges: EdgeList, rule: SpreadRule) -> FloatArray:
    """[E] f32: m of every edge; TINY for an exciting edge of which nothing is left, where conjunctions wait."""
    weights = rule.weights(edges).astype(np.float32)
    if waits(edges, rule):
        weights[(weights == 0) & (edges.strength > 0)] = TINY
    return weights


def dense_form(edges: EdgeList, rule: SpreadRule, size: int) -> DenseForm:
    """The dense form, of size [size, size]."""
    place = edges.source.astype(np.int64) * size + edges.target
    weights = np.bincount(
        place, rule.weights(edges), size * size
    )  # edges of several relations between two nodes add up
    exciting = np.zeros((0, 0), np.float32)
    if waits(edges, rule):
        exciting = np.bincount(place[edges.strength > 0], minlength=size * size).reshape(size, size).astype(np.float32)
    return DenseForm(weights.reshape(size, size).astype(np.float32), exciting)


def edge_form(edges: EdgeList, rule: SpreadRule, size: int) -> EdgeForm:
    """The edges themselves, padded to `size`."""
    missing = (0, size - edges.n_edges)
    weight = rule.weights(edges).astype(np.float32)
    return EdgeForm(np.pad(edges.source, missing), np.pad(edges.target, missing), np.pad(weight, missing))
