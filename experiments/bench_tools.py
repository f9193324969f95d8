"""What the benches share: seconds on one core, rounds in turn, and what is said about the machine."""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

N_ROUNDS, QUICK_ROUNDS = 7, 3

Timed = Callable[[], float]
"""Runs once; returns processor seconds per unit of what is timed."""


def use_one_thread() -> None:
    """Let NumPy multiply matrices with one thread: more of them on one core wait for each other, for tens of ms.

    BLAS reads this once, so it has to be said before NumPy is imported.
    """
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"


@contextlib.contextmanager
def on_one_core() -> Iterator[int]:
    """Keep all threads of this process on one core while in the block; gives its number, -1 where that is not possible.

    Threads that JAX has started already are moved too.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield -1
        return
    allowed = os.sched_getaffinity(0)
    core = max(allowed)
    _pin({core})
    try:
        yield core
    finally:
        _pin(allowed)


def _pin(cores: set[int]) -> None:
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.sched_setaffinity(int(thread.name), cores)


def repeated(call: Callable[[], object], units: float = 1.0, least_s: float = 0.02) -> Timed:
    """Time a call by repeating it for about `least_s`; how often is found once, after a call to warm up.

    Args:
        call: does the work and waits for its end.
        units: of the result that one call makes.
        least_s: processor seconds below which one timing is not worth much.
    """
    call()
    began = time.process_time()
    call()
    once = max(time.process_time() - began, 1e-7)
    n_calls = max(1, min(10_000, round(least_s / once)))

    def timed() -> float:
        began = time.process_time()
        for _ in range(n_calls):
            call()
        return (time.process_time() - began) / (n_calls * units)

    return timed


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Median over rounds of the ratio within a round, which compares what ran side by side."""
    return statistics.median(a / b for a, b in zip(numerators, denominators, strict=True))


def machine(**versions: str) -> dict[str, Any]:
    """What the numbers depend on; versions of packages by name."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_before": round(load, 2),
        "python": platform.python_version(),
        **versions,
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or sys.platform
