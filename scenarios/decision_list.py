"""Expert rules as data: an ordered list of clauses, of which the first that holds decides.

Where a scorecard (`rules.py`) weighs a case, a decision list recognises situations: "the player is hidden: scout". It
is checked against the schema of the world that it is meant for and then compiled to lookups by code, so that a decision
takes a few microseconds.

Source: Rivest (1987), "Learning decision lists", Machine Learning 2; here written by hand, nothing is learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import pydantic

from .errors import RulesError
from .rules import near
from .yaml_text import parse_yaml

if TYPE_CHECKING:
    from ..envs.contract import Schema

EXAMPLE = """\
decide:                                                    # the first clause that holds
  - {where: {player_hidden: "yes"}, action: scout}         # a field has a label,
  - {where: {distance: [close, near]}, action: defend}     # or one of several
  - {action: shoot}                                        # the last clause has no conditions
"""


class _Data(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Labels = Annotated[tuple[str, ...], pydantic.BeforeValidator(_listed), pydantic.Field(min_length=1)]


class Clause(_Data):
    """An action and when it is taken.

    Attributes:
        action: label of the action.
        where: category field -> label or labels, of which it must have one; every condition must hold.
    """

    action: str
    where: dict[str, _Labels] = {}


class DecisionList(_Data):
    """Clauses in the order in which they are asked.

    Attributes:
        about: whose rules these are, free text.
        decide: at least one clause; only the last has no condition.
    """

    about: str = ""
    decide: Annotated[tuple[Clause, ...], pydantic.Field(min_length=1)]


class DecisionListPolicy:
    """A decision list, checked against a schema and ready to decide: call it with an observation to get an action.

    Args:
        rules: the clauses.
        schema: the world they are for.
        file: where the rules come from, for messages.

    Raises:
        RulesError: they name a field, label or action that the world does not have, some case is left without a
            decision, or a clause stands behind one that always holds.
    """

    def __init__(self, rules: DecisionList, schema: Schema, file: str) -> None:
        self.rules, self._file, self._schema = rules, file, schema
        self._clauses = [self._compiled(clause, f"decide[{i}]") for i, clause in enumerate(rules.decide)]
        last = len(rules.decide) - 1
        first_without = next((i for i, clause in enumerate(rules.decide) if not clause.where), None)
        if first_without is None:
            problem = "expected a last clause without conditions, so that every case is decided; add {action: ...}."
            raise RulesError(file, problem, key=f"decide[{last}]")
        if first_without != last:
            problem = "a clause without conditions always holds, so that those behind it are never asked; move it last."
            raise RulesError(file, problem, key=f"decide[{first_without}]")

    def __call__(self, observation: Mapping[str, Any]) -> int:
        """Code of the action for an observation."""
        return self._clauses[self.clause_of(observation)][0]

    def pure(self) -> Callable[[Mapping[str, Any]], Any]:
        """The policy as a function of JAX arrays, for compiled code: observation -> [] i32."""
        import jax.numpy as jnp

        def decide(observation: Mapping[str, Any]) -> Any:
            action = jnp.int32(self._clauses[-1][0])
            for code, conditions in reversed(self._clauses[:-1]):
                holds = jnp.ones((), jnp.bool_)
                for name, which in conditions:
                    holds &= jnp.asarray(which)[observation[name]]
                action = jnp.where(holds, jnp.int32(code), action)
            return action

        return decide

    def clause_of(self, observation: Mapping[str, Any]) -> int:
        """Position of the clause that decides."""
        for position, (_, conditions) in enumerate(self._clauses):
            if all(holds[observation[name]] for name, holds in conditions):
                return position
        raise AssertionError("the last clause has no condition")

    def _compiled(self, clause: Clause, where: str) -> tuple[int, list[tuple[str, tuple[bool, ...]]]]:
        """Code of the action; per condition, the field and whether it holds for each of the field's codes."""
        actions = self._schema.actions
        if clause.action not in actions:
            problem = (
                f"expected an action of {', '.join(actions)}; got `{clause.action}`{near(clause.action, actions)}."
            )
            raise RulesError(self._file, problem, key=where)
        conditions = []
        for name, labels in clause.where.items():
            known = self._labels_of(name, where)
            for label in labels:
                if label not in known:
                    problem = f"`{name}` has no label `{label}`{near(label, known)}; its labels are "
                    raise RulesError(self._file, problem + ", ".join(known) + ".", key=where)
            conditions.append((name, tuple(label in labels for label in known)))
        return actions.index(clause.action), conditions

    def _labels_of(self, name: str, where: str) -> tuple[str, ...]:
        fields = {field.name: field for field in self._schema.fields}
        if name not in fields:
            problem = f"expected an observed field, got `{name}`{near(name, fields)}; observed are "
            raise RulesError(self._file, problem + ", ".join(fields) + ".", key=where)
        if not fields[name].is_category:
            problem = f"`where` compares labels, but `{name}` is a number; a scorecard has intervals of numbers."
            raise RulesError(self._file, problem, key=where)
        return fields[name].labels


def parse(text: str, file: str) -> DecisionList:
    """A decision list from YAML.

    Args:
        text: contents of the file.
        file: its name, for messages.

    Raises:
        RulesError: not a decision list.
        TableError: not YAML.
    """
    data = parse_yaml(text, file)
    if not isinstance(data, dict):
        raise RulesError(file, f"expected clauses under `decide`, got {_kind(data)}. It looks like this:\n{EXAMPLE}")
    try:
        return DecisionList.model_validate(data)
    except pydantic.ValidationError as error:
        raise _translated(error, file) from error


def _translated(error: pydantic.ValidationError, file: str) -> RulesError:
    """One finding of pydantic, in words for a person who has never seen pydantic."""
    findings = error.errors()
    # a misspelt key gives two findings, of which "unknown" is the one that helps
    finding = next((each for each in findings if each["type"] == "extra_forbidden"), findings[0])
    path, kind = finding["loc"], finding["type"]
    if kind == "extra_forbidden":
        valid = (DecisionList if len(path) == 1 else Clause).model_fields
        problem = f"there is no such key{near(str(path[-1]), valid)}; expected one of {', '.join(valid)}."
    elif kind == "missing":
        problem = f"this key is required. Rules look like this:\n{EXAMPLE}"
    else:
        problem = f"got {_kind(finding['input'])}; rules look like this:\n{EXAMPLE}"
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
    return RulesError(file, problem, key=place)


def _kind(value: Any) -> str:
    if value in (None, [], ""):
        return "nothing"
    if isinstance(value, str):
        return f"the text `{value}`"
    return "a list" if isinstance(value, list) else "keys with values"
