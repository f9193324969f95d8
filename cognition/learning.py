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


def learn_all(edges: Edges, lessons: Lesson, structure: Structure, params: Params) -> tuple[Edges, Array]:
    """Learn several lessons one after the other; every array of `lessons` has one more leading axis.

    Returns:
        The edges, and [] i32 how many lessons applied.
    """

    def one(known: tuple[Edges, Array], given: Lesson) -> tuple[tuple[Edges, Array], None]:
        edges, n_learnt = known
        return (learn(edges, given, structure, params), n_learnt + given.applies.astype(jnp.int32)), None

    # a loop, not a loop unrolled: outside of a scan a compiled kernel costs about a microsecond to start, inside 50 ns
    return jax.lax.scan(one, (edges, jnp.zeros((), jnp.int32)), lessons)[0]


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
