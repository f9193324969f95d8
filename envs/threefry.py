"""The blocks of Threefry behind `jax.random`, bit for bit, written out so that a step draws them side by side.

Source: Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3": Threefry-2x32, 20 rounds.
Laid out as JAX does under `jax_threefry_partitionable`, its default: word i of a key is the xor of both halves of the
block of counter i, and key i of a split is that block.

Differs: on a processor JAX runs the rounds as a loop, whose turns go through memory, and under `vmap` with the words of
a key side by side, which are few. Here they are one chain of operations, with the keys side by side. Words of other
generators and layouts, and many words of one key, are left to JAX.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

Array = jax.Array
Parts = tuple[tuple[Array, ...], ...]
"""Of every block the same word or words: for each of these n arrays, [] u32 each."""

GENERATOR = "threefry2x32"
MOST = 32  # blocks of a key that are written out; each is a hundred operations for the compiler
FEW = 3  # blocks that cost less if they are computed anew wherever they are used than a loop does
N_TURNS = 2  # of that loop; the compiler drops a loop of one

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
N_INJECTIONS = 5  # of the key, each after four rounds
WORD_BITS = 32


def words(key: Array, n: int) -> list[Array]:
    """The n entries of `jax.random.bits(key, (n,))`, [] u32 each; `key` is consumed."""
    if not _serves(key, n):
        return list(jax.random.bits(key, (n,), jnp.uint32))
    return list(_parts(n, True)(*_consumed(key))[0])


def split(key: Array, n: int) -> list[Array]:
    """The n keys of `jax.random.split(key, n)`, [] each; `key` is consumed."""
    if not _serves(key, n):
        return list(jax.random.split(key, n))
    return [jax.random.wrap_key_data(jnp.stack(block), impl=GENERATOR) for block in split_data(key, n)]


def split_data(key: Array, n: int) -> list[tuple[Array, ...]]:
    """The key data of `split(key, n)`, [] u32 each; `key` is consumed."""
    if not _serves(key, n):
        return [tuple(data) for data in jax.random.key_data(jax.random.split(key, n))]
    return list(zip(*_parts(n, False)(*_consumed(key)), strict=True))


def _consumed(key: Array) -> Array:
    """[2] u32: the data of a key that is used up."""
    jax.random.bits(key, (0,), jnp.uint32)  # no words, but `jax_debug_key_reuse` learns of it
    return jax.random.key_data(key)


def _serves(key: Array, n: int) -> bool:
    """Whether `jax.random` takes its words from the first `n` blocks of a [] key, and whether these are few enough."""
    is_partitionable: bool = jax.config.jax_threefry_partitionable  # type: ignore[attr-defined]
    is_key = jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.ndim == 0
    return n <= MOST and is_partitionable and is_key and bool(jax.random.key_impl(key) == GENERATOR)


@functools.cache
def _parts(n: int, is_mixed: bool) -> Callable[[Array, Array], Parts]:
    """Function of the words of a key: both halves of its first n blocks, or only their xor."""

    def of(first: Array, second: Array, counter: Array) -> tuple[Array, ...]:
        one, other = _block(first, second, counter)
        return (one ^ other,) if is_mixed else (one, other)

    def of_one(first: Array, second: Array) -> Parts:
        each = [of(first, second, jnp.uint32(counter)) for counter in range(n)]
        return tuple(tuple(part) for part in zip(*each, strict=True)) if each else ((),) * (1 if is_mixed else 2)

    if n <= FEW:
        return of_one
    of_key = jax.custom_batching.custom_vmap(of_one)

    @of_key.def_vmap
    def _(
        n_keys: int, is_batched: list[bool], first: Array, second: Array
    ) -> tuple[Parts, tuple[tuple[bool, ...], ...]]:
        # The compiler fuses across everything but loops: without one, each of the dozens of fused kernels in which a
        # step ends would compute anew the blocks that it reads.
        shape = (-(-n // N_TURNS), n_keys)
        first, second = jnp.broadcast_to(first, shape), jnp.broadcast_to(second, shape)

        def turn(start: Array, _: None) -> tuple[Array, tuple[Array, ...]]:
            counter = start + jax.lax.broadcasted_iota(jnp.uint32, shape, 0)
            return start + jnp.uint32(shape[0]), of(first, second, counter)

        _, found = jax.lax.scan(turn, jnp.uint32(0), length=N_TURNS)
        parts = tuple(tuple(part[divmod(i, shape[0])] for i in range(n)) for part in found)
        return parts, ((True,) * n,) * len(parts)

    return of_key


@jax.jit  # traced once, and inlined wherever it is used
def _block(first: Array, second: Array, counter: Array) -> tuple[Array, Array]:
    """Both halves of blocks; everything is u32 of one shape."""
    schedule = (first, second, first ^ second ^ jnp.uint32(PARITY))
    left, right = first, second + counter
    for injection in range(N_INJECTIONS):
        for rotation in ROTATIONS[injection % 2]:
            left = left + right
            right = left ^ ((right << jnp.uint32(rotation)) | (right >> jnp.uint32(WORD_BITS - rotation)))
        left = left + schedule[(injection + 1) % 3]
        right = right + (schedule[(injection + 2) % 3] + jnp.uint32(injection + 1))
    return left, right
