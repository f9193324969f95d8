"""A graph as plain NumPy columns, one row per edge: what every other form of it is made from and compared with."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from .relations import MAX_RELATIONS, RELATIONS, checked_relations

MAX_NODES = 2**27 - 1
"""A packed edge has 27 bits for its target, and one number is kept for "none"."""

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class EdgeList:
    """A directed graph. E edges, N nodes. An edge is known by (source, target, relation), which stand once.

    Attributes:
        n_nodes: N; nodes are the numbers 0 to N - 1.
        source, target: [E] i32, node numbers.
        strength: [E] f64 in [-1, 1], not 0; negative strengths inhibit.
        relation: [E] u8, numbers into `relations`.
        base: [N] f64 in [0, 1], base level C of each node: the share of what arrives that it takes up. 1 by default.
        need: [N] i32 >= 0, how many of its exciting in-edges must transmit before a conjunction takes up anything;
            0, the default, for ordinary nodes.
        relations: names of the relations.

    Arrays are read-only copies. A `MemoryGraph` and the kernels round strengths and base levels to f32.

    Raises:
        TypeError, ValueError: a column is wrong, with its name and its first wrong row.
    """

    n_nodes: int
    source: IntArray
    target: IntArray
    strength: FloatArray
    relation: npt.NDArray[np.uint8] = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint8))
    base: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0, np.float64))
    need: IntArray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int32))
    relations: tuple[str, ...] = RELATIONS

    def __post_init__(self) -> None:
        if isinstance(self.n_nodes, bool) or not isinstance(self.n_nodes, int | np.integer):
            raise TypeError(f"`n_nodes` must be a whole number, got {self.n_nodes!r}.")
        if not 0 <= self.n_nodes <= MAX_NODES:
            raise ValueError(f"`n_nodes` must be in [0, {MAX_NODES}], got {self.n_nodes}.")
        self._set("n_nodes", int(self.n_nodes))
        self._set("relations", checked_relations(self.relations))
        n_edges = len(np.asarray(self.source))
        relation = np.asarray(self.relation)
        if relation.size == 0:
            relation = np.zeros(n_edges, np.uint8)
        base, need = np.asarray(self.base), np.asarray(self.need)
        if base.size == 0:
            base = np.ones(self.n_nodes)
        if need.size == 0:
            need = np.zeros(self.n_nodes, np.int32)
        self._column("source", self.source, n_edges, np.int32, 0, self.n_nodes - 1)
        self._column("target", self.target, n_edges, np.int32, 0, self.n_nodes - 1)
        self._column("strength", self.strength, n_edges, np.float64, -1, 1)
        self._column("relation", relation, n_edges, np.uint8, 0, min(len(self.relations), MAX_RELATIONS) - 1)
        self._column("base", base, self.n_nodes, np.float64, 0, 1)
        self._column("need", need, self.n_nodes, np.int32, 0, 2**31 - 1)
        if n_edges and (zero := np.flatnonzero(self.strength == 0)).size:
            raise ValueError(
                f"`strength` must not be 0 (an edge that carries nothing is none), got 0 in row {zero[0]}."
            )
        self._refuse_twins()

    @property
    def n_edges(self) -> int:
        """E."""
        return len(self.source)

    def out_degree(self) -> IntArray:
        """[N] i32: edges that leave each node."""
        return np.bincount(self.source, minlength=self.n_nodes).astype(np.int32)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _column(self, name: str, values: Any, size: int, dtype: Any, low: float, high: float) -> None:
        given = np.asarray(values)
        wanted = "numbers" if np.dtype(dtype).kind == "f" else "whole numbers"
        if given.dtype.kind not in ("iuf" if wanted == "numbers" else "iu") and given.size:
            raise TypeError(f"`{name}` must be {wanted}, got {given.dtype}.")
        if given.shape != (size,):
            raise ValueError(f"`{name}` must have shape ({size},), got {given.shape}.")
        wrong = np.flatnonzero(~((given >= low) & (given <= high)))  # NaN is in no range
        if wrong.size:
            raise ValueError(f"`{name}` must be in [{low}, {high}], got {given[wrong[0]]} in row {wrong[0]}.")
        copied = np.array(given, dtype)
        copied.flags.writeable = False
        self._set(name, copied)

    def _refuse_twins(self) -> None:
        # one number for an edge: 27 bits for each node, 4 for the relation
        key = (self.source.astype(np.int64) << 31) | (self.target.astype(np.int64) << 4) | self.relation
        ordered = np.sort(key)
        same = np.flatnonzero(ordered[1:] == ordered[:-1])
        if same.size:
            first, second = np.flatnonzero(key == ordered[same[0]])[:2].tolist()
            name = self.relations[int(self.relation[first])]
            raise ValueError(
                f"an edge must stand once, but rows {first} and {second} are both {self.source[first]} -> "
                f"{self.target[first]} ({name}); add their strengths, or keep one."
            )
