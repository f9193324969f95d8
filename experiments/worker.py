"""What happens in a worker process. Imported before anything else there, so it imports nothing heavy itself."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import platform
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .plan import Run

_THREADS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",  # size of XLA's own thread pool on the CPU
}
_DEFAULTS = {
    "JAX_PLATFORMS": "cpu",  # one small step at a time: an accelerator would be slower
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}

_channel: Any = None  # set in each worker by `begin`
_stop: Any = None


@contextlib.contextmanager
def environment() -> Iterator[None]:
    """Environment variables of worker processes: one thread each, a compilation cache that outlives them.

    They must be there before the first import in the worker, so they are set in the parent while it starts workers.
    """
    defaults = _DEFAULTS | {"JAX_COMPILATION_CACHE_DIR": str(cache_folder())}
    wanted = _THREADS | {name: value for name, value in defaults.items() if name not in os.environ}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def cache_folder() -> Path:
    """Where compiled functions are kept for the next study, apart for each kind of processor that shares a home."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    return base / "habitus" / "jax" / hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()[:8]


def begin(channel: Any, stop: Any) -> None:
    """Start of a worker.

    Args:
        channel: queue to the parent; carries (run, steps done) and (run, Ending).
        stop: event; set when the study is to end.
    """
    global _channel, _stop
    _channel, _stop = channel, stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    threading.Thread(target=_die_with_parent, daemon=True).start()


def do(batch: Sequence[Run], runs: Path, *, stepwise: bool = False) -> None:
    """Execute runs of one group, in one compiled call or one after the other; what comes of them goes to the channel.

    Args:
        batch: runs that differ in their seeds alone.
        runs: folder of the records.
        stepwise: go step by step also where a compiled call is possible.
    """
    import jax

    from . import compiled, execution

    # A result that is read at once gains nothing from another thread. There is no environment variable for it.
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]  # JAX has no types there
    if _stop.is_set():
        return
    if not stepwise and compiled.can(batch):
        for run in batch:
            _channel.put((run.hash, 0))
        for ending in compiled.execute(batch, runs):
            _channel.put((ending.run, ending))
        return
    for run in batch:
        if _stop.is_set():
            return

        def tick(n_done: int, run: Run = run) -> None:
            if _stop.is_set():
                raise execution.Stopped
            _channel.put((run.hash, n_done))

        _channel.put((run.hash, 0))
        try:
            done = execution.execute(run, runs, tick)
        except execution.Stopped:
            return
        _channel.put((run.hash, done))


def check(batch: Sequence[Run]) -> list[str]:
    """What is wrong with a world and its agents; see `execution.check`."""
    from . import execution

    return execution.check(batch)


def _die_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
