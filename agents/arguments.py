"""Checks of the arguments of an agent: every message says the name, what was expected and what came."""

from __future__ import annotations

import numbers
from collections.abc import Collection
from typing import Any


def whole_number(name: str, value: Any, least: int) -> int:
    """`value` as an int; whole numbers of other libraries are taken.

    Raises:
        TypeError: it is not a whole number (a bool and None are none).
        ValueError: it is less than `least`.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}, got {value}.")
    return int(value)


def switches(**values: Any) -> None:
    """Refuse what is neither True nor False.

    Raises:
        TypeError: one of them is not a bool.
    """
    for name, value in values.items():
        if not isinstance(value, bool):
            raise TypeError(f"`{name}` must be True or False, got {value!r}.")


def names(name: str, value: Any) -> list[str]:
    """`value` as a list of names.

    Raises:
        TypeError: it is a string, or no collection of strings.
    """
    if isinstance(value, str):
        raise TypeError(f"`{name}` must be a sequence of names, got the string {value!r}; write [{value!r}].")
    if not isinstance(value, Collection) or not all(isinstance(one, str) for one in value):
        raise TypeError(f"`{name}` must be a sequence of names, got {value!r}.")
    return list(value)
