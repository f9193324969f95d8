"""What `CreditReview` makes of a table of applicants: parameters of the dynamics, and the schema.

Stakes are integers in 1/1000, rates in 1/10000 per unit of stake, money is their product, 1/10^7.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import arguments, draws, pending, regimes
from ..contract import STATUS_LABELS, FeedbackMode, Field, Review, ScaledAction, Schema
from .applicants import HIDDEN, ApplicantTable
from .terms import (
    ACTIONS,
    APPROVE,
    APPROVE_REDUCED,
    DELIBERATION,
    MANUAL_REVIEW,
    VERDICT,
    VERDICT_BAD,
    VERDICT_GOOD,
)

Array = jax.Array

STAKE_UNIT, RATE_UNIT = 1_000, 10_000
MONEY = STAKE_UNIT * RATE_UNIT
MILLI = 1_000  # unit of the reduced share
MAX_RATE = 20.0
MAX_MONEY = (2**31 - 1) // pending.FEEDBACK_SLOTS  # so that the outcomes listed in one step can be added

# The second set of rules: a cap on interest, and a charge on the lender for every large loan paid out.
CAPPED_GAIN = 0.6  # of the gain under the first rules
LARGE_STAKE = 1.25  # times the mean loan
LARGE_CHARGE = 0.8  # of the gain under the first rules, per unit of stake: large loans no longer pay

KNOWN, MISSING_NUMBER, HIDDEN_NUMBER = range(len(STATUS_LABELS))
STAKE = Field("stake")
DOCUMENTS = Field("documents", ("withheld", "shown"))
WITHHELD, SHOWN = range(len(DOCUMENTS.labels))
NO_GROUP = -1
STAYS = -1  # code of a column that is shown whether or not documents are withheld


@dataclasses.dataclass(frozen=True)
class Economics:
    """What loans, reviews and documents are worth; see the arguments of `CreditReviewEnv`.

    Raises:
        TypeError, ValueError: for a value out of its range.
    """

    loss: float = 1.0
    gain: float | None = None
    review_reliability: float = 0.9
    review_fee: float = 0.6
    document_fee: float = 0.1
    reduced: float = 0.55
    hide_probability: float = 0.4

    def __post_init__(self) -> None:
        arguments.real_number("loss", self.loss, 0.01, MAX_RATE)
        if self.gain is not None:
            arguments.real_number("gain", self.gain, 0.001, MAX_RATE)
        # At 1/2 a verdict says nothing, and the estimate that `Review` declares does not exist.
        arguments.real_number("review_reliability", self.review_reliability, 0.51, 1.0)
        arguments.real_number("review_fee", self.review_fee, 0.0, MAX_RATE)
        arguments.real_number("document_fee", self.document_fee, 0.0, MAX_RATE)
        arguments.real_number("reduced", self.reduced, 0.01, 1.0)
        arguments.real_number("hide_probability", self.hide_probability, 0.0, 1.0)


class TableParams(NamedTuple):
    """The table, and what may differ between runs of one compiled step."""

    codes: Array  # [N, C] i32: category fields, statuses of numbers, the group where there is one
    withheld_codes: Array  # [C] i32, code shown while documents are withheld, or STAYS
    numbers: Array  # [N, K] f32
    withheld_numbers: Array  # [K] f32, number shown while documents are withheld
    is_withheld: Array  # [K] bool, whether the number belongs to the documents
    stakes: Array  # [N] i32, 1/STAKE_UNIT
    bad: Array  # [N] bool
    group: Array  # [N] i32, NO_GROUP without one
    gain: Array  # [] i32, 1/RATE_UNIT, first rules
    capped_gain: Array  # [] i32, 1/RATE_UNIT, second rules
    loss: Array  # [] i32, 1/RATE_UNIT
    charge: Array  # [] i32, 1/RATE_UNIT, on large loans under the second rules
    reduced: Array  # [] i32, 1/MILLI
    review_fee: Array  # [] i32, 1/MONEY
    document_fee: Array  # [] i32, 1/MONEY
    reliability: Array  # [] i32, 1/MILLI, chance that a verdict is right
    hides: Array  # [] i32, `draws.threshold`
    regime_steps: Array  # [K] i32, see `regimes.Schedule`
    regime_levels: Array  # [K] i32
    is_stream: Array  # [] bool, outcomes are paid when they arrive


def observed_fields(table: ApplicantTable, params: TableParams, *, observe_group: bool) -> tuple[Field, ...]:
    """Observed fields: the table's, each number followed by its status, then what the world adds."""
    fields: list[Field] = []
    for field in table.fields:
        fields.append(field)
        if field.status is not None:
            fields.append(Field(field.status, STATUS_LABELS))
    if observe_group:
        fields.append(Field(table.group_name, table.group_labels, sensitive=True))
    if table.has_amount:
        # compiled code divides by multiplying, which can miss the bound by one unit in the last place
        low, high = np.float32(int(params.stakes.min()) / STAKE_UNIT), np.float32(int(params.stakes.max()) / STAKE_UNIT)
        bounds = float(np.nextafter(low, np.float32(0))), float(np.nextafter(high, np.float32(np.inf)))
        fields.append(dataclasses.replace(STAKE, low=bounds[0], high=bounds[1]))
    return (*fields, *((DOCUMENTS,) if table.hidden_fields else ()))


def schema_of(
    table: ApplicantTable, economics: Economics, params: TableParams, fields: tuple[Field, ...], feedback: FeedbackMode
) -> Schema:
    """What agents may know of a table in advance; `fields` are those of `observed_fields`."""
    gain, loss, charge = (int(rate) / RATE_UNIT for rate in (params.gain, params.loss, params.charge))
    fee = max(int(params.review_fee), int(params.document_fee)) / MONEY
    has_group = table.group is not None
    return Schema(
        world="CreditReview",
        version=0,
        fields=fields,
        actions=ACTIONS,
        entity_field=None,
        stake_field=STAKE.name if table.has_amount else None,
        boundary="application",
        deliberation=DELIBERATION,
        scaled_actions=(ScaledAction(ACTIONS[APPROVE_REDUCED], ACTIONS[APPROVE], int(params.reduced) / MILLI),),
        review=Review(
            action=ACTIONS[MANUAL_REVIEW],
            about=ACTIONS[APPROVE],
            signal=VERDICT.name,
            good=VERDICT.labels[VERDICT_GOOD],
            bad=VERDICT.labels[VERDICT_BAD],
            reliability=int(params.reliability) / MILLI,
            gain=gain,
            loss=loss,
        ),
        signals=(VERDICT,),
        sensitive=(table.group_name,) if has_group else (),
        proxies=((table.group_name, table.proxies),) if has_group else (),
        reward_bound=max(gain, loss + charge) + fee * STAKE_UNIT / int(params.stakes.min()),
        feedback=feedback,
        score_per="boundary",
    )


def table_params(
    table: ApplicantTable, economics: Economics, schedule: regimes.Schedule, feedback: FeedbackMode
) -> TableParams:
    """Parameters of a world.

    Raises:
        ValueError: if the amounts and the economics do not fit into 32 bits.
    """
    stakes = np.round(table.stake.astype(np.float64) * STAKE_UNIT).astype(np.int64)
    lost = economics.loss * stakes[table.bad].sum()
    gain = economics.gain if economics.gain is not None else lost / stakes[~table.bad].sum()
    gain_rate, loss_rate = round(gain * RATE_UNIT), round(economics.loss * RATE_UNIT)
    charge_rate = round(gain * LARGE_CHARGE * RATE_UNIT)
    perfect = gain_rate * stakes[~table.bad].sum() / len(table)  # mean money of deciding by the recorded outcome
    review_fee, document_fee = (round(fee * perfect) for fee in (economics.review_fee, economics.document_fee))
    largest = int(stakes.max()) * (max(gain_rate, loss_rate) + charge_rate)
    if gain_rate < 1 or max(largest, review_fee, document_fee) > MAX_MONEY:
        raise ValueError(
            f"table {table.name!r}: `gain` and `loss` must make every loan pay between {1 / RATE_UNIT} and "
            f"{MAX_MONEY / MONEY:.0f}, got a gain of {gain:.3g} and a loss of {economics.loss:.3g} per unit of stake "
            f"with stakes up to {stakes.max() / STAKE_UNIT:.3g}."
        )
    codes, withheld_codes = _codes(table)
    fills = [field.fill for field in table.number_fields]
    is_withheld = [field.name in table.hidden_fields for field in table.number_fields]
    group = np.full(len(table), NO_GROUP) if table.group is None else table.group
    return TableParams(
        codes=jnp.asarray(codes, jnp.int32),
        withheld_codes=jnp.asarray(withheld_codes, jnp.int32),
        numbers=jnp.asarray(table.numbers, jnp.float32),
        withheld_numbers=jnp.asarray(np.array(fills, np.float32)),
        is_withheld=jnp.asarray(np.array(is_withheld, np.bool_)),
        stakes=jnp.asarray(stakes, jnp.int32),
        bad=jnp.asarray(table.bad),
        group=jnp.asarray(group, jnp.int32),
        gain=jnp.asarray(gain_rate, jnp.int32),
        capped_gain=jnp.asarray(round(gain * CAPPED_GAIN * RATE_UNIT), jnp.int32),
        loss=jnp.asarray(loss_rate, jnp.int32),
        charge=jnp.asarray(charge_rate, jnp.int32),
        reduced=jnp.asarray(round(economics.reduced * MILLI), jnp.int32),
        review_fee=jnp.asarray(review_fee, jnp.int32),
        document_fee=jnp.asarray(document_fee, jnp.int32),
        reliability=jnp.asarray(round(economics.review_reliability * MILLI), jnp.int32),
        hides=jnp.asarray(draws.threshold(economics.hide_probability if table.hidden_fields else 0.0), jnp.int32),
        regime_steps=jnp.asarray(schedule.steps),
        regime_levels=jnp.asarray(schedule.levels),
        is_stream=jnp.asarray(feedback == "stream"),
    )


def check_table(params: TableParams, n_labels: Sequence[int | None]) -> None:
    """Check params of a world of a table; leaves may have a leading axis.

    Args:
        params: to be checked.
        n_labels: [C], labels of the field of each column of codes, None where it is not observed.

    Raises:
        ValueError: an entry is out of range, or money leaves 32 bits.
    """
    for column, n in enumerate(n_labels):
        most = np.iinfo(np.int32).max if n is None else n - 1
        least = np.iinfo(np.int32).min if n is None else 0
        arguments.entries(f"params.codes[..., {column}]", np.asarray(params.codes)[..., column], least, most)
        withheld = np.asarray(params.withheld_codes)[..., column]
        arguments.entries(f"params.withheld_codes[..., {column}]", withheld, min(least, STAYS), most)
    arguments.entries("params.stakes", params.stakes, 1, MAX_MONEY)
    for name in ("gain", "capped_gain", "loss", "charge"):  # a difference of rates is multiplied by the level
        arguments.entries(f"params.{name}", getattr(params, name), 0, MAX_MONEY // regimes.LEVELS)
    for name in ("review_fee", "document_fee"):
        arguments.entries(f"params.{name}", getattr(params, name), 0, MAX_MONEY)
    for name in ("reduced", "reliability"):
        arguments.entries(f"params.{name}", getattr(params, name), 0, MILLI)
    arguments.entries("params.hides", params.hides, 0, draws.HALF_ONE)
    gain, capped, loss, charge = (
        np.asarray(rate, np.int64) for rate in (params.gain, params.capped_gain, params.loss, params.charge)
    )
    rate = np.maximum(np.maximum(gain, capped), loss) + charge
    stake = np.asarray(params.stakes).max(axis=-1)
    arguments.entries("params.stakes", stake, 1, MAX_MONEY // np.maximum(rate, 1))


def _codes(table: ApplicantTable) -> tuple[np.ndarray, list[int]]:
    """Columns of `TableParams.codes`, [N, C], and the code of each while documents are withheld."""
    columns = [*table.categories.T]
    withheld = [
        field.labels.index(HIDDEN) if field.name in table.hidden_fields else STAYS for field in table.category_fields
    ]
    for field, missing in zip(table.number_fields, table.missing.T, strict=True):
        if field.status is not None:
            columns.append(np.where(missing, MISSING_NUMBER, KNOWN))
            withheld.append(HIDDEN_NUMBER if field.name in table.hidden_fields else STAYS)
    if table.group is not None:
        columns.append(table.group)
        withheld.append(STAYS)
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), np.int32), withheld
