"""A graph as plain NumPy columns, one row per edge: what every other form of it is made from and compared with."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from . import ranges
from .relations import MAX_RELATIONS, RELATIONS, checked_relations

MAX_NODES = 2**27 - 1
"""A packed edge has 27 bits for its target, and one number is kept for "none"."""

SMALLEST = 2.0**-126
"""|strength| below which an edge counts as 0: f32 has no normal number there, and processors round it differently."""

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class EdgeList:
    """A directed graph. E edges, N nodes. An edge is known by (source, target, relation), which stand once.

    Attributes:
        n_nodes: N; nodes are the numbers 0 to N - 1.
        source, target: [E] i32, node numbers.
        strength: [E] f64 in [-1, 1], at least SMALLEST in size; negative strengths inhibit.
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
        is_nothing = (self.strength < SMALLEST) & (self.strength > -SMALLEST)
        if is_nothing.any():
            row = int(np.argmax(is_nothing))
            raise ValueError(
                "`strength` must not be 0 (an edge that carries nothing is none, and in f32 that is one below 2^-126), "
                f"got {self.strength[row]:g} in row {row}."
            )
        self._refuse_twins()

    @classmethod
    def trusted(cls, n_nodes: int, relations: tuple[str, ...], *columns: npt.NDArray[Any]) -> EdgeList:
        """An edge list of (source, target, strength, relation) that were checked, of the right dtypes; not copied.

        Whoever gives away arrays must not change them as long as the edge list is in use.
        """
        edges = cls.__new__(cls)
        base, need = np.ones(n_nodes), np.zeros(n_nodes, np.int32)
        names = ("source", "target", "strength", "relation", "base", "need")
        for name, column in zip(names, (*columns, base, need), strict=True):
            view = column.view()
            view.flags.writeable = False
            edges._set(name, view)
        edges._set("n_nodes", n_nodes)
        edges._set("relations", relations)
        return edges

    @property
    def n_edges(self) -> int:
        """E."""
        return len(self.source)

    def out_degree(self) -> IntArray:
        """[N] i32: edges that leave each node."""
        return ranges.counts(self.source, self.n_nodes)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _column(self, name: str, values: Any, size: int, dtype: Any, low: float, high: float) -> None:
        given = np.asarray(values)
        wanted = "numbers" if np.dtype(dtype).kind == "f" else "whole numbers"
        if given.dtype.kind not in ("iuf" if wanted == "numbers" else "iu") and given.size:
            raise TypeError(f"`{name}` must be {wanted}, got {given.dtype}.")
        if given.shape != (size,):
            raise ValueError(f"`{name}` must have shape ({size},), got {given.shape}.")
        if size and not (given.min() >= low and given.max() <= high):  # NaN is in no range
            wrong = int(np.argmin((given >= low) & (given <= high)))
            raise ValueError(f"`{name}` must be in [{low}, {high}], got {given[wrong]} in row {wrong}.")
        copied = np.array(given, dtype)
        copied.flags.writeable = False
        self._set(name, copied)

    def _refuse_twins(self) -> None:
        twins = ranges.first_twins(self.source, self.target, self.relation, self.out_degree())
        if twins is not None:
            first, second = twins
            name = self.relations[int(self.relation[first])]
            raise ValueError(
                f"an edge must stand once, but rows {first} and {second} are both {self.source[first]} -> "
                f"{self.target[first]} ({name}); add their strengths, or keep one."
            )
