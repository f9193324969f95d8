"""Applicants of a real table, validated and coded: all that `CreditReview` needs to know of a data set.

`habitus.scenarios` reads files and builds an `ApplicantTable`; the world simulates it and never sees a file.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..contract import Field

MISSING = "missing"
"""Label of the code that a category field shows where the table has no value."""
HIDDEN = "hidden"
"""Label of the code that a category field shows while the applicant withholds the documents."""

RESERVED_NAMES = ("stake", "documents")
"""Fields that the world adds to those of a table."""

MIN_STAKE, MAX_STAKE = 0.2, 3.0  # multiples of the mean amount; beyond them one loan would decide a whole window
STAKE_TOLERANCE = 1e-3  # how far the mean stake may lie from 1


@dataclasses.dataclass(frozen=True, eq=False)
class ApplicantTable:
    """N applicants with a recorded outcome each.

    `fields` are the table's own columns, in the order in which they are observed. The world adds to them the status
    field of every number that names one, the stake, the state of the documents and, on request, the group.

    Attributes:
        name: name of the table, used in messages and in the rendering.
        fields: observed columns. A category whose value can be unknown has the label `MISSING`, one that can be
            withheld the label `HIDDEN`. A number whose value can be either names its `status` field.
        categories: [N, number of category fields] i32, codes in the order of the category fields.
        numbers: [N, number of number fields] f32, in the order of the number fields; the field's `fill` where missing.
        missing: [N, number of number fields] bool, where the table has no number.
        bad: [N] bool, the loan was not repaid.
        stake: [N] f32 > 0 with mean 1, size of the loan (`stake_of_amounts`); all 1 without an amount column.
        has_amount: whether `stake` comes from an amount; only then is it observed.
        hidden_fields: names of the fields that an applicant can withhold until documents are requested.
        group: [N] i32 codes into `group_labels` of the recorded sensitive group, or None.
        group_name: name of the group's field when it is observed.
        group_labels: labels of the groups, empty without a group.
        proxies: observed fields that carry information on the group.
        ids: one identifier a row, for reports; empty = the row number.

    Raises:
        ValueError: where the parts do not fit together.
    """

    name: str
    fields: tuple[Field, ...]
    categories: NDArray[np.int32]
    numbers: NDArray[np.float32]
    missing: NDArray[np.bool_]
    bad: NDArray[np.bool_]
    stake: NDArray[np.float32]
    has_amount: bool
    hidden_fields: tuple[str, ...] = ()
    group: NDArray[np.int32] | None = None
    group_name: str = "group"
    group_labels: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n_rows = len(self.bad)
        if n_rows < 2:
            raise _refuse(self, "`bad` must list at least 2 applicants", n_rows)
        _freeze(self, "categories", np.int32, (n_rows, len(self.category_fields)))
        _freeze(self, "numbers", np.float32, (n_rows, len(self.number_fields)))
        _freeze(self, "missing", np.bool_, (n_rows, len(self.number_fields)))
        _freeze(self, "bad", np.bool_, (n_rows,))
        _freeze(self, "stake", np.float32, (n_rows,))
        if self.group is not None:
            _freeze(self, "group", np.int32, (n_rows,))
        _check_names(self)
        _check_values(self)
        _check_group(self)

    def __len__(self) -> int:
        return len(self.bad)

    @property
    def category_fields(self) -> tuple[Field, ...]:
        """Fields that are observed as a code, in the order of the columns of `categories`."""
        return tuple(field for field in self.fields if field.is_category)

    @property
    def number_fields(self) -> tuple[Field, ...]:
        """Fields that are observed as a number, in the order of the columns of `numbers`."""
        return tuple(field for field in self.fields if not field.is_category)


def stake_of_amounts(amounts: ArrayLike) -> NDArray[np.float32]:
    """Size of each loan relative to the mean loan.

    Args:
        amounts: [N] positive numbers, any unit.

    Returns:
        [N] f32 with mean 1: amount / mean amount, clipped to [`MIN_STAKE`, `MAX_STAKE`], divided by the mean that the
        clipping left.

    Raises:
        ValueError: if an amount is not a positive finite number.
    """
    values = np.asarray(amounts, np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
    if wrong.size:
        raise ValueError(
            f"`amounts` must be positive and finite, got {values[wrong[0]]} in row {wrong[0]}; "
            "a loan without a size has no outcome to count."
        )
    clipped = np.clip(values / values.mean(), MIN_STAKE, MAX_STAKE)
    return np.asarray(clipped / clipped.mean(), np.float32)


def _refuse(table: ApplicantTable, expected: str, got: object) -> ValueError:
    """Error of a table whose parts do not fit together."""
    return ValueError(f"table {table.name!r}: {expected}, got {got}.")


def _freeze(table: ApplicantTable, name: str, dtype: type[np.generic], shape: tuple[int, ...]) -> None:
    """Replace an array of the table by a read-only copy of the declared type, after checking its shape."""
    array = np.array(getattr(table, name))
    if array.shape != shape:
        raise _refuse(table, f"`{name}` must have shape {shape}", array.shape)
    array = array.astype(dtype)
    array.setflags(write=False)
    object.__setattr__(table, name, array)


def _check_names(table: ApplicantTable) -> None:
    if not table.fields:
        raise _refuse(table, "`fields` must name at least one column", "none")
    names = [field.name for field in table.fields]
    names += [field.status for field in table.fields if field.status is not None]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise _refuse(table, "names of `fields` and of their `status` must differ", f"{repeated} more than once")
    reserved = [name for name in (*names, table.group_name) if name in RESERVED_NAMES]
    if reserved:
        raise _refuse(
            table, f"no field may have a name that the world adds, {RESERVED_NAMES}", f"{reserved}; rename it"
        )
    by_name = {field.name: field for field in table.fields}
    for what, listed in (("hidden_fields", table.hidden_fields), ("proxies", table.proxies)):
        unknown = [name for name in listed if name not in by_name]
        if unknown:
            raise _refuse(table, f"`{what}` must name fields of the table {sorted(by_name)}", unknown)
    for name in table.hidden_fields:
        field = by_name[name]
        if field.is_category and HIDDEN not in field.labels:
            raise _refuse(table, f"field {name!r} can be withheld and needs the label {HIDDEN!r}", field.labels)
        if not field.is_category and field.status is None:
            raise _refuse(table, f"number {name!r} can be withheld and needs a `status` field", None)


def _check_values(table: ApplicantTable) -> None:
    for field, codes in zip(table.category_fields, table.categories.T, strict=True):
        wrong = np.flatnonzero((codes < 0) | (codes >= len(field.labels)))
        if wrong.size:
            expected = f"codes of {field.name!r} must lie in [0, {len(field.labels)})"
            raise _refuse(table, expected, f"{codes[wrong[0]]} in row {wrong[0]}")
    for field, values, missing in zip(table.number_fields, table.numbers.T, table.missing.T, strict=True):
        bounds = f"[{field.low}, {field.high}]"
        wrong = np.flatnonzero(~((values >= np.float32(field.low)) & (values <= np.float32(field.high))))
        if wrong.size:
            raise _refuse(
                table, f"numbers of {field.name!r} must lie in {bounds}", f"{values[wrong[0]]} in row {wrong[0]}"
            )
        if field.status is not None and not field.low <= field.fill <= field.high:
            raise _refuse(table, f"`fill` of {field.name!r} must lie in {bounds}", field.fill)
        if missing.any() and field.status is None:
            raise _refuse(table, f"number {field.name!r} has gaps and needs a `status` field", None)
    if table.bad.all() or not table.bad.any():
        counts = f"{int(table.bad.sum())} bad of {len(table)}"
        raise _refuse(table, "`bad` must hold both outcomes, or there is nothing to decide", counts)
    if not (table.stake > 0).all() or abs(float(table.stake.mean()) - 1) > STAKE_TOLERANCE:
        found = f"a minimum of {table.stake.min()} and a mean of {table.stake.mean()}"
        raise _refuse(table, "`stake` must be positive with mean 1 (see `stake_of_amounts`)", found)
    if table.ids and (len(table.ids) != len(table) or len(set(table.ids)) != len(table)):
        found = f"{len(set(table.ids))} different of {len(table.ids)}"
        raise _refuse(table, f"`ids` must name each of the {len(table)} rows once", found)


def _check_group(table: ApplicantTable) -> None:
    if (table.group is None) != (not table.group_labels):
        raise _refuse(table, "`group` and `group_labels` go together", "only one of them")
    if table.group is None:
        return
    n_groups = len(table.group_labels)
    if table.group.min() < 0 or table.group.max() >= n_groups:
        found = f"{table.group.min()} to {table.group.max()}"
        raise _refuse(table, f"`group` must lie in [0, {n_groups})", found)
    if table.group_name in {field.name for field in table.fields}:
        raise _refuse(
            table, "`group_name` must not be one of `fields`, the group is masked by default", table.group_name
        )
