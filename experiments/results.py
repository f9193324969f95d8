"""The results of a study: its records put together by world, agent and variant, and what follows from them.

Only whole records enter; what is missing, failed or damaged is listed, never averaged in.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import own_code, records, statistics, study
from .errors import RecordError
from .plan import Run, digests_of, runs_of
from .statistics import Estimate

STUDY, PROVENANCE = "study.yaml", "provenance.json"
FEW_SEEDS = 10  # below, intervals over seeds are rough (DESIGN 5: published claims need as many)
MOST_BINS, FEWEST_BINS = 40, 4  # of a learning curve
BIN_STEPS = 150  # shorter bins show noise
SEED = 0  # of all resampling, so that a report of the same records is the same


@dataclasses.dataclass(frozen=True)
class Cell:
    """All whole runs of one agent in one world and variant.

    Attributes:
        world, agent, feedback: labels.
        kind: of the agent.
        seeds: S of them.
        score, reward: [S, T] f32.
        boundary: [S, T] bool.
        headers: S contents of record.json.
    """

    world: str
    agent: str
    feedback: str
    kind: str
    seeds: tuple[int, ...]
    score: npt.NDArray[np.float32]
    reward: npt.NDArray[np.float32]
    boundary: npt.NDArray[np.bool_]
    headers: tuple[Mapping[str, Any], ...]

    @property
    def n_steps(self) -> int:
        """Steps of each run."""
        return int(self.score.shape[1])

    @property
    def per(self) -> statistics.Per:
        """What a mean score is taken over in this world."""
        return self.headers[0]["world"]["score_per"]  # type: ignore[no-any-return]

    def windows(self, windows: list[tuple[int, int]]) -> statistics.Floats:
        """[S, W] mean score in each window, in rewards."""
        return statistics.window_scores(self.score, self.boundary, windows, self.per)


@dataclasses.dataclass(frozen=True)
class Row:
    """One agent in one world, variant and window.

    Attributes:
        world, agent, feedback, kind: of the agent.
        window: (from, to) in steps.
        raw: mean score, in rewards.
        mean: mean normalised score, or None where the world has no references.
        iqm: its interquartile mean.
        values: normalised score of each seed, raw without references.
    """

    world: str
    agent: str
    feedback: str
    kind: str
    window: tuple[int, int]
    raw: Estimate
    mean: Estimate | None
    iqm: Estimate | None
    values: Mapping[int, float]

    @property
    def shown(self) -> Estimate:
        """The mean to show: normalised where it can be."""
        return self.mean or self.raw


@dataclasses.dataclass(frozen=True)
class Curve:
    """A learning curve: W bins, their ends in steps, the mean over seeds and its interval.

    NaN where some seed closed no encounter in a bin: the mean of the others would say too much.
    """

    world: str
    agent: str
    feedback: str
    kind: str
    steps: npt.NDArray[np.int64]
    point: statistics.Floats
    low: statistics.Floats
    high: statistics.Floats
    is_normalised: bool


@dataclasses.dataclass(frozen=True)
class Results:
    """A study's records.

    Attributes:
        folder: where they lie.
        study: what was run.
        command: the command that ran it.
        cells: by (world, agent, variant).
        failed: runs that failed, with their error.
        missing: runs that are not there, or damaged, with the reason.
        n_foreign: records in the folder that do not belong to the study.
        runs: all runs of the study.
    """

    folder: Path
    study: study.Study
    command: str
    cells: Mapping[tuple[str, str, str], Cell]
    failed: tuple[tuple[Run, str], ...]
    missing: tuple[tuple[Run, str], ...]
    n_foreign: int
    runs: tuple[Run, ...]

    @property
    def focus(self) -> str:
        """Label of the agent that the others are compared with: the study's first."""
        return self.study.agents[0].label

    def windows_of(self, world: str) -> list[tuple[int, int]]:
        """Windows of one world, cut to the recorded steps."""
        entry = next(entry for entry in self.study.worlds if entry.label == world)
        return list(self.study.windows_of(entry))

    def reference(self, world: str, kind: str) -> Cell | None:
        """The runs of the `random` or `oracle` reference in one world."""
        return next((cell for cell in self.cells.values() if cell.world == world and cell.kind == kind), None)

    def normalised(self, cell: Cell, windows: list[tuple[int, int]]) -> statistics.Floats | None:
        """[S, W] normalised scores, or None where the world lacks a reference."""
        random, oracle = self.reference(cell.world, "random"), self.reference(cell.world, "oracle")
        if random is None or oracle is None:
            return None
        return statistics.normalise(cell.windows(windows), random.windows(windows), oracle.windows(windows))

    @functools.cached_property
    def rows(self) -> tuple[Row, ...]:
        """One row per world, agent, variant and window, in the study's order."""
        rng = np.random.default_rng(SEED)
        return tuple(row for cell in self.cells.values() for row in self._rows_of(cell, rng))

    def row(self, world: str, agent: str, feedback: str, window: tuple[int, int]) -> Row | None:
        """One row of the table, or None."""
        key = (world, agent, feedback, window)
        return next((r for r in self.rows if (r.world, r.agent, r.feedback, r.window) == key), None)

    @functools.cached_property
    def overall(self) -> dict[tuple[str, str], Estimate]:
        """(agent, variant) -> interquartile mean over all worlds and seeds, in each world's last window."""
        rng = np.random.default_rng(SEED)
        worlds = [entry.label for entry in self.study.worlds]
        last = {world: self.windows_of(world)[-1] for world in worlds}
        found: dict[tuple[str, str], dict[str, Row]] = {}
        for row in self.rows:
            if row.window == last[row.world] and row.mean is not None:
                found.setdefault((row.agent, row.feedback), {})[row.world] = row
        return {
            key: statistics.estimate([list(rows[world].values.values()) for world in worlds], rng)
            for key, rows in found.items()
            if len(rows) == len(worlds) > 1
        }

    def paired(self, world: str, feedback: str, window: tuple[int, int]) -> list[tuple[Row, Estimate]]:
        """Each other agent and the focus agent's mean difference to it on common seeds; the largest lead last.

        Who was not run in this variant is compared in its own.
        """
        ours = self.row(world, self.focus, feedback, window)
        if ours is None:
            return []
        rng = np.random.default_rng(SEED)
        others = [
            row
            for row in self.rows
            if (row.world, row.window) == (world, window) and row.agent != self.focus and row.kind != "oracle"
            if row.feedback == feedback or not self._has(world, row.agent, feedback)
        ]
        found = [
            (row, statistics.paired_difference(ours.values, row.values, rng))
            for row in others
            if set(ours.values) & set(row.values)
        ]
        return sorted(found, key=lambda pair: pair[1].point)

    def _has(self, world: str, agent: str, feedback: str) -> bool:
        return (world, agent, feedback) in self.cells

    @functools.cached_property
    def curves(self) -> tuple[Curve, ...]:
        """A learning curve per cell."""
        rng = np.random.default_rng(SEED)
        return tuple(self._curve(cell, rng) for cell in self.cells.values())

    def _rows_of(self, cell: Cell, rng: np.random.Generator) -> list[Row]:
        windows = self.windows_of(cell.world)
        raw, normalised = cell.windows(windows), self.normalised(cell, windows)
        rows = []
        for column, window in enumerate(windows):
            known = ~np.isnan(raw[:, column])
            is_normalised = normalised is not None and bool(np.isfinite(normalised[known, column]).all())
            shown = normalised[:, column] if normalised is not None and is_normalised else raw[:, column]
            values = {seed: float(v) for seed, v, there in zip(cell.seeds, shown, known, strict=True) if there}
            if not values:
                continue
            sample = [list(values.values())]
            rows.append(
                Row(
                    world=cell.world,
                    agent=cell.agent,
                    feedback=cell.feedback,
                    kind=cell.kind,
                    window=window,
                    raw=statistics.estimate([raw[known, column]], rng, statistic=statistics.mean),
                    mean=statistics.estimate(sample, rng, statistic=statistics.mean) if is_normalised else None,
                    iqm=statistics.estimate(sample, rng) if is_normalised else None,
                    values=values,
                )
            )
        return rows

    def _curve(self, cell: Cell, rng: np.random.Generator) -> Curve:
        windows = statistics.bins(cell.n_steps, max(FEWEST_BINS, min(MOST_BINS, cell.n_steps // BIN_STEPS)))
        values = self.normalised(cell, windows)
        is_normalised = values is not None and bool(np.isfinite(values).any())
        if values is None or not is_normalised:
            values = cell.windows(windows)
        known = np.isfinite(values).all(axis=0)
        lines = np.full((3, len(windows)), np.nan)
        if known.any():
            lines[:, known] = statistics.curve_interval(values[:, known], rng)
        ends = np.array([stop for _, stop in windows], np.int64)
        point, low, high = lines
        return Curve(cell.world, cell.agent, cell.feedback, cell.kind, ends, point, low, high, is_normalised)


def load(folder: Path) -> Results:
    """Read what a study left in a folder.

    Raises:
        RecordError: the folder holds no study, or no whole record of it.
    """
    loaded, runs = planned_in(folder)
    groups: dict[tuple[str, str, str], list[tuple[Run, records.Record]]] = {}
    failed, missing, planned = [], [], set()
    for run in runs:
        planned.add(run.hash)
        try:
            record = records.read(folder / records.RUNS, run.hash)
        except RecordError as error:
            missing.append((run, str(error)))
            continue
        if record.is_complete:
            groups.setdefault(run.group, []).append((run, record))
        else:
            failed.append((run, str(record.header["error"]["message"])))
    if not groups:
        raise RecordError(f"`{folder}`: the study `{loaded.name}` has no whole record here; run it first.")
    present = {path.name for path in (folder / records.RUNS).iterdir() if not path.name.startswith(".")}
    return Results(
        folder=folder,
        study=loaded,
        command=_command(folder),
        cells={group: _cell(members) for group, members in groups.items()},
        failed=tuple(failed),
        missing=tuple(missing),
        n_foreign=len(present - planned),
        runs=runs,
    )


def planned_in(folder: Path) -> tuple[study.Study, tuple[Run, ...]]:
    """The study that was run in a folder and its runs, known by what they were run on.

    A table or a module that has been changed, moved or deleted since does not make its records those of another study.

    Raises:
        RecordError: the folder holds no study.
    """
    if not (folder / STUDY).is_file():
        raise RecordError(
            f"`{folder}`: expected results of a study, a folder with {STUDY} and {records.RUNS}/; there is no {STUDY}. "
            "Results are made by `habitus run STUDY --out DIR`."
        )
    loaded = study.load(folder / STUDY, is_to_run=False)
    noted = _provenance(folder).get("digests")
    return loaded, runs_of(loaded, noted if isinstance(noted, dict) else _recorded_digests(folder, loaded))


def _recorded_digests(folder: Path, loaded: study.Study) -> dict[str, str]:
    """Where nobody noted them: digests of tables and modules that are gone, from the latest record that names them."""
    there = digests_of(loaded)
    tables = [value for world in loaded.worlds for value in world.kwargs.values() if study.is_table(value)]
    names = [world.id for world in loaded.worlds] + [agent.kind for agent in loaded.agents]
    lost = {Path(path).name: path for path in tables if path not in there}
    lost |= {name: module for name in names if (module := own_code.module_of(name)) and module not in there}
    found: dict[str, tuple[float, str]] = {}
    for path in (folder / records.RUNS).glob("*/") if lost else ():
        try:
            header = records.read_header(folder / records.RUNS, path.name)
        except RecordError:
            continue
        spec, began_s = header["spec"], float(header["timing"].get("started_unix_s", 0.0))
        digests = [(spec["world"]["id"], spec["world"].get("code")), (spec["agent"]["kind"], spec["agent"].get("code"))]
        digests += [(v["table"], v["sha256"]) for v in spec["world"]["kwargs"].values() if _is_fingerprint(v)]
        for name, digest in digests:
            if name in lost and digest:
                found[lost[name]] = max(found.get(lost[name], (0.0, "")), (began_s, digest))
    return {name: digest for name, (_, digest) in found.items()}


def _is_fingerprint(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"table", "sha256"}


def code_folders(folder: Path) -> tuple[Path, ...]:
    """Where the user's own modules of a study that was run are looked for, beside the current folder."""
    code = _provenance(folder).get("code")
    return (Path(code), folder) if isinstance(code, str) else (folder,)


def _cell(members: list[tuple[Run, records.Record]]) -> Cell:
    run = members[0][0]
    steps = [record.steps for _, record in members if record.steps is not None]
    return Cell(
        world=run.world,
        agent=run.agent,
        feedback=run.feedback,
        kind=run.kind,
        seeds=tuple(run.seed for run, _ in members),
        score=np.stack([trace.score for trace in steps]),
        reward=np.stack([trace.reward for trace in steps]),
        boundary=np.stack([trace.boundary for trace in steps]),
        headers=tuple(record.header for _, record in members),
    )


def _command(folder: Path) -> str:
    return str(_provenance(folder).get("command") or f"habitus run {folder / STUDY} --out {folder}")


def _provenance(folder: Path) -> dict[str, Any]:
    """How the results were made; empty where that is not known."""
    try:
        found = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
