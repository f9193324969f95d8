"""Spectral radius of a non-negative update matrix, the factor by which it grows in the long run."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]
from scipy.sparse import csgraph  # type: ignore[import-untyped]

MAX_ITERATIONS = 2_000
GAP = 1e-9  # relative, between both bounds
DENSE = 300  # nodes up to which all eigenvalues are worked out


def spectral_radius(
    n_nodes: int,
    source: npt.NDArray[np.int32],
    target: npt.NDArray[np.int32],
    weight: npt.NDArray[np.float64],
    kept: npt.NDArray[np.float64],
) -> float:
    """Largest absolute eigenvalue of diag(kept) + the matrix of a graph's weights.

    Eigenvalues of a graph are those of its strongly connected components. Within one, the bounds of Collatz and
    Wielandt, min and max over i of (U v)_i / v_i, close in on the radius when U is iterated on a positive v. The
    identity is added to U first, without which a bipartite graph would make them swing for ever.

    Args:
        n_nodes: N.
        source: [E] nodes from which edges lead.
        target: [E] nodes to which they lead.
        weight: [E] >= 0.
        kept: [N] >= 0, the diagonal.

    Returns:
        The upper bound, >= the radius; at most 1e-9 of it above for graphs whose iteration converges in time.
    """
    radius = float(kept.max(initial=0.0))
    matrix = sparse.csr_matrix((weight, (target, source)), (n_nodes, n_nodes))
    n_parts, part = csgraph.connected_components(matrix, connection="strong")
    inside = part[source] == part[target]
    sizes = np.bincount(part, minlength=n_parts)
    order = np.argsort(part, kind="stable")
    first = np.concatenate([[0], np.cumsum(sizes)])
    loops = inside & (sizes[part[source]] == 1)  # a single node whose edge leads to itself
    if loops.any():
        radius = max(radius, float((kept + np.bincount(source[loops], weight[loops], n_nodes)).max()))
    for number in np.flatnonzero(sizes > 1):
        members = order[first[number] : first[number + 1]]
        radius = max(radius, _irreducible(matrix[members][:, members], kept[members]))
    return radius


def _irreducible(matrix: Any, kept: npt.NDArray[np.float64]) -> float:
    n = len(kept)
    if n <= DENSE:
        return float(np.abs(np.linalg.eigvals(matrix.toarray() + np.diag(kept))).max())
    vector = np.full(n, 1.0 / n)
    upper = np.inf
    for _ in range(MAX_ITERATIONS):
        following = vector + kept * vector + matrix @ vector
        ratios = following / vector
        upper = min(upper, float(ratios.max()))
        if upper - float(ratios.min()) <= GAP * upper:
            break
        vector = following / following.sum()
    return upper - 1.0
