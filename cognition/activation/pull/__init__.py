"""Kernels in which every node reads what reaches it: matrices, rows of in-edges, sweeps."""
