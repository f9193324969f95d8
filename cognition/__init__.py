"""The substrate: what is remembered, how it becomes a decision, and how outcomes change it.

Pure functions over pytrees; knows no world and no Gymnasium. README.md says what the parts are and why.
"""

from .activation import (
    Activation,
    EachSpreader,
    GrowthWarning,
    Sources,
    Spreader,
    SpreadRule,
    dense_spread,
    ell_spread,
    literal,
    pagerank,
    recall,
    soar_fan,
    spread,
    spread_each,
    spread_many,
    spread_reference,
    spreadr,
)
from .config import NO_ACTION, NO_DECISION, Config, Params, Rule, Structure, node_variances, params_of
from .decision import Avoided, Decision, Option, Path, Reads, decide
from .edges import NEVER, Edges, Paths, initial_edges
from .errors import DamagedFileError, MemoryFileError, MismatchError, NewerFileError
from .evidence import Evidence, choose, evaluate
from .graph import EdgeList, MemoryGraph
from .learner import Experience, State, attend, begin, credit, initial_state, step
from .learning import Lesson, learn, learn_all, lesson_words
from .ledger import Entry, Ledger
from .memory import Edge, Memory, memory_of
from .style import STYLES, Style, style_of

__all__ = [
    "NEVER",
    "NO_ACTION",
    "NO_DECISION",
    "STYLES",
    "Activation",
    "Avoided",
    "Config",
    "DamagedFileError",
    "Decision",
    "EachSpreader",
    "Edge",
    "EdgeList",
    "Edges",
    "Entry",
    "Evidence",
    "Experience",
    "GrowthWarning",
    "Ledger",
    "Lesson",
    "Memory",
    "MemoryFileError",
    "MemoryGraph",
    "MismatchError",
    "NewerFileError",
    "Option",
    "Params",
    "Path",
    "Paths",
    "Reads",
    "Rule",
    "Sources",
    "SpreadRule",
    "Spreader",
    "State",
    "Structure",
    "Style",
    "attend",
    "begin",
    "choose",
    "credit",
    "decide",
    "dense_spread",
    "ell_spread",
    "evaluate",
    "initial_edges",
    "initial_state",
    "learn",
    "learn_all",
    "lesson_words",
    "literal",
    "memory_of",
    "node_variances",
    "pagerank",
    "params_of",
    "recall",
    "soar_fan",
    "spread",
    "spread_each",
    "spread_many",
    "spread_reference",
    "spreadr",
    "step",
    "style_of",
]
