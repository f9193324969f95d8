"""What crosses the border of a compiled call: the parts of a world's interface, and pytrees as vectors of 32-bit words.

Each array that crosses costs microseconds, more than all the arithmetic of a step; so what is read together is one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from . import episode
from .contract import NO_DECISION, Outcome, Schema, Signal, Solution, World

Array = jax.Array


LARGEST_TABLE = 1 << 13  # rows; read at random it stays in the cache of a processor


class SignalGroup(NamedTuple):
    """Signals whose labels are read together: rows of one table cost half of what entries of several do."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]  # number of labels of each


class Layout(NamedTuple):
    """The parts of a world's interface, in the order in which they are packed."""

    codes: tuple[str, ...]  # observed categories, in the order of the schema
    numbers: tuple[str, ...]  # observed numbers, in the order of the schema
    signals: tuple[str, ...]
    groups: tuple[SignalGroup, ...]  # of the signals, in their order
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
        groups=tuple(_groups(world.schema.signals)),
        audit=tuple(audit),
        n_actions=len(world.schema.actions),
        n_slots=outcome.feedback_id.size,
        state=state,
    )


def _groups(signals: Sequence[Signal]) -> Iterator[SignalGroup]:
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    for signal in signals:
        size = len(signal.labels)
        if names and math.prod(sizes) * size > LARGEST_TABLE:
            yield SignalGroup(names, sizes)
            names, sizes = (), ()
        names, sizes = (*names, signal.name), (*sizes, size)
    if names:
        yield SignalGroup(names, sizes)


def label_table(group: SignalGroup, schema: Schema) -> NDArray[np.object_]:
    """[product of sizes, n_signals] labels of all combinations of codes of a group, the last signal fastest."""
    labels = {signal.name: np.array(signal.labels, object) for signal in schema.signals}
    codes = np.indices(group.sizes).reshape(len(group.sizes), -1)
    table: NDArray[np.object_] = np.stack(
        [labels[name][code] for name, code in zip(group.names, codes, strict=True)], axis=1
    )
    return table


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


def is_word(leaf: Any) -> bool:
    """Whether an array, or its shape and type, is a single 32-bit number or bool."""
    return leaf.shape == () and leaf.dtype in (jnp.int32, jnp.uint32, jnp.float32, jnp.bool_)


def from_word(words: Array, dtype: Any) -> Array:
    """Inverse of `as_words` for an array of a 32-bit type or bools."""
    return words != 0 if dtype == jnp.bool_ else jax.lax.bitcast_convert_type(words, dtype)


def from_words(words: Array, like: Any) -> Any:
    """Inverse of `as_words` for every leaf of a pytree; `like` has the shapes and types."""
    shapes, tree = jax.tree.flatten(like)
    leaves, at = [], 0
    for shape in shapes:
        size = math.prod(shape.shape)
        leaves.append(from_word(words[at : at + size].reshape(shape.shape), shape.dtype))
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
