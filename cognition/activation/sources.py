"""Where activation enters a graph: which nodes, how much, and in which round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

LARGEST_VALUE = 1e30
LARGEST_ROUND = 10_000


class Sources(NamedTuple):
    """Injections of activation. F entries; those of node -1 are padding.

    Attributes:
        nodes: [F] i32, node numbers, -1 = none.
        values: [F] f64 >= 0, activation injected.
        rounds: [F] i32 >= 0, round after which it is injected; 0 = before the first.
    """

    nodes: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    rounds: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls,
        sources: Sources | Mapping[int, float] | Sequence[Any] | npt.NDArray[Any],
        n_nodes: int,
        *,
        rounds: int = LARGEST_ROUND,
        is_node: npt.NDArray[np.bool_] | None = None,
    ) -> Self:
        """Sources in any form in which they may be given.

        Args:
            sources: `{node: value}`; a sequence of nodes, each with value 1; a sequence of pairs (node, value) or of
                triples (node, value, round); or `Sources`. Entries of one node and round add up.
            n_nodes: nodes of the graph.
            rounds: rounds that the rule makes; nothing can be injected later.
            is_node: [n_nodes] bool, False for deleted nodes; None = there are none.

        Raises:
            TypeError, ValueError: there is none, or an entry is wrong, with its number.
        """
        entries = _entries(sources)
        if not entries:
            raise ValueError("`sources` must name at least one node, got none.")
        total: dict[tuple[int, int], float] = {}
        for number, (node, value, when) in enumerate(entries):
            _checked(number, node, value, when, n_nodes, rounds)
            if is_node is not None and not is_node[node]:
                raise ValueError(
                    f"the node of entry {number} of `sources` must be in the graph, but {node} was deleted."
                )
            key = (int(node), int(when))
            total[key] = total.get(key, 0.0) + float(value)
        nodes, times = zip(*total, strict=True)
        return cls(np.array(nodes, np.int32), np.array(list(total.values()), np.float64), np.array(times, np.int32))

    def padded(self, size: int) -> Sources:
        """The same with empty entries up to `size`."""
        missing = (0, size - len(self.nodes))
        return Sources(
            np.pad(self.nodes, missing, constant_values=-1), np.pad(self.values, missing), np.pad(self.rounds, missing)
        )


def _entries(sources: Any) -> list[tuple[Any, Any, Any]]:
    if isinstance(sources, Sources):
        return [entry for entry in zip(*(np.asarray(part).tolist() for part in sources), strict=True) if entry[0] != -1]
    if isinstance(sources, Mapping):
        return [(node, value, 0) for node, value in sources.items()]
    if isinstance(sources, str) or not isinstance(sources, Sequence | np.ndarray):
        raise TypeError(f"`sources` must be a mapping of nodes to values or a sequence, got {type(sources).__name__}.")
    found: list[tuple[Any, Any, Any]] = []
    for entry in _listed(sources) if isinstance(sources, np.ndarray) else sources:
        parts = tuple(entry) if isinstance(entry, Sequence) and not isinstance(entry, str) else (entry,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(
                f"an entry of `sources` must be node, (node, value) or (node, value, round), got {entry!r}."
            )
        found.append((*parts, *(1.0, 0)[len(parts) - 1 :]))
    return found


def _listed(array: npt.NDArray[Any]) -> list[Any]:
    """Entries of an array, whose whole numbers are floats where its values are."""
    if array.ndim < 2 or array.dtype.kind != "f":
        found: list[Any] = array.tolist()
        return found
    return [[int(x) if at != 1 and x.is_integer() else x for at, x in enumerate(row)] for row in array.tolist()]


def _checked(number: int, node: Any, value: Any, when: Any, n_nodes: int, rounds: int) -> None:
    for name, found in (("node", node), ("round", when)):
        if isinstance(found, str):
            raise TypeError(
                f"the {name} of entry {number} of `sources` must be a whole number, got {found!r}; `graph.node` has "
                "the number of a label."
            )
        if isinstance(found, bool) or not isinstance(found, int | np.integer):
            raise TypeError(f"the {name} of entry {number} of `sources` must be a whole number, got {found!r}.")
    if not 0 <= node < n_nodes:
        raise ValueError(f"the node of entry {number} of `sources` must be in [0, {n_nodes}), got {node}.")
    if not 0 <= when <= rounds:
        raise ValueError(
            f"the round of entry {number} of `sources` must be in [0, {rounds}], the rounds of the rule, got {when}."
        )
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"the value of entry {number} of `sources` must be a number, got {value!r}.")
    if not 0 <= value <= LARGEST_VALUE:
        raise ValueError(f"the value of entry {number} of `sources` must be in [0, {LARGEST_VALUE:g}], got {value}.")
