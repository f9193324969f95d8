"""Data that makes a world a case: tables of real applicants, their descriptions, and the rules of experts.

The import is light: a table, pandas and the world itself are loaded when they are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import RulesError, TableError

if TYPE_CHECKING:
    import gymnasium

    from ..envs.credit_review.applicants import ApplicantTable

__all__ = ["APPLICANTS", "RulesError", "TableError", "credit_review", "expert_policy", "load_applicants"]

APPLICANTS = ("synthetic", "spanish", "lending_club", "hmda")
"""Names that `applicants` takes beside the path of a CSV file."""


def load_applicants(name_or_path: str | os.PathLike[str]) -> ApplicantTable:
    """Table of real applicants by name or path; see `habitus.scenarios.tables.load_applicants`."""
    from . import tables

    return tables.load_applicants(name_or_path)


def credit_review(
    applicants: str | os.PathLike[str] | ApplicantTable = "synthetic", **kwargs: Any
) -> gymnasium.Env[Any, Any]:
    """Entry point of `habitus/CreditReview-v0`.

    Args:
        applicants: "synthetic"; "spanish", "lending_club" or "hmda" (extra `data`); the path of a CSV file with its
            description beside it (README.md of this folder); or a table that is already loaded. A string keeps the
            environment's spec writable as JSON.
        **kwargs: arguments of `habitus.envs.CreditReviewEnv`, `render_mode` among them.

    Returns:
        The environment.

    Raises:
        ValueError: `applicants` is neither a known name nor a path that ends in .csv, or another argument is wrong.
        TableError: the user's files do not hold a usable table.
        ImportError: the extra `data` is not installed.
    """
    from .. import envs

    if isinstance(applicants, str | os.PathLike) and applicants != "synthetic":
        applicants = load_applicants(applicants)
    return envs.CreditReviewEnv(applicants=applicants, **kwargs)


def expert_policy(env: gymnasium.Env[Any, Any]) -> Callable[[Any], int] | None:
    """Rules of an expert for the world of an environment.

    Args:
        env: an environment, wrapped or not.

    Returns:
        Maps an observation of the unwrapped environment to an action; None where nobody wrote rules for this
        world or table.

    Raises:
        RulesError: the rules of a user's table name a field, label or action that the world does not have.
    """
    from . import experts

    return experts.policy_of(env.unwrapped)
