"""The seeds of a study: how they are written, and how far they go."""

from __future__ import annotations

from typing import Any, TypeGuard

from . import study_file
from .errors import StudyError

MAX_SEED = 2**31 - 1
MAX_SEEDS = 100_000  # of one world; more are a slip of the hand, and would fill the memory before the first run


def expand(value: Any) -> Any:
    """Seeds may be written as {start, count} or as a list."""
    if isinstance(value, dict):
        unknown = sorted(set(value) - {"start", "count"})
        if unknown:
            hint = study_file.nearest(str(unknown[0]), ("start", "count"))
            raise ValueError(f"unknown key `{unknown[0]}`, expected start and count{hint}")
        start, count = value.get("start", 0), value.get("count")
        if not (_is_int(start) and _is_int(count) and start >= 0 and count >= 1):
            raise ValueError(f"expected whole numbers, start >= 0 and count >= 1, got {value}.")
        if count > MAX_SEEDS:
            raise ValueError(f"expected a count of at most {MAX_SEEDS}, got {count}.")
        if start + count - 1 > MAX_SEED:
            raise ValueError(f"expected seeds up to {MAX_SEED}, got {value}, whose last is {start + count - 1}.")
        return tuple(range(start, start + count))
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(f"expected {{start: 0, count: 10}} or a list of seeds, got {value!r}.")
    for seed in value:
        if not _is_int(seed) or not 0 <= seed <= MAX_SEED:
            raise ValueError(f"expected whole numbers from 0 to {MAX_SEED}, got {seed!r}.")
    if len(set(value)) < len(value):
        raise ValueError("a seed stands twice in the list; every seed counts once.")
    return tuple(value)


def counted(seeds: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The first `count` seeds, going on after the largest where there are fewer."""
    last = max(seeds) + max(0, count - len(seeds))
    if last > MAX_SEED:
        raise StudyError(f"`--seeds`: expected seeds up to {MAX_SEED}, but {count} of them go up to {last}.")
    return (*seeds[:count], *range(max(seeds) + 1, last + 1))


def _is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
