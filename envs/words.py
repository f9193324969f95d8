"""What crosses the border of a compiled call: the parts of a world's interface, and pytrees as vectors of 32-bit words.

Each array that crosses costs microseconds, more than all the arithmetic of a step; so what is read together is one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from . import episode
from .contract import NO_DECISION, Outcome, Solution, World

Array = jax.Array


class Layout(NamedTuple):
    """The parts of a world's interface, in the order in which they are packed."""

    codes: tuple[str, ...]  # observed categories, in the order of the schema
    numbers: tuple[str, ...]  # observed numbers, in the order of the schema
    signals: tuple[str, ...]
    audit: tuple[str, ...]
    n_actions: int
    n_slots: int  # of feedback
    state: Any  # pytree of jax.ShapeDtypeStruct


@functools.lru_cache(maxsize=64)
def layout(world: World) -> Layout:
    """Layout of a world; equal worlds have the same."""

    def once(key_data: Array, params: Any) -> tuple[Any, Outcome, dict[str, Array]]:
        key = episode.key_of(key_data)
        state = world.initial(key, params)
        return state, world.step(state, jnp.zeros((), jnp.int32), key, params)[1], world.audit(state, params)

    state, outcome, audit = jax.eval_shape(once, np.zeros(episode.KEY_WORDS, np.uint32), world.params)
    return Layout(
        codes=tuple(field.name for field in world.schema.fields if field.is_category),
        numbers=tuple(field.name for field in world.schema.fields if not field.is_category),
        signals=tuple(signal.name for signal in world.schema.signals),
        audit=tuple(audit),
        n_actions=len(world.schema.actions),
        n_slots=outcome.feedback_id.size,
        state=state,
    )


def no_outcome(parts: Layout) -> Outcome:
    """Outcome of a reset."""
    return Outcome(
        reward=jnp.zeros((), jnp.float32),
        terminated=jnp.zeros((), jnp.bool_),
        boundary=jnp.zeros((), jnp.bool_),
        decision_id=jnp.full((), NO_DECISION, jnp.int32),
        feedback_id=jnp.full(parts.n_slots, NO_DECISION, jnp.int32),
        feedback_value=jnp.zeros(parts.n_slots, jnp.float32),
        signals={name: jnp.zeros((), jnp.int32) for name in parts.signals},
    )


def as_words(leaf: Array) -> Array:
    """[leaf.size] i32: an array of 32-bit numbers or bools, flat."""
    flat = jnp.ravel(leaf)
    return flat.astype(jnp.int32) if flat.dtype == jnp.bool_ else jax.lax.bitcast_convert_type(flat, jnp.int32)


def from_words(words: Array, like: Any) -> Any:
    """Inverse of `as_words` for every leaf of a pytree; `like` has the shapes and types."""
    shapes, tree = jax.tree.flatten(like)
    leaves, at = [], 0
    for shape in shapes:
        size = math.prod(shape.shape)
        leaf = words[at : at + size].reshape(shape.shape)
        is_bool = shape.dtype == jnp.bool_
        leaves.append(leaf != 0 if is_bool else jax.lax.bitcast_convert_type(leaf, shape.dtype))
        at += size
    return jax.tree.unflatten(tree, leaves)


class Facts(NamedTuple):
    """What only measurement may know of the case at hand."""

    expected_rewards: NDArray[np.float64]  # [n_actions]
    action_values: NDArray[np.float64]  # [n_actions]
    audit: dict[str, int]


class Measurement(NamedTuple):
    """Compiled calls for measurement; they take a vector that ends with the words of the state."""

    facts: Callable[[Any, Any, Solution | None], Facts]  # (words, params, solution)
    state: Callable[[Any], Any]  # words -> pytree


@functools.lru_cache(maxsize=32)
def measurement(world: World) -> Measurement:
    """Measurement of a world; equal worlds share it, whatever their parameters."""
    parts = layout(world)
    n_words = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(parts.state))

    def state_of(words: Array) -> Any:
        return from_words(words[words.size - n_words :], parts.state)

    @jax.jit
    def packed(words: Array, params: Any, solution: Solution | None) -> Array:
        state = state_of(words)
        audit = world.audit(state, params)
        floats = (world.expected_rewards(state, params, solution), world.action_values(state, params, solution))
        return jnp.concatenate([*map(as_words, floats), *(as_words(audit[name]) for name in parts.audit)])

    def facts(words: Any, params: Any, solution: Solution | None) -> Facts:
        found = np.asarray(packed(words, params, solution))
        n = parts.n_actions
        floats = found[: 2 * n].view(np.float32).astype(np.float64)
        return Facts(floats[:n], floats[n:], dict(zip(parts.audit, found[2 * n :].tolist(), strict=True)))

    return Measurement(facts, jax.jit(state_of))
