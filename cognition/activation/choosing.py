"""Which kernel, and in which sizes."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from ..graph.edge_list import EdgeList
from .frontier.query import supports
from .pull.packing import bucket, stepped
from .rule import SpreadRule

Kernel = Literal["auto", "reference", "dense", "ell", "sweep", "frontier"]

FEWEST_NODES = 8
MOST_DENSE = 64
"""Nodes up to which many queries are fastest by products with a matrix; one is not, see `packing.MOST_INLINE`."""
MOST_ELL = 1_024
"""Nodes up to which rows of one length for all are fastest."""
MOST_SWEPT = 20_000
"""Nodes up to which it is fastest to look at all of them."""


def check_settings(rule: Any, top: Any, kernel: Any, evidence: Any) -> None:
    """Refuse settings that are wrong.

    Raises:
        TypeError, ValueError: by name.
    """
    if not isinstance(rule, SpreadRule):
        raise TypeError(f"`rule` must be a SpreadRule, got {type(rule).__name__}; `recall()` makes the default one.")
    if kernel not in get_args(Kernel):
        raise ValueError(f"`kernel` must be one of {list(get_args(Kernel))}, got {kernel!r}.")
    for name, value, least in (("top", top, 1), ("evidence", evidence, 0)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise TypeError(f"`{name}` must be a whole number, got {value!r}.")
        if value < least:
            raise ValueError(f"`{name}` must be at least {least}, got {value}.")


PullKernel = Literal["dense", "ell", "sweep"]
"""Kernels that look at all nodes."""


def pull_kernel(n_nodes: int, *, many: bool = False) -> PullKernel:
    """The fastest kernel for one query, or for many at once."""
    if many and n_nodes <= MOST_DENSE:
        return "dense"
    return "ell" if n_nodes <= MOST_ELL else "sweep"


def size_for(graph: Any, n_nodes: int) -> int:
    """Nodes in the arrays of a form: so few different numbers that a graph that grows is rarely compiled anew."""
    if n_nodes <= MOST_ELL:
        return bucket(n_nodes, FEWEST_NODES)
    return stepped(n_nodes) if isinstance(graph, EdgeList) else max(n_nodes, int(graph.arrays.capacity))


def is_local(n_nodes: int, rule: SpreadRule) -> bool:
    """Whether a rule can be expected to activate little of a big graph, so that its frontier is the fastest way."""
    is_hard = rule.threshold > 0 and not rule.softness
    return n_nodes > MOST_SWEPT and is_hard and supports(rule.code) is None
