"""Recall, decide and learn on a big graph, one call a step.

A decision is the most active of some nodes. Its trace says how much of what reached it came over which edge: with x,
m and C of the rule, k = (1 - r) (1 - leak), and g the share of a node's activation that reaches the decision d in the
rounds that remain,

    g_j(T) = [j = d]        g_i(t - 1) = k rho_i g_i(t) + sum_j [x_i > 0] k m_ij C_j g_j(t)
    e_ij   = | sum_t x_i(t) k m_ij C_j g_j(t) |

Cap, floor and what is held are left out, a conjunction that waited passes nothing on. Once the reward is known,

    W_ij <- clip(W_ij + rate reward e_ij, -1, 1)

so that edges change by what they did, and over several hops. Good outcomes lessen inhibition that stood in their way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..graph.layout import GraphArrays, keys_of, packed_rows, strengths_of
from .frontier.flows import Carried, carried_by
from .frontier.query import Limits, follow, planned
from .frontier.rounds import Course
from .frontier.state import IN_BOUNDS, Scratch
from .frontier.top import top_of
from .result import NOBODY, Dropped
from .rule import RuleCode, RuleParams

Array = jax.Array


class Trace(NamedTuple):
    """Which edges brought about a decision. F rows of nodes and Q of the pool, R = F + Q together.

    Attributes:
        node: [F] i32, rows of the nodes that transmitted; N for none.
        pool_row: [Q] i32, rows of the pool; 0 for none.
        owner: [R] i32, which of the F nodes a row belongs to.
        key: [R, K] i32, packed keys; see `strengthen` about graphs that have changed since.
        eligibility: [R, K] f32 >= 0, e.
    """

    node: Array
    pool_row: Array
    owner: Array
    key: Array
    eligibility: Array


class Decision(NamedTuple):
    """What was decided.

    Attributes:
        choice: [] i32, the node; NOBODY where nothing reached a candidate.
        value: [] f32, its activation before the cap.
        nodes: [top] i32, the most active nodes, as in `Activation`.
        raw: [top] f32, theirs.
        dropped: what did not fit; its `flows` is always 0.
    """

    choice: Array
    value: Array
    nodes: Array
    raw: Array
    dropped: Dropped


class Changing(NamedTuple):
    """What learning changes of a graph. A compiled step that donates and returns only this is cheaper
    by what each further array costs.

    Attributes:
        rows, out_strength: see `GraphArrays`.
        pool: None where only the row of a node is read.
    """

    rows: Array
    out_strength: Array
    pool: Array | None


def parted(arrays: GraphArrays, *, hubs: bool = True) -> tuple[Changing, GraphArrays]:
    """What `strengthen` changes, and the rest with None for it, which is to be neither donated nor returned.

    Args:
        arrays: the graph.
        hubs: as for `decide`.
    """
    changing = Changing(arrays.rows, arrays.out_strength, arrays.pool if hubs else None)
    missing: Any = dict.fromkeys(_given(changing))
    return changing, arrays._replace(**missing)


def joined(changing: Changing, rest: GraphArrays) -> GraphArrays:
    """The graph that `parted` took apart."""
    return rest._replace(**_given(changing))


def _given(changing: Changing) -> dict[str, Array]:
    return {name: part for name, part in changing._asdict().items() if part is not None}


def decide(
    arrays: GraphArrays, scratch: Scratch, nodes: Array, values: Array, candidates: Array | None, code: RuleCode,
    params: RuleParams, limits: Limits = Limits(), *, top: int = 8, hubs: bool = True,  # noqa: B008 - immutable
) -> tuple[Decision, Trace, Scratch]:  # fmt: skip
    """Recall from sources and take the most active of the candidates.

    Args:
        arrays: the graph.
        scratch: of its capacity; donate it.
        nodes: [S] i32, sources, all before the first round; -1 = none.
        values: [S] f32 >= 0.
        candidates: [A] i32, nodes to choose from, -1 = none; None = the most active node that is no source.
        code: of the rule, static.
        params: of the rule.
        limits: static.
        top: how many nodes to return, static.
        hubs: whether to read edges beyond the row of a node, static.

    Returns:
        The decision, its trace for `strengthen`, and the scratch. Of equals the smallest number is chosen.
    """
    if code.stops:
        raise ValueError("`code` must be of a rule without `tolerance`: credit goes back through all rounds.")
    course, _, plan = follow(arrays, scratch, nodes, values, None, code, params, limits, with_record=True, hubs=hubs)
    here = course.here
    is_active = (here.activation >= params.threshold) & (here.activation > 0)
    best = top_of(here.raw, here.node, is_active, top)
    if candidates is None:
        n_sources = nodes.shape[0]  # the first places are theirs
        others = top_of(here.raw, here.node, is_active.at[:n_sources].set(False), 1)
        place, raw, number = others.place[0], others.raw[0], others.node[0]
    else:
        place, raw, number = _best_of(course, candidates)
    choice = jnp.where(raw > 0, number, NOBODY)
    carried = carried_by(arrays, course, plan.all_rounds, code, params)
    eligibility = _eligibility(course, carried, place, choice >= 0, code, params)
    trace = Trace(carried.node, carried.edges.pool_row, carried.edges.owner, carried.edges.key, eligibility)
    decision = Decision(choice, raw, best.node, best.raw, Dropped(*course.counts, flows=jnp.int32(0)))
    return decision, trace, Scratch(course.scratch.place, course.scratch.start + plan.n_places)


def _best_of(course: Course, candidates: Array) -> tuple[Array, Array, Array]:
    here, scratch = course.here, course.scratch
    nobody = scratch.place.shape[0] - 1
    is_given = candidates >= 0
    place = scratch.place.at[jnp.where(is_given, candidates, nobody)].get(mode=IN_BOUNDS) - scratch.start
    is_reached = is_given & (place >= 0)
    place = jnp.where(is_reached, place, 0)
    raw = jnp.where(is_reached, here.raw.at[place].get(mode=IN_BOUNDS), -1.0)
    highest = jnp.max(raw)
    number = jnp.min(jnp.where(raw == highest, candidates, nobody))
    which = jnp.argmax((raw == highest) & (candidates == number))
    return place[which], jnp.maximum(highest, 0.0), number


def _eligibility(
    course: Course, carried: Carried, place: Array, is_chosen: Array, code: RuleCode, params: RuleParams
) -> Array:
    """[R, K] f32: e, by going back through the rounds."""
    record, here = course.record, course.here
    assert record is not None  # `decide` has it recorded
    if not code.rounds:  # nothing to go back through, nor to compile for it
        return jnp.zeros(carried.through.shape, jnp.float32)
    kept = jnp.float32(1.0) - params.leak
    if code.restarts:
        kept = kept * (1.0 - params.restart)
    through = kept * carried.through
    reaches = jnp.zeros(here.node.shape[0], jnp.float32).at[place].set(is_chosen.astype(jnp.float32))

    def back(number: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        reaches, total = carry
        step = code.rounds - 1 - number
        passes = jnp.where(record.ready[step].at[carried.target].get(mode=IN_BOUNDS), through, 0.0)
        passes = passes * reaches.at[carried.target].get(mode=IN_BOUNDS)
        sent = record.sent[step].at[carried.source].get(mode=IN_BOUNDS)
        total = total + sent[:, None] * passes
        share = jnp.where(sent > 0, jnp.sum(passes, axis=1), 0.0)
        reaches = (kept * here.retention * reaches).at[carried.source].add(share, mode=IN_BOUNDS)
        return reaches, total

    carry = (reaches, jnp.zeros(through.shape, jnp.float32))
    if code.stops:  # rounds that were not made have sent nothing and must not keep anything back
        raise ValueError(
            "`code` must be of a rule without tolerance: to learn, rounds must be known; got tolerance > 0."
        )
    _, total = jax.lax.fori_loop(jnp.int32(0), jnp.int32(code.rounds), back, carry)
    return jnp.abs(total)


def strengthen(arrays: GraphArrays, trace: Trace, reward: Array, rate: Array) -> GraphArrays:
    """Change the edges of a trace by rate * reward * eligibility, within [-1, 1].

    The graph may have changed since the decision: a place that meanwhile holds an edge to another node or of another
    relation, or none, is left alone. That is all that is compared. An edge that was deleted and made again, or one
    between node numbers that were deleted and given out again, is credited for what its predecessor did, if it stands
    in the same place. Whoever deletes nodes between decision and reward learns first, or goes on with `empty_trace`.

    Args:
        arrays: the graph; donate it.
        trace: of the decision.
        reward: [] f32, what came of it.
        rate: [] f32 >= 0.

    Returns:
        The graph, changed in place. An edge that would become 0 stays as it is, since a row has no holes.
    """
    n_rows = trace.node.shape[0]
    change = rate * reward * trace.eligibility
    grown = jnp.zeros(n_rows, jnp.float32)
    rows, more = _strengthened(arrays.rows, trace.node, trace.key[:n_rows], change[:n_rows])
    grown = grown + more
    arrays = arrays._replace(rows=rows)
    if trace.pool_row.shape[0]:
        pool, more = _strengthened(arrays.pool, trace.pool_row, trace.key[n_rows:], change[n_rows:])
        grown = grown.at[trace.owner[n_rows:]].add(more, mode=IN_BOUNDS)
        arrays = arrays._replace(pool=pool)
    return arrays._replace(out_strength=arrays.out_strength.at[trace.node].add(grown, mode=IN_BOUNDS))


def _strengthened(table: Array, row: Array, key: Array, change: Array) -> tuple[Array, Array]:
    """The table with rows changed, and by how much the sum of |strength| of each row grew, [R]."""
    old = table.at[row].get(mode=IN_BOUNDS)
    before = strengths_of(old)
    after = jnp.clip(before + change, -1.0, 1.0)
    after = jnp.where((before == 0) | (after == 0) | (keys_of(old) != key), before, after)
    table = table.at[row].set(packed_rows(keys_of(old), after), mode=IN_BOUNDS)
    return table, jnp.sum(jnp.abs(after) - jnp.abs(before), axis=1)


def empty_trace(arrays: GraphArrays, n_rows: int, n_pool_rows: int) -> Trace:
    """A trace of nothing, for the first `online_step`; `trace_size` says of which size."""
    n_all = n_rows + n_pool_rows
    return Trace(
        jnp.full(n_rows, arrays.capacity, jnp.int32),
        jnp.zeros(n_pool_rows, jnp.int32),
        jnp.zeros(n_all, jnp.int32),
        jnp.zeros((n_all, arrays.width), jnp.int32),
        jnp.zeros((n_all, arrays.width), jnp.float32),
    )


def trace_rows(
    arrays: GraphArrays, code: RuleCode, limits: Limits, n_sources: int, *, hubs: bool = True
) -> tuple[int, int]:
    """Rows of nodes and of the pool in the traces of `decide`."""
    union = planned(arrays.width, code, limits, n_sources, hubs).all_rounds
    return union.n_active, union.n_pool


def online_step(
    arrays: GraphArrays, scratch: Scratch, trace: Trace, reward: Array, rate: Array, nodes: Array, values: Array,
    candidates: Array | None, code: RuleCode, params: RuleParams, limits: Limits = Limits(),  # noqa: B008 - immutable
    *, top: int = 8, hubs: bool = True,
) -> tuple[GraphArrays, Scratch, Trace, Decision]:  # fmt: skip
    """Learn from what came of the last decision, then recall and decide: one step of a world outside.

    Args:
        arrays: the graph; donate it.
        scratch: of its capacity; donate it.
        trace: of the last decision; `empty_trace` before the first.
        reward: [] f32, what came of it.
        rate: [] f32 >= 0.
        nodes: see `decide`, as for all that follow.
        values: of the sources.
        candidates: to choose from.
        code: of the rule, static.
        params: of the rule.
        limits: static.
        top: static.
        hubs: static.
    """
    arrays = strengthen(arrays, trace, reward, rate)
    decision, trace, scratch = decide(
        arrays, scratch, nodes, values, candidates, code, params, limits, top=top, hubs=hubs
    )
    return arrays, scratch, trace, decision
