"""Which expert rules belong to which environment."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any

from . import decision_list
from .decision_list import DecisionList, DecisionListPolicy
from .description import parse_rules
from .encoding import DescribedTable
from .rules import Policy, Scorecard, ScorecardPolicy

_SYNTHETIC_RULES = "synthetic.yaml"
_DECISION_LISTS = {"GameNPC": "game-npc.yaml", "CustomerService": "customer-service.yaml"}


def policy_of(env: Any) -> Policy | None:
    """Compiled rules for an unwrapped environment, or None; see `habitus.scenarios.expert_policy`."""
    schema = getattr(env, "schema", None)
    world = getattr(schema, "world", None)
    if schema is not None and world in _DECISION_LISTS:
        file = _DECISION_LISTS[world]
        return DecisionListPolicy(_decision_list(file), schema, file)
    if schema is None or world != "CreditReview":
        return None
    table = getattr(env, "table", None)
    if table is None:
        return ScorecardPolicy(_synthetic_rules(), schema, _SYNTHETIC_RULES)
    if not isinstance(table, DescribedTable) or table.rules is None:
        return None
    return ScorecardPolicy(table.rules, schema, table.rules_file)


@functools.cache
def _synthetic_rules() -> Scorecard:
    return parse_rules(_text(_SYNTHETIC_RULES), _SYNTHETIC_RULES)


@functools.cache
def _decision_list(file: str) -> DecisionList:
    return decision_list.parse(_text(file), file)


def _text(file: str) -> str:
    return (importlib.resources.files(__package__) / "data" / file).read_text("utf-8")
