"""What a learner knows beside its edges: whom it deals with, what it did, which conjunctions and cases it keeps."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from ..situation import Encounter, initial_encounter
from ..structure import Structure
from .cases import Cases, initial_cases
from .conjunctions import Conjunctions, initial_conjunctions
from .prototypes import Prototypes, initial_prototypes

Array = jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Knowledge:
    """Everything that decides which paths a situation opens.

    Attributes:
        encounter: own actions in the encounter at hand.
        trust: [] f32 in (0, 1], activation of an adviser's word: it fades as own experience grows.
        prototypes, conjunctions, cases: what is kept of entities and situations.
    """

    encounter: Encounter
    trust: Array
    prototypes: Prototypes
    conjunctions: Conjunctions
    cases: Cases


def initial_knowledge(structure: Structure) -> Knowledge:
    """Nothing; empty arrays for what the structure does not have."""
    return Knowledge(
        initial_encounter(),
        jnp.ones((), jnp.float32),
        initial_prototypes(structure),
        initial_conjunctions(structure),
        initial_cases(structure),
    )
