"""Whoever goes on under new rules, compared with whoever comes fresh to them; what is kept until rules return; and what
it costs when everybody turns into somebody else.

A study says which worlds belong together: `fresh_of` of a world names another one and the step of it from which on both
show the same rules (`study.FreshOf`). When rules return, and when the hidden types are drawn anew, follows from the
schedule of a world (`envs.regimes`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..envs import regimes
from . import statistics
from .results import SEED, Cell, Results
from .statistics import Estimate, Floats
from .study import REFERENCES, StudyWorld

FIRST = (0, 500)
"""Steps under the new rules over which transfer is taken."""
NEXT = 1000
"""Steps before and after a change over which retention and the cost of a redraw are taken."""
LEAST_LEVEL = 0.05  # normalised; retention is a share of what was there, and of less than this nobody can keep a share
REDRAWS = "redraw_"  # arguments of worlds that draw the hidden types anew at every entry of the schedule
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


@dataclasses.dataclass(frozen=True)
class Return:
    """One agent when rules return that it has met before.

    All scores are normalised and means over NEXT steps.

    Attributes:
        world, agent, feedback: of the runs.
        at: step of the return.
        level: regime level of the rules, 0 (first) to `regimes.LEVELS` (second).
        before: score at the end of the time before under these rules.
        again: score from the return on.
        retention: `again` as a share of `before`, both means over seeds; None where `before` is below LEAST_LEVEL.
        fresh: `again` less the score of the same agent when it was new to these rules, paired by seed; None where the
            study has no such runs.
        lead: `again` less that of the study's first agent, paired by seed; None for that one itself, and where it was
            not run on the same seeds.
    """

    world: str
    agent: str
    feedback: str
    at: int
    level: int
    before: Estimate
    again: Estimate
    retention: Estimate | None
    fresh: Estimate | None
    lead: Estimate | None


@dataclasses.dataclass(frozen=True)
class Redraw:
    """One agent when everybody who is away gets a new hidden type under the same rules.

    Attributes:
        world, agent, feedback: of the runs.
        at: step of the redraw.
        before, after: normalised score of the last NEXT steps before it and of the next NEXT.
        cost: `before` less `after`, paired by seed.
    """

    world: str
    agent: str
    feedback: str
    at: int
    before: Estimate
    after: Estimate
    cost: Estimate


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
            if fresh.world == fresh_world.label and on is not None and fresh.kind not in REFERENCES:
                compared = _compared(results, on, fresh, at, rng)
                found += [compared] if compared is not None else []
    return found


def returns(results: Results) -> list[Return]:
    """Every return of rules in the worlds of a study, for every agent, in the study's order.

    Who was new to the rules is the agent itself where its world begins with them, else the same agent in a world of the
    study that does. Windows that another change, or the end of the runs, cuts short are left out.
    """
    rng = np.random.default_rng(SEED)
    return [
        found
        for entry, cell in _learners(results)
        for turn in _turns(entry, cell.n_steps)
        if turn.left_at is not None and (found := _returned(results, entry, cell, turn, rng)) is not None
    ]


def redraws(results: Results) -> list[Redraw]:
    """Every redraw of hidden types under unchanged rules, for every agent, in the study's order."""
    rng = np.random.default_rng(SEED)
    return [
        found
        for entry, cell in _learners(results)
        for turn in _turns(entry, cell.n_steps)
        if turn.is_redraw and (found := _redrawn(results, cell, turn, rng)) is not None
    ]


class Turn(NamedTuple):
    """An entry of a world's schedule after its first.

    Attributes:
        at: step from which on it holds.
        level: regime level.
        left_at: step at which these rules ended the last time before; None where they are new, or have not ended.
        is_redraw: whether the rules stay and the hidden types are drawn anew.
    """

    at: int
    level: int
    left_at: int | None
    is_redraw: bool


def _turns(entry: StudyWorld, n_steps: int) -> list[Turn]:
    """Entries of a world's schedule from which on at least NEXT steps follow until the next entry or the end."""
    steps, levels = _schedule(entry, n_steps)
    redraws_types = any(value is True for name, value in entry.kwargs.items() if name.startswith(REDRAWS))
    left: dict[int, int] = {}
    found = []
    for i in range(1, len(steps)):
        level, following = levels[i], steps[i + 1] if i + 1 < len(steps) else n_steps
        stays = level == levels[i - 1]
        if not stays:
            left[levels[i - 1]] = steps[i]
        if min(following - steps[i], steps[i] - steps[i - 1]) >= NEXT:
            found.append(Turn(steps[i], level, None if stays else left.get(level), stays and redraws_types))
    return found


def _schedule(entry: StudyWorld, n_steps: int) -> tuple[list[int], list[int]]:
    """Steps within the runs and levels of a world's schedule; one entry where it has none that this package knows."""
    if not entry.is_ours:
        return [0], [0]
    shift_at = entry.kwargs.get("shift_at")
    horizon = int(entry.kwargs.get("horizon", n_steps))
    listed = regimes.schedule(entry.kwargs.get("regime", "none"), horizon, shift_at)
    kept = listed.steps < n_steps
    # of entries for the same step the last one holds, as in "shift" at step 0
    by_step = dict(zip(listed.steps[kept].tolist(), listed.levels[kept].tolist(), strict=True))
    return [*by_step], [*by_step.values()]


def _learners(results: Results) -> Iterator[tuple[StudyWorld, Cell]]:
    """Every group of runs but those of the references, with its world."""
    for entry in results.study.worlds:
        for cell in results.cells.values():
            if cell.world == entry.label and cell.kind not in REFERENCES:
                yield entry, cell


def _returned(results: Results, entry: StudyWorld, cell: Cell, turn: Turn, rng: np.random.Generator) -> Return | None:
    assert turn.left_at is not None  # `returns`
    was, now = (turn.left_at - NEXT, turn.left_at), (turn.at, turn.at + NEXT)
    values = _by_seed(results, cell, [was, now])
    if values is None:
        return None
    before, again = values
    news = _newcomers(results, entry, cell, turn.level)
    fresh = _by_seed(results, news, [(0, NEXT)]) if news is not None else None
    focus = results.cells.get((cell.world, results.focus, cell.feedback))
    first = _by_seed(results, focus, [now]) if focus is not None and focus.agent != cell.agent else None
    return Return(
        world=cell.world,
        agent=cell.agent,
        feedback=cell.feedback,
        at=turn.at,
        level=turn.level,
        before=_mean(before, rng),
        again=_mean(again, rng),
        retention=_share(again, before, rng),
        fresh=_difference(again, fresh[0] if fresh else None, rng),
        lead=_difference(again, first[0] if first else None, rng),
    )


def _redrawn(results: Results, cell: Cell, turn: Turn, rng: np.random.Generator) -> Redraw | None:
    values = _by_seed(results, cell, [(turn.at - NEXT, turn.at), (turn.at, turn.at + NEXT)])
    if values is None:
        return None
    before, after = values
    return Redraw(
        world=cell.world,
        agent=cell.agent,
        feedback=cell.feedback,
        at=turn.at,
        before=_mean(before, rng),
        after=_mean(after, rng),
        cost=statistics.paired_difference(before, after, rng),
    )


def _newcomers(results: Results, entry: StudyWorld, cell: Cell, level: int) -> Cell | None:
    """The same agent where it begins under rules of this level: in its own world, else in the first like it.

    Worlds are alike if they differ in nothing but their schedules.
    """
    for other in (entry, *results.study.worlds):
        if not other.is_ours or _setting(other) != _setting(entry):
            continue
        there = results.cells.get((other.label, cell.agent, cell.feedback))
        if there is None or there.n_steps < NEXT:
            continue
        steps, levels = _schedule(other, there.n_steps)
        if levels[0] == level and (len(steps) == 1 or steps[1] >= NEXT):
            return there
    return None


def _setting(entry: StudyWorld) -> tuple[str, dict[str, object]]:
    """What of a world is not its schedule."""
    scheduled = ("regime", "shift_at", "horizon")
    kept = {k: v for k, v in entry.kwargs.items() if k not in scheduled and not k.startswith(REDRAWS)}
    return entry.id, kept


def _by_seed(results: Results, cell: Cell, windows: list[tuple[int, int]]) -> list[dict[int, float]] | None:
    """Normalised score by seed in each window; None where there are no references or some seed has no score."""
    values = results.normalised(cell, windows)
    if values is None or not np.isfinite(values).all():
        return None
    return [dict(zip(cell.seeds, column.tolist(), strict=True)) for column in values.T]


def _mean(values: dict[int, float], rng: np.random.Generator) -> Estimate:
    return statistics.estimate([list(values.values())], rng, statistic=statistics.mean)


def _difference(ours: dict[int, float], theirs: dict[int, float] | None, rng: np.random.Generator) -> Estimate | None:
    """Paired by seed; None where there is nobody to compare with."""
    return statistics.paired_difference(ours, theirs, rng) if theirs and set(ours) & set(theirs) else None


def _share(part: dict[int, float], whole: dict[int, float], rng: np.random.Generator) -> Estimate | None:
    """Mean over seeds of `part` as a share of that of `whole`, with its bootstrap interval over seeds.

    None where the whole is below LEAST_LEVEL. A resample in which it is counts as below every share.
    """
    a, b = np.array(list(part.values())), np.array([whole[seed] for seed in part])
    if b.mean() < LEAST_LEVEL:
        return None
    n = len(a)
    if n < 2:
        return Estimate(float(a.mean() / b.mean()), np.nan, np.nan, n)
    drawn = rng.integers(n, size=(statistics.REPETITIONS, n))
    parts, wholes = a[drawn].mean(axis=1), b[drawn].mean(axis=1)
    shares = np.where(wholes >= LEAST_LEVEL, parts / np.where(wholes >= LEAST_LEVEL, wholes, 1.0), -np.inf)
    tail = (1 - statistics.LEVEL) / 2
    low, high = np.quantile(shares, [tail, 1 - tail], method="nearest")
    return Estimate(float(a.mean() / b.mean()), float(low), float(high), n)


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
