"""Runs a study: what is recorded is skipped, the rest goes to worker processes, and what fails is recorded as failed.

Runs travel in batches of one group (world, agent, variant), so that a worker compiles once for many seeds; where agent
and world are pure functions, a batch is one compiled call. The longest batches go first, so that no long one is left
over at the end.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import FrameType
from typing import Any

import rich.console

from . import lock, records, worker
from .errors import NewerRecordError, RecordError, StudyError
from .plan import MAX_BLOCK, Run, is_compiled, runs_of
from .progress import Progress, rough_cost
from .study import Study

BATCHES_PER_JOB = 6  # small enough to balance the workers, large enough to reuse compilations
POLL_S = 0.1


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a study.

    Attributes:
        n_runs: runs of the study.
        n_skipped: of them, those that were there already.
        failed: the runs that failed, each with its error.
    """

    n_runs: int
    n_skipped: int
    failed: tuple[tuple[Run, str], ...]


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """The user stopped the study; what is recorded stays, and the same command goes on from there."""


def run_study(
    study: Study,
    folder: Path,
    *,
    jobs: int | None = None,
    stepwise: bool = False,
    console: rich.console.Console | None = None,
    checked: Callable[[], None] = lambda: None,
) -> Outcome:
    """Do all runs of a study that `folder` does not hold yet.

    Args:
        study: what to run.
        folder: results of the study; records go to its subfolder `runs`.
        jobs: worker processes, at least 1; default, one per CPU.
        stepwise: whether runs go step by step that could go through one compiled call for many seeds; their records
            have the same values.
        console: where progress is shown.
        checked: called once, when nothing is refused any more and before the first run.

    Raises:
        StudyError: another process runs a study in this folder, or a world or an agent cannot be built as the study
            says; nothing was run.
        NewerRecordError: a newer version wrote a record of this study; nothing was run.
        Interrupted: Ctrl-C.
    """
    console = console or rich.console.Console(stderr=True)
    runs_folder = folder / records.RUNS
    runs_folder.mkdir(parents=True, exist_ok=True)
    with lock.held(runs_folder):
        return _run_what_is_left(study, runs_folder, jobs or os.cpu_count() or 1, stepwise, console, checked)


def _run_what_is_left(
    study: Study,
    runs_folder: Path,
    jobs: int,
    stepwise: bool,
    console: rich.console.Console,
    checked: Callable[[], None],
) -> Outcome:
    if stale := records.clean(runs_folder):
        console.print(f"removed {stale} half-written records of an earlier, killed study")
    planned = {run.hash: run for run in runs_of(study)}
    pending = [run for run in planned.values() if not _is_done(run, runs_folder, console)]
    n_skipped = len(planned) - len(pending)
    if n_skipped:
        console.print(f"{n_skipped} of {len(planned)} runs are recorded already, {len(pending)} to do", highlight=False)
    failed: list[tuple[Run, str]] = []
    if pending:
        with _noted_interrupt() as is_interrupted, Progress(pending, jobs, console) as progress:
            _Workers(pending, runs_folder, jobs, stepwise, progress, failed, is_interrupted, checked).run()
    else:
        checked()
    return Outcome(len(planned), n_skipped, tuple(failed))


@contextlib.contextmanager
def _noted_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C is noted and acted upon between two events, so that it cannot fall into the middle of one.

    A second Ctrl-C acts at once. Where interrupts are ignored (a background job) or arrive elsewhere (another thread),
    nothing is changed.
    """
    noted = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield noted.is_set
        return

    def note(number: int, frame: FrameType | None) -> None:
        noted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted.is_set
    finally:
        signal.signal(signal.SIGINT, before)


def _is_done(run: Run, runs: Path, console: rich.console.Console) -> bool:
    if not records.exists(runs, run.hash):
        return False
    try:
        return records.read(runs, run.hash).is_complete
    except NewerRecordError:
        raise
    except RecordError as error:
        console.print(f"[yellow]damaged[/]  {error} It is run again.", highlight=False, soft_wrap=True)
        return False


def batches_of(pending: Sequence[Run], jobs: int, *, stepwise: bool = False) -> list[list[Run]]:
    """Runs in batches of one group each, the longest batches first; what can be compiled stays together."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in pending:
        groups.setdefault(run.group, []).append(run)
    limit = sum(map(rough_cost, pending)) / (jobs * BATCHES_PER_JOB)
    batches = []
    for runs in groups.values():
        size = max(1, int(limit / rough_cost(runs[0])))
        if is_compiled(runs) and not stepwise:
            size = MAX_BLOCK
        batches += [runs[first : first + size] for first in range(0, len(runs), size)]
    return sorted(batches, key=lambda batch: -sum(map(rough_cost, batch)))


class _Workers:
    """Worker processes for the runs that are still to do; survives the death of a worker."""

    def __init__(
        self,
        pending: Sequence[Run],
        folder: Path,
        jobs: int,
        stepwise: bool,
        progress: Progress,
        failed: list[tuple[Run, str]],
        is_interrupted: Callable[[], bool],
        checked: Callable[[], None],
    ) -> None:
        self._left = {run.hash: run for run in pending}
        self._folder, self._jobs, self._progress, self._failed = folder, jobs, progress, failed
        self._stepwise = stepwise
        self._is_interrupted, self._checked = is_interrupted, checked
        self._under_way: set[str] = set()
        self._is_checked = False

    def run(self) -> None:
        """Do what is left. A worker that dies takes the others with it; then the runs under way are tried singly."""
        while self._left:
            try:
                self._run_together(list(self._left.values()), self._jobs)
            except BrokenProcessPool:
                if not self._under_way:
                    raise StudyError("a worker process died before its first run; is there enough memory?") from None
                self._try_alone([self._left[run] for run in sorted(self._under_way)])

    def _try_alone(self, suspects: list[Run]) -> None:
        for run in suspects:
            self._progress.note(
                f"[yellow]a worker died[/]  {run.world} · {run.agent} · seed {run.seed} is tried again, alone"
            )
        for run in suspects:
            try:
                self._run_together([run], 1)
            except BrokenProcessPool:
                self._give_up(run)

    def _run_together(self, runs: list[Run], jobs: int) -> None:
        context = multiprocessing.get_context("spawn")  # JAX and PyTorch have threads, which do not survive a fork
        channel, stop = context.SimpleQueue(), context.Event()
        self._under_way.clear()
        with worker.environment():
            executor = concurrent.futures.ProcessPoolExecutor(
                min(jobs, len(runs)), mp_context=context, initializer=worker.begin, initargs=(channel, stop)
            )
            try:
                self._check(executor, runs, channel)
                batches = batches_of(runs, jobs, stepwise=self._stepwise)
                futures = {executor.submit(worker.do, b, self._folder, stepwise=self._stepwise) for b in batches}
                self._wait(futures, channel)
            finally:
                stop.set()
                executor.shutdown(wait=True, cancel_futures=True)
                self._listen(channel)

    def _check(self, executor: concurrent.futures.ProcessPoolExecutor, runs: list[Run], channel: Any) -> None:
        """Refuse a study whose worlds or agents cannot be built, before hundreds of runs fail for the same reason."""
        if self._is_checked:
            return
        worlds: dict[str, dict[str, Run]] = {}
        for run in runs:
            worlds.setdefault(run.world, {}).setdefault(run.agent, run)
        checks = [executor.submit(worker.check, list(agents.values())) for agents in worlds.values()]
        self._wait(set(checks), channel)
        complaints = [text for future in checks for text in future.result()]
        if complaints:
            raise StudyError("\n".join(complaints))
        self._is_checked = True
        self._checked()

    def _wait(self, futures: set[concurrent.futures.Future[Any]], channel: Any) -> None:
        """Until all are done; shows progress meanwhile."""
        while futures:
            done, futures = concurrent.futures.wait(futures, timeout=POLL_S)
            self._listen(channel)
            self._progress.show()
            for future in done:
                future.result()
            if self._is_interrupted():
                self._progress.note("stopping")
                raise Interrupted

    def _listen(self, channel: Any) -> None:
        while not channel.empty():
            run, news = channel.get()
            if isinstance(news, int):
                self._under_way.add(run)
                self._progress.under_way(run, news)
                continue
            self._under_way.discard(run)
            done = self._left.pop(run)
            if news.error is not None:
                self._failed.append((done, news.error))
            self._progress.ended(run, news.seconds, news.error)

    def _give_up(self, run: Run) -> None:
        error = "the worker process died twice in this run (out of memory, or a crash in native code)"
        failure = {"type": "WorkerDied", "message": error, "traceback": ""}
        header = {
            "run": run.hash,
            "spec": run.spec(),
            "status": "failed",
            "error": failure,
            "timing": {},
            "machine": {},
        }
        records.write(self._folder, header, None)
        self._failed.append((run, error))
        del self._left[run.hash]
        self._progress.ended(run.hash, 0.0, error)
