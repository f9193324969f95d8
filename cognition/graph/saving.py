"""Memory graphs on disk, in the zip of `cognition.persistence`: a header with the SHA-256 of every array, no pickle.

What is stored is what the graph is, not how its arrays came to lie: edges by (source, target, relation), so that equal
graphs give equal bytes and a graph loads into any capacity.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import persistence
from ..errors import DamagedFileError, MismatchError, NewerFileError
from . import checks
from .edge_list import EdgeList
from .labels import Labels

KIND = "memory graph"
FORMAT = 1
COLUMNS = {
    "source": np.int32,
    "target": np.int32,
    "strength": np.float32,
    "relation": np.uint8,
    "base": np.float32,
    "need": np.int32,
    "is_node": np.bool_,
}
TEXT, ENDS = "labels", "label_ends"  # all labels as one UTF-8 text, and where each ends in it


class Saved(NamedTuple):
    """What a file holds.

    Attributes:
        edges: the graph; deleted nodes stand in it without edges.
        is_node: [N] whether a number is that of a living node.
        row: K.
        labels: of the nodes, None for a graph without.
    """

    edges: EdgeList
    is_node: npt.NDArray[np.bool_]
    row: int
    labels: Labels | None


def write(path: str | os.PathLike[str], saved: Saved) -> Path:
    """Write a graph. The file appears whole or not at all.

    Raises:
        FileNotFoundError, IsADirectoryError: see `persistence.write`.
    """
    edges = saved.edges
    arrays: dict[str, npt.NDArray[Any]] = {
        name: np.asarray(saved.is_node if name == "is_node" else getattr(edges, name), dtype)
        for name, dtype in COLUMNS.items()
    }
    if saved.labels is not None:
        encoded = [(label or "").encode() for label in saved.labels.column(edges.n_nodes)]
        arrays[TEXT] = np.frombuffer(b"".join(encoded), np.uint8)
        arrays[ENDS] = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    header = {
        "kind": KIND,
        "format": FORMAT,
        "row": saved.row,
        "relations": list(edges.relations),
        "n_nodes": edges.n_nodes,
        "n_edges": edges.n_edges,
        "has_labels": saved.labels is not None,
    }
    return persistence.write(path, header, arrays)


def read(path: str | os.PathLike[str]) -> Saved:
    """Read a graph.

    Raises:
        FileNotFoundError: no such file.
        DamagedFileError: not what was written.
        NewerFileError: written in a newer format.
        MismatchError: a sound file that holds something else.
    """
    header, arrays = persistence.read(path)
    if header.get("kind") != KIND:
        raise MismatchError(f"{path} holds no memory graph but {header.get('kind', 'a memory of another kind')!r}.")
    if type(header.get("format")) is not int or header["format"] < 1:
        raise DamagedFileError(f"{path} is damaged: `format` must be a whole number, got {header.get('format')!r}.")
    if header["format"] > FORMAT:
        raise NewerFileError(
            f"{path} holds a graph of format {header['format']}, this version of habitus reads up to {FORMAT}; "
            "update habitus, or save the graph with the older version."
        )
    try:
        return _saved(header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, UnicodeDecodeError) as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from error


def _saved(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Saved:
    for name, dtype in COLUMNS.items():
        if arrays[name].dtype != dtype:
            raise TypeError(f"`{name}` must be {np.dtype(dtype)}, got {arrays[name].dtype}.")
    known = {*COLUMNS, TEXT, ENDS} if header["has_labels"] else set(COLUMNS)
    if set(arrays) != known:
        raise ValueError(f"it must hold {sorted(known)}, got {sorted(arrays)}.")
    columns = {name: arrays[name] for name in COLUMNS if name != "is_node"}
    edges = EdgeList(header["n_nodes"], **columns, relations=tuple(header["relations"]))
    is_node = arrays["is_node"]
    if edges.n_edges != header["n_edges"] or is_node.shape != (edges.n_nodes,):
        raise ValueError(f"the header counts {header['n_edges']} edges, the columns have {edges.n_edges}.")
    labels = None
    if header["has_labels"]:
        text, ends = arrays[TEXT].tobytes(), arrays[ENDS].tolist()
        names = [text[begin:end].decode() for begin, end in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
        labels = Labels([name or None for name in names])
        if len(ends) != edges.n_nodes:
            raise ValueError(f"`{ENDS}` must have one entry per node, {edges.n_nodes}, got {len(ends)}.")
    row = checks.whole("row", header["row"], 1, 1024)
    return Saved(edges, is_node, row, labels)
