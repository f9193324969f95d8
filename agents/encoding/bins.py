"""Numbers by bins: one node per bin between given edges, and nodes that carry the rank."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from .intervals import LARGEST, interval

Rank = Literal["signed", "poles", "none"]
RANK_NODES: Mapping[Rank, tuple[str, ...]] = {"signed": ("rank",), "poles": ("low", "high"), "none": ()}
UNIFORM_BINS = 8  # for a number whose quantiles nobody declared


class Bins(NamedTuple):
    """Bins of one number.

    Attributes:
        name: of the number.
        first: its first node: those of its bins, then those of its rank.
        knots: [n_bins + 1] edges with the ends of the first and the last bin.
        edges: [n_bins - 1] inner edges, ascending; a number on an edge is in the bin above it.
        rank: form of its rank nodes.
    """

    name: str
    first: int
    knots: tuple[float, ...]
    edges: tuple[float, ...]
    rank: Rank

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) + 1

    def labels(self) -> list[str]:
        """What its nodes stand for."""
        shown = [f"{edge:.4g}" for edge in self.edges]
        return [
            f"{self.name} < {shown[0]}",
            *(f"{left} <= {self.name} < {right}" for left, right in itertools.pairwise(shown)),
            f"{self.name} >= {shown[-1]}",
            *(f"{self.name}: {end}" for end in RANK_NODES[self.rank]),
        ]

    def activate(self, number: float, index: list[int], value: list[float]) -> None:
        """Add the nodes of a number and their activation."""
        _, first, knots, edges, rank = self
        slot = bisect.bisect_right(edges, number)
        if rank == "none":
            index.append(first + slot)
            value.append(1.0)
            return
        left, right, n_bins = knots[slot], knots[slot + 1], len(edges) + 1
        inside = (number - left) / (right - left) if right > left else 0.5
        inside = 0.0 if inside < 0.0 else 1.0 if inside > 1.0 else inside
        signed = 2.0 * (slot + inside) / n_bins - 1.0
        if rank == "signed":
            index += (first + slot, first + n_bins)
            value += (1.0, signed)
        else:
            index += (first + slot, first + n_bins, first + n_bins + 1)
            value += (1.0, max(-signed, 0.0), max(signed, 0.0))

    def switch_off(self, index: list[int], value: list[float]) -> None:
        """Add the nodes of a number that is not known, all with activation 0."""
        at, n_rank = self.first + len(self.edges) + 1, len(RANK_NODES[self.rank])
        index += (self.first, *range(at, at + n_rank))
        value += (0.0,) * (1 + n_rank)


def uniform(name: str, first: int, low: float, high: float, scale: float | None, rank: Rank, n_bins: int) -> Bins:
    """Bins of equal width over the interval of a number (see `Intervals`); the outer ones hold what lies beyond."""
    low, high = (low, high) if scale is None and -LARGEST < low == high < LARGEST else interval(name, low, high, scale)
    edges = tuple(float(edge) for edge in np.linspace(low, high, n_bins + 1)[1:-1])
    return Bins(name, first, (low, *edges, high), edges, rank)


class BinTable:
    """Bins of K numbers side by side, for `jax.numpy`.

    Args:
        bins: the numbers, all with the same form of rank.
    """

    def __init__(self, bins: Sequence[Bins]) -> None:
        widest = max(one.n_bins for one in bins)
        edges = np.full((len(bins), widest - 1), np.inf)
        knots = np.zeros((len(bins), widest + 1), np.float32)
        for row, one in enumerate(bins):
            edges[row, : len(one.edges)] = one.edges
            knots[row, : len(one.knots)] = one.knots
        self._edges, self._knots, self._rank = _float32_above(edges), knots, bins[0].rank
        self._first = np.array([one.first for one in bins], np.int32)
        self._n_bins = np.array([one.n_bins for one in bins], np.int32)

    def activate(self, numbers: Any, is_known: Any) -> tuple[Any, Any]:
        """Nodes and activation, [K * (1 + rank nodes)] i32 and f32, of numbers [K] f32 of which is_known [K] bool."""
        import jax.numpy as jnp

        numbers = jnp.where(is_known, numbers, np.float32(0))
        slot = jnp.sum(numbers[:, None] >= self._edges, axis=1, dtype=np.int32)
        slot = jnp.where(is_known, slot, np.int32(0))
        nodes, activation = [jnp.asarray(self._first) + slot], [is_known.astype(np.float32)]
        if self._rank != "none":
            row = np.arange(len(self._first), dtype=np.int32)
            knots = jnp.asarray(self._knots)
            left, right = knots[row, slot], knots[row, slot + np.int32(1)]
            width = right - left
            share = (numbers - left) / jnp.where(width > 0, width, np.float32(1))
            inside = jnp.where(width > 0, jnp.clip(share, 0, 1), np.float32(0.5))
            signed = 2 * (slot.astype(np.float32) + inside) / self._n_bins.astype(np.float32) - 1
            signed = jnp.where(is_known, signed, np.float32(0))
            at = jnp.asarray(self._first + self._n_bins)
            nodes += [at] if self._rank == "signed" else [at, at + np.int32(1)]
            poles = [jnp.maximum(-signed, 0), jnp.maximum(signed, 0)]
            activation += [signed] if self._rank == "signed" else poles
        return jnp.stack(nodes, axis=1).reshape(-1), jnp.stack(activation, axis=1).reshape(-1)


def _float32_above(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The least float32 that is not below each number: a float32 is >= it exactly if it is >= the number."""
    rounded = numbers.astype(np.float32)
    return np.where(rounded < numbers, np.nextafter(rounded, np.float32(np.inf)), rounded)
