"""CreditReview on a table of real applicants: the table says who comes and who repays, nothing about anybody else.

`CreditReviewEnv` has the rules in words. Money is in 1/10^7 and multiplied once, at the border.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, cast

import jax
import jax.numpy as jnp

from .. import draws, pending, regimes
from ..arithmetic import ARRAYS, INTEGERS, Arithmetic, Value, happens
from ..contract import FeedbackMode, Outcome, Schema, Solution
from . import permutation
from .applicants import ApplicantTable
from .table_params import (
    DOCUMENTS,
    LARGE_STAKE,
    MILLI,
    MONEY,
    SHOWN,
    STAKE,
    STAKE_UNIT,
    STAYS,
    Economics,
    TableParams,
    check_table,
    observed_fields,
    schema_of,
    table_params,
)
from .terms import (
    ACTIONS,
    APPROVE,
    APPROVE_REDUCED,
    MANUAL_REVIEW,
    REJECT,
    REQUEST_DOCUMENT,
    VERDICT,
    possible,
    verdict_code,
)

Array = jax.Array

N_HALVES = 4


class TableState(NamedTuple):
    """The row at hand and how many came before."""

    step: Value  # [] i32, decisions made so far
    order: Value  # permutation.KEY_SHAPE i32, the bits of the key of the order
    arrivals: Value  # [] i32, applicants before this one
    row: Value  # [] i32, of the applicant at hand; follows from order and arrivals, kept because observing needs it too
    is_withheld: Value  # [] bool, documents are not shown
    pending: pending.PendingOutcomes


@dataclasses.dataclass(frozen=True)
class TableCredit:
    """World of real applicants (`habitus.envs.contract.World`, `IntegerWorld`).

    Two worlds are equal when they compile to the same code; the tables are arrays in `params`.
    """

    code_names: tuple[str, ...]  # field of each column of `TableParams.codes`
    number_names: tuple[str, ...]
    observed: tuple[str, ...]
    schema: Schema = dataclasses.field(compare=False, repr=False)
    params: TableParams = dataclasses.field(compare=False, repr=False)

    @property
    def draws_apart(self) -> bool:
        """Published results rest on three keys a call."""
        return True

    @property
    def n_step_halves(self) -> int:
        """Random halves of a step."""
        return N_HALVES

    @property
    def n_observe_halves(self) -> int:
        """None: nothing observed is noisy."""
        return 0

    def initial(self, key: Array, params: TableParams) -> TableState:
        """State before the first decision; draws the order of the table."""
        order_key, arrival_key = jax.random.split(key)
        hide_half = draws.halves(arrival_key, (2,))[0].astype(jnp.int32)
        order = jax.lax.bitcast_convert_type(permutation.order_key(order_key), jnp.int32)
        arrivals = jnp.zeros((), jnp.int32)
        return TableState(
            step=jnp.zeros((), jnp.int32),
            order=order,
            arrivals=arrivals,
            row=_row(order, arrivals, params, ARRAYS),
            is_withheld=happens(hide_half, params.hides),
            pending=pending.nothing_pending(),
        )

    def observe(self, state: TableState, key: Array, params: TableParams) -> dict[str, Array]:
        """[] i32 codes and [1] f32 numbers of the observed fields. Nothing is noisy: `key` is not used."""
        shown: dict[str, Array] = self.show(state, (), params, ARRAYS)
        return {name: jnp.ravel(value) if value.dtype == jnp.float32 else value for name, value in shown.items()}

    def show(
        self, state: TableState, halves: Sequence[Value], params: TableParams, arithmetic: Arithmetic
    ) -> dict[str, Value]:
        """`observe` under either executor, with [] f32 numbers."""
        withheld = state.is_withheld
        codes, numbers = arithmetic.take(params.codes, state.row), arithmetic.take(params.numbers, state.row)
        fields: dict[str, Value] = {
            name: arithmetic.where(withheld & (params.withheld_codes[column] != STAYS), hidden, codes[column])
            for column, name in enumerate(self.code_names)
            for hidden in (params.withheld_codes[column],)
        }
        for column, name in enumerate(self.number_names):
            is_hidden = withheld & params.is_withheld[column]
            fields[name] = arithmetic.where(is_hidden, params.withheld_numbers[column], numbers[column])
        fields[STAKE.name] = arithmetic.money(arithmetic.take(params.stakes, state.row), STAKE_UNIT)
        fields[DOCUMENTS.name] = SHOWN - arithmetic.integer(withheld)
        return {name: fields[name] for name in self.observed}

    def step(self, state: TableState, action: Array, key: Array, params: TableParams) -> tuple[TableState, Outcome]:
        """One decision about the applicant at hand; `action` is [] i32 in [0, 5)."""
        halves = draws.halves(key, (N_HALVES,)).astype(jnp.int32)
        return self.advance(state, action, cast(Sequence[Array], halves), params, ARRAYS)

    def advance(
        self, state: TableState, action: Value, halves: Sequence[Value], params: TableParams, arithmetic: Arithmetic
    ) -> tuple[TableState, Outcome]:
        """`step` under either executor."""
        where, row = arithmetic.where, state.row
        delay_half, review_half, hide_half, _ = halves
        full = self._full(state, params, arithmetic)
        is_right = happens(review_half, arithmetic.divide(params.reliability * draws.HALF_ONE, MILLI))
        passes = arithmetic.take(params.bad, row) != is_right
        is_review, is_request = action == MANUAL_REVIEW, action == REQUEST_DOCUMENT
        is_paid_out = (action == APPROVE) | (is_review & passes)
        is_reduced = action == APPROVE_REDUCED
        reduced = arithmetic.choose(is_reduced, lambda: _share(full, params.reduced, arithmetic), lambda: 0)
        waiting, outcome = pending.settle(
            state.pending,
            pending.Decision(
                step=state.step,
                immediate=-where(is_review, params.review_fee, where(is_request, params.document_fee, 0)),
                delayed=where(is_paid_out, full, reduced),
                is_pending=is_paid_out | is_reduced,
                delay=pending.delay(delay_half),
            ),
            is_stream=params.is_stream,
            unit=MONEY,
            boundary=is_request ^ True,
            signals={VERDICT.name: verdict_code(is_review, passes, arithmetic)},
            arithmetic=arithmetic,
        )
        arrivals = state.arrivals + arithmetic.integer(is_request ^ True)
        return TableState(
            step=state.step + 1,
            order=state.order,
            arrivals=arrivals,
            row=arithmetic.choose(is_request, lambda: row, lambda: _row(state.order, arrivals, params, arithmetic)),
            is_withheld=(is_request ^ True) & happens(hide_half, params.hides),
            pending=waiting,
        ), outcome

    def mask(self, state: TableState, params: TableParams, arithmetic: Arithmetic) -> list[Value]:
        """A condition an action: documents are requested where they are withheld."""
        return possible(state.is_withheld)

    def action_mask(self, state: TableState, params: TableParams) -> Array:
        """[5] bool: no documents are requested where there are none left to show."""
        return jnp.stack([jnp.asarray(condition) for condition in self.mask(state, params, ARRAYS)])

    def expected_rewards(self, state: TableState, params: TableParams, solution: Solution | None = None) -> Array:
        """[5] f32: expected total reward of each action, the recorded outcome known."""
        full = self._full(state, params, ARRAYS)
        passed = jnp.where(params.bad[state.row], MILLI - params.reliability, params.reliability)
        by_action = {
            APPROVE: full,
            REJECT: jnp.zeros((), jnp.int32),
            MANUAL_REVIEW: _share(full, passed, ARRAYS) - params.review_fee,
            REQUEST_DOCUMENT: -params.document_fee,
            APPROVE_REDUCED: _share(full, params.reduced, ARRAYS),
        }
        expected = jnp.stack([by_action[action] for action in range(len(ACTIONS))])
        money: Array = ARRAYS.money(expected, MONEY)
        return money

    def action_values(self, state: TableState, params: TableParams, solution: Solution | None = None) -> Array:
        """[5] f32: the expected rewards; a decision changes nothing for those who come later."""
        return self.expected_rewards(state, params)

    def check(self, params: TableParams) -> None:
        """Refuse params out of range, see `contract.ChecksParams`."""
        regimes.check(params.regime_steps, params.regime_levels)
        n_labels = {field.name: len(field.labels) for field in self.schema.fields}
        check_table(params, [n_labels.get(name) for name in self.code_names])

    def solve(self, params: TableParams) -> None:
        """None: expected rewards are all there is."""

    def filter(self, solution: Solution | None, *, forgets: bool = False) -> NoReturn:
        """A table has none.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "a filtering oracle infers hidden variables from known dynamics, and a table of applicants has neither: it "
            "records who repaid, not how likely it was, and nobody returns; use the synthetic applicants, or compare "
            "with a supervised model of the table."
        )

    def regime(self, state: TableState, params: TableParams) -> Array:
        """[] f32: regime of the coming decision."""
        return regimes.fraction(_level(state, params, ARRAYS))

    def audit(self, state: TableState, params: TableParams) -> dict[str, Array]:
        """Facts of the case at hand, [] i32 each: recorded group (NO_GROUP without one), row and outcome."""
        return {
            "group": params.group[state.row],
            "row": state.row,
            "bad": params.bad[state.row].astype(jnp.int32),
            "epoch": jax.lax.div(state.arrivals, jnp.int32(len(params.bad))),
        }

    def _full(self, state: TableState, params: TableParams, arithmetic: Arithmetic) -> Value:
        """[] i32 in 1/MONEY: what the loan at hand pays if it is paid out in full."""
        level = _level(state, params, arithmetic)
        stake = arithmetic.take(params.stakes, state.row)
        gain = params.gain + _part(params.capped_gain - params.gain, level, arithmetic)
        is_large = stake >= round(LARGE_STAKE * STAKE_UNIT)
        charge = arithmetic.where(is_large, _part(params.charge, level, arithmetic), 0)
        return stake * (arithmetic.where(arithmetic.take(params.bad, state.row), -params.loss, gain) - charge)


def table_credit(
    table: ApplicantTable,
    economics: Economics,
    *,
    schedule: regimes.Schedule,
    feedback: FeedbackMode,
    observe_group: bool,
) -> TableCredit:
    """World for arguments that `CreditReviewEnv` has checked.

    Raises:
        ValueError: if the table has no group to observe, or its amounts and the economics do not fit into 32 bits.
    """
    if observe_group and table.group is None:
        raise ValueError(f"`observe_group` must be False for table {table.name!r}, got True; it records no group.")
    params = table_params(table, economics, schedule, feedback)
    fields = observed_fields(table, params, observe_group=observe_group)
    schema = schema_of(table, economics, params, fields, feedback)
    code_names = [field.name for field in table.category_fields]
    code_names += [field.status for field in table.number_fields if field.status is not None]
    return TableCredit(
        code_names=(*code_names, *((table.group_name,) if table.group is not None else ())),
        number_names=tuple(field.name for field in table.number_fields),
        observed=tuple(field.name for field in fields),
        schema=schema,
        params=params,
    )


def _level(state: TableState, params: TableParams, arithmetic: Arithmetic) -> Value:
    return arithmetic.take(params.regime_levels, arithmetic.entry_at(params.regime_steps, state.step))


def _part(difference: Value, level: Value, arithmetic: Arithmetic) -> Value:
    """i32: how much of the difference between two sets of rules is in force, see `regimes.interpolated`."""
    return arithmetic.divide(difference * level, regimes.LEVELS)


def _row(order: Any, arrivals: Value, params: TableParams, arithmetic: Arithmetic) -> Value:
    """[] i32: row of an applicant; every row comes once in an epoch, each epoch in an order of its own."""
    size = len(params.bad)
    epoch = arithmetic.divide(arrivals, size)
    position = arrivals - epoch * size
    if arithmetic is INTEGERS:
        return permutation.permuted_integer(position, size, order, epoch)
    return permutation.permuted(position, size, jax.lax.bitcast_convert_type(order, jnp.uint32), epoch)


def _share(money: Value, share: Value, arithmetic: Arithmetic) -> Value:
    """i32: share / MILLI of the money, rounded towards 0, without leaving 32 bits."""
    whole = arithmetic.divide(money, MILLI)
    return whole * share + arithmetic.divide((money - whole * MILLI) * share, MILLI)
