"""Compiled calls: a kernel, the rounds and the ranking in one, with few arrays in and one packed array out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import jax
import jax.numpy as jnp

from ..one_round import capped
from ..rule import RuleCode
from .dense import dense_pull
from .ell import ell_pull
from .packing import injection, nodes_of, numbers_of, packed_result
from .rounds import Nodes, Pull, Round, run_rounds
from .sweep import sweep_pull

Array = jax.Array
Results = tuple[Array, Array | None]
"""Packed result, and the activation of all nodes or None."""

ROWS = 64
"""Queries of one row gather; 256 bytes, which is a whole number of the widest registers and of cache lines."""


class Plan(NamedTuple):
    """What is compiled in.

    Attributes:
        kernel: form of the edges.
        code: of the rule.
        waits: whether any node waits for a number of its in-edges.
        is_timed: whether sources enter after a round.
        top: nodes that are returned.
        everything: whether the activation of all nodes is returned.
        evidence: edges that are returned with their flows; 0 = none.
        leaks: whether the rule's leak is not 0.
    """

    kernel: Literal["dense", "ell", "sweep"]
    code: RuleCode
    waits: bool
    is_timed: bool
    top: int
    everything: bool
    evidence: int
    leaks: bool = True


@functools.cache
def compiled(plan: Plan) -> Any:
    """The jitted call of a plan: (columns [4, N], form, numbers, sources [3, F] or [N]) -> results.

    With `evidence` it takes an `EdgeForm` more and returns more: (..., rows of the edge list [M] i32, NOBODY in empty
    places, amounts [M] f32, by_round [M, rounds] f32, history [rounds + 1, top] f32, [] i32 flows in all).
    """
    return jax.jit(functools.partial(_with_evidence if plan.evidence else _single, plan))


@functools.cache
def compiled_shared(plan: Plan, by_rows: bool) -> Any:
    """Many queries of one graph: (columns, form, numbers, sources [B, 3, F], [] i32 n) -> results [B] of the first n.

    Args:
        plan: the plan, without evidence.
        by_rows: whether `ROWS` queries are made at once, B a multiple of it; else one after the other. A dense kernel
            makes all at once.
    """

    def call(columns: Array, form: Any, numbers: Array, sources: Array, n_queries: Array) -> Results:
        if plan.kernel == "dense":
            return _batch(plan, pull_of(plan, form), nodes_of(columns), numbers, sources, nodes_first=False)
        if not by_rows:
            return _mapped(lambda one: _single(plan, columns, form, numbers, one), sources, n_queries)
        nodes = Nodes(*(column[:, None] for column in nodes_of(columns)))
        blocks = _mapped(
            lambda block: _batch(plan, pull_of(plan, form), nodes, numbers, block, nodes_first=True),
            sources.reshape(-1, ROWS, *sources.shape[1:]),
            (n_queries + ROWS - 1) // ROWS,
        )
        return _flat(blocks)

    return jax.jit(call)


@functools.cache
def compiled_own(plan: Plan) -> Any:
    """A graph of its own for each query: (columns [G, b, 4, S], forms, numbers, sources [G, b, 3, F]) -> results [G b].

    G blocks of b graphs, of which one fits the cache. Forms are those of the union of a block: dense with a matrix for
    each graph, else one graph of b S nodes.
    """

    def block(columns: Array, form: Any, numbers: Array, sources: Array) -> Results:
        pull = pull_of(plan, form)
        if plan.kernel != "dense":
            pull = _over_union(pull)
        return _batch(plan, pull, nodes_of(columns), numbers, sources, nodes_first=False)

    def call(columns: Array, forms: Any, numbers: Array, sources: Array) -> Results:
        return _flat(jax.lax.map(lambda one: block(one[0], one[1], numbers, one[2]), (columns, forms, sources)))

    return jax.jit(call)


def pull_of(plan: Plan, form: Any) -> Pull:
    """The kernel of a plan, on its form."""
    match plan.kernel:
        case "dense":
            return dense_pull(*form)
        case "ell":
            return ell_pull(*form, counts=plan.waits)
        case "sweep":
            return sweep_pull(*form, counts=plan.waits)


def _over_union(pull: Pull) -> Pull:
    def over(x: Array) -> tuple[Array, Array | None]:
        inflow, count = pull(x.reshape(-1))
        return inflow.reshape(x.shape), None if count is None else count.reshape(x.shape)

    return over


def _mapped(function: Callable[[Array], Results], inputs: Array, n: Array) -> Results:
    """`jax.lax.map` over the first n of the inputs; what is left is 0, and costs nothing."""
    shape = jax.eval_shape(function, inputs[0])
    empty = jax.tree.map(lambda one: jnp.zeros((inputs.shape[0], *one.shape), one.dtype), shape)

    def put(number: Array) -> Callable[[Array, Array], Array]:
        return lambda all_, one: jax.lax.dynamic_update_index_in_dim(all_, one, number, 0)

    def write(number: Array, outputs: Results) -> Results:
        found = function(jax.lax.dynamic_index_in_dim(inputs, number, keepdims=False))
        return cast(Results, jax.tree.map(put(number), outputs, found))

    return cast(Results, jax.lax.fori_loop(jnp.int32(0), n, write, empty))


def _flat(blocks: Results) -> Results:
    packed, everything = blocks
    return packed.reshape(-1, packed.shape[-1]), (
        None if everything is None else everything.reshape(-1, everything.shape[-1])
    )


def _single(plan: Plan, columns: Array, form: Any, numbers: Array, sources: Array) -> Results:
    params = numbers_of(numbers, leaks=plan.leaks)
    inject = injection(sources, columns.shape[-1], is_timed=plan.is_timed)
    end = run_rounds(pull_of(plan, form), nodes_of(columns), inject, plan.code, params, is_timed=plan.is_timed)
    return packed_result(end, params, plan.code, plan.top), end.activation if plan.everything else None


def _batch(plan: Plan, pull: Pull, nodes: Nodes, numbers: Array, sources: Array, *, nodes_first: bool) -> Results:
    params = numbers_of(numbers, leaks=plan.leaks)
    size = nodes.base.shape[0 if nodes_first else -1]
    end = run_rounds(
        pull,
        nodes,
        injection(sources, size, is_timed=plan.is_timed, nodes_first=nodes_first),
        plan.code,
        params,
        is_timed=plan.is_timed,
        axis=0 if nodes_first else -1,
    )
    activation = end.activation.T if nodes_first else end.activation
    packed = packed_result(end, params, plan.code, plan.top, nodes_first=nodes_first)
    return packed, activation if plan.everything else None


def _with_evidence(
    plan: Plan, columns: Array, form: Any, numbers: Array, sources: Array, edges: Any
) -> tuple[Array | None, ...]:
    """Two runs: the first finds the nodes and the edges, the second writes down their course, and only theirs."""
    params, nodes, n_rounds = numbers_of(numbers, leaks=plan.leaks), nodes_of(columns), plan.code.rounds
    inject = injection(sources, columns.shape[-1], is_timed=plan.is_timed)
    pull = pull_of(plan, form)
    run = functools.partial(run_rounds, pull, nodes, inject, plan.code, params, is_timed=plan.is_timed)

    def flow(now: Round, source: Array, target: Array, weight: Array) -> Array:
        arriving = now.transmitted[source] * weight * nodes.base[target]
        return arriving if now.ready is None else jnp.where(now.ready[target], arriving, 0.0)

    total = jnp.zeros(edges.weight.shape, jnp.float32)
    end = run(record=lambda total, now: total + flow(now, *edges), recorded=total)
    packed = packed_result(end, params, plan.code, plan.top)
    sizes = jnp.abs(end.recorded)
    found, rows = jax.lax.top_k(sizes, min(plan.evidence, sizes.shape[0]))
    chosen = [column[rows] for column in edges]
    shown = jnp.maximum(packed[: plan.top], 0)

    def record(so_far: tuple[Array, Array], now: Round) -> tuple[Array, Array]:
        by_round, history = so_far
        return (
            by_round.at[now.number - 1].set(flow(now, *chosen)),
            history.at[now.number].set(now.activation[shown]),
        )

    start, _ = capped(inject(0), plan.code, params)
    empty = (
        jnp.zeros((n_rounds, rows.shape[0]), jnp.float32),
        jnp.zeros((n_rounds + 1, plan.top), jnp.float32).at[0].set(start[shown]),
    )
    by_round, history = run(record=record, recorded=empty).recorded
    made = jnp.arange(n_rounds + 1, dtype=jnp.int32)[:, None] <= end.rounds.reshape(1, 1)
    history = jnp.where(made, history, end.activation[shown]) * (packed[: plan.top] >= 0)
    rows = jnp.where(found > 0, rows.astype(jnp.int32), -1)
    everything = end.activation if plan.everything else None
    n_flows = jnp.sum(sizes > 0, dtype=jnp.int32)
    amounts = jnp.sign(chosen[2]) * found
    return packed, everything, rows, amounts, by_round.T, history, n_flows
