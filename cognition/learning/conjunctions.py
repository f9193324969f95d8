"""Conjunctions: nodes that stand for two observed nodes together, made on demand, behind an AND gate.

A table of fixed capacity, addressed by a hash of the two nodes. A pair that meets an empty slot, or one whose count has
fallen to 0, takes it; a pair that meets another's slot lowers that one's count, unless that one is met as well. So
what is seen together often keeps its node and what was seen once gives way. A pair opens its path from
`conjunction_after` meetings on.

Source: Misra & Gries (1982), "Finding repeated elements"; here with one candidate per slot of a hash table.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..edges import IN_BOUNDS
from ..structure import Structure

Array = jax.Array

FREE = -1
MOST_COUNTED = 1 << 20
HASH = 2654435769
"""Multiplicative hashing by the golden ratio (Knuth 1998, 6.4)."""


class Conjunctions(NamedTuple):
    """The table; Q is its capacity.

    Attributes:
        pairs: [Q] i32, the two nodes as one number, FREE where there is none.
        counts: [Q] i32, meetings, less those of others in the same slot.
    """

    pairs: Array
    counts: Array


def initial_conjunctions(structure: Structure) -> Conjunctions:
    """An empty table."""
    n = structure.conjunctions
    return Conjunctions(jnp.full(n, FREE, jnp.int32), jnp.zeros(n, jnp.int32))


def recall(table: Conjunctions, nodes: Array, activation: Array, structure: Structure) -> tuple[Array, Array]:
    """Slots of the pairs at hand, and their activation, 0 for pairs without a node; [n_pairs] i32 and f32.

    Args:
        table: the conjunctions.
        nodes: [positions] i32, observed nodes and own actions.
        activation: [positions] f32.
        structure: shapes.
    """
    pairs, both, either = _pairs(nodes, activation, structure)
    slots = _slots(pairs, structure)
    is_kept = table.pairs.at[slots].get(mode=IN_BOUNDS) == pairs
    is_kept &= table.counts.at[slots].get(mode=IN_BOUNDS) >= structure.conjunction_after
    return slots, jnp.where(is_kept, both if structure.gate else either, 0.0)


def meet(table: Conjunctions, nodes: Array, activation: Array, structure: Structure) -> tuple[Conjunctions, Array]:
    """The table after its pairs were seen, and [n_pairs] i32 slots that changed hands, Q for none.

    The edges of a slot that changes hands speak of another pair and are to be forgotten.
    """
    capacity = structure.conjunctions
    pairs, both, _ = _pairs(nodes, activation, structure)
    slots = _slots(pairs, structure)
    held, counts = table.pairs.at[slots].get(mode=IN_BOUNDS), table.counts.at[slots].get(mode=IN_BOUNDS)
    is_on = both != 0
    takes = is_on & (held != pairs) & ((held == FREE) | (counts <= 0))
    gains = is_on & (held == pairs)
    # pairs that are always met together must not wear each other down, or neither would ever get its node
    held_met = jnp.zeros(capacity, jnp.int32).at[slots].max((gains | takes).astype(jnp.int32), mode=IN_BOUNDS)
    wear = (is_on & (held_met.at[slots].get(mode=IN_BOUNDS) == 0)).astype(jnp.int32)
    changed = jnp.where(takes, slots, capacity)
    return Conjunctions(
        pairs=table.pairs.at[changed].set(pairs, mode="drop"),
        counts=jnp.clip((table.counts + held_met).at[slots].add(-wear, mode=IN_BOUNDS), 0, MOST_COUNTED),
    ), changed


def parts(pair: int, structure: Structure) -> tuple[int, int]:
    """The two nodes that a pair's number stands for."""
    return divmod(pair, structure.first_advice)


def _pairs(nodes: Array, activation: Array, structure: Structure) -> tuple[Array, Array, Array]:
    """[n_pairs]: number of each pair, its activation, and the activation of half of it."""
    at = np.array(structure.paired, np.int32)
    left, right = np.triu_indices(len(at), 1)
    one, other = nodes[at[left]], nodes[at[right]]
    low, high = activation[at[left]], activation[at[right]]
    return one * structure.first_advice + other, jnp.minimum(low, high), 0.5 * (low + high)


def _slots(pairs: Array, structure: Structure) -> Array:
    mixed = pairs.astype(jnp.uint32) * jnp.uint32(HASH)
    slots: Array = ((mixed >> 8) % jnp.uint32(structure.conjunctions)).astype(jnp.int32)
    return slots
