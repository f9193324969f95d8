"""Out-edges of the nodes that transmit in a round: their rows, and for hubs the rows of the pool."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...graph.layout import GraphArrays, keys_of, relations_of, strengths_of, targets_of
from ..rule import RuleCode, RuleParams
from .state import IN_BOUNDS

Array = jax.Array


class Edges(NamedTuple):
    """Edges row by row. R rows of K.

    Attributes:
        owner: [R] i32, which of the given nodes a row belongs to.
        key: [R, K] i32, packed keys.
        strength: [R, K] f32; 0 where there is no edge.
        n_left_out: [] i32, edges in no row.
        pool_row: [Q] i32, which row of the pool each of the last Q rows is, 0 for none.
    """

    owner: Array
    key: Array
    strength: Array
    n_left_out: Array
    pool_row: Array


def edges_of(arrays: GraphArrays, nodes: Array, is_sending: Array, n_pool: int) -> Edges:
    """The out-edges of nodes.

    Args:
        arrays: the graph.
        nodes: [F] i32; N for nobody.
        is_sending: [F] bool, nodes whose edges matter.
        n_pool: largest number of pool rows to read; 0 leaves out all that lie beyond a node's own row.
    """
    width = arrays.width
    rows = arrays.rows.at[nodes].get(mode=IN_BOUNDS)
    owner = jnp.arange(nodes.shape[0], dtype=jnp.int32)
    degree = jnp.where(is_sending, arrays.out_degree.at[nodes].get(mode=IN_BOUNDS), 0)
    beyond = jnp.maximum(degree - width, 0)
    n_left_out = jnp.sum(beyond, dtype=jnp.int32)
    pool_row = jnp.zeros(0, jnp.int32)
    if n_pool:
        pool_owner, pool_row = _pool_rows(arrays, nodes, beyond, n_pool)
        pool_rows = arrays.pool.at[pool_row].get(mode=IN_BOUNDS)
        rows = jnp.concatenate([rows, pool_rows])
        owner = jnp.concatenate([owner, pool_owner])
        n_left_out = n_left_out - jnp.sum(strengths_of(pool_rows) != 0, dtype=jnp.int32)
    return Edges(owner, keys_of(rows), strengths_of(rows), n_left_out, pool_row)


def _pool_rows(arrays: GraphArrays, nodes: Array, beyond: Array, n_pool: int) -> tuple[Array, Array]:
    """Owners and numbers, [n_pool] each, of the pool rows of all nodes, one node after the other; the rest is row 0."""
    n_rows = (beyond + arrays.width - 1) // arrays.width
    end = jnp.cumsum(n_rows, dtype=jnp.int32)
    start = end - n_rows
    first = arrays.spill.at[nodes].get(mode=IN_BOUNDS) - start
    listed = jnp.arange(n_pool, dtype=jnp.int32)
    # each hub marks where its rows begin; from there on they are its own
    number = jnp.arange(nodes.shape[0], dtype=jnp.int32)
    marks = jnp.zeros(n_pool, jnp.int32)
    marks = marks.at[jnp.where(n_rows > 0, start, n_pool)].set(number, mode="drop", unique_indices=False)
    owner = jax.lax.cummax(marks)
    row = first.at[owner].get(mode=IN_BOUNDS) + listed
    return owner, jnp.where(listed < end[-1], row, 0)


def let_through(
    arrays: GraphArrays, nodes: Array, retention: Array, edges: Edges, code: RuleCode, params: RuleParams
) -> Array:
    """[R, K] f32: m of the formulas in `rule.py`, what each edge lets through.

    Args:
        arrays: the graph.
        nodes: [F] i32, owners of the rows.
        retention: [F] or [] f32, theirs.
        edges: theirs.
        code: of the rule.
        params: of the rule.
    """
    share = _normalised(arrays, nodes, code, params)
    if code.spends:
        share = share * (1.0 - retention)
    share = jnp.broadcast_to(share, nodes.shape).at[edges.owner].get(mode=IN_BOUNDS)
    decay = jnp.asarray(params.decay).at[relations_of(edges.key)].get(mode=IN_BOUNDS)
    through: Array = edges.strength * decay * share[:, None]
    return through


def _normalised(arrays: GraphArrays, nodes: Array, code: RuleCode, params: RuleParams) -> Array:
    if code.normalisation == "none":
        return jnp.ones((), jnp.float32)
    if code.normalisation == "row":
        total = arrays.out_strength.at[nodes].get(mode=IN_BOUNDS)
        return jnp.asarray(jnp.where(total > 0, 1.0 / jnp.where(total > 0, total, 1.0), 0.0))
    degree = jnp.maximum(arrays.out_degree.at[nodes].get(mode=IN_BOUNDS), 1).astype(jnp.float32)
    match code.normalisation:
        case "sqrt":
            return jax.lax.rsqrt(degree)
        case "capped_sqrt":
            return jnp.minimum(1.0, jnp.sqrt(params.degree_cap / degree))
        case _:
            return jnp.asarray(1.0 / degree)


def targets(edges: Edges, is_sending: Array, nobody: int) -> tuple[Array, Array]:
    """Targets [R K] i32 of edges that carry something and which these are, [R K] bool; `nobody` for the others."""
    is_used = (edges.strength != 0) & is_sending.at[edges.owner].get(mode=IN_BOUNDS)[:, None]
    target = jnp.where(is_used, targets_of(edges.key), nobody)
    return target.reshape(-1), is_used.reshape(-1)
