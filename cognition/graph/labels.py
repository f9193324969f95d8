"""Names of nodes: each at most once, found in both directions."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class Labels:
    """Which node has which label.

    Args:
        names: label of node 0, 1, ...; None where it has none.
    """

    def __init__(self, names: Sequence[str | None] = ()) -> None:
        self._name = {number: name for number, name in enumerate(names) if name is not None}
        self._number = {name: number for number, name in self._name.items()}

    def number(self, label: str, where: str = "") -> int:
        """Number of the node with a label.

        Args:
            label: of the node.
            where: what an error says of the place in which the label stands.

        Raises:
            ValueError: there is none; near ones are named.
        """
        if label not in self._number:
            near = difflib.get_close_matches(label, list(self._number)[:10_000], 3)
            hint = f"near ones are {near}" if near else "see `labels`"
            raise ValueError(f"no node has the label {label!r}{where}; {hint}.")
        return self._number[label]

    def label(self, number: int) -> str | None:
        """Label of a node, None if it has none."""
        return self._name.get(number)

    def column(self, n_nodes: int) -> list[str | None]:
        """[n_nodes] labels."""
        return [self._name.get(number) for number in range(n_nodes)]

    def checked(self, labels: Sequence[str], n: int) -> list[str]:
        """The labels, which `n` new nodes may take.

        Raises:
            TypeError, ValueError: another number of them, or one that is empty or not new.
        """
        if isinstance(labels, str):
            raise TypeError(f"`labels` must be a sequence of labels, got the text {labels!r}.")
        names = list(labels)
        if len(names) != n:
            raise ValueError(f"`labels` must have one label per node, {n}, got {len(names)}.")
        seen: set[str] = set()
        for place, name in enumerate(names):
            if not isinstance(name, str) or not name:
                raise TypeError(f"`labels` must be texts that are not empty, got {name!r} in place {place}.")
            if name in self._number or name in seen:
                raise ValueError(f"`labels` must be new to the graph and differ, got {name!r} in place {place}.")
            seen.add(name)
        return names

    def give(self, numbers: Sequence[int], names: Sequence[str]) -> None:
        """Give labels that were checked."""
        for number, name in zip(numbers, names, strict=True):
            self._name[number] = name
            self._number[name] = number

    def take(self, numbers: Sequence[int]) -> None:
        """Take the labels of nodes away."""
        for number in numbers:
            if (name := self._name.pop(number, None)) is not None:
                del self._number[name]
