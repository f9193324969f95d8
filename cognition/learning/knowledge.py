"""What a learner knows beside its edges: whom it deals with, what it did, which conjunctions and cases it keeps."""

from __future__ import annotations

import dataclasses

import jax

from ..situation import Encounter, initial_encounter
from ..structure import Structure
from .cases import Cases, initial_cases
from .conjunctions import Conjunctions, initial_conjunctions
from .prototypes import Prototypes, initial_prototypes


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Knowledge:
    """Everything that decides which paths a situation opens."""

    encounter: Encounter
    prototypes: Prototypes
    conjunctions: Conjunctions
    cases: Cases


def initial_knowledge(structure: Structure) -> Knowledge:
    """Nothing; empty arrays for what the structure does not have."""
    return Knowledge(
        initial_encounter(), initial_prototypes(structure), initial_conjunctions(structure), initial_cases(structure)
    )
