"""A part of a study: fewer or other seeds, fewer steps, some of its worlds and agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import seeds as seeds_module
from . import study_file
from .errors import StudyError

if TYPE_CHECKING:
    from .study import Study, StudyAgent, StudyWorld

REFERENCES = ("random", "oracle")
"""Agents that every study has: the 0 and the 1 of a normalised score."""


def of(
    study: Study,
    *,
    n_seeds: int | None,
    first_seed: int | None,
    steps: int | None,
    worlds: Sequence[str],
    agents: Sequence[str],
) -> dict[str, Any]:
    """What changes in a study; see `Study.restricted`.

    Raises:
        StudyError: a number out of range, or a label that the study does not have.
    """
    for name, number, least in (("seeds", n_seeds, 1), ("first-seed", first_seed, 0), ("steps", steps, 1)):
        if number is not None and number < least:
            raise StudyError(f"`--{name}` must be at least {least}, got {number}.")
    if n_seeds is not None and n_seeds > seeds_module.MAX_SEEDS:
        raise StudyError(f"`--seeds` must be at most {seeds_module.MAX_SEEDS}, got {n_seeds}.")
    kept_worlds = _chosen("worlds", study.worlds, worlds)
    kept_agents = _chosen("agents", study.agents, agents)
    if agents:
        kept_agents += tuple(a for a in study.agents if a.kind in REFERENCES and a.label not in agents)
    if worlds:
        kept_worlds, kept_agents = _within(kept_worlds, kept_agents)
    if n_seeds is not None or first_seed is not None:
        kept_worlds = tuple(
            world.model_copy(update={"seeds": _seeds(world.seeds, n_seeds, first_seed)}) if world.seeds else world
            for world in kept_worlds
        )
    change: dict[str, Any] = {"seeds": _seeds(study.seeds, n_seeds, first_seed), "agents": kept_agents}
    if steps is not None:
        change |= {"steps": steps, "windows": tuple(window for window in study.windows if window[0] < steps)}
        kept_worlds = tuple(_shortened(world, steps) for world in kept_worlds)
    return change | {"worlds": kept_worlds}


def _seeds(seeds: Sequence[int], n_seeds: int | None, first_seed: int | None) -> tuple[int, ...]:
    if first_seed is not None:
        seeds = tuple(range(first_seed, first_seed + len(seeds)))
    return tuple(seeds) if n_seeds is None else seeds_module.counted(tuple(seeds), n_seeds)


def _chosen(what: str, entries: Iterable[Any], labels: Sequence[str]) -> tuple[Any, ...]:
    valid = [entry.label for entry in entries]
    for label in labels:
        if label not in valid:
            raise StudyError(
                f"`--{what}`: expected one of {', '.join(valid)}, got {label!r}{study_file.nearest(label, valid)}"
            )
    return tuple(entry for entry in entries if entry.label in labels or not labels)


def _within(
    worlds: Sequence[StudyWorld], agents: Sequence[StudyAgent]
) -> tuple[tuple[StudyWorld, ...], tuple[StudyAgent, ...]]:
    """Worlds without comparisons with those that are left out, and agents that have a world left."""
    labels = [world.label for world in worlds]
    kept = [agent.model_copy(update={"worlds": tuple(w for w in agent.worlds if w in labels)}) for agent in agents]
    return (
        tuple(
            world.model_copy(update={"fresh_of": None})
            if world.fresh_of and world.fresh_of.world not in labels
            else world
            for world in worlds
        ),
        tuple(new for new, old in zip(kept, agents, strict=True) if new.worlds or not old.worlds),
    )


def _shortened(world: StudyWorld, steps: int) -> StudyWorld:
    """The world with the study's steps and with its own windows cut to them, as was asked for with `--steps`."""
    windows = world.windows
    if windows is not None:
        windows = tuple((start, min(stop, steps)) for start, stop in windows if start < steps)
    return world.model_copy(update={"steps": None, "windows": windows, "fresh_of": None})
