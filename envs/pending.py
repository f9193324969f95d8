"""Outcomes that are still to come: a queue ordered by the age of their decision, and who is paid when.

A step makes at most one decision and lists at most FEEDBACK_SLOTS outcomes, oldest decision first; others wait for the
next step. No outcome comes later than MAX_DELAY all the same: at step d + MAX_DELAY every decision older than d has
been listed, one step earlier at the latest, and d is first in line. So a queue of MAX_DELAY decisions never loses one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .arithmetic import ARRAYS, INTEGERS, Arithmetic, Value, below
from .contract import NO_DECISION, Outcome

Array = jax.Array

MIN_DELAY, MAX_DELAY = 20, 100  # steps from a decision to its outcome
FEEDBACK_SLOTS = 4  # more than four outcomes fall due together about once in 300 steps
NEVER = 2**31 - 1


class PendingOutcomes(NamedTuple):
    """Outcomes of the last MAX_DELAY decisions that are not listed yet; entry j is of the decision j + 1 steps ago.

    A queue that shifts instead of a ring that is written: shifting and comparing are vector instructions, writing at an
    index of each environment is not, and costs more.
    """

    due: Any  # [MAX_DELAY] i32, step at which the outcome arrives; NEVER where there is none
    value: Any  # [MAX_DELAY] i32, money units of the world


def nothing_pending() -> PendingOutcomes:
    """State before the first decision."""
    return PendingOutcomes(
        due=jnp.full(MAX_DELAY, NEVER, jnp.int32),
        value=jnp.zeros(MAX_DELAY, jnp.int32),
    )


def delay(half: Value) -> Value:
    """i32: steps from a decision to its outcome, uniform over MIN_DELAY to MAX_DELAY."""
    return MIN_DELAY + below(half, MAX_DELAY - MIN_DELAY + 1)


class Decision(NamedTuple):
    """What a decision will have paid when all is known."""

    step: Value  # [] i32, its id: the step at which it is made
    immediate: Value  # [] i32, money units, due at once
    delayed: Value  # [] i32, money units, the outcome that arrives later; 0 without one
    is_pending: Value  # [] bool, whether there is an outcome to wait for
    delay: Value  # [] i32, steps until it arrives, MIN_DELAY to MAX_DELAY


def settle(
    pending: PendingOutcomes,
    decision: Decision,
    *,
    is_stream: Value,
    unit: int,
    boundary: Value,
    signals: dict[str, Value],
    arithmetic: Arithmetic = ARRAYS,
) -> tuple[PendingOutcomes, Outcome]:
    """Book a decision and list what arrives in the same step.

    Args:
        pending: outcomes of earlier decisions; integers shift its lists in place.
        decision: the present one.
        is_stream: [] bool; True pays outcomes when they arrive, False at their decision.
        unit: money units that make a reward of 1.
        boundary: [] bool, see `Outcome`.
        signals: see `Outcome`.
        arithmetic: executor.

    Returns:
        What is still pending, and the outcome of the step.
    """
    newest = arithmetic.where(decision.is_pending, decision.step + decision.delay, NEVER)
    executor = _booked_integers if arithmetic is INTEGERS else _booked_arrays
    waiting, feedback_id, arrived, total = executor(pending, decision, newest)
    paid = decision.immediate + arithmetic.where(is_stream, total, decision.delayed)
    return waiting, Outcome(
        reward=arithmetic.money(paid, unit),
        terminated=decision.step < 0,  # never, in the type of either executor
        boundary=boundary,
        decision_id=arithmetic.where(decision.is_pending, decision.step, NO_DECISION),
        feedback_id=feedback_id,
        feedback_value=[arithmetic.money(value, unit) if value else 0.0 for value in arrived]
        if arithmetic is INTEGERS
        else arithmetic.money(arrived, unit),
        signals=signals,
    )


def _booked_arrays(
    pending: PendingOutcomes, decision: Decision, newest: Array
) -> tuple[PendingOutcomes, Array, Array, Array]:
    """List the outcomes that are due, oldest decision first, and let the queue shift.

    Returns:
        What is still pending; [FEEDBACK_SLOTS] i32 decisions, NO_DECISION in empty slots; [FEEDBACK_SLOTS] i32 their
        outcomes in money units, 0 in empty slots; [] i32 their sum.
    """
    step, age = decision.step, 1 + jnp.arange(MAX_DELAY, dtype=jnp.int32)
    due_age = jnp.where(pending.due <= step, age, 0)
    oldest, decisions, values = jnp.full((), MAX_DELAY + 1, jnp.int32), [], []
    for _ in range(FEEDBACK_SLOTS):
        oldest = jnp.max(jnp.where(due_age < oldest, due_age, 0))  # of those not listed; 0 when none is left
        decisions.append(jnp.where(oldest > 0, step - oldest, NO_DECISION))
        values.append(jnp.where(oldest > 0, pending.value[oldest - 1], 0))
    is_listed = (due_age > 0) & (due_age >= oldest)
    due = jnp.where(is_listed, NEVER, pending.due)
    waiting = PendingOutcomes(
        due=jnp.concatenate([newest[None], due[:-1]]),
        value=jnp.concatenate([decision.delayed[None], pending.value[:-1]]),
    )
    arrived = jnp.stack(values)
    return waiting, jnp.stack(decisions), arrived, jnp.sum(arrived, dtype=jnp.int32)


def _booked_integers(
    pending: PendingOutcomes, decision: Decision, newest: int
) -> tuple[PendingOutcomes, list[int], list[int], int]:
    """`_booked_arrays` for Python integers; in most steps nothing is due, which costs one pass."""
    due, value = pending
    step, slot = decision.step, 0
    decisions, arrived = [NO_DECISION] * FEEDBACK_SLOTS, [0] * FEEDBACK_SLOTS
    if min(due) <= step:
        for place in range(MAX_DELAY - 1, -1, -1):
            if due[place] <= step:
                decisions[slot], arrived[slot] = step - place - 1, value[place]
                due[place] = NEVER
                slot += 1
                if slot == FEEDBACK_SLOTS:
                    break
    del due[-1], value[-1]
    due.insert(0, newest)
    value.insert(0, decision.delayed)
    return PendingOutcomes(due, value), decisions, arrived, sum(arrived)
