"""From the text of a table and its description to the `ApplicantTable` that the world simulates.

Bins, bounds, fills, rare levels and proxies come from the covariates alone. No outcome enters them, so that nothing of
what an agent has to learn leaks into what it sees.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..envs.contract import Field
from ..envs.credit_review.applicants import ApplicantTable, stake_of_amounts
from . import columns as column_readers
from .association import PROXY_THRESHOLD, cramers_v
from .columns import MAX_LEVELS, MISSING_TEXTS, Column
from .csv_text import Columns
from .description import TableDescription
from .errors import TableError
from .rules import Scorecard, near

Scalar = TypeVar("Scalar", bound=np.generic)

RESERVED_NAMES = ("documents", "stake")
"""Fields that the world adds to those of the table."""


@dataclasses.dataclass(frozen=True, eq=False)
class DescribedTable(ApplicantTable):
    """Applicants with what their description says beside the data.

    Attributes:
        rules: scorecard of an expert, or None.
        rules_file: file that they stand in.
    """

    rules: Scorecard | None = None
    rules_file: str = ""


def encode_table(
    cells: Columns, description: TableDescription, *, name: str, table_file: str, description_file: str
) -> DescribedTable:
    """Validates and codes a table.

    Args:
        cells: column -> texts of the rows, all of one length.
        description: what the columns mean.
        name: name of the table.
        table_file: where the cells come from, for messages.
        description_file: where the description comes from, for messages.

    Returns:
        The table; its fields stand in the order of the columns of the file.

    Raises:
        TableError: a described column does not exist, or a cell does not fit its column.
    """
    _check_columns(cells, description, table_file, description_file)
    missing_texts = frozenset((*MISSING_TEXTS, *(text.lower() for text in description.missing)))

    def column(of: str) -> Column:
        return Column(table_file, of, cells[of], missing_texts)

    bad = column_readers.outcomes(column(description.outcome.column), description.outcome.good, description.outcome.bad)
    n_rows = len(bad)
    stake = np.ones(n_rows, np.float32) if description.amount is None else _stake(column(description.amount))
    fields: list[Field] = []
    codes: list[NDArray[np.int32]] = []
    numbers: list[NDArray[np.float32]] = []
    missing: list[NDArray[np.bool_]] = []
    for of in cells:
        is_document = of in description.documents
        if of in description.numeric or of == description.amount:
            unit = description.units.get(of, "")
            field, values, gaps = column_readers.number_field(column(of), unit=unit, is_document=is_document)
            numbers.append(values)
            missing.append(gaps)
        elif of in description.categorical:
            declared = description.labels.get(of)
            field, values_of = column_readers.category_field(column(of), declared=declared, is_document=is_document)
            codes.append(values_of)
        else:
            continue
        fields.append(field)
    table = DescribedTable(
        name=name,
        fields=tuple(fields),
        categories=_side_by_side(codes, n_rows, np.int32),
        numbers=_side_by_side(numbers, n_rows, np.float32),
        missing=_side_by_side(missing, n_rows, np.bool_),
        bad=bad,
        stake=stake,
        has_amount=description.amount is not None,
        hidden_fields=tuple(field.name for field in fields if field.name in description.documents),
        ids=column_readers.identifiers(column(description.id)) if description.id is not None else (),
        rules=description.rules,
        rules_file=description_file,
    )
    if description.group is None:
        return table
    labels, group = _group(column(description.group), description.labels.get(description.group))
    return dataclasses.replace(
        table, group=group, group_name=description.group, group_labels=labels, proxies=_proxies(table, group)
    )


def associations(table: ApplicantTable, group: NDArray[np.int32]) -> Iterator[tuple[str, float]]:
    """Bias-corrected Cramér's V of a group with every field as it is observed: labels, or bins and "missing"."""
    n_categories = n_numbers = 0
    for field in table.fields:
        if field.is_category:
            codes = table.categories[:, n_categories]
            n_categories += 1
        else:
            bins = np.searchsorted(np.array(field.edges, np.float32), table.numbers[:, n_numbers], side="right")
            codes = np.where(table.missing[:, n_numbers], len(field.edges) + 1, bins).astype(np.int32)
            n_numbers += 1
        yield field.name, cramers_v(group, codes)


def _proxies(table: ApplicantTable, group: NDArray[np.int32]) -> tuple[str, ...]:
    """Fields at or above the threshold, the strongest first."""
    strong = [(value, name) for name, value in associations(table, group) if value >= PROXY_THRESHOLD]
    return tuple(name for _, name in sorted(strong, key=lambda pair: -pair[0]))


def _stake(column: Column) -> NDArray[np.float32]:
    return stake_of_amounts(column_readers.amounts(column))


def _group(column: Column, declared: dict[str, str] | None) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Labels and [N] i32 codes of the sensitive group; no label is merged away."""
    n_labels = len(set(declared.values() if declared is not None else column.cells))
    if n_labels > MAX_LEVELS:
        problem = f"expected at most {MAX_LEVELS} groups, got {n_labels}; form bands or merge values under `labels`."
        raise column.refuse_all(problem)
    own = {cell: cell for cell, gone in zip(column.cells, column.missing(), strict=True) if not gone}
    in_order = {cell: own[cell] for cell in sorted(own)}
    field, codes = column_readers.category_field(column, declared=declared or in_order, is_document=False)
    return field.labels, codes


def _side_by_side(columns: list[NDArray[Scalar]], n_rows: int, dtype: type[Scalar]) -> NDArray[Scalar]:
    return np.column_stack(columns).astype(dtype) if columns else np.zeros((n_rows, 0), dtype)


def _check_columns(cells: Columns, description: TableDescription, table_file: str, description_file: str) -> None:
    outcome = description.outcome.column
    for name in description.columns:
        if name not in cells:
            role = "the outcome column" if name == outcome else "a column"
            raise TableError(
                description_file,
                f"expected {role} of {table_file}, got `{name}`{near(name, cells)}; "
                f"its columns are {', '.join(cells)}.",
                key=_role(description, name),
            )
    optional = [name for name in (description.amount, description.group) if name is not None]
    names = [*description.numeric, *description.categorical, *optional]
    statuses = {f"{name}_status" for name in description.numeric}
    for name in names:
        if name in RESERVED_NAMES or name in statuses:
            problem = "the world has a field of this name itself; rename the column in both files."
            raise TableError(table_file, problem, column=name)


def _role(description: TableDescription, name: str) -> str:
    roles = {"outcome.column": (description.outcome.column,), "numeric": description.numeric}
    roles |= {"categorical": description.categorical, "amount": (description.amount or "",)}
    roles |= {"group": (description.group or "",), "id": (description.id or "",)}
    return next(role for role, listed in roles.items() if name in listed)
