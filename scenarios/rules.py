"""Expert rules as data: a scorecard adds points, its clauses turn the sum into an action.

A scorecard is what a lender writes down: points per category or per interval of a number, thresholds for the decision,
and "ask for documents when undecided". It is checked against the schema of the world that it is meant for and then
compiled to lookups, so that a decision takes a few microseconds.

Points are added as integers of one millionth. The sum is exact and in any order the same, so that a case that lies on a
threshold is decided alike everywhere.
"""

from __future__ import annotations

import bisect
import difflib
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pydantic

from .errors import RulesError

if TYPE_CHECKING:
    from ..envs.contract import Field, Schema

Policy = Callable[[Any], int]

_UNIT = 1_000_000  # points are integers of one millionth
_UNKNOWN = ("missing", "hidden")


class _Data(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Term(_Data):
    """Points of one field, or of the ratio of two numbers.

    Attributes:
        field: observed field; or
        ratio: numerator and denominator, two observed numbers; missing if either is, or if the denominator is not
            positive.
        points: of a category field: label -> points.
        below: of a number: bound -> points of the first bound that the number lies below; bounds ascend.
        otherwise: points of every label, or of numbers above the last bound, that is not listed.
        missing: points where the applicant did not say.
        hidden: points where a document would say.
    """

    field: str | None = None
    ratio: tuple[str, str] | None = None
    points: dict[str, float] = {}
    below: dict[float, float] = {}
    otherwise: float = 0.0
    missing: float = 0.0
    hidden: float = 0.0


class Clause(_Data):
    """An action and the conditions under which it is taken; all of those that are given must hold.

    Attributes:
        action: label of the action.
        below: the sum of points lies below this.
        above: the sum of points lies above this.
        hidden: some field of the applicant is hidden (true) or none is (false).
        where: category field -> label that it must have.
    """

    action: str
    below: float | None = None
    above: float | None = None
    hidden: bool | None = None
    where: dict[str, str] = {}


class Scorecard(_Data):
    """Terms that are added to `start`, and clauses of which the first that holds decides.

    More points mean more risk.
    """

    about: str = ""
    start: float = 0.0
    terms: tuple[Term, ...]
    decide: tuple[Clause, ...]


class _CategoryPoints(NamedTuple):
    """Points of a category by its code."""

    name: str
    table: list[int]

    def __call__(self, observation: Mapping[str, Any]) -> int:
        code: int = observation[self.name]
        return self.table[code]

    def pure(self, observation: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        return jnp.asarray(self.table, jnp.int32)[observation[self.name]]


class _NumberPoints(NamedTuple):
    """Points of a number, or of the ratio of two, by the interval in which it lies."""

    first: str
    second: str | None
    bounds: list[float]
    table: list[int]
    of_status: list[tuple[str, list[int | None]]]
    undefined: int

    def __call__(self, observation: Mapping[str, Any]) -> int:
        for name, by_status in self.of_status:
            status: int = observation[name]
            known = by_status[status]
            if known is not None:
                return known
        number: float = observation[self.first].item()
        if self.second is not None:
            denominator = observation[self.second].item()
            if denominator <= 0.0:
                return self.undefined
            number /= denominator
        return self.table[bisect.bisect_right(self.bounds, number)]

    def pure(self, observation: Mapping[str, Any]) -> Any:
        import jax.numpy as jnp

        number = jnp.reshape(observation[self.first], (-1,))[0]
        points: Any
        if self.second is None:
            points = jnp.asarray(self.table, jnp.int32)[self._interval(number)]
        else:
            denominator = jnp.reshape(observation[self.second], (-1,))[0]
            ratio = number / jnp.where(denominator > 0, denominator, 1.0)
            points = jnp.asarray(self.table, jnp.int32)[self._interval(ratio)]
            points = jnp.where(denominator > 0, points, self.undefined)
        for name, by_status in reversed(self.of_status):
            status = jnp.reshape(observation[name], (-1,))[0]
            is_known = jnp.asarray([known is not None for known in by_status])[status]
            known = jnp.asarray([0 if known is None else known for known in by_status], jnp.int32)[status]
            points = jnp.where(is_known, known, points)
        return points

    def _interval(self, number: Any) -> Any:
        import jax.numpy as jnp

        return jnp.searchsorted(jnp.asarray(self.bounds, jnp.float32), number, side="right")


_Points = _CategoryPoints | _NumberPoints


class ScorecardPolicy:
    """A scorecard, checked against a schema and ready to decide. Call it with an observation to get the action's code.

    Args:
        scorecard: the rules.
        schema: the world they are for.
        file: where the rules come from, for messages.

    Raises:
        RulesError: they name a field, label or action that the world does not have, a term fits no field of its kind,
            or some applicant is left without a decision.
    """

    def __init__(self, scorecard: Scorecard, schema: Schema, file: str) -> None:
        self.scorecard, self._file = scorecard, file
        self._fields = {field.name: field for field in schema.fields}
        if not scorecard.terms or not scorecard.decide:
            raise RulesError(file, "expected at least one entry under `terms` and under `decide`.", key="rules")
        self._start = _integer(scorecard.start)
        self._terms = [self._term(term, f"rules.terms[{i}]") for i, term in enumerate(scorecard.terms)]
        self._hidden = [
            (name, field.labels.index("hidden")) for name, field in self._fields.items() if "hidden" in field.labels
        ]
        self._clauses = [
            self._clause(clause, schema.actions, f"rules.decide[{i}]") for i, clause in enumerate(scorecard.decide)
        ]
        last = scorecard.decide[-1]
        if last != Clause(action=last.action):
            problem = (
                "expected a last clause without conditions, so that every applicant is decided; add {action: ...}."
            )
            raise RulesError(file, problem, key=f"rules.decide[{len(scorecard.decide) - 1}]")

    def score(self, observation: Mapping[str, Any]) -> float:
        """Sum of points of an observed applicant."""
        return self._sum(observation) / _UNIT

    def __call__(self, observation: Mapping[str, Any]) -> int:
        """Code of the action for an observed applicant."""
        total = self._sum(observation)
        for action, below, above, hidden, where in self._clauses:
            if below is not None and not total < below:
                continue
            if above is not None and not total > above:
                continue
            if hidden is not None and hidden != any(observation[name] == code for name, code in self._hidden):
                continue
            if all(observation[name] == code for name, code in where):
                return action
        raise AssertionError("the last clause has no condition")

    def pure(self) -> Callable[[Mapping[str, Any]], Any]:
        """The policy as a function of JAX arrays, for compiled code: observation -> [] i32.

        Ratios of two numbers are divided in float32, where calling the policy divides in float64.
        """
        import jax.numpy as jnp

        def is_code(observation: Mapping[str, Any], name: str, code: int) -> Any:
            return jnp.reshape(observation[name], (-1,))[0] == code

        def decide(observation: Mapping[str, Any]) -> Any:
            total = jnp.int32(self._start)
            for points in self._terms:
                total = total + points.pure(observation)
            is_hidden = jnp.zeros((), jnp.bool_)
            for name, code in self._hidden:
                is_hidden |= is_code(observation, name, code)
            decided = jnp.int32(self._clauses[-1][0])
            for action, below, above, hidden, where in reversed(self._clauses[:-1]):
                holds = jnp.ones((), jnp.bool_)
                holds &= True if below is None else total < below
                holds &= True if above is None else total > above
                holds &= True if hidden is None else is_hidden == hidden
                for name, code in where:
                    holds &= is_code(observation, name, code)
                decided = jnp.where(holds, jnp.int32(action), decided)
            return decided

        return decide

    def _sum(self, observation: Mapping[str, Any]) -> int:
        total = self._start
        for points in self._terms:
            total += points(observation)
        return total

    def _term(self, term: Term, where: str) -> _Points:
        if (term.field is None) == (term.ratio is None):
            raise RulesError(self._file, "expected either `field` or `ratio: [numerator, denominator]`.", key=where)
        if term.field is not None:
            field = self._field(term.field, where)
            return (
                self._of_category(field, term, where) if field.is_category else self._of_numbers([field], term, where)
            )
        assert term.ratio is not None
        fields = [self._field(name, where) for name in term.ratio]
        if categories := [field.name for field in fields if field.is_category]:
            raise RulesError(
                self._file, f"expected two numbers under `ratio`, got the category {categories}.", key=where
            )
        return self._of_numbers(fields, term, where)

    def _of_category(self, field: Field, term: Term, where: str) -> _Points:
        if term.below:
            problem = f"`{field.name}` is a category: expected `points: {{label: points}}`, got `below`."
            raise RulesError(self._file, problem, key=where)
        self._check_labels(term.points, field, where)
        unknown = {"missing": term.missing, "hidden": term.hidden}
        table = [_integer(unknown.get(label, term.points.get(label, term.otherwise))) for label in field.labels]
        return _CategoryPoints(field.name, table)

    def _of_numbers(self, fields: list[Field], term: Term, where: str) -> _Points:
        if term.points or not term.below:
            problem = f"`{fields[0].name}` is a number: expected `below: {{bound: points, ...}}`."
            raise RulesError(self._file, problem, key=where)
        bounds = list(term.below)
        if any(left >= right for left, right in itertools.pairwise(bounds)):
            raise RulesError(self._file, f"expected ascending bounds under `below`, got {bounds}.", key=where)
        if len(fields) == 1:  # the world observes 32-bit numbers, so 0.9 must mean the 32-bit 0.9
            bounds = [float(np.float32(bound)) for bound in bounds]
        table = [*(_integer(points) for points in term.below.values()), _integer(term.otherwise)]
        statuses = [(field.status, self._fields[field.status].labels) for field in fields if field.status is not None]
        unknown = {"missing": _integer(term.missing), "hidden": _integer(term.hidden)}
        of_status = [(name, [unknown.get(label) for label in labels]) for name, labels in statuses]
        second = fields[1].name if len(fields) == 2 else None
        return _NumberPoints(fields[0].name, second, bounds, table, of_status, unknown["missing"])

    def _clause(
        self, clause: Clause, actions: tuple[str, ...], where: str
    ) -> tuple[int, int | None, int | None, bool | None, list[tuple[str, int]]]:
        if clause.action not in actions:
            problem = (
                f"expected an action of {', '.join(actions)}; got `{clause.action}`{near(clause.action, actions)}."
            )
            raise RulesError(self._file, problem, key=where)
        conditions = []
        for name, label in clause.where.items():
            field = self._field(name, where)
            if not field.is_category:
                problem = f"`where` compares labels, but `{name}` is a number; use a term with `below`."
                raise RulesError(self._file, problem, key=where)
            self._check_labels([label], field, where, unknown_allowed=True)
            conditions.append((name, field.labels.index(label)))
        below = None if clause.below is None else _integer(clause.below)
        above = None if clause.above is None else _integer(clause.above)
        return actions.index(clause.action), below, above, clause.hidden, conditions

    def _field(self, name: str, where: str) -> Field:
        if name not in self._fields:
            problem = f"expected an observed field, got `{name}`{near(name, self._fields)}; observed are "
            raise RulesError(self._file, problem + ", ".join(self._fields) + ".", key=where)
        return self._fields[name]

    def _check_labels(self, labels: Iterable[str], field: Field, where: str, *, unknown_allowed: bool = False) -> None:
        for label in labels:
            if label in _UNKNOWN and not unknown_allowed:
                problem = f"give the points of a {label} `{field.name}` under `{label}`, not among the labels."
                raise RulesError(self._file, problem, key=where)
            if label not in field.labels:
                problem = f"`{field.name}` has no label `{label}`{near(label, field.labels)}; its labels are "
                raise RulesError(self._file, problem + ", ".join(field.labels) + ".", key=where)


def near(name: str, valid: Iterable[str]) -> str:
    """Appendix to a message, `(did you mean x?)`, or nothing where no valid name is near."""
    by_lower = {candidate.lower(): candidate for candidate in valid}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" (did you mean `{by_lower[matches[0]]}`?)" if matches else ""


def _integer(points: float) -> int:
    return math.floor(points * _UNIT + 0.5)
