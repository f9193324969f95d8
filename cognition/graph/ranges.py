"""Large columns of edges in portions: by ranges of their source nodes, so that what they need at once is bounded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]

CHUNK = 1 << 22  # edges at a time, at most
LEAST_CHUNK = 1 << 16
PORTIONS = 16  # each of which reads the whole column of sources if it is in no order


def counts(source: IntArray, n_nodes: int) -> IntArray:
    """[N] i32: how many edges leave each node."""
    found = np.zeros(n_nodes, np.int32)
    for begin in range(0, len(source), CHUNK):
        part = source[begin : begin + CHUNK]
        low = int(part.min())
        part_counts = np.bincount(part - low)
        found[low : low + len(part_counts)] += part_counts.astype(np.int32)
    return found


def by_source(source: IntArray, degree: IntArray) -> Iterator[tuple[int, int, npt.NDArray[np.int64]]]:
    """Ranges [low, high) of nodes, and the numbers of the edges that leave them, in order of their source.

    Edges of one node keep their order. A range has at most CHUNK edges, and about one in PORTIONS of all, or one node.

    Args:
        source: [E].
        degree: [N], as `counts` has it.
    """
    if not len(source):
        return
    ends = np.cumsum(degree, dtype=np.int64)
    is_sorted = all(
        np.all(source[begin + 1 : begin + CHUNK + 1] >= source[begin : begin + CHUNK][: len(source) - begin - 1])
        for begin in range(0, len(source), CHUNK)
    )
    chunk = min(max(len(source) // PORTIONS, LEAST_CHUNK), CHUNK)
    low, done = 0, 0
    while low < len(degree):
        high = max(low + 1, int(np.searchsorted(ends, done + chunk, side="right")))
        end = int(ends[high - 1])
        if is_sorted:
            chosen = np.arange(done, end)
        else:
            chosen = np.flatnonzero((source >= low) & (source < high))
            chosen = chosen[np.argsort(source[chosen], kind="stable")]
        yield low, high, chosen
        low, done = high, end


def first_twins(
    source: IntArray, target: IntArray, relation: npt.NDArray[np.uint8], degree: IntArray
) -> tuple[int, int] | None:
    """Numbers of two edges that are the same, None where all differ."""
    for _, _, chosen in by_source(source, degree):
        # one number for an edge: 27 bits for each node, 4 for the relation
        key = source[chosen].astype(np.int64) << 31
        key |= target[chosen].astype(np.int64) << 4
        key |= relation[chosen]
        if np.all(key[1:] > key[:-1]):
            continue
        ordered = np.sort(key)
        same = np.flatnonzero(ordered[1:] == ordered[:-1])
        if same.size:
            first, second = np.sort(chosen[np.flatnonzero(key == ordered[same[0]])])[:2].tolist()
            return first, second
    return None
