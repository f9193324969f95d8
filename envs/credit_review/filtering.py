"""The filtering oracle of synthetic credit: knows the dynamics, infers what each applicant is like by Bayes.

Hidden in a case are the applicant's own effect, which persists, and the quality of the documents, which belongs to the
case. The effect of each returning applicant has a belief over a grid; the quality is summed out.

What the belief learns from, each by its exact integer chance:

- outcomes of loans paid out, when `info["feedback"]` lists them, 20 to 100 steps after the decision;
- verdicts of reviews, at once: a reviewer knows the effect, so what he says tells of it; an outcome after a verdict
  counts only for what the verdict had not told, for both depend on the same documents;
- nothing else: rejecting says nothing, and documents are drawn anew for each case.

Rewards are not read. Under `feedback="attributed"` the reward of a decision contains its outcome at once, so an agent
that reads single rewards as labels can be up to 100 steps ahead. The filter listens to the one channel that is the same
under both kinds of feedback, so that there is one bound for both: what can be known when outcomes are known on arrival.

Exact, up to float32 and the spacing of the grid, where effects do not drift: a verdict is a step in the effect, which
even points place to within half their spacing; a grid of EVERY_VALUE leaves nothing out. Where effects drift ("hard"),
they move by their Gaussian transition at each new application, evaluated on the grid (sums over even points converge
faster than any power of the spacing), and one approximation remains: an outcome that arrives after its applicant has
come again is taken as news of the effect of today.

Decides by expected reward over the belief. Documents are worth what they improve the decision by on average, less the
fee, the chance that the applicant withdraws and the reward of one step elsewhere. Neither loans nor reviews are valued
for what they tell of the future: there is no exploration.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .. import draws
from ..arithmetic import ARRAYS
from ..contract import NO_DECISION, Seen
from ..regimes import LEVELS
from . import synthetic_applicants as people
from .loans import (
    DOCUMENT_FEE,
    MONEY,
    REPEATED_DOCUMENT_FEE,
    REVIEW_FEE,
    RIGHT_REVIEW,
    WITHDRAWAL,
    WRONG_DOCUMENTS,
    Terms,
    expected_money,
    loan_terms,
)
from .terms import (
    ACTIONS,
    APPROVE,
    APPROVE_REDUCED,
    MANUAL_REVIEW,
    REJECT,
    REQUEST_DOCUMENT,
    VERDICT,
    VERDICT_GOOD,
    VERDICT_NONE,
)

Array = jax.Array

SPACING, LIMIT = 250, 7250  # of the grid, 1/1000 log odds; effects are normal with a standard deviation of 2000
EVERY_VALUE = 0
"""Spacing of a grid that holds every value an effect can have: exact, slow, and without drift."""
N_CASES = 128  # cases remembered until their outcome: a power of two above `pending.MAX_DELAY`
BAD_BELOW = -0.5  # every repaid loan brings more, every lost one less, fines and reduced loans included
# Reward of a step elsewhere under the first and the second rules: what the policy itself earns at "medium".
STEP_VALUE, STEP_VALUE_FORGETFUL = (0.25, 0.15), (0.12, 0.075)
RIGHT = RIGHT_REVIEW / draws.HALF_ONE
POOR, GOOD = 0, 1  # quality of documents: rows of what depends on it


class Grid(NamedTuple):
    """Effects that a belief is spread over."""

    points: NDArray[np.int32]  # [G], 1/1000, ascending
    new: NDArray[np.float64]  # [G], chance of each effect of a new applicant
    returning: NDArray[np.float64]  # [G], of a returning one


class Case(NamedTuple):
    """What the likelihood of an outcome depends on; [] i32 each, or [N_CASES] of them."""

    decision: Array  # id, or NO_DECISION
    applicant: Array
    log_odds: Array  # of the fields alone
    documents: Array
    amount: Array
    debt: Array
    level: Array
    is_reviewed: Array  # 1 if a review found it good


class Belief(NamedTuple):
    """What is known of applicants, and the cases whose outcome is to come."""

    log_effects: Array  # [capacity + 1, G] f32, log probability of each effect, not normalised
    cases: Case  # of the decision of step s in slot s modulo N_CASES
    transition: Array  # [G, G] f32, chance of each effect at the next application; see `Filter` for no drift


@functools.cache
def grid(spacing: int) -> Grid:
    """Grid of even points, or of EVERY_VALUE."""
    if spacing == EVERY_VALUE:
        rows = people.EFFECTS.array.reshape(2, -1)
        points = np.unique(rows)
        share = [np.bincount(np.searchsorted(points, row), minlength=len(points)) / len(row) for row in rows]
        return Grid(points, share[people.NEW], share[people.RETURNING])
    points = np.arange(-LIMIT, LIMIT + 1, spacing, dtype=np.int32)
    density = [
        np.exp(-0.5 * (points / (draws.MILLI * deviation)) ** 2)
        for deviation in (people.NEW_EFFECT, people.RETURNING_EFFECT)
    ]
    return Grid(points, density[0] / density[0].sum(), density[1] / density[1].sum())


@dataclasses.dataclass(frozen=True)
class CreditFilter:
    """`habitus.envs.contract.Filter` of `SyntheticCredit`; the module says what it infers and how.

    Attributes:
        capacity: of the world.
        remembers: keeps a belief of each applicant; without, every applicant is one of many, new or returning.
        sees_applicants: whether it is observed who applies; without, nothing can be remembered of anybody.
        spacing: of the grid, or EVERY_VALUE.
    """

    capacity: int
    remembers: bool
    sees_applicants: bool
    spacing: int = SPACING

    def initial(self, observation: dict[str, Array], params: Any) -> Any:
        """Everybody is like anybody; the empty tuple for a filter that keeps nothing."""
        if not self.remembers:
            return ()
        effects = grid(self.spacing)
        with np.errstate(divide="ignore"):
            prior = jnp.asarray(np.log(effects.returning), jnp.float32)
        empty = jnp.zeros(N_CASES, jnp.int32)
        return Belief(
            log_effects=jnp.broadcast_to(prior, (self.capacity + 1, prior.size)),
            cases=Case(*(empty for _ in Case._fields))._replace(decision=empty + NO_DECISION),
            transition=self._transition(params),
        )

    def update(self, belief: Any, seen: Seen, params: Any) -> Any:
        """Verdict, outcomes that arrived, drift of whoever applies next."""
        if not self.remembers:
            return ()
        outcome, points = seen.outcome, jnp.asarray(grid(self.spacing).points)
        verdict = outcome.signals[VERDICT.name]
        case = _case(seen, outcome.decision_id, (verdict == VERDICT_GOOD).astype(jnp.int32))
        told = jnp.log(_chance_of_verdict(case, verdict == VERDICT_GOOD, points))
        log_effects = belief.log_effects.at[case.applicant].add(jnp.where(verdict == VERDICT_NONE, 0.0, told))
        slot = seen.step & (N_CASES - 1)
        cases = jax.tree.map(lambda ring, value: ring.at[slot].set(value), belief.cases, case)

        arrived = jax.tree.map(lambda ring: ring[outcome.feedback_id & (N_CASES - 1)], cases)
        is_known = (outcome.feedback_id != NO_DECISION) & (arrived.decision == outcome.feedback_id)
        told = jax.vmap(lambda case, bad: log_likelihood(case, bad, points))(
            arrived, outcome.feedback_value < BAD_BELOW
        )
        log_effects = log_effects.at[arrived.applicant].add(jnp.where(is_known[:, None], told, 0.0))
        if self.spacing != EVERY_VALUE:
            following = seen.following[people.APPLICANT]
            moved = jnp.log(jax.nn.softmax(log_effects[following]) @ belief.transition)
            moves = outcome.boundary & (params.arrivals.drift_fresh > 0)
            log_effects = log_effects.at[following].set(jnp.where(moves, moved, log_effects[following]))
        return Belief(log_effects, cases, belief.transition)

    def values(self, belief: Any, observation: dict[str, Array], level: Array, params: Any) -> Array:
        """[5] f32: expected reward of each action; of a request, as far as it improves this decision."""
        effects = grid(self.spacing)
        points, chance_of_effect = jnp.asarray(effects.points), self.effects(belief, observation, params)
        terms = loan_terms(observation["amount"], observation["debt"], level, ARRAYS)
        odds = people.log_odds_of_fields(_application(observation), level, ARRAYS)
        by_quality = _values_by_quality(odds, terms, points, chance_of_effect)  # [2, 5], -inf for a request
        documents = observation[people.DOCUMENTS.name]
        now = _mixed(by_quality, _quality(documents))
        is_first = documents == people.NOT_REQUESTED
        after = jnp.where(
            is_first,
            0.5 * _mixed(by_quality, _quality(jnp.int32(people.GOOD_DOCUMENTS))).max()
            + 0.5 * _mixed(by_quality, _quality(jnp.int32(people.POOR_DOCUMENTS))).max(),
            now.max(),
        )
        fee = jnp.where(is_first, DOCUMENT_FEE, REPEATED_DOCUMENT_FEE) / MONEY
        first, second = STEP_VALUE if self.remembers else STEP_VALUE_FORGETFUL
        step_value = first + (second - first) * level / LEVELS
        request = (1 - WITHDRAWAL / draws.HALF_ONE) * (after - step_value) - fee
        values: Array = now.at[REQUEST_DOCUMENT].set(request).astype(jnp.float32)
        return values

    def effects(self, belief: Any, observation: dict[str, Array], params: Any) -> Array:
        """[G] f32: chance of each effect of the applicant at hand."""
        effects = grid(self.spacing)
        new, returning = (jnp.asarray(prior, jnp.float32) for prior in (effects.new, effects.returning))
        if not self.sees_applicants:
            share = params.arrivals.returning.astype(jnp.float32) / draws.HALF_ONE
            mixture: Array = share * returning + (1 - share) * new
            return mixture
        applicant = observation[people.APPLICANT]
        if self.remembers:
            returning = jax.nn.softmax(belief.log_effects[applicant])
        chances: Array = jnp.where(applicant == people.NEW_APPLICANT, new, returning)
        return chances

    def _transition(self, params: Any) -> Array:
        if self.spacing == EVERY_VALUE:
            return jnp.zeros((0, 0), jnp.float32)
        points = jnp.asarray(grid(self.spacing).points, jnp.float32)
        one = jnp.float32(1 << people.DRIFT_BITS)
        kept, fresh = params.arrivals.drift_kept / one, params.arrivals.drift_fresh / one
        deviation = jnp.maximum(fresh * people.RETURNING_EFFECT * draws.MILLI, 1.0)  # of no use without drift
        log_density = -0.5 * ((points[None, :] - kept * points[:, None]) / deviation) ** 2
        transition: Array = jax.nn.softmax(log_density, axis=1)
        return transition


def _application(observation: dict[str, Array]) -> people.Application:
    """The fields of a case, as far as log odds need them."""
    hidden = jnp.zeros((), jnp.int32)
    return people.Application(**{name: observation.get(name, hidden) for name in people.Application._fields})


def _case(seen: Seen, decision: Array, is_reviewed: Array) -> Case:
    observation = seen.observation
    return Case(
        decision=decision,
        applicant=observation[people.APPLICANT],
        log_odds=people.log_odds_of_fields(_application(observation), seen.level, ARRAYS),
        documents=observation[people.DOCUMENTS.name],
        amount=observation["amount"],
        debt=observation["debt"],
        level=seen.level,
        is_reviewed=is_reviewed,
    )


def _quality(documents: Array) -> Array:
    """[2] f32: chance of POOR and of GOOD documents by what was shown."""
    wrong = WRONG_DOCUMENTS / draws.HALF_ONE
    good = jnp.asarray([0.5, 1 - wrong, wrong], jnp.float32)[documents]
    return jnp.stack([1 - good, good])


def _chances(log_odds: Array, points: Array) -> Array:
    """[2, G] i32 in 1/32768: chance of default by quality of documents and effect."""
    documents = jnp.asarray([people.DOCUMENTS_EFFECT, -people.DOCUMENTS_EFFECT], jnp.int32)
    return jnp.asarray(people.chance_of(log_odds + points[None, :] + documents[:, None], ARRAYS))


def _chance_of_good_verdict(terms: Terms, chances: Array) -> Array:
    """[2, G] f32: a reviewer knows what the loan is worth, and says it with RIGHT."""
    is_worth_it = expected_money(terms.gain, terms.loss, terms.fine, chances) > 0
    return jnp.where(is_worth_it, RIGHT, 1 - RIGHT).astype(jnp.float32)


def _chance_of_verdict(case: Case, is_good: Array, points: Array) -> Array:
    """[G] f32: chance of what a review said, by effect."""
    terms = loan_terms(case.amount, case.debt, case.level, ARRAYS)
    good = _mixed(_chance_of_good_verdict(terms, _chances(case.log_odds, points)), _quality(case.documents))
    return jnp.where(is_good, good, 1 - good)


def log_likelihood(case: Case, is_bad: Array, points: Array) -> Array:
    """[G] f32: log chance of an outcome, by effect; after a review given that it found the loan good."""
    chances, quality = _chances(case.log_odds, points), _quality(case.documents)
    bad = chances.astype(jnp.float32) / draws.CHANCE_ONE
    terms = loan_terms(case.amount, case.debt, case.level, ARRAYS)
    paid = jnp.where(case.is_reviewed == 1, _chance_of_good_verdict(terms, chances), jnp.float32(1))
    return jnp.log(_mixed(paid * jnp.where(is_bad, bad, 1 - bad), quality) / _mixed(paid, quality))


def _values_by_quality(log_odds: Array, terms: Terms, points: Array, chance_of_effect: Array) -> Array:
    """[2, 5] f32: expected reward of each action by quality of documents; -inf for a request."""
    chances = _chances(log_odds, points)
    unit = jnp.float32(MONEY * draws.CHANCE_ONE)
    full = expected_money(terms.gain, terms.loss, terms.fine, chances) / unit
    reduced = expected_money(terms.reduced_gain, terms.reduced_loss, terms.reduced_fine, chances) / unit
    review = RIGHT * jnp.maximum(full, 0) + (1 - RIGHT) * jnp.minimum(full, 0) - REVIEW_FEE / MONEY
    by_action = {
        APPROVE: full,
        REJECT: jnp.zeros_like(full),
        MANUAL_REVIEW: review,
        REQUEST_DOCUMENT: jnp.full_like(full, -jnp.inf),
        APPROVE_REDUCED: reduced,
    }
    values = jnp.stack([by_action[action] for action in range(len(ACTIONS))], axis=1)  # [2, 5, G]
    is_possible = (jnp.arange(len(ACTIONS), dtype=jnp.int32) != REQUEST_DOCUMENT)[None, :]
    mean = jnp.sum(jnp.where(is_possible[..., None], values, 0) * chance_of_effect, axis=-1)
    return jnp.where(is_possible, mean, -jnp.inf)


def _mixed(by_quality: Array, quality: Array) -> Array:
    """[...] f32: mean over POOR and GOOD of [2, ...]."""
    return quality[POOR] * by_quality[POOR] + quality[GOOD] * by_quality[GOOD]
