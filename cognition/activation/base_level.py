"""Base-level activation: how recency and frequency of use keep a memory reachable.

    exact      B = ln sum_j t_j^-d                                        Anderson & Schooler 1991; ACT-R `:ol nil`
    recent     the K latest uses exactly, the n - K others as if spread evenly over the time before:
               B = ln(sum_(j <= K) t_j^-d + (n - K) (L^(1-d) - t_K^(1-d)) / ((1 - d) (L - t_K)))
                                                                          Petrov 2006; ACT-R `:ol K`, Soar (K = 10)
    optimised  B = ln(n / (1 - d)) - d ln L                               all as if spread evenly; ACT-R `:ol t`
    Soar       ln(s / (1 + s)) with s = e^B, the logarithm of a probability instead of odds

with t_j the age of use j, t_K of the oldest kept, L of the first, d the decay. `uptake` turns B into the base level C
of a node, in [0, 1].

All take NumPy arrays or numbers, reckon in float64 and check them, or JAX arrays, keep their dtype and can be compiled
and differentiated; in JAX arrays an age that is not above 0 counts as an empty place. Times have one unit, whichever.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

DECAY = 0.5
"""d, no unit; what ACT-R and Soar begin with."""


def actr_base_level(ages: Any, *, decay: Any = DECAY, used: Any = None) -> Any:
    """Exact base level.

    Args:
        ages: [..., K] > 0, time since each use.
        decay: [] or [...] >= 0, d.
        used: [..., K] bool, False in empty places; None = all are used.

    Returns:
        [...], natural-log units; -inf where there is no use.

    Raises:
        ValueError: an age is not above 0 or the decay is below 0.
    """
    xp = _namespace(ages, decay, used)
    ages, used = _ages(xp, ages, used)
    decay = _checked(xp, "decay", decay, lambda d: d >= 0, "at least 0")
    return _log(xp, _recent(xp, ages, used, decay))


def recent_base_level(ages: Any, n_uses: Any, lifetime: Any, *, decay: Any = DECAY, used: Any = None) -> Any:
    """Base level from the latest uses and how many there were in all.

    Args:
        ages: [..., K] > 0, time since each of the latest uses, in any order.
        n_uses: [...] >= 0, all uses, those in `ages` included.
        lifetime: [...] > 0, time since the first use, at least the largest age.
        decay: [] or [...] in [0, 1), d.
        used: [..., K] bool, False in empty places; None = all are used.

    Returns:
        [...], natural-log units; -inf where there is no use. The exact base level where `ages` has all uses.

    Raises:
        ValueError: an argument is outside its range, `lifetime` is below an age, or there are more ages than uses.
    """
    xp = _namespace(ages, n_uses, lifetime, decay, used)
    ages, used = _ages(xp, ages, used)
    decay = _checked(xp, "decay", decay, lambda d: (d >= 0) & (d < 1), "in [0, 1)")
    n_uses = _checked(xp, "n_uses", n_uses, lambda n: n >= 0, "at least 0")
    lifetime = _checked(xp, "lifetime", lifetime, lambda t: t > 0, "above 0")
    n_kept = xp.sum(used, axis=-1)
    oldest = xp.max(xp.where(used, ages, 0.0), axis=-1, initial=0.0)
    if xp is np and np.any(oldest > lifetime):
        raise ValueError(f"`lifetime` must be at least the largest age, {np.max(oldest)}, got {np.min(lifetime)}.")
    if xp is np and np.any(n_uses < n_kept):
        raise ValueError(f"`n_uses` must be at least the number of `ages`, {np.max(n_kept)}, got {np.min(n_uses)}.")
    before = (lifetime - oldest) / lifetime  # share of the life before the oldest use that is kept, in [0, 1]
    inner = xp.where((before > 0) & (before < 1), before, 0.5)
    ratio = -xp.expm1((1.0 - decay) * xp.log1p(-inner)) / (
        (1.0 - decay) * inner
    )  # keeps its digits where inner is small
    ratio = xp.where(before <= 0, 1.0, xp.where(before < 1, ratio, 1.0 / (1.0 - decay)))
    mean = lifetime**-decay * ratio
    others = xp.maximum(n_uses - n_kept, 0.0) * mean
    return _log(xp, _recent(xp, ages, used, decay) + others)


def optimised_base_level(n_uses: Any, lifetime: Any, *, decay: Any = DECAY) -> Any:
    """Base level as if all uses were spread evenly over the life of a memory.

    Args:
        n_uses: [...] >= 0.
        lifetime: [...] > 0, time since the first use.
        decay: [] or [...] in [0, 1), d.

    Returns:
        [...], natural-log units; -inf where there is no use.

    Raises:
        ValueError: an argument is outside its range.
    """
    xp = _namespace(n_uses, lifetime, decay)
    decay = _checked(xp, "decay", decay, lambda d: (d >= 0) & (d < 1), "in [0, 1)")
    n_uses = _checked(xp, "n_uses", n_uses, lambda n: n >= 0, "at least 0")
    lifetime = _checked(xp, "lifetime", lifetime, lambda t: t > 0, "above 0")
    return _log(xp, n_uses / (1.0 - decay) * lifetime**-decay)


def soar_base_level(level: Any) -> Any:
    """Base level as Soar's semantic memory shows it, ln(s / (1 + s)).

    Args:
        level: [...] of any of the functions above, B = ln s.

    Returns:
        [...] <= 0; -inf where there is no use.
    """
    xp = _namespace(level)
    level = xp.asarray(level, float) if xp is np else level
    return -xp.logaddexp(0.0, -level)


def uptake(level: Any) -> Any:
    """Base level C of a node in [0, 1], 1 / (1 + e^-B): the probability of which B are the log odds.

    Args:
        level: [...] of any of the functions above; -inf gives 0.
    """
    xp = _namespace(level)
    return xp.exp(soar_base_level(level))


def _namespace(*arrays: Any) -> Any:
    return jnp if any(isinstance(array, jax.Array) for array in arrays) else np


def _ages(xp: Any, ages: Any, used: Any) -> tuple[Any, Any]:
    """Ages and which of them count; ages that do not are 1, so that no power of theirs is infinite."""
    ages = xp.asarray(ages) if xp is jnp else np.asarray(ages, np.float64)
    if ages.ndim == 0:
        raise ValueError("`ages` must have an axis for the uses, got a number.")
    used = xp.ones(ages.shape, bool) if used is None else xp.asarray(used)
    if used.shape != ages.shape or used.dtype != bool:
        raise ValueError(f"`used` must be true or false for each age, {ages.shape}, got {used.dtype} {used.shape}.")
    if xp is np and (wrong := ages[used & ~(ages > 0)]).size:
        raise ValueError(f"`ages` must be above 0, got {wrong[0]}; a use of this moment has no age yet.")
    used = used & (ages > 0)
    return xp.where(used, ages, 1.0), used


def _recent(xp: Any, ages: Any, used: Any, decay: Any) -> Any:
    return xp.sum(xp.where(used, ages ** -xp.expand_dims(xp.asarray(decay), -1), 0.0), axis=-1)


def _log(xp: Any, total: Any) -> Any:
    ever = total > 0
    return xp.where(ever, xp.log(xp.where(ever, total, 1.0)), -xp.inf)[()]


def _checked(xp: Any, name: str, value: Any, is_right: Any, wanted: str) -> Any:
    if xp is jnp:
        return jnp.asarray(value, jnp.result_type(value, jnp.float32))
    array = np.asarray(value, np.float64)
    wrong = array[~is_right(array)]
    if wrong.size:
        raise ValueError(f"`{name}` must be {wanted}, got {wrong.flat[0]}.")
    return array
