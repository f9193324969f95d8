"""Spreading activation: one rule, and kernels that agree in its values."""

from .named import literal, pagerank, recall, spreadr
from .prepared import Kernel, Spreader
from .reference import Course, spread_reference
from .result import Activation, Dropped, Flows
from .rule import SpreadRule
from .sources import Sources
from .spreading import spread

__all__ = [
    "Activation",
    "Course",
    "Dropped",
    "Flows",
    "Kernel",
    "Sources",
    "SpreadRule",
    "Spreader",
    "literal",
    "pagerank",
    "recall",
    "spread",
    "spread_reference",
    "spreadr",
]
