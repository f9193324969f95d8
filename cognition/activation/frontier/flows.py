"""Which edges carried most: worked out after the rounds, from what was transmitted in each."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...graph.layout import GraphArrays, relations_of
from ..result import NOBODY, Flows
from ..rule import RuleCode, RuleParams
from .edges import Edges, edges_of, let_through, targets
from .rounds import Course, Size
from .state import IN_BOUNDS

Array = jax.Array


class Carried(NamedTuple):
    """The rows of all nodes that transmitted in any round. F nodes, R rows of K.

    Attributes:
        place: [F] i32, of the nodes.
        node: [F] i32, N for nobody.
        edges: their rows.
        source: [R] i32, place of the node that a row belongs to.
        target: [R, K] i32, places.
        through: [R, K] f32, m C; 0 where there is no edge.
    """

    place: Array
    node: Array
    edges: Edges
    source: Array
    target: Array
    through: Array


class _Chosen(NamedTuple):
    """Edges one by one; [E] each, as in `Carried`."""

    source: Array
    target: Array
    through: Array
    key: Array


def flows_of(
    arrays: GraphArrays, course: Course, size: Size, code: RuleCode, params: RuleParams, n_flows: int
) -> tuple[Flows, Array]:
    """The strongest flows of a query, and how many edges had one and are not listed.

    Args:
        arrays: the graph.
        course: after its last round.
        size: room for all nodes that transmitted in any round, and their pool rows.
        code: of the rule.
        params: of the rule.
        n_flows: how many to list.
    """
    record = course.record
    assert record is not None  # whoever asks has it recorded
    if not code.rounds:
        nobody = jnp.full(n_flows, NOBODY, jnp.int32)
        nothing = jnp.zeros((n_flows, 1), jnp.float32)
        return Flows(nobody, nobody, nobody, nothing[:, 0], nothing[:, :0]), jnp.int32(0)
    carried = carried_by(arrays, course, size, code, params)
    everything = _Chosen(
        jnp.repeat(carried.source, arrays.width),
        carried.target.reshape(-1),
        carried.through.reshape(-1),
        carried.edges.key.reshape(-1),
    )

    def amount(number: Any, edges: _Chosen) -> Array:
        ready = record.ready[number].at[edges.target].get(mode=IN_BOUNDS)
        sent = record.sent[number].at[edges.source].get(mode=IN_BOUNDS)
        return jnp.where(ready, sent * edges.through, 0.0)

    total = jax.lax.fori_loop(
        0,
        code.rounds,
        lambda number, total: total + amount(number, everything),
        jnp.zeros(everything.through.shape[0], jnp.float32),
    )
    n_listed = min(n_flows, total.shape[0])
    strength, which = jax.lax.top_k(jnp.abs(total), n_listed)
    chosen = _Chosen(*(part.at[which].get(mode=IN_BOUNDS) for part in everything))
    by_round = jax.lax.map(lambda number: amount(number, chosen), jnp.arange(code.rounds, dtype=jnp.int32)).T
    is_there = strength > 0
    missing = (0, n_flows - n_listed)

    def listed(values: Array) -> Array:
        return jnp.pad(jnp.where(is_there, values, NOBODY), missing, constant_values=NOBODY)

    flows = Flows(
        source=listed(course.here.node.at[chosen.source].get(mode=IN_BOUNDS)),
        target=listed(course.here.node.at[chosen.target].get(mode=IN_BOUNDS)),
        relation=listed(relations_of(chosen.key)),
        amount=jnp.pad(jnp.where(is_there, total.at[which].get(mode=IN_BOUNDS), 0.0), missing),
        by_round=jnp.pad(by_round, (missing, (0, 0))),
    )
    n_all = jnp.sum(total != 0, dtype=jnp.int32)
    n_unread = (
        carried.edges.n_left_out if size.n_pool else jnp.int32(0)
    )  # without pool rows edges there carried nothing
    return flows, n_all - jnp.sum(is_there, dtype=jnp.int32) + n_unread


def carried_by(arrays: GraphArrays, course: Course, size: Size, code: RuleCode, params: RuleParams) -> Carried:
    """What the edges of all nodes that transmitted let through; `size` has room for these and their pool rows."""
    record, here, nobody = course.record, course.here, arrays.capacity
    assert record is not None  # whoever asks has it recorded
    n_places = here.node.shape[0]
    has_sent = jnp.any(record.sent > 0, axis=0)  # a maximum of numbers becomes a call of a library with its own threads
    rank = jnp.cumsum(has_sent, dtype=jnp.int32) - 1
    slot = jnp.where(has_sent & (rank < size.n_active), rank, size.n_active)
    place = jnp.full(size.n_active + 1, n_places, jnp.int32)
    place = place.at[slot].set(jnp.arange(n_places, dtype=jnp.int32), mode=IN_BOUNDS)[:-1]
    is_there = place < n_places
    place = jnp.minimum(place, n_places - 1)
    node = jnp.where(is_there, here.node.at[place].get(mode=IN_BOUNDS), nobody)
    edges = edges_of(arrays, node, is_there, size.n_pool)
    target, is_used = targets(edges, is_there, nobody)
    target = course.scratch.place.at[target].get(mode=IN_BOUNDS) - course.scratch.start
    target = jnp.where(is_used & (target >= 0), target, 0).reshape(edges.key.shape)
    retention = here.retention.at[place].get(mode=IN_BOUNDS) if here.retention.ndim else here.retention
    through = let_through(arrays, node, retention, edges, code, params)
    through = through * (here.base.at[target].get(mode=IN_BOUNDS) if here.base.ndim else here.base)
    through = jnp.where(is_used.reshape(through.shape), through, 0.0)
    return Carried(place, node, edges, place.at[edges.owner].get(mode=IN_BOUNDS), target, through)
