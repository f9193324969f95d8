"""The memory graph: nodes, typed edges with strengths, and the arrays that hold them."""

from .edge_list import EdgeList
from .memory_graph import MemoryGraph
from .relations import RELATIONS

__all__ = ["RELATIONS", "EdgeList", "MemoryGraph"]
