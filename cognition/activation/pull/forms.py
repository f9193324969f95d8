"""A graph and a rule, folded on the host into the arrays that kernels read.

Normalisation, decay and what `spends` leaves are folded into the weights here, in f64, so that no kernel has to know
them. Arrays are padded to sizes from a short list, so that a growing graph is compiled once for a doubling; what pads
changes nothing: nodes of base 0 and retention 0, edges of weight 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...graph.edge_list import EdgeList
from ..rule import SpreadRule
from .packing import bucket

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


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


def folded_weights(edges: EdgeList, rule: SpreadRule, *, counts: bool | None = None) -> FloatArray:
    """[E] f32: m of every edge; where exciting edges are counted, those of which nothing is left have -0.0.

    It lets nothing through, and `ell.excites` tells it from the 0.0 of empty slots and of other edges.

    Args:
        edges: the graph.
        rule: the rule.
        counts: whether they are; None = where any node of this graph waits.
    """
    weights = rule.weights(edges).astype(np.float32)
    if waits(edges, rule) if counts is None else counts:
        weights[weights == 0] = 0.0
        weights[(weights == 0) & (edges.strength > 0)] = -0.0
    return weights


def dense_form(edges: EdgeList, rule: SpreadRule, size: int | None = None, *, counts: bool | None = None) -> DenseForm:
    """The dense form.

    Args:
        edges: the graph.
        rule: the rule, whose decay and normalisation are folded in.
        size: S, at least the nodes of the graph; None = as many.
        counts: whether exciting edges are counted; None = where any node waits for them.
    """
    size = edges.n_nodes if size is None else size
    counts = waits(edges, rule) if counts is None else counts
    place = edges.source.astype(np.int64) * size + edges.target
    weights = np.bincount(
        place, rule.weights(edges), size * size
    )  # edges of several relations between two nodes add up
    exciting = np.zeros((0, 0), np.float32)
    if counts:
        exciting = np.bincount(place[edges.strength > 0], minlength=size * size).reshape(size, size).astype(np.float32)
    return DenseForm(weights.reshape(size, size).astype(np.float32), exciting)


def edge_form(edges: EdgeList, rule: SpreadRule, size: int) -> EdgeForm:
    """The edges themselves, padded to `size`."""
    missing = (0, size - edges.n_edges)
    weight = rule.weights(edges).astype(np.float32)
    return EdgeForm(np.pad(edges.source, missing), np.pad(edges.target, missing), np.pad(weight, missing))


class EllForm(NamedTuple):
    """In-edges in rows of K slots, slots first. P = size + Q.

    Attributes:
        source: [K, P] i32, source of the edge in a slot; the row's own node in an empty slot.
        weights: [K, P] f32, 0 in empty slots.
        owner: [Q] i32 ascending, nodes of the rows behind the first `size`; the last node, for empty rows.
    """

    source: IntArray
    weights: FloatArray
    owner: IntArray


TURN = 64
"""What a turn of a loop costs, in slots."""
FURTHER = 4
"""What adding up a further row costs, in slots."""
ANY_FURTHER = 6_000
"""What it costs that there are further rows at all, in slots."""


class EllShape(NamedTuple):
    """Slots of a row, and further rows."""

    n_slots: int
    n_more: int


def ell_shape(graphs: Sequence[EdgeList], size: int) -> EllShape:
    """The numbers of slots and further rows, powers of two, with the least work for these graphs."""
    degrees = [np.bincount(edges.target, minlength=size) for edges in graphs]
    longest = max(1, *(int(degree.max(initial=0)) for degree in degrees))
    shapes = []
    for n_slots in (1 << power for power in range(bucket(longest).bit_length())):
        n_more = max(int(np.maximum(0, -(-degree // n_slots) - 1).sum()) for degree in degrees)
        shapes.append(EllShape(n_slots, bucket(n_more) if n_more else 0))

    def cost(shape: EllShape) -> int:
        further = ANY_FURTHER + FURTHER * shape.n_more if shape.n_more else 0
        return shape.n_slots * (size + shape.n_more + TURN) + further

    return min(shapes, key=cost)


def ell_form(edges: EdgeList, rule: SpreadRule, size: int | None = None, shape: EllShape | None = None) -> EllForm:
    """In-edges in rows.

    Args:
        edges: the graph.
        rule: the rule, whose decay and normalisation are folded in.
        size: at least the nodes of the graph; None = as many.
        shape: one that holds the edges; None = that of the least work.
    """
    size = edges.n_nodes if size is None else size
    shape = ell_shape([edges], size) if shape is None else shape
    order, row, rank = rows_of(edges.target, size)
    n_slots, n_more = shape
    n_rows = -(-np.bincount(edges.target, minlength=size) // n_slots)
    extra = np.maximum(n_rows - 1, 0)
    owner = np.full(n_more, max(0, size - 1), np.int32)
    owner[: extra.sum()] = np.repeat(np.arange(size, dtype=np.int32), extra)
    source = np.tile(np.concatenate([np.arange(size, dtype=np.int32), owner]), (n_slots, 1))
    weights = np.zeros((n_slots, size + n_more), np.float32)
    behind = size + (np.cumsum(extra) - extra)[row] + rank // n_slots - 1
    at = np.where(rank < n_slots, row, behind)
    source[rank % n_slots, at] = edges.source[order]
    weights[rank % n_slots, at] = folded_weights(edges, rule)[order]
    return EllForm(source, weights, owner)


def rows_of(target: IntArray, size: int) -> tuple[npt.NDArray[np.int64], IntArray, npt.NDArray[np.int64]]:
    """Edges by target: their rows in the edge list, their targets, and their numbers among those of one target."""
    order = np.argsort(target, kind="stable")
    row = target[order]
    degree = np.bincount(row, minlength=size)
    return order, row, np.arange(len(row)) - (np.cumsum(degree) - degree)[row]
