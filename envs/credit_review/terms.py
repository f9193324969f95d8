"""What both kinds of CreditReview share: the five actions and the reviewer's verdict."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ..contract import Signal

Array = jax.Array

ACTIONS = ("approve", "reject", "manual_review", "request_document", "approve_reduced")
APPROVE, REJECT, MANUAL_REVIEW, REQUEST_DOCUMENT, APPROVE_REDUCED = range(len(ACTIONS))
DELIBERATION = (ACTIONS[MANUAL_REVIEW], ACTIONS[REQUEST_DOCUMENT])

VERDICT = Signal("verdict", ("none", "good", "bad"))
VERDICT_NONE, VERDICT_GOOD, VERDICT_BAD = range(len(VERDICT.labels))


def verdict_code(is_review: Array, passes: Array) -> Array:
    """[] i32 code of VERDICT: what a review said, if there was one."""
    verdict = jnp.where(passes, VERDICT_GOOD, VERDICT_BAD)
    return jnp.where(is_review, verdict, VERDICT_NONE).astype(jnp.int32)
