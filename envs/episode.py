"""How an episode spends its keys: the one order of draws that the scalar, the vector and the compiled rollout share.

An episode begins with the key data that `key_data_of` takes from a seeded generator. Every call splits the key in
three: one for the next call, one for the dynamics, one for the observation. For one seed all ways to run a world
therefore show the same bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from . import draws, threefry
from .arithmetic import ARRAYS
from .contract import IntegerWorld, Outcome, World

Array = jax.Array

KEY_WORDS = 2


class Episode(NamedTuple):
    """A running episode."""

    key: Array  # [] key, of the next call
    state: Any


def key_data_of(generator: np.random.Generator) -> NDArray[np.uint32]:
    """[KEY_WORDS] u32: key data of the next episode of a generator."""
    return generator.integers(2**32, size=KEY_WORDS, dtype=np.uint32)


def key_of(key_data: Array) -> Array:
    """[] key of [KEY_WORDS] u32 key data, of one generator whatever JAX is set to: a seed is one episode."""
    key: Array = jax.random.wrap_key_data(key_data, impl=threefry.GENERATOR)
    return key


def keys(key: Array) -> tuple[Array, Array, Array]:
    """Keys of the next call, of the dynamics and of the observation of this one; `key` is consumed."""
    next_key, dynamics_key, observe_key = threefry.split(key, 3)
    return next_key, dynamics_key, observe_key


def start(world: World, key: Array, params: Any) -> tuple[Episode, dict[str, Array]]:
    """The first observation of the episode of a key; `key` is consumed."""
    next_key, initial_key, observe_key = keys(key)
    state = world.initial(initial_key, params)
    return Episode(next_key, state), world.observe(state, observe_key, params)


class Draw(NamedTuple):
    """What a call of an integer world draws."""

    next_key: Array  # [] key, of the next call
    step: Array  # [n_step_halves] u32, see `draws.halves`
    observe: Array  # [n_observe_halves] u32


def draw(world: IntegerWorld, key: Array) -> Draw:
    """Everything that a call draws; `key` is consumed.

    A block of Threefry gives two words, of which `draws.halves` keeps one: a step would spend twice the blocks. So the
    next key is the first block, and every other is four halves; a world that `draws_apart` keeps the three keys of
    `keys`.
    """
    next_key, step_halves, observe_halves = _each_half(world, key)
    return Draw(next_key, _stacked(step_halves), _stacked(observe_halves))


def _each_half(world: IntegerWorld, key: Array) -> tuple[Array, list[Array], list[Array]]:
    """`draw`, with [] u32 for each half: compiled code handles many small parts better than an array of few."""
    n_step, n_observe = world.n_step_halves, world.n_observe_halves
    if world.draws_apart:
        next_key, step_key, observe_key = keys(key)
        return next_key, draws.each_half(step_key, n_step), draws.each_half(observe_key, n_observe)
    n = n_step + n_observe
    first, *others = threefry.split_data(key, 1 - (-n // 4))
    halves = draws.halves_of([word for block in others for word in block])
    return key_of(jnp.stack(first)), halves[:n_step], halves[n_step:n]


def _stacked(halves: list[Array]) -> Array:
    return jnp.stack(halves) if halves else jnp.zeros(0, jnp.uint32)


def step(world: World, episode: Episode, action: Array, params: Any) -> tuple[Episode, Outcome, dict[str, Array]]:
    """One decision: the episode after it, what it brought, and the next observation; `episode` is consumed."""
    if isinstance(world, IntegerWorld):
        next_key, step_halves, observe_halves = _each_half(world, episode.key)
        state, outcome = world.advance(episode.state, action, _signed(step_halves), params, ARRAYS)
        shown = world.show(state, _signed(observe_halves), params, ARRAYS)
        for field in world.schema.fields:
            if not field.is_category:
                shown[field.name] = jnp.ravel(shown[field.name])  # [1], as `observe` has it
        return Episode(next_key, state), outcome, shown
    next_key, step_key, observe_key = keys(episode.key)
    state, outcome = world.step(episode.state, action, step_key, params)
    return Episode(next_key, state), outcome, world.observe(state, observe_key, params)


def _signed(halves: list[Array]) -> list[Array]:
    return [half.astype(jnp.int32) for half in halves]
