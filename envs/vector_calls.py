"""The compiled calls behind a vector environment, and the few arrays in which their results cross the border."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from . import episode
from .contract import Outcome, Solution, World
from .words import Layout, layout, no_outcome

Array = jax.Array


class Running(NamedTuple):
    """N running episodes, on the device."""

    key_data: Array  # [N, KEY_WORDS] u32, of the next call
    state: Any  # pytree, leading axis [N]


class Block(NamedTuple):
    """What N sub-environments show, on the host; not to be written to."""

    integers: NDArray[np.int32]  # [K, N]: decision id, codes, signals, boundary, terminated
    floats: NDArray[np.float32]  # [2 + n_numbers, N]: reward, regime, numbers
    mask: NDArray[np.bool_]  # [N, n_actions]
    feedback_id: NDArray[np.int32]  # [N, M]
    feedback_value: NDArray[np.float32]  # [N, M]

    def replaced(self, other: Block, where: NDArray[np.bool_]) -> Block:
        """This block with the columns of another where the [N] mask is True."""
        rows = where[:, None]
        return Block(
            np.where(where, other.integers, self.integers),
            np.where(where, other.floats, self.floats),
            np.where(rows, other.mask, self.mask),
            np.where(rows, other.feedback_id, self.feedback_id),
            np.where(rows, other.feedback_value, self.feedback_value),
        )


class Calls(NamedTuple):
    """Compiled calls of a world. `running` is given up to `restart` and `step`."""

    restart: Callable[[Running, Any, Any, Any], tuple[Running, tuple[Array, ...]]]  # (running, key data, mask, params)
    step: Callable[[Running, Any, Any], tuple[Running, tuple[Array, ...]]]  # (running, actions, params)
    facts: Callable[[Running | None, Any, Solution | None], tuple[Any, Any, dict[str, Any], Any]]
    state: Callable[[Running | None], Any]  # a copy, which later steps do not touch


def nothing_running(parts: Layout, n: int) -> Running:
    """Room for N episodes, none of which has begun."""
    state = jax.tree.map(lambda leaf: jnp.zeros((n, *leaf.shape), leaf.dtype), parts.state)
    return Running(jnp.zeros((n, episode.KEY_WORDS), jnp.uint32), state)


@functools.lru_cache(maxsize=32)
def calls(world: World, per_env_params: bool) -> Calls:
    """Compiled calls of a world; equal worlds share them, whatever their parameters."""
    parts = layout(world)
    params_axis = 0 if per_env_params else None

    def shown(outcome: Outcome, regime: Array, observation: dict[str, Array], mask: Array) -> tuple[Any, ...]:
        """One sub-environment's part of a block: [] integers and floats in lists, and the arrays of a row."""
        integers = [
            outcome.decision_id,
            *(observation[name] for name in parts.codes),
            *(outcome.signals[name] for name in parts.signals),
            outcome.boundary,
            outcome.terminated,
        ]
        floats = [outcome.reward, regime, *(observation[name] for name in parts.numbers)]
        return (
            [jnp.ravel(part)[0].astype(jnp.int32) for part in integers],
            [jnp.ravel(part)[0].astype(jnp.float32) for part in floats],
            mask,
            outcome.feedback_id,
            outcome.feedback_value,
        )

    def start(key_words: Array, params: Any) -> tuple[Running, tuple[Any, ...]]:
        now, observation = episode.start(world, episode.key_of(key_words), params)
        regime, mask = world.regime(now.state, params), world.action_mask(now.state, params)
        words = shown(no_outcome(parts), regime, observation, mask)
        return Running(jax.random.key_data(now.key), now.state), words

    def step(running: Running, action: Array, params: Any) -> tuple[Running, tuple[Any, ...]]:
        before = episode.Episode(episode.key_of(running.key_data), running.state)
        now, outcome, observation = episode.step(world, before, action, params)
        mask = world.action_mask(now.state, params)
        words = shown(outcome, world.regime(running.state, params), observation, mask)
        return Running(jax.random.key_data(now.key), now.state), words

    def restart(running: Running, key_data: Array, mask: Array, params: Any) -> tuple[Running, tuple[Array, ...]]:
        fresh, words = start_all(key_data, params)
        merged = jax.tree.map(
            lambda new, old: jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old), fresh, running
        )
        return merged, words

    def facts(running: Running, params: Any, solution: Solution | None) -> tuple[Any, Any, dict[str, Any], Any]:
        def one(state: Any, params: Any) -> tuple[Any, Any, dict[str, Any], Any]:
            return (
                world.expected_rewards(state, params, solution),
                world.action_values(state, params, solution),
                world.audit(state, params),
                world.regime(state, params),
            )

        return jax.vmap(one, in_axes=(0, params_axis))(running.state, params)

    def start_all(key_data: Array, params: Any) -> tuple[Running, tuple[Array, ...]]:
        return _stacked(jax.vmap(start, in_axes=(0, params_axis))(key_data, params))

    def step_all(running: Running, actions: Array, params: Any) -> tuple[Running, tuple[Array, ...]]:
        return _stacked(jax.vmap(step, in_axes=(0, 0, params_axis))(running, actions, params))

    return Calls(
        restart=jax.jit(restart, donate_argnums=0),
        step=jax.jit(step_all, donate_argnums=0),
        facts=jax.jit(facts),
        state=jax.jit(lambda running: jax.tree.map(jnp.copy, running.state)),
    )


def _stacked(result: tuple[Running, tuple[Any, ...]]) -> tuple[Running, tuple[Array, ...]]:
    """Rows of a block made of whole columns: stacking within `vmap` would transpose them, 5 % of a step."""
    running, (integers, floats, *rows) = result
    return running, (jnp.stack(integers), jnp.stack(floats), *rows)


def only_of(infos: dict[str, Any], mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Infos of masked sub-environments; the others have zeros, None and False masks, as Gymnasium leaves them."""
    kept: dict[str, Any] = {}
    for name, values in infos.items():
        if not (infos[name if name.startswith("_") else f"_{name}"] & mask).any():
            continue  # nobody has it
        if isinstance(values, dict):
            kept[name] = only_of(values, mask)
        elif name.startswith("_"):
            kept[name] = values & mask
        else:
            kept[name] = np.full_like(values, None if values.dtype == object else 0)
            kept[name][mask] = values[mask]
    return kept
