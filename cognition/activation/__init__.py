"""Spreading activation: one rule, and kernels that agree in its values."""

from .named import literal, pagerank, recall, spreadr
from .reference import Course, spread_reference
from .result import Activation, Dropped, Flows
from .rule import SpreadRule
from .sources import Sources

__all__ = [
    "Activation",
    "Course",
    "Dropped",
    "Flows",
    "Sources",
    "SpreadRule",
    "literal",
    "pagerank",
    "recall",
    "spread_reference",
    "spreadr",
]
