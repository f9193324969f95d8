"""TensorBoard event files from records, without TensorFlow or PyTorch.

One TensorBoard run per world, agent, variant and seed. Standard tags (`rollout/`, `time/`, `eval/`) carry what other
libraries put there; `habitus/` carries what only these worlds know.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.event_file_writer import EventFileWriter  # type: ignore[import-untyped]

from . import records, statistics
from .records import Record
from .results import Cell, Results

FOLDER = "tensorboard"
N_POINTS = 100
RECENT = 100  # steps that a running mean looks back


def export(results: Results) -> Path:
    """Write the event files of all runs under `<results>/tensorboard`, in place of earlier ones.

    Returns:
        The folder to give to `tensorboard --logdir`.
    """
    folder = results.folder / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    seeds = {(cell.world, cell.agent, cell.feedback): set(cell.seeds) for cell in results.cells.values()}
    for run in results.runs:
        if run.seed not in seeds.get(run.group, ()):
            continue
        record = records.read(results.folder / records.RUNS, run.hash)
        target = folder / run.world / run.agent / run.feedback / f"seed_{run.seed}"
        _write(target, record, results, results.cells[run.group], run.seed)
    return folder


def _write(target: Path, record: Record, results: Results, cell: Cell, seed: int) -> None:
    writer = EventFileWriter(str(target))
    for step, wall_s, values in _points(record, results, cell, seed):
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()])
        writer.add_event(Event(wall_time=wall_s, step=step, summary=summary))
    writer.close()


def _points(record: Record, results: Results, cell: Cell, seed: int) -> Iterator[tuple[int, float, dict[str, float]]]:
    """(step, wall time in Unix seconds, tag -> value) on a grid over the run."""
    steps = record.steps
    assert steps is not None  # cells hold complete runs only
    grid = statistics.bins(len(steps), N_POINTS)
    row = cell.seeds.index(seed)
    raw = statistics.window_scores(steps.score[None], steps.boundary[None], grid, cell.per)[0]
    normalised = results.normalised(cell, grid)
    regret = np.cumsum(steps.best.astype(np.float64) - steps.score)
    timing = record.header["timing"]
    marks_s = np.array(timing["marks_s"], np.float64)
    marks = np.minimum(np.arange(1, len(marks_s) + 1) * timing["steps_per_mark"], len(steps))
    for number, (_, stop) in enumerate(grid):
        clock_s = float(np.interp(stop, marks, marks_s)) if len(marks_s) else 0.0
        values = {
            "rollout/ep_rew_mean": float(np.mean(steps.reward[max(0, stop - RECENT) : stop])),
            "time/fps": stop / clock_s if clock_s > 0 else np.nan,
            "eval/mean_reward": float(raw[number]),
            "habitus/score": float(normalised[row, number]) if normalised is not None else np.nan,
            "habitus/regret": float(regret[stop - 1]),
            "habitus/epsilon": float(steps.epsilon[stop - 1]),
        }
        yield (
            stop,
            timing["started_unix_s"] + clock_s,
            {tag: value for tag, value in values.items() if np.isfinite(value)},
        )
