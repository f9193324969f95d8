"""Evidence: what the paths of an observation say about each decision.

With x_k the minimum activation along path k, f_a an action's declared factor and s the stake of the case,

    G_a = s f_a sum_k x_k (wG_ka + wG_k)     expected gain; the second edge leads to all actions at once
    H_a = s f_a sum_k x_k (wH_ka + wH_k)     expected loss
    S_a = G_a - (1 + risk) H_a
    U_a = S_a + curiosity sd_a + caution sd_best [a deliberates],   sd_a = s f_a sqrt(sum_k x_k^2 v_ka)

so that S_a is a sum of one term per path and nothing else. All are in units of the reward bound. Under the rule "beta"
x_k is replaced by x_k p_ka / sum_j x_j p_ja with the precision p = 1 / v: a mean of what each edge has seen.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .edges import Edges, Paths, rows
from .params import Params
from .shapes import check_shape
from .structure import Structure

Array = jax.Array
LOWEST = -3.0e38
TINY = 1e-12


class Evidence(NamedTuple):
    """What is known for and against each action.

    Attributes:
        gain: [A] f32, G.
        loss: [A] f32, H.
        score: [A] f32, S.
        deviation: [A] f32, standard deviation of the score's estimate, >= 0.
        urge: [A] f32, U; the greedy action maximises it.
    """

    gain: Array
    loss: Array
    score: Array
    deviation: Array
    urge: Array


def evaluate(edges: Edges, paths: Paths, structure: Structure, params: Params) -> Evidence:
    """Evidence for every action. Reads the memory, writes nothing.

    Raises:
        ValueError: while tracing, if `paths` do not have P entries.
    """
    check_shape("paths.nodes", paths.nodes, structure.n_paths)
    check_shape("paths.activation", paths.activation, structure.n_paths)
    net, variance = rows(edges, paths, structure)
    n_columns, width = structure.n_columns, structure.width
    own = variance[:, :n_columns]
    scale = paths.stake * np.array(structure.factors, np.float32)
    if structure.rule == "beta":
        share = shares(paths.activation, own)
        gain, loss = (
            jnp.sum(share * net[:, :n_columns], axis=0),
            jnp.sum(share * net[:, width : width + n_columns], axis=0),
        )
    else:
        both = paths.activation @ net
        gain, loss = both[:n_columns], both[width : width + n_columns]
    if structure.common:
        at = np.array(structure.common, np.int32)
        every = paths.activation[at] @ net[at][:, np.array([n_columns, width + n_columns], np.int32)]
        gain, loss = gain + every[0], loss + every[1]
    gain, loss = _of_actions(gain, structure) * scale, _of_actions(loss, structure) * scale
    deviation = jnp.sqrt(_of_actions(jnp.square(paths.activation) @ own, structure)) * scale
    score = gain - (1 + params.risk) * loss
    best = greedy(score)
    deliberates = np.array(structure.deliberation, np.float32)
    bonus = params.curiosity * deviation + params.caution * deviation[best] * deliberates
    return Evidence(gain, loss, score, deviation, score + bonus)


def shares(activation: Array, variance: Array) -> Array:
    """[P, C] f32: share of each path in the mean of an action, by activation and precision (rule "beta")."""
    weight = jnp.abs(activation)[:, None] / variance
    return weight / jnp.maximum(jnp.sum(weight, axis=0), TINY)


def _of_actions(columns: Array, structure: Structure) -> Array:
    """[..., A] from [..., C]: every action's column."""
    if structure.columns == tuple(range(structure.n_columns)):
        return columns
    return columns[..., np.array(structure.columns, np.int32)]


def greedy(values: Array) -> Array:
    """[] i32: the first action with the largest value."""
    return jnp.argmax(values).astype(jnp.int32)


def allowed(values: Array, mask: Array) -> Array:
    """[A] f32: the values, lowest where an action is impossible."""
    return jnp.where(mask, values, LOWEST)


def exploration_rate(since: Array, params: Params) -> Array:
    """[] f32: max(eps_floor, eps0 eps_steps / (eps_steps + since)), `since` [] i32 steps after learning (re)started.

    No floor makes some mistakes permanent, because what is never tried is never contradicted.
    """
    return jnp.maximum(
        params.eps_floor, params.eps0 * params.eps_steps / (params.eps_steps + since.astype(jnp.float32))
    )


def choose(best: Array, mask: Array, since: Array, noise: Array, params: Params) -> Array:
    """The action to take while learning: the greedy one, and a random one at `exploration_rate`.

    Args:
        best: [] i32, the greedy action.
        mask: [A] bool, False where an action is impossible; at least one is possible.
        since: [] i32, steps learnt since learning started, or started anew after a change.
        noise: [2] u32, random words; the first decides whether, the second which.
        params: rates.

    Returns:
        [] i32, the action.
    """
    explores = (noise[0] >> 8).astype(jnp.float32) * jnp.float32(2.0**-24) < exploration_rate(since, params)
    n_possible = jnp.maximum(jnp.sum(mask, dtype=jnp.int32), 1)
    wanted = ((noise[1] >> 8) % n_possible.astype(jnp.uint32)).astype(jnp.int32)
    anything = jnp.argmax(jnp.cumsum(mask.astype(jnp.int32), dtype=jnp.int32) > wanted).astype(jnp.int32)
    return jnp.where(explores, anything, best)
