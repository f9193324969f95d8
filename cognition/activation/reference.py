"""The rule in float64 NumPy, edge by edge and written for reading: what every kernel is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..graph.edge_list import EdgeList
from .rule import SATURATION, SpreadRule
from .sources import Sources

FloatArray = npt.NDArray[np.float64]


class Course(NamedTuple):
    """What happened in T rounds.

    Attributes:
        activation: [T + 1, N] f64, A after each round; first the initial one.
        raw: [T + 1, N] f64, the same before the cap.
        flow: [T, E] f64, what each edge brought its target in each round, x_i m_ij C_j; 0 where a conjunction waited.
    """

    activation: FloatArray
    raw: FloatArray
    flow: FloatArray


def spread_reference(
    edges: EdgeList, sources: Sources | Mapping[int, float] | Sequence[Any], rule: SpreadRule
) -> Course:
    """Spread activation, slowly and exactly.

    Args:
        edges: the graph.
        sources: see `Sources.of`.
        rule: the rule; its formulas stand in `rule.py`.

    Returns:
        Every round that was made.
    """
    injected = Sources.of(sources, edges.n_nodes, rounds=rule.rounds)
    weight, base, retention = rule.weights(edges), rule.bases(edges), rule.retentions(edges)
    is_dangling = edges.out_degree() == 0
    held = np.zeros(edges.n_nodes)
    raw = _inject(held, np.zeros(edges.n_nodes), injected, 0)
    activation, raw = _capped(raw, rule)
    course, flows = [(activation, raw)], []
    for number in range(1, rule.rounds + 1):
        x = _transmitted(activation, rule)
        arriving = x[edges.source] * weight
        if rule.conjunctions:
            excites = (x[edges.source] > 0) & (edges.strength > 0)
            ready = np.bincount(edges.target[excites], minlength=edges.n_nodes) >= edges.need
            arriving = np.where(ready[edges.target], arriving, 0.0)
        inflow = np.bincount(edges.target, arriving, edges.n_nodes).astype(np.float64)  # of no edge it is an int
        if rule.dangling and held.sum() > 0:
            inflow += x[is_dangling].sum() * held / held.sum()
        raw = (1.0 - rule.leak) * (retention * activation + base * inflow)
        raw = np.maximum(0.0, (1.0 - rule.restart) * raw + rule.restart * held)
        if rule.below == "zero":
            raw = np.where(_reaches(raw, rule), raw, 0.0)
        if rule.sources == "held":
            raw = np.maximum(raw, held)
        raw = _inject(held, raw, injected, number)
        before = activation
        activation, raw = _capped(raw, rule)
        course.append((activation, raw))
        flows.append(arriving * base[edges.target])
        if rule.tolerance and np.abs(activation - before).max(initial=0.0) < rule.tolerance:
            break
    return Course(
        activation=np.array([a for a, _ in course]),
        raw=np.array([r for _, r in course]),
        flow=np.array(flows).reshape(len(flows), edges.n_edges),
    )


def _inject(held: FloatArray, raw: FloatArray, sources: Sources, number: int) -> FloatArray:
    """`raw` with what is injected after round `number`, which `held` remembers."""
    now = sources.rounds == number
    added = np.bincount(sources.nodes[now], sources.values[now], len(held))
    held += added
    return raw + added


def _transmitted(activation: FloatArray, rule: SpreadRule) -> FloatArray:
    if rule.softness:
        return activation / (1.0 + np.exp(-(activation - rule.threshold) / rule.softness))
    if rule.below == "zero":
        return activation
    return np.where(_reaches(activation, rule), activation, 0.0)


def _reaches(activation: FloatArray, rule: SpreadRule) -> npt.NDArray[np.bool_]:
    """Which nodes are not below the threshold; compared in float32, as kernels do: .2 must equal .2."""
    with np.errstate(over="ignore"):  # what diverges is infinite in float32, and not below
        return np.asarray(activation.astype(np.float32) >= np.float32(rule.threshold))


def _capped(raw: FloatArray, rule: SpreadRule) -> tuple[FloatArray, FloatArray]:
    if rule.cap is None:
        raw = np.minimum(raw, SATURATION)
        return raw, raw
    return np.minimum(raw, rule.cap), raw
