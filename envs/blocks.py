"""Episodes of a compiled rollout in blocks: the memories of a few dozen learners fit the cache of a processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Array = jax.Array


def block_by_block(
    together: Callable[..., tuple[tuple[Array, ...], Any]],
    arguments: tuple[Any, ...],
    axes: tuple[Any, ...],
    block: int,
) -> tuple[tuple[Array, ...], Any]:
    """What `together` gives for all episodes, block after block where there are more than `block`, the rest last.

    Args:
        together: runs episodes side by side; returns arrays [T, n] of what happened and a pytree of arrays [n, ...].
        arguments: of `together`; the first is an array with one entry per episode.
        axes: which arguments have an axis of episodes, as `in_axes` of `jax.vmap`; a list for the entries of a list.
        block: episodes of a block; 0 = all at once.

    Returns:
        The same of all episodes, in their order.
    """
    n = len(arguments[0])
    if not block or n <= block:
        return together(*arguments)
    n_whole = n - n % block

    def of_block(start: Array) -> tuple[tuple[Array, ...], Any]:
        return together(*_mapped(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, block), arguments, axes))

    notes, carry = jax.lax.map(of_block, jnp.arange(0, n_whole, block, dtype=jnp.int32))
    parts = [
        (
            jax.tree.map(lambda note: jnp.moveaxis(note, 0, 1).reshape(note.shape[1], n_whole), notes),
            jax.tree.map(lambda leaf: leaf.reshape(n_whole, *leaf.shape[2:]), carry),
        )
    ]
    if n_whole < n:
        parts.append(together(*_mapped(lambda leaf: leaf[n_whole:], arguments, axes)))
    notes = jax.tree.map(lambda *part: jnp.concatenate(part, axis=1), *(part[0] for part in parts))
    return notes, jax.tree.map(lambda *part: jnp.concatenate(part), *(part[1] for part in parts))


def _mapped(change: Callable[[Array], Array], arguments: tuple[Any, ...], axes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with `change` made to those arrays that have an axis of episodes. `axes` as of `jax.vmap`."""

    def of(argument: Any, axis: Any) -> Any:
        if isinstance(axis, list):
            return [of(one, its) for one, its in zip(argument, axis, strict=True)]
        return argument if axis is None else jax.tree.map(change, argument)

    return tuple(of(argument, axis) for argument, axis in zip(arguments, axes, strict=True))
