"""Evidence: what the paths of an observation say about each decision.

With x_k the minimum activation along path k, f_a an action's declared factor and s the stake of the case,

    G_a = s f_a sum_k x_k wG_ka          expected gain
    H_a = s f_a sum_k x_k wH_ka          expected loss
    S_a = G_a - (1 + risk) H_a
    U_a = S_a + curiosity sd_a + caution sd_best [a deliberates],   sd_a = s f_a sqrt(sum_k x_k^2 v_ka)

so that S_a is a sum of one term per path and nothing else. All are in units of the reward bound.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .config import Params, Structure
from .edges import Edges, Paths, rows
from .shapes import check_shape

Array = jax.Array


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
    scale = paths.stake * np.array(structure.factors, np.float32)
    both = _of_actions((paths.activation @ net).reshape(2, -1), structure)  # [2, A]
    deviation = jnp.sqrt(_of_actions(jnp.square(paths.activation) @ variance, structure)) * scale
    gain, loss = both[0] * scale, both[1] * scale
    score = gain - (1 + params.risk) * loss
    best = greedy(score)
    deliberates = np.array(structure.deliberation, np.float32)
    bonus = params.curiosity * deviation + params.caution * deviation[best] * deliberates
    return Evidence(gain, loss, score, deviation, score + bonus)


def _of_actions(columns: Array, structure: Structure) -> Array:
    """[..., A] from [..., C]: every action's column."""
    if structure.columns == tuple(range(structure.n_columns)):
        return columns
    return columns[..., np.array(structure.columns, np.int32)]


def greedy(values: Array) -> Array:
    """[] i32: the first action with the largest value."""
    return jnp.argmax(values).astype(jnp.int32)


def choose(evidence: Evidence, step: Array, noise: Array, params: Params) -> Array:
    """The action to take while learning: the greedy one, and a random one at a rate that falls to a floor.

    eps = max(eps_floor, eps0 eps_steps / (eps_steps + step)); no floor makes some mistakes permanent, because what is
    never tried is never contradicted.

    Args:
        evidence: of the observation at hand.
        step: [] i32, steps learnt so far.
        noise: [2] u32, random words; the first decides whether, the second which.
        params: rates.

    Returns:
        [] i32, the action.
    """
    n_actions = evidence.urge.shape[0]
    eps = jnp.maximum(params.eps_floor, params.eps0 * params.eps_steps / (params.eps_steps + step.astype(jnp.float32)))
    explores = (noise[0] >> 8).astype(jnp.float32) * jnp.float32(2.0**-24) < eps
    anything = ((noise[1] >> 8) % jnp.uint32(n_actions)).astype(jnp.int32)
    return jnp.where(explores, anything, greedy(evidence.urge))
