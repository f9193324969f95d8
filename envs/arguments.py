"""Checks of the arguments of a world: every message says the name, what was expected and what came."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

Function = TypeVar("Function", bound=Callable[..., Any])


def whole_number(name: str, value: object, low: int, high: int) -> int:
    """`value` as an int.

    Raises:
        TypeError: if it is not a whole number (a bool is none).
        ValueError: if it does not lie in [low, high].
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be a whole number, got {value!r} of type {type(value).__name__}.")
    if not low <= int(value) <= high:
        raise ValueError(f"`{name}` must lie in [{low}, {high}], got {int(value)}.")
    return int(value)


def real_number(name: str, value: object, low: float, high: float) -> float:
    """`value` as a float.

    Raises:
        TypeError: if it is not a real number (a bool is none).
        ValueError: if it does not lie in [low, high]; NaN never does.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a number, got {value!r} of type {type(value).__name__}.")
    if not low <= float(value) <= high:
        raise ValueError(f"`{name}` must lie in [{low:g}, {high:g}], got {float(value):g}.")
    return float(value)


def switch(name: str, value: object) -> bool:
    """`value` as a bool.

    Raises:
        TypeError: if it is anything but True or False.
    """
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {value!r} of type {type(value).__name__}.")
    return bool(value)


def choice(name: str, value: object, options: Sequence[str]) -> str:
    """`value`, one of `options`.

    Raises:
        TypeError: if it is not a string.
        ValueError: if it is none of the options.
    """
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be one of {tuple(options)}, got {value!r} of type {type(value).__name__}.")
    if value not in options:
        raise ValueError(f"`{name}` must be one of {tuple(options)}, got {value!r}.")
    return value


def function(name: str, value: Function | None) -> Function | None:
    """`value`, which can be called, or None.

    Raises:
        TypeError: if it is neither.
    """
    if value is not None and not callable(value):
        raise TypeError(f"`{name}` must be callable or None, got {value!r} of type {type(value).__name__}.")
    return value


def entries(name: str, values: ArrayLike, low: ArrayLike, high: ArrayLike) -> None:
    """Check every entry of an array.

    Args:
        name: of the array.
        values: any shape.
        low: least value, broadcastable to the shape.
        high: greatest value, broadcastable to the shape.

    Raises:
        ValueError: if an entry does not lie in [low, high]; the message says where.
    """
    array = np.asarray(values)
    wrong = (array < low) | (array > high)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        least, most = (np.broadcast_to(bound, array.shape)[at] for bound in (low, high))
        where = f" at {list(at)}" if at else ""
        raise ValueError(f"`{name}` must lie in [{least}, {most}], got {array[at]}{where}.")
