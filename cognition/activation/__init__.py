"""Spreading activation: one rule, and kernels that agree in its values."""

from .base_level import actr_base_level, optimised_base_level, recent_base_level, soar_base_level, uptake
from .choosing import Kernel
from .fan import actr_fan, actr_strength, soar_sources, soar_spread
from .frontier import FrontierKernel, Limits, frontier_many, frontier_spread, new_scratch
from .named import literal, pagerank, recall, soar_fan, spreadr
from .online import empty_trace, online_step, strengthen, trace_rows
from .own import EachSpreader
from .prepared import Spreader
from .pull.dense import dense_spread
from .pull.ell import ell_spread
from .pull.forms import DenseForm, EllForm, dense_form, ell_form
from .reference import Course, spread_reference
from .result import NOBODY, Activation, Dropped, Flows
from .rule import GrowthWarning, SpreadRule
from .samples import Sample, sample
from .sources import Sources
from .spreading import spread, spread_each, spread_many

__all__ = [
    "NOBODY",
    "Activation",
    "Course",
    "DenseForm",
    "Dropped",
    "EachSpreader",
    "EllForm",
    "Flows",
    "FrontierKernel",
    "GrowthWarning",
    "Kernel",
    "Limits",
    "Sample",
    "Sources",
    "SpreadRule",
    "Spreader",
    "actr_base_level",
    "actr_fan",
    "actr_strength",
    "dense_form",
    "dense_spread",
    "ell_form",
    "ell_spread",
    "empty_trace",
    "frontier_many",
    "frontier_spread",
    "literal",
    "new_scratch",
    "online_step",
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
    "strengthen",
    "trace_rows",
    "uptake",
]
