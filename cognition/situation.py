"""What one observation shows, before memory adds anything to it; and the agent's own part in the encounter at hand."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from .structure import Structure

Array = jax.Array


class Situation(NamedTuple):
    """What one observation shows.

    Attributes:
        nodes: [B] i32, context nodes that are on, in the encoder's order.
        activation: [B] f32; 0 = switched off.
        stake: [] f32, what outcomes are proportional to in this case.
        entity: [] i32, who it is about; 0 = unknown.
        advice: [] i32, action that an adviser names, NO_ACTION for none.
        mask: [A] bool, False where an action is impossible.
    """

    nodes: Array
    activation: Array
    stake: Array
    entity: Array
    advice: Array
    mask: Array


class Encounter(NamedTuple):
    """The agent's own actions in the encounter at hand, plus 1; 0 = none so far.

    Attributes:
        last: [] i32.
        first: [] i32.
        is_new: [] bool, whether nothing was done yet.
    """

    last: Array
    first: Array
    is_new: Array


def initial_encounter() -> Encounter:
    """An encounter in which nothing was done yet."""
    zero = jnp.zeros((), jnp.int32)
    return Encounter(zero, zero, jnp.ones((), jnp.bool_))


def after(encounter: Encounter, action: Array, is_boundary: Array) -> Encounter:
    """The encounter after an action, a new one after a boundary."""
    first = jnp.where(encounter.is_new, action + 1, encounter.first)
    return Encounter(
        last=jnp.where(is_boundary, 0, action + 1).astype(jnp.int32),
        first=jnp.where(is_boundary, 0, first).astype(jnp.int32),
        is_new=is_boundary,
    )


def own_actions(encounter: Encounter, structure: Structure) -> Array:
    """[2] i32: nodes of the last and the first own action."""
    n = structure.n_actions + 1
    return structure.first_own_action + jnp.stack([encounter.last, n + encounter.first])
