"""A pseudo-random order of N rows that needs no memory: row = permuted(position, N, key).

Source: Black & Rogaway (2002), "Ciphers with arbitrary finite domains", generalized Feistel cipher with cycle walking.
Differs: rounds mix 32-bit integers instead of calling a block cipher; the order must look random, not resist an attack.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

Array = jax.Array

ROUNDS = 8
MAX_SIZE = 2**30
KEY_SHAPE = (ROUNDS,)


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
    if not 1 <= size <= MAX_SIZE:
        raise ValueError(f"`size` must lie in [1, {MAX_SIZE}], got {size}.")
    n_left = math.isqrt(size - 1) + 1
    n_right = -(-size // n_left)
    round_keys = _mixed(key + epoch.astype(jnp.uint32) * jnp.uint32(0x9E3779B9))

    def once(row: Array) -> Array:
        left, right = row // jnp.uint32(n_right), row % jnp.uint32(n_right)
        for number in range(0, ROUNDS, 2):
            left = (left + _mixed(right ^ round_keys[number]) % jnp.uint32(n_left)) % jnp.uint32(n_left)
            right = (right + _mixed(left ^ round_keys[number + 1]) % jnp.uint32(n_right)) % jnp.uint32(n_right)
        return jnp.add(left * jnp.uint32(n_right), right)

    first = once(position.astype(jnp.uint32))
    row: Array = jax.lax.while_loop(lambda row: row >= size, once, first)
    return row.astype(jnp.int32)


def _mixed(word: Array) -> Array:
    """Hash of 32 bits onto 32 bits: the finaliser of MurmurHash3 (Appleby 2011)."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return jnp.bitwise_xor(word, word >> 16)
