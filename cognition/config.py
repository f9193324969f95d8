"""Settings of a learner: validated numbers (`Config`), static facts (`Structure`) and the arrays made of them
(`Params`).

A `Config` never enters a compiled function. `Structure` is what decides shapes and code, hashable and static; `Params`
are scalars that may differ between agents of one compiled call.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .style import Style

Array = jax.Array
Rule = Literal["kalman", "nlms"]

NO_DECISION = -1
"""Id of a decision whose consequences are complete, and of an empty slot."""
NO_ACTION = -1
"""In the place of an action: none."""


@dataclasses.dataclass(frozen=True)
class Config:
    """Numbers that a learner is built from. Rewards are in units of `reward_bound`, so that returns lie in [-1, 1].

    Attributes:
        rule: "kalman" (gains from per-edge variances) or "nlms" (one normalised rate, no variances).
        gamma: discount per step within an encounter, in [0, 1].
        noise: variance of a target around the evidence, > 0 (kalman).
        variance: initial variance of an edge, > 0 (kalman). Only variance / noise matters, unless the style is curious.
        kind_variance: factor on `variance` for edges from nodes of a kind, e.g. {"rank": 0.5}; 1 where not named.
        learning_rate: share of the error that one update removes, in (0, 1] (nlms).
        eps0: initial rate of random actions while learning, in [0, 1].
        eps_steps: steps after which that rate is halved, > 0.
        eps_floor: rate below which it never falls while learning, in [0, 1].
        optimism: initial evidence of gain for every action.
        opinion_prior: initial evidence of gain for the action that buys a second opinion, as a share of what it can
            gain.
        opinion_noise: variance of a second opinion as a target, over `noise`, > 0.
        reward_bound: reward that counts as 1, > 0.
        ledger_capacity: decisions that can wait for their outcome, a power of two.
        feedback_slots: outcomes credited within one compiled step; further ones cost a call each.

    Raises:
        ValueError: a value outside its range.
    """

    rule: Rule = "kalman"
    gamma: float = 0.9
    noise: float = 0.3
    variance: float = 0.015
    kind_variance: Mapping[str, float] = dataclasses.field(default_factory=dict)
    learning_rate: float = 0.1
    eps0: float = 0.1
    eps_steps: float = 500.0
    eps_floor: float = 0.01
    optimism: float = 0.0
    opinion_prior: float = 0.0
    opinion_noise: float = 1.5
    reward_bound: float = 1.0
    ledger_capacity: int = 256
    feedback_slots: int = 4

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise ValueError(f"`rule` must be one of {list(get_args(Rule))}, got {self.rule!r}.")
        for name in ("noise", "variance", "eps_steps", "opinion_noise", "reward_bound"):
            _require(name, getattr(self, name), lambda x: x > 0, "> 0")
        for name in ("gamma", "eps0", "eps_floor"):
            _require(name, getattr(self, name), lambda x: 0 <= x <= 1, "in [0, 1]")
        for name in ("optimism", "opinion_prior"):
            _require(name, getattr(self, name), lambda x: -1 <= x <= 1, "in [-1, 1]")
        _require("learning_rate", self.learning_rate, lambda x: 0 < x <= 1, "in (0, 1]")
        for kind, factor in self.kind_variance.items():
            _require(f"kind_variance[{kind!r}]", factor, lambda x: x > 0, "> 0")
        capacity = self.ledger_capacity
        if not isinstance(capacity, int) or capacity < 1 or capacity & (capacity - 1):
            raise ValueError(f"`ledger_capacity` must be a power of two, got {capacity!r}.")
        if not isinstance(self.feedback_slots, int) or self.feedback_slots < 1:
            raise ValueError(f"`feedback_slots` must be an integer of at least 1, got {self.feedback_slots!r}.")


@dataclasses.dataclass(frozen=True)
class Structure:
    """What decides shapes and code of a compiled learner.

    An action whose outcome is a declared multiple of another's has no edges of its own: it reads and trains the column
    of that action, `factor` apart.

    Attributes:
        n_nodes: N, context nodes; node 0 is the bias.
        n_paths: P, paths of every observation.
        columns: per action (A of them), the column of edges it reads, in [0, C).
        factors: per action, its outcome over that of its column.
        deliberation: per action, whether it deliberates.
        ledger_capacity: L, decisions that can wait, a power of two.
        feedback_slots: M, outcomes credited per step.
        rule: learning rule.

    Raises:
        ValueError: lengths that do not fit, columns with gaps, or a factor that is not positive.
    """

    n_nodes: int
    n_paths: int
    columns: tuple[int, ...]
    factors: tuple[float, ...]
    deliberation: tuple[bool, ...]
    ledger_capacity: int = 256
    feedback_slots: int = 4
    rule: Rule = "kalman"

    def __post_init__(self) -> None:
        if not len(self.columns) == len(self.factors) == len(self.deliberation):
            raise ValueError(
                "`columns`, `factors` and `deliberation` must have one entry per action, got lengths "
                f"{len(self.columns)}, {len(self.factors)} and {len(self.deliberation)}."
            )
        if set(self.columns) != set(range(self.n_columns)):
            raise ValueError(f"`columns` must use every column from 0 on, got {self.columns}.")
        if min(self.factors) <= 0:
            raise ValueError(f"`factors` must be positive, got {self.factors}; a loss cannot scale to a gain.")

    @property
    def n_actions(self) -> int:
        """A, number of actions."""
        return len(self.columns)

    @property
    def n_columns(self) -> int:
        """C, number of actions that have edges of their own."""
        return max(self.columns) + 1


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
    noise: Array
    opinion_noise: Array
    learning_rate: Array


def params_of(config: Config, style: Style) -> Params:
    """The arrays of a configuration and a style."""

    def scalar(x: float) -> Array:
        return jnp.asarray(x, jnp.float32)

    return Params(
        risk=scalar(style.risk),
        curiosity=scalar(style.curiosity),
        caution=scalar(style.caution),
        eps0=scalar(min(1.0, config.eps0 * style.exploration)),
        eps_steps=scalar(config.eps_steps),
        eps_floor=scalar(config.eps_floor if style.exploration > 0 else 0.0),
        gamma=scalar(config.gamma),
        noise=scalar(config.noise),
        opinion_noise=scalar(config.opinion_noise),
        learning_rate=scalar(config.learning_rate),
    )


def node_variances(config: Config, kinds: tuple[str, ...]) -> npt.NDArray[np.float32]:
    """[N] f32: initial variance of the edges from each node.

    Raises:
        ValueError: `config.kind_variance` names a kind that no node has.
    """
    if unknown := sorted(set(config.kind_variance) - set(kinds)):
        raise ValueError(f"`kind_variance` names {unknown}; the kinds of nodes here are {sorted(set(kinds))}.")
    return np.array([config.variance * config.kind_variance.get(kind, 1.0) for kind in kinds], np.float32)


def _require(name: str, value: object, holds: Callable[[float], bool], expected: str) -> None:
    if not (isinstance(value, int | float) and math.isfinite(value) and holds(value)):
        raise ValueError(f"`{name}` must be a finite number {expected}, got {value!r}.")
