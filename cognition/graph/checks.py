"""What callers give to a memory graph, checked and turned into columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from .labels import Labels
from .layout import TARGET_BITS, GraphArrays
from .relations import MAX_RELATIONS, OTHERS

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


def nodes(name: str, values: Any, is_node: npt.NDArray[np.bool_], labels: Labels | None) -> Column:
    """[E] i32 of numbers of nodes, given as numbers or labels.

    Raises:
        TypeError: neither whole numbers nor labels.
        ValueError: a number or label without a node, by its row.
    """
    try:
        given = np.atleast_1d(np.asarray(values))
    except ValueError as error:  # sequences of several lengths
        raise ValueError(f"`{name}` must be a node or a sequence of nodes, got {values!r:.80}.") from error
    if given.ndim != 1:
        raise ValueError(f"`{name}` must be a node or a sequence of nodes, got shape {given.shape}.")
    if not given.size:
        return np.zeros(0, np.int32)
    if given.dtype.kind in "OUT":
        given = _numbered(name, list(values) if np.ndim(values) else [values], labels)
    if given.dtype.kind not in "iu":
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


def _numbered(name: str, values: list[Any], labels: Labels | None) -> Column:
    """[E] i64 of numbers, some of which are given as labels."""
    numbers: list[int] = []
    for row, value in enumerate(values):
        if isinstance(value, str):
            if labels is None:
                raise ValueError(
                    f"`{name}` must be numbers of nodes, got {value!r} in row {row}; this graph has no labels."
                )
            numbers.append(labels.number(str(value), f" (`{name}` in row {row})"))
        elif isinstance(value, int | np.integer) and not isinstance(value, bool):
            numbers.append(min(max(int(value), -1), 2**31))  # what is beyond is no node either
        else:
            raise TypeError(f"`{name}` must be numbers or labels of nodes, got {value!r} in row {row}.")
    return np.array(numbers, np.int64)


def factors(factor: float | Mapping[str, float], relations: tuple[str, ...]) -> Any:
    """What strengths are multiplied by: f32, or [MAX_RELATIONS] f32 by number of the relation.

    Raises:
        TypeError, ValueError: a factor is not in [0, 1], or of no relation of the graph.
    """
    if not isinstance(factor, Mapping):
        return column("factor", factor, 1, np.float32, 0, 1)[0]
    given = {name: column(f"factor[{name!r}]", value, 1, np.float32, 0, 1)[0] for name, value in factor.items()}
    found = np.full(MAX_RELATIONS, given.get(OTHERS, 1), np.float32)
    for name, value in given.items():
        if name != OTHERS or OTHERS in relations:
            found[relation_numbers(name, 1, relations)[0]] = value
    return found


def arrays_like(arrays: GraphArrays, expected: GraphArrays, n_nodes: int) -> None:
    """Refuse arrays that are not those of a graph of these sizes.

    Raises:
        TypeError: no `GraphArrays` of JAX arrays.
        ValueError: used up, or of other dtypes, sizes or nodes.
    """
    if not isinstance(arrays, GraphArrays):
        raise TypeError(f"`arrays` must be GraphArrays, got {type(arrays).__name__}.")
    for name, given, held in zip(GraphArrays._fields, arrays, expected, strict=True):
        if not isinstance(given, jax.Array):
            raise TypeError(f"`arrays.{name}` must be a JAX array, got {type(given).__name__}.")
        if (given.dtype, given.shape) != (held.dtype, held.shape):
            raise ValueError(
                f"`arrays` must have the shapes of this graph's: `{name}` is {held.dtype}{list(held.shape)}, "
                f"got {given.dtype}{list(given.shape)}."
            )
        if given.is_deleted():
            raise ValueError(f"`arrays.{name}` was used up by an edit; give the arrays that came out of it.")
    if int(arrays.n_nodes) != n_nodes:
        raise ValueError(f"`arrays` must have the nodes of this graph, {n_nodes}, got {int(arrays.n_nodes)}.")


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
    labels: Labels | None,
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
    sources, targets = nodes("source", source, is_node, labels), nodes("target", target, is_node, labels)
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
