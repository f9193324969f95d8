"""How an outcome changes the edges of the paths that led to it.

Delta rule on each channel: error = target - sum_k x_k w_k, w_k <- clip(w_k + g_k error, -1, 1), with the gains of

    kalman   g_k = v_k x_k / (noise + sum_j v_j x_j^2),   v_k <- v_k (1 - g_k x_k)
    nlms     g_k = rate x_k / sum_j x_j^2

Source: Rescorla & Wagner (1972); Sutton (1992), "Gain adaptation beats least squares?", for the normalised and the
diagonal Kalman form. Differs: 1. gain and loss are two targets, max(y, 0) and max(-y, 0), with one variance;  2. net
strengths are clipped to [-1, 1] (measured: no effect on scores).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .config import Params, Structure
from .edges import IN_BOUNDS, Edges, Paths
from .words import to_floats, to_words

Array = jax.Array
TINY = 1e-12  # keeps the step of an update without any active path at 0 / TINY = 0


class Lesson(NamedTuple):
    """What one outcome teaches the edges from some nodes to one column.

    Attributes:
        applies: [] bool; where false nothing is learnt.
        nodes: [P] i32, nodes of the paths that led to the decision.
        activation: [P] f32, their activation then.
        column: [] i32, the decision's column.
        gain: [] f32, what sum_k x_k wG_k should have been, per unit of stake and factor.
        loss: [] f32, the same for loss.
        noise: [] f32, variance of these targets (kalman).
    """

    applies: Array
    nodes: Array
    activation: Array
    column: Array
    gain: Array
    loss: Array
    noise: Array


def lesson(applies: Array, paths: Paths, column: Array, outcome: Array, noise: Array) -> Lesson:
    """The lesson of an outcome ([] f32, per unit of stake and factor): either a gain or a loss."""
    gain, loss = jnp.maximum(outcome, 0.0), jnp.maximum(-outcome, 0.0)
    return Lesson(applies, paths.nodes, paths.activation, column, gain, loss, noise)


def lesson_words(lesson: Lesson) -> Array:
    """[2P + 5] i32: a lesson as one row of words."""
    numbers = jnp.stack([lesson.gain, lesson.loss, lesson.noise])
    facts = jnp.stack([lesson.applies.astype(jnp.int32), lesson.column])
    return jnp.concatenate([facts, lesson.nodes, to_words(jnp.concatenate([lesson.activation, numbers]))])


def _lesson(words: Array) -> Lesson:
    n_paths = (words.shape[0] - 5) // 2
    floats = to_floats(words[n_paths + 2 :])
    nodes, activation, numbers = words[2 : n_paths + 2], floats[:n_paths], floats[n_paths:]
    return Lesson(words[0] != 0, nodes, activation, words[1], numbers[0], numbers[1], numbers[2])


def learn_all(
    edges: Edges, lessons: Array, start: Array, stop: Array, structure: Structure, params: Params
) -> tuple[Edges, Array]:
    """Learn lessons number `start` to `stop`, one after the other.

    Args:
        edges: what was known before.
        lessons: [U, 2P + 5] i32, one `lesson_words` a row; those outside of the range must not apply.
        start: [] i32, in [0, U].
        stop: [] i32, in [0, U].
        structure: shapes and the rule.
        params: rates.

    Returns:
        The edges, and [] i32 how many lessons applied.
    """

    def one(number: Array, known: tuple[Edges, Array]) -> tuple[Edges, Array]:
        given = _lesson(lessons[number])
        return learn(known[0], given, structure, params), known[1] + given.applies.astype(jnp.int32)

    # most steps bring one lesson of the several that are possible, and an empty one costs as much as a full one
    nothing = jnp.zeros((), jnp.int32)
    learnt, n_learnt = jax.lax.fori_loop(-_most(-start), _most(stop), one, (edges, nothing))
    return learnt, n_learnt


@jax.custom_batching.custom_vmap
def _most(count: Array) -> Array:
    """The number itself; under vmap the largest of the batch, one for all.

    A loop whose length differs between the agents of a batch would keep the state of those that are done by copying it
    whole in every round; here they go on through lessons that do not apply.
    """
    return count


@_most.def_vmap
def _most_of_batch(axis_size: int, in_batched: list[bool], count: Array) -> tuple[Array, bool]:
    del axis_size
    return (jnp.max(count, axis=0), False) if in_batched[0] else (count, False)


def learn(edges: Edges, lesson: Lesson, structure: Structure, params: Params) -> Edges:
    """One update of the edges from the nodes of a lesson to its column."""
    n_columns = structure.n_columns
    x = jnp.where(lesson.applies, lesson.activation, 0.0)
    gain_cell = lesson.nodes * (2 * n_columns) + lesson.column
    loss_cell = gain_cell + n_columns
    cell = lesson.nodes * n_columns + lesson.column
    gain, loss = edges.net.at[gain_cell].get(mode=IN_BOUNDS), edges.net.at[loss_cell].get(mode=IN_BOUNDS)
    variance = edges.variance.at[cell].get(mode=IN_BOUNDS)
    weighted = x * variance
    if structure.rule == "kalman":
        step = weighted / (lesson.noise + x @ weighted)
        shrinkage = step * weighted
    else:
        step = params.learning_rate * x / jnp.maximum(x @ x, TINY)
        shrinkage = jnp.zeros_like(step)
    gain_change = _bounded(gain, step * (lesson.gain - x @ gain))
    loss_change = _bounded(loss, step * (lesson.loss - x @ loss))
    # differences are added rather than values set: a switched-off path may name a node twice
    return dataclasses.replace(
        edges,
        net=edges.net.at[jnp.concatenate([gain_cell, loss_cell])].add(
            jnp.concatenate([gain_change, loss_change]), mode=IN_BOUNDS
        ),
        variance=edges.variance.at[cell].add(-shrinkage, mode=IN_BOUNDS),
    )


def _bounded(weight: Array, change: Array) -> Array:
    """The part of `change` that keeps `weight` in [-1, 1]."""
    return jnp.clip(weight + change, -1.0, 1.0) - weight
