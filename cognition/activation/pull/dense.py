"""The kernel of small graphs: one product of a vector with a matrix in each round."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ..rule import SpreadRule
from .differentiable import differentiable_spread
from .rounds import Pull

Array = jax.Array


def dense_pull(weights: Array, exciting: Array) -> Pull:
    """What arrives by a matrix of weights.

    Args:
        weights: [S, S] f32, or [B, S, S] for one graph of its own for each query.
        exciting: the same shape, numbers of exciting edges; [0, 0] or [B, 0, 0] where no node counts them.

    Returns:
        A pull for x of shape [S] or [B, S].
    """

    def product(x: Array, matrix: Array) -> Array:
        subscripts = "...s,...st->...t" if matrix.ndim > 2 else "...s,st->...t"
        return jnp.einsum(subscripts, x, matrix, precision=jax.lax.Precision.HIGHEST)

    def pull(x: Array) -> tuple[Array, Array | None]:
        count = None
        if exciting.shape[-1]:
            count = product((x > 0).astype(exciting.dtype), exciting)
        return product(x, weights), count

    return pull


def dense_spread(
    weights: Array,
    sources: Array,
    rule: SpreadRule,
    *,
    base: Array | float = 1.0,
    retention: Array | float | None = None,
    need: Array | None = None,
    exciting: Array | None = None,
) -> Array:
    """Activation of every node at the end, as a pure function of arrays: for `jax.grad`, `jax.vmap` and `jax.jit`.

    Its derivative with respect to weights, sources, base and retention is exact for a fixed number of rounds. It is 0
    through a node at the cap and through a node below a hard threshold; `rule.softness` makes the threshold gradual.

    Args:
        weights: [S, S], what the edge from row to column lets through: strength, decay and normalisation included.
            `dense_form(edges, rule).weights` makes them of an `EdgeList`, from `rule.weights(edges)`, one for each
            edge; `rule.bases(edges)` and `rule.retentions(edges)` are its `base` and its `retention`.
        sources: [S], injected before the first round; or [rounds + 1, S], injected after each round, 0 first.
        rule: the rule; its decay and its normalisation are not applied, see `weights`. A rule with `tolerance` can be
            differentiated in forward mode only (`jax.jvp`): `jax.grad` needs `tolerance=0`, all rounds.
        base: [S] or a number in [0, 1], base level C.
        retention: [S] or a number in [0, 1]; None = that of the rule.
        need: [S], exciting in-edges that must transmit before a node takes up anything; None = 0.
        exciting: [S, S], how many exciting edges lead from row to column, as in `dense_form`; None = 1 where the
            weight is above 0.

    Returns:
        [S], of the dtype of the arguments.

    Raises:
        ValueError: shapes do not fit, or the rule returns what dangling nodes get (`dangling`), which a matrix of
            weights cannot tell from nodes of weight 0. From JAX, about `lax.while_loop`: reverse mode through a rule
            with `tolerance`.
    """
    weights = jnp.asarray(weights)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"`weights` must have shape [S, S], got {weights.shape}.")
    size = weights.shape[0]
    if exciting is not None and np.shape(exciting) != weights.shape:
        raise ValueError(f"`exciting` must have the shape of `weights`, {weights.shape}, got {np.shape(exciting)}.")
    if need is not None and rule.conjunctions:
        exciting = (weights > 0).astype(weights.dtype) if exciting is None else jnp.asarray(exciting)
    else:
        exciting = jnp.zeros((0, 0), weights.dtype)
    return differentiable_spread(dense_pull(weights, exciting), size, sources, rule, base, retention, need)
