"""Random decisions in integers: words against thresholds, so that jit, vmap and x64 agree bit for bit.

One step draws all its words at once and splits them into halves of 16 bits; each decision takes one half.
"""

from __future__ import annotations

import statistics

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from . import threefry

Array = jax.Array

HALF_BITS = 16
HALF_ONE = 1 << HALF_BITS
CHANCE_BITS = 15  # a probability times a reward in 1/10000 must stay inside int32
CHANCE_ONE = 1 << CHANCE_BITS
"""Certainty, in the unit of `log_odds_chance`."""

NORMAL_BITS = 12
MILLI = 1000  # unit of log odds and of normal deviates: 1/1000
LOG_ODDS_STEP_BITS = 2  # the table has one entry per 4/1000 log odds
LOG_ODDS_LIMIT = 8192  # in 1/1000; beyond it a chance is below 3e-4 and stays there


def _normal_table() -> NDArray[np.int32]:
    size = 1 << NORMAL_BITS
    inverse = statistics.NormalDist().inv_cdf
    return np.array([round(MILLI * inverse((i + 0.5) / size)) for i in range(size)], np.int32)


def _sigmoid_table() -> NDArray[np.int32]:
    step = 1 << LOG_ODDS_STEP_BITS
    middles = (np.arange(-LOG_ODDS_LIMIT, LOG_ODDS_LIMIT, step) + (step - 1) / 2) / MILLI
    return np.round(CHANCE_ONE / (1 + np.exp(-middles))).astype(np.int32)


NORMAL_TABLE = _normal_table()
SIGMOID_TABLE = _sigmoid_table()


def halves(key: Array, shape: tuple[int, ...]) -> Array:
    """Words of 16 random bits.

    Args:
        key: consumed.
        shape: of the result; the last size must be even.

    Returns:
        u32, each in [0, 65536).
    """
    if len(shape) == 1 and shape[0] > 0:
        return jnp.stack(each_half(key, shape[0]))
    words = jax.random.bits(key, (*shape[:-1], shape[-1] // 2), jnp.uint32)
    return jnp.concatenate([words >> HALF_BITS, words & (HALF_ONE - 1)], axis=-1)


def each_half(key: Array, n: int) -> list[Array]:
    """The n entries of `halves(key, (n,))`, [] u32 each; `key` is consumed."""
    return halves_of(threefry.words(key, n // 2))


def halves_of(words: list[Array]) -> list[Array]:
    """The high halves of u32 words, then the low ones."""
    return [word >> HALF_BITS for word in words] + [word & (HALF_ONE - 1) for word in words]


def threshold(probability: float) -> int:
    """Threshold of `happens` for a probability in [0, 1]."""
    return round(probability * HALF_ONE)


def happens(half: Array, threshold: Array | int) -> Array:
    """Bool: true with probability threshold / 65536."""
    return jnp.less(half, jnp.uint32(threshold))


def below(half: Array, n: Array | int) -> Array:
    """i32, uniform over [0, n) to within n / 65536 of each chance; n <= 65536."""
    return jnp.right_shift(half * jnp.uint32(n), HALF_BITS).astype(jnp.int32)


def normal(half: Array) -> Array:
    """i32: a standard normal deviate in 1/1000, one of 4096 equally likely values."""
    return jnp.asarray(NORMAL_TABLE)[half >> (HALF_BITS - NORMAL_BITS)]


def log_odds_chance(log_odds: Array) -> Array:
    """i32 in [0, CHANCE_ONE]: the probability that belongs to `log_odds` (i32, in 1/1000)."""
    entry = (log_odds + LOG_ODDS_LIMIT) >> LOG_ODDS_STEP_BITS
    return jnp.asarray(SIGMOID_TABLE)[jnp.clip(entry, 0, len(SIGMOID_TABLE) - 1)]


def happens_by_chance(half: Array, chance: Array) -> Array:
    """Bool: true with probability chance / CHANCE_ONE."""
    return (half >> (HALF_BITS - CHANCE_BITS)).astype(jnp.int32) < chance
