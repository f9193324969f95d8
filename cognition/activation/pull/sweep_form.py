"""Rows of in-edges in blocks of rows of about one length, made on the host for the kernel of whole graphs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...graph.edge_list import EdgeList
from ..rule import SpreadRule
from .forms import FloatArray, IntArray, folded_weights, rows_of
from .packing import stepped
from .sweep import AT_ONCE

LONGEST = 16
"""Edges of a row; a node with more has several."""
WINDOW = 2**14
"""Nodes among which rows are ordered by their length; their activation stays in the fastest memory."""
WIDEST = 1024
"""Rows of a block. Wider blocks have more empty slots, narrower ones more turns of the loop."""


class SweepShape(NamedTuple):
    """Sizes of a form: nodes, slices, blocks, further rows, and rows of a block."""

    n_nodes: int
    n_slices: int
    n_blocks: int
    n_more: int
    width: int


class SweepForm(NamedTuple):
    """In-edges in rows, rows of about one length in blocks of C. T slices, G blocks, X further rows.

    Attributes:
        source: [T, C] i32, source of each edge; block b has slices AT_ONCE bounds[b] to AT_ONCE bounds[b + 1].
        weights: [T, C] f32, 0 in empty slots.
        bounds: [G + 1] i32.
        place: [N] i32, place of each node's first row among the G C rows.
        more: [X] i32, places of further rows; the last place, which is empty, for those that pad.
        owner: [X] i32 ascending, nodes of further rows.
    """

    source: IntArray
    weights: FloatArray
    bounds: IntArray
    place: IntArray
    more: IntArray
    owner: IntArray


class _Rows(NamedTuple):
    """R rows of edges in their blocks.

    Attributes:
        first: [N] number of each node's first row, in the order of nodes.
        owner: [R] node of each row.
        place: [R] place of each row.
        bounds: [G + 1] turns before each block.
    """

    first: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]


def sweep_form(
    edges: EdgeList, rule: SpreadRule, size: int, room: float = 1.0, former: SweepShape | None = None
) -> tuple[SweepForm, SweepShape]:
    """The form of a graph.

    Args:
        edges: the graph.
        rule: the rule.
        size: N, at least the nodes of the graph.
        room: how many times as many edges to make room for.
        former: sizes to keep to where the graph fits them, so that nothing is compiled anew.
    """
    return swept_rows(edges.source, edges.target, folded_weights(edges, rule), size, room, former)


def swept_rows(
    source_of: IntArray,
    target_of: IntArray,
    weight_of: FloatArray,
    size: int,
    room: float = 1.0,
    former: SweepShape | None = None,
) -> tuple[SweepForm, SweepShape]:
    """The form of edges from [E] i32 to [E] i32 nodes with [E] f32 weights; see `sweep_form`."""
    width = min(WIDEST, size)
    rows = _blocks(target_of, size, width)
    n_more = len(rows.owner) - size
    needed = SweepShape(size, AT_ONCE * int(rows.bounds[-1]), len(rows.bounds) - 1, n_more, width)
    shape = _fitting(needed, room, former)
    source = np.zeros((shape.n_slices, width), np.int32)
    weights = np.zeros((shape.n_slices, width), np.float32)
    order, target, rank = rows_of(target_of, size)
    place = rows.place[rows.first[target] + rank // LONGEST]
    slice_ = AT_ONCE * rows.bounds[place // width] + rank % LONGEST
    source[slice_, place % width] = source_of[order]
    weights[slice_, place % width] = weight_of[order]
    further = np.ones(len(rows.owner), bool)
    further[rows.first] = False
    missing = shape.n_more - n_more
    last = shape.n_blocks * width - 1
    form = SweepForm(
        source=source,
        weights=weights,
        bounds=np.pad(rows.bounds, (0, shape.n_blocks - needed.n_blocks), mode="edge").astype(np.int32),
        place=rows.place[rows.first].astype(np.int32),
        more=np.pad(rows.place[further], (0, missing), constant_values=last).astype(np.int32),
        owner=np.pad(rows.owner[further], (0, missing), constant_values=size - 1).astype(np.int32),
    )
    return form, shape


def _blocks(target: IntArray, size: int, width: int) -> _Rows:
    degree = np.bincount(target, minlength=size)
    n_rows = np.maximum(1, -(-degree // LONGEST))
    first = np.cumsum(n_rows) - n_rows
    owner = np.repeat(np.arange(size), n_rows)
    number = np.arange(len(owner)) - first[owner]
    length = np.minimum(LONGEST, degree[owner] - number * LONGEST)
    order = np.lexsort((-length, owner // WINDOW))  # stable: by node among equals
    place = np.empty(len(owner), np.int64)
    place[order] = np.arange(len(owner))
    n_blocks = len(owner) // width + 1  # one place at the end is always empty
    sorted_lengths = np.zeros(n_blocks * width, np.int64)
    sorted_lengths[: len(owner)] = length[order]
    turns = -(-sorted_lengths.reshape(n_blocks, width).max(axis=1) // AT_ONCE)
    return _Rows(first, owner, place, np.concatenate([[0], np.cumsum(turns)]))


def _fitting(needed: SweepShape, room: float, former: SweepShape | None) -> SweepShape:
    """Empty slices and blocks cost memory and no time, so that room for growth is cheap."""
    if former is not None and former.n_nodes == needed.n_nodes and former.width == needed.width:
        if all(has >= wants for has, wants in zip(former, needed, strict=True)):
            return former
    n_more = stepped(int(needed.n_more * room))
    n_blocks = (needed.n_nodes + n_more) // needed.width + 1
    n_slices = stepped(max(AT_ONCE, int(needed.n_slices * room)))
    return SweepShape(needed.n_nodes, n_slices, n_blocks, n_more, needed.width)
