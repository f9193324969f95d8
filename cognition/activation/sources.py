"""Where activation enters a graph: which nodes, how much, and in which round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt


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
    def of(cls, sources: Sources | Mapping[int, float] | Sequence[Any] | npt.NDArray[Any], n_nodes: int) -> Self:
        """Sources in any form in which they may be given.

        Args:
            sources: `{node: value}`; a sequence of nodes, each with value 1; a sequence of pairs (node, value) or of
                triples (node, value, round); or `Sources`. Entries of one node and round add up.
            n_nodes: nodes of the graph.

        Raises:
            TypeError, ValueError: there is none, or an entry is wrong, with its number.
        """
        entries = _entries(sources)
        if not entries:
            raise ValueError("`sources` must name at least one node, got none.")
        total: dict[tuple[int, int], float] = {}
        for number, (node, value, when) in enumerate(entries):
            _checked(number, node, value, when, n_nodes)
            key = (int(node), int(when))
            total[key] = total.get(key, 0.0) + float(value)
        nodes, rounds = zip(*total, strict=True)
        return cls(np.array(nodes, np.int32), np.array(list(total.values()), np.float64), np.array(rounds, np.int32))

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
    for entry in np.asarray(sources).tolist() if isinstance(sources, np.ndarray) else sources:
        parts = tuple(entry) if isinstance(entry, Sequence) and not isinstance(entry, str) else (entry,)
        if not 1 <= len(parts) <= 3:
            raise ValueError(
                f"an entry of `sources` must be node, (node, value) or (node, value, round), got {entry!r}."
            )
        found.append((*parts, *(1.0, 0)[len(parts) - 1 :]))
    return found


def _checked(number: int, node: Any, value: Any, when: Any, n_nodes: int) -> None:
    for name, found in (("node", node), ("round", when)):
        if isinstance(found, bool) or not isinstance(found, int | np.integer):
            raise TypeError(f"the {name} of entry {number} of `sources` must be a whole number, got {found!r}.")
    if not 0 <= node < n_nodes:
        raise ValueError(f"the node of entry {number} of `sources` must be in [0, {n_nodes}), got {node}.")
    if when < 0:
        raise ValueError(f"the round of entry {number} of `sources` must be at least 0, got {when}.")
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"the value of entry {number} of `sources` must be a number, got {value!r}.")
    if not 0 <= value < float("inf"):
        raise ValueError(f"the value of entry {number} of `sources` must be finite and at least 0, got {value}.")
