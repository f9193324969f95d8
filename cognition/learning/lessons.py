"""How an outcome changes the edges of the paths that led to it.

Rules that learn from an error: error = target - sum_k x_k w_k on each channel, w_k <- clip(w_k + g_k error, -1, 1),

    kalman   g_k = v_k x_k / (noise + sum_j v_j x_j^2),       v_k <- v_k (1 - g_k x_k)
    nlms     g_k = rate x_k / sum_j x_j^2
    count    g_k = v_k x_k / max(1, sum_j v_j x_j^2),         1 / v_k <- 1 / v_k + x_k^2

Rules in which every edge learns for itself, from the outcome alone:

    beta     w_k <- w_k + v_k |x_k| (target - w_k),           1 / v_k <- 1 / v_k + |x_k|
    hebb     w_k <- w_k + rate |x_k| (target (1 - w_k) - opposite w_k), with the target of the other channel as opposite

`count` and `beta` count lessons in 1 / v, from the initial v on.

Sources: Rescorla & Wagner (1972); Sutton (1992), "Gain adaptation beats least squares?", for the normalised and the
diagonal Kalman form; Hebb (1949), bounded by what is left to gain as in Oja (1982) and modulated by reward.
Differs: 1. gain and loss are two targets, max(y, 0) and max(-y, 0), with one variance;  2. net strengths are clipped
to [-1, 1] (measured: no effect on scores).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..edges import IN_BOUNDS, Edges, Paths
from ..params import Params
from ..structure import Structure
from ..words import to_floats, to_words

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


class Reach(NamedTuple):
    """The edges that a lesson reaches. R = P, and one more for every path with a common edge.

    Attributes:
        cells: [R] i32, of the gain channel in `Edges.net`; loss lies `width` further.
        variances: [R] i32, their cells in `Edges.variance`.
        activation: [R] f32.
    """

    cells: Array
    variances: Array
    activation: Array


def reach(nodes: Array, activation: Array, column: Array, structure: Structure) -> Reach:
    """The edges from some nodes ([P] i32, with [P] f32 activation) to one column ([] i32) and to all at once."""
    width = structure.width
    columns = jnp.broadcast_to(column, nodes.shape)
    if structure.common:
        at = np.array(structure.common, np.int32)
        nodes, activation = jnp.concatenate([nodes, nodes[at]]), jnp.concatenate([activation, activation[at]])
        columns = jnp.concatenate([columns, jnp.full(len(at), structure.n_columns, jnp.int32)])
    return Reach(nodes * (2 * width) + columns, nodes * width + columns, activation)


class Update(NamedTuple):
    """What a lesson changes; [R] f32 each.

    Attributes:
        step: g, share of the error that goes to each edge; 0 for rules without an error.
        gain, loss: changes of net strength.
        variance: changes of variance.
    """

    step: Array
    gain: Array
    loss: Array
    variance: Array


def update(
    edges: Edges, at: Reach, gain: Array, loss: Array, noise: Array, structure: Structure, params: Params
) -> Update:
    """Changes that targets `gain` and `loss` ([] f32) make to the edges of a reach; reads, writes nothing."""
    x = at.activation
    gains = edges.net.at[at.cells].get(mode=IN_BOUNDS)
    losses = edges.net.at[at.cells + structure.width].get(mode=IN_BOUNDS)
    v = edges.variance.at[at.variances].get(mode=IN_BOUNDS)
    step = jnp.zeros_like(x)
    change = jnp.zeros_like(v)
    if structure.rule in ("hebb", "hebb_advantage"):
        rate = params.learning_rate * jnp.abs(x)
        return Update(
            step,
            _bounded(gains, rate * (gain * (1.0 - gains) - loss * gains), structure),
            _bounded(losses, rate * (loss * (1.0 - losses) - gain * losses), structure),
            change,
        )
    if structure.rule == "beta":
        weight = jnp.abs(x)
        fresh = v / (1.0 + weight * v)
        return Update(step, fresh * weight * (gain - gains), fresh * weight * (loss - losses), fresh - v)
    if structure.rule == "kalman":
        weighted = x * v
        step = weighted / (noise + x @ weighted)
        change = -step * weighted
    elif structure.rule == "count":
        weighted = x * v
        step = weighted / jnp.maximum(1.0, x @ weighted)
        change = v / (1.0 + x * weighted) - v
    else:
        step = params.learning_rate * x / jnp.maximum(x @ x, TINY)
    return Update(
        step,
        _bounded(gains, step * (gain - x @ gains), structure),
        _bounded(losses, step * (loss - x @ losses), structure),
        change,
    )


def learn(edges: Edges, lesson: Lesson, structure: Structure, params: Params) -> Edges:
    """One update of the edges from the nodes of a lesson to its column."""
    x = jnp.where(lesson.applies, lesson.activation, 0.0)
    at = reach(lesson.nodes, x, lesson.column, structure)
    done = update(edges, at, lesson.gain, lesson.loss, lesson.noise, structure, params)
    applies = lesson.applies.astype(jnp.float32)
    # differences are added rather than values set: a switched-off path may name a node twice
    return dataclasses.replace(
        edges,
        net=edges.net.at[jnp.concatenate([at.cells, at.cells + structure.width])].add(
            applies * jnp.concatenate([done.gain, done.loss]), mode=IN_BOUNDS
        ),
        variance=edges.variance.at[at.variances].add(applies * done.variance, mode=IN_BOUNDS),
    )


def _bounded(weight: Array, change: Array, structure: Structure) -> Array:
    """The part of `change` that keeps `weight` within its bounds."""
    return jnp.clip(weight + change, -1.0 if structure.signed else 0.0, 1.0) - weight
