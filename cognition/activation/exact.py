"""The reference's course of rounds, told as kernels tell theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import jax
import numpy as np
import numpy.typing as npt

from ..graph.edge_list import EdgeList
from .pull.packing import NOTHING_DROPPED
from .reference import Course
from .result import NOBODY, Activation, Flows
from .rule import SpreadRule


def told(course: Course, edges: EdgeList, rule: SpreadRule, *, top: int, evidence: int, everything: bool) -> Activation:
    """The result of a course. Floats stay f64.

    Args:
        course: of `spread_reference`.
        edges: the graph.
        rule: the rule.
        top: how many nodes.
        evidence: how many edges; 0 = none, and no history.
        everything: whether to return the activation of all nodes.
    """
    activation, raw = course.activation[-1], course.raw[-1]
    is_active = (activation.astype(np.float32) >= np.float32(rule.threshold)) & (activation > 0)
    order = np.argsort(-np.where(is_active, raw, -1.0), kind="stable")[:top]
    order = order[is_active[order]]
    nodes = _filled(order, top, NOBODY)
    flows = history = None
    dropped = NOTHING_DROPPED
    if evidence:
        flows, n_flows = _flows(course, edges, rule, evidence)
        dropped = dropped._replace(flows=np.int32(max(0, n_flows - evidence)))
        history = np.zeros((rule.rounds + 1, top))
        history[: len(course.activation), : len(order)] = course.activation[:, order]
        history[len(course.activation) :, : len(order)] = activation[order]
    change = np.abs(np.diff(course.activation[-2:], axis=0)).max(initial=0.0)
    return Activation(
        nodes=nodes,
        values=_filled(activation[order], top, 0.0),
        raw=_filled(raw[order], top, 0.0),
        n_active=np.int32(is_active.sum()),
        rounds=np.int32(len(course.flow)),
        change=np.float64(change),
        dropped=dropped,
        everything=activation if everything else None,
        flows=flows,
        history=history,
    )


def _flows(course: Course, edges: EdgeList, rule: SpreadRule, evidence: int) -> tuple[Flows, int]:
    total = course.flow.sum(axis=0)
    rows = np.argsort(-np.abs(total), kind="stable")[:evidence]
    rows = rows[total[rows] != 0]
    by_round = np.zeros((evidence, rule.rounds))
    by_round[: len(rows), : len(course.flow)] = course.flow[:, rows].T
    return listed_flows(
        (edges.source, edges.target, edges.relation), rows, _filled(total[rows], evidence, 0.0), by_round
    ), int(np.count_nonzero(total))


def listed_flows(
    columns: tuple[npt.NDArray[Any], ...], rows: npt.NDArray[Any], amount: npt.NDArray[Any], by_round: npt.NDArray[Any]
) -> Flows:
    """Flows of rows of an edge list, in M places.

    Args:
        columns: sources, targets and relations of the edges.
        rows: [m <= M] rows.
        amount: [M], 0 in empty places.
        by_round: [M, rounds].
    """
    size = len(amount)
    source, target, relation = (_filled(column[rows], size, NOBODY) for column in columns)
    return Flows(source, target, relation, amount, by_round)


def stacked(results: Sequence[Activation]) -> Activation:
    """Results of many queries as one, with a leading axis in every array."""
    return cast(Activation, jax.tree.map(lambda *parts: np.stack(parts), *results))


def _filled(found: npt.NDArray[Any], size: int, empty: float) -> npt.NDArray[Any]:
    dtype = np.int32 if isinstance(empty, int) else found.dtype
    filled = np.full(size, empty, dtype)
    filled[: len(found)] = found
    return filled
