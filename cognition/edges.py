"""The edges of the memory graph that end in decisions, as arrays.

Every node has one row: an edge to each decision's *gain* dendrite, then one to each decision's *loss* dendrite. Where
situations have edges to all decisions at once (`Structure.common`), the last column stands for those. An edge has an
excitatory and an inhibitory strength in [0, 1], of which one is 0 (strengthening one first weakens the other), so that
one net weight in [-1, 1] is their whole truth: exc = max(net, 0), inh = max(-net, 0).

In the shapes below N is the number of nodes, P of paths (a node switched on by an observation), C of columns (decisions
with edges of their own), W = C or C + 1 of columns with the common one. Arrays are flat, because one-dimensional
scatters are written in place and are the fastest.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .shapes import check_shape
from .structure import Structure

Array = jax.Array
NEVER = -1
"""`last_activated` of an edge that has never been on the path of a decision."""
# the encoder's node numbers are checked where they are made; a clamp in every gather costs a kernel
IN_BOUNDS = "promise_in_bounds"


class Paths(NamedTuple):
    """Paths that one observation opens.

    Attributes:
        nodes: [P] i32, node numbers in [0, N).
        activation: [P] f32, minimum activation along the path; 0 = switched off.
        stake: [] f32, what outcomes are proportional to in this case.
    """

    nodes: Array
    activation: Array
    stake: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Edges:
    """All edges from nodes to decisions.

    Attributes:
        net: [N * 2W] f32 in [-1, 1], net strength; row of node k = gain of W columns, then loss of W columns.
        variance: [N * W] f32, uncertainty of the net strength, shared by both channels.
        prior: [N] f32, variance of the edges from each node before any lesson; never learnt.
        activity: [N * 2C] i32; row of node k = step of the last decision that each of the C edges took part in, NEVER
            before, then the number of decisions that it took part in.
    """

    net: Array
    variance: Array
    prior: Array
    activity: Array


def initial_edges(
    structure: Structure,
    variances: npt.NDArray[np.float32],
    bias_gain: npt.NDArray[np.float32] | None = None,
    advice: float = 0.0,
    optimism: float = 0.0,
) -> Edges:
    """Edges before any experience.

    Args:
        structure: numbers of nodes and columns.
        variances: [N] f32, initial variance of the edges from each node.
        bias_gain: [C] f32 in [-1, 1], initial net gain of the bias node's edges; 0 by default.
        advice: initial net gain of the edge from an adviser's word to the action that it names.
        optimism: initial evidence of gain of every action, spread over the observed nodes other than the bias.
    """
    n_nodes, n_columns, width = structure.n_nodes, structure.n_columns, structure.width
    check_shape("variances", variances, n_nodes)
    net = np.zeros((n_nodes, 2 * width), np.float32)
    if optimism:
        net[1 : structure.n_context, :n_columns] = optimism / max(1, structure.n_base - 1)
    if bias_gain is not None:
        check_shape("bias_gain", bias_gain, n_columns)
        net[0, :n_columns] = np.clip(bias_gain, -1.0, 1.0)
    if structure.advice:
        for action, column in enumerate(structure.columns):
            net[structure.first_advice + action, column] = advice
    activity = np.zeros((n_nodes, 2, n_columns), np.int32)
    activity[:, 0] = NEVER
    return Edges(
        net=jnp.asarray(net.reshape(-1)),
        variance=jnp.asarray(np.repeat(variances, width)),
        prior=jnp.asarray(variances, jnp.float32),
        activity=jnp.asarray(activity.reshape(-1)),
    )


def rows(edges: Edges, paths: Paths, structure: Structure) -> tuple[Array, Array]:
    """Strengths and variances of all edges from the nodes of `paths`: [P, 2W] f32 and [P, W] f32."""
    net = edges.net.reshape(structure.n_nodes, 2 * structure.width)
    variance = edges.variance.reshape(structure.n_nodes, structure.width)
    return net.at[paths.nodes].get(mode=IN_BOUNDS), variance.at[paths.nodes].get(mode=IN_BOUNDS)


def mark_activated(edges: Edges, paths: Paths, column: Array, step: Array, structure: Structure) -> Edges:
    """Note that a decision was made along `paths`. `column` [] i32, `step` [] i32."""
    is_on = paths.activation != 0
    last = paths.nodes * (2 * structure.n_columns) + column
    # a switched-off path may name a node twice: its step is dropped beyond the end, its count is 0
    marked = edges.activity.at[jnp.where(is_on, last, edges.activity.shape[0])].set(step, mode="drop")
    uses = last + structure.n_columns
    return dataclasses.replace(edges, activity=marked.at[uses].add(is_on.astype(jnp.int32), mode=IN_BOUNDS))
