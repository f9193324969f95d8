"""Records: what a run leaves behind, and how it is known to be whole.

A record is a folder `<hash>/` of two files. `record.json` says what was run, where, with which versions, and carries
the digest of `steps.npz`, which holds one value per step. Both are written to a temporary folder beside it, which is
then renamed: a record is there whole or not at all. Whatever differs between two executions of one run (wall time,
machine) is in the fields named by `VOLATILE`; all else is equal to the byte.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import NewerRecordError, RecordError
from .plan import canonical, spec_hash

FORMAT = 1
VOLATILE = ("timing", "machine", "digest")
"""Fields of record.json that may differ between two executions of the same run."""

RUNS = "runs"
_TEMPORARY = ".writing-"
_HEADER, _STEPS = "record.json", "steps.npz"

Floats = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Steps:
    """One value per step of a run of T steps.

    Attributes:
        action: [T] i16.
        reward: [T] f32, reward of the decision with its delayed outcome, whenever that was paid.
        score: [T] f32, expected reward of the decision where the world can say it, else the reward.
        best: [T] f32, the largest expected reward that was on offer, NaN where the world cannot say it.
        boundary: [T] bool, an encounter ended with this step.
        regime: [T] f32, level of the rules under which was decided, 0 to 1.
        epsilon: [T] f32, rate of random actions that the agent declares, NaN where it declares none.
    """

    action: npt.NDArray[np.int16]
    reward: Floats
    score: Floats
    best: Floats
    boundary: npt.NDArray[np.bool_]
    regime: Floats
    epsilon: Floats

    def __len__(self) -> int:
        return len(self.action)


@dataclasses.dataclass(frozen=True)
class Record:
    """A run that was done.

    Attributes:
        header: contents of record.json.
        steps: one value per step, or None for a failed run.
    """

    header: Mapping[str, Any]
    steps: Steps | None

    @property
    def is_complete(self) -> bool:
        """Whether the run went to its end."""
        return bool(self.header["status"] == "complete")


def write(runs: Path, header: Mapping[str, Any], steps: Steps | None) -> Path:
    """Commit one record under `runs`, in place of one with the same hash.

    Args:
        runs: folder of all records of a study.
        header: "run", "spec", "status", "timing", "machine" and whatever else belongs to the run; JSON.
        steps: arrays, or None for a failed run.

    Returns:
        The folder of the record.
    """
    target = runs / str(header["run"])
    temporary = runs / f"{_TEMPORARY}{header['run']}-{os.getpid()}"
    _remove(temporary)
    temporary.mkdir(parents=True)
    full: dict[str, Any] = {"format": FORMAT, **header, "steps_sha256": None}
    if steps is not None:
        content = _pack(steps)
        full["steps_sha256"] = hashlib.sha256(content).hexdigest()
        _write_file(temporary / _STEPS, content)
    full["digest"] = _digest(full)
    _write_file(temporary / _HEADER, (json.dumps(full, indent=1, sort_keys=True) + "\n").encode())
    _remove(target)  # a damaged or failed one; a folder cannot be renamed onto another that holds files
    os.replace(temporary, target)
    return target


def read(runs: Path, run: str) -> Record:
    """One record, verified against its digests.

    Raises:
        RecordError: there is none, or it is damaged or newer than this version; the text names the file.
    """
    header = read_header(runs, run)
    if header["status"] != "complete":
        return Record(header, None)
    path = runs / run / _STEPS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: expected the steps of a complete run, got: {error.strerror}.") from error
    if hashlib.sha256(content).hexdigest() != header["steps_sha256"]:
        raise RecordError(f"{path}: its bytes are not those that were written (SHA-256 differs).")
    try:
        return Record(header, _unpack(content))
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        raise RecordError(f"{path}: expected the arrays of format {FORMAT}, got: {error}.") from error


def read_header(runs: Path, run: str) -> dict[str, Any]:
    """record.json of one record, verified against its digest and its specification.

    Raises:
        RecordError: there is none, or it is damaged or newer than this version.
    """
    path = runs / run / _HEADER
    try:
        header = json.loads(path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path}: expected a record, got: {error.strerror}.") from error
    except ValueError as error:
        raise RecordError(f"{path}: expected JSON, got a damaged file ({error}).") from error
    if not isinstance(header, dict) or not isinstance(header.get("format"), int):
        raise RecordError(f"{path}: expected a record of habitus, got something else.")
    if header["format"] > FORMAT:
        raise NewerRecordError(
            f"{path}: expected record format {FORMAT} or older, got {header['format']}; read it with a newer habitus."
        )
    if header.get("digest") != _digest(header):
        raise RecordError(f"{path}: its contents are not those that were written (digest differs).")
    if header["run"] != run or spec_hash(header["spec"]) != run:
        raise RecordError(f"{path}: expected the record of run {run}, got that of {spec_hash(header['spec'])}.")
    return header


def exists(runs: Path, run: str) -> bool:
    """Whether anything lies where the record of `run` belongs."""
    return os.path.lexists(runs / run)


def clean(runs: Path) -> int:
    """Remove what writers that were killed left half done. Returns how many there were."""
    stale = list(runs.glob(f"{_TEMPORARY}*"))
    for path in stale:
        _remove(path)
    return len(stale)


def _remove(path: Path) -> None:
    """Make room at a path, whatever lies there: a folder, a file, a link, nothing."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write_file(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # else a rename can outlive the contents when the power fails


def _digest(header: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical({k: v for k, v in header.items() if k != "digest"}).encode()).hexdigest()


def _pack(steps: Steps) -> bytes:
    """Arrays as a compressed npz; the zip entries carry no dates, so that equal arrays are equal bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{f.name: getattr(steps, f.name) for f in dataclasses.fields(steps)})
    return buffer.getvalue()


def _unpack(content: bytes) -> Steps:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        steps = Steps(**{field.name: arrays[field.name] for field in dataclasses.fields(Steps)})
    if len({len(getattr(steps, field.name)) for field in dataclasses.fields(Steps)}) != 1:
        raise ValueError("arrays of different lengths")
    return steps
