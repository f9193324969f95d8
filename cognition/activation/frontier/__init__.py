"""Spreading on a big graph by what is active: the cost follows the activation, not the size of the graph."""

from .kernel import FrontierKernel
from .query import Limits, follow, frontier_many, frontier_spread, planned, supports
from .state import Scratch, new_scratch

__all__ = [
    "FrontierKernel",
    "Limits",
    "Scratch",
    "follow",
    "frontier_many",
    "frontier_spread",
    "new_scratch",
    "planned",
    "supports",
]
