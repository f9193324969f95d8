"""Floats as 32-bit words and back: a row that mixes nodes and strengths is one array, hence one read and one write."""

from __future__ import annotations

import jax
import jax.numpy as jnp

Array = jax.Array


def to_words(floats: Array) -> Array:
    """[...] i32: the bits of [...] f32."""
    return jax.lax.bitcast_convert_type(floats, jnp.int32)


def to_floats(words: Array) -> Array:
    """[...] f32: the floats whose bits [...] i32 are."""
    return jax.lax.bitcast_convert_type(words, jnp.float32)
