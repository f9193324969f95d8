"""One runner a folder: a second would remove what the first is writing, and do its runs again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import StudyError

LOCK = ".lock"


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other runners away from a folder for the duration of the block.

    The lock is a file with the number of this process and the time of its start, where the system tells that: numbers
    are used again. The lock of a process that is gone is taken over.

    Raises:
        StudyError: another process runs a study there.
    """
    path = folder / LOCK
    while True:
        try:
            handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            break
        except FileExistsError:
            _take_away(path)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()} {_state(os.getpid())[1]}\n")
        yield
    finally:
        path.unlink(missing_ok=True)


def _take_away(path: Path) -> None:
    """Remove a lock whose holder is gone."""
    try:
        pid, _, began = path.read_text(encoding="ascii").strip().partition(" ")
    except FileNotFoundError:
        return
    except ValueError:
        pid, began = "", ""
    if pid.isdecimal() and not _is_alive(int(pid), began):
        path.unlink(missing_ok=True)
        return
    who = f"another habitus (process {pid})" if pid else "another habitus"
    raise StudyError(
        f"`{path.parent.parent}`: {who} runs a study in this folder; wait for its end, or choose another `--out`. "
        f"If there is none, as after a crash of another machine, remove {path}."
    )


def _is_alive(pid: int, began: str) -> bool:
    state, start = _state(pid)
    if state:
        return state not in "ZX" and (not began or began == start)
    if os.name == "nt":
        return True  # signal 0 would end it there
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _state(pid: int) -> tuple[str, str]:
    """State of a process and its start in ticks since the boot; empty where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", ""
