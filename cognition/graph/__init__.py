"""The memory graph: nodes, typed edges with strengths, and the arrays that hold them."""

from .edge_list import EdgeList
from .relations import RELATIONS

__all__ = ["RELATIONS", "EdgeList"]
