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
from .words import Layout, SignalGroup, as_words, from_word, is_word, layout, no_outcome

Array = jax.Array


class Running(NamedTuple):
    """N running episodes, on the device: few arrays, for each that a call takes or gives costs about a microsecond."""

    words: Array  # [KEY_WORDS + W, N] i32: key data of the next call, and the W leaves of the state that are one word
    arrays: tuple[Array, ...]  # the other leaves of the state, leading axis N


class Block(NamedTuple):
    """What N sub-environments show, on the host: parts of one vector of words, not to be written to."""

    codes: NDArray[np.int32]  # [1 + n_codes, N]: decision id, observed categories
    signals: NDArray[np.int32]  # [n_groups, N]: entries of the tables of `SignalGroup`
    flags: NDArray[np.int32]  # [2, N]: boundary, terminated
    floats: NDArray[np.float32]  # [2 + n_numbers, N]: reward, regime, observed numbers
    feedback_id: NDArray[np.int32]  # [N, M]
    feedback_value: NDArray[np.float32]  # [N, M]
    mask: NDArray[np.int8]  # [N, n_actions]

    def replaced(self, other: Block, where: NDArray[np.bool_]) -> Block:
        """This block with the sub-environments of another where the [N] mask is True."""
        columns, rows = where, where[:, None]
        return Block(
            np.where(columns, other.codes, self.codes),
            np.where(columns, other.signals, self.signals),
            np.where(columns, other.flags, self.flags),
            np.where(columns, other.floats, self.floats),
            np.where(rows, other.feedback_id, self.feedback_id),
            np.where(rows, other.feedback_value, self.feedback_value),
            np.where(rows, other.mask, self.mask),
        )


def block_of(words: Array, parts: Layout, n: int) -> Block:
    """The block of N sub-environments that `restart` and `step` give as words."""
    read = np.asarray(words)
    signals_from = 1 + len(parts.codes)
    flags_from = signals_from + len(parts.groups)
    n_rows = flags_from + 4 + len(parts.numbers)
    rows = read[: n_rows * n].reshape(n_rows, n)
    slots_from, n_slots = n_rows * n, parts.n_slots * n
    mask_from = slots_from + 2 * n_slots
    return Block(
        rows[:signals_from],
        rows[signals_from:flags_from],
        rows[flags_from : flags_from + 2],
        rows[flags_from + 2 :].view(np.float32),
        read[slots_from : slots_from + n_slots].reshape(n, parts.n_slots),
        read[slots_from + n_slots : mask_from].view(np.float32).reshape(n, parts.n_slots),
        read[mask_from:].view(np.int8)[: parts.n_actions * n].reshape(n, parts.n_actions),
    )


class Calls(NamedTuple):
    """Compiled calls of a world. `running` is given up to `restart` and `step`, whose words are those of `block_of`."""

    restart: Callable[[Running, Any, Any, Any], tuple[Running, Array]]  # (running, key data, mask, params)
    step: Callable[[Running, Any, Any], tuple[Running, Array]]  # (running, actions, params)
    facts: Callable[[Any, Any, Solution | None], tuple[Any, Any, dict[str, Any], Any]]  # (state, params, solution)
    state: Callable[[Running | None], Any]  # a copy, which later steps do not touch


def nothing_running(parts: Layout, n: int) -> Running:
    """Room for N episodes, none of which has begun."""
    leaves = jax.tree.leaves(parts.state)
    arrays = tuple(jnp.zeros((n, *leaf.shape), leaf.dtype) for leaf in leaves if not is_word(leaf))
    return Running(jnp.zeros((episode.KEY_WORDS + sum(map(is_word, leaves)), n), jnp.int32), arrays)


@functools.lru_cache(maxsize=32)
def calls(world: World, per_env_params: bool) -> Calls:
    """Compiled calls of a world; equal worlds share them, whatever their parameters."""
    parts = layout(world)
    params_axis = 0 if per_env_params else None

    def shown(outcome: Outcome, regime: Array, observation: dict[str, Array], mask: Array) -> tuple[Any, ...]:
        """One sub-environment's part of a block: words in a list, and the arrays of a row."""
        words = [
            outcome.decision_id,
            *(observation[name] for name in parts.codes),
            *(_entry(group, outcome.signals) for group in parts.groups),
            outcome.boundary,
            outcome.terminated,
        ]
        floats = [outcome.reward, regime, *(observation[name] for name in parts.numbers)]
        as_integers = [jnp.ravel(part)[0].astype(jnp.int32) for part in words]
        as_floats = [jnp.ravel(part)[0].astype(jnp.float32) for part in floats]
        return as_integers + as_floats, outcome.feedback_id, outcome.feedback_value, mask

    def start(key_words: Array, params: Any) -> tuple[Array, Any, tuple[Any, ...]]:
        now, observation = episode.start(world, episode.key_of(key_words), params)
        regime, mask = world.regime(now.state, params), world.action_mask(now.state, params)
        words = shown(no_outcome(parts), regime, observation, mask)
        return jax.random.key_data(now.key), now.state, words

    def step(key_words: Array, state: Any, action: Array, params: Any) -> tuple[Array, Any, tuple[Any, ...]]:
        before = episode.Episode(episode.key_of(key_words), state)
        now, outcome, observation = episode.step(world, before, action, params)
        mask = world.action_mask(now.state, params)
        words = shown(outcome, world.regime(state, params), observation, mask)
        return jax.random.key_data(now.key), now.state, words

    def facts(state: Any, params: Any, solution: Solution | None) -> tuple[Any, Any, dict[str, Any], Any]:
        def one(state: Any, params: Any) -> tuple[Any, Any, dict[str, Any], Any]:
            return (
                world.expected_rewards(state, params, solution),
                world.action_values(state, params, solution),
                world.audit(state, params),
                world.regime(state, params),
            )

        return jax.vmap(one, in_axes=(0, params_axis))(state, params)

    def start_all(key_data: Array, params: Any) -> tuple[Running, Array]:
        return _packed(*jax.vmap(start, in_axes=(0, params_axis))(key_data, params))

    def restart(running: Running, key_data: Array, mask: Array, params: Any) -> tuple[Running, Array]:
        fresh, words = start_all(key_data, params)
        arrays = [
            jnp.where(mask.reshape(-1, *[1] * (new.ndim - 1)), new, old)
            for new, old in zip(fresh.arrays, running.arrays, strict=True)
        ]
        return Running(jnp.where(mask, fresh.words, running.words), tuple(arrays)), words

    def step_all(running: Running, actions: Array, params: Any) -> tuple[Running, Array]:
        key_data, state = _unpacked(running, parts)
        return _packed(*jax.vmap(step, in_axes=(0, 0, 0, params_axis))(key_data, state, actions, params))

    return Calls(
        restart=jax.jit(restart, donate_argnums=0),
        step=jax.jit(step_all, donate_argnums=0),
        facts=jax.jit(facts),
        state=jax.jit(lambda running: jax.tree.map(jnp.copy, _unpacked(running, parts)[1])),
    )


def _entry(group: SignalGroup, signals: dict[str, Array]) -> Array:
    """[] i32: which row of the table of a group shows the labels of the codes of signals."""
    entry = jnp.zeros((), jnp.int32)
    for name, n_labels in zip(group.names, group.sizes, strict=True):
        entry = entry * n_labels + signals[name]
    return entry


def _unpacked(running: Running, parts: Layout) -> tuple[Array, Any]:
    """Key data, [N, KEY_WORDS], and state, leading axis N, of running episodes."""
    likes, tree = jax.tree.flatten(parts.state)
    rows, arrays = iter(running.words[episode.KEY_WORDS :]), iter(running.arrays)
    leaves = [from_word(next(rows), like.dtype) if is_word(like) else next(arrays) for like in likes]
    key_data = jax.lax.bitcast_convert_type(running.words[: episode.KEY_WORDS].T, jnp.uint32)
    return key_data, jax.tree.unflatten(tree, leaves)


def _packed(key_data: Array, state: Any, shown: tuple[Any, ...]) -> tuple[Running, Array]:
    """Running episodes and the words that they show; rows are whole, within `vmap` stacking would transpose them."""
    leaves = jax.tree.leaves(state)
    words = [as_words(leaf) for leaf in (*key_data.T, *leaves) if is_word(leaf[0])]
    arrays = tuple(leaf for leaf in leaves if not is_word(leaf[0]))
    rows, *others, mask = shown
    flags = mask.astype(jnp.uint8).ravel()
    flags = jnp.pad(flags, (0, -flags.size % 4)).reshape(-1, 4)
    vector = jnp.concatenate([*map(as_words, (*rows, *others)), jax.lax.bitcast_convert_type(flags, jnp.int32)])
    return Running(jnp.stack(words), arrays), vector


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
