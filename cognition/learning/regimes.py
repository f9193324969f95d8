"""Regime nodes: sets of rules that were met, each with strengths of its own, recalled by what they predict of late.

Every path leads through the regime node that is on. The edges of the others are kept as they were and predict along;
that one is recalled whose predictions of the latest steps were better than those of the one at hand, by a paired test:

    d_b   <- d_b + (1 / WINDOW) (error^2 - error_b^2 - d_b)          of every regime b but the one at hand
    recalled where d_b > RECALL sqrt(spread_b / WINDOW)

with the error of what was decided, target - prediction. A fall of rewards that no known regime explains opens a new
one: it starts with what is known and re-opened variances, and takes the place of the one that was longest not on. What
is kept of a regime is from its last calm time, so that the first steps under new rules do not spoil it.

Sources: Doya, Samejima, Katagiri & Kawato (2002), "Multiple model-based reinforcement learning", for predictors that
compete by their errors; da Silva, Basso, Bazzan & Engel (2006), "Dealing with non-stationary environments using context
detection", for opening new ones. Differs: values and not models compete, by a test of paired squared errors.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..edges import Edges, Paths
from ..structure import Structure

Array = jax.Array

WINDOW = 150.0
"""Steps over which predictions are compared."""
RECALL = 3.0
"""Standard deviations by which another regime must predict better."""
CALM = 1.0
"""Standard deviations of fallen rewards below which the regime at hand is kept as it is."""
SETTLED_STEPS = 500
"""Steps for which a regime that was just opened or recalled stays on."""


class Regimes(NamedTuple):
    """What was kept; R regimes.

    Attributes:
        net: [R, N * 2W] f32, strengths as of the last calm time.
        variance: [R, N * W] f32.
        is_met: [R] bool.
        last_on: [R] i32, step at which each was last on.
        active: [] i32, the one at hand, whose strengths are those of the learner.
        lead: [R] f32, d, by how much each predicts better than the one at hand.
        spread: [R] f32, mean square of what is averaged in it.
        since: [] i32, steps since the one at hand came on.
    """

    net: Array
    variance: Array
    is_met: Array
    last_on: Array
    active: Array
    lead: Array
    spread: Array
    since: Array


def initial_regimes(edges: Edges, structure: Structure) -> Regimes:
    """One regime, the one at hand; empty arrays where none are remembered."""
    n = structure.regimes if structure.regimes > 1 else 0
    zero = jnp.zeros((), jnp.int32)
    return Regimes(
        net=jnp.broadcast_to(edges.net, (n, edges.net.shape[0])) + 0.0,
        variance=jnp.broadcast_to(edges.variance, (n, edges.variance.shape[0])) + 0.0,
        is_met=jnp.arange(n, dtype=jnp.int32) == 0,
        last_on=jnp.zeros(n, jnp.int32),
        active=zero,
        lead=jnp.zeros(n, jnp.float32),
        spread=jnp.full(n, 1.0, jnp.float32),
        since=zero,
    )


def predictions(regimes: Regimes, paths: Paths, structure: Structure) -> Array:
    """[R, C] f32: net gain minus net loss of every decision, per unit of stake, as each kept regime has it."""
    n, n_columns, width = regimes.net.shape[0], structure.n_columns, structure.width
    rows = regimes.net.reshape(n, structure.n_nodes, 2 * width)[:, paths.nodes]
    both = jnp.einsum("p,rpw->rw", paths.activation, rows)
    value = both[:, :n_columns] - both[:, width : width + n_columns]
    if structure.common:
        at = np.array(structure.common, np.int32)
        every = jnp.einsum("p,rpw->rw", paths.activation[at], rows[:, at])
        value = value + (every[:, n_columns] - every[:, -1])[:, None]
    return value


def compared(regimes: Regimes, error: Array, errors: Array, applies: Array) -> Regimes:
    """Regimes after one more outcome.

    Args:
        regimes: before.
        error: [] f32, of the strengths at hand.
        errors: [R] f32, of those kept.
        applies: [] bool, whether there was an outcome.
    """
    better = jnp.square(error) - jnp.square(errors)
    rate = jnp.where(applies, 1.0 / WINDOW, 0.0)
    return regimes._replace(
        lead=regimes.lead + rate * (better - regimes.lead),
        spread=regimes.spread + rate * (jnp.square(better) - regimes.spread),
    )


def turned(
    regimes: Regimes, edges: Edges, is_calm: Array, has_fallen: Array, n_steps: int, step: Array, reopened: Array
) -> tuple[Regimes, Edges, Array, Array]:
    """Which regime is on after a rest.

    Args:
        regimes: before.
        edges: strengths at hand.
        is_calm: [] bool, whether rewards are what they were.
        has_fallen: [] bool, the alarm.
        n_steps: steps since the last rest.
        step: [] i32, steps lived.
        reopened: [N * W] f32, variances of a new regime.

    Returns:
        Regimes; edges; [] bool whether one was recalled; [] bool whether one was opened.
    """
    every = jnp.arange(regimes.is_met.shape[0], dtype=jnp.int32)
    is_other = every != regimes.active
    limit = RECALL * jnp.sqrt(regimes.spread / WINDOW)
    lead = jnp.where(regimes.is_met & is_other, regimes.lead - limit, -1.0)
    candidate = jnp.argmax(lead).astype(jnp.int32)
    since = regimes.since + n_steps
    recalls = (lead[candidate] > 0.0) & (since > SETTLED_STEPS)
    opens = has_fallen & ~recalls & (since > SETTLED_STEPS)
    oldest = jnp.argmin(jnp.where(is_other, jnp.where(regimes.is_met, regimes.last_on, -1), step + 1)).astype(jnp.int32)
    keeps = is_calm & ~recalls & ~opens
    here = jnp.where(keeps, regimes.active, every.shape[0])
    net = regimes.net.at[here].set(edges.net, mode="drop")
    variance = regimes.variance.at[here].set(edges.variance, mode="drop")
    active = jnp.where(recalls, candidate, jnp.where(opens, oldest, regimes.active))
    changes = recalls | opens
    is_on = every == active
    edges = dataclasses.replace(
        edges,
        net=jnp.where(recalls, net[candidate], edges.net),
        variance=jnp.where(recalls, variance[candidate], jnp.where(opens, reopened, edges.variance)),
    )
    # a regime that was just opened knows what the learner knows
    fresh = jnp.where(opens, oldest, every.shape[0])
    return (
        Regimes(
            net=net.at[fresh].set(edges.net, mode="drop"),
            variance=variance.at[fresh].set(edges.variance, mode="drop"),
            is_met=regimes.is_met | is_on,
            last_on=jnp.where(is_on, step, regimes.last_on),
            active=active,
            lead=jnp.where(changes, 0.0, regimes.lead),
            spread=regimes.spread,
            since=jnp.where(changes, 0, since),
        ),
        edges,
        recalls,
        opens,
    )
