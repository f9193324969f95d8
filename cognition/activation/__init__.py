"""Spreading activation: one rule, and kernels that agree in its values."""

from .base_level import actr_base_level, optimised_base_level, recent_base_level, soar_base_level, uptake
from .choosing import Kernel
from .fan import actr_fan, actr_strength, soar_sources, soar_spread
from .named import literal, pagerank, recall, soar_fan, spreadr
from .own import EachSpreader
from .prepared import Spreader
from .pull.dense import dense_spread
from .pull.ell import ell_spread
from .reference import Course, spread_reference
from .result import Activation, Dropped, Flows
from .rule import GrowthWarning, SpreadRule
from .samples import Sample, sample
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
    "Sample",
    "Sources",
    "SpreadRule",
    "Spreader",
    "actr_base_level",
    "actr_fan",
    "actr_strength",
    "dense_spread",
    "ell_spread",
    "literal",
    "optimised_base_level",
    "pagerank",
    "recall",
    "recent_base_level",
    "sample",
    "soar_base_level",
    "soar_fan",
    "soar_sources",
    "soar_spread",
    "spread",
    "spread_each",
    "spread_many",
    "spread_reference",
    "spreadr",
    "uptake",
]
