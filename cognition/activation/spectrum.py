"""Spectral radius of a non-negative update matrix, the factor by which it grows in the long run."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]
from scipy.sparse import csgraph, linalg  # type: ignore[import-untyped]

FloatArray = npt.NDArray[np.float64]

GAP = 1e-9  # relative, between both bounds
PATIENCE = 300  # rounds before eigenvalues are worked out otherwise
MAX_ITERATIONS = 3_000
DENSE = 300  # nodes up to which all eigenvalues are worked out
ELIMINATION = 1e9  # operations up to which a matrix of small bandwidth is inverted
NODA_ITERATIONS = 60
TINY = 1e-250  # smallest entry of an iterated vector; the bounds hold for any positive vector


def spectral_radius(
    n_nodes: int,
    source: npt.NDArray[np.int32],
    target: npt.NDArray[np.int32],
    weight: FloatArray,
    kept: FloatArray,
) -> float:
    """Largest absolute eigenvalue of diag(kept) + the matrix of a graph's weights.

    Eigenvalues of a graph are those of its strongly connected components. Within one, the bounds of Collatz and
    Wielandt, min and max over i of (U v)_i / v_i, hold for every positive v and close in on the radius when U is
    iterated on v. A multiple of the identity is added to U first, without which a bipartite graph would make them
    swing for ever. All components are iterated at once, and left when others are known to be larger. A slow one is
    worked out densely where it is small, by inverse iteration where it is long and thin, else from the eigenvector of
    ARPACK (scipy) on.

    Args:
        n_nodes: N.
        source: [E] nodes from which edges lead.
        target: [E] nodes to which they lead.
        weight: [E] >= 0.
        kept: [N] >= 0, the diagonal.

    Returns:
        An upper bound, at most 1e-9 of it above the radius where the iteration converges in time.
    """
    counts = weight > 0
    source, target, weight = source[counts], target[counts], weight[counts]
    matrix = sparse.csr_matrix((weight, (target, source)), (n_nodes, n_nodes))
    _, part = csgraph.connected_components(matrix, connection="strong")
    sizes = np.bincount(part, minlength=1)
    inside = part[source] == part[target]
    is_loop = source == target
    loops = np.bincount(source[is_loop], weight[is_loop], n_nodes)
    radius = float((kept + loops).max(initial=0.0))  # of all single nodes, and below that of every other component
    members = np.flatnonzero(sizes[part] > 1)
    if not members.size:
        return radius
    members = members[np.argsort(part[members], kind="stable")]
    place = np.full(n_nodes, -1)
    place[members] = np.arange(len(members))
    used = inside & (place[source] >= 0)
    rows, columns = place[target[used]], place[source[used]]
    block = sparse.csr_matrix((weight[used], (rows, columns)), (len(members), len(members)))
    first = np.flatnonzero(np.diff(part[members], prepend=-1))
    return max(radius, _largest(block + sparse.diags(kept[members], format="csr"), first, radius))


def _largest(matrix: Any, first: npt.NDArray[np.intp], floor: float) -> float:
    """Upper bound of the radius of a block diagonal matrix; blocks begin at `first` and are irreducible."""
    upper, left = _iterated(matrix, np.ones(matrix.shape[0]), first, floor, PATIENCE)
    bounds = [upper]
    ends = np.append(first[1:], matrix.shape[0])
    for number, bound in left:  # one that is slow; few, since most are smaller than the largest
        block = matrix[first[number] : ends[number], first[number] : ends[number]]
        bounds.append(min(bound, _slow(block, floor)))
    return max(bounds)


def _iterated(
    matrix: Any, vector: FloatArray, first: npt.NDArray[np.intp], floor: float, n_rounds: int
) -> tuple[float, list[tuple[int, float]]]:
    """Upper bound of all blocks that converged or are smaller than others, and (number, bound) of the others."""
    shift = max(0.0, 0.25 * float(matrix.sum(axis=1).mean()) - float(matrix.diagonal().min()))
    sizes = np.diff(np.append(first, matrix.shape[0]))
    upper, lower = np.full(len(first), np.inf), np.zeros(len(first))
    for _ in range(n_rounds):
        following = matrix @ vector + shift * vector
        ratios = following / vector
        upper = np.minimum(upper, np.maximum.reduceat(ratios, first))
        lower = np.maximum(lower, np.minimum.reduceat(ratios, first))
        if upper.max() - max(lower.max(), floor + shift) <= GAP * upper.max():
            return float(upper.max()) - shift, []
        vector = np.maximum(following / np.repeat(np.maximum.reduceat(following, first), sizes), TINY)
    is_slow = upper > max(lower.max(), floor + shift) * (1.0 + GAP)
    done = float(upper[~is_slow].max(initial=floor + shift)) - shift
    return done, [(int(number), float(upper[number]) - shift) for number in np.flatnonzero(is_slow)]


def _slow(block: Any, floor: float) -> float:
    n = block.shape[0]
    if n <= DENSE:
        return float(np.abs(np.linalg.eigvals(block.toarray())).max()) * (1.0 + GAP)
    order = csgraph.reverse_cuthill_mckee(block, symmetric_mode=False)
    ordered = block[order][:, order].tocoo()
    if n * float(np.abs(ordered.row - ordered.col).max()) ** 2 <= ELIMINATION:
        return _inverse(ordered.tocsc())
    try:
        _, vectors = linalg.eigs(block, k=1, which="LR", v0=np.ones(n), maxiter=1_000, tol=1e-10)
        start = np.abs(vectors[:, 0])
    except linalg.ArpackError:
        start = np.ones(n)
    start = np.maximum(start / start.max(), 1e-12)  # below that it is noise, which iterating replaces
    upper, left = _iterated(block, start, np.zeros(1, np.intp), floor, MAX_ITERATIONS)
    return max([upper, *(bound for _, bound in left)])


def _inverse(block: Any) -> float:
    """Upper bound by inverse iteration with the bound itself as shift, which it lowers quadratically (Noda 1971)."""
    vector = np.ones(block.shape[0])
    upper = np.inf
    for _ in range(NODA_ITERATIONS):
        ratios = (block @ vector) / vector
        upper = min(upper, float(ratios.max()))
        if upper - float(ratios.min()) <= GAP * upper:
            break
        shifted = upper * (1.0 + 1e-13) * sparse.identity(len(vector), format="csc") - block
        vector = np.abs(linalg.splu(shifted).solve(vector))
        vector = np.maximum(vector / vector.max(), TINY)
    return upper
