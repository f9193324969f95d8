"""Worlds: pure JAX dynamics with their oracles, and the Gymnasium environments that step them."""

from .adapter import WorldEnv
from .contract import (
    NO_DECISION,
    STATUS_LABELS,
    Field,
    Outcome,
    Review,
    ScaledAction,
    Schema,
    Signal,
    World,
)
from .credit_review import HIDDEN, MISSING, ApplicantTable, CreditReviewEnv, stake_of_amounts

__all__ = [
    "HIDDEN",
    "MISSING",
    "NO_DECISION",
    "STATUS_LABELS",
    "ApplicantTable",
    "CreditReviewEnv",
    "Field",
    "Outcome",
    "Review",
    "ScaledAction",
    "Schema",
    "Signal",
    "World",
    "WorldEnv",
    "stake_of_amounts",
]
