"""What loans to synthetic applicants, reviews and documents are worth, in 1/10000 of a reward of 1."""

from __future__ import annotations

from typing import NamedTuple

from .. import draws, regimes
from ..arithmetic import Arithmetic, Value
from . import synthetic_applicants as people

# A repaid loan gains, a default costs; a reduced one is 55 % of the loan, at .8 of the gain and .75 of the loss.
MONEY = 10_000
GAIN, GAIN_PER_AMOUNT = 6_000, 3_000
LOSS, LOSS_PER_AMOUNT = 16_000, 9_000
REDUCED_GAIN, REDUCED_LOSS = (44, 100), (33, 80)  # .55 x .8 and .55 x .75
FINE_PER_LEVEL, FINE_FROM_DEBT = 1_000, 3
REVIEW_FEE = 3_000
DOCUMENT_FEE, REPEATED_DOCUMENT_FEE = 600, 2_000
LARGEST_LOSS = LOSS + LOSS_PER_AMOUNT * (people.N_CODES[people.AMOUNT] - 1) + FINE_PER_LEVEL * regimes.LEVELS

RIGHT_REVIEW = draws.threshold(0.9)
WRONG_DOCUMENTS = draws.threshold(0.1)
WITHDRAWAL = draws.threshold(0.05)  # an applicant who is asked for documents may go elsewhere


class Terms(NamedTuple):
    """What the loan at hand pays, [] i32 each, in 1/10000."""

    gain: Value
    loss: Value
    fine: Value
    reduced_gain: Value
    reduced_loss: Value
    reduced_fine: Value


def loan_terms(amount: Value, debt: Value, level: Value, arithmetic: Arithmetic) -> Terms:
    """What a loan pays, by the codes of amount and debt and the regime level."""
    gain, loss = GAIN + GAIN_PER_AMOUNT * amount, LOSS + LOSS_PER_AMOUNT * amount
    fine = arithmetic.where(debt >= FINE_FROM_DEBT, FINE_PER_LEVEL * level, 0)
    reduced_gain = arithmetic.divide(gain * REDUCED_GAIN[0], REDUCED_GAIN[1])
    reduced_loss = arithmetic.divide(loss * REDUCED_LOSS[0], REDUCED_LOSS[1])
    return Terms(gain, loss, fine, reduced_gain, reduced_loss, fine >> 1)


def expected_money(gain: Value, loss: Value, fine: Value, chance: Value) -> Value:
    """i32 in 1/(10000 x 32768): exact expectation of a loan; LARGEST_LOSS x 32768 fits into int32."""
    return gain * (draws.CHANCE_ONE - chance) - loss * chance - fine * draws.CHANCE_ONE
