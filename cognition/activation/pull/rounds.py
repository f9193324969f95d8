"""The rounds of a rule, whatever form the edges have: every kernel that updates all nodes runs this one loop.

A kernel brings `pull`, which says what arrives where; all else of the rule is here. Arrays of nodes are [N], [B, N] or
[N, B], with the axis of the nodes given by `axis`: a batch costs one call, and its queries still stop one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..one_round import capped, settled, transmitted
from ..rule import RuleCode, RuleParams

Array = jax.Array
Pull = Callable[[Array], tuple[Array, Array | None]]
"""x -> (inflow, how many exciting in-edges transmit; None where no node needs to know)."""
Inject = Callable[[Any], Array]
"""Number of a round -> what is injected after it; 0 for before the first."""


class Nodes(NamedTuple):
    """What a round needs to know of every node; arrays that broadcast with the activation.

    Attributes:
        base: C.
        retention: rho.
        need: how many exciting in-edges must transmit, as a float.
        is_dangling: 1 without out-edges, else 0.
    """

    base: Array
    retention: Array
    need: Array
    is_dangling: Array


class Round(NamedTuple):
    """One round, as `record` sees it.

    Attributes:
        number: [] i32, 1 for the first.
        transmitted: x.
        ready: which nodes took up what arrived; None = all.
        activation: A after the round.
    """

    number: Array
    transmitted: Array
    ready: Array | None
    activation: Array


Record = Callable[[Any, Round], Any]
"""(what was recorded so far, a round) -> what is recorded now."""


class End(NamedTuple):
    """The state after the last round, and the activation before it. `rounds` keeps the axis of the nodes, length 1."""

    before: Array
    activation: Array
    raw: Array
    rounds: Array
    recorded: Any


class _Carry(NamedTuple):
    number: Array
    before: Array
    activation: Array
    raw: Array
    held: Array
    rounds: Array
    is_done: Array
    recorded: Any


def run_rounds(
    pull: Pull,
    nodes: Nodes,
    inject: Inject,
    code: RuleCode,
    params: RuleParams,
    *,
    is_timed: bool,
    axis: int = 0,
    record: Record | None = None,
    recorded: Any = (),
) -> End:
    """Make the rounds of a rule. A fixed number of them can be differentiated in both directions.

    Args:
        pull: what arrives, for what is transmitted.
        nodes: of the graph.
        inject: what is injected.
        code: of the rule.
        params: of the rule; only its numbers are read.
        is_timed: whether anything is injected after a round; else `inject` is asked for 0 only.
        axis: of the nodes, 0 or -1.
        record: called in every round, with arrays of one query only.
        recorded: what `record` starts from.
    """
    held = inject(0)
    activation, raw = capped(held, code, params)
    shape = list(held.shape)
    shape[axis] = 1
    carry = _Carry(
        number=jnp.int32(0),
        before=activation,
        activation=activation,
        raw=raw,
        held=held if is_timed else jnp.zeros((), held.dtype),  # what does not change is not carried
        rounds=jnp.zeros(shape, jnp.int32),
        is_done=jnp.zeros(shape, bool),
        recorded=recorded,
    )

    def body(carry: _Carry) -> _Carry:
        following = _round(carry, pull, nodes, inject, held, code, params, is_timed, axis, record)
        if not code.stops:
            return following
        change = _change(following, axis)
        stopped = carry.is_done | (change < params.tolerance)
        if held.ndim > 1:  # queries that have stopped stay as they are
            kept = carry.is_done
            following = following._replace(
                before=jnp.where(kept, carry.before, following.before),
                activation=jnp.where(kept, carry.activation, following.activation),
                raw=jnp.where(kept, carry.raw, following.raw),
            )
        return following._replace(rounds=carry.rounds + ~carry.is_done, is_done=stopped)

    if not code.rounds:  # what records a round cannot even be compiled
        last = carry
        rounds = carry.rounds
    elif code.stops:
        last = jax.lax.while_loop(lambda carry: (carry.number < code.rounds) & ~jnp.all(carry.is_done), body, carry)
        rounds = last.rounds
    else:
        last = jax.lax.fori_loop(0, code.rounds, lambda _, carry: body(carry), carry)
        rounds = jnp.full(shape, code.rounds, jnp.int32)
    return End(last.before, last.activation, last.raw, rounds, last.recorded)


def _round(
    carry: _Carry,
    pull: Pull,
    nodes: Nodes,
    inject: Inject,
    initial: Array,
    code: RuleCode,
    params: RuleParams,
    is_timed: bool,
    axis: int,
    record: Record | None,
) -> _Carry:
    number = carry.number + jnp.int32(1)
    before, held = carry.activation, carry.held if is_timed else initial
    x = transmitted(before, code, params)
    inflow, count = pull(x)
    ready = None if count is None else count >= nodes.need
    if ready is not None:
        inflow = jnp.where(ready, inflow, 0.0)
    if code.dangling:
        inflow = inflow + _returned(x, held, nodes, axis)
    raw = settled(before, inflow, held, nodes.retention, nodes.base, code, params)
    if is_timed:
        added = inject(number)
        held, raw = held + added, raw + added
    activation, raw = capped(raw, code, params)
    recorded = carry.recorded
    if record is not None:
        recorded = record(recorded, Round(number, x, ready, activation))
    return _Carry(
        number, before, activation, raw, held if is_timed else carry.held, carry.rounds, carry.is_done, recorded
    )


def _returned(x: Array, held: Array, nodes: Nodes, axis: int) -> Array:
    """What nodes without out-edges transmit returns to the sources, in their proportion."""
    total = jnp.sum(held, axis=axis, keepdims=True)
    share = jnp.where(total > 0, held / jnp.where(total > 0, total, 1.0), 0.0)
    return jnp.sum(x * nodes.is_dangling, axis=axis, keepdims=True) * share


def _change(carry: _Carry, axis: int) -> Array:
    return jnp.max(jnp.abs(carry.activation - carry.before), axis=axis, keepdims=True)
