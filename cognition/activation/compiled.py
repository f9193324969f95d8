"""Compiled calls: a kernel, the rounds and the ranking in one, with few arrays in and one packed array out."""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from .dense import dense_pull
from .packing import injection, nodes_of, numbers_of, packed_result
from .rounds import Pull, Round, run_rounds
from .rule import RuleCode, capped

Array = jax.Array


class Plan(NamedTuple):
    """What is compiled in.

    Attributes:
        kernel: form of the edges.
        code: of the rule.
        is_timed: whether sources enter after a round.
        top: nodes that are returned.
        everything: whether the activation of all nodes is returned.
        evidence: edges that are returned with their flows; 0 = none.
    """

    kernel: Literal["dense", "ell"]
    code: RuleCode
    is_timed: bool
    top: int
    everything: bool
    evidence: int


@functools.cache
def compiled(plan: Plan) -> Any:
    """The jitted call of a plan: (columns [4, N], form, numbers, sources [3, F]) -> a tuple of arrays.

    It returns (packed result, everything or None). With `evidence` it takes an `EdgeForm` more and returns more:
    (..., rows of the edge list [M] i32, NOBODY in empty places, amounts [M] f32, by_round [M, rounds] f32, history
    [rounds + 1, top] f32, [] i32 flows in all).
    """
    function = _with_evidence if plan.evidence else _plain
    return jax.jit(functools.partial(function, plan))


def pull_of(plan: Plan, form: Any) -> Pull:
    """The kernel of a plan, on its form."""
    return dense_pull(*form)


def _plain(plan: Plan, columns: Array, form: Any, numbers: Array, sources: Array) -> tuple[Array, Array | None]:
    params = numbers_of(numbers)
    inject = injection(sources, columns.shape[-1], is_timed=plan.is_timed)
    end = run_rounds(pull_of(plan, form), nodes_of(columns), inject, plan.code, params, is_timed=plan.is_timed)
    return packed_result(end, params, plan.code, plan.top), end.activation if plan.everything else None


def _with_evidence(
    plan: Plan, columns: Array, form: Any, numbers: Array, sources: Array, edges: Any
) -> tuple[Array | None, ...]:
    """Two runs: the first finds the nodes and the edges, the second writes down their course, and only theirs."""
    params, nodes, n_rounds = numbers_of(numbers), nodes_of(columns), plan.code.rounds
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
