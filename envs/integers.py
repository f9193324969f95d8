"""The scalar executor of an `IntegerWorld`: its dynamics in plain Python, with the random numbers of the compiled ones.

A compiled call costs tens of microseconds however little it does. Only the draws are compiled here: the halves of the
next CHUNK steps come in one call that follows the keys of `habitus.envs.episode`, so that both executors show the same
bytes for one seed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from . import draws, episode, regimes
from .arithmetic import INTEGERS, as_integers
from .contract import NO_DECISION, IntegerWorld, World
from .frame import Frame
from .words import layout

Array = jax.Array

CHUNK = 256
"""Steps whose random halves are drawn together: few enough for a short episode, enough to forget the call's price."""


class _Draws(NamedTuple):
    """Random halves of coming steps."""

    step: Array  # [CHUNK, n_step_halves] u32
    observe: Array  # [CHUNK, n_observe_halves] u32
    next_key_data: Array  # [KEY_WORDS] u32, of the call after them


class IntegerRun:
    """`frame.Executor` of a world written in integers.

    Args:
        world: a `World` that is an `IntegerWorld`. Its state has `step`, its params `regime_steps` and
            `regime_levels` (`regimes.Schedule`), from which the regime is read; under `INTEGERS` its `show` gives an
            int per category and a float per number.
        params: pytree of arrays.
    """

    def __init__(self, world: World, params: Any) -> None:
        self._world: Any = world  # a `World` and an `IntegerWorld`
        self._arrays = params
        self._params = as_integers(params)
        self._levels = _fractions()
        parts = layout(world)
        self._codes, self._numbers, self._signals = parts.codes, parts.numbers, parts.signals
        self._state: Any = None
        self._next_key_data: Any = None
        self._step_halves: list[list[int]] = []
        self._observe_halves: list[list[int]] = []
        self._at = 0
        self._regime = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """What a pickled copy needs to continue with the same bytes; compiled calls are found again by the world."""
        return {name: part for name, part in self.__dict__.items() if name not in ("_begin", "_more")}

    @functools.cached_property
    def _begin(self) -> Callable[[NDArray[np.uint32], Any], tuple[Any, Array, _Draws]]:
        return _compiled_begin(self._world)

    @functools.cached_property
    def _more(self) -> Callable[[Array], _Draws]:
        return _compiled_draws(self._world)

    def start(self, key_data: NDArray[np.uint32]) -> Frame:
        """Begin the episode of a key."""
        state, observe_halves, drawn = self._begin(key_data, self._arrays)
        self._state = as_integers(state)
        self._take(drawn)
        shown = self._world.show(self._state, observe_halves.tolist(), self._params, INTEGERS)
        self._regime = self._level()
        return Frame(
            codes=[shown[name] for name in self._codes],
            numbers=[shown[name] for name in self._numbers],
            reward=0.0,
            terminated=False,
            boundary=False,
            decision_id=NO_DECISION,
            feedback=[],
            signals=[0] * len(self._signals),
            mask=self._world.mask(self._state, self._params, INTEGERS),
            regime=self._regime,
            coming_regime=self._regime,
        )

    def step(self, action: int) -> Frame:
        """One decision."""
        if self._at == CHUNK:
            self._take(self._more(self._next_key_data))
        at, world, params = self._at, self._world, self._params
        self._at = at + 1
        outcome: Any  # of Python numbers
        self._state, outcome = world.advance(self._state, action, self._step_halves[at], params, INTEGERS)
        shown = world.show(self._state, self._observe_halves[at], params, INTEGERS)
        regime, self._regime = self._regime, self._level()
        signals = outcome.signals
        return Frame(
            [shown[name] for name in self._codes],
            [shown[name] for name in self._numbers],
            outcome.reward,
            outcome.terminated,
            outcome.boundary,
            outcome.decision_id,
            [
                (decision, value)
                for decision, value in zip(outcome.feedback_id, outcome.feedback_value, strict=True)
                if decision != NO_DECISION
            ],
            [signals[name] for name in self._signals],
            world.mask(self._state, params, INTEGERS),
            regime,
            self._regime,
        )

    @property
    def words(self) -> NDArray[np.int32]:
        """The state; lists are nodes of a pytree, so that its leaves are its words."""
        return np.array(jax.tree.leaves(self._state), np.int32)

    def _take(self, drawn: _Draws) -> None:
        self._next_key_data = drawn.next_key_data
        self._step_halves, self._observe_halves = np.asarray(drawn.step).tolist(), np.asarray(drawn.observe).tolist()
        self._at = 0

    def _level(self) -> float:
        entry = INTEGERS.entry_at(self._params.regime_steps, self._state.step)
        return self._levels[int(self._params.regime_levels[entry])]


@functools.lru_cache(maxsize=32)
def _compiled_begin(world: World) -> Callable[[NDArray[np.uint32], Any], tuple[Any, Array, _Draws]]:
    n_observe, drawing = cast(IntegerWorld, world).n_observe_halves, cast(IntegerWorld, world)

    def begin(key_data: Array, params: Any) -> tuple[Any, Array, _Draws]:
        next_key, initial_key, observe_key = episode.keys(episode.key_of(key_data))
        state = world.initial(initial_key, params)
        return state, draws.halves(observe_key, (n_observe,)), _draws(drawing, next_key)

    return jax.jit(begin)


@functools.lru_cache(maxsize=32)
def _compiled_draws(world: World) -> Callable[[Array], _Draws]:
    return jax.jit(lambda key_data: _draws(cast(IntegerWorld, world), episode.key_of(key_data)))


def _draws(world: IntegerWorld, key: Array) -> _Draws:
    """Halves of the next CHUNK steps; `key` is consumed."""

    def one(key: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        drawn = episode.draw(world, key)
        return drawn.next_key, (drawn.step, drawn.observe)

    last, (step, observe) = jax.lax.scan(one, key, None, length=CHUNK)
    return _Draws(step=step, observe=observe, next_key_data=jax.random.key_data(last))


@functools.cache
def _fractions() -> list[float]:
    """[LEVELS + 1]: the levels as the compiled dynamics show them."""
    fractions: list[float] = np.asarray(
        jax.jit(regimes.fraction)(jnp.arange(regimes.LEVELS + 1, dtype=jnp.int32))
    ).tolist()
    return fractions
