"""The edges of the memory graph that end in decisions, as arrays.

Every context node has one row: an edge to each decision's *gain* dendrite, then one to each decision's *loss* dendrite.
An edge has an excitatory and an inhibitory strength in [0, 1], of which one is 0 (strengthening one first weakens the
other), so that one net weight in [-1, 1] is their whole truth: exc = max(net, 0), inh = max(-net, 0).

In the shapes below N is the number of nodes, P of paths (a node switched on by an observation), C of columns (decisions
with edges of their own). Arrays are flat, because one-dimensional scatters are written in place and are the fastest.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .config import Structure
from .shapes import check_shape

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
    """All edges from context nodes to decisions.

    Attributes:
        net: [N * 2C] f32 in [-1, 1], net strength; row of node k = gain of C columns, then loss of C columns.
        variance: [N * C] f32, uncertainty of the net strength, shared by both channels.
        activity: [N * 2C] i32; row of node k = step of the last decision that each of the C edges took part in, NEVER
            before, then the number of decisions that it took part in.
    """

    net: Array
    variance: Array
    activity: Array


def initial_edges(
    structure: Structure, variances: npt.NDArray[np.float32], bias_gain: npt.NDArray[np.float32] | None = None
) -> Edges:
    """Edges before any experience.

    Args:
        structure: numbers of nodes and columns.
        variances: [N] f32, initial variance of the edges from each node.
        bias_gain: [C] f32 in [-1, 1], initial net gain of the bias node's edges; 0 by default.
    """
    n_nodes, n_columns = structure.n_nodes, structure.n_columns
    check_shape("variances", variances, n_nodes)
    net = np.zeros((n_nodes, 2 * n_columns), np.float32)
    if bias_gain is not None:
        check_shape("bias_gain", bias_gain, n_columns)
        net[0, :n_columns] = np.clip(bias_gain, -1.0, 1.0)
    activity = np.zeros((n_nodes, 2, n_columns), np.int32)
    activity[:, 0] = NEVER
    return Edges(
        net=jnp.asarray(net.reshape(-1)),
        variance=jnp.asarray(np.repeat(variances, n_columns)),
        activity=jnp.asarray(activity.reshape(-1)),
    )


def rows(edges: Edges, paths: Paths, structure: Structure) -> tuple[Array, Array]:
    """Strengths and variances of all edges from the nodes of `paths`: [P, 2C] f32 and [P, C] f32."""
    net = edges.net.reshape(structure.n_nodes, 2 * structure.n_columns)
    variance = edges.variance.reshape(structure.n_nodes, structure.n_columns)
    return net.at[paths.nodes].get(mode=IN_BOUNDS), variance.at[paths.nodes].get(mode=IN_BOUNDS)


def mark_activated(edges: Edges, paths: Paths, column: Array, step: Array, structure: Structure) -> Edges:
    """Note that a decision was made along `paths`. `column` [] i32, `step` [] i32."""
    is_on = paths.activation != 0
    last = paths.nodes * (2 * structure.n_columns) + column
    before = edges.activity.at[last].get(mode=IN_BOUNDS)
    # differences are added rather than values set: a switched-off path may name a node twice
    changes = jnp.concatenate([jnp.where(is_on, step - before, 0), is_on.astype(jnp.int32)])
    cells = jnp.concatenate([last, last + structure.n_columns])
    return dataclasses.replace(edges, activity=edges.activity.at[cells].add(changes, mode=IN_BOUNDS))
