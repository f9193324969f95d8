"""When the rules of a world change: a schedule of regime levels over the steps of an episode.

A level counts tenths of the way from the first set of rules (0) to the second (10); a world interpolates its tables by
it in integers. Sudden shift, return of the old rules, slow drift and any listed schedule are thus one mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import arguments

Array = jax.Array

LEVELS = 10
"""Level of the second set of rules."""
NAMED_LEVELS = {"base": 0, "regulation": LEVELS}
REGIMES = ("none", "shift", "regulation", "periodic", "drift")

MAX_STEP = 2**30  # above every horizon, and far from the end of int32
PARTS = 5  # "periodic" and "drift" divide an episode into fifths unless `shift_at` says otherwise
MIN_ENTRIES = 16  # schedules are padded to a power of two, so that most worlds share one compiled step

RegimeArgument = str | Sequence[Sequence[int | float | str]]


class Schedule(NamedTuple):
    """K entries: from `steps[k]` on the level is `levels[k]`, until the next entry."""

    steps: NDArray[np.int32]  # [K], ascending, starts with 0; padded with MAX_STEP
    levels: NDArray[np.int32]  # [K], 0 to LEVELS


def schedule(regime: RegimeArgument, horizon: int, shift_at: int | None = None) -> Schedule:
    """Schedule of an episode of `horizon` steps.

    Args:
        regime: "none" = the first rules throughout; "shift" (or "regulation") = the second rules from `shift_at` on, by
            default half of the horizon; "periodic" = first and second rules in turn, `shift_at` steps each, by default
            a fifth of the horizon; "drift" = from `shift_at` on, by default a fifth of the horizon, ten equal rises
            over three quarters of the remaining steps; or a list of (step, level), level a multiple of .1 in [0, 1] or
            "base" or "regulation", with the first rules before the first entry.
        horizon: steps in the episode, at least 1.
        shift_at: step of the first change, counted from 0: the decision of this index is the first under new rules.

    Raises:
        TypeError, ValueError: with the name of the argument, what was expected and what came.
    """
    if not isinstance(regime, str):
        if shift_at is not None:
            raise ValueError(
                f"`shift_at` must be None when `regime` is a list, got {shift_at!r}; the list has the steps."
            )
        return _padded(_listed(regime))
    arguments.choice("regime", regime, REGIMES)
    horizon = arguments.whole_number("horizon", horizon, 1, MAX_STEP)  # a NumPy number of few bits would overflow below
    if regime == "none":
        if shift_at is not None:
            raise ValueError(f"`shift_at` must be None when `regime` is 'none', got {shift_at!r}; try regime='shift'.")
        return _padded([(0, 0)])
    part = horizon // (2 if regime in ("shift", "regulation") else PARTS)
    first = 1 if regime == "periodic" else 0
    start = max(first, part) if shift_at is None else arguments.whole_number("shift_at", shift_at, first, horizon - 1)
    if regime == "periodic":
        return _padded([(step, LEVELS * (turn % 2)) for turn, step in enumerate(range(0, horizon, start))])
    if regime == "drift":
        ramp = (horizon - start) * 3 // 4
        return _padded([(0, 0)] + [(start + ramp * level // LEVELS, level) for level in range(1, LEVELS + 1)])
    return _padded([(0, 0), (start, LEVELS)])


def check(steps: ArrayLike, levels: ArrayLike) -> None:
    """Check that the schedule of params can be looked up.

    Args:
        steps: [..., K], `params.regime_steps`.
        levels: [..., K], `params.regime_levels`.

    Raises:
        ValueError: a step or a level is out of range, the steps do not start with 0 or descend.
    """
    arguments.entries("params.regime_steps", steps, 0, MAX_STEP)
    arguments.entries("params.regime_levels", levels, 0, LEVELS)
    rows = np.asarray(steps)
    if rows[..., 0].any():
        raise ValueError(f"`params.regime_steps` must start with 0, got {rows[..., 0].max()}.")
    descends = np.argwhere(np.diff(rows, axis=-1) < 0)
    if len(descends):
        at = tuple(descends[0].tolist())
        after = (*at[:-1], at[-1] + 1)
        raise ValueError(f"`params.regime_steps` must ascend, got {rows[after]} after {rows[at]} at {list(after)}.")


def level_at(steps: Array, levels: Array, step: Array) -> Array:
    """Level in force at `step`.

    Args:
        steps: [K] i32, ascending, starts with 0.
        levels: [K] i32.
        step: [] i32 >= 0.

    Returns:
        [] i32: the level of the last entry whose step is not after `step`.
    """
    entry = jnp.sum(steps <= step, dtype=jnp.int32) - 1
    return levels[entry]


def interpolated(base: Array, other: Array, level: Array) -> Array:
    """Integer on the way from `base` to `other`: exact at both ends, between them rounded towards `base`.

    Args:
        base: i32.
        other: i32 of the same shape, |other - base| * LEVELS < 2^31.
        level: [] i32 in [0, LEVELS].
    """
    return base + jax.lax.div((other - base) * level, jnp.int32(LEVELS))  # `//` would cost three operations more


def fraction(level: Array) -> Array:
    """[] f32 in [0, 1]: the level as `info["regime"]` shows it."""
    return jnp.divide(level.astype(jnp.float32), jnp.float32(LEVELS))


def _listed(entries: Sequence[Sequence[int | float | str]]) -> list[tuple[int, int]]:
    if not isinstance(entries, Sequence) or not entries:
        raise TypeError(f"`regime` must be one of {REGIMES} or a list of (step, level), got {entries!r}.")
    found: list[tuple[int, int]] = []
    for number, entry in enumerate(entries):
        name = f"regime[{number}]"
        if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 2:
            raise TypeError(f"`{name}` must be a pair (step, level), got {entry!r}.")
        step = arguments.whole_number(f"{name} step", entry[0], 0, MAX_STEP - 1)
        if found and step <= found[-1][0]:
            raise ValueError(f"`{name} step` must be greater than the one before, {found[-1][0]}, got {step}.")
        found.append((step, _level(f"{name} level", entry[1])))
    return found if found[0][0] == 0 else [(0, 0), *found]


def _level(name: str, value: object) -> int:
    if isinstance(value, str):
        return NAMED_LEVELS[arguments.choice(name, value, tuple(NAMED_LEVELS))]
    tenths = arguments.real_number(name, value, 0.0, 1.0) * LEVELS
    if abs(tenths - round(tenths)) > 1e-6:
        raise ValueError(f"`{name}` must be a multiple of 0.1, got {value!r}; rules are mixed in tenths.")
    return round(tenths)


def _padded(entries: list[tuple[int, int]]) -> Schedule:
    size = max(MIN_ENTRIES, 1 << (len(entries) - 1).bit_length())
    steps = np.full(size, MAX_STEP, np.int32)
    levels = np.full(size, entries[-1][1], np.int32)
    steps[: len(entries)], levels[: len(entries)] = np.array(entries, np.int32).T
    return Schedule(steps, levels)
