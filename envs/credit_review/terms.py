"""What both kinds of CreditReview share: the five actions, which of them are possible, and the reviewer's verdict."""

from __future__ import annotations

from ..arithmetic import Arithmetic, Value
from ..contract import Signal

ACTIONS = ("approve", "reject", "manual_review", "request_document", "approve_reduced")
APPROVE, REJECT, MANUAL_REVIEW, REQUEST_DOCUMENT, APPROVE_REDUCED = range(len(ACTIONS))
DELIBERATION = (ACTIONS[MANUAL_REVIEW], ACTIONS[REQUEST_DOCUMENT])

VERDICT = Signal("verdict", ("none", "good", "bad"))
VERDICT_NONE, VERDICT_GOOD, VERDICT_BAD = range(len(VERDICT.labels))


def verdict_code(is_review: Value, passes: Value, arithmetic: Arithmetic) -> Value:
    """[] i32 code of VERDICT: what a review said, if there was one."""
    return arithmetic.where(is_review, VERDICT_BAD - arithmetic.integer(passes), VERDICT_NONE)


def possible(has_documents: Value) -> list[Value]:
    """A condition an action: no documents can be requested where there are none left to show."""
    return [has_documents if action == REQUEST_DOCUMENT else True for action in range(len(ACTIONS))]
