"""From what is observed to the paths that it opens in memory.

Beside the observed nodes themselves: the agent's own actions in the encounter, an adviser's word, the likeliest
prototypes of the entity together with what is observed, conjunctions made on demand, similar cases. Activation along a
path is the least along it, so that what was not observed or recalled cannot become evidence.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..config import NO_ACTION
from ..edges import IN_BOUNDS, Paths
from ..situation import Situation, own_actions
from ..structure import SLOTS, Structure
from . import cases, conjunctions
from .knowledge import Knowledge

Array = jax.Array

LEAST_OPINION = 0.15
"""Opinion below which a prototype is no evidence."""
GRAIN = 1024.0
"""Steps into which an opinion is divided where prototypes are ranked: before anything tells them apart they differ by
rounding alone, which is another one in a batch, and must not decide which of them are on."""


def recall(known: Knowledge, situation: Situation, structure: Structure) -> Paths:
    """Paths of a situation, [P]."""
    observed = situation.activation
    if structure.muted:
        observed = observed.at[np.array(structure.muted, np.int32)].set(0.0)
    nodes, activation = [situation.nodes], [observed]
    if structure.encounter:
        nodes.append(own_actions(known.encounter, structure))
        activation.append(jnp.ones(2, jnp.float32))
    seen, strength = jnp.concatenate(nodes), jnp.concatenate(activation)
    if structure.advice:
        nodes.append((structure.first_advice + jnp.maximum(situation.advice, 0))[None])
        activation.append(jnp.where(situation.advice != NO_ACTION, known.trust, 0.0)[None])
    if structure.prototypes:
        opinion = known.prototypes.opinion.at[situation.entity].get(mode=IN_BOUNDS)
        found, likely = likeliest(opinion, structure)
        at = np.array(structure.crossed, np.int32)
        first = structure.first_prototype + _crossed_number(structure)[seen[at]] * structure.prototypes
        is_known = situation.entity > 0
        for slot in range(found.shape[0]):
            belief = jnp.where(is_known, likely[slot], 0.0)
            nodes.append(first + found[slot])
            activation.append(_both(strength[at], belief, structure))
    if structure.conjunctions:
        found, pairs = conjunctions.recall(known.conjunctions, seen, strength, structure)
        nodes.append(structure.first_conjunction + found)
        activation.append(pairs)
    if structure.cases:
        found, similarity = cases.recall(known.cases, situation, structure)
        nodes.append(structure.first_case + found)
        activation.append(similarity)
    return Paths(jnp.concatenate(nodes), jnp.concatenate(activation), situation.stake)


def likeliest(opinion: Array, structure: Structure) -> tuple[Array, Array]:
    """[SLOTS] i32 prototypes of which an entity most probably is, and [SLOTS] f32 how probably, 0 where hardly."""
    every = jnp.arange(structure.prototypes, dtype=jnp.int32)
    found, likely, left = [], [], jnp.round(opinion * GRAIN)
    for _ in range(min(SLOTS, structure.prototypes)):
        best = jnp.argmax(left).astype(jnp.int32)
        found.append(best)
        likely.append(jnp.where(opinion[best] >= LEAST_OPINION, opinion[best], 0.0))
        left = jnp.where(every == best, -1.0, left)
    return jnp.stack(found), jnp.stack(likely)


def _both(strength: Array, belief: Array, structure: Structure) -> Array:
    """Activation of what is observed together with a prototype."""
    if structure.gate:
        return jnp.minimum(strength, belief) * (belief > 0)
    return 0.5 * (strength + belief)


def _crossed_number(structure: Structure) -> Array:
    """[N] i32: number of each node among those that are conjoined with prototypes."""
    number = np.zeros(structure.first_advice, np.int32)
    number[list(structure.crossed_nodes)] = np.arange(len(structure.crossed_nodes), dtype=np.int32)
    return jnp.asarray(number)
