"""Regime nodes: sets of rules that were met, each with strengths of its own, one of which is on.

Every path leads through the regime node that is on: the edges at hand are its edges. What each regime knows is kept as
it was in its last calm time, so that the first steps under new rules do not spoil it. When rewards have fallen (the
alarm of `rewards`), the rules are taken to have changed, and memory is asked before anything is learnt anew:

1. the regime met before that was on most lately is recalled, and with it the level of rewards that it had;
2. if rewards stay below that level (the next alarm), the next one is tried;
3. if all have been tried, a new regime is opened, with what is known now and re-opened variances. It takes the place of
   the one that was longest not on.

After SETTLED steps without an alarm the regime at hand counts as found, and all may be tried again.

Source: da Silva, Basso, Bazzan & Engel (2006), "Dealing with non-stationary environments using context detection", for
partial models of contexts that are reused. Differs: values and not models are kept, and a regime proves itself by what
it earns. Predictions say less (tried: squared errors of kept strengths on the decisions of the regime before): what a
regime never did it does not know, and rewards show a change of rules within the same few hundred steps.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..edges import Edges
from ..params import Params
from ..structure import Structure
from . import rewards
from .rewards import Rewards

Array = jax.Array

CALM = 1.0
"""Standard deviations of fallen rewards below which what the regime at hand knows is kept."""
TRIAL = 300
"""Steps that a recalled regime has at least, to show what it earns."""
SETTLED = 1500
"""Steps without an alarm after which a regime counts as found; a new one has as many to learn in."""


class Regimes(NamedTuple):
    """What was kept; R regimes.

    Attributes:
        net: [R, N * 2W] f32, strengths as of the last calm time.
        variance: [R, N * W] f32.
        level: [R] f32, slow average of rewards then.
        is_met: [R] bool.
        is_tried: [R] bool, whether it was on since a regime was last found.
        last_on: [R] i32, step at which each was last on.
        active: [] i32, the one at hand.
        calm_until: [] i32, step before which no alarm counts.
        settles_at: [] i32, step at which the one at hand counts as found.
    """

    net: Array
    variance: Array
    level: Array
    is_met: Array
    is_tried: Array
    last_on: Array
    active: Array
    calm_until: Array
    settles_at: Array


def initial_regimes(edges: Edges, structure: Structure) -> Regimes:
    """One regime, the one at hand; empty arrays where none are remembered."""
    n = structure.regimes if structure.regimes > 1 else 0
    return Regimes(
        net=jnp.broadcast_to(edges.net, (n, edges.net.shape[0])) + 0.0,
        variance=jnp.broadcast_to(edges.variance, (n, edges.variance.shape[0])) + 0.0,
        level=jnp.zeros(n, jnp.float32),
        is_met=jnp.arange(n, dtype=jnp.int32) == 0,
        is_tried=jnp.zeros(n, jnp.bool_),
        last_on=jnp.zeros(n, jnp.int32),
        active=jnp.zeros((), jnp.int32),
        calm_until=jnp.full((), SETTLED, jnp.int32),
        settles_at=jnp.full((), SETTLED, jnp.int32),
    )


def turned(
    kept: Regimes, edges: Edges, paid: Rewards, step: Array, reopened: Array, params: Params
) -> tuple[Regimes, Edges, Rewards]:
    """Regimes, edges and statistics of rewards after a rest.

    Args:
        kept: regimes before.
        edges: strengths at hand.
        paid: statistics of rewards.
        step: [] i32, steps lived.
        reopened: [N * W] f32, variances of a new regime.
        params: rates.
    """
    every = jnp.arange(kept.is_met.shape[0], dtype=jnp.int32)
    nowhere = every.shape[0]
    is_other = every != kept.active
    depth = rewards.fall(paid)
    alarm = (depth > params.detector) & (step >= kept.calm_until)
    is_settled = step >= kept.settles_at
    is_tried = (kept.is_tried & ~is_settled) | ~is_other
    can_be = kept.is_met & ~is_tried
    recalls = alarm & jnp.any(can_be)
    opens = alarm & ~recalls
    latest = jnp.argmax(jnp.where(can_be, kept.last_on, -1)).astype(jnp.int32)
    oldest = jnp.argmin(jnp.where(is_other, jnp.where(kept.is_met, kept.last_on, -1), step + 1)).astype(jnp.int32)
    active = jnp.where(recalls, latest, jnp.where(opens, oldest, kept.active))
    # of the regime at hand: kept while calm; of a new one: what is known now
    here = jnp.where(opens, oldest, jnp.where((depth < CALM) & ~alarm & is_settled, kept.active, nowhere))
    variance_here = jnp.where(opens, reopened, edges.variance)
    net = kept.net.at[here].set(edges.net, mode="drop")
    variance = kept.variance.at[here].set(variance_here, mode="drop")
    level = kept.level.at[here].set(jnp.where(opens, paid.fast, paid.slow), mode="drop")
    changes = recalls | opens
    edges = dataclasses.replace(
        edges,
        net=jnp.where(recalls, net[latest], edges.net),
        variance=jnp.where(recalls, variance[latest], variance_here),
    )
    usual = jnp.where(changes, level[active], paid.slow)
    paid = paid._replace(
        slow=usual,
        fast=jnp.where(changes, usual, paid.fast),
        mean=jnp.where(recalls, usual, paid.mean),
        n=jnp.where(opens, 0, paid.n),
        since=jnp.where(opens, 0, paid.since),
    )
    pause = jnp.where(recalls, TRIAL, SETTLED)
    return (
        Regimes(
            net=net,
            variance=variance,
            level=level,
            is_met=kept.is_met | (every == active),
            is_tried=jnp.where(is_settled & ~changes, False, is_tried),
            last_on=jnp.where(every == active, step, kept.last_on),
            active=active,
            calm_until=jnp.where(changes, step + pause, kept.calm_until),
            settles_at=jnp.where(changes, step + SETTLED, kept.settles_at),
        ),
        edges,
        paid,
    )
