"""Memories on disk: a zip of one JSON header and plain arrays, no pickle.

The header carries the schema number of the file and the SHA-256 of every array's bytes, the comment of the zip that of
the header, so that a damaged file is told from a newer one and from one of another memory. The same content gives the
same bytes: members are stored in a fixed order, uncompressed (compressed bytes depend on the library), with a fixed
time.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import DamagedFileError, NewerFileError

SCHEMA = 1
HEADER = "header.json"
TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can hold; the time of saving is no part of a memory

DIGEST_LENGTH = 64  # hexadecimal digits of a SHA-256

# what zipfile raises for bytes that were changed, beside BadZipFile: unknown methods, encryption, lengths
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)

Arrays = Mapping[str, npt.NDArray[Any]]


def write(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Arrays) -> Path:
    """Write a memory. The file appears whole or not at all.

    Args:
        path: file to write; an existing one is replaced.
        header: JSON values that describe the memory.
        arrays: name -> array, no object arrays.

    Returns:
        The file written.

    Raises:
        FileNotFoundError: the folder of the file does not exist.
        IsADirectoryError: the path is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"`path` must name a file, got the folder {target}; add a file name.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it before writing {target.name}.")
    members = {f"{name}.npy": _npy(array) for name, array in sorted(arrays.items())}
    full = {
        "schema": SCHEMA,
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in members.items()},
        "header": dict(header),
    }
    text = json.dumps(full, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
            for name, content in ((HEADER, text.encode()), *members.items()):
                info = zipfile.ZipInfo(name, TIME)
                info.create_system, info.external_attr = 3, 0o644 << 16  # the same on every platform
                archive.writestr(info, content)
            archive.comment = hashlib.sha256(text.encode()).hexdigest().encode()
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    return target


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Read a memory that `write` wrote.

    Returns:
        (header, arrays).

    Raises:
        FileNotFoundError: no such file.
        DamagedFileError: no zip, no header, a missing member, or bytes that are not those that were written.
        NewerFileError: written with a newer schema.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise DamagedFileError(f"{path} is no zip archive or was cut off ({error}); a saved memory is one.") from error
    with archive:
        full = _header(path, archive)
        members = {name: _member(path, archive, name, digest) for name, digest in full["sha256"].items()}
    arrays = {name.removesuffix(".npy"): _array(path, name, content) for name, content in members.items()}
    return full["header"], arrays


def _header(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> dict[str, Any]:
    if HEADER not in archive.namelist():
        raise DamagedFileError(
            f"{path} has no `{HEADER}`; found {sorted(archive.namelist())[:8]}. It is no saved memory."
        )
    damaged = f"the header `{HEADER}` of {path} is damaged"
    try:
        text = archive.read(HEADER)
        full = json.loads(text)
        schema, _, _ = full["schema"], full["sha256"].items(), full["header"].items()
    except (*UNREADABLE, KeyError, TypeError, AttributeError) as error:
        raise DamagedFileError(f"{damaged}: {error}.") from error
    if type(schema) is not int or schema < 1:
        raise DamagedFileError(f"{damaged}: `schema` must be a whole number of at least 1, got {schema!r}.")
    if schema > SCHEMA:  # before the digest, which a newer schema may keep elsewhere
        raise NewerFileError(
            f"{path} follows schema {schema}, this version of habitus reads up to {SCHEMA}; "
            "update habitus, or save the memory with the older version."
        )
    if len(archive.comment) != DIGEST_LENGTH:
        raise DamagedFileError(
            f"{path} is no zip archive or was cut off (its comment, the header's SHA-256, has {len(archive.comment)} "
            f"of {DIGEST_LENGTH} bytes); a saved memory is one."
        )
    if (found := hashlib.sha256(text).hexdigest().encode()) != archive.comment:
        raise DamagedFileError(
            f"{damaged}: its SHA-256 is {found[:12].decode()}..., "
            f"the archive's comment expects {archive.comment[:12].decode('ascii', 'replace')}...."
        )
    return dict(full)


def _member(path: str | os.PathLike[str], archive: zipfile.ZipFile, name: str, digest: str) -> bytes:
    if name not in archive.namelist():
        raise DamagedFileError(f"{path} lacks the member `{name}` that its header lists; the file is damaged.")
    try:
        content = archive.read(name)
    except UNREADABLE as error:
        raise DamagedFileError(f"the member `{name}` of {path} is damaged: {error}.") from error
    if (found := hashlib.sha256(content).hexdigest()) != digest:
        raise DamagedFileError(
            f"the member `{name}` of {path} is damaged: its SHA-256 is {found[:12]}..., "
            f"the header expects {str(digest)[:12]}...."
        )
    return content


def _array(path: str | os.PathLike[str], name: str, content: bytes) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))
    except (ValueError, EOFError, OSError) as error:
        raise DamagedFileError(f"the member `{name}` of {path} is no plain array: {error}.") from error


def _npy(array: npt.NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
    return stream.getvalue()
