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

    from ..envs import WorldEnv, WorldVectorEnv
    from ..envs.credit_review.applicants import ApplicantTable

__all__ = [
    "APPLICANTS",
    "RulesError",
    "TableError",
    "credit_review",
    "credit_review_vector",
    "customer_service",
    "customer_service_vector",
    "expert_policy",
    "game_npc",
    "game_npc_vector",
    "load_applicants",
]

APPLICANTS = ("synthetic", "spanish", "lending_club", "hmda")
"""Names that `applicants` takes beside the path of a CSV file."""


def load_applicants(name_or_path: str | os.PathLike[str]) -> ApplicantTable:
    """Table of real applicants by name or path; see `habitus.scenarios.tables.load_applicants`."""
    from . import tables

    return tables.load_applicants(name_or_path)


def credit_review(applicants: str | os.PathLike[str] | ApplicantTable = "synthetic", **kwargs: Any) -> WorldEnv:
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


def game_npc(**kwargs: Any) -> WorldEnv:
    """Entry point of `habitus/GameNPC-v0`; takes the arguments of `habitus.envs.GameNPCEnv`."""
    from .. import envs

    return envs.GameNPCEnv(**kwargs)


def customer_service(text: str | None = None, **kwargs: Any) -> WorldEnv:
    """Entry point of `habitus/CustomerService-v0`.

    Args:
        text: language of `info["text"]`, what the customer writes and what is answered: "en", "zh", or None for no
            text.
        **kwargs: arguments of `habitus.envs.CustomerServiceEnv`.

    Raises:
        ValueError: `text` is no known language, or another argument is wrong.
    """
    from .. import envs

    if text is not None:
        from . import service_texts

        kwargs["narrate"] = service_texts.narrator(text)
    return envs.CustomerServiceEnv(**kwargs)


def credit_review_vector(num_envs: int = 1, **kwargs: Any) -> WorldVectorEnv:
    """Vector entry point of `habitus/CreditReview-v0`; see `habitus.envs.WorldVectorEnv`.

    Args:
        num_envs: number of sub-environments.
        **kwargs: arguments of `credit_review`, and `autoreset_mode`, `params` and `per_env_params` of the vector
            environment.
    """
    return _vector(credit_review, num_envs, kwargs)


def game_npc_vector(num_envs: int = 1, **kwargs: Any) -> WorldVectorEnv:
    """Vector entry point of `habitus/GameNPC-v0`; arguments as in `credit_review_vector`."""
    return _vector(game_npc, num_envs, kwargs)


def customer_service_vector(num_envs: int = 1, **kwargs: Any) -> WorldVectorEnv:
    """Vector entry point of `habitus/CustomerService-v0`; arguments as in `credit_review_vector`."""
    return _vector(customer_service, num_envs, kwargs)


def _vector(make: Callable[..., WorldEnv], num_envs: int, kwargs: dict[str, Any]) -> WorldVectorEnv:
    """The vector environment of a scalar one, which checks the arguments both have."""
    from .. import envs

    own = {name: kwargs.pop(name) for name in ("autoreset_mode", "params", "per_env_params") if name in kwargs}
    render_mode = kwargs.pop("render_mode", None)
    env = make(**kwargs)
    return envs.WorldVectorEnv(
        env.world, num_envs, horizon=env.horizon, narrate=env.narrate, render_mode=render_mode, **own
    )


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
