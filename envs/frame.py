"""The compiled calls behind a scalar environment.

A call takes and returns one vector of 32-bit words: first what the environment shows (the frame: observation, outcome,
expected rewards, oracle, audit), then the state of the world. Each array that crosses the border of a compiled call
costs microseconds, more than all the arithmetic of a step; so only one does.
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
from .contract import NO_DECISION, Outcome, World, oracle

Array = jax.Array


class Frame(NamedTuple):
    """What a call shows. At the start of an episode the parts of an outcome are empty."""

    codes: list[int]  # observed categories, in the order of the schema
    numbers: list[float]  # observed numbers, in the order of the schema
    reward: float
    terminated: bool
    boundary: bool
    decision_id: int
    feedback: list[tuple[int, float]]  # outcomes that arrived, oldest decision first
    signals: list[int]
    regime: float  # in which the decision was made; at the start, that of the first decision
    coming_regime: float
    expected_rewards: list[float]
    oracle: int
    audit: list[int]


class Compiled(NamedTuple):
    """Compiled calls of a world; `words` is the one vector, [size] i32."""

    start: Callable[[NDArray[np.uint32], Any], Array]  # (episode.KEY_WORDS of key data, params) -> words
    step: Callable[[Array, np.int32, Any], Array]  # (words, action, params) -> words
    frame: Callable[[Array], Frame]
    state: Callable[[Array], Any]
    audit: tuple[str, ...]  # names of `Frame.audit`


class _Layout(NamedTuple):
    """How many words of the frame belong to what."""

    codes: tuple[str, ...]
    numbers: tuple[str, ...]
    signals: tuple[str, ...]
    audit: tuple[str, ...]
    n_actions: int
    n_slots: int
    state: Any  # pytree of jax.ShapeDtypeStruct

    @property
    def n_integers(self) -> int:
        return 4 + len(self.codes) + len(self.signals) + len(self.audit) + self.n_slots

    @property
    def n_floats(self) -> int:
        return 3 + len(self.numbers) + self.n_actions + self.n_slots


@functools.lru_cache(maxsize=32)
def compiled(world: World) -> Compiled:
    """Compiled calls of a world; equal worlds get the same ones, whatever their parameters."""
    layout = _layout(world)
    state_from = layout.n_integers + layout.n_floats + episode.KEY_WORDS

    def packed(
        now: episode.Episode, outcome: Outcome, regime: Array, observation: dict[str, Array], params: Any
    ) -> Array:
        frame = _frame_words(world, layout, now.state, outcome, regime, observation, params)
        key_words = jax.lax.bitcast_convert_type(jax.random.key_data(now.key), jnp.int32)
        return jnp.concatenate([*frame, key_words, *(_as_words(leaf) for leaf in jax.tree.leaves(now.state))])

    def start(key_data: Array, params: Any) -> Array:
        now, observation = episode.start(world, jax.random.wrap_key_data(key_data), params)
        return packed(now, _no_outcome(layout), world.regime(now.state, params), observation, params)

    def step(words: Array, action: Array, params: Any) -> Array:
        key_data = jax.lax.bitcast_convert_type(words[state_from - episode.KEY_WORDS : state_from], jnp.uint32)
        state = _from_words(words[state_from:], layout.state)
        before = episode.Episode(jax.random.wrap_key_data(key_data), state)
        now, outcome, observation = episode.step(world, before, action, params)
        return packed(now, outcome, world.regime(state, params), observation, params)

    return Compiled(
        start=jax.jit(start),
        step=jax.jit(step),
        frame=functools.partial(_frame, layout),
        state=jax.jit(lambda words: _from_words(words[state_from:], layout.state)),
        audit=layout.audit,
    )


def _layout(world: World) -> _Layout:
    def once(key_data: Array, params: Any) -> tuple[Any, Outcome, dict[str, Array]]:
        key = jax.random.wrap_key_data(key_data)
        state = world.initial(key, params)
        return state, world.step(state, jnp.zeros((), jnp.int32), key, params)[1], world.audit(state, params)

    state, outcome, audit = jax.eval_shape(once, np.zeros(episode.KEY_WORDS, np.uint32), world.params)
    return _Layout(
        codes=tuple(field.name for field in world.schema.fields if field.is_category),
        numbers=tuple(field.name for field in world.schema.fields if not field.is_category),
        signals=tuple(signal.name for signal in world.schema.signals),
        audit=tuple(audit),
        n_actions=len(world.schema.actions),
        n_slots=outcome.feedback_id.size,
        state=state,
    )


def _no_outcome(layout: _Layout) -> Outcome:
    return Outcome(
        reward=jnp.zeros((), jnp.float32),
        terminated=jnp.zeros((), jnp.bool_),
        boundary=jnp.zeros((), jnp.bool_),
        decision_id=jnp.full((), NO_DECISION, jnp.int32),
        feedback_id=jnp.full(layout.n_slots, NO_DECISION, jnp.int32),
        feedback_value=jnp.zeros(layout.n_slots, jnp.float32),
        signals={name: jnp.zeros((), jnp.int32) for name in layout.signals},
    )


def _frame_words(
    world: World,
    layout: _Layout,
    state: Any,
    outcome: Outcome,
    regime: Array,
    observation: dict[str, Array],
    params: Any,
) -> list[Array]:
    """Words of a frame, [n_integers + n_floats] i32 in parts, in the order that `_frame` reads."""
    audit = world.audit(state, params)
    integers = [
        outcome.terminated,
        outcome.boundary,
        outcome.decision_id,
        oracle(world, state, params, None),
        *(observation[name] for name in layout.codes),
        *(outcome.signals[name] for name in layout.signals),
        *(audit[name] for name in layout.audit),
        outcome.feedback_id,
    ]
    floats = [
        outcome.reward,
        regime,
        world.regime(state, params),
        *(observation[name] for name in layout.numbers),
        world.expected_rewards(state, params, None),
        outcome.feedback_value,
    ]
    return [*(_as_words(part.astype(jnp.int32)) for part in integers), *map(_as_words, floats)]


def _frame(layout: _Layout, words: Array) -> Frame:
    numbers_from = layout.n_integers
    shown = np.asarray(words)[: numbers_from + layout.n_floats]
    terminated, boundary, decision_id, oracle, *integers = shown[:numbers_from].tolist()
    reward, regime, coming_regime, *floats = shown[numbers_from:].view(np.float32).tolist()
    signals_from = len(layout.codes)
    audit_from = signals_from + len(layout.signals)
    slots_from = audit_from + len(layout.audit)
    expected_from = len(layout.numbers)
    listed = zip(integers[slots_from:], floats[expected_from + layout.n_actions :], strict=True)
    return Frame(
        codes=integers[:signals_from],
        numbers=floats[:expected_from],
        reward=reward,
        terminated=bool(terminated),
        boundary=bool(boundary),
        decision_id=decision_id,
        feedback=[(decision, value) for decision, value in listed if decision != NO_DECISION],
        signals=integers[signals_from:audit_from],
        regime=regime,
        coming_regime=coming_regime,
        expected_rewards=floats[expected_from : expected_from + layout.n_actions],
        oracle=oracle,
        audit=integers[audit_from:slots_from],
    )


def _as_words(leaf: Array) -> Array:
    """[leaf.size] i32: an array of 32-bit numbers or bools, flat."""
    flat = jnp.ravel(leaf)
    return flat.astype(jnp.int32) if flat.dtype == jnp.bool_ else jax.lax.bitcast_convert_type(flat, jnp.int32)


def _from_words(words: Array, like: Any) -> Any:
    """Inverse of `_as_words` for every leaf of a pytree; `like` has the shapes and types."""
    shapes, tree = jax.tree.flatten(like)
    leaves, at = [], 0
    for shape in shapes:
        size = math.prod(shape.shape)
        leaf = words[at : at + size].reshape(shape.shape)
        is_bool = shape.dtype == jnp.bool_
        leaves.append(leaf != 0 if is_bool else jax.lax.bitcast_convert_type(leaf, shape.dtype))
        at += size
    return jax.tree.unflatten(tree, leaves)
