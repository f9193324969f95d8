"""Spreading activation: one rule, and kernels that agree in its values."""

from .choosing import Kernel
from .dense import dense_spread
from .ell import ell_spread
from .named import literal, pagerank, recall, soar_fan, spreadr
from .own import EachSpreader
from .prepared import Spreader
from .reference import Course, spread_reference
from .result import Activation, Dropped, Flows
from .rule import GrowthWarning, SpreadRule
from .sources import Sources
from .spreading import spread, spread_each, spread_many

__all__ = [
    "Activation",
    "Course",
    "Dropped",
    "EachSpreader",
    "Flows",
    "GrowthWarning",
    "Kernel",
    "Sources",
    "SpreadRule",
    "Spreader",
    "dense_spread",
    "ell_spread",
    "literal",
    "pagerank",
    "recall",
    "soar_fan",
    "spread",
    "spread_each",
    "spread_many",
    "spread_reference",
    "spreadr",
]
