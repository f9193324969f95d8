"""Where a number lies in the interval that matters: linear within it, one further unit for each open end.

The map is fixed in advance and needs no state, so that an encoder means the same before and after it is saved.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

UNBOUNDED_SCALE = 3.0  # half-width of the interval of a number without bounds, in its own unit
LARGEST = 1e30  # a bound beyond it is none, and so is a number


class Intervals:
    """Intervals of D numbers and the position of a number in them, counted in steps.

    Within [low, high] the position rises linearly from 0 to `n_steps`. Where a number can go on beyond an end, the
    distance d from that end is squeezed into `tail` further steps as tail d / (d + high - low), which is strictly
    monotone; otherwise it stops at the end. A number without bounds has the interval [-scale, scale], one with a single
    bound the interval of width 2 scale from there, one with two bounds the part of [-scale, scale] within them if it
    has a scale of its own, else all of it.

    All arithmetic is in float32, in operations that NumPy and XLA round alike (no product is added to anything unless
    it is exact), so that both find the same whole step.

    Args:
        names: [D] names of the numbers.
        low, high: [D] bounds; infinite where there are none.
        n_steps: steps of each interval.
        tail: steps beyond an open end, a power of two.
        scales: scale of some of the numbers by name, > 0; `UNBOUNDED_SCALE` for the others.

    Raises:
        ValueError: a scale that is not positive and finite, or one that leaves nothing of the bounds.

    Attributes:
        low, high: [D] f32 ends of the intervals.
        below, above: [D] i32 steps beyond either end.
    """

    def __init__(
        self,
        names: Sequence[str],
        low: Sequence[float],
        high: Sequence[float],
        n_steps: int,
        tail: int,
        scales: Mapping[str, float],
    ) -> None:
        ends = [interval(*args, scales.get(args[0])) for args in zip(names, low, high, strict=True)]
        self.names, self.n_steps, self.tail = tuple(names), n_steps, tail
        self.low = np.array([end[0] for end in ends], np.float32)
        self.high = np.array([end[1] for end in ends], np.float32)
        self.span = self.high - self.low
        self._gain = np.float32(n_steps) / self.span
        self.below = np.array([tail if start < end[0] else 0 for end, start in zip(ends, low, strict=True)], np.int32)
        self.above = np.array([tail if stop > end[1] else 0 for end, stop in zip(ends, high, strict=True)], np.int32)
        self.n_positions = n_steps + self.below + self.above
        self._is_open = bool(self.below.any() or self.above.any())
        self._first, self._last = -self.below, n_steps - 1 + self.above

    def steps(self, numbers: Any, xp: Any = np) -> Any:
        """[D] i32: step of each number, 0 at the least; `n_positions` is one past the last.

        Args:
            numbers: [D] f32; what is beyond `LARGEST` counts as that.
            xp: `numpy` or `jax.numpy`.
        """
        numbers = xp.minimum(xp.maximum(numbers, np.float32(-LARGEST)), np.float32(LARGEST))
        inside = xp.minimum(xp.maximum(numbers, self.low), self.high)
        beyond = numbers - inside
        position = (inside - self.low) * self._gain
        if self._is_open:
            squeezed = beyond / (xp.abs(beyond) + self.span)
            position = xp.minimum(position, np.float32(self.n_steps)) + np.float32(self.tail) * squeezed
        step = xp.floor(position).astype(np.int32)
        return xp.minimum(xp.maximum(step, self._first), self._last) + self.below

    def number_at(self, d: int, step: float) -> float:
        """The number at which `step` of number d begins: the inverse of `steps`, -inf and inf at the open ends."""
        low, high, span = float(self.low[d]), float(self.high[d]), float(self.span[d])
        position = step - float(self.below[d])
        if position < 0:
            share = -position / self.tail
            return -math.inf if share >= 1 else low - span * share / (1 - share)
        if position > self.n_steps:
            share = (position - self.n_steps) / self.tail
            return math.inf if share >= 1 else high + span * share / (1 - share)
        return low + span * position / self.n_steps

    def label(self, d: int, start: float, stop: float) -> str:
        """Words for the part of number d from step `start` to step `stop`."""
        name, is_first, is_last = self.names[d], start <= 0, stop >= self.n_positions[d]
        left, right = f"{self.number_at(d, max(start, 0)):.4g}", f"{self.number_at(d, stop):.4g}"
        if is_first and is_last:
            return f"any {name}"
        if is_first:
            return f"{name} < {right}"
        return f"{name} >= {left}" if is_last else f"{left} <= {name} < {right}"


def interval(name: str, low: float, high: float, scale: float | None) -> tuple[float, float]:
    """Ends of the interval of one number, see `Intervals`.

    Raises:
        ValueError: a scale that is not positive and finite, or one that leaves nothing of the bounds.
    """
    if scale is not None and not (isinstance(scale, int | float) and 0 < scale < LARGEST):
        raise ValueError(f"`scales[{name!r}]` must be a finite number > 0, got {scale!r}.")
    has_low, has_high = low > -LARGEST, high < LARGEST
    width = UNBOUNDED_SCALE if scale is None else float(scale)
    if not has_low and not has_high:
        return -width, width
    if not has_high:
        return low, low + 2 * width
    if not has_low:
        return high - 2 * width, high
    if scale is not None:
        if not (low < width and high > -width):
            raise ValueError(
                f"`scales[{name!r}]` must let [-scale, scale] meet the bounds [{low:g}, {high:g}], got {scale:g}."
            )
        low, high = max(low, -width), min(high, width)
    return low, high if high > low else low + 1.0  # a constant is in the first step
