"""CreditReview: loan applications, whose outcome shows late, and only where money was paid out."""

from .applicants import HIDDEN, MISSING, ApplicantTable, stake_of_amounts
from .env import CreditReviewEnv

__all__ = ["HIDDEN", "MISSING", "ApplicantTable", "CreditReviewEnv", "stake_of_amounts"]
