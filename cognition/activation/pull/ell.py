"""The kernel of middling graphs: for each slot of a row, one gather of what the sources of that slot transmit.

The in-edges of a node fill a row of K slots, and further rows behind those of all nodes where there are more. Slots
come first in memory (`[K, P]`): one slot of all rows is one flat gather. K is a loop, and so are the rounds around it,
since a gather that reads another gather's result would be worked out once for every slot that reads it.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from ..rule import SpreadRule
from .differentiable import differentiable_spread
from .packing import MOST_INLINE
from .rounds import Pull

Array = jax.Array

AT_ONCE = 4
"""Slots of one turn of the loop."""

_ONE = jax.lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
_ROWS = jax.lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))


def taken(values: Array, index: Array) -> Array:
    """`values[index]` of [N] or [N, B] values and [P] i32 indices, which must be in range: nothing checks them."""
    rows = values.ndim > 1
    return jax.lax.gather(
        values,
        index[:, None],
        _ROWS if rows else _ONE,
        (1, values.shape[1]) if rows else (1,),
        mode=jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def excites(weights: Array) -> Array:
    """Which weights are of exciting edges: those above 0, and -0.0, which an edge has that lets nothing through."""
    bits = jax.lax.bitcast_convert_type(weights, jnp.dtype(f"int{8 * weights.dtype.itemsize}"))
    # read as whole numbers, 0.0 is 0, those above it are above 0, and -0.0 is the least: less 1 it is the largest
    return bits - 1 >= 0


def ell_pull(source: Array, weights: Array, owner: Array, *, counts: bool) -> Pull:
    """What arrives by rows of in-edges.

    Args:
        source: [K, P] i32, source of every slot; any node in an empty one. P - len(owner) nodes come first.
        weights: [K, P] f32, 0 in empty slots.
        owner: [Q] i32 ascending, node to which each further row belongs.
        counts: whether to count exciting in-edges that transmit: those whose weight is above 0 or -0.0.

    Returns:
        A pull for x of shape [S] or [S, B].
    """
    source, weights, owner = jnp.asarray(source), jnp.asarray(weights), jnp.asarray(owner)  # a loop indexes them
    n_slots, n_rows = source.shape
    n_nodes = n_rows - owner.shape[0]
    # one slot a turn for few nodes, see `packing.MOST_INLINE`
    at_once = math.gcd(n_slots, AT_ONCE) if n_nodes > MOST_INLINE else 1

    def pull(x: Array) -> tuple[Array, Array | None]:
        per_row = x.ndim > 1

        def slots(turn: Array, sums: tuple[Array, ...]) -> tuple[Array, ...]:
            for part in range(at_once):
                found = taken(x, source[turn * at_once + part])
                weight = weights[turn * at_once + part]
                weight = weight[:, None] if per_row else weight
                inflow = sums[0] + found * weight
                sums = (inflow, sums[1] + ((found > 0) & excites(weight))) if counts else (inflow,)
            return sums

        shape = (n_rows, *x.shape[1:])
        dtype = jnp.result_type(x, weights)
        start = (jnp.zeros(shape, dtype), jnp.zeros(shape, jnp.float32))[: 1 + counts]
        sums = tuple(_gathered(rows, owner, n_nodes) for rows in jax.lax.fori_loop(0, n_slots // at_once, slots, start))
        return sums[0], sums[1] if counts else None

    return pull


def _gathered(rows: Array, owner: Array, n_nodes: int) -> Array:
    if owner.shape[0] == 0:
        return rows
    return rows[:n_nodes].at[owner].add(rows[n_nodes:], mode="promise_in_bounds", indices_are_sorted=True)


def ell_spread(
    source: Array,
    weights: Array,
    sources: Array,
    rule: SpreadRule,
    *,
    owner: Array | None = None,
    base: Array | float = 1.0,
    retention: Array | float | None = None,
    need: Array | None = None,
) -> Array:
    """Activation of every node at the end, as `dense_spread` gives it, for more nodes than a matrix holds.

    Args:
        source: [K, P] i32, the sources of up to K edges that reach a node. The first P - Q rows are the nodes'. These
            and `owner` must be in [0, P - Q): nothing checks it, and what others read is undefined.
        weights: [K, P], what these edges let through; 0 in empty slots. `ell_form(edges, rule)` makes an `EllForm` of
            an `EdgeList`, which has `source`, `weights` and `owner`.
        sources: [S] or [rounds + 1, S], S = P - Q, see `dense_spread`.
        rule: the rule, see `dense_spread`.
        owner: [Q] i32 ascending, nodes of further rows; None = no further rows.
        base: [S] or a number.
        retention: [S] or a number; None = that of the rule.
        need: [S]; a conjunction counts edges of weight above 0. An exciting edge of which nothing is left is -0.0
            in `ell_form`, and counted too.

    Returns:
        [S], of the dtype of the arguments.

    Raises:
        TypeError: `source` or `owner` are not whole numbers.
        ValueError: shapes do not fit, or the rule has `dangling`. From JAX, about `lax.while_loop`: reverse mode
            through a rule with `tolerance`.
    """
    source, weights = jnp.asarray(source), jnp.asarray(weights)
    if source.ndim != 2 or weights.shape != source.shape:
        raise ValueError(f"`source` and `weights` must have one shape [K, P], got {source.shape} and {weights.shape}.")
    owner = jnp.zeros(0, jnp.int32) if owner is None else jnp.asarray(owner)
    if owner.ndim != 1 or owner.shape[0] > source.shape[1]:
        raise ValueError(f"`owner` must have shape [Q] with Q <= P = {source.shape[1]}, got {owner.shape}.")
    for name, given in (("source", source), ("owner", owner)):
        if given.size and not jnp.issubdtype(given.dtype, jnp.integer):
            raise TypeError(f"`{name}` must be whole numbers, got {given.dtype}.")
    pull = ell_pull(source, weights, owner, counts=need is not None and rule.conjunctions)
    return differentiable_spread(pull, source.shape[1] - owner.shape[0], sources, rule, base, retention, need)
