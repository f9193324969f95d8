"""Spreading on a big graph at a cost that does not depend on its size: only what is active is looked at.

Each round reads the rows of the nodes that transmit and adds up what reaches their targets. Which of several entries
means one node is settled by writing and reading back, without sorting. What a query may touch is bounded by `Limits`;
whatever does not fit is counted in `Activation.dropped`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...graph.layout import GraphArrays
from ..result import Activation, Dropped
from ..rule import RuleCode, RuleParams
from .flows import flows_of
from .rounds import Course, Size, begin, spread_looped, spread_unrolled
from .state import Scratch, opened
from .top import top_of

Array = jax.Array

UNROLLED = 5
"""Rounds up to which each is compiled with its own sizes; more share one loop, at the last of the limits."""


class Limits(NamedTuple):
    """How much of a graph a query may look at. The last number of a tuple holds for all later rounds.

    Attributes:
        active: nodes that may transmit, by round; never fewer than sources in the first.
        pool: rows of the overflow pool that may be read, by round; read for exact hubs only.
        touched: nodes that may be reached in all, where more than UNROLLED rounds or a tolerance make a loop; fewer
            rounds hold whatever they reach. Never fewer than sources.
    """

    active: tuple[int, ...] = (8, 32, 64)
    pool: tuple[int, ...] = (8, 32, 64)
    touched: int = 4096

    def check(self) -> None:
        """Refuse what cannot be compiled for.

        Raises:
            TypeError, ValueError: by name.
        """
        for name, sizes in (("active", self.active), ("pool", self.pool), ("touched", (self.touched,))):
            if not isinstance(sizes, tuple):
                raise TypeError(f"`limits.{name}` must be a tuple with a number for each round, got {sizes!r}.")
            if not sizes:
                raise ValueError(f"`limits.{name}` must have a number for at least one round, got ().")
            for size in sizes:
                if isinstance(size, bool) or not isinstance(size, int | np.integer):
                    raise TypeError(f"`limits.{name}` must be of whole numbers, got {size!r}.")
                if size < 1:
                    raise ValueError(f"`limits.{name}` must be of numbers of at least 1, got {size}.")

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


class Plan(NamedTuple):
    """Sizes of a query: its rounds, one for all in a loop; places that a loop keeps; all; the union of all rounds."""

    is_loop: bool
    sizes: list[Size]
    n_held: int
    n_places: int
    all_rounds: Size


def planned(width: int, code: RuleCode, limits: Limits, n_sources: int, hubs: bool) -> Plan:
    """The sizes of a query of these limits."""
    is_loop = code.stops or code.rounds > UNROLLED
    if is_loop:
        size = Size(max(limits.active[-1], n_sources), limits.pool[-1] if hubs else 0)
        n_held = max(limits.touched, n_sources + 1)  # the last place stays nobody's
        n_rows = min(n_held, code.rounds * size.n_active)
        n_pool = min(code.rounds, 4) * size.n_pool  # room for all in all rounds is too much
        return Plan(True, [size], n_held, n_held + size.n_edges(width), Size(n_rows, n_pool))
    sizes = [
        Size(limits.active_in(number, n_sources), limits.pool_in(number) if hubs else 0)
        for number in range(1, code.rounds + 1)
    ]
    n_places = n_sources + sum(size.n_edges(width) for size in sizes)
    union = Size(sum(size.n_active for size in sizes), sum(size.n_pool for size in sizes))
    return Plan(False, sizes, n_places, n_places, union)


def follow(
    arrays: GraphArrays, scratch: Scratch, nodes: Array, values: Array, rounds: Array | None, code: RuleCode,
    params: RuleParams, limits: Limits, *, with_record: bool, hubs: bool,
) -> tuple[Course, Array, Plan]:  # fmt: skip
    """All rounds of a query; arguments as for `frontier_spread`. Returns the number of rounds too."""
    if (refused := supports(code)) is not None:
        raise ValueError(f"`code` must be of a rule that a frontier can follow, but {refused}; use a full sweep.")
    size = np.shape(params.retention)
    if len(size) > 1 or (size and size[0] > arrays.capacity):
        raise ValueError(
            f"`params.retention` must be a number or one for each of the graph's nodes, at most {arrays.capacity}, "
            f"got shape {size}."
        )
    nodes, values = nodes.astype(jnp.int32), values.astype(jnp.float32)  # 64 bits wide where those are switched on
    n_sources = nodes.shape[0]
    plan = planned(arrays.width, code, limits, n_sources, hubs)
    course, query = begin(
        arrays, opened(scratch, plan.n_places), nodes, values, rounds, plan.n_places, code, params, with_record
    )
    if plan.is_loop:
        course, made = spread_looped(arrays, course, query, n_sources, plan.sizes[0], plan.n_held, code, params)
    else:
        course, made = spread_unrolled(arrays, course, query, n_sources, plan.sizes, code, params)
    return course, made, plan


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
        params: of the rule. A retention per node has one for each node given out; how many these are is not known
            while tracing, and nodes beyond get the last one. `SpreadRule.check_size` checks it.
        limits: static.
        top: how many nodes to return, static.
        evidence: how many flows to return, with the history; 0 = neither. Static.
        hubs: whether to read edges beyond the row of a node; else they are left out and counted. Static.

    Returns:
        The activation and the scratch for the next query.

    Raises:
        ValueError: while tracing, if the rule is one that a frontier cannot have, or its retention is longer than the
            graph.
    """
    course, made, plan = follow(
        arrays, scratch, nodes, values, rounds, code, params, limits, with_record=evidence > 0, hubs=hubs
    )
    here = course.here
    is_active = (here.activation >= params.threshold) & (here.activation > 0)
    best = top_of(here.raw, here.node, is_active, top)
    flows, history, n_flows = None, None, jnp.int32(0)
    if evidence:
        flows, n_flows = flows_of(arrays, course, plan.all_rounds, code, params, evidence)
        assert course.record is not None  # asked for in `begin`
        history = jnp.where(best.node >= 0, course.record.activation[:, best.place], 0.0)
    activation = Activation(
        nodes=best.node,
        values=jnp.minimum(best.raw, params.cap) if code.is_capped else best.raw,
        raw=best.raw,
        n_active=jnp.sum(is_active, dtype=jnp.int32),
        rounds=made,
        change=course.change,
        dropped=Dropped(*course.counts, flows=n_flows),
        flows=flows,
        history=history,
    )
    return activation, Scratch(course.scratch.place, course.scratch.start + plan.n_places)


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
    """One query after the other with one scratch: arguments as for `frontier_spread`, sources with an axis [B] first.

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
