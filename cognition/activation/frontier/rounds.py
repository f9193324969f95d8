"""The rounds of a frontier: who transmits, what that reaches, what becomes of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...graph.layout import GraphArrays
from ..one_round import capped, settled, transmitted
from ..rule import RuleCode, RuleParams
from .edges import edges_of, let_through, targets
from .state import IN_BOUNDS, Counts, Here, Record, Scratch, reach

Array = jax.Array


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
    """A query under way.

    Attributes:
        scratch: where nodes have their places.
        here: the nodes.
        counts: what was left out.
        record: for flows; None where nobody asked.
        change: [] f32, largest change of an activation in the last round.
    """

    scratch: Scratch
    here: Here
    counts: Counts
    record: Record | None
    change: Array


class Size(NamedTuple):
    """Of a round: nodes that may transmit, pool rows that may be read."""

    n_active: int
    n_pool: int

    def n_edges(self, width: int) -> int:
        """Entries that it makes."""
        return (self.n_active + self.n_pool) * width


class Sending(NamedTuple):
    """Nodes that transmit in a round. F places.

    Attributes:
        place: [F] i32.
        node: [F] i32, N for nobody.
        x: [F] f32, what they transmit, 0 for nobody.
        n_dropped: [] i32, nodes that would transmit and found no room.
    """

    place: Array
    node: Array
    x: Array
    n_dropped: Array


def nobody_here(arrays: GraphArrays, n_places: int, code: RuleCode, params: RuleParams) -> Here:
    """Places without nodes."""
    zeros = jnp.zeros(n_places, jnp.float32)
    retention = jnp.asarray(params.retention, jnp.float32)
    return Here(
        node=jnp.full(n_places, arrays.capacity, jnp.int32),
        activation=zeros,
        raw=zeros,
        held=zeros if code.sources == "held" or code.restarts else jnp.float32(0.0),
        base=zeros if code.uses_base else jnp.float32(1.0),
        need=jnp.zeros(n_places, jnp.int32) if code.conjunctions else jnp.int32(0),
        retention=zeros if retention.ndim or code.spends else retention,
    )


def settle_in(arrays: GraphArrays, here: Here, offset: int, nodes: Array, code: RuleCode, params: RuleParams) -> Here:
    """The reached nodes with `nodes` in the places from `offset` on; N for nobody."""
    end = offset + nodes.shape[0]
    here = here._replace(node=here.node.at[offset:end].set(nodes))
    if code.uses_base:
        here = here._replace(base=here.base.at[offset:end].set(arrays.base.at[nodes].get(mode=IN_BOUNDS)))
    if code.conjunctions:
        here = here._replace(need=here.need.at[offset:end].set(arrays.need.at[nodes].get(mode=IN_BOUNDS)))
    if here.retention.ndim:
        given = jnp.asarray(params.retention, jnp.float32)
        own = given.at[nodes].get(mode="clip") if given.ndim else jnp.broadcast_to(given, nodes.shape)
        if code.spends:  # who has no out-edge can spend nothing
            own = jnp.where(arrays.out_degree.at[nodes].get(mode=IN_BOUNDS) == 0, 1.0, own)
        here = here._replace(retention=here.retention.at[offset:end].set(own))
    return here


def begin(
    arrays: GraphArrays, scratch: Scratch, nodes: Array, values: Array, rounds: Array | None, n_places: int,
    code: RuleCode, params: RuleParams, with_record: bool,
) -> tuple[Course, Query]:  # fmt: skip
    """A query before its first round, in `n_places` places of which the first are the sources'."""
    is_source = nodes >= 0
    reached = reach(scratch, 0, nodes, is_source)
    query = Query(reached.place, jnp.where(is_source, values, 0.0), rounds)
    here = nobody_here(arrays, n_places, code, params)
    here = settle_in(arrays, here, 0, jnp.where(reached.is_first, nodes, arrays.capacity), code, params)
    held = injected(query, n_places, 0)
    activation, raw = capped(held, code, params)
    here = here._replace(activation=activation, raw=raw, held=held if here.held.ndim else here.held)
    none = jnp.int32(0)
    record = None
    if with_record:
        record = Record(
            jnp.zeros((code.rounds, n_places), jnp.float32),
            jnp.ones((code.rounds, n_places), bool),
            jnp.broadcast_to(activation, (code.rounds + 1, n_places)),
        )
    return Course(reached.scratch, here, Counts(none, none, none), record, jnp.float32(0.0)), query


def injected(query: Query, n_places: int, number: Any) -> Array:
    """[P] f32: what is injected after a round."""
    now = query.value if query.when is None else jnp.where(query.when == number, query.value, 0.0)
    return jnp.zeros(n_places, jnp.float32).at[query.source].add(now, mode=IN_BOUNDS)


def spread_once(
    arrays: GraphArrays, course: Course, query: Query, number: Any, n_here: int, size: Size,
    code: RuleCode, params: RuleParams, *, is_last: bool,
) -> tuple[Course, Array, Array]:  # fmt: skip
    """One round.

    Args:
        arrays: the graph.
        course: with at least n_here + E places, of which the first `n_here` are given; E = size.n_edges.
        query: its sources.
        number: of the round, 1 for the first.
        n_here: see above.
        size: of the round.
        code: of the rule.
        params: of the rule.
        is_last: whether the change of activation is wanted.

    Returns:
        The course, with new nodes in places n_here to n_here + E; the nodes [E] that edges lead to; which of these are
        first, [E] bool.
    """
    nobody = arrays.capacity
    now = slice(0, n_here + size.n_edges(arrays.width))
    here = course.here
    sending = _sending(here, transmitted(here.activation[:n_here], code, params), size.n_active, nobody)
    is_sending = sending.x > 0
    edges = edges_of(arrays, sending.node, is_sending, size.n_pool)
    target, is_used = targets(edges, is_sending, nobody)
    reached = reach(course.scratch, n_here, target, is_used)
    retention = here.retention.at[sending.place].get(mode=IN_BOUNDS) if here.retention.ndim else here.retention
    amount = let_through(arrays, sending.node, retention, edges, code, params)
    amount = (amount * sending.x.at[edges.owner].get(mode=IN_BOUNDS)[:, None]).reshape(-1)
    here = settle_in(arrays, here, n_here, jnp.where(reached.is_first, target, nobody), code, params)

    inflow = jnp.zeros(now.stop, jnp.float32).at[reached.place].add(jnp.where(is_used, amount, 0.0), mode=IN_BOUNDS)
    ready = jnp.ones(now.stop, bool)
    if code.conjunctions:
        need = here.need[now]
        ready = _ready(need, reached.place, is_used & (edges.strength > 0).reshape(-1))
        inflow = jnp.where(ready, inflow, 0.0)
    inflow = jnp.where(here.node[now] < nobody, inflow, 0.0)
    held, base, retention = (part[now] if part.ndim else part for part in (here.held, here.base, here.retention))
    raw = settled(here.activation[now], inflow, held, retention, base, code, params)
    if query.when is not None:
        added = injected(query, now.stop, number)
        raw = raw + added
        if here.held.ndim:
            here = here._replace(held=here.held.at[now].add(added))
    activation, raw = capped(raw, code, params)
    change = jnp.max(jnp.abs(activation - here.activation[now])) if is_last else course.change
    counts = course.counts
    counts = Counts(counts.active + sending.n_dropped, counts.touched, counts.edges + edges.n_left_out)
    record = course.record
    if record is not None:
        sent = jnp.zeros(record.sent.shape[1], jnp.float32).at[sending.place].add(sending.x, mode=IN_BOUNDS)
        record = Record(
            record.sent.at[number - 1].set(sent),
            record.ready.at[number - 1, now].set(ready),
            record.activation.at[number, now].set(activation),
        )
    here = here._replace(activation=here.activation.at[now].set(activation), raw=here.raw.at[now].set(raw))
    return Course(reached.scratch, here, counts, record, change), target, reached.is_first


def _sending(here: Here, x: Array, n_active: int, nobody: int) -> Sending:
    n_here = x.shape[0]
    if n_active >= n_here:
        missing = (0, n_active - n_here)
        return Sending(
            jnp.pad(jnp.arange(n_here, dtype=jnp.int32), missing, constant_values=n_here - 1),
            jnp.pad(here.node[:n_here], missing, constant_values=nobody),
            jnp.pad(x, missing),
            jnp.int32(0),
        )
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


def _ready(need: Array, place: Array, is_exciting: Array) -> Array:
    """[P] bool: which nodes do not wait; counted only where there is a conjunction."""

    def counted() -> Array:
        count = jnp.zeros(need.shape[0], jnp.int32).at[place].add(is_exciting.astype(jnp.int32), mode=IN_BOUNDS)
        return count >= need

    ready: Array = jax.lax.cond(jnp.max(need) > 0, counted, lambda: jnp.ones(need.shape[0], bool))
    return ready


def spread_unrolled(
    arrays: GraphArrays, course: Course, query: Query, n_sources: int, sizes: list[Size],
    code: RuleCode, params: RuleParams,
) -> tuple[Course, Array]:  # fmt: skip
    """All rounds, each compiled with its own size; places are never given up. Returns the number of rounds too."""
    n_here = n_sources
    for number, size in enumerate(sizes, start=1):
        course, _, _ = spread_once(
            arrays, course, query, number, n_here, size, code, params, is_last=number == len(sizes)
        )
        n_here += size.n_edges(arrays.width)
    return course, jnp.int32(len(sizes))


def spread_looped(
    arrays: GraphArrays, course: Course, query: Query, n_sources: int, size: Size, n_held: int,
    code: RuleCode, params: RuleParams,
) -> tuple[Course, Array]:  # fmt: skip
    """Rounds in a loop: new nodes move up into the first `n_held` places, of which the last stays nobody's."""
    if not code.rounds:
        return course, jnp.int32(0)

    def body(carry: tuple[Array, Array, Course]) -> tuple[Array, Array, Course]:
        number, n_given, course = carry
        number = number + 1
        course, target, is_first = spread_once(arrays, course, query, number, n_held, size, code, params, is_last=True)
        n_given, course = _moved_up(arrays, course, number, n_given, n_held, target, is_first)
        return number, n_given, course

    def goes_on(carry: tuple[Array, Array, Course]) -> Array:
        number, _, course = carry
        moves = (number == 0) | (course.change >= params.tolerance)
        return jnp.asarray((number < code.rounds) & moves)

    carry = (jnp.int32(0), jnp.int32(n_sources), course)
    if code.stops:
        number, _, course = jax.lax.while_loop(goes_on, body, carry)
    else:
        number, _, course = jax.lax.fori_loop(0, code.rounds, lambda _, carry: body(carry), carry)
    if (record := course.record) is not None:  # rows after the last round repeat it
        made = jnp.minimum(jnp.arange(code.rounds + 1, dtype=jnp.int32), number)
        course = course._replace(record=record._replace(activation=record.activation[made]))
    return course, number


def _moved_up(
    arrays: GraphArrays, course: Course, number: Any, n_given: Array, n_held: int, target: Array, is_first: Array
) -> tuple[Array, Course]:
    n_new = target.shape[0]
    rank = n_given + jnp.cumsum(is_first, dtype=jnp.int32) - 1
    fits = is_first & (rank < n_held - 1)
    comes_from = jnp.arange(n_held + 1, dtype=jnp.int32)
    own = n_held + jnp.arange(n_new, dtype=jnp.int32)
    comes_from = comes_from.at[jnp.where(fits, rank, n_held)].set(own, mode=IN_BOUNDS)[:n_held]
    n_places = n_held + n_new

    def moved(part: Array, empty: Any) -> Array:
        """[..., P] with the new ones moved up and the places after them empty."""
        if not part.ndim:
            return part
        missing = [(0, 0)] * (part.ndim - 1) + [(0, n_new)]
        return jnp.pad(part[..., comes_from], missing, constant_values=empty)

    here = course.here
    here = Here(moved(here.node, arrays.capacity), *(moved(part, 0) for part in here[1:]))
    start = course.scratch.start
    place = course.scratch.place.at[jnp.where(is_first, target, arrays.capacity)].set(
        start + jnp.where(fits, rank, n_held - 1), mode=IN_BOUNDS
    )
    record = course.record
    if record is not None:
        ready = record.ready[number - 1]
        record = record._replace(
            ready=record.ready.at[number - 1].set(jnp.zeros(n_places, bool).at[:n_held].set(ready[comes_from])),
            activation=record.activation.at[number].set(moved(record.activation[number], 0)),
        )
    wanted = n_given + jnp.sum(is_first, dtype=jnp.int32)
    n_given = jnp.minimum(wanted, n_held - 1)
    counts = course.counts._replace(touched=course.counts.touched + wanted - n_given)
    return n_given, Course(Scratch(place, start), here, counts, record, course.change)
