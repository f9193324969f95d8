"""The compiled calls behind a scalar environment of a world that is not written in integers.

A call takes and returns one vector of 32-bit words: first what the environment shows (the frame), then the key of the
next call, then the state of the world.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from . import episode
from .contract import NO_DECISION, Outcome, World
from .words import Layout, as_words, from_words, layout, no_outcome

Array = jax.Array


class Frame(NamedTuple):
    """What a step shows. At the start of an episode the parts of an outcome are empty."""

    codes: list[int]  # observed categories, in the order of the schema
    numbers: list[float]  # observed numbers, in the order of the schema
    reward: float
    terminated: bool
    boundary: bool
    decision_id: int
    feedback: list[tuple[int, float]]  # outcomes that arrived, oldest decision first
    signals: list[int]
    mask: list[bool]  # whether an action is possible now
    regime: float  # in which the decision was made; at the start, that of the first decision
    coming_regime: float


class Executor(Protocol):
    """Runs one episode of a world at a time."""

    def start(self, key_data: NDArray[np.uint32]) -> Frame:
        """Begin the episode of a key."""

    def step(self, action: int) -> Frame:
        """One decision."""

    @property
    def words(self) -> Any:
        """A vector that ends with the words of the state, for `words.measurement`."""


class CompiledRun:
    """`Executor` of any world: one compiled call a step."""

    def __init__(self, world: World, params: Any) -> None:
        self._world = world
        self._params = params
        self._words: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """What a pickled copy needs to continue with the same bytes; compiled calls are found again by the world."""
        return {name: part for name, part in self.__dict__.items() if name != "_compiled"}

    @functools.cached_property
    def _compiled(self) -> Compiled:
        return compiled(self._world)

    def start(self, key_data: NDArray[np.uint32]) -> Frame:
        """Begin the episode of a key."""
        self._words = self._compiled.start(key_data, self._params)
        return self._compiled.frame(self._words)

    def step(self, action: int) -> Frame:
        """One decision."""
        self._words = self._compiled.step(self._words, np.int32(action), self._params)
        return self._compiled.frame(self._words)

    @property
    def words(self) -> Any:
        """Frame, key and state; on the device."""
        return self._words


class Compiled(NamedTuple):
    """Compiled calls of a world; `words` is the one vector, [size] i32."""

    start: Callable[[NDArray[np.uint32], Any], Array]  # (episode.KEY_WORDS of key data, params) -> words
    step: Callable[[Array, np.int32, Any], Array]  # (words, action, params) -> words
    frame: Callable[[Array], Frame]


@functools.lru_cache(maxsize=32)
def compiled(world: World) -> Compiled:
    """Compiled calls of a world; equal worlds get the same ones, whatever their parameters."""
    parts = layout(world)
    n_integers = 3 + len(parts.codes) + len(parts.signals) + parts.n_slots + parts.n_actions
    n_floats = 3 + len(parts.numbers) + parts.n_slots
    key_from = n_integers + n_floats
    state_from = key_from + episode.KEY_WORDS

    def packed(
        now: episode.Episode, outcome: Outcome, regime: Array, observation: dict[str, Array], params: Any
    ) -> Array:
        mask = world.action_mask(now.state, params)
        frame = _frame_words(parts, outcome, mask, (regime, world.regime(now.state, params)), observation)
        key_words = jax.lax.bitcast_convert_type(jax.random.key_data(now.key), jnp.int32)
        return jnp.concatenate([*frame, key_words, *(as_words(leaf) for leaf in jax.tree.leaves(now.state))])

    def start(key_data: Array, params: Any) -> Array:
        now, observation = episode.start(world, episode.key_of(key_data), params)
        return packed(now, no_outcome(parts), world.regime(now.state, params), observation, params)

    def step(words: Array, action: Array, params: Any) -> Array:
        key_data = jax.lax.bitcast_convert_type(words[key_from:state_from], jnp.uint32)
        state = from_words(words[state_from:], parts.state)
        before = episode.Episode(episode.key_of(key_data), state)
        now, outcome, observation = episode.step(world, before, action, params)
        return packed(now, outcome, world.regime(state, params), observation, params)

    return Compiled(
        start=jax.jit(start),
        step=jax.jit(step),
        frame=functools.partial(_frame, parts, n_integers, n_floats),
    )


def _frame_words(
    parts: Layout, outcome: Outcome, mask: Array, regimes: tuple[Array, Array], observation: dict[str, Array]
) -> list[Array]:
    """Words of a frame, [n_integers + n_floats] i32 in parts, in the order that `_frame` reads."""
    integers = [
        outcome.terminated,
        outcome.boundary,
        outcome.decision_id,
        *(observation[name] for name in parts.codes),
        *(outcome.signals[name] for name in parts.signals),
        outcome.feedback_id,
        mask,
    ]
    floats = [outcome.reward, *regimes, *(observation[name] for name in parts.numbers), outcome.feedback_value]
    return [*(as_words(part.astype(jnp.int32)) for part in integers), *map(as_words, floats)]


def _frame(parts: Layout, n_integers: int, n_floats: int, words: Array) -> Frame:
    shown = np.asarray(words)[: n_integers + n_floats]
    terminated, boundary, decision_id, *integers = shown[:n_integers].tolist()
    reward, regime, coming_regime, *floats = shown[n_integers:].view(np.float32).tolist()
    signals_from = len(parts.codes)
    slots_from = signals_from + len(parts.signals)
    mask_from = slots_from + parts.n_slots
    listed = zip(integers[slots_from:mask_from], floats[len(parts.numbers) :], strict=True)
    return Frame(
        codes=integers[:signals_from],
        numbers=floats[: len(parts.numbers)],
        reward=reward,
        terminated=bool(terminated),
        boundary=bool(boundary),
        decision_id=decision_id,
        feedback=[(decision, value) for decision, value in listed if decision != NO_DECISION],
        signals=integers[signals_from:slots_from],
        mask=[flag == 1 for flag in integers[mask_from:]],
        regime=regime,
        coming_regime=coming_regime,
    )
