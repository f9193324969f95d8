"""Worlds: pure JAX dynamics with their oracles, and the Gymnasium environments that step them."""

from .adapter import Narrate, WorldEnv
from .contract import (
    NO_DECISION,
    STATUS_LABELS,
    Behaviour,
    Field,
    Filter,
    IntegerWorld,
    Outcome,
    Review,
    ScaledAction,
    Schema,
    Seen,
    Signal,
    Solution,
    World,
)
from .credit_review import HIDDEN, MISSING, ApplicantTable, CreditReviewEnv, stake_of_amounts
from .customer_service import CustomerServiceEnv
from .game_npc import GameNPCEnv
from .vector import WorldVectorEnv

__all__ = [
    "HIDDEN",
    "MISSING",
    "NO_DECISION",
    "STATUS_LABELS",
    "ApplicantTable",
    "Behaviour",
    "CreditReviewEnv",
    "CustomerServiceEnv",
    "Field",
    "Filter",
    "GameNPCEnv",
    "IntegerWorld",
    "Narrate",
    "Outcome",
    "Review",
    "ScaledAction",
    "Schema",
    "Seen",
    "Signal",
    "Solution",
    "World",
    "WorldEnv",
    "WorldVectorEnv",
    "stake_of_amounts",
]
