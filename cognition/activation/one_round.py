"""What a node makes of one round, the same for every compiled kernel; `rule` has the formulas."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .rule import SATURATION, RuleCode, RuleParams

Array = jax.Array


def transmitted(activation: Array, code: RuleCode, params: RuleParams) -> Array:
    """What nodes transmit, x: an array of the shape of `activation`."""
    if code.below == "zero":
        return activation  # what was below is 0 already
    if code.is_soft:
        return activation * jax.nn.sigmoid((activation - params.threshold) / params.softness)
    return jnp.where(activation >= params.threshold, activation, 0.0)


def settled(
    before: Array, inflow: Array, held: Array, retention: Array, base: Array, code: RuleCode, params: RuleParams
) -> Array:
    """Activation after a round, raw, before the cap and before what is injected; all arrays have one shape.

    Args:
        before: A(t - 1).
        inflow: I, the gate of conjunctions and what dangling nodes return included.
        held: s, what was injected so far.
        retention: rho.
        base: C.
        code: of the rule.
        params: of the rule.
    """
    raw = (1.0 - params.leak) * (retention * before + base * inflow)
    if code.restarts:
        raw = (1.0 - params.restart) * raw + params.restart * held
    if code.below == "zero":
        raw = jnp.where(raw >= params.threshold, raw, 0.0)
    return jnp.maximum(raw, held if code.sources == "held" else 0.0)  # what is held is not below 0 either


def capped(raw: Array, code: RuleCode, params: RuleParams) -> tuple[Array, Array]:
    """A and raw after a round, once what is injected has been added."""
    if code.is_capped:
        return jnp.minimum(raw, params.cap), raw
    raw = jnp.minimum(raw, SATURATION)
    return raw, raw
