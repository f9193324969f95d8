"""Grids over numbers: each cuts a few of them into tiles, and the tile that a case falls into is on.

Nearby numbers share most of their tiles, so that what is learnt about one holds for the other, and the displacement of
the grids tells them apart all the same. `tile_coding` lays grids in a fixed pattern, `random_grids` at random.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .intervals import Intervals

TILINGS = 8  # a power of two
TILE_BINS = 8  # tiles along the interval of a number
MAX_JOINT = 4  # numbers in one grid of tile coding
MAX_TILES = 2**15  # nodes of one grid

RANDOM_GRIDS = 128
RANDOM_STEPS = 1024  # along the interval of a number, of which pitches are whole multiples
RANDOM_WIDTH = 0.25  # of the kernel, as a share of the interval
RANDOM_PITCH = (1 / 6, 2.0)  # least and largest pitch, as a share of the interval
MAX_RANDOM = 3  # numbers in one random grid

Ints = npt.NDArray[np.int32]


class Grids:
    """R grids over D numbers.

    Args:
        first: first node.
        intervals: the numbers, cut into steps.
        dims: R tuples of the numbers that a grid covers.
        pitch: R tuples of the steps that a tile is long along each of them.
        displaced: R tuples of the steps that the grid is displaced by along each of them, in [0, pitch).
        max_tiles: nodes of one grid, a power of two; a grid of more tiles shares them by a hash.
        seed: of the hash.

    Attributes:
        names: [D] names of the numbers.
        n_nodes: nodes that it takes.
        n_active: nodes that every observation switches on: one per grid, R.
        hashed: [R] bool, grids whose tiles share nodes.
        collisions: how often `activate` has found a tile on a node that another tile took first.
    """

    def __init__(
        self,
        first: int,
        intervals: Intervals,
        dims: Sequence[tuple[int, ...]],
        pitch: Sequence[tuple[int, ...]],
        displaced: Sequence[tuple[int, ...]],
        *,
        max_tiles: int = MAX_TILES,
        seed: int = 0,
    ) -> None:
        width = max(len(covered) for covered in dims)
        self._intervals, self._covered = intervals, tuple(dims)
        self.names = intervals.names
        self._dims, self._displaced = _table(dims, width, 0), _table(displaced, width, 0)
        self._pitch = _table(pitch, width, 1)
        positions = intervals.n_positions[self._dims]
        self._n_tiles = (positions - 1 + self._displaced) // self._pitch + 1
        strides = np.zeros(self._dims.shape, np.int64)
        in_grid = np.ones(len(dims), np.int64)
        for column in reversed(range(width)):
            is_covered = np.array([column < len(covered) for covered in dims])
            strides[is_covered, column] = in_grid[is_covered]
            in_grid[is_covered] *= self._n_tiles[is_covered, column]
        self.hashed = in_grid > max_tiles
        self._sizes = np.where(self.hashed, max_tiles, in_grid)
        self._base = np.asarray(first + np.cumsum(self._sizes) - self._sizes, np.int32)
        self._exact = strides  # the exact number of a tile may need more than 32 bits
        self._strides = np.where(self.hashed[:, None], 0, strides).astype(np.int32)
        factors = np.random.default_rng(seed).integers(0, 2**31, (1, width)).astype(np.uint32) * np.uint32(2)
        self._factors = factors + np.uint32(1)  # odd, so that no bit is lost
        self._mask = np.where(self.hashed, max_tiles - 1, 0).astype(np.uint32)
        self.n_nodes, self.n_active, self.collisions = int(self._sizes.sum()), len(dims), 0
        self._first, self._is_any_hashed = first, bool(self.hashed.any())
        self._owners = np.full(self.n_nodes if self._is_any_hashed else 0, -1, np.int64)

    @property
    def cells(self) -> dict[str, int]:
        """Number -> the most tiles that a grid cuts it into."""
        return {
            name: int(self._n_tiles[self._dims == d].max(initial=1)) for d, name in enumerate(self._intervals.names)
        }

    def activate(self, numbers: npt.NDArray[np.float32]) -> Ints:
        """[R] i32 nodes that numbers [D] f32 switch on, each fully."""
        tiles = self._tiles(numbers, np)
        nodes: Ints = self._nodes(tiles, np)
        if self._is_any_hashed:
            exact, slots = (tiles * self._exact).sum(1), nodes - self._first
            owners = self._owners[slots]
            self.collisions += int(np.count_nonzero((owners >= 0) & (owners != exact)))
            self._owners[slots] = np.where(owners < 0, exact, owners)
        return nodes

    def pure(self, numbers: Any) -> Any:
        """The same for `jax.numpy`, without counting collisions."""
        import jax.numpy as jnp

        return self._nodes(self._tiles(numbers, jnp), jnp)

    def labels(self) -> list[str]:
        """What its nodes stand for."""
        found: list[str] = []
        for row, covered in enumerate(self._covered):
            if self.hashed[row]:
                names = ", ".join(self._intervals.names[d] for d in covered)
                found += [f"#{row}: tiles of ({names}) with hash {n}" for n in range(self._sizes[row])]
            else:
                parts = [self._words(row, column) for column in range(len(covered))]
                found += [f"#{row}: {' & '.join(words)}" for words in itertools.product(*parts)]
        return found

    def _tiles(self, numbers: Any, xp: Any) -> Any:
        """[R, width] i32: tile of each number in each grid."""
        steps = self._intervals.steps(numbers, xp)
        return (steps[self._dims] + self._displaced) // self._pitch

    def _nodes(self, tiles: Any, xp: Any) -> Any:
        nodes = self._base + (tiles * self._strides).sum(1, dtype=np.int32)
        if self._is_any_hashed:
            words = _mixed((tiles.astype(np.uint32) * self._factors).sum(1, dtype=np.uint32))
            nodes = nodes + (words & self._mask).astype(np.int32)
        return nodes

    def _words(self, row: int, column: int) -> list[str]:
        d, pitch, displaced = (int(table[row, column]) for table in (self._dims, self._pitch, self._displaced))
        starts = [pitch * tile - displaced for tile in range(self._n_tiles[row, column])]
        return [self._intervals.label(d, start, start + pitch) for start in starts]


def tile_coding(
    first: int,
    names: Sequence[str],
    low: Sequence[float],
    high: Sequence[float],
    scales: Mapping[str, float],
    *,
    n_bins: int = TILE_BINS,
    seed: int = 0,
) -> Grids:
    """`TILINGS` displaced grids over all of up to `MAX_JOINT` numbers; over more, over each pair and each number.

    Source: Sutton & Barto (2018), "Reinforcement Learning", 9.5.4: tiling i is displaced by i times (1, 3, 5, ...)
    parts of a tile along the numbers that it covers.
    Differs: tiles are numbered, not hashed, as long as a grid has at most `MAX_TILES`.

    Args:
        first: first node.
        names: [D] names of the numbers.
        low: [D] lower bounds; -inf where there are none.
        high: [D] upper bounds; inf where there are none.
        scales: see `Intervals`.
        n_bins: tiles along the interval of a number.
        seed: of the hash.
    """
    n = len(names)
    together = [tuple(range(n))] if n <= MAX_JOINT else [*itertools.combinations(range(n), 2), *zip(range(n))]
    dims = [covered for _ in range(TILINGS) for covered in together]
    displaced = [
        tuple(tiling * (2 * k + 1) % TILINGS for k in range(len(covered)))
        for tiling in range(TILINGS)
        for covered in together
    ]
    pitch = [(TILINGS,) * len(covered) for covered in dims]
    return Grids(
        first, Intervals(names, low, high, n_bins * TILINGS, TILINGS, scales), dims, pitch, displaced, seed=seed
    )


def random_grids(
    first: int,
    names: Sequence[str],
    low: Sequence[float],
    high: Sequence[float],
    scales: Mapping[str, float],
    *,
    n_grids: int = RANDOM_GRIDS,
    seed: int = 0,
) -> Grids:
    """Grids of random pitch, each over a few random numbers: as many as are wanted, however many numbers there are.

    Source: random binning features, Rahimi & Recht (2007), "Random features for large-scale kernel machines", 5; for
    the Laplacian kernel exp(-distance / width) the pitch has a Gamma distribution of shape 2.
    Differs: 1. a grid covers one to `MAX_RANDOM` of the numbers instead of all, so that it stays local and small;
    2. pitches are kept within `RANDOM_PITCH` and are whole steps.

    Args:
        first: first node.
        names: [D] names of the numbers.
        low: [D] lower bounds; -inf where there are none.
        high: [D] upper bounds; inf where there are none.
        scales: see `Intervals`.
        n_grids: R.
        seed: of the grids.
    """
    rng, n = np.random.default_rng(seed), len(names)
    dims, pitch, displaced = [], [], []
    for i in range(n_grids):
        covered = np.sort(rng.choice(n, min(n, 1 + i % MAX_RANDOM), replace=False))
        share = np.clip(rng.gamma(2.0, RANDOM_WIDTH, len(covered)), *RANDOM_PITCH)
        steps = np.round(share * RANDOM_STEPS).astype(int)
        dims.append(tuple(covered.tolist()))
        pitch.append(tuple(steps.tolist()))
        displaced.append(tuple(rng.integers(0, steps).tolist()))
    intervals = Intervals(names, low, high, RANDOM_STEPS, RANDOM_STEPS // TILE_BINS, scales)
    return Grids(first, intervals, dims, pitch, displaced, seed=seed)


def _table(rows: Sequence[tuple[int, ...]], width: int, fill: int) -> Ints:
    return np.array([[*row, *[fill] * (width - len(row))] for row in rows], np.int32)


def _mixed(words: Any) -> Any:
    """u32 words in which every bit of the given ones moves every bit.

    Source: the finaliser of MurmurHash3 (Appleby).
    """
    words = (words ^ (words >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    words = (words ^ (words >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return words ^ (words >> np.uint32(16))
