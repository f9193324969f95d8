"""The substrate: what is remembered, how it becomes a decision, and how outcomes change it.

Pure functions over pytrees; knows no world and no Gymnasium. README.md says what the parts are and why.
"""

from .config import NO_ACTION, NO_DECISION, Config, Params, Rule, Structure, node_variances, params_of
from .decision import Avoided, Decision, Option, Path, Reads, decide
from .edges import NEVER, Edges, Paths, initial_edges
from .errors import DamagedFileError, MemoryFileError, MismatchError, NewerFileError
from .evidence import Evidence, choose, evaluate
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
    "Avoided",
    "Config",
    "DamagedFileError",
    "Decision",
    "Edge",
    "Edges",
    "Entry",
    "Evidence",
    "Experience",
    "Ledger",
    "Lesson",
    "Memory",
    "MemoryFileError",
    "MismatchError",
    "NewerFileError",
    "Option",
    "Params",
    "Path",
    "Paths",
    "Reads",
    "Rule",
    "State",
    "Structure",
    "Style",
    "attend",
    "begin",
    "choose",
    "credit",
    "decide",
    "evaluate",
    "initial_edges",
    "initial_state",
    "learn",
    "learn_all",
    "lesson_words",
    "memory_of",
    "node_variances",
    "params_of",
    "step",
    "style_of",
]
