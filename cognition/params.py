"""The numbers of a learner that are inputs of compiled code: they may differ between the agents of one call."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from .config import Config
from .style import Style

Array = jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Params:
    """Numbers of one learner and its style; every entry is [] f32. `Config` and `Style` document them."""

    risk: Array
    curiosity: Array
    caution: Array
    eps0: Array
    eps_steps: Array
    eps_floor: Array
    gamma: Array
    trace_decay: Array
    variance_floor: Array
    noise: Array
    opinion_noise: Array
    learning_rate: Array
    recovery: Array
    drift: Array
    detector: Array
    trust_steps: Array
    trust_floor: Array


def params_of(config: Config, style: Style) -> Params:
    """The arrays of a configuration and a style."""

    def scalar(x: float) -> Array:
        return jnp.asarray(x, jnp.float32)

    return Params(
        risk=scalar(style.risk),
        curiosity=scalar(config.curiosity + style.curiosity),
        caution=scalar(style.caution),
        eps0=scalar(min(1.0, config.eps0 * style.exploration)),
        eps_steps=scalar(config.eps_steps),
        eps_floor=scalar(config.eps_floor if style.exploration > 0 else 0.0),
        gamma=scalar(config.gamma if config.bootstraps else 0.0),
        trace_decay=scalar(config.trace_decay),
        variance_floor=scalar(config.variance_floor),
        noise=scalar(config.noise),
        opinion_noise=scalar(config.opinion_noise),
        learning_rate=scalar(config.learning_rate),
        recovery=scalar(config.recovery),
        drift=scalar(config.drift),
        detector=scalar(config.detector),
        trust_steps=scalar(config.trust_steps),
        trust_floor=scalar(config.trust_floor),
    )


def rate_of(config: Config, style: Style, since: int) -> float:
    """`evidence.exploration_rate` after `since` steps, in Python numbers."""
    floor = config.eps_floor if style.exploration > 0 else 0.0
    start = min(1.0, config.eps0 * style.exploration)
    return max(floor, start * config.eps_steps / (config.eps_steps + since))
