"""The values that an observation space consists of: codes (one of n) and numbers, each with a name.

Nested names are joined by ".", positions in an array or a tuple are called x0, x1, ... (in C order).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

Path = tuple[str | int, ...]
"""Keys that lead from an observation to an entry of it; () is the observation itself."""

MAX_IMAGE_ENTRIES = 512  # entries of a uint8 array; above, it is taken for pixels
# sizes of the three codes of a cell in a symbolic grid: kind of object, colour, state (or direction)
GRID_CODES = (("object", 11), ("colour", 6), ("state", 4))


class Codes(NamedTuple):
    """An entry that holds V codes.

    Attributes:
        path: where it is in an observation.
        names: [V] names.
        positions: [V] i64, which of the raveled values these are.
        sizes: [V] i64, number of codes of each.
        starts: [V] i64, least code of each.
        is_scalar: whether the entry is a single number, of a Discrete space.
    """

    path: Path
    names: tuple[str, ...]
    positions: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    is_scalar: bool


class Numbers(NamedTuple):
    """An entry that holds V numbers.

    Attributes:
        path: where it is in an observation.
        names: [V] names.
        positions: [V] i64, which of the raveled values these are.
        size: number of values in the array.
        low, high: [V] bounds; -inf and inf where there are none.
    """

    path: Path
    names: tuple[str, ...]
    positions: npt.NDArray[np.int64]
    size: int
    low: tuple[float, ...]
    high: tuple[float, ...]


def read_space(space: gymnasium.Space[Any], masked: Sequence[str] = ()) -> list[Codes | Numbers]:
    """Entries of a space without what is masked, in the space's order.

    Args:
        space: Discrete, MultiDiscrete, MultiBinary, Box, or a Dict or Tuple of them, nested at will.
        masked: names of values, or of whole entries, to leave out.

    Raises:
        TypeError: an entry that cannot be encoded, or none at all.
        ValueError: `masked` names nothing that is observed, or two values have the same name.
    """
    known: list[str] = []
    entries = list(_entries(space, "", (), frozenset(masked), known))
    if unknown := [name for name in masked if name not in known]:
        raise ValueError(f"`masked` must name observed fields, got {unknown}; observed are {sorted(known)[:64]}.")
    if not known:
        raise TypeError(f"`observation_space` must have at least one entry, got {space}; nothing is observed.")
    names = [name for entry in entries for name in entry.names]
    if len(set(names)) < len(names):
        raise ValueError(
            f"`observation_space` gives two values one name, got {sorted(names)[:64]}; rename the key with a dot in it."
        )
    return [entry for entry in entries if entry.names]


def at(observation: Any, path: Path) -> Any:
    """The entry of an observation that `path` leads to."""
    for key in path:
        observation = observation[key]
    return observation


def number_of(value: Any) -> float:
    """A number that may be an array of one entry."""
    return float(value.item() if type(value) is np.ndarray else np.ravel(value)[0])


def _entries(
    space: gymnasium.Space[Any], name: str, path: Path, masked: frozenset[str], known: list[str]
) -> Iterator[Codes | Numbers]:
    if name:
        known.append(name)
        if name in masked:
            return
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _entries(part, f"{name}.{key}" if name else str(key), (*path, key), masked, known)
    elif isinstance(space, spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from _entries(part, f"{name}.x{i}" if name else f"x{i}", (*path, i), masked, known)
    elif isinstance(space, spaces.Discrete):
        if not name:
            known.append("state")
        yield _codes(path, [name or "state"], [int(space.n)], [int(space.start)], masked, is_scalar=True)
    elif isinstance(space, spaces.MultiDiscrete):
        names = _positions(name, space.nvec.size, known)
        yield _codes(path, names, space.nvec.ravel(), space.start.ravel(), masked)
    elif isinstance(space, spaces.MultiBinary):
        size = math.prod(space.shape)
        yield _codes(path, _positions(name, size, known), [2] * size, [0] * size, masked)
    elif isinstance(space, spaces.Box):
        yield _box(space, name, path, masked, known)
    else:
        raise TypeError(
            f"`{name or 'observation_space'}` must be Discrete, MultiDiscrete, MultiBinary, Box, or a Dict or Tuple of "
            f"them, got {space}; turn it into codes or numbers in a gymnasium.wrappers.TransformObservation"
            + (f", or leave it out: masked=[{name!r}]." if name else ".")
        )


def _box(space: spaces.Box[Any], name: str, path: Path, masked: frozenset[str], known: list[str]) -> Codes | Numbers:
    size = math.prod(space.shape)
    is_bytes = space.dtype == np.uint8
    if is_bytes and size > MAX_IMAGE_ENTRIES:
        raise TypeError(
            f"`{name or 'observation_space'}` looks like an image of {size} entries, got {space}; at most "
            f"{MAX_IMAGE_ENTRIES} are encoded, for single pixels say little. Shrink it with "
            "gymnasium.wrappers.GrayscaleObservation and ResizeObservation, or name what it shows in a "
            "TransformObservation" + (f", or leave it out: masked=[{name!r}]." if name else ".")
        )
    if is_bytes and len(space.shape) == 3 and space.shape[2] == len(GRID_CODES):
        cells = [(row, column) for row in range(space.shape[0]) for column in range(space.shape[1])]
        prefix = f"{name} " if name else ""
        names = [f"{prefix}({row}, {column}) {code}" for row, column in cells for code, _ in GRID_CODES]
        known.extend(names)
        sizes = [n for _ in cells for _, n in GRID_CODES]
        return _codes(path, names, sizes, [0] * size, masked)
    names = [name] if name and size == 1 else _positions(name, size, known)
    kept = [i for i, one in enumerate(names) if one not in masked]
    low, high = space.low.ravel(), space.high.ravel()
    return Numbers(
        path,
        tuple(names[i] for i in kept),
        np.array(kept, np.int64),
        size,
        tuple(float(low[i]) for i in kept),
        tuple(float(high[i]) for i in kept),
    )


def _codes(
    path: Path,
    names: Sequence[str],
    sizes: Sequence[int] | npt.NDArray[Any],
    starts: Sequence[int] | npt.NDArray[Any],
    masked: frozenset[str],
    *,
    is_scalar: bool = False,
) -> Codes:
    kept = [i for i, name in enumerate(names) if name not in masked]
    n_codes, start = np.asarray(sizes, np.int64)[kept], np.asarray(starts, np.int64)[kept]
    return Codes(path, tuple(names[i] for i in kept), np.array(kept, np.int64), n_codes, start, is_scalar)


def _positions(name: str, size: int, known: list[str]) -> list[str]:
    names = [f"{name}.x{i}" if name else f"x{i}" for i in range(size)]
    known.extend(names)
    return names
