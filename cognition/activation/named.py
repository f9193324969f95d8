"""Named rules: settings of the one rule that others have published or that proved good."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from .rule import SpreadRule


def literal(**changes: Any) -> SpreadRule:
    """Retention .9, threshold .2, decay .8 for causes, .5 for is_similar_to and .7 for the rest, and no bound.

    It diverges on any two-way pair of strength above 1/7; see `SpreadRule.growth`.
    """
    decay = {"causes": 0.8, "is_similar_to": 0.5, "default": 0.7}
    return dataclasses.replace(SpreadRule(retention=0.9, threshold=0.2, decay=decay, rounds=5), **changes)


def recall(**changes: Any) -> SpreadRule:
    """The default: sources held, cap 1, threshold .2, conjunctions wait, a node divides by the root of its degree.

    It neither floods nor dies out: with half a percent of the nodes as sources, 1 to 20 % of a graph of mean degree 10
    become active, at two steps from a source and further (tests/cognition/activation/test_flooding.py). Nodes of one
    or two edges pass on all that they transmit, so that a chain of strong edges is followed to its end.
    """
    decay = {"causes": 0.8, "is_similar_to": 0.5, "default": 0.7}
    rule = SpreadRule(
        retention=0.9,
        threshold=0.2,
        decay=decay,
        normalisation="capped_sqrt",
        degree_cap=2.0,
        cap=1.0,
        sources="held",
        conjunctions=True,
        rounds=3,
    )
    return dataclasses.replace(rule, **changes)


def spreadr(retention: float | npt.NDArray[np.float64] = 0.5, **changes: Any) -> SpreadRule:
    """The simulator spreadr (Siew 2019): a node keeps `retention` and spends the rest along its edges by weight.

    Activation is conserved. Its `decay` is `leak` here, its `suppress` is `threshold` with below="zero", its start_run
    with times is sources with rounds.
    Differs: an edge from a node to itself is an edge like any other, where spreadr loses what it carries.
    """
    rule = SpreadRule(retention=retention, normalisation="row", spends=True, use_base=False, rounds=10)
    return dataclasses.replace(rule, **changes)


def pagerank(alpha: float = 0.85, **changes: Any) -> SpreadRule:
    """Personalised PageRank (Page et al. 1999).

    The sources, which should sum to 1, are where the surfer restarts with probability 1 - alpha.
    """
    rule = SpreadRule(
        retention=0.0,
        normalisation="row",
        use_base=False,
        restart=1.0 - alpha,
        dangling=True,
        rounds=1_000,
        tolerance=1e-7,
    )
    return dataclasses.replace(rule, **changes)


def soar_fan(probability: float = 0.9, depth: int = 10, **changes: Any) -> SpreadRule:
    """Spreading in Soar's semantic memory (Soar manual 9.6, `smem` settings `spreading-continue-probability` and
    `spreading-depth-limit`): a source passes `probability` on, shared by the weights of its edges, `depth` times.

    Every path from a source counts, so the source has to be there in every round: `soar_sources` says how, and
    `soar_spread` turns activation into what Soar adds to the base level.
    Differs: 1. loops are followed, which Soar can forbid;  2. all paths are followed, where Soar stops below
    `spreading-baseline` and at `spreading-limit` nodes.
    """
    rule = SpreadRule(retention=0.0, normalisation="row", use_base=False, decay=probability, rounds=depth)
    return dataclasses.replace(rule, **changes)
