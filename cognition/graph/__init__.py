"""The memory graph: nodes, typed edges with strengths, and the arrays that hold them."""

from .edge_list import EdgeList
from .memory_graph import MemoryGraph
from .packing import Edge
from .relations import RELATIONS

__all__ = ["RELATIONS", "Edge", "EdgeList", "MemoryGraph"]
