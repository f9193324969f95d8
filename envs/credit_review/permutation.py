"""A pseudo-random order of N rows that needs no memory: row = permuted(position, N, key).

Source: Black & Rogaway (2002), "Ciphers with arbitrary finite domains", generalized Feistel cipher with cycle walking.
Differs: rounds mix 32-bit integers instead of calling a block cipher; the order must look random, not resist an attack.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

Array = jax.Array

ROUNDS = 8
MAX_SIZE = 2**30
KEY_SHAPE = (ROUNDS,)
WORD = 2**32 - 1
EPOCH_FACTOR, FIRST_FACTOR, SECOND_FACTOR = 0x9E3779B9, 0x85EBCA6B, 0xC2B2AE35


def order_key(key: Array) -> Array:
    """Key of an order: KEY_SHAPE u32; `key` is consumed."""
    return jax.random.bits(key, KEY_SHAPE, jnp.uint32)


def permuted(position: Array, size: int, key: Array, epoch: Array) -> Array:
    """Row at a position of the order.

    Position p is written as p = left * n_right + right, and each round adds a hash of one part to the other, modulo its
    range: a bijection of [0, n_left * n_right). Results outside [0, size) are permuted again until they fall inside,
    which keeps the bijection; at most about one position in sqrt(size) needs it.

    Args:
        position: [] i32 in [0, size).
        size: number of rows, in [1, MAX_SIZE].
        key: KEY_SHAPE u32 of `order_key`.
        epoch: [] i32; each epoch has an order of its own.

    Returns:
        [] i32 in [0, size); different positions give different rows.
    """
    n_left, n_right = _parts(size)
    round_keys = _mixed(key + epoch.astype(jnp.uint32) * jnp.uint32(EPOCH_FACTOR))

    def once(row: Array) -> Array:
        left, right = row // jnp.uint32(n_right), row % jnp.uint32(n_right)
        for number in range(0, ROUNDS, 2):
            left = (left + _mixed(right ^ round_keys[number]) % jnp.uint32(n_left)) % jnp.uint32(n_left)
            right = (right + _mixed(left ^ round_keys[number + 1]) % jnp.uint32(n_right)) % jnp.uint32(n_right)
        return jnp.add(left * jnp.uint32(n_right), right)

    first = once(position.astype(jnp.uint32))
    row: Array = jax.lax.while_loop(lambda row: row >= size, once, first)
    return row.astype(jnp.int32)


def permuted_integer(position: int, size: int, key: Sequence[int], epoch: int) -> int:
    """`permuted` for Python integers, which have to be told where 32 bits end; words of the key may be signed."""
    n_left, n_right = _parts(size)
    round_keys = _round_keys(tuple(key), epoch)
    row = position
    while True:
        left, right = divmod(row, n_right)
        for number in range(0, ROUNDS, 2):
            left = (left + _mixed_integer(right ^ round_keys[number]) % n_left) % n_left
            right = (right + _mixed_integer(left ^ round_keys[number + 1]) % n_right) % n_right
        row = left * n_right + right
        if row < size:
            return row


def _parts(size: int) -> tuple[int, int]:
    """Ranges of the two parts of a position."""
    if not 1 <= size <= MAX_SIZE:
        raise ValueError(f"`size` must lie in [1, {MAX_SIZE}], got {size}.")
    n_left = math.isqrt(size - 1) + 1
    return n_left, -(-size // n_left)


def _mixed(word: Array) -> Array:
    """Hash of 32 bits onto 32 bits: the finaliser of MurmurHash3 (Appleby 2011)."""
    word = (word ^ (word >> 16)) * jnp.uint32(FIRST_FACTOR)
    word = (word ^ (word >> 13)) * jnp.uint32(SECOND_FACTOR)
    return jnp.bitwise_xor(word, word >> 16)


def _mixed_integer(word: int) -> int:
    word = (word ^ (word >> 16)) * FIRST_FACTOR & WORD
    word = (word ^ (word >> 13)) * SECOND_FACTOR & WORD
    return word ^ (word >> 16)


@functools.lru_cache(maxsize=256)
def _round_keys(key: tuple[int, ...], epoch: int) -> tuple[int, ...]:
    """The same in every step of an epoch, and kept for it."""
    return tuple(_mixed_integer(word + epoch * EPOCH_FACTOR & WORD) for word in key)
