"""Graphs from tables and from networkx, and back. pandas and networkx are imported only where they are used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from . import ranges, tables
from .edge_list import MAX_NODES, SMALLEST, EdgeList
from .labels import Labels
from .relations import RELATIONS, checked_relations

if TYPE_CHECKING:
    import networkx
    import pandas

Columns: TypeAlias = "EdgeList | Sequence[Any] | pandas.DataFrame | str | os.PathLike[str]"
NetworkX: TypeAlias = "networkx.Graph[Any]"
MultiNetworkX: TypeAlias = "networkx.MultiDiGraph[Any]"
Duplicates = Literal["error", "add", "last"]
Array = npt.NDArray[Any]

ROUNDING = 2.0**-24
"""Share of its parts below which a sum of strengths is 0: what f32 rounds off."""


def edge_list(
    edges: Columns,
    relations: Sequence[str] | None,
    columns: Mapping[str, str] | None,
    duplicates: Duplicates,
    scale: float | None = None,
    is_labelled: bool = False,
) -> tuple[EdgeList, Labels | None]:
    """The edges of a table, and the labels of its nodes where they are not numbers.

    Args, raises: see `MemoryGraph.from_edges`.
    """
    if duplicates not in get_args(Duplicates):
        raise ValueError(f"`duplicates` must be one of {list(get_args(Duplicates))}, got {duplicates!r}.")
    _checked_scale(scale)
    if not isinstance(is_labelled, bool):
        raise TypeError(f"`labels` must be True or False, got {is_labelled!r}.")
    if isinstance(edges, EdgeList):
        if is_labelled:
            raise ValueError("`labels` must be False for an EdgeList, whose nodes are numbers, got True.")
        if scale is not None:
            raise ValueError(f"`scale` must be None for an EdgeList, whose strengths are in [-1, 1], got {scale!r}.")
        if relations is not None and tuple(relations) != edges.relations:
            raise ValueError(f"`relations` must be those of the edge list, {edges.relations}, got {relations}.")
        return edges, None
    names = checked_relations(RELATIONS if relations is None else relations)
    table = tables.table(edges, columns, is_labelled)
    source, target, labels = _nodes(table["source"], table["target"])
    size = len(source)
    strength = _strengths(table.get("strength", np.ones(size)), scale)
    relation = _relations(table.get("relation", np.zeros(size, np.uint8)), names)
    n_nodes = 1 + int(max(source.max(initial=-1), target.max(initial=-1)))
    if ranges.first_twins(source, target, relation, ranges.counts(source, n_nodes)) is not None:
        source, target, strength, relation = _single(source, target, strength, relation, duplicates)
    return EdgeList.trusted(n_nodes, names, source, target, strength, relation), labels


def _nodes(source: Array, target: Array) -> tuple[Array, Array, Labels | None]:
    kinds = {column.dtype.kind for column in (source, target) if len(column)}
    if kinds <= set("iuf"):
        return _numbers("source", source), _numbers("target", target), None
    if not kinds <= set("OUT"):
        raise TypeError(
            f"`source` and `target` must both be numbers or both labels, got {source.dtype}, {target.dtype}; "
            "labels=True takes numbers as labels."
        )
    import pandas

    for name, column in (("source", source), ("target", target)):
        is_label = np.array([isinstance(value, str) and value != "" for value in column.tolist()], bool)
        tables.refuse(name, ~is_label, column, "a label that is not empty (or all nodes numbers)")
    both = np.stack([source.astype(object), target.astype(object)], axis=1).reshape(-1)
    numbers, labels = pandas.factorize(both)
    pairs = numbers.astype(np.int32).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1], Labels([str(label) for label in labels])


def _numbers(name: str, column: Array) -> Array:
    if len(column) and (column.dtype.kind == "f" or not (column.min() >= 0 and column.max() <= MAX_NODES - 1)):
        is_right = (column >= 0) & (column <= MAX_NODES - 1)  # NaN is in no range
        if column.dtype.kind == "f":
            is_right &= np.floor(column) == column
        tables.refuse(name, ~is_right, column, f"a node number in [0, {MAX_NODES - 1}]")
    return column.astype(np.int32, copy=False)


def _checked_scale(scale: float | None) -> None:
    if scale is None:
        return
    if isinstance(scale, bool) or not isinstance(scale, int | float | np.number):
        raise TypeError(f"`scale` must be a number, or None for strengths as they are, got {scale!r}.")
    if not 0 < scale < np.inf:
        raise ValueError(f"`scale` must be above 0 and finite, got {scale!r}; strengths are divided by it.")


def _way_out(numbers: Array, scale: float | None) -> str:
    """What brings strengths into [-1, 1], where it is their size that keeps them out."""
    largest = float(np.max(np.abs(numbers), initial=0.0))
    if not 1 < largest < np.inf:
        return ""
    return f"; scale={largest * (scale or 1.0):g} divides by the largest"


def _strengths(column: Array, scale: float | None) -> Array:
    if len(column) and column.dtype.kind not in "iuf":
        _refuse_texts(column)
    numbers = column.astype(np.float64, copy=False)
    if scale is not None:
        numbers = numbers / scale
    for begin in range(0, len(numbers), ranges.CHUNK):
        part = numbers[begin : begin + ranges.CHUNK]
        if not ((part >= -1) & (part <= 1) & (np.abs(part) >= SMALLEST)).all():
            is_right = (numbers >= -1) & (numbers <= 1) & (np.abs(numbers) >= SMALLEST)
            expected = "in [-1, 1] and not 0 in f32" + ("" if scale is None else f" after division by {scale:g}")
            tables.refuse("strength", ~is_right, column, expected, _way_out(numbers, scale))
    return numbers


def _refuse_texts(column: Array) -> None:
    """Refuse a column of strengths that are not all numbers, by the first that is none even as a text."""
    values = column.tolist()
    is_number = np.array([_is_number(value) for value in values], bool)
    if is_number.all():
        return
    reads_as_number = np.array([_reads_as_number(value) for value in values], bool)
    row = int(np.argmin(is_number if reads_as_number.all() else reads_as_number))
    raise TypeError(f"`strength` must be numbers, got {values[row]!r} in row {row}.")


def _reads_as_number(value: Any) -> bool:
    try:
        return not np.isnan(float(value))
    except (TypeError, ValueError):
        return False


def _relations(column: Array, names: tuple[str, ...]) -> Array:
    if column.dtype.kind in "iu":
        tables.refuse("relation", ~((column >= 0) & (column < len(names))), column, f"a number below {len(names)}")
        return column.astype(np.uint8)
    number = {name: place for place, name in enumerate(names)}
    found = np.array([number.get(value, -1) if isinstance(value, str) else -1 for value in column.tolist()], np.int32)
    tables.refuse("relation", found < 0, column, f"one of {list(names)}")
    return found.astype(np.uint8)


def _single(
    source: Array, target: Array, strength: Array, relation: Array, duplicates: Duplicates
) -> tuple[Array, Array, Array, Array]:
    """The columns with each edge once."""
    key = (source.astype(np.int64) << 31) | (target.astype(np.int64) << 4) | relation
    _, first, edge = np.unique(key, return_index=True, return_inverse=True)
    if duplicates == "error":
        is_again = np.ones(len(key), bool)
        is_again[first] = False
        rows = np.flatnonzero(is_again)
        raise ValueError(
            f"an edge must stand once, but {tables.rows_text(rows)} repeat one (row {rows[0]}: {source[rows[0]]} -> "
            f'{target[rows[0]]}); use duplicates="add" or duplicates="last".'
        )
    if duplicates == "add":
        parts = np.bincount(edge, np.abs(strength))
        strength = np.clip(np.bincount(edge, strength), -1.0, 1.0)
        kept = np.abs(strength) >= np.maximum(parts * ROUNDING, SMALLEST)
        first, strength = first[kept], strength[kept]
        return source[first], target[first], strength, relation[first]
    last = np.zeros(len(first), np.int64)
    last[edge] = np.arange(len(key))  # later rows overwrite earlier ones
    return source[last], target[last], strength[last], relation[last]


def from_networkx(
    graph: networkx.Graph[Any],
    relations: Sequence[str] | None,
    scale: float | None = None,
    is_labelled: bool | None = None,
) -> tuple[EdgeList, Labels | None, npt.NDArray[np.bool_]]:
    """The edges and labels of a networkx graph, and which numbers are those of nodes.

    Args, raises: see `MemoryGraph.from_networkx`.
    """
    _checked_scale(scale)
    if not hasattr(graph, "nodes") or not hasattr(graph, "edges"):
        raise TypeError(f"`graph` must be a networkx graph, got {type(graph).__name__}.")
    names = checked_relations(RELATIONS if relations is None else relations)
    number, labels, is_node = _nodes_of_networkx(list(graph.nodes), is_labelled)
    found: dict[tuple[int, int, int], float] = {}
    links: Any = graph.edges  # its calls differ by class
    triples = (
        links(keys=True, data=True) if graph.is_multigraph() else ((a, b, None, d) for a, b, d in links(data=True))
    )
    for a, b, key, data in triples:
        # networkx keys edges by whole numbers where the caller does not
        name = data.get("relation", names[0] if key is None or isinstance(key, int) else key)
        if name not in names:
            raise ValueError(
                f"`relation` (else the key) of the edge {a!r} -> {b!r} must be one of {list(names)}, got {name!r}; "
                "name others by relations=[...]."
            )
        strength = data.get("strength", data.get("weight", 1.0))
        both = ((a, b),) if graph.is_directed() or a == b else ((a, b), (b, a))
        for start, end in both:
            edge = (number[start], number[end], names.index(name))
            if edge in found:
                raise ValueError(
                    f"an edge must stand once, but {start!r} -> {end!r} ({name}) stands twice; "
                    "give its edges different relations, or make them one."
                )
            if not _is_number(strength):
                raise TypeError(f"the strength of the edge {a!r} -> {b!r} must be a number, got {strength!r}.")
            found[edge] = min(max(strength, -1e300), 1e300) if isinstance(strength, int) else strength
    base, need = is_node.astype(np.float64), np.zeros(len(is_node), np.int32)
    for node, data in graph.nodes(data=True):
        level, needed = data.get("base", 1.0), data.get("need", 0)
        if not (_is_number(level) and 0 <= level <= 1):
            raise ValueError(f"`base` of the node {node!r} must be a number in [0, 1], got {level!r}.")
        if not (isinstance(needed, int | np.integer) and not isinstance(needed, bool) and 0 <= needed < 2**31):
            raise ValueError(f"`need` of the node {node!r} must be a whole number in [0, 2^31), got {needed!r}.")
        base[number[node]], need[number[node]] = level, needed
    columns: Array = np.array(list(found), np.int64).reshape(-1, 3)
    strengths = np.array(list(found.values()), np.float64) / (1.0 if scale is None else scale)
    is_right = (np.abs(strengths) <= 1) & (np.abs(strengths) >= SMALLEST)
    if not is_right.all():
        named = {place: node for node, place in number.items()}
        start, end = (named[place] for place in columns[np.argmin(is_right), :2].tolist())
        raise ValueError(
            f"the strength (`strength`, else `weight`) of the edge {start!r} -> {end!r} must be in [-1, 1] and not 0 "
            f"in f32, got {list(found.values())[int(np.argmin(is_right))]!r}{_way_out(strengths, scale)}."
        )
    edges = EdgeList(len(is_node), columns[:, 0], columns[:, 1], strengths, columns[:, 2], base, need, names)
    return edges, labels, is_node


def _nodes_of_networkx(
    nodes: list[Any], is_labelled: bool | None
) -> tuple[dict[Any, int], Labels | None, npt.NDArray[np.bool_]]:
    """Number of each node, labels of those that have one, and which numbers are those of nodes."""
    if is_labelled is not None and not isinstance(is_labelled, bool):
        raise TypeError(f"`labels` must be True, False or None, got {is_labelled!r}.")
    numbered = [n for n in nodes if isinstance(n, int | np.integer) and not isinstance(n, bool) and not is_labelled]
    for node in numbered:
        if not 0 <= node < MAX_NODES:
            raise ValueError(
                f"a node that is a number must be in [0, {MAX_NODES - 1}], got {node}; labels=True takes "
                "numbers as labels."
            )
    is_number = set(numbered)
    texts = [node for node in nodes if node not in is_number]
    highest = max(numbered, default=-1)
    if is_labelled is None and highest >= len(nodes):
        raise ValueError(
            f"nodes that are numbers must be below the number of nodes, {len(nodes)}, got {highest}; labels=True takes "
            "numbers as labels, labels=False keeps them and counts those between as deleted nodes."
        )
    size = max(highest + 1, len(nodes))
    if not texts:
        size = highest + 1
    is_node = np.zeros(size, bool)
    is_node[np.array(numbered, np.int64)] = True
    free = np.flatnonzero(~is_node)[: len(texts)].tolist()
    number = {**{node: int(node) for node in numbered}, **dict(zip(texts, free, strict=True))}
    is_node[free] = True
    if not texts and not is_labelled:
        return number, None, is_node
    owner: dict[str, Any] = {}
    names: list[str | None] = [None] * size
    for node in texts:
        label = str(node)
        if not label or label in owner:
            twin = f", the label of {owner[label]!r} too" if label else ""
            raise ValueError(
                f"the label of the node {node!r} must be a text of its own, got {label!r}{twin}; rename it."
            )
        owner[label], names[number[node]] = node, label
    return number, Labels(names), is_node


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def to_networkx(edges: EdgeList, is_node: npt.NDArray[np.bool_], labels: Labels | None) -> networkx.MultiDiGraph[Any]:
    """The graph with its living nodes, by label where they have one."""
    import networkx

    def name(number: int) -> int | str:
        return number if labels is None else labels.label(number) or number

    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    for number in np.flatnonzero(is_node[: edges.n_nodes]).tolist():
        graph.add_node(name(number), base=float(edges.base[number]), need=int(edges.need[number]))
    columns = (edges.source.tolist(), edges.target.tolist(), edges.relation.tolist(), edges.strength.tolist())
    for source, target, relation, strength in zip(*columns, strict=True):
        kind = edges.relations[relation]
        graph.add_edge(name(source), name(target), key=kind, relation=kind, strength=strength)
    return graph
