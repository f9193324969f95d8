"""Single observations of a batch: arrays with one more leading axis, in the structure of the space."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from .values import Path, at


def singles(space: gymnasium.Space[Any], observation: Any) -> list[Any] | None:
    """The observations of a batch, or None where `observation` is a single one.

    The first entry of codes or numbers decides: a batch has one axis more there than the space. A batch of a Dict or a
    Tuple is a dict or a tuple of batches.
    """
    path, n_axes = next(_entries(space, ()), ((), 0))
    first = at(observation, path)
    if np.ndim(first) == n_axes:
        return None
    return [_single(space, observation, i) for i in range(len(first))]


def _single(space: gymnasium.Space[Any], observation: Any, i: int) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _single(part, observation[key], i) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_single(part, observation[k], i) for k, part in enumerate(space.spaces))
    return observation[i]


def _entries(space: gymnasium.Space[Any], path: Path) -> Iterator[tuple[Path, int]]:
    """Path of each entry with a shape, and its number of axes."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _entries(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for k, part in enumerate(space.spaces):
            yield from _entries(part, (*path, k))
    elif space.shape is not None:
        yield path, len(space.shape)
