"""Which expert rules belong to which environment."""

from __future__ import annotations

import functools
import importlib.resources
from typing import Any

from .description import parse_rules
from .encoding import DescribedTable
from .rules import Policy, Scorecard, ScorecardPolicy

_SYNTHETIC_RULES = "synthetic.yaml"


def policy_of(env: Any) -> Policy | None:
    """Compiled rules for an unwrapped environment, or None; see `habitus.scenarios.expert_policy`."""
    schema = getattr(env, "schema", None)
    if schema is None or schema.world != "CreditReview":
        return None
    table = getattr(env, "table", None)
    if table is None:
        return ScorecardPolicy(_synthetic_rules(), schema, _SYNTHETIC_RULES)
    if not isinstance(table, DescribedTable) or table.rules is None:
        return None
    return ScorecardPolicy(table.rules, schema, table.rules_file)


@functools.cache
def _synthetic_rules() -> Scorecard:
    text = (importlib.resources.files(__package__) / "data" / _SYNTHETIC_RULES).read_text("utf-8")
    return parse_rules(text, _SYNTHETIC_RULES)
