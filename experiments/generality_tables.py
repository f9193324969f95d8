"""What `habitus generality` found, as tables: a line per life and budget, and means over seeds for people."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence

import numpy as np

from . import world_runs
from .generality import LAST, LONGEST, N_EPISODES, Reading
from .statistics import Estimate, paired_difference
from .summary import interval, number

JUDGED = 1  # number of the budget at which agents are compared
OURS, THEIRS = "substrate", ("dqn", "ppo")


def to_csv(readings: Sequence[Reading]) -> str:
    """One line per life and budget."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([field.name for field in dataclasses.fields(Reading)])
    for one in sorted(readings, key=lambda r: (r.task, r.agent, r.seed, r.budget)):
        row = dataclasses.asdict(one)
        writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in row.values()])
    return buffer.getvalue()


def to_markdown(readings: Sequence[Reading], command: str) -> str:
    """The tables for people."""
    tasks, names, budgets = (
        list(dict.fromkeys(getattr(one, name) for one in readings)) for name in ("task", "agent", "budget")
    )
    seeds = sorted({one.seed for one in readings})
    judged = sorted(budgets)[min(JUDGED, len(budgets) - 1)]
    text = [
        "# Generality",
        f"```\n{command}\n```",
        f"Seeds {seeds[0]}-{seeds[-1]}, one life of {max(budgets):,} steps each, read at every budget. Every agent has "
        "one setting for all tasks (`experiments/generality.py`) and the same encoder (DQN its bins and ranks; PPO "
        "sees numbers as they are). Mean over seeds, ± half the 95 % bootstrap interval.",
    ]
    text += _comparison(readings, tasks, names, judged)
    for quantity, title, says in (
        (
            "online",
            "While learning",
            f"Mean return of the episodes that ended in the last {LAST:.0%} of the steps before the budget, "
            "exploration included. *n: in n lives none had ended; they count with what the unfinished one had brought.",
        ),
        (
            "greedy",
            "Greedy policy",
            f"Mean return of {N_EPISODES} episodes of at most {LONGEST} steps, in which nothing is learnt.",
        ),
    ):
        rows = [
            [task, f"{budget:,}", *(_cell(readings, task, name, budget, quantity) for name in names)]
            for task in tasks
            for budget in sorted(budgets)
        ]
        text += [f"## {title}", says, world_runs.table(["task", "steps", *names], rows)]
    return "\n\n".join(text) + "\n"


def difference(readings: Sequence[Reading], task: str, other: str, budget: int) -> Estimate:
    """Mean return of the substrate while learning, less that of another agent, paired by seed."""
    ours, theirs = (
        {r.seed: r.online for r in readings if (r.task, r.agent, r.budget) == (task, name, budget)}
        for name in (OURS, other)
    )
    return paired_difference(ours, theirs, np.random.default_rng(0))


def _comparison(readings: Sequence[Reading], tasks: Sequence[str], names: Sequence[str], budget: int) -> list[str]:
    others = [name for name in THEIRS if name in names]
    if OURS not in names or not others:
        return []
    rows, n_level = [], 0
    for task in tasks:
        found = [difference(readings, task, other, budget) for other in others]
        n_level += all(not one.high < 0 for one in found)
        rows.append([task, *(f"{number(one.point)} {interval(one)}" for one in found)])
    says = (
        "Mean return of the substrate while learning, less that of the other, paired by seed, with 95 % intervals. On "
        f"{n_level} of {len(tasks)} tasks none lies below 0."
    )
    return [f"## Against deep learners at {budget:,} steps", says, world_runs.table(["task", *others], rows)]


def _cell(readings: Sequence[Reading], task: str, name: str, budget: int, measure_name: str) -> str:
    chosen = [r for r in readings if (r.task, r.agent, r.budget) == (task, name, budget)]
    if not chosen:
        return "–"
    found = world_runs.of_seeds(np.array([getattr(r, measure_name) for r in chosen], np.float64))
    n_unfinished = sum(r.n_ended == 0 for r in chosen) if measure_name == "online" else 0
    half = "" if np.isnan(found.low) else f" ±{number((found.high - found.low) / 2)}"
    return f"{number(found.point)}{half}" + f" *{n_unfinished}" * bool(n_unfinished)
