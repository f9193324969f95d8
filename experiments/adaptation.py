"""Whoever goes on under new rules, compared with whoever comes fresh to them.

A study says which worlds belong together: `fresh_of` of a world names another one and the step of it from which on both
show the same rules (`study.FreshOf`).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from . import statistics
from .results import SEED, Cell, Results
from .statistics import Estimate, Floats

FIRST = (0, 500)
"""Steps under the new rules over which transfer is taken."""
FINAL_SHARE = 4  # the fresh learner's final level is its mean over the last quarter of its steps
REACHED = 0.9  # of that level
BIN_STEPS = 250


@dataclasses.dataclass(frozen=True)
class Adaptation:
    """One agent under new rules, when it goes on and when it starts anew.

    Attributes:
        world, fresh: labels of the two worlds.
        agent, feedback: of the two groups of runs.
        transfer: score of who goes on less that of who is new, over the steps FIRST, paired by seed.
        level: score of who is new over its last quarter.
        steps_on, steps_fresh: steps until the mean over seeds first reaches REACHED of that level, in bins of
            BIN_STEPS; NaN where it never does.
    """

    world: str
    fresh: str
    agent: str
    feedback: str
    transfer: Estimate
    level: float
    steps_on: Estimate
    steps_fresh: Estimate


def of(results: Results) -> list[Adaptation]:
    """All comparisons of a study, in its order; those whose runs or references are missing are left out."""
    rng = np.random.default_rng(SEED)
    found = []
    for fresh_world in results.study.worlds:
        if fresh_world.fresh_of is None:
            continue
        world, at = fresh_world.fresh_of.world, fresh_world.fresh_of.at
        for fresh in results.cells.values():
            on = results.cells.get((world, fresh.agent, fresh.feedback))
            if fresh.world == fresh_world.label and on is not None and fresh.kind not in ("random", "oracle"):
                compared = _compared(results, on, fresh, at, rng)
                found += [compared] if compared is not None else []
    return found


def _compared(results: Results, on: Cell, fresh: Cell, at: int, rng: np.random.Generator) -> Adaptation | None:
    n_steps = min(on.n_steps - at, fresh.n_steps)
    if n_steps < FIRST[1]:
        return None
    grid = statistics.bins(n_steps, n_steps // BIN_STEPS)
    final = (n_steps - n_steps // FINAL_SHARE, n_steps)
    values_fresh = results.normalised(fresh, [FIRST, final, *grid])
    values_on = results.normalised(on, [(start + at, stop + at) for start, stop in (FIRST, final, *grid)])
    if values_fresh is None or values_on is None or not np.isfinite(values_fresh).all() & np.isfinite(values_on).all():
        return None
    level = float(values_fresh[:, 1].mean())
    ends = np.array([stop for _, stop in grid], np.float64)
    first_on, first_fresh = (
        dict(zip(cell.seeds, values[:, 0].tolist(), strict=True))
        for cell, values in ((on, values_on), (fresh, values_fresh))
    )
    return Adaptation(
        world=on.world,
        fresh=fresh.world,
        agent=fresh.agent,
        feedback=fresh.feedback,
        transfer=statistics.paired_difference(first_on, first_fresh, rng),
        level=level,
        steps_on=_reached(values_on[:, 2:], ends, REACHED * level, rng),
        steps_fresh=_reached(values_fresh[:, 2:], ends, REACHED * level, rng),
    )


def _reached(values: Floats, ends: Floats, level: float, rng: np.random.Generator) -> Estimate:
    """End of the first bin in which the mean over seeds is at `level`, with its bootstrap interval over seeds.

    Args:
        values: [S, W] score of each seed in each bin.
        ends: [W] end of each bin in steps.
        level: to be reached.
        rng: source of the resampling.
    """
    n = len(values)
    drawn = values[rng.integers(n, size=(statistics.REPETITIONS, n))].mean(axis=1)  # [R, W]
    every = _first(drawn, ends, level)
    point = float(_first(values.mean(axis=0)[None], ends, level)[0])
    tail = (1 - statistics.LEVEL) / 2
    # a resample that never gets there counts as later than every step
    low, high = np.quantile(np.where(np.isnan(every), np.inf, every), [tail, 1 - tail], method="nearest")
    return Estimate(point, float(low), float(high), n)


def _first(values: Floats, ends: Floats, level: float) -> Floats:
    """[R] end of the first bin of each row at `level`, NaN where there is none."""
    there = values >= level
    return np.asarray(np.where(there.any(axis=1), ends[there.argmax(axis=1)], np.nan), np.float64)
