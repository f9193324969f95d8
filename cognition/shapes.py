"""Static check of array shapes; it raises while tracing and costs nothing afterwards."""

from __future__ import annotations

import jax
import numpy as np


def check_shape(name: str, array: jax.Array | np.ndarray, *expected: int) -> None:
    """Raise unless `array` has exactly the `expected` shape.

    Raises:
        ValueError: with the name, what was expected and what was given.
    """
    if tuple(np.shape(array)) != expected:
        raise ValueError(f"`{name}` must have shape {expected}, got {tuple(np.shape(array))}.")
