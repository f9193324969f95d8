"""Synthetic applicants: who they are, what they ask for, and how likely each of them is to default.

Log odds and effects are integers in 1/1000, chances in 1/32768.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .. import draws
from ..arithmetic import ARRAYS, Arithmetic, Table, Value, below, happens
from ..contract import Field
from ..regimes import LEVELS

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
OWN_BUSINESS_CASE = (1, 3)  # codes of the purpose and of the employment
DOCUMENTS_EFFECT = 900  # subtracted for good documents, added for poor ones
RETURNING_EFFECT, NEW_EFFECT = 2.0, 0.7  # standard deviation of the applicant's own log odds, not in 1/1000

N_PERSON_HALVES = 12
N_ARRIVAL_HALVES = N_PERSON_HALVES + 6
DRIFT_BITS = 14  # drift coefficients are in 1/16384
MAX_APPLICANTS = 2**15 - 1  # a random half times the number must stay inside int32
CODE_BITS, CODE_MASK = 3, 7  # of a field in the packed fields of a person: no field of PERSON has more than 8 labels


class Arrivals(NamedTuple):
    """Who comes, and how much applicants change."""

    returning: Value  # [] i32, `draws.threshold` of the share of applications by returning applicants
    drift_kept: Value  # [] i32, 1/16384, part of an applicant's effect that stays at each application
    drift_fresh: Value  # [] i32, 1/16384, part of a fresh effect that is added


class Population(NamedTuple):
    """The returning applicants of an episode, whose numbers start at 1."""

    effects: Value  # [capacity + 1] i32, own log odds; slot NEW_APPLICANT belongs to the new applicant at hand
    people: Value  # [capacity + 1] i32, the fields PERSON of each, CODE_BITS a field, the first in the lowest bits


class Application(NamedTuple):
    """The case at hand: the codes of FIELDS, in their order and by their names, and what belongs to the applicant."""

    income: Value
    debt: Value
    employment: Value
    history: Value
    past_default: Value
    amount: Value
    purpose: Value
    region: Value
    age: Value
    group: Value
    applicant: Value  # [] i32, NEW_APPLICANT or the number of a returning one
    documents: Value  # [] i32 code of DOCUMENTS
    effect: Value  # [] i32, the applicant's own log odds, hidden
    has_good_documents: Value  # [] bool, hidden


class Person(NamedTuple):
    """Codes of what a person is, in the order of PERSON."""

    income: Value
    debt: Value
    employment: Value
    history: Value
    past_default: Value
    region: Value
    age: Value
    group: Value


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


def population(key: Array, capacity: int) -> Population:
    """Draw the returning applicants of an episode; `key` is consumed."""
    person_key, effect_key = jax.random.split(key)
    size = capacity + 1
    effect_halves = draws.halves(effect_key, (size, 2))[:, 0].astype(jnp.int32)
    person_halves = draws.halves(person_key, (size, N_PERSON_HALVES)).astype(jnp.int32)
    return Population(
        effects=_effect(effect_halves, RETURNING, ARRAYS),
        people=_packed(_person(list(jnp.moveaxis(person_halves, -1, 0)), ARRAYS)),
    )


def arrive(
    halves: Sequence[Value], known: Population, how: Arrivals, n_applicants: Value, arithmetic: Arithmetic
) -> Application:
    """The next application. Whoever applies keeps the `effect` that it shows: see `remember`.

    Args:
        halves: N_ARRIVAL_HALVES of `draws.halves` as int32.
        known: returning applicants.
        how: parameters.
        n_applicants: [] i32, how many applicants return.
        arithmetic: executor.
    """
    first = N_PERSON_HALVES
    returns, who, amount, purpose = halves[first], halves[first + 1], halves[first + 2], halves[first + 3]
    bits, effect_half = halves[first + 4], halves[first + 5]
    is_returning = happens(returns, how.returning)
    applicant = arithmetic.where(is_returning, 1 + below(who, n_applicants), NEW_APPLICANT)
    person = arithmetic.choose(
        is_returning,
        lambda: _returned(arithmetic.take(known.people, applicant), halves, bits, arithmetic),
        lambda: _person(halves, arithmetic),
    )
    effect = arithmetic.choose(
        is_returning,
        lambda: (
            (
                how.drift_kept * arithmetic.take(known.effects, applicant)
                + how.drift_fresh * _effect(effect_half, RETURNING, arithmetic)
            )
            >> DRIFT_BITS
        ),
        lambda: _effect(effect_half, NEW, arithmetic),
    )
    return Application(
        person.income,
        person.debt,
        person.employment,
        person.history,
        person.past_default,
        below(amount, N_CODES[AMOUNT]),
        below(purpose, N_CODES[PURPOSE]),
        person.region,
        person.age,
        person.group,
        applicant,
        NOT_REQUESTED,
        effect,
        (bits >> N_REDRAWN) & 1 == 1,
    )


def remember(known: Population, application: Application, arithmetic: Arithmetic) -> Population:
    """The population in which whoever applies has the effect of the application."""
    return Population(arithmetic.put_if(known.effects, application.applicant, application.effect, True), known.people)


def log_odds_of_fields(application: Application, level: Value, arithmetic: Arithmetic) -> Value:
    """Log odds of default without the applicant's own effect and without documents.

    Args:
        application: the case; only its fields are read.
        level: [] i32, regime level.
        arithmetic: executor.

    Returns:
        [] i32 in 1/1000.
    """
    take = arithmetic.take
    rule = (level * N_CODES[PURPOSE] + application.purpose) * N_CODES[EMPLOYMENT] + application.employment
    return (
        take(INCOME_AND_DEBT, application.income * N_CODES[DEBT] + application.debt)
        + take(HISTORY_AND_DEFAULT, application.history * N_CODES[PAST_DEFAULT] + application.past_default)
        + take(EMPLOYMENT_AND_AMOUNT, application.employment * N_CODES[AMOUNT] + application.amount)
        + take(RULES, rule)
    )


def chance_of_default(application: Application, level: Value, arithmetic: Arithmetic) -> Value:
    """Probability that the applicant at hand defaults.

    Args:
        application: the case.
        level: [] i32, regime level.
        arithmetic: executor.

    Returns:
        [] i32 in 1/32768.
    """
    documents = arithmetic.where(application.has_good_documents, -DOCUMENTS_EFFECT, DOCUMENTS_EFFECT)
    return chance_of(log_odds_of_fields(application, level, arithmetic) + application.effect + documents, arithmetic)


def chance_of(log_odds: Value, arithmetic: Arithmetic) -> Value:
    """i32 in 1/32768: `draws.log_odds_chance` under either executor."""
    entry = (log_odds + draws.LOG_ODDS_LIMIT) >> draws.LOG_ODDS_STEP_BITS
    last = len(draws.SIGMOID_TABLE) - 1
    entry = arithmetic.where(entry < 0, 0, arithmetic.where(entry > last, last, entry))
    return arithmetic.take(CHANCES, entry)


def _effect(half: Value, kind: int, arithmetic: Arithmetic) -> Value:
    """i32 in 1/1000: normal with the standard deviation of a kind of applicant."""
    return arithmetic.take(EFFECTS, (kind << draws.NORMAL_BITS) + (half >> (draws.HALF_BITS - draws.NORMAL_BITS)))


def _past_default(half: Value, arithmetic: Arithmetic) -> Value:
    return arithmetic.integer(half >= NO_DEFAULT) + arithmetic.integer(half >= AT_MOST_ONE_DEFAULT)


def _person(halves: Sequence[Value], arithmetic: Arithmetic) -> Person:
    """Fields of a person. Membership of the group shifts income and history down and region to the south.

    Args:
        halves: at least N_PERSON_HALVES of `draws.halves` as int32, of any shape.
        arithmetic: executor.
    """
    income, debt, employment, history, default, group, age, region, south, lower_income, lower_history = (
        halves[number] for number in range(N_PERSON_HALVES - 1)
    )
    in_group = happens(group, IN_GROUP)
    income, history = below(income, N_CODES[INCOME]), below(history, N_CODES[HISTORY])
    lowers_income = in_group & happens(lower_income, LOWER_INCOME) & (income > 0)
    lowers_history = in_group & happens(lower_history, LOWER_HISTORY) & (history > 0)
    is_south = happens(south, arithmetic.where(in_group, SOUTH_IN_GROUP, SOUTH_ELSEWHERE))
    elsewhere = below(region, arithmetic.where(in_group, SOUTH + 1, SOUTH))
    return Person(
        income=income - arithmetic.integer(lowers_income),
        debt=below(debt, N_CODES[DEBT]),
        employment=below(employment, N_CODES[EMPLOYMENT]),
        history=history - arithmetic.integer(lowers_history),
        past_default=_past_default(default, arithmetic),
        region=arithmetic.where(is_south, SOUTH, elsewhere),
        age=below(age, N_CODES[AGE]),
        group=arithmetic.integer(in_group),
    )


def _packed(person: Person) -> Value:
    """i32: the codes of a person in one number."""
    packed = person[0]
    for number, code in enumerate(person[1:], start=1):
        packed = packed | (code << CODE_BITS * number)
    return packed


def _returned(packed: Value, halves: Sequence[Value], bits: Value, arithmetic: Arithmetic) -> Person:
    """A returning applicant today. A redrawn field is not shifted by membership of the group."""
    where = arithmetic.where
    return Person(
        income=where(bits & 1 == 1, below(halves[0], N_CODES[INCOME]), packed & CODE_MASK),
        debt=where(bits & 2 == 2, below(halves[1], N_CODES[DEBT]), packed >> CODE_BITS & CODE_MASK),
        employment=where(bits & 4 == 4, below(halves[2], N_CODES[EMPLOYMENT]), packed >> 2 * CODE_BITS & CODE_MASK),
        history=where(bits & 8 == 8, below(halves[3], N_CODES[HISTORY]), packed >> 3 * CODE_BITS & CODE_MASK),
        past_default=where(bits & 16 == 16, _past_default(halves[4], arithmetic), packed >> 4 * CODE_BITS & CODE_MASK),
        region=packed >> 5 * CODE_BITS & CODE_MASK,
        age=packed >> 6 * CODE_BITS & CODE_MASK,
        group=packed >> 7 * CODE_BITS & CODE_MASK,
    )


def _effect_table() -> NDArray[np.int32]:
    """[2, 4096] i32: effects of new and of returning applicants, equally likely, rounded towards 0."""
    deviations = np.array([NEW_EFFECT, RETURNING_EFFECT])
    tenths = np.round(10 * deviations).astype(np.int32)[:, None]
    table: NDArray[np.int32] = np.trunc(draws.NORMAL_TABLE * tenths / 10).astype(np.int32)
    return table


def _rule_table() -> NDArray[np.int32]:
    """[LEVELS + 1, purposes, employments] i32: what the rules change, rounded towards the first rules."""
    level = np.arange(LEVELS + 1)[:, None]
    employment, purpose = (
        table[0] + np.trunc((table[1] - table[0]) * level / LEVELS).astype(np.int32)
        for table in (EMPLOYMENT_EFFECTS, PURPOSE_EFFECTS)
    )
    effects: NDArray[np.int32] = purpose[:, :, None] + employment[:, None, :]
    effects[:, OWN_BUSINESS_CASE[0], OWN_BUSINESS_CASE[1]] += OWN_BUSINESS
    return effects


NEW, RETURNING = 0, 1  # rows of EFFECTS
EFFECTS = Table(_effect_table())
CHANCES = Table(draws.SIGMOID_TABLE)
RULES = Table(_rule_table())
INCOME_AND_DEBT = Table(
    [
        [
            INTERCEPT
            + PER_INCOME * (income - MIDDLE_INCOME)
            + PER_DEBT * (debt - MIDDLE_DEBT)
            + RICH_INDEBTED * (income >= 3 and debt >= 3)
            for debt in range(N_CODES[DEBT])
        ]
        for income in range(N_CODES[INCOME])
    ]
)
HISTORY_AND_DEFAULT = Table(
    [
        [
            PER_HISTORY * history
            + HISTORY_OFFSET
            + PER_PAST_DEFAULT * past_default
            + UNKNOWN_CLEAN * (history == 0 and past_default == 0)
            for past_default in range(N_CODES[PAST_DEFAULT])
        ]
        for history in range(N_CODES[HISTORY])
    ]
)
EMPLOYMENT_AND_AMOUNT = Table(
    [
        [
            PER_AMOUNT * amount + AMOUNT_OFFSET + SEASONAL_LARGE * (employment == 0 and amount >= 2)
            for amount in range(N_CODES[AMOUNT])
        ]
        for employment in range(N_CODES[EMPLOYMENT])
    ]
)
