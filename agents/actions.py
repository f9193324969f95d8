"""Actions by number: what an agent chooses, and what an environment takes.

An agent chooses one of n numbers. A MultiDiscrete space has one number per combination of its entries, the last entry
changing fastest (C order); learners see numbers only, environments only what their space holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

MAX_ACTIONS = 4096
"""Combinations of a MultiDiscrete space; each has edges of its own, and none says anything about another."""


class Actions:
    """The numbers of an action space.

    Args:
        space: Discrete that starts at 0, or MultiDiscrete of one axis.

    Attributes:
        space: the space.
        n: how many actions there are.

    Raises:
        TypeError: another space.
        ValueError: a MultiDiscrete with more than MAX_ACTIONS combinations.
    """

    def __init__(self, space: gymnasium.Space[Any]) -> None:
        self.space: gymnasium.spaces.Discrete | gymnasium.spaces.MultiDiscrete
        if isinstance(space, gymnasium.spaces.Discrete) and space.start == 0:
            self.space, self.n, self._sizes = space, int(space.n), None
            return
        if not isinstance(space, gymnasium.spaces.MultiDiscrete) or space.nvec.ndim != 1:
            raise TypeError(
                f"`env.action_space` must be Discrete and start at 0, or MultiDiscrete of one axis, got {space}; "
                "wrap the environment so that each choice has one number."
            )
        self._sizes = tuple(int(n) for n in space.nvec)
        self.space, self.n = space, math.prod(self._sizes)
        if self.n > MAX_ACTIONS:
            raise ValueError(
                f"`env.action_space` must have at most {MAX_ACTIONS} combinations, got {self.n} of {space}; wrap the "
                "environment so that it offers the sensible ones only."
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """[n] a word for each, as the space writes it: "3", or "1, 0" for a combination."""
        if not isinstance(self.space, gymnasium.spaces.MultiDiscrete) or self._sizes is None:
            return tuple(str(number) for number in range(self.n))
        entries = [range(start, start + n) for start, n in zip(self.space.start.tolist(), self._sizes, strict=True)]
        return tuple(", ".join(map(str, combination)) for combination in itertools.product(*entries))

    def of_env(self, number: int) -> Any:
        """What `env.step` takes: the number itself, or [entries] of a MultiDiscrete space's type."""
        if not isinstance(self.space, gymnasium.spaces.MultiDiscrete) or self._sizes is None:
            return number
        entries = np.array(np.unravel_index(number, self._sizes), self.space.dtype)
        return entries + self.space.start

    def predicted(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """What `predict` returns for numbers ([] or [B] i64): the same, or [entries] or [B, entries] i64."""
        if not isinstance(self.space, gymnasium.spaces.MultiDiscrete) or self._sizes is None:
            return numbers
        return np.stack(np.unravel_index(numbers, self._sizes), axis=-1).astype(np.int64) + self.space.start


def column_labels(columns: Sequence[int], factors: Sequence[float], labels: Sequence[str]) -> list[str]:
    """[C] the action that each column of edges belongs to; those that only share it, by a factor, are left out."""
    owners = {column: label for column, factor, label in zip(columns, factors, labels, strict=True) if factor == 1.0}
    return [owners[column] for column in range(len(owners))]
