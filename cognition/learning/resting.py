"""What a learner does every REST steps, and no oftener, because it looks at everything: the drivers call it.

Prototypes are consolidated; strengths that traces pushed beyond their bounds return to them; a turn of rewards re-opens
the variances of all edges, or a fall calls another regime to mind.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from ..edges import Edges
from ..learner import State
from ..params import Params
from ..structure import Structure
from . import prototypes, regimes, rewards

Array = jax.Array

REST = 100
"""Steps between two rests."""


RESTING_STREAM = 0x52657374
"""Far off the numbers of choices, which are drawn from the same seed."""


def key_of(seed: Array, n_done: Array) -> Array:
    """Key of the rest after `n_done` steps ([] i32) of a learner with this seed ([] u32)."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), RESTING_STREAM), n_done)


def rest(state: State, n_done: Array, key: Array, structure: Structure, params: Params) -> State:
    """The learner after a rest.

    Args:
        state: before.
        n_done: [] i32, steps done, a multiple of REST; the same for all agents of a batch.
        key: of random starts.
        structure: shapes.
        params: rates.
    """
    known = state.known
    if structure.prototypes:
        found = prototypes.consolidate(known.prototypes, n_done, key, structure)
        known = dataclasses.replace(known, prototypes=found)
    edges = refreshed(bounded(state.edges, structure), params, structure)
    kept, paid = state.regimes, state.rewards
    if structure.detects:
        reopened = jnp.repeat(edges.prior, structure.width)
        if structure.regimes > 1:
            kept, edges, paid = regimes.turned(kept, edges, paid, state.step, reopened, params)
        else:
            turned = rewards.has_turned(paid, params.detector)
            edges = dataclasses.replace(edges, variance=jnp.where(turned, reopened, edges.variance))
            paid = rewards.started_anew(paid, turned)
    return dataclasses.replace(state, known=known, edges=edges, regimes=kept, rewards=paid)


def refreshed(edges: Edges, params: Params, structure: Structure) -> Edges:
    """Edges whose variances have grown by what rules may have drifted meanwhile, within floor and initial variance."""
    prior = jnp.repeat(edges.prior, structure.width)
    least = params.variance_floor * prior
    grown = jnp.minimum(edges.variance + params.recovery * REST, jnp.maximum(prior, edges.variance))
    return dataclasses.replace(edges, variance=jnp.maximum(grown, least))


def bounded(edges: Edges, structure: Structure) -> Edges:
    """Edges whose net strengths are within their bounds."""
    return dataclasses.replace(edges, net=jnp.clip(edges.net, -1.0 if structure.signed else 0.0, 1.0))
