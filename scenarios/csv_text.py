"""Strict reading of a CSV file: every cell is text, every row is whole, every row number is right.

A data frame reader guesses types, fills short rows and renames equal columns. Each guess hides a mistake in somebody's
data, so the file is read here cell by cell.
"""

from __future__ import annotations

import csv
import io
import pathlib
from collections import Counter

from .errors import TableError

Columns = dict[str, list[str]]

_DELIMITERS = (",", ";", "\t", "|")


def read_csv(path: pathlib.Path, delimiter: str, file: str) -> Columns:
    """Reads a CSV file with a header.

    Args:
        path: the file, UTF-8, with or without a byte order mark.
        delimiter: character between columns; quoting with `"`.
        file: its name, for messages.

    Returns:
        Column name -> one stripped text a data row. Empty lines at the end are no rows.

    Raises:
        TableError: not UTF-8, no header, no data row, equal or empty column names, or a row of another length.
    """
    text = _decoded(path.read_bytes(), file)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for row in reader:
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        problem = f'expected cells in closed quotes "...", but near line {reader.line_num}: {error}.'
        raise TableError(file, problem, row=max(len(rows), 1)) from error
    while rows and not any(cell.strip() for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise TableError(file, "the table is empty; expected a header with the column names and one row an applicant.")
    header = [name.strip() for name in rows[0]]
    _check_header(header, file, delimiter)
    if len(rows) == 1:
        raise TableError(file, "the table has a header but no data row; expected one row an applicant.")
    for number, row in enumerate(rows[1:], 1):
        if len(row) != len(header):
            problem = (
                f"expected {len(header)} cells as in the header, got {len(row)} (line {lines[number]} of the file)"
            )
            blank = (
                "; delete the empty line." if not any(row) else f'; a cell that holds `{delimiter}` needs quotes "...".'
            )
            raise TableError(file, problem + blank, row=number)
    return {
        name: [cell.strip() for cell in cells] for name, cells in zip(header, zip(*rows[1:], strict=True), strict=True)
    }


def _decoded(data: bytes, file: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(file, "expected UTF-8 text, but byte 0 starts UTF-16; save the file as CSV UTF-8.")
    if data.startswith(b"PK\x03\x04"):
        raise TableError(
            file, "expected CSV text, but byte 0 starts a spreadsheet or archive; save the sheet as CSV UTF-8."
        )
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TableError(
            file,
            f"expected UTF-8 text, but byte 0x{data[error.start]:02x} at position {error.start} (line {line}) is not; "
            "save the file as CSV UTF-8, or convert it, e.g. `iconv -f latin1 -t utf-8`.",
        ) from error


def _check_header(header: list[str], file: str, delimiter: str) -> None:
    for place, name in enumerate(header, 1):
        if not name and place > 1:  # a first column without a name holds the row names that R and pandas write
            raise TableError(file, f"expected a name for column {place} of {len(header)} in the header, got none.")
    for name, count in Counter(header).items():
        if count > 1:
            places = [place for place, other in enumerate(header, 1) if other == name]
            problem = (
                f"expected different column names, got this one {count} times (columns {places}); rename one of them."
            )
            raise TableError(file, problem, column=name)
    if len(header) == 1:
        for other in _DELIMITERS:
            if other != delimiter and other in header[0]:
                shown = "\\t" if other == "\t" else other
                raise TableError(
                    file,
                    f"expected columns separated by `{delimiter}`, got the single column `{header[0]}`; "
                    f'put `delimiter: "{shown}"` into the YAML.',
                )
