"""The same learner in another unit of rewards, where the largest reward is only found out by and by."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from ..learner import State
from ..ledger import rescaled as rescaled_ledger
from ..structure import Structure
from .rewards import Rewards

Array = jax.Array


def rescaled(state: State, initial_net: Array, factor: Array, structure: Structure) -> State:
    """The learner in another unit of rewards.

    What was learnt is multiplied, as are the rewards that were seen and those of decisions that wait; what is still
    prior, the share variance / initial variance of an edge, stays in units of the bound, so that what was never tried
    is as promising as before.

    Args:
        state: before.
        initial_net: [N * 2W] f32, strengths before any lesson.
        factor: [] f32, old unit over new one.
        structure: shapes.
    """
    initial = initial_net.reshape(structure.n_nodes, 2, structure.width)
    prior_variance = jnp.repeat(state.edges.prior, structure.width)

    def converted(net: Array, variance: Array) -> Array:
        share = jnp.minimum(variance / prior_variance, 1.0).reshape(structure.n_nodes, 1, structure.width)
        changed = factor * net + (1.0 - factor) * (share * initial).reshape(-1)
        return jnp.clip(changed, -1.0 if structure.signed else 0.0, 1.0)

    edges, kept = state.edges, state.regimes
    return dataclasses.replace(
        state,
        edges=dataclasses.replace(edges, net=converted(edges.net, edges.variance)),
        ledger=rescaled_ledger(state.ledger, factor),
        rewards=_rewards(state.rewards, factor),
        regimes=kept._replace(
            net=jax.vmap(converted)(kept.net, kept.variance),
            level=kept.level * factor,
        ),
    )


def _rewards(rewards: Rewards, factor: Array) -> Rewards:
    return rewards._replace(
        mean=rewards.mean * factor,
        fast=rewards.fast * factor,
        slow=rewards.slow * factor,
        spread=rewards.spread * jnp.square(factor),
    )
