"""What callers give to a memory graph, checked and turned into columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .layout import TARGET_BITS

Column = npt.NDArray[Any]


def whole(name: str, value: Any, low: int, high: int) -> int:
    """The value as an int.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is not in [low, high].
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"`{name}` must be a whole number, got {value!r}.")
    if not low <= value <= high:
        raise ValueError(f"`{name}` must be in [{low}, {high}], got {value}.")
    return int(value)


def column(name: str, values: Any, size: int, dtype: Any, low: float, high: float) -> Column:
    """[size] of numbers in [low, high], one number standing for all.

    Raises:
        TypeError: not numbers, or not whole ones.
        ValueError: another length, or a value out of range, by its row.
    """
    given = np.asarray(values)
    is_float = np.dtype(dtype).kind == "f"
    if given.size and given.dtype.kind not in ("iuf" if is_float else "iu"):
        raise TypeError(f"`{name}` must be {'numbers' if is_float else 'whole numbers'}, got {given.dtype}.")
    if given.ndim == 0:
        given = np.broadcast_to(given, (size,))
    if given.shape != (size,):
        raise ValueError(f"`{name}` must be a number or have shape ({size},), got {given.shape}.")
    inside = (given >= low) & (given <= high)  # NaN is in no range
    if not inside.all():
        row = int(np.argmin(inside))
        raise ValueError(f"`{name}` must be in [{low:g}, {high:g}], got {given[row]} in row {row}.")
    return given.astype(dtype)


def nodes(name: str, values: Any, is_node: npt.NDArray[np.bool_]) -> Column:
    """[E] i32 of numbers of nodes.

    Raises:
        TypeError: not whole numbers.
        ValueError: a number without a node, by its row.
    """
    given = np.atleast_1d(np.asarray(values))
    if given.ndim != 1:
        raise ValueError(f"`{name}` must be a node or a sequence of nodes, got shape {given.shape}.")
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"`{name}` must be whole numbers of nodes, got {given.dtype}.")
    if given.dtype == np.int32 and given.size and given.view(np.uint32).max() < len(is_node):  # none is below 0
        known = is_node[given]
        if known.all():
            return given
    inside = (given >= 0) & (given < len(is_node))
    if not inside.all() or not is_node[given].all():
        known = inside & is_node[np.where(inside, given, 0)]
        row = int(np.argmin(known))
        raise ValueError(
            f"`{name}` must be nodes of the graph, got {given[row]} in row {row}; it was deleted or never added "
            "(see `add_nodes`)."
        )
    return given.astype(np.int32)


def relation_numbers(values: Any, size: int, relations: tuple[str, ...]) -> Column:
    """[size] i32 of relations given as names or numbers, one standing for all.

    Raises:
        TypeError, ValueError: a relation that the graph does not have, by its row.
    """
    if type(values) is int and 0 <= values < len(relations):
        return np.full(size, values, np.int32)
    given = np.asarray(values)
    if given.dtype.kind not in "UO":
        return column("relation", given, size, np.int32, 0, len(relations) - 1)
    if given.shape not in ((), (size,)):
        raise ValueError(f"`relation` must be one or have shape ({size},), got {given.shape}.")
    number = {name: place for place, name in enumerate(relations)}
    found = np.array([number.get(name, -1) for name in given.reshape(-1).tolist()], np.int32)
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        wrong = given.reshape(-1)[row : row + 1].tolist()[0]  # as Python writes it
        raise ValueError(f"`relation` must be one of {list(relations)}, got {wrong!r} in row {row}.")
    return np.broadcast_to(found.reshape(given.shape), (size,)).astype(np.int32)


def edge_columns(
    is_node: npt.NDArray[np.bool_],
    relations: tuple[str, ...],
    source: Any,
    target: Any,
    strength: Any,
    relation: Any,
) -> tuple[Column, Column, Column]:
    """([E] i32 source, [E] i32 packed key, [E] f32 strength) of edges; one node stands for as many as needed.

    Raises:
        TypeError, ValueError: a column is wrong, by its name and row.
    """
    sources, targets = nodes("source", source, is_node), nodes("target", target, is_node)
    size = max(len(sources), len(targets), np.size(strength), np.size(relation))
    if 0 in (len(sources), len(targets)):
        size = 0
    for name, found in (("source", sources), ("target", targets)):
        if len(found) not in (1, size):
            raise ValueError(f"`{name}` must have one entry per edge, {size}, got {len(found)}.")
    if len(sources) != len(targets) or len(sources) != size:
        sources, targets = np.broadcast_to(sources, (size,)), np.broadcast_to(targets, (size,))
    strengths = column("strength", strength, size, np.float32, -1, 1)
    keys = targets | (relation_numbers(relation, size, relations) << TARGET_BITS)
    return sources, keys, strengths
