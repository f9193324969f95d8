"""One column of text at a time: from cells to codes, numbers and fields, or a refusal that names the cell."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ..envs.contract import Field
from ..envs.credit_review.applicants import HIDDEN, MISSING
from .errors import TableError
from .rules import near

MISSING_TEXTS = ("", "na", "n/a", "nan", "null", "missing", "?", ".")
"""Cells that hold no value, whatever their case; a description can add more under `missing`."""

MAX_LEVELS = 12
"""Labels of a category field; beyond them the rarest share `OTHER`."""
MIN_LEVEL_SHARE = 0.01
"""Share of the rows below which a label, or a bin, is rare."""
OTHER = "other"
"""Label that rare levels share."""

N_BINS = 8  # 4 to 12 quantile bins are equal within noise for the learners


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table as it was read.

    Attributes:
        file: the table, for messages.
        name: name of the column.
        cells: one text a row.
        missing_texts: lower-case texts that stand for no value.
    """

    file: str
    name: str
    cells: Sequence[str]
    missing_texts: frozenset[str]

    def missing(self) -> NDArray[np.bool_]:
        """[N] bool, where there is no value."""
        return np.array([cell.lower() in self.missing_texts for cell in self.cells], bool)

    def refuse(self, rows: Sequence[int], problem: str) -> TableError:
        """Error about the first of some rows (counted from 0); says how many there are."""
        more = len(rows) - 1
        if more:
            problem += f" The same holds for {more} more row{'s' if more > 1 else ''}."
        return TableError(self.file, problem, column=self.name, row=int(rows[0]) + 1)

    def refuse_all(self, problem: str) -> TableError:
        """Error about the column as a whole."""
        return TableError(self.file, problem, column=self.name)


def read_numbers(column: Column) -> NDArray[np.float64]:
    """[N] f64 of a numeric column, NaN where there is no value.

    Raises:
        TableError: a cell is no number, or is infinite as a 32-bit number.
    """
    numbers = np.full(len(column.cells), np.nan)
    is_missing = column.missing()
    no_value = {float(text) for text in column.missing_texts if _is_number(text)}  # -9 is also written -9.0
    wrong: list[int] = []
    for row, cell in enumerate(column.cells):
        if is_missing[row]:
            continue
        try:
            number = float(cell)
        except ValueError:
            wrong.append(row)
        else:
            if number in no_value:
                is_missing[row] = True
                continue
            numbers[row] = number
            if "_" in cell:  # Python reads 1_000, nobody else does
                wrong.append(row)
    if wrong:
        raise column.refuse(
            wrong,
            f"expected a number, got {column.cells[wrong[0]]!r}; write it with a decimal point and without thousands "
            "separators or units, list the text under `missing` if it stands for no value, or list the column under "
            "`categorical`.",
        )
    with np.errstate(over="ignore"):
        infinite = np.flatnonzero(np.isinf(numbers.astype(np.float32)) | (np.isnan(numbers) & ~is_missing))
    if infinite.size:
        found = repr(column.cells[infinite[0]])
        problem = f"expected a finite 32-bit number, got {found}; leave the cell empty if the value is unknown."
        raise column.refuse(list(infinite), problem)
    return numbers


def number_field(
    column: Column, *, unit: str, is_document: bool
) -> tuple[Field, NDArray[np.float32], NDArray[np.bool_]]:
    """A numeric column as an observed field.

    Args:
        column: the column.
        unit: unit of its numbers.
        is_document: whether an applicant can withhold it.

    Returns:
        The field; [N] f32 numbers, the field's fill (the median) where missing; [N] bool, where missing.

    Raises:
        TableError: as in `read_numbers`; or all known values are equal.
    """
    numbers = read_numbers(column).astype(np.float32)
    missing = np.isnan(numbers)
    known = numbers[~missing]
    values = np.unique(known)
    if len(values) < 2:
        found = f"only {values[0]:g}" if len(values) else "no value at all"
        raise column.refuse_all(
            f"expected at least two different numbers, got {found}; leave the column out of the YAML."
        )
    fill = float(np.float32(np.median(known)))
    field = Field(
        name=column.name,
        low=float(values[0]),
        high=float(values[-1]),
        unit=unit,
        edges=quantile_edges(known),
        fill=fill,
        status=f"{column.name}_status" if is_document or missing.any() else None,
    )
    return field, np.where(missing, np.float32(fill), numbers).astype(np.float32), missing


def quantile_edges(known: NDArray[np.float32], n_bins: int = N_BINS) -> tuple[float, ...]:
    """Inner edges of bins that hold about equal numbers of rows.

    A bin is [edge, next edge), and every edge is a value that occurs, so that equal values are never parted and no bin
    is empty. For each quantile k / `n_bins` the value is taken whose share of smaller rows is nearest to it; where many
    rows are equal, several quantiles lead to one edge and there are fewer bins. An edge that would leave less than
    `MIN_LEVEL_SHARE` of the rows in a bin is dropped, unless it is the only one: two different values always give an
    edge.

    Args:
        known: [N] f32 numbers, at least two of them different.
        n_bins: number of bins without ties.

    Returns:
        1 to `n_bins` - 1 ascending numbers, exactly representable as float32.
    """
    values, counts = np.unique(known, return_counts=True)
    share_below = np.cumsum(counts)[:-1] / len(known)  # of values[1:]
    nearest = sorted({int(np.abs(share_below - k / n_bins).argmin()) for k in range(1, n_bins)})
    kept: list[int] = []
    start = 0.0
    for i in nearest:
        if share_below[i] - start >= MIN_LEVEL_SHARE and 1.0 - share_below[i] >= MIN_LEVEL_SHARE:
            kept.append(i)
            start = float(share_below[i])
    kept = kept or [max(nearest, key=lambda i: min(float(share_below[i]), 1.0 - float(share_below[i])))]
    return tuple(float(values[i + 1]) for i in kept)


def category_field(
    column: Column, *, declared: dict[str, str] | None, is_document: bool
) -> tuple[Field, NDArray[np.int32]]:
    """A categorical column as an observed field.

    Without declared labels, levels are sorted (numbers by size, then texts), and rare ones are merged: where more than
    `MAX_LEVELS` levels occur, or several hold less than `MIN_LEVEL_SHARE` of the rows, the `MAX_LEVELS` - 1 most
    frequent that are not rare keep their name and the rest becomes `OTHER`. One rare level alone keeps its name.

    Args:
        column: the column.
        declared: value in the file -> label; then no other value may occur and nothing is merged.
        is_document: whether an applicant can withhold it.

    Returns:
        The field, with the label `MISSING` if some row has no value and `HIDDEN` if it can be withheld; [N] i32 codes.

    Raises:
        TableError: an undeclared or reserved label, a single value, or no level that is frequent enough.
    """
    missing = column.missing()
    cells = list(column.cells)
    if declared is not None:
        label_of, labels = dict(declared), list(dict.fromkeys(declared.values()))
        unknown = [row for row, cell in enumerate(cells) if not missing[row] and cell not in declared]
        if unknown:
            problem = f"expected a value that `labels` declares ({', '.join(declared)}), got {cells[unknown[0]]!r}"
            raise column.refuse(
                unknown, problem + f"{near(cells[unknown[0]], declared)}; add it there or mend the cell."
            )
    else:
        label_of, labels = _merged(Counter(cell for cell, gone in zip(cells, missing, strict=True) if not gone), column)
    occurring = {label_of[cell] for cell, gone in zip(cells, missing, strict=True) if not gone}
    if len(occurring) + bool(missing.any()) < 2 or not occurring:
        found = f"only {occurring.pop()!r}" if occurring else "no value at all"
        raise column.refuse_all(
            f"expected at least two different values, got {found}; leave the column out of the YAML."
        )
    if reserved := [label for label in labels if label in (MISSING, HIDDEN)]:
        rows = [row for row, cell in enumerate(cells) if not missing[row] and label_of[cell] == reserved[0]]
        problem = (
            f"the label {reserved[0]!r} is kept for what an applicant did not say or show; rename it under `labels`."
        )
        raise column.refuse(rows or [0], problem)
    labels += [MISSING] if missing.any() else []
    code_of = {label: code for code, label in enumerate(labels)}
    codes = [code_of[MISSING if gone else label_of[cell]] for cell, gone in zip(cells, missing, strict=True)]
    labels += [HIDDEN] if is_document else []
    return Field(name=column.name, labels=tuple(labels)), np.array(codes, np.int32)


def _merged(counts: Counter[str], column: Column) -> tuple[dict[str, str], list[str]]:
    """Level -> label, and the labels in order; see `category_field` for the rule."""
    levels = sorted(counts, key=_natural)
    rare = {level for level in levels if counts[level] < MIN_LEVEL_SHARE * len(column.cells)}
    if len(levels) <= MAX_LEVELS and len(rare) <= 1:
        return {level: level for level in levels}, levels
    frequent = sorted(
        (level for level in levels if level not in rare), key=lambda level: (-counts[level], _natural(level))
    )
    kept = set(frequent[: MAX_LEVELS - 1])
    if not kept:
        raise column.refuse_all(
            f"expected categories, got {len(levels)} different values, none in {MIN_LEVEL_SHARE:.0%} of the rows; list"
            " the column under `numeric` or as `id`, or merge its values under `labels`."
        )
    label_of = {level: level if level in kept else OTHER for level in levels}
    return label_of, [level for level in levels if level in kept and level != OTHER] + [OTHER]


def _natural(level: str) -> tuple[int, float, str]:
    try:
        return 0, float(level), level
    except ValueError:
        return 1, 0.0, level


def outcomes(column: Column, good: Collection[str], bad: Collection[str]) -> NDArray[np.bool_]:
    """[N] bool, where the outcome is bad.

    Args:
        column: the outcome column.
        good: labels of a good outcome.
        bad: labels of a bad outcome; empty = the only other label that occurs.

    Raises:
        TableError: no outcome in some row, an unknown label, or one class only.
    """
    missing = column.missing() & ~np.array([cell in good or cell in bad for cell in column.cells], bool)
    if missing.any():
        cell = repr(column.cells[int(missing.argmax())])
        problem = f"expected an outcome, got {cell}; leave applicants without an outcome out."
        raise column.refuse(list(np.flatnonzero(missing)), problem)
    found = sorted(set(column.cells), key=_natural)
    shown = ", ".join(repr(label) for label in found[:MAX_LEVELS]) + (", ..." if len(found) > MAX_LEVELS else "")
    if not set(found) & set(good):
        hint = near(next(iter(good)), found)
        raise column.refuse_all(
            f"the good label {' or '.join(map(repr, sorted(good)))} never occurs{hint}; the column holds {shown}."
        )
    others = [label for label in found if label not in good]
    if not others:
        raise column.refuse_all(
            f"every applicant is good ({shown}); expected good and bad outcomes, or there is nothing to decide."
        )
    if not bad:
        if len(others) > 1:
            raise column.refuse_all(
                f"expected one label beside the good ones, got {len(others)}: the column holds {shown}; "
                "list the bad ones under `outcome.bad`."
            )
    known = {*good, *(bad or others)}
    unknown = [row for row, cell in enumerate(column.cells) if cell not in known]
    if unknown:
        wrong = column.cells[unknown[0]]
        problem = f"expected {' or '.join(map(repr, sorted(known)))}, got {wrong!r}{near(wrong, known)}"
        raise column.refuse(unknown, f"{problem}; mend it, or add it under `outcome`.")
    return np.array([cell not in good for cell in column.cells], bool)


def amounts(column: Column) -> NDArray[np.float64]:
    """[N] f64 amounts.

    Raises:
        TableError: as in `read_numbers`; or an amount is missing, not positive, or all are equal.
    """
    numbers = read_numbers(column)
    wrong = np.flatnonzero(~(numbers > 0.0))
    if wrong.size:
        found = repr(column.cells[wrong[0]])
        raise column.refuse(
            list(wrong),
            f"expected an amount above 0, got {found}; leave such "
            "applicants out of the table, or `amount` out of the YAML.",
        )
    if (numbers == numbers[0]).all():
        raise column.refuse_all(
            f"every amount is {numbers[0]:g}; leave `amount` out of the YAML, then all cases count alike."
        )
    return numbers


def identifiers(column: Column) -> tuple[str, ...]:
    """One identifier a row.

    Raises:
        TableError: one is missing or stands in two rows.
    """
    if (missing := column.missing()).any():
        raise column.refuse(
            list(np.flatnonzero(missing)), "expected an id, got none; fill it in, or leave `id` out of the YAML."
        )
    first: dict[str, int] = {}
    for row, cell in enumerate(column.cells):
        if cell in first:
            raise column.refuse(
                [row],
                f"expected every id once, got {cell!r} here and in data row {first[cell] + 1}; "
                "mend it, or leave `id` out of the YAML.",
            )
        first[cell] = row
    return tuple(column.cells)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
