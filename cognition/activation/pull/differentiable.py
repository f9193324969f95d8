"""The rule as a pure function of plain arrays, which users and learners differentiate."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..rule import OTHERS, RuleParams, SpreadRule
from .rounds import Nodes, Pull, run_rounds

Array = jax.Array


def differentiable_spread(
    pull: Pull,
    size: int,
    sources: Array,
    rule: SpreadRule,
    base: Array | float,
    retention: Array | float | None,
    need: Array | None,
) -> Array:
    """Activation of every node at the end; see `dense_spread` for the arguments."""
    code = rule.code
    if code.dangling:
        raise ValueError("`rule` must not have `dangling`: weights do not tell which nodes have no out-edges.")
    sources = jnp.asarray(sources)
    is_timed = sources.ndim == 2
    wanted = (code.rounds + 1, size) if is_timed else (size,)
    if sources.shape != wanted:
        raise ValueError(
            f"`sources` must have shape ({size},) or ({code.rounds + 1}, {size}), one row after each round from 0 on, "
            f"got {sources.shape}."
        )
    nodes = Nodes(
        _per_node("base", base, size),
        _per_node("retention", rule.retention if retention is None else retention, size),
        _per_node("need", 0.0 if need is None else need, size),
        jnp.zeros(()),
    )
    dtype = jnp.result_type(sources, nodes.base, nodes.retention, float)
    sources = sources.astype(dtype)
    end = run_rounds(
        pull,
        nodes._replace(base=nodes.base.astype(dtype), retention=nodes.retention.astype(dtype)),
        (lambda number: sources[number]) if is_timed else (lambda number: sources),
        code,
        _params(rule),
        is_timed=is_timed,
    )
    return end.activation


def _params(rule: SpreadRule) -> RuleParams:
    named = tuple(name for name in rule.decay if name != OTHERS) if not isinstance(rule.decay, float | int) else ()
    return rule.params(named)


def _per_node(name: str, value: Any, size: int) -> Array:
    found = jnp.asarray(value)
    if found.shape not in ((), (size,)):
        raise ValueError(f"`{name}` must be a number or have shape ({size},), got {found.shape}.")
    return found
