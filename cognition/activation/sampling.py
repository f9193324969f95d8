"""The compiled part of taking a sample: edges of members from packed rows, new members without twins, local numbers.

Cost depends on the size of the sample, never on that of the graph. `place` is scratch of the size of the graph that is
donated, changed in place and handed back with -1 everywhere; every read of it feeds what is written next, or XLA would
copy it.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..graph.layout import EMPTY, NOWHERE, GraphArrays, keys_of, relations_of, strengths_of, targets_of
from .rule import RuleCode, RuleParams

Array = jax.Array


class Local(NamedTuple):
    """A sample as arrays, of JAX or of NumPy. P places for members, G slots for edges.

    Attributes:
        members: [P] i32 node numbers; the capacity of the graph in free places.
        source: [G] i32, place of the source.
        target: [G] i32, place of the target, -1 = outside or no edge.
        relation: [G] i32.
        strength: [G] f32, W.
        share: [G] f32, decay and normalisation.
        base, need, retention: [P].
        n_new: [] i32, members that have joined.
        n_refused: [] i32, nodes that were reached and found no place.
        n_unread: [] i32, edges of members that were not read, since they lie too far back in the pool.
    """

    members: Any
    source: Any
    target: Any
    relation: Any
    strength: Any
    share: Any
    base: Any
    need: Any
    retention: Any
    n_new: Any
    n_refused: Any
    n_unread: Any


class _Slots(NamedTuple):
    """Edges that leave some nodes, [G] each: place of the source, node number of the target, and what it carries."""

    owner: Array
    target: Array
    relation: Array
    strength: Array
    share: Array
    n_unread: Array


def relevant(code: RuleCode) -> RuleCode:
    """A code that differs from others only in what sampling asks for, so that as little as can be is compiled."""
    return RuleCode(
        below="gate",
        sources="once",
        normalisation=code.normalisation,
        spends=code.spends,
        uses_base=code.uses_base,
        conjunctions=False,
        dangling=False,
        restarts=False,
        is_capped=code.is_capped,
        is_soft=False,
        rounds=0,
        stops=False,
    )


def unused_places(capacity: int) -> Array:
    """Fresh scratch, [capacity + 1] i32."""
    return jnp.full(capacity + 1, -1, jnp.int32)


@functools.partial(jax.jit, static_argnames="code", donate_argnames="place")
def gather(
    arrays: GraphArrays,
    place: Array,
    members: Array,
    score: Array,
    most: Array,
    hops: Array,
    code: RuleCode,
    params: RuleParams,
) -> tuple[Local, Array]:
    """Grow members from sources.

    Args:
        arrays: of the graph.
        place: scratch.
        members: [P] i32 different nodes, then the capacity in free places.
        score: [P] f32, what the sources inject.
        most: [] i32, members at the end.
        hops: [] i32.
        code: of the rule.
        params: of the rule.
    """
    capacity = arrays.capacity
    number = jnp.arange(members.shape[0], dtype=jnp.int32)
    n_sources = jnp.sum(members < capacity, dtype=jnp.int32)
    place = place.at[members].set(number)
    score = score * jnp.where(place[members] >= 0, 1.0, 0.0)  # the order of reads and writes, see above

    def hop(_: Any, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        members, score, place, first, n, n_refused = carry
        is_new = (number >= first) & (number < n)
        slots = _edges_of(arrays, jnp.where(is_new, members, capacity), code, params)
        sent = jnp.minimum(score, params.cap) if code.is_capped else score
        flow = sent[slots.owner] * slots.strength * slots.share * _base(arrays, slots.target, code)
        reached = (slots.target < capacity) & (flow > 0)
        found = place[slots.target]
        score = score.at[jnp.where(reached & (found >= 0), found, members.shape[0])].add(flow, mode="drop")
        is_outside = reached & (found < 0)
        candidates, place = _candidates(place, slots.target, is_outside, flow)
        amount, slot = jax.lax.top_k(candidates.amount, min(members.shape[0], candidates.amount.shape[0]))
        rank = jnp.arange(amount.shape[0], dtype=jnp.int32)
        joins = (amount > 0) & (n + rank < most)
        to = jnp.where(joins, n + rank, members.shape[0])
        members = members.at[to].set(slots.target[slot], mode="drop")
        score = score.at[to].set(amount, mode="drop")
        place = _settle(place, slots.target, candidates, slot, joins, n + rank)
        n_joined = jnp.sum(joins, dtype=jnp.int32)
        refused = jnp.sum(candidates.is_first, dtype=jnp.int32) - n_joined
        return members, score, place, n, n + n_joined, n_refused + refused

    start = (members, score, place, jnp.int32(0), n_sources, jnp.int32(0))
    members, _, place, _, n, n_refused = jax.lax.fori_loop(0, hops, hop, start)
    return _local(arrays, place, members, n - n_sources, n_refused, code, params)


@functools.partial(jax.jit, static_argnames="code", donate_argnames="place")
def replace_idle(
    arrays: GraphArrays,
    place: Array,
    members: Array,
    activation: Array,
    is_fixed: Array,
    most: Array,
    least: Array,
    code: RuleCode,
    params: RuleParams,
) -> tuple[Local, Array]:
    """Give the places of idle members to outside nodes that active members send much to.

    Args:
        arrays: of the graph.
        place: scratch.
        members: [P] i32, see `gather`.
        activation: [P] f32, 0 in free places.
        is_fixed: [P] bool, members that stay.
        most: [] i32, members at the end.
        least: [] f32, flow from which a node is pulled in.
        code: of the rule.
        params: of the rule.
    """
    capacity, n_places = arrays.capacity, members.shape[0]
    number = jnp.arange(n_places, dtype=jnp.int32)
    place = place.at[members].set(number)
    is_active = (activation >= params.threshold) & (activation > 0)
    slots = _edges_of(arrays, jnp.where(is_active, members, capacity), code, params)
    flow = activation[slots.owner] * slots.strength * slots.share * _base(arrays, slots.target, code)
    is_outside = (slots.target < capacity) & (place[slots.target] < 0)
    candidates, place = _candidates(place, slots.target, is_outside, flow)
    amount, slot = jax.lax.top_k(candidates.amount, min(n_places, candidates.amount.shape[0]))
    is_free = members == capacity
    worth = jnp.where(is_free, -1.0, activation)
    stays = is_fixed | is_active | (is_free & (number >= most))
    weakness, idle = jax.lax.top_k(jnp.where(stays, -jnp.inf, -worth), amount.shape[0])
    joins = (amount >= least) & (amount > 0) & (amount > -weakness)  # -inf for those that stay
    to = jnp.where(joins, idle, n_places)
    leaving = jnp.where(joins, members[idle], capacity)
    members = members.at[to].set(slots.target[slot], mode="drop")
    place = _settle(place, slots.target, candidates, slot, joins, idle)
    place = place.at[leaving].set(-1)
    return _local(arrays, place, members, jnp.sum(joins, dtype=jnp.int32), jnp.int32(0), code, params)


class _Candidates(NamedTuple):
    """Nodes outside, each at one of the slots that lead to it.

    Attributes:
        is_first: [G] bool, at that slot.
        amount: [G] f32, sum of the flow into the node at its slot, -1 elsewhere.
    """

    is_first: Array
    amount: Array


def _candidates(place: Array, target: Array, is_outside: Array, flow: Array) -> tuple[_Candidates, Array]:
    """Add up the flow into each node: all slots write their number into `place`, the one that is found there has won.

    `place` is left with these numbers; `_settle` puts it right.
    """
    nowhere = place.shape[0] - 1
    n_slots = target.shape[0]
    slot = jnp.arange(n_slots, dtype=jnp.int32)
    place = place.at[jnp.where(is_outside, target, nowhere)].set(slot)
    winner = place[target]
    amount = jnp.zeros(n_slots, jnp.float32).at[jnp.where(is_outside, winner, n_slots)].add(flow, mode="drop")
    is_first = is_outside & (winner == slot)
    return _Candidates(is_first, jnp.where(is_first, amount, -1.0)), place


def _settle(place: Array, target: Array, candidates: _Candidates, slot: Array, joins: Array, to: Array) -> Array:
    """`place` with the places of those that join, -1 for all other candidates."""
    n_slots = target.shape[0]
    settled = jnp.full(n_slots, -1, jnp.int32).at[jnp.where(joins, slot, n_slots)].set(to, mode="drop")
    return place.at[jnp.where(candidates.is_first, target, place.shape[0] - 1)].set(settled)


def _local(
    arrays: GraphArrays,
    place: Array,
    members: Array,
    n_new: Array,
    n_refused: Array,
    code: RuleCode,
    params: RuleParams,
) -> tuple[Local, Array]:
    """The sample of these members, and `place` without a trace of them."""
    capacity = arrays.capacity
    slots = _edges_of(arrays, members, code, params)
    target = jnp.where(slots.target < capacity, place[slots.target], -1)
    retention = jnp.broadcast_to(_retention(arrays, members, code, params), members.shape)
    local = Local(
        members=members,
        source=slots.owner,
        target=target,
        relation=slots.relation,
        strength=slots.strength,
        share=slots.share,
        base=arrays.base[members],
        need=arrays.need[members],
        retention=retention,
        n_new=n_new,
        n_refused=n_refused,
        n_unread=slots.n_unread,
    )
    unset = jnp.minimum(jnp.max(target), -1)  # -1, but only known after the last read
    ends = jnp.concatenate([members, jnp.full(1, capacity, jnp.int32)])
    return local, place.at[ends].set(unset)


def _edges_of(arrays: GraphArrays, nodes: Array, code: RuleCode, params: RuleParams) -> _Slots:
    """Out-edges of [P] nodes: their rows, and as many pool rows as there are nodes, first come first served."""
    n, width = nodes.shape[0], arrays.width
    beyond = jnp.maximum(arrays.out_degree[nodes] - width, 0)
    wanted = (beyond + width - 1) // width
    end = jnp.cumsum(wanted, dtype=jnp.int32)
    turn = jnp.arange(n, dtype=jnp.int32)
    pool_owner = jnp.minimum(jnp.searchsorted(end, turn, side="right").astype(jnp.int32), n - 1)
    start = end - wanted
    row = arrays.spill[nodes[pool_owner]] + turn - start[pool_owner]
    rows = jnp.concatenate([arrays.rows[nodes], arrays.pool[jnp.where(turn < end[-1], row, NOWHERE)]])
    keys, strength = keys_of(rows).reshape(-1), strengths_of(rows).reshape(-1)
    owner = jnp.repeat(jnp.concatenate([turn, pool_owner]), width)
    is_edge = keys != EMPTY
    relation = jnp.where(is_edge, relations_of(keys), 0)
    share = params.decay[relation] * _share(arrays, nodes, code, params)[owner]
    n_unread = jnp.sum(beyond - jnp.clip((n - start) * width, 0, beyond), dtype=jnp.int32)
    return _Slots(
        owner=owner,
        target=jnp.where(is_edge, targets_of(keys), arrays.capacity),
        relation=relation,
        strength=jnp.where(is_edge, strength, 0.0),
        share=share,
        n_unread=n_unread,
    )


def _base(arrays: GraphArrays, nodes: Array, code: RuleCode) -> Array:
    return arrays.base[nodes] if code.uses_base else jnp.ones(nodes.shape, jnp.float32)


def _share(arrays: GraphArrays, nodes: Array, code: RuleCode, params: RuleParams) -> Array:
    """[P] f32: n_i, and 1 - rho_i where the rule spends."""
    degree = jnp.maximum(arrays.out_degree[nodes].astype(jnp.float32), 1.0)
    match code.normalisation:
        case "none":
            share = jnp.ones_like(degree)
        case "sqrt":
            share = 1.0 / jnp.sqrt(degree)
        case "capped_sqrt":
            share = jnp.minimum(1.0, jnp.sqrt(params.degree_cap / degree))
        case "fan":
            share = 1.0 / degree
        case "row":
            total = arrays.out_strength[nodes]
            share = jnp.where(total > 0, 1.0 / jnp.where(total > 0, total, 1.0), 0.0)
        case "symmetric":
            raise ValueError('`normalisation` must not be "symmetric"; a node does not know what reaches its targets.')
    return share * (1.0 - _retention(arrays, nodes, code, params)) if code.spends else share


def _retention(arrays: GraphArrays, nodes: Array, code: RuleCode, params: RuleParams) -> Array:
    """[P] f32 rho; 1 where the rule spends and there is nothing to spend along."""
    retention = jnp.asarray(params.retention)
    values = retention[jnp.minimum(nodes, retention.shape[0] - 1)] if retention.ndim else retention
    values = jnp.broadcast_to(values, nodes.shape)
    return jnp.where(arrays.out_degree[nodes] == 0, 1.0, values) if code.spends else values
