"""Spreading on a big graph at a cost that does not depend on its size: only what is active is looked at.

Each round reads the rows of the nodes that transmit and adds up what reaches their targets. Which of several entries
means one node is settled by writing and reading back, without sorting. What a query may touch is bounded by `Limits`;
whatever does not fit is counted in `Activation.dropped`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..graph.layout import GraphArrays
from .frontier_edges import edges_of, let_through, targets
from .frontier_state import IN_BOUNDS, Counts, Here, Scratch, new_scratch, opened, reach
from .frontier_top import top_of
from .result import Activation, Dropped
from .rule import RuleCode, RuleParams, capped, settled, transmitted

Array = jax.Array

UNROLLED = 5
"""Rounds up to which each is compiled with its own sizes; more share one loop, at the last of the limits."""

__all__ = ["Limits", "Scratch", "frontier_many", "frontier_spread", "new_scratch", "supports"]


class Limits(NamedTuple):
    """How much of a graph a query may look at. The last number of a tuple holds for all later rounds.

    Attributes:
        active: nodes that may transmit, by round; never fewer than sources in the first.
        pool: rows of the overflow pool that may be read, by round; read for exact hubs only.
        touched: nodes that may be reached in all, where more than UNROLLED rounds or a tolerance make a loop; fewer
            rounds hold whatever they reach.
    """

    active: tuple[int, ...] = (8, 64, 256)
    pool: tuple[int, ...] = (64, 256, 1024)
    touched: int = 8192

    def active_in(self, number: int, n_sources: int) -> int:
        """Nodes that may transmit in a round, 1 for the first."""
        size = self.active[min(number, len(self.active)) - 1]
        return max(size, n_sources) if number == 1 else size

    def pool_in(self, number: int) -> int:
        """Pool rows in a round, 1 for the first."""
        return self.pool[min(number, len(self.pool)) - 1]


def supports(code: RuleCode) -> str | None:
    """What of a rule a frontier cannot do, in words; None where it can do all."""
    if code.normalisation == "symmetric":
        return 'normalisation="symmetric" needs what reaches every node'
    if code.dangling:
        return "dangling=True needs the activation of all nodes without out-edges"
    return None


class Sending(NamedTuple):
    """Nodes that transmit in a round. F places.

    Attributes:
        place: [F] i32.
        node: [F] i32, N for nobody.
        x: [F] f32, what they transmit, 0 for nobody.
        n_dropped: [] i32, nodes that would transmit and found no place.
    """

    place: Array
    node: Array
    x: Array
    n_dropped: Array


class Query(NamedTuple):
    """What stays the same in all rounds of a query.

    Attributes:
        source: [S] i32, places of the sources.
        value: [S] f32.
        when: [S] i32, rounds after which they are injected; None = all before the first.
    """

    source: Array
    value: Array
    when: Array | None


class Course(NamedTuple):
    """A query under way."""

    scratch: Scratch
    here: Here
    counts: Counts


def frontier_spread(
    arrays: GraphArrays,
    scratch: Scratch,
    nodes: Array,
    values: Array,
    rounds: Array | None,
    code: RuleCode,
    params: RuleParams,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    *,
    top: int = 32,
    evidence: int = 0,
    hubs: bool = True,
) -> tuple[Activation, Scratch]:
    """Spread activation from a few sources.

    Args:
        arrays: the graph.
        scratch: of its capacity; donate it.
        nodes: [S] i32, sources; -1 = none.
        values: [S] f32 >= 0, what they get.
        rounds: [S] i32, after which round; None = all before the first, which is faster.
        code: of the rule, static.
        params: of the rule; a retention per node has one for each node given out.
        limits: static.
        top: how many nodes to return, static.
        evidence: how many flows to return, with the history; 0 = neither. Static.
        hubs: whether to read edges beyond the row of a node; else they are left out and counted. Static.

    Returns:
        The activation and the scratch for the next query.

    Raises:
        ValueError: while tracing, if the rule is one that a frontier cannot have.
    """
    if (refused := supports(code)) is not None:
        raise ValueError(f"`code` must be of a rule that a frontier can follow, but {refused}; use a full sweep.")
    if evidence:
        raise NotImplementedError
    nobody = arrays.capacity
    n_sources = nodes.shape[0]
    scratch = opened(scratch, n_sources + _n_slots(arrays.width, code.rounds, limits, n_sources, hubs))
    is_source = nodes >= 0
    reached = reach(scratch, 0, nodes, is_source)
    values = jnp.where(is_source, values, 0.0)
    query = Query(reached.place, values, rounds)
    held = _injected(query, jnp.zeros(n_sources, jnp.float32), 0)
    empty = Here(*(jnp.zeros(0, kind) for kind in (jnp.int32, *(jnp.float32,) * 4, jnp.int32, jnp.float32)))
    here = _joined(arrays, empty, jnp.where(reached.is_first, nodes, nobody), code, params)
    activation, raw = capped(held, code, params)
    keeps_held = code.sources == "held" or code.restarts
    here = here._replace(activation=activation, raw=raw, held=held if keeps_held else jnp.float32(0.0))
    none = jnp.int32(0)
    course = Course(reached.scratch, here, Counts(none, none, none))
    before = activation
    for number in range(1, code.rounds + 1):
        before = course.here.activation
        n_active = limits.active_in(number, n_sources)
        course = _round(arrays, course, query, number, code, params, n_active, limits.pool_in(number) if hubs else 0)
    here = course.here
    change = jnp.max(jnp.abs(here.activation - jnp.pad(before, (0, here.node.shape[0] - before.shape[0]))))
    is_active = (here.activation >= params.threshold) & (here.activation > 0)
    best = top_of(here.raw, here.node, is_active, top)
    activation = Activation(
        nodes=best.node,
        values=jnp.minimum(best.raw, params.cap) if code.is_capped else best.raw,
        raw=best.raw,
        n_active=jnp.sum(is_active, dtype=jnp.int32),
        rounds=jnp.int32(code.rounds),
        change=change,
        dropped=Dropped(*course.counts, flows=none),
    )
    return activation, Scratch(course.scratch.place, course.scratch.start + here.node.shape[0])


def _n_slots(width: int, n_rounds: int, limits: Limits, n_sources: int, hubs: bool) -> int:
    rows = sum(
        limits.active_in(number, n_sources) + (limits.pool_in(number) if hubs else 0)
        for number in range(1, n_rounds + 1)
    )
    return rows * width


def _round(
    arrays: GraphArrays,
    course: Course,
    query: Query,
    number: Any,
    code: RuleCode,
    params: RuleParams,
    n_active: int,
    n_pool: int,
) -> Course:
    here, nobody = course.here, arrays.capacity
    n_here = here.node.shape[0]
    sending = _sending(here, transmitted(here.activation, code, params), n_active, nobody)
    is_sending = sending.x > 0
    edges = edges_of(arrays, sending.node, is_sending, n_pool)
    target, is_used = targets(edges, is_sending, nobody)
    reached = reach(course.scratch, n_here, target, is_used)
    retention = here.retention.at[sending.place].get(mode=IN_BOUNDS) if here.retention.ndim else here.retention
    through = let_through(arrays, sending.node, retention, edges, code, params)
    amount = through * sending.x.at[edges.owner].get(mode=IN_BOUNDS)[:, None]
    here = _joined(arrays, here, jnp.where(reached.is_first, target, nobody), code, params)
    n_now = here.node.shape[0]
    inflow = jnp.zeros(n_now, jnp.float32)
    inflow = inflow.at[reached.place].add(jnp.where(is_used, amount.reshape(-1), 0.0), mode=IN_BOUNDS)
    if code.conjunctions:
        inflow = _gated(here, inflow, reached.place, is_used & (edges.strength > 0).reshape(-1))
    raw = settled(here.activation, inflow, here.held, here.retention, here.base, code, params)
    if query.when is not None:
        added = _injected(query, jnp.zeros(n_now, jnp.float32), number)
        raw = raw + added
        here = here._replace(held=here.held + added if here.held.ndim else here.held)
    activation, raw = capped(raw, code, params)
    counts = Counts(
        course.counts.active + sending.n_dropped, course.counts.touched, course.counts.edges + edges.n_left_out
    )
    return Course(reached.scratch, here._replace(activation=activation, raw=raw), counts)


def _injected(query: Query, zeros: Array, number: Any) -> Array:
    now = query.value if query.when is None else jnp.where(query.when == number, query.value, 0.0)
    return zeros.at[query.source].add(now, mode=IN_BOUNDS)


def _sending(here: Here, x: Array, n_active: int, nobody: int) -> Sending:
    n_here = x.shape[0]
    if n_active >= n_here:
        return Sending(jnp.arange(n_here, dtype=jnp.int32), here.node, x, jnp.int32(0))
    rank = jnp.cumsum(x > 0, dtype=jnp.int32)
    n_all = rank[-1]

    def first() -> Array:
        slot = jnp.where((x > 0) & (rank <= n_active), rank - 1, n_active)
        listed = jnp.full(n_active + 1, n_here, jnp.int32)
        return listed.at[slot].set(jnp.arange(n_here, dtype=jnp.int32), mode=IN_BOUNDS)[:n_active]

    def strongest() -> Array:
        return jax.lax.top_k(x, n_active)[1].astype(jnp.int32)

    place = jax.lax.cond(n_all > n_active, strongest, first)
    is_there = place < n_here
    place = jnp.minimum(place, n_here - 1)
    node = jnp.where(is_there, here.node.at[place].get(mode=IN_BOUNDS), nobody)
    sent = jnp.where(is_there, x.at[place].get(mode=IN_BOUNDS), 0.0)
    return Sending(place, node, sent, jnp.maximum(n_all - n_active, 0))


def _joined(arrays: GraphArrays, here: Here, nodes: Array, code: RuleCode, params: RuleParams) -> Here:
    """The reached nodes with further places, [E], for new nodes; N for nobody."""

    def longer(values: Array, more: Array) -> Array:
        return jnp.concatenate([values, more])

    n_new = nodes.shape[0]
    base, need, retention = jnp.float32(1.0), jnp.int32(0), jnp.asarray(params.retention, jnp.float32)
    if code.uses_base:
        base = longer(here.base, arrays.base.at[nodes].get(mode=IN_BOUNDS))
    if code.conjunctions:
        need = longer(here.need, arrays.need.at[nodes].get(mode=IN_BOUNDS))
    if retention.ndim or code.spends:
        own = retention.at[nodes].get(mode="clip") if retention.ndim else jnp.broadcast_to(retention, (n_new,))
        if code.spends:  # who has no out-edge can spend nothing
            own = jnp.where(arrays.out_degree.at[nodes].get(mode=IN_BOUNDS) == 0, 1.0, own)
        retention = longer(here.retention, own)
    zeros = jnp.zeros(n_new, jnp.float32)
    return Here(
        node=longer(here.node, nodes),
        activation=longer(here.activation, zeros),
        raw=longer(here.raw, zeros),
        held=longer(here.held, zeros) if here.held.ndim else here.held,
        base=base,
        need=need,
        retention=retention,
    )


def _gated(here: Here, inflow: Array, place: Array, is_exciting: Array) -> Array:
    """What arrives, 0 for conjunctions that still wait; counted only where there is one."""

    def counted() -> Array:
        count = jnp.zeros(inflow.shape[0], jnp.int32).at[place].add(is_exciting.astype(jnp.int32), mode=IN_BOUNDS)
        return jnp.where(count >= here.need, inflow, 0.0)

    return jax.lax.cond(jnp.any(here.need > 0), counted, lambda: inflow)


def frontier_many(
    arrays: GraphArrays,
    scratch: Scratch,
    nodes: Array,
    values: Array,
    rounds: Array | None,
    code: RuleCode,
    params: RuleParams,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    *,
    top: int = 32,
    evidence: int = 0,
    hubs: bool = True,
) -> tuple[Activation, Scratch]:
    """One query after the other with one scratch: arguments as for `frontier_spread`, sources with an axis [B] in front.

    Returns:
        The activations, with a leading axis [B], and the scratch.
    """

    def step(scratch: Scratch, query: tuple[Array, Array, Array | None]) -> tuple[Scratch, Activation]:
        activation, scratch = frontier_spread(
            arrays, scratch, *query, code, params, limits, top=top, evidence=evidence, hubs=hubs
        )
        return scratch, activation

    scratch, activation = jax.lax.scan(step, scratch, (nodes, values, rounds))
    return activation, scratch
