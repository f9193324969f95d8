"""CreditReview with synthetic applicants, whose risk only the memory of an applicant reveals in full.

`CreditReviewEnv` has the rules in words. Money is in 1/10000 and multiplied once, at the border.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp

from .. import arguments, draws, pending, regimes
from ..arithmetic import ARRAYS, Arithmetic, Value, happens
from ..contract import FeedbackMode, Field, Filter, Outcome, Schema, Solution
from . import filtering
from . import synthetic_applicants as people
from .loans import (
    DOCUMENT_FEE,
    LARGEST_LOSS,
    MONEY,
    REPEATED_DOCUMENT_FEE,
    REVIEW_FEE,
    RIGHT_REVIEW,
    WITHDRAWAL,
    WRONG_DOCUMENTS,
    expected_money,
    loan_terms,
)
from .terms import (
    ACTIONS,
    APPROVE,
    APPROVE_REDUCED,
    DELIBERATION,
    MANUAL_REVIEW,
    REJECT,
    REQUEST_DOCUMENT,
    VERDICT,
    possible,
    verdict_code,
)

Array = jax.Array

N_DECISION_HALVES = 6


class Difficulty(NamedTuple):
    """How much there is to remember, and for how long."""

    n_applicants: int  # that return
    returning: float  # share of the applications that are theirs
    drift: float  # of an applicant's own effect, see `synthetic_applicants.arrivals`


DIFFICULTIES = {
    "easy": Difficulty(30, 0.9, 0.0),
    "medium": Difficulty(80, 0.8, 0.0),
    "hard": Difficulty(240, 0.8, 0.03),
}


class SyntheticParams(NamedTuple):
    """What may differ between runs of one compiled step."""

    n_applicants: Array  # [] i32, that return; at most the capacity of the world
    arrivals: people.Arrivals
    regime_steps: Array  # [K] i32, see `regimes.Schedule`
    regime_levels: Array  # [K] i32
    is_stream: Array  # [] bool, outcomes are paid when they arrive


class SyntheticState(NamedTuple):
    """Everything that changes in an episode, and its applicants."""

    step: Value  # [] i32, decisions made so far
    known: people.Population
    application: people.Application
    pending: pending.PendingOutcomes


class Loan(NamedTuple):
    """What comes of a decision that may pay out."""

    passes: Value  # [] bool, what a review says of the loan
    is_pending: Value  # [] bool, money is paid out
    delayed: Value  # [] i32 in 1/10000, what it brings


@dataclasses.dataclass(frozen=True)
class SyntheticCredit:
    """World of synthetic applicants (`habitus.envs.contract.World`, `IntegerWorld`).

    Two worlds are equal when they compile to the same code; whatever else differs is in `params`.
    """

    capacity: int  # returning applicants that a state has room for
    observe_entity: bool
    observe_group: bool
    schema: Schema = dataclasses.field(compare=False, repr=False)
    params: SyntheticParams = dataclasses.field(compare=False, repr=False)

    @property
    def draws_apart(self) -> bool:
        """Published results rest on three keys a call."""
        return True

    @property
    def n_step_halves(self) -> int:
        """Random halves of a step."""
        return N_DECISION_HALVES + people.N_ARRIVAL_HALVES

    @property
    def n_observe_halves(self) -> int:
        """None: nothing observed is noisy, documents are drawn when they are requested."""
        return 0

    def initial(self, key: Array, params: SyntheticParams) -> SyntheticState:
        """State before the first decision; draws the returning applicants of the episode."""
        population_key, arrival_key = jax.random.split(key)
        known = people.population(population_key, self.capacity)
        halves = draws.halves(arrival_key, (people.N_ARRIVAL_HALVES,)).astype(jnp.int32)
        application = people.arrive(cast(Sequence[Array], halves), known, params.arrivals, params.n_applicants, ARRAYS)
        return SyntheticState(
            step=jnp.zeros((), jnp.int32),
            known=people.remember(known, application, ARRAYS),
            application=application._replace(documents=jnp.full((), people.NOT_REQUESTED, jnp.int32)),
            pending=pending.nothing_pending(),
        )

    def observe(self, state: SyntheticState, key: Array, params: SyntheticParams) -> dict[str, Array]:
        """[] i32 codes of the observed fields. Nothing is noisy: `key` is not used."""
        observation: dict[str, Array] = self.show(state, (), params, ARRAYS)
        return observation

    def show(
        self, state: SyntheticState, halves: Sequence[Value], params: SyntheticParams, arithmetic: Arithmetic
    ) -> dict[str, Value]:
        """`observe` under either executor."""
        application = state.application
        return {field.name: getattr(application, field.name) for field in self.schema.fields}

    def step(
        self, state: SyntheticState, action: Array, key: Array, params: SyntheticParams
    ) -> tuple[SyntheticState, Outcome]:
        """One decision about the application at hand; `action` is [] i32 in [0, 5)."""
        halves = draws.halves(key, (self.n_step_halves,)).astype(jnp.int32)
        return self.advance(state, action, cast(Sequence[Array], halves), params, ARRAYS)

    def advance(
        self,
        state: SyntheticState,
        action: Value,
        halves: Sequence[Value],
        params: SyntheticParams,
        arithmetic: Arithmetic,
    ) -> tuple[SyntheticState, Outcome]:
        """`step` under either executor."""
        where, application = arithmetic.where, state.application
        bad_half, delay_half, review_half = halves[0], halves[1], halves[2]
        document_half, withdrawal_half = halves[3], halves[4]
        is_review, is_request = action == MANUAL_REVIEW, action == REQUEST_DOCUMENT
        loan = arithmetic.choose(
            is_request | (action == REJECT),
            lambda: Loan(is_review, is_review, 0),  # no review, nothing paid out
            lambda: self._loan(state, action, bad_half, review_half, params, arithmetic),
        )
        fee = arithmetic.choose(is_request, lambda: _document_fee(application, arithmetic), lambda: 0)
        is_closed = (is_request ^ True) | happens(withdrawal_half, WITHDRAWAL)
        waiting, outcome = pending.settle(
            state.pending,
            pending.Decision(
                step=state.step,
                immediate=-where(is_review, REVIEW_FEE, fee),
                delayed=loan.delayed,
                is_pending=loan.is_pending,
                delay=pending.delay(delay_half),
            ),
            is_stream=params.is_stream,
            unit=MONEY,
            boundary=is_closed,
            signals={VERDICT.name: verdict_code(is_review, loan.passes, arithmetic)},
            arithmetic=arithmetic,
        )
        following = arithmetic.choose(
            is_closed,
            lambda: people.arrive(
                halves[N_DECISION_HALVES:],
                state.known,
                params.arrivals,
                params.n_applicants,
                arithmetic,
            ),
            lambda: _with_documents(application, document_half, arithmetic),
        )
        known = people.remember(state.known, following, arithmetic)
        return SyntheticState(state.step + 1, known, following, waiting), outcome

    def _loan(
        self,
        state: SyntheticState,
        action: Value,
        bad_half: Value,
        review_half: Value,
        params: SyntheticParams,
        arithmetic: Arithmetic,
    ) -> Loan:
        where, application = arithmetic.where, state.application
        level = self._level(state, params, arithmetic)
        chance = people.chance_of_default(application, level, arithmetic)
        terms = loan_terms(application.amount, application.debt, level, arithmetic)
        is_bad = bad_half >> (draws.HALF_BITS - draws.CHANCE_BITS) < chance
        is_worth_it = expected_money(terms.gain, terms.loss, terms.fine, chance) > 0
        passes = is_worth_it == happens(review_half, RIGHT_REVIEW)
        is_paid_out = (action == APPROVE) | ((action == MANUAL_REVIEW) & passes)
        full = where(is_bad, -terms.loss, terms.gain) - terms.fine
        reduced = where(is_bad, -terms.reduced_loss, terms.reduced_gain) - terms.reduced_fine
        is_reduced = action == APPROVE_REDUCED
        return Loan(passes, is_paid_out | is_reduced, where(is_paid_out, full, where(is_reduced, reduced, 0)))

    def mask(self, state: SyntheticState, params: SyntheticParams, arithmetic: Arithmetic) -> list[Value]:
        """A condition an action: documents are requested once."""
        return possible(state.application.documents == people.NOT_REQUESTED)

    def action_mask(self, state: SyntheticState, params: SyntheticParams) -> Array:
        """[5] bool: no documents are requested where there are none left to show."""
        return jnp.stack([jnp.asarray(condition) for condition in self.mask(state, params, ARRAYS)])

    def expected_rewards(
        self, state: SyntheticState, params: SyntheticParams, solution: Solution | None = None
    ) -> Array:
        """[5] f32: expected total reward of each action, the applicant's own effect and documents known."""
        application, level = state.application, self._level(state, params, ARRAYS)
        chance = people.chance_of_default(application, level, ARRAYS)
        terms = loan_terms(application.amount, application.debt, level, ARRAYS)
        approve = expected_money(terms.gain, terms.loss, terms.fine, chance)
        tenth = ARRAYS.divide(approve, 10)  # nine reviews of ten decide rightly, the tenth the opposite
        by_action = {
            APPROVE: approve,
            REJECT: jnp.zeros((), jnp.int32),
            MANUAL_REVIEW: jnp.where(approve > 0, approve - tenth, tenth) - REVIEW_FEE * draws.CHANCE_ONE,
            REQUEST_DOCUMENT: -_document_fee(application, ARRAYS) * draws.CHANCE_ONE,
            APPROVE_REDUCED: expected_money(terms.reduced_gain, terms.reduced_loss, terms.reduced_fine, chance),
        }
        expected = jnp.stack([by_action[action] for action in range(len(ACTIONS))])
        return jnp.divide(expected.astype(jnp.float32), jnp.float32(draws.CHANCE_ONE * MONEY))

    def action_values(self, state: SyntheticState, params: SyntheticParams, solution: Solution | None = None) -> Array:
        """[5] f32: the expected rewards; a decision changes nothing for those who come later."""
        return self.expected_rewards(state, params)

    def check(self, params: SyntheticParams) -> None:
        """Refuse params out of range, see `contract.ChecksParams`."""
        regimes.check(params.regime_steps, params.regime_levels)
        arguments.entries("params.n_applicants", params.n_applicants, 1, self.capacity)
        arguments.entries("params.arrivals.returning", params.arrivals.returning, 0, draws.HALF_ONE)
        for name in ("drift_kept", "drift_fresh"):
            arguments.entries(f"params.arrivals.{name}", getattr(params.arrivals, name), 0, 1 << people.DRIFT_BITS)

    def solve(self, params: SyntheticParams) -> None:
        """None: expected rewards are all there is."""

    def filter(self, solution: Solution | None, *, forgets: bool = False) -> Filter:
        """The filtering oracle, see `filtering`; `solution` is not needed."""
        return filtering.CreditFilter(
            capacity=self.capacity,
            remembers=self.observe_entity and not forgets,
            sees_applicants=self.observe_entity,
        )

    def regime(self, state: SyntheticState, params: SyntheticParams) -> Array:
        """[] f32: regime of the coming decision."""
        return regimes.fraction(self._level(state, params, ARRAYS))

    def audit(self, state: SyntheticState, params: SyntheticParams) -> dict[str, Array]:
        """Facts of the case at hand, [] i32 each; the applicant's own `effect` in 1/1000 log odds."""
        application = state.application
        return {
            "group": application.group,
            "applicant": application.applicant,
            "effect": application.effect,
            "has_good_documents": application.has_good_documents.astype(jnp.int32),
        }

    def _level(self, state: SyntheticState, params: SyntheticParams, arithmetic: Arithmetic) -> Value:
        return arithmetic.take(params.regime_levels, arithmetic.entry_at(params.regime_steps, state.step))


def synthetic_credit(
    *,
    difficulty: str,
    capacity: int | None,
    schedule: regimes.Schedule,
    feedback: FeedbackMode,
    observe_entity: bool,
    observe_group: bool,
) -> SyntheticCredit:
    """World for arguments that `CreditReviewEnv` has checked."""
    preset = DIFFICULTIES[difficulty]
    capacity = preset.n_applicants if capacity is None else capacity
    entity = Field(people.APPLICANT, ("new", *(f"#{number}" for number in range(1, capacity + 1))))
    fields = [field for field in people.FIELDS if observe_group or not field.sensitive]
    group = people.FIELDS[people.GROUP].name
    schema = Schema(
        world="CreditReview",
        version=0,
        fields=(*fields, people.DOCUMENTS, *((entity,) if observe_entity else ())),
        actions=ACTIONS,
        entity_field=people.APPLICANT if observe_entity else None,
        stake_field=None,
        boundary="application",
        deliberation=DELIBERATION,
        scaled_actions=(),
        review=None,
        signals=(VERDICT,),
        sensitive=(group,),
        proxies=((group, people.GROUP_PROXIES),),
        reward_bound=(LARGEST_LOSS + REVIEW_FEE) / MONEY,
        feedback=feedback,
        score_per="step",
    )
    params = SyntheticParams(
        n_applicants=jnp.asarray(preset.n_applicants, jnp.int32),
        arrivals=people.arrivals(preset.returning, preset.drift),
        regime_steps=jnp.asarray(schedule.steps),
        regime_levels=jnp.asarray(schedule.levels),
        is_stream=jnp.asarray(feedback == "stream"),
    )
    return SyntheticCredit(capacity, observe_entity, observe_group, schema, params)


def _document_fee(application: people.Application, arithmetic: Arithmetic) -> Value:
    return arithmetic.where(application.documents == people.NOT_REQUESTED, DOCUMENT_FEE, REPEATED_DOCUMENT_FEE)


def _with_documents(application: people.Application, half: Value, arithmetic: Arithmetic) -> people.Application:
    """The same case after a request; a second one shows nothing new."""
    looks_good = application.has_good_documents ^ happens(half, WRONG_DOCUMENTS)
    shown = people.POOR_DOCUMENTS - arithmetic.integer(looks_good)
    is_first = application.documents == people.NOT_REQUESTED
    return application._replace(documents=arithmetic.where(is_first, shown, application.documents))
