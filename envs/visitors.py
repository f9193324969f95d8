"""Who comes next: returning entities, each with a hidden type that persists, and sometimes drifts.

GameNPC's players and CustomerService's customers come by these rules. What makes their memory hard or easy is in
`Arrivals`: how many there are, how unequally often they come, how long they stay away, how often they change.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from . import arguments, draws
from .arithmetic import Arithmetic, Value, below, happens

Array = jax.Array

N_CANDIDATES = 4
N_RECENT = 5
N_HALVES = 2 * N_CANDIDATES + 4
NEVER = -(2**30)


class Preset(NamedTuple):
    """How much there is to remember, and for how long; see `arrivals`."""

    n: int
    drift: float
    slope: float
    hot: float
    gap: int


class Arrivals(NamedTuple):
    """Parameters. Visitors are drawn by Walker's alias method: a slot, and with some probability its alias instead.

    Source: Walker (1977), "An efficient method for generating discrete random variables with general distributions".
    """

    n: Array  # [] i32, visitors there are; at most the capacity of the state
    stays: Array  # [capacity] i32, threshold with which a slot stands for itself
    alias: Array  # [capacity] i32, visitor for whom it stands otherwise
    drift: Array  # [] i32, threshold of a new type at an arrival
    hot: Array  # [] i32, threshold of an arrival from among the last N_RECENT visitors
    gap: Array  # [] i32, arrivals for which a visitor stays away


class Visitors(NamedTuple):
    """The visitors of an episode. Indices of visitors start at 0."""

    types: Array  # [capacity] i32, hidden
    last_arrival: Array  # [capacity] i32, number of the arrival at which each came last; NEVER before
    last_step: Array  # [capacity] i32, step at which each left last; NEVER before
    recent: Array  # [N_RECENT] i32, the visitors who came last, in no order
    n_arrivals: Array  # [] i32


def arrivals(preset: Preset, capacity: int) -> Arrivals:
    """Parameters of a preset.

    Args:
        preset: `n` visitors, of whom visitor i comes with a weight of 1 / (1 + slope i); at an arrival the type is
            drawn anew with probability `drift`; with probability `hot` the visitor is one of the last N_RECENT;
            otherwise one who has stayed away for `gap` arrivals is preferred: the first such of N_CANDIDATES draws, or
            if there is none the candidate who has been away longest.
        capacity: visitors that the state has room for, at least n.
    """
    weight = 1 / (1 + preset.slope * np.arange(preset.n))
    stays, alias = alias_table(weight / weight.sum())
    spare = capacity - preset.n
    return Arrivals(
        n=jnp.asarray(preset.n, jnp.int32),
        stays=jnp.asarray(np.pad(stays, (0, spare)), jnp.int32),
        alias=jnp.asarray(np.pad(alias, (0, spare)), jnp.int32),
        drift=jnp.asarray(draws.threshold(preset.drift), jnp.int32),
        hot=jnp.asarray(draws.threshold(preset.hot), jnp.int32),
        gap=jnp.asarray(preset.gap, jnp.int32),
    )


def check(how: Arrivals) -> None:
    """Check `params.arrivals` of a world; leaves may have a leading axis.

    Raises:
        ValueError: an entry is out of range.
    """
    n = np.asarray(how.n)
    arguments.entries("params.arrivals.n", n, 1, np.shape(how.stays)[-1])
    arguments.entries("params.arrivals.alias", how.alias, 0, n[..., None] - 1)
    for name in ("stays", "drift", "hot"):
        arguments.entries(f"params.arrivals.{name}", getattr(how, name), 0, draws.HALF_ONE)
    arguments.entries("params.arrivals.gap", how.gap, 0, -NEVER)


def nobody_yet(key: Array, how: Arrivals, n_types: int) -> Visitors:
    """Visitors before the first arrival, their types uniform over [0, n_types); `key` is consumed."""
    capacity = len(how.stays)
    halves = draws.halves(key, (capacity, 2))[:, 0].astype(jnp.int32)
    never = jnp.full(capacity, NEVER, jnp.int32)
    return Visitors(
        types=below(halves, n_types),
        last_arrival=never,
        last_step=never,
        recent=jnp.zeros(N_RECENT, jnp.int32),
        n_arrivals=jnp.zeros((), jnp.int32),
    )


def next_visitor(known: Visitors, how: Arrivals, halves: Value, arithmetic: Arithmetic) -> Value:
    """Index of the visitor who comes next; halves are the first N_HALVES - 2."""
    candidates = [_by_popularity(how, halves[2 * i], halves[2 * i + 1], arithmetic) for i in range(N_CANDIDATES)]
    chosen, away = candidates[-1], known.n_arrivals - arithmetic.take(known.last_arrival, candidates[-1])
    for candidate in reversed(candidates[:-1]):  # the first who has been away long enough wins, else the longest away
        its_away = known.n_arrivals - arithmetic.take(known.last_arrival, candidate)
        wins = (its_away >= how.gap) | (its_away >= away)
        chosen, away = arithmetic.where(wins, candidate, chosen), arithmetic.where(wins, its_away, away)
    is_hot = happens(halves[2 * N_CANDIDATES], how.hot) & (known.n_arrivals >= 2 * N_RECENT)
    recent = arithmetic.take(known.recent, below(halves[2 * N_CANDIDATES + 1], N_RECENT))
    return arithmetic.where(is_hot, recent, chosen)


def arrive(
    known: Visitors,
    how: Arrivals,
    visitor: Value,
    halves: Value,
    *,
    redraws_before: Value,
    n_types: int,
    condition: Value,
    arithmetic: Arithmetic,
) -> Visitors:
    """The visitors after `visitor` has come, if the condition holds; else unchanged but for identity.

    Args:
        known: before.
        how: parameters.
        visitor: who comes.
        halves: the last 2 of N_HALVES: whether the type changes, and to what.
        redraws_before: types of visitors who left before this step are drawn anew, once; 0 for none.
        n_types: number of types.
        condition: whether anybody comes at all.
        arithmetic: executor.
    """
    last = arithmetic.take(known.last_step, visitor)
    changes = happens(halves[0], how.drift) | ((last < redraws_before) & (last != NEVER))
    slot = known.n_arrivals - arithmetic.divide(known.n_arrivals, N_RECENT) * N_RECENT
    return Visitors(
        types=arithmetic.put_if(known.types, visitor, below(halves[1], n_types), condition & changes),
        last_arrival=arithmetic.put_if(known.last_arrival, visitor, known.n_arrivals, condition),
        last_step=known.last_step,
        recent=arithmetic.put_if(known.recent, slot, visitor, condition),
        n_arrivals=known.n_arrivals + arithmetic.integer(condition),
    )


def leave(known: Visitors, visitor: Value, step: Value, condition: Value, arithmetic: Arithmetic) -> Visitors:
    """The visitors after `visitor` has left at `step`, if the condition holds."""
    return known._replace(last_step=arithmetic.put_if(known.last_step, visitor, step, condition))


SEEN_LABELS = ("never", "under 30 steps ago", "under 150 steps ago", "longer ago")


def last_seen(known: Visitors, visitor: Value, step: Value, arithmetic: Arithmetic) -> Value:
    """Code of SEEN_LABELS: how long ago `visitor` left last, at `step`."""
    last = arithmetic.take(known.last_step, visitor)
    age = step - last
    code = arithmetic.integer(age >= 30) + arithmetic.integer(age >= 150) + 1
    return arithmetic.where(last == NEVER, 0, code)


def _by_popularity(how: Arrivals, slot_half: Value, alias_half: Value, arithmetic: Arithmetic) -> Value:
    slot = below(slot_half, how.n)
    stays = happens(alias_half, arithmetic.take(how.stays, slot))
    return arithmetic.where(stays, slot, arithmetic.take(how.alias, slot))


def alias_table(chances: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """[n] thresholds and [n] aliases that reproduce [n] chances, which sum to 1, to within 1 / 65536 of a slot."""
    n = len(chances)
    scaled, alias = chances * n, np.arange(n)
    small, large = [i for i in range(n) if scaled[i] < 1], [i for i in range(n) if scaled[i] >= 1]
    stays = np.ones(n)
    while small and large:
        poor, rich = small.pop(), large.pop()
        stays[poor], alias[poor] = scaled[poor], rich
        scaled[rich] -= 1 - scaled[poor]
        (small if scaled[rich] < 1 else large).append(rich)
    return np.round(stays * draws.HALF_ONE).astype(np.int32), alias.astype(np.int32)
