"""Random decisions in integers: words against thresholds, so that jit, vmap and x64 agree bit for bit.

One step draws all its words at once and splits them into halves of 16 bits; each decision takes one half.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry2x32_p
from numpy.typing import NDArray

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


@functools.cache
def _words(n: int) -> Callable[[Array], Array]:
    """`jax.random.bits(key, (n,))`; for many keys computed word by word, which is several times as fast.

    A vmapped `bits` computes [keys, n] with the few words of a key side by side, too few for the vector units of a
    processor. Here the keys are side by side.
    """

    @jax.custom_batching.custom_vmap
    def words(key: Array) -> Array:
        return jax.random.bits(key, (n,), jnp.uint32)

    @words.def_vmap
    def _(axis_size: int, in_batched: list[bool], keys: Array) -> tuple[Array, bool]:
        data, shape = jax.random.key_data(keys), (n, axis_size)
        is_threefry = data.shape[-1] == 2 and jax.config.jax_threefry_partitionable  # type: ignore[attr-defined]
        if n == 0 or not is_threefry:  # the words below would be others than those of a single key
            return jax.vmap(lambda key: jax.random.bits(key, (n,), jnp.uint32))(keys), True
        count = jax.lax.broadcasted_iota(jnp.uint32, shape, 0)
        first, second = (jnp.broadcast_to(data[:, i], shape) for i in range(2))
        one, other = threefry2x32_p.bind(first, second, jnp.zeros(shape, jnp.uint32), count)  # type: ignore[no-untyped-call]
        return (one ^ other).T, True

    return words


def halves(key: Array, shape: tuple[int, ...]) -> Array:
    """Words of 16 random bits.

    Args:
        key: consumed.
        shape: of the result; the last size must be even.

    Returns:
        u32, each in [0, 65536).
    """
    n_words = shape[-1] // 2
    words = _words(n_words)(key) if len(shape) == 1 else jax.random.bits(key, (*shape[:-1], n_words), jnp.uint32)
    return jnp.concatenate([words >> HALF_BITS, words & (HALF_ONE - 1)], axis=-1)


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
