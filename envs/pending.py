"""Outcomes that are still to come: who is paid when, and in which step each outcome is listed.

A step makes at most one decision and lists at most FEEDBACK_SLOTS outcomes, oldest decision first; others wait for the
next step. No outcome comes later than MAX_DELAY all the same: at step d + MAX_DELAY every decision older than d has
been listed, one step earlier at the latest, and d is first in line.

Older decisions come first, so newer ones never delay them: the step in which an outcome will be listed is known when
its decision is made, the first one from its due step on that has a free slot. So outcomes are written into a calendar
at once, slot after slot, and listing them is reading a row. A queue that shifts and is searched at each step for what
is due costs half of all the arithmetic of a step.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .arithmetic import ARRAYS, INTEGERS, Arithmetic, Value, below
from .contract import NO_DECISION, Outcome

Array = jax.Array

MIN_DELAY, MAX_DELAY = 20, 100  # steps from a decision to its outcome
FEEDBACK_SLOTS = 4  # more than four outcomes fall due together about once in 300 steps

N_ROWS = 128  # steps that the calendar spans: a power of two above MAX_DELAY
ROW_MASK = N_ROWS - 1
AGE_BITS = 7  # MAX_DELAY < 2^7, and FEEDBACK_SLOTS x 7 bits fit into a non-negative int32
AGE_MASK = (1 << AGE_BITS) - 1
LAST_SLOT = AGE_BITS * (FEEDBACK_SLOTS - 1)
FULL_FROM = 1 << LAST_SLOT  # a row whose last slot is taken is at least this
WORD_BITS = 32
WORD_SHIFT = 5
WORD = 2**WORD_BITS - 1
N_WORDS = N_ROWS // WORD_BITS
LONGEST_SEARCH = 3  # words of 32 steps; a free slot is at most MAX_DELAY - MIN_DELAY steps away


class PendingOutcomes(NamedTuple):
    """Outcomes that are not listed yet. What belongs to step s stands in row s modulo N_ROWS.

    `full` repeats what `calendar` says, so that arrays find a free step without looking at every row.
    """

    calendar: Any  # [N_ROWS] i32, decisions listed in a step: AGE_BITS of age then a slot, oldest first; 0 = none. The
    # row of a step that is over is emptied in the next one.
    values: Any  # [N_ROWS] i32, outcome of the decision made in a step, money units of the world
    full: tuple[Value, ...]  # N_WORDS x [] i32, a bit a row: all slots are taken


def nothing_pending() -> PendingOutcomes:
    """State before the first decision."""
    return PendingOutcomes(
        calendar=jnp.zeros(N_ROWS, jnp.int32),
        values=jnp.zeros(N_ROWS, jnp.int32),
        full=tuple(jnp.zeros((), jnp.int32) for _ in range(N_WORDS)),
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
        pending: outcomes of earlier decisions; integers write into its lists.
        decision: the present one.
        is_stream: [] bool; True pays outcomes when they arrive, False at their decision.
        unit: money units that make a reward of 1.
        boundary: [] bool, see `Outcome`.
        signals: see `Outcome`.
        arithmetic: executor.

    Returns:
        What is still pending, and the outcome of the step.
    """
    executor: Any = _book_integers if arithmetic is INTEGERS else _book_arrays
    waiting, feedback_id, arrived, total = executor(pending, decision)
    feedback_value: Any
    if arithmetic is INTEGERS:
        feedback_value = [arithmetic.money(value, unit) if value else 0.0 for value in arrived]
    else:
        feedback_value = arithmetic.money(arrived, unit)
    paid = decision.immediate + arithmetic.where(is_stream, total, decision.delayed)
    return waiting, Outcome(
        reward=arithmetic.money(paid, unit),
        terminated=decision.step < 0,  # never, in the type of either executor
        boundary=boundary,
        decision_id=arithmetic.where(decision.is_pending, decision.step, NO_DECISION),
        feedback_id=feedback_id,
        feedback_value=feedback_value,
        signals=signals,
    )


def _book_arrays(pending: PendingOutcomes, decision: Decision) -> tuple[PendingOutcomes, Array, Array, Array]:
    """Write the decision into the first free slot, and read the row of this step.

    Whatever is read of an array either goes into the next write to it or follows the last: otherwise the compiler would
    copy the arrays of all environments at every step. That is why the row of a step is emptied in the next one.

    Returns:
        What is still pending; [FEEDBACK_SLOTS] i32 decisions, NO_DECISION in empty slots; [FEEDBACK_SLOTS] i32 their
        outcomes in money units, 0 in empty slots; [] i32 their sum.
    """
    take = ARRAYS.take
    step, is_pending = decision.step, decision.is_pending
    row = step & ROW_MASK
    full = tuple(bits.astype(jnp.uint32) for bits in pending.full)
    wait = decision.delay + _steps_to_free(full, step + decision.delay)
    listing_row = (step + wait) & ROW_MASK
    calendar = pending.calendar.at[(step - 1) & ROW_MASK].set(0, mode="promise_in_bounds")
    booked = take(calendar, listing_row)
    n_taken = sum(((booked >> AGE_BITS * slot) > 0).astype(jnp.int32) for slot in range(FEEDBACK_SLOTS))
    entry = jnp.where(is_pending, wait << (AGE_BITS * n_taken), 0)
    calendar = calendar.at[listing_row].set(booked | entry, mode="promise_in_bounds")
    values = pending.values.at[row].set(decision.delayed, mode="promise_in_bounds")

    word = take(calendar, row)
    ages = [(word >> AGE_BITS * slot) & AGE_MASK for slot in range(FEEDBACK_SLOTS)]
    decisions = [jnp.where(age > 0, step - age, NO_DECISION) for age in ages]
    arrived = [jnp.where(age > 0, take(values, (step - age) & ROW_MASK), 0) for age in ages]
    total: Array = sum(arrived[1:], arrived[0])
    fills = is_pending & (take(calendar, listing_row) >= FULL_FROM)
    full = tuple(
        (bits & ~_bit_of(row, number, row >= 0)) | _bit_of(listing_row, number, fills)
        for number, bits in enumerate(full)
    )
    waiting = PendingOutcomes(calendar, values, tuple(bits.astype(jnp.int32) for bits in full))
    return waiting, ARRAYS.stack(decisions), ARRAYS.stack(arrived), total


def _bit_of(row: Array, number: int, condition: Array) -> Array:
    """[] u32: the bit of a row in the `number`-th word, if it stands there and the condition holds."""
    bit = jnp.uint32(1) << (row & (WORD_BITS - 1)).astype(jnp.uint32)
    found: Array = jnp.where(condition & (row >> WORD_SHIFT == number), bit, jnp.uint32(0))
    return found


def _steps_to_free(full: tuple[Value, ...], step: Array) -> Array:
    """[] i32: steps from `step` to the first that is not full."""
    row = step & ROW_MASK
    first, shift = row >> WORD_SHIFT, (row & (WORD_BITS - 1)).astype(jnp.uint32)

    def word(number: int) -> Array:
        at = (first + number) & (N_WORDS - 1)
        chosen = full[0]
        for other in range(1, N_WORDS):
            chosen = jnp.where(at == other, full[other], chosen)
        return jnp.asarray(chosen)

    words = [word(number) for number in range(LONGEST_SEARCH + 1)]
    found = jnp.zeros((), jnp.int32)
    for low, high in reversed(list(itertools.pairwise(words))):
        ahead = (low >> shift) | ((high << 1) << (WORD_BITS - 1 - shift))  # two shifts: one by 32 is not defined
        n_full = jax.lax.population_count(ahead & ~(ahead + 1)).astype(jnp.int32)  # trailing ones
        found = n_full + jnp.where(n_full == WORD_BITS, found, 0)
    return found


def _book_integers(pending: PendingOutcomes, decision: Decision) -> tuple[PendingOutcomes, list[int], list[int], int]:
    """`_book_arrays` for Python integers: what is empty, as most rows are, costs nothing."""
    calendar, values, full = pending
    step = decision.step
    row = step & ROW_MASK
    word = calendar[row]
    decisions, arrived, total = [NO_DECISION] * FEEDBACK_SLOTS, [0] * FEEDBACK_SLOTS, 0
    if word:
        slot = 0
        while word:
            listed = step - (word & AGE_MASK)
            decisions[slot], arrived[slot] = listed, values[listed & ROW_MASK]
            total += arrived[slot]
            word >>= AGE_BITS
            slot += 1
        if slot == FEEDBACK_SLOTS:
            full = _with_bit(full, row, False)
    calendar[(step - 1) & ROW_MASK] = 0
    values[row] = decision.delayed
    if decision.is_pending:
        wait = decision.delay
        listing_row = (step + wait) & ROW_MASK
        booked = calendar[listing_row]
        while booked >= FULL_FROM:
            wait += 1
            listing_row = (step + wait) & ROW_MASK
            booked = calendar[listing_row]
        slot_bits = -(-booked.bit_length() // AGE_BITS) * AGE_BITS  # each age needs more than 0 and at most 7 bits
        calendar[listing_row] = booked | wait << slot_bits
        if slot_bits == LAST_SLOT:
            full = _with_bit(full, listing_row, True)
    return PendingOutcomes(calendar, values, full), decisions, arrived, total


def _with_bit(full: tuple[int, ...], row: int, value: bool) -> tuple[int, ...]:
    """`full` with the bit of a row set or cleared, words as int32."""
    number, bit = row >> WORD_SHIFT, 1 << (row & (WORD_BITS - 1))
    bits = (full[number] | bit if value else full[number] & ~bit) & WORD
    return (*full[:number], bits - (WORD + 1) if bits >> (WORD_BITS - 1) else bits, *full[number + 1 :])
