"""Kinds of edges: what one memory is to another."""

from __future__ import annotations

from collections.abc import Sequence

RELATIONS = (
    "co_occurs_with",
    "causes",
    "is_similar_to",
    "precedes",
    "contrasts_with",
    "scene",
    "about_entity",
    "supports",
    "opposes",
)
"""Names of the relations of a graph that names none; an edge holds the number of its relation."""

OTHERS = "default"
"""Key of numbers by relation for those that are not named, as in `SpreadRule.decay`."""

MAX_RELATIONS = 16
"""A packed edge has four bits for its relation."""


def checked_relations(relations: Sequence[str]) -> tuple[str, ...]:
    """The names as a tuple.

    Raises:
        ValueError: there are none or more than MAX_RELATIONS, or a name is empty or stands twice.
    """
    names = (relations,) if isinstance(relations, str) else tuple(relations)
    if not 1 <= len(names) <= MAX_RELATIONS:
        raise ValueError(f"`relations` must be 1 to {MAX_RELATIONS} names, got {len(names)}.")
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValueError(f"`relations` must be names that are not empty, got {name!r}.")
        if names.count(name) > 1:
            raise ValueError(f"`relations` must differ, got {name!r} {names.count(name)} times.")
    return names
