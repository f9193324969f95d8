"""Tables of edges: columns, rows, data frames and files, read into named columns.

pandas is imported only where it is used; pyarrow, which pandas needs for Parquet, is optional.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

NAMES = ("source", "target", "strength", "relation")
WEIGHT = "weight"  # read as strength where there is no column of that name
SHOWN = 5  # wrong rows that an error lists


def table(edges: Any, columns: Mapping[str, str] | None, is_labelled: bool) -> dict[str, Array]:
    """Columns of a table by their names in `NAMES`, as many as it has.

    Args:
        edges: columns, rows, a data frame or a path; see `MemoryGraph.from_edges`.
        columns: see there.
        is_labelled: whether nodes are labels, also where they look like numbers.

    Raises:
        TypeError, ValueError: no table, or not one of edges.
    """
    wanted = {name: name for name in NAMES}
    for name, column in (columns or {}).items():
        if name not in wanted:
            raise ValueError(f"`columns` must name columns for {list(NAMES)}, got {name!r}.")
        wanted[name] = column
    what = "`edges`"
    if isinstance(edges, str | os.PathLike):
        what = str(edges)
        edges = _file(Path(edges), (wanted["source"], wanted["target"]) if is_labelled else ())
    if hasattr(edges, "columns"):
        found = _columns_of_frame(what, edges, wanted, {"source", "target", *(columns or {})})
    else:
        found = {name: _column(name, column) for name, column in zip(NAMES, _columns(edges), strict=False)}
    for name, values in found.items():
        if values.ndim != 1:
            raise ValueError(f"`{name}` must be a column, of shape (E,), got shape {values.shape}.")
        if len(values) != len(found["source"]):
            raise ValueError(f"`{name}` must have shape ({len(found['source'])},), got {values.shape}.")
    if is_labelled:
        for name in ("source", "target"):
            found[name] = _as_labels(name, found[name])
    return found


def refuse(name: str, is_wrong: Array, column: Array, expected: str, way_out: str = "") -> None:
    """Raise ValueError with the first wrong rows of a column, if there are any."""
    if is_wrong.any():
        rows = np.flatnonzero(is_wrong)
        found = ", ".join(repr(value) for value in column[rows[:SHOWN]].tolist())
        raise ValueError(f"`{name}` must be {expected}, got {found} in {rows_text(rows)}{way_out}.")


def rows_text(rows: Array) -> str:
    """The numbers of the first of some rows, as an error lists them."""
    shown = ", ".join(str(row) for row in rows[:SHOWN])
    more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"


def _columns_of_frame(what: str, frame: Any, wanted: dict[str, str], required: set[str]) -> dict[str, Array]:
    present = list(frame.columns)
    for name in NAMES:
        if name in required and wanted[name] not in present:
            raise ValueError(
                f"{what} must have a column {wanted[name]!r}, got {present}; "
                f"say which it is by columns={{{name!r}: ...}}."
            )
    if wanted["strength"] not in present and WEIGHT in present and WEIGHT not in wanted.values():
        wanted = {**wanted, "strength": WEIGHT}
    unread = [column for column in present if column not in wanted.values()]
    if unread:
        read = [column for column in wanted.values() if column in present]
        raise ValueError(
            f"{what} must have no columns but those that are read, {read}, got also {unread}; say what they are by "
            f"columns={{...: {unread[0]!r}}}, or leave them out: frame[{read}]."
        )
    return {name: frame[column].to_numpy() for name, column in wanted.items() if column in present}


def _columns(edges: object) -> Sequence[Any]:
    """The columns: those of a tuple, or of a list of arrays; rows of a list are turned into columns."""
    expected = (
        "`edges` must be an EdgeList, columns (source, target[, strength[, relation]]), a list of such rows, a pandas "
        "DataFrame or a path"
    )
    if isinstance(edges, np.ndarray) or not isinstance(edges, Sequence):
        way_out = ""
        if hasattr(edges, "edges"):
            way_out = "; use `from_networkx`"
        elif isinstance(edges, np.ndarray):
            way_out = "; give the rows of an array as tuple(array.T)"
        raise TypeError(f"{expected}, got {type(edges).__name__}{way_out}.")
    if isinstance(edges, list) and all(isinstance(row, tuple | list) for row in edges):
        sizes = [len(row) for row in edges]
        is_rows = all(2 <= size <= 4 for size in sizes[:1]) and len(set(sizes)) <= 1
        if len(edges) not in (2, 3, 4):
            for row, size in enumerate(sizes):
                if not 2 <= size <= 4 or size != sizes[0]:
                    raise ValueError(
                        "`edges` must have rows (source, target[, strength[, relation]]) of one length, "
                        f"got {edges[row]!r} in row {row}."
                    )
            return list(zip(*edges, strict=True)) or [(), ()]
        if is_rows:
            raise ValueError(
                f"`edges` must say whether {len(edges)} sequences of {sizes[0]} are columns or rows; "
                "give a tuple of columns, for rows tuple(zip(*rows))."
            )
    if not 2 <= len(edges) <= 4:
        raise TypeError(f"{expected}, got {type(edges).__name__} of {len(edges)}.")
    return edges


def _column(name: str, values: Any) -> Array:
    """The column; numbers among texts stay numbers, to be refused, where NumPy would make texts of them."""
    try:
        given = np.asarray(values)
    except ValueError as error:  # sequences of several lengths
        raise ValueError(f"`{name}` must be a column, of shape (E,), got {values!r:.80}.") from error
    if given.dtype.kind == "U" and isinstance(values, tuple | list):
        if not all(isinstance(value, str) for value in values):
            return np.array(values, object)
    return given


def _as_labels(name: str, column: Array) -> Array:
    """[E] object: whole numbers as their digits, texts as they are."""
    is_right = np.array([isinstance(v, str | int) and not isinstance(v, bool) for v in column.tolist()], bool)
    refuse(name, ~is_right, column, "labels, as texts or whole numbers")
    return np.array([str(value) for value in column.tolist()], object)


def _file(path: Path, labels: Sequence[str]) -> Any:
    """The data frame of a file; `labels` are columns that are read as texts."""
    import pandas

    expected = "a .csv or .parquet file with columns source, target[, strength[, relation]]"
    if not path.is_file():
        raise FileNotFoundError(f"`edges` names {path}, which does not exist; give the path of {expected}.")
    match path.suffix.lower():
        case ".csv":
            try:
                return _csv(path, labels)
            except (pandas.errors.EmptyDataError, UnicodeDecodeError) as error:
                raise ValueError(f"{path} must be {expected} in UTF-8: {error}.") from error
        case ".parquet":
            try:
                return pandas.read_parquet(path)
            except ImportError as error:
                raise ImportError(
                    f"{path} is a Parquet file, which needs pyarrow: `pip install pyarrow`, or give a CSV."
                ) from error
    raise ValueError(f"`edges` must name a .csv or .parquet file, got {path}.")


def _csv(path: Path, labels: Sequence[str]) -> Any:
    import pandas

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            # words such as NA and null are labels; a first column is no index
            frame = pandas.read_csv(path, keep_default_na=False, index_col=False, dtype=dict.fromkeys(labels, str))
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        raise ValueError(f"{path} must have as many fields in each row as in its head{_odd_row(path)}.") from error
    for name, column in frame.items():
        if column.dtype.kind not in "biuf":  # one of numbers has no empty fields
            values = column.to_numpy(object)
            is_empty = np.array([not isinstance(value, str) or value == "" for value in values], bool)
            refuse(str(name), is_empty, values, f"filled in {path}")
    return frame


def _odd_row(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        head = next(rows, [])
        for row, fields in enumerate(fields for fields in rows if fields):
            if len(fields) > len(head):
                return f", {len(head)}, got {len(fields)} in row {row}: {','.join(fields)}"
    return ""
