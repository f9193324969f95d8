"""CreditReview with synthetic applicants, whose risk only the memory of an applicant reveals in full.

`CreditReviewEnv` has the rules in words. Money is in 1/10000 and divided once, at the border.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .. import draws, pending, regimes
from ..contract import FeedbackMode, Field, Outcome, Schema, Solution
from . import synthetic_applicants as people
from .terms import (
    ACTIONS,
    APPROVE,
    APPROVE_REDUCED,
    DELIBERATION,
    MANUAL_REVIEW,
    REJECT,
    REQUEST_DOCUMENT,
    VERDICT,
    verdict_code,
)

Array = jax.Array

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


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SyntheticParams:
    """What may differ between runs of one compiled step."""

    regime_steps: Array  # [K] i32, see `regimes.Schedule`
    regime_levels: Array  # [K] i32
    is_stream: Array  # [] bool, outcomes are paid when they arrive
    arrivals: people.Arrivals


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SyntheticState:
    """Everything that changes in an episode, and its applicants."""

    step: Array  # [] i32, decisions made so far
    known: people.Population
    application: people.Application
    pending: pending.PendingOutcomes


class Terms(NamedTuple):
    """What the loan at hand pays, [] i32 each, in 1/10000."""

    gain: Array
    loss: Array
    fine: Array
    reduced_gain: Array
    reduced_loss: Array
    reduced_fine: Array


@dataclasses.dataclass(frozen=True)
class SyntheticCredit:
    """World of synthetic applicants (`habitus.envs.contract.World`).

    Two worlds are equal when they compile to the same code; whatever else differs is in `params`.
    """

    n_applicants: int
    observe_entity: bool
    observe_group: bool
    schema: Schema = dataclasses.field(compare=False, repr=False)
    params: SyntheticParams = dataclasses.field(compare=False, repr=False)

    def initial(self, key: Array, params: SyntheticParams) -> SyntheticState:
        """State before the first decision; draws the returning applicants of the episode."""
        population_key, arrival_key = jax.random.split(key)
        known = people.population(population_key, self.n_applicants)
        known, application = people.arrive(
            draws.halves(arrival_key, (people.N_ARRIVAL_HALVES,)), known, params.arrivals
        )
        return SyntheticState(
            step=jnp.zeros((), jnp.int32),
            known=known,
            application=application,
            pending=pending.nothing_pending(),
        )

    def observe(self, state: SyntheticState, key: Array, params: SyntheticParams) -> dict[str, Array]:
        """[] i32 codes of the observed fields. Nothing is noisy: `key` is not used."""
        application = state.application
        codes = {field.name: application.fields[code] for code, field in enumerate(people.FIELDS)}
        codes[people.DOCUMENTS.name] = application.documents
        codes[people.APPLICANT] = application.applicant
        return {field.name: codes[field.name] for field in self.schema.fields}

    def step(
        self, state: SyntheticState, action: Array, key: Array, params: SyntheticParams
    ) -> tuple[SyntheticState, Outcome]:
        """One decision about the application at hand; `action` is [] i32 in [0, 5)."""
        halves = draws.halves(key, (N_DECISION_HALVES + people.N_ARRIVAL_HALVES,))
        bad_half, delay_half, review_half, document_half, withdrawal_half, _ = halves[:N_DECISION_HALVES]
        application = state.application
        terms, chance = self._terms(state, params), self._chance(state, params)

        is_bad = draws.happens_by_chance(bad_half, chance)
        is_worth_it = _expected(terms.gain, terms.loss, terms.fine, chance) > 0
        passes = is_worth_it == draws.happens(review_half, RIGHT_REVIEW)
        is_review, is_request = action == MANUAL_REVIEW, action == REQUEST_DOCUMENT
        is_paid_out = (action == APPROVE) | (is_review & passes)
        is_pending = is_paid_out | (action == APPROVE_REDUCED)
        full = jnp.where(is_bad, -terms.loss, terms.gain) - terms.fine
        reduced = jnp.where(is_bad, -terms.reduced_loss, terms.reduced_gain) - terms.reduced_fine
        delayed = jnp.where(is_paid_out, full, jnp.where(is_pending, reduced, 0))
        immediate = -jnp.where(is_review, REVIEW_FEE, jnp.where(is_request, _document_fee(application), 0))
        is_closed = ~is_request | draws.happens(withdrawal_half, WITHDRAWAL)

        waiting, outcome = pending.settle(
            state.pending,
            pending.Decision(state.step, immediate, delayed, is_pending, pending.delay(delay_half)),
            is_stream=params.is_stream,
            unit=MONEY,
            boundary=is_closed,
            signals={VERDICT.name: verdict_code(is_review, passes)},
        )
        known, following = people.arrive(halves[N_DECISION_HALVES:], state.known, params.arrivals)
        looks_good = application.has_good_documents ^ draws.happens(document_half, WRONG_DOCUMENTS)
        is_first_request = is_request & (application.documents == people.NOT_REQUESTED)
        shown = jnp.where(looks_good, people.GOOD_DOCUMENTS, people.POOR_DOCUMENTS)
        present = dataclasses.replace(application, documents=jnp.where(is_first_request, shown, application.documents))
        known, following = jax.tree.map(
            lambda new, old: jnp.where(is_closed, new, old), (known, following), (state.known, present)
        )
        return SyntheticState(state.step + 1, known, following, waiting), outcome

    def action_mask(self, state: SyntheticState, params: SyntheticParams) -> Array:
        """[5] bool: no documents are requested where there are none left to show."""
        return (
            jnp.ones(len(ACTIONS), jnp.bool_)
            .at[REQUEST_DOCUMENT]
            .set(state.application.documents == people.NOT_REQUESTED)
        )

    def expected_rewards(
        self, state: SyntheticState, params: SyntheticParams, solution: Solution | None = None
    ) -> Array:
        """[5] f32: expected total reward of each action, the applicant's own effect and documents known."""
        terms, chance = self._terms(state, params), self._chance(state, params)
        approve = _expected(terms.gain, terms.loss, terms.fine, chance)
        tenth = jax.lax.div(approve, jnp.int32(10))  # nine reviews of ten decide rightly, the tenth the opposite
        by_action = {
            APPROVE: approve,
            REJECT: jnp.zeros((), jnp.int32),
            MANUAL_REVIEW: jnp.where(approve > 0, approve - tenth, tenth) - REVIEW_FEE * draws.CHANCE_ONE,
            REQUEST_DOCUMENT: -_document_fee(state.application) * draws.CHANCE_ONE,
            APPROVE_REDUCED: _expected(terms.reduced_gain, terms.reduced_loss, terms.reduced_fine, chance),
        }
        expected = jnp.stack([by_action[action] for action in range(len(ACTIONS))])
        return jnp.divide(expected.astype(jnp.float32), jnp.float32(draws.CHANCE_ONE * MONEY))

    def action_values(self, state: SyntheticState, params: SyntheticParams, solution: Solution | None = None) -> Array:
        """[5] f32: the expected rewards; a decision changes nothing for those who come later."""
        return self.expected_rewards(state, params)

    def solve(self, params: SyntheticParams) -> None:
        """None: expected rewards are all there is."""

    def regime(self, state: SyntheticState, params: SyntheticParams) -> Array:
        """[] f32: regime of the coming decision."""
        return regimes.fraction(self._level(state, params))

    def audit(self, state: SyntheticState, params: SyntheticParams) -> dict[str, Array]:
        """Facts of the case at hand, [] i32 each; the applicant's own `effect` in 1/1000 log odds."""
        application = state.application
        return {
            "group": application.fields[people.GROUP],
            "applicant": application.applicant,
            "effect": state.known.effects[application.applicant],
            "has_good_documents": application.has_good_documents.astype(jnp.int32),
        }

    def _level(self, state: SyntheticState, params: SyntheticParams) -> Array:
        return regimes.level_at(params.regime_steps, params.regime_levels, state.step)

    def _chance(self, state: SyntheticState, params: SyntheticParams) -> Array:
        return people.chance_of_default(state.application, state.known.effects, self._level(state, params))

    def _terms(self, state: SyntheticState, params: SyntheticParams) -> Terms:
        amount, debt = state.application.fields[people.AMOUNT], state.application.fields[people.DEBT]
        gain, loss = GAIN + GAIN_PER_AMOUNT * amount, LOSS + LOSS_PER_AMOUNT * amount
        fine = jnp.where(debt >= FINE_FROM_DEBT, FINE_PER_LEVEL * self._level(state, params), 0)
        reduced_gain = jax.lax.div(gain * REDUCED_GAIN[0], jnp.int32(REDUCED_GAIN[1]))
        reduced_loss = jax.lax.div(loss * REDUCED_LOSS[0], jnp.int32(REDUCED_LOSS[1]))
        return Terms(gain, loss, fine, reduced_gain, reduced_loss, fine >> 1)


def synthetic_credit(
    *,
    difficulty: str,
    schedule: regimes.Schedule,
    feedback: FeedbackMode,
    observe_entity: bool,
    observe_group: bool,
) -> SyntheticCredit:
    """World for arguments that `CreditReviewEnv` has checked."""
    preset = DIFFICULTIES[difficulty]
    entity = Field(people.APPLICANT, ("new", *(f"#{number}" for number in range(1, preset.n_applicants + 1))))
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
        regime_steps=jnp.asarray(schedule.steps),
        regime_levels=jnp.asarray(schedule.levels),
        is_stream=jnp.asarray(feedback == "stream"),
        arrivals=people.arrivals(preset.returning, preset.drift),
    )
    return SyntheticCredit(preset.n_applicants, observe_entity, observe_group, schema, params)


def _expected(gain: Array, loss: Array, fine: Array, chance: Array) -> Array:
    """[] i32 in 1/(10000 x 32768): exact expectation of a loan; LARGEST_LOSS x 32768 fits into int32."""
    return gain * (draws.CHANCE_ONE - chance) - loss * chance - fine * draws.CHANCE_ONE


def _document_fee(application: people.Application) -> Array:
    return jnp.where(application.documents == people.NOT_REQUESTED, DOCUMENT_FEE, REPEATED_DOCUMENT_FEE)
