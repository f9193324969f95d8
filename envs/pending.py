"""Outcomes that are still to come: a queue ordered by the age of their decision, and who is paid when.

A step makes at most one decision and lists at most FEEDBACK_SLOTS outcomes, oldest decision first; others wait for the
next step. No outcome comes later than MAX_DELAY all the same: at step d + MAX_DELAY every decision older than d has
been listed, one step earlier at the latest, and d is first in line. So a queue of MAX_DELAY decisions never loses one.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from . import draws
from .contract import NO_DECISION, Outcome

Array = jax.Array

MIN_DELAY, MAX_DELAY = 20, 100  # steps from a decision to its outcome
FEEDBACK_SLOTS = 4  # more than four outcomes fall due together about once in 300 steps
NEVER = 2**31 - 1


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PendingOutcomes:
    """Outcomes of the last MAX_DELAY decisions that are not listed yet; entry j is of the decision j + 1 steps ago.

    A queue that shifts instead of a ring that is written: the compiler fuses a write at an index with all that leads to
    its value, and repeats that for every entry.
    """

    due: Array  # [MAX_DELAY] i32, step at which the outcome arrives; NEVER where there is none
    value: Array  # [MAX_DELAY] i32, money units of the world


def nothing_pending() -> PendingOutcomes:
    """State before the first decision."""
    return PendingOutcomes(
        due=jnp.full(MAX_DELAY, NEVER, jnp.int32),
        value=jnp.zeros(MAX_DELAY, jnp.int32),
    )


def delay(half: Array) -> Array:
    """i32: steps from a decision to its outcome, uniform over MIN_DELAY to MAX_DELAY."""
    return MIN_DELAY + draws.below(half, MAX_DELAY - MIN_DELAY + 1)


class Decision(NamedTuple):
    """What a decision will have paid when all is known."""

    step: Array  # [] i32, its id: the step at which it is made
    immediate: Array  # [] i32, money units, due at once
    delayed: Array  # [] i32, money units, the outcome that arrives later; 0 without one
    is_pending: Array  # [] bool, whether there is an outcome to wait for
    delay: Array  # [] i32, steps until it arrives, MIN_DELAY to MAX_DELAY


def settle(
    pending: PendingOutcomes,
    decision: Decision,
    *,
    is_stream: Array,
    unit: int,
    boundary: Array,
    signals: dict[str, Array],
) -> tuple[PendingOutcomes, Outcome]:
    """Book a decision and list what arrives in the same step.

    Args:
        pending: outcomes of earlier decisions.
        decision: the present one.
        is_stream: [] bool; True pays outcomes when they arrive, False at their decision.
        unit: money units that make a reward of 1.
        boundary: [] bool, see `Outcome`.
        signals: see `Outcome`.

    Returns:
        What is still pending, and the outcome of the step.
    """
    due, feedback_id, arrived = _listed(pending, decision.step)
    newest = jnp.where(decision.is_pending, decision.step + decision.delay, NEVER)
    waiting = PendingOutcomes(
        due=jnp.concatenate([newest[None], due[:-1]]),
        value=jnp.concatenate([decision.delayed[None], pending.value[:-1]]),
    )
    paid = decision.immediate + jnp.where(is_stream, jnp.sum(arrived, dtype=jnp.int32), decision.delayed)
    return waiting, Outcome(
        reward=paid.astype(jnp.float32) / jnp.float32(unit),
        terminated=jnp.zeros((), jnp.bool_),
        boundary=boundary,
        decision_id=jnp.where(decision.is_pending, decision.step, NO_DECISION),
        feedback_id=feedback_id,
        feedback_value=arrived.astype(jnp.float32) / jnp.float32(unit),
        signals=signals,
    )


def _listed(pending: PendingOutcomes, step: Array) -> tuple[Array, Array, Array]:
    """List the outcomes that are due at `step`, oldest decision first.

    Returns:
        [MAX_DELAY] i32, due steps of what is still pending; [FEEDBACK_SLOTS] i32 decisions, NO_DECISION in empty slots;
        [FEEDBACK_SLOTS] i32 their outcomes in money units, 0 in empty slots.
    """
    age = 1 + jnp.arange(MAX_DELAY, dtype=jnp.int32)
    due_age = jnp.where(pending.due <= step, age, 0)
    oldest, decisions, values = jnp.full((), MAX_DELAY + 1, jnp.int32), [], []
    for _ in range(FEEDBACK_SLOTS):
        oldest = jnp.max(jnp.where(due_age < oldest, due_age, 0))  # of those not listed; 0 when none is left
        decisions.append(jnp.where(oldest > 0, step - oldest, NO_DECISION))
        values.append(jnp.where(oldest > 0, pending.value[oldest - 1], 0))
    is_listed = (due_age > 0) & (due_age >= oldest)
    return jnp.where(is_listed, NEVER, pending.due), jnp.stack(decisions), jnp.stack(values)
