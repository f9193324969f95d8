"""Synthetic applicants: who they are, what they ask for, and how likely each of them is to default.

Log odds and effects are integers in 1/1000, chances in 1/32768.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from .. import draws, regimes
from ..contract import Field

Array = jax.Array

FIELDS = (
    Field("income", ("very low", "low", "middle", "high", "very high")),
    Field("debt", ("none", "low", "middle", "high", "very high")),
    Field("employment", ("seasonal", "temporary", "permanent", "self-employed")),
    Field("history", ("none", "short", "medium", "long")),
    Field("past_default", ("none", "one", "several")),
    Field("amount", ("small", "medium", "large", "very large")),
    Field("purpose", ("household", "business", "home", "refinancing", "vehicle")),
    Field("region", ("north", "east", "west", "south")),
    Field("age", ("18-29", "30-44", "45-59", "60 and over")),
    Field("group", ("a", "b"), sensitive=True),
)
N_CODES = tuple(len(field.labels) for field in FIELDS)
INCOME, DEBT, EMPLOYMENT, HISTORY, PAST_DEFAULT, AMOUNT, PURPOSE, REGION, AGE, GROUP = range(len(FIELDS))
GROUP_PROXIES = (FIELDS[REGION].name, FIELDS[INCOME].name, FIELDS[HISTORY].name)

DOCUMENTS = Field("documents", ("not requested", "good", "poor"))
NOT_REQUESTED, GOOD_DOCUMENTS, POOR_DOCUMENTS = range(len(DOCUMENTS.labels))
APPLICANT = "applicant"
NEW_APPLICANT = 0  # code of an applicant who is not among the returning ones

# What a returning applicant is, drawn once an episode. The first N_REDRAWN are redrawn with probability 1/2 at each
# application, so that the fields do not betray who the applicant is.
PERSON = (INCOME, DEBT, EMPLOYMENT, HISTORY, PAST_DEFAULT, REGION, AGE, GROUP)
N_REDRAWN = 5

IN_GROUP = draws.threshold(0.35)
LOWER_INCOME, LOWER_HISTORY = draws.threshold(0.35), draws.threshold(0.3)  # in the group only
NO_DEFAULT, AT_MOST_ONE_DEFAULT = draws.threshold(0.65), draws.threshold(0.88)
SOUTH_IN_GROUP, SOUTH_ELSEWHERE = draws.threshold(0.6), draws.threshold(0.08)
SOUTH = 3

# Log odds of default; two rows = first and second set of rules.
INTERCEPT = -1600
PER_INCOME, MIDDLE_INCOME = -450, 2
PER_DEBT, MIDDLE_DEBT = 450, 2
PER_HISTORY, HISTORY_OFFSET = -300, 450
PER_PAST_DEFAULT = 900
PER_AMOUNT, AMOUNT_OFFSET = 200, -300
EMPLOYMENT_EFFECTS = np.array([[700, 100, -300, -500], [-500, -200, 200, 900]], np.int32)
PURPOSE_EFFECTS = np.array([[0, 500, -400, 900, -200], [900, -500, 600, -800, 900]], np.int32)
SEASONAL_LARGE, RICH_INDEBTED, UNKNOWN_CLEAN, OWN_BUSINESS = 1200, -1000, 500, -1200
DOCUMENTS_EFFECT = 900  # subtracted for good documents, added for poor ones
RETURNING_EFFECT, NEW_EFFECT = 2.0, 0.7  # standard deviation of the applicant's own log odds, not in 1/1000

N_PERSON_HALVES = 12
N_ARRIVAL_HALVES = N_PERSON_HALVES + 6
DRIFT_BITS = 14  # drift coefficients are in 1/16384


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Arrivals:
    """Who comes, and how much applicants change."""

    returning: Array  # [] i32, `draws.threshold` of the share of applications by returning applicants
    drift_kept: Array  # [] i32, 1/16384, part of an applicant's effect that stays at each application
    drift_fresh: Array  # [] i32, 1/16384, part of a fresh effect that is added


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Population:
    """The n returning applicants of an episode."""

    effects: Array  # [n + 1] i32, own log odds; slot NEW_APPLICANT belongs to the new applicant at hand
    people: Array  # [n + 1, len(PERSON)] i32 codes; slot NEW_APPLICANT is unused


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Application:
    """The case at hand."""

    fields: Array  # [len(FIELDS)] i32 codes
    applicant: Array  # [] i32, NEW_APPLICANT or the number of a returning one
    documents: Array  # [] i32 code of DOCUMENTS
    has_good_documents: Array  # [] bool, hidden


def arrivals(returning: float, drift: float) -> Arrivals:
    """Parameters of a population.

    Args:
        returning: share of the applications that come from returning applicants.
        drift: per application an applicant's effect becomes sqrt(1 - drift) old + sqrt(drift) fresh.
    """
    return Arrivals(
        returning=jnp.asarray(draws.threshold(returning), jnp.int32),
        drift_kept=jnp.asarray(round((1 - drift) ** 0.5 * 2**DRIFT_BITS), jnp.int32),
        drift_fresh=jnp.asarray(round(drift**0.5 * 2**DRIFT_BITS), jnp.int32),
    )


def population(key: Array, n_applicants: int) -> Population:
    """Draw the returning applicants of an episode; `key` is consumed."""
    person_key, effect_key = jax.random.split(key)
    size = n_applicants + 1
    return Population(
        effects=_effect(draws.halves(effect_key, (size, 2))[:, 0], RETURNING_EFFECT),
        people=_person(draws.halves(person_key, (size, N_PERSON_HALVES))),
    )


def arrive(halves: Array, known: Population, how: Arrivals) -> tuple[Population, Application]:
    """The next application.

    Args:
        halves: [N_ARRIVAL_HALVES] u32 of `draws.halves`.
        known: returning applicants.
        how: parameters.

    Returns:
        The population after the drift of the one who applies, and the application.
    """
    person_halves = halves[:N_PERSON_HALVES]
    returns, who, amount, purpose, bits, effect = halves[N_PERSON_HALVES:]
    is_returning = draws.happens(returns, how.returning.astype(jnp.uint32))
    applicant = jnp.where(is_returning, 1 + draws.below(who, len(known.effects) - 1), NEW_APPLICANT)
    person = jnp.where(is_returning, _returned(known.people[applicant], person_halves, bits), _person(person_halves))
    fields = jnp.zeros(len(FIELDS), jnp.int32).at[jnp.array(PERSON, jnp.int32)].set(person)
    fields = fields.at[AMOUNT].set(draws.below(amount, N_CODES[AMOUNT]))
    fields = fields.at[PURPOSE].set(draws.below(purpose, N_CODES[PURPOSE]))

    drifted = how.drift_kept * known.effects[applicant] + how.drift_fresh * _effect(effect, RETURNING_EFFECT)
    own_effect = jnp.where(is_returning, drifted >> DRIFT_BITS, _effect(effect, NEW_EFFECT))
    return dataclasses.replace(known, effects=known.effects.at[applicant].set(own_effect)), Application(
        fields=fields,
        applicant=applicant,
        documents=jnp.full((), NOT_REQUESTED, jnp.int32),
        has_good_documents=(bits >> N_REDRAWN) & 1 == 1,
    )


def chance_of_default(application: Application, effects: Array, level: Array) -> Array:
    """Probability that the applicant at hand defaults.

    Args:
        application: the case.
        effects: [n + 1] i32, see `Population`.
        level: [] i32, regime level.

    Returns:
        [] i32 in 1/32768.
    """
    fields = application.fields
    odds = INTERCEPT + PER_INCOME * (fields[INCOME] - MIDDLE_INCOME) + PER_DEBT * (fields[DEBT] - MIDDLE_DEBT)
    odds += PER_HISTORY * fields[HISTORY] + HISTORY_OFFSET + PER_PAST_DEFAULT * fields[PAST_DEFAULT]
    odds += PER_AMOUNT * fields[AMOUNT] + AMOUNT_OFFSET
    for table, field in ((EMPLOYMENT_EFFECTS, EMPLOYMENT), (PURPOSE_EFFECTS, PURPOSE)):
        first, second = jnp.asarray(table)[:, fields[field]]
        odds += regimes.interpolated(first, second, level)
    odds += jnp.where((fields[EMPLOYMENT] == 0) & (fields[AMOUNT] >= 2), SEASONAL_LARGE, 0)
    odds += jnp.where((fields[INCOME] >= 3) & (fields[DEBT] >= 3), RICH_INDEBTED, 0)
    odds += jnp.where((fields[PAST_DEFAULT] == 0) & (fields[HISTORY] == 0), UNKNOWN_CLEAN, 0)
    odds += jnp.where((fields[PURPOSE] == 1) & (fields[EMPLOYMENT] == 3), OWN_BUSINESS, 0)
    odds += effects[application.applicant]
    odds += jnp.where(application.has_good_documents, -DOCUMENTS_EFFECT, DOCUMENTS_EFFECT)
    return draws.log_odds_chance(odds)


def _effect(half: Array, deviation: float) -> Array:
    """i32 in 1/1000: normal with a standard deviation that is a multiple of .1."""
    return jax.lax.div(draws.normal(half) * round(10 * deviation), jnp.int32(10))


def _past_default(half: Array) -> Array:
    is_clean, is_at_most_one = draws.happens(half, NO_DEFAULT), draws.happens(half, AT_MOST_ONE_DEFAULT)
    return jnp.where(is_clean, 0, jnp.where(is_at_most_one, 1, 2)).astype(jnp.int32)


def _person(halves: Array) -> Array:
    """Fields of a person. Membership of the group shifts income and history down and region to the south.

    Args:
        halves: [..., N_PERSON_HALVES] u32 of `draws.halves`.

    Returns:
        [..., len(PERSON)] i32 codes.
    """
    columns = jnp.moveaxis(halves, -1, 0)
    income, debt, employment, history, default, group, age, region, south, lower_income, lower_history, _ = columns
    in_group = draws.happens(group, IN_GROUP)
    lowers_income = in_group & draws.happens(lower_income, LOWER_INCOME)
    lowers_history = in_group & draws.happens(lower_history, LOWER_HISTORY)
    is_south = draws.happens(south, jnp.where(in_group, SOUTH_IN_GROUP, SOUTH_ELSEWHERE).astype(jnp.uint32))
    elsewhere = draws.below(region, jnp.where(in_group, SOUTH + 1, SOUTH).astype(jnp.uint32))
    codes = {
        INCOME: jnp.maximum(draws.below(income, N_CODES[INCOME]) - lowers_income, 0),
        DEBT: draws.below(debt, N_CODES[DEBT]),
        EMPLOYMENT: draws.below(employment, N_CODES[EMPLOYMENT]),
        HISTORY: jnp.maximum(draws.below(history, N_CODES[HISTORY]) - lowers_history, 0),
        PAST_DEFAULT: _past_default(default),
        REGION: jnp.where(is_south, SOUTH, elsewhere),
        AGE: draws.below(age, N_CODES[AGE]),
        GROUP: in_group.astype(jnp.int32),
    }
    return jnp.stack([codes[field] for field in PERSON], axis=-1)


def _returned(person: Array, halves: Array, bits: Array) -> Array:
    """[len(PERSON)] i32: a returning applicant today. A redrawn field is not shifted by membership of the group."""
    income, debt, employment, history, default, *_ = halves
    redrawn = [draws.below(half, n) for half, n in zip((income, debt, employment, history), N_CODES, strict=False)]
    today = jnp.stack([*redrawn, _past_default(default)])
    is_redrawn = (bits >> jnp.arange(N_REDRAWN, dtype=jnp.uint32)) & 1 == 1
    return person.at[:N_REDRAWN].set(jnp.where(is_redrawn, today, person[:N_REDRAWN]))
