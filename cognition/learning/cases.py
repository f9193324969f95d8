"""Cases: single situations that are kept as nodes, and speak again in situations like them.

A ring of fixed capacity. A situation to which no case is similar enough becomes one, in the place of the oldest. A case
is on as far as it is similar: the share of observed nodes that both have in common, if it is at least LEAST.

Sources: exemplar models of memory, Medin & Schaffer (1978); instance-based learning, Gonzalez, Lerch & Lebiere (2003).
Differs: what a case is worth is learnt at its edges, by the same rule as everything else, and not stored with it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..situation import Situation
from ..structure import SIMILAR, Structure

Array = jax.Array

EMPTY = -1
LEAST = 0.7
"""Similarity from which a case is on."""
NOVEL = 0.9
"""Similarity to the nearest case below which a situation becomes a case."""


class Cases(NamedTuple):
    """Cases kept; Q is their capacity.

    Attributes:
        nodes: [Q, B] i32, observed nodes of each, EMPTY for nodes that were off and for cases that are none.
        n_kept: [] i32, cases ever kept.
    """

    nodes: Array
    n_kept: Array


def initial_cases(structure: Structure) -> Cases:
    """No case."""
    return Cases(jnp.full((structure.cases, structure.n_base), EMPTY, jnp.int32), jnp.zeros((), jnp.int32))


def recall(cases: Cases, situation: Situation, structure: Structure) -> tuple[Array, Array]:
    """The most similar cases, [SIMILAR] i32, and how similar they are, [SIMILAR] f32, 0 where not enough."""
    similar = similarity(cases, situation)
    found = jax.lax.top_k(similar, min(SIMILAR, structure.cases))
    return found[1].astype(jnp.int32), jnp.where(found[0] >= LEAST, found[0], 0.0)


def similarity(cases: Cases, situation: Situation) -> Array:
    """[Q] f32 in [0, 1]: share of the observed nodes that a case has in the same place."""
    is_on = situation.activation != 0
    same = (cases.nodes == situation.nodes) & is_on
    return jnp.sum(same, axis=1, dtype=jnp.float32) / jnp.maximum(jnp.sum(is_on, dtype=jnp.float32), 1.0)


def meet(cases: Cases, situation: Situation, structure: Structure) -> tuple[Cases, Array]:
    """The cases after a situation, and [] i32 the one that it became, Q for none.

    The edges of a case that is replaced speak of another one and are to be forgotten.
    """
    is_novel = jnp.max(similarity(cases, situation)) < NOVEL
    slot = jnp.where(is_novel, cases.n_kept % structure.cases, structure.cases)
    nodes = jnp.where(situation.activation != 0, situation.nodes, EMPTY)
    return Cases(cases.nodes.at[slot].set(nodes, mode="drop"), cases.n_kept + is_novel.astype(jnp.int32)), slot
