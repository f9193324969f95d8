"""How far a study is and how long it will still take, for a terminal and for a log.

The estimate weighs each run by what its kind costs, first by a rule of thumb and, as soon as one run of its group is
under way, by what was measured: the slow agents of a study would otherwise come as a surprise at its end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import rich.console
import rich.markup
import rich.progress

from .plan import LEAST_COMPILED, Run

SECONDS_PER_1000_STEPS = {
    "random": 0.1,
    "best_fixed": 0.3,
    "rules": 0.2,
    "oracle": 0.1,
    "tabular_q": 0.2,
    "linucb": 0.4,
    "substrate": 1.0,
    "dqn": 0.8,
    "ppo": 1.2,
    "a2c": 1.2,
}
"""Rough cost of an agent with its world, before anything is measured."""
OTHER_KIND = 0.8
COMPILED_SECONDS_PER_1000_STEPS = 0.02
FEW_SEEDS = 10  # of a study, where their number is not known
SETUP_S = 0.5  # of a run: building, first compilation
PLAIN_EVERY_S = 15.0  # between two lines of progress where there is no terminal


def rough_cost(run: Run) -> float:
    """Seconds that a run, or its share of a block, is expected to take before anything is known of its group."""
    if run.may_be_compiled and run.steps >= LEAST_COMPILED // FEW_SEEDS:
        return SETUP_S + run.steps / 1000 * COMPILED_SECONDS_PER_1000_STEPS
    return SETUP_S + run.steps / 1000 * SECONDS_PER_1000_STEPS.get(run.kind, OTHER_KIND)


class Progress:
    """Shows progress; a context manager.

    Args:
        runs: all runs that are to be done.
        jobs: number of worker processes.
        console: where to show it.
    """

    def __init__(self, runs: Sequence[Run], jobs: int, console: rich.console.Console) -> None:
        self._runs = {run.hash: run for run in runs}
        self._jobs = max(1, min(jobs, len(runs)))
        self._console = console
        self._left: dict[tuple[str, str, str], set[str]] = {}
        for run in runs:
            self._left.setdefault(run.group, set()).add(run.hash)
        self._n_of = {group: len(hashes) for group, hashes in self._left.items()}
        self._spent: dict[tuple[str, str, str], list[float]] = {group: [] for group in self._left}
        self._began: dict[str, float] = {}  # run -> time of its first step
        self._share: dict[str, float] = {}  # run under way -> share done
        self._n_done = self._n_failed = 0
        self._began_s = self._said_s = time.monotonic()
        self._bar = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(bar_width=30),
            rich.progress.TextColumn("{task.percentage:3.0f}%"),
            rich.progress.TextColumn("[dim]{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=1.0, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def under_way(self, run: str, n_done: int) -> None:
        """A run has done so many steps."""
        self._began.setdefault(run, time.monotonic())
        self._share[run] = n_done / self._runs[run].steps

    def ended(self, run: str, seconds: float, error: str | None) -> None:
        """A run has ended; says so where it was the last of its group or failed."""
        group = self._runs[run].group
        self._share.pop(run, None)
        self._left[group].discard(run)
        self._n_done += 1
        world, agent, feedback = group
        if error is not None:
            self._n_failed += 1
            seed = self._runs[run].seed
            self._say(
                f"[red]failed[/]  {world} · {agent} · {feedback} · seed {seed}: {rich.markup.escape(error[:300])}"
            )
        else:
            self._spent[group].append(seconds)
        if not self._left[group] and self._spent[group]:
            spent = self._spent[group]
            n_failed = self._n_of[group] - len(spent)
            note = f", {n_failed} failed" if n_failed else ""
            count = f"{len(spent)} run{'s' if len(spent) != 1 else ''}{note}"
            each = f"{sum(spent) / len(spent):.1f} s each"
            self._say(f"[green]done[/]    {world} · {agent} · {feedback}: {count}, {each}")

    def note(self, text: str) -> None:
        """Say something above the bar."""
        self._say(text)

    def show(self) -> None:
        """Refresh the bar, or, without a terminal, say how far it is from time to time."""
        left, total = self._cost_left(), self._cost_left() + self._cost_done()
        share = 1 - left / total if total else 1.0
        note = f"{self._n_done} of {len(self._runs)} runs, about {_clock(self.eta_s())} left"
        if self._n_failed:
            note += f", {self._n_failed} failed"
        names = sorted({self._runs[run].agent for run in self._share})
        idle = "finishing" if self._n_done else "starting"
        self._bar.update(self._task, completed=share, description=", ".join(names)[:40] or idle, note=note)
        if not self._console.is_terminal and time.monotonic() - self._said_s > PLAIN_EVERY_S:
            self._said_s = time.monotonic()
            self._console.print(f"{share:4.0%}    {note}", highlight=False)

    def eta_s(self) -> float:
        """Seconds that the rest will take: its cost over the workers, but no less than its longest run."""
        costs = [self._cost(run) * (1 - self._share.get(run.hash, 0.0)) for run in self._open()]
        return max(sum(costs) / self._jobs, max(costs, default=0.0))

    def _open(self) -> list[Run]:
        return [self._runs[run] for hashes in self._left.values() for run in hashes]

    def _cost_left(self) -> float:
        return sum(self._cost(run) * (1 - self._share.get(run.hash, 0.0)) for run in self._open())

    def _cost_done(self) -> float:
        ended = sum(sum(spent) for spent in self._spent.values())
        return ended + sum(self._cost(self._runs[run]) * share for run, share in self._share.items())

    def _cost(self, run: Run) -> float:
        """Seconds of one run: the mean of its group, else what a run of it under way shows, else the rule of thumb."""
        if spent := self._spent[run.group]:
            return sum(spent) / len(spent)
        now = time.monotonic()
        shown = [
            (now - self._began[other]) / share
            for other, share in self._share.items()
            if share > 0.1 and self._runs[other].group == run.group
        ]
        return sum(shown) / len(shown) if shown else rough_cost(run)

    def _say(self, text: str) -> None:
        self._console.print(
            f"[dim]{_clock(time.monotonic() - self._began_s)}[/]  {text}", highlight=False, soft_wrap=True
        )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
