"""Settings of a learner, as validated numbers. A `Config` never enters a compiled function: `structure` and `params`
make of it what does.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

Rule = Literal["kalman", "nlms", "count", "beta", "hebb", "hebb_advantage"]
BOOTSTRAPPING: frozenset[Rule] = frozenset({"kalman", "nlms", "count"})
"""Rules that learn from an error, and so can learn from what the next decision promises."""

NO_DECISION = -1
"""Id of a decision whose consequences are complete, and of an empty slot."""
NO_ACTION = -1
"""In the place of an action: none."""
NOTHING_SEEN = -1
"""In the place of a cell of behaviour: none."""


@dataclasses.dataclass(frozen=True)
class Config:
    """Numbers that a learner is built from. Rewards are in units of `reward_bound`, so that returns lie in [-1, 1].

    Attributes:
        rule: "kalman" (gains from per-edge variances), "nlms" (one normalised rate), "count" (rates that fall with the
            number of lessons), "beta" (every edge averages outcomes for itself), "hebb" (what was on when it paid
            grows) or "hebb_advantage" (the same for what paid more than usual). The last three learn no consequences.
        gamma: discount per step within an encounter, in [0, 1].
        trace_decay: lambda in [0, 1]: share of an error that reaches the decision before, times gamma (TD(lambda)).
        cut_traces: whether an error stays behind an action that was not the greedy one (Watkins' Q(lambda)); for long
            deterministic tasks.
        variance_floor: least variance of an edge, as a share of its initial one, in [0, 1] (kalman).
        noise: variance of a target around the evidence, > 0 (kalman).
        variance: initial variance of an edge, > 0 (kalman). Only variance / noise matters, unless the style is curious.
        kind_variance: factor on `variance` for edges from nodes of a kind, e.g. {"entity": 10.0}, over KIND_VARIANCE.
        recovery: growth of an edge's variance per step since it was last used, up to the initial one, >= 0: what was
            given up is tried again some day.
        learning_rate: share of the error that one update removes, in (0, 1] (nlms, hebb).
        common: whether situations have edges to all actions at once beside those to each.
        average_reward: whether the mean reward, while positive, is charged as the cost of a step's time.
        encounter: whether the agent's own last and first action in the encounter at hand are nodes.
        prototypes: Z, number of prototypes that entities share, 0 = none; used where a world declares behaviours.
        entity: whether an entity has edges of its own to decisions.
        drift: chance in [0, 1) that an entity has changed since its last encounter.
        conjunctions: conjunction nodes of two context nodes, made on demand, at most so many; 0 = none.
        conjunction_after: times that two nodes must have been on together before they get a conjunction, at least 1.
        gate: whether a conjunction is off unless both of its parts are on (AND gate); without, it is half on with one.
        cases: case nodes (exemplars of single decisions) at most, 0 = none.
        signed: whether net strengths may be negative.
        detector: turn of the mean reward, in standard deviations, from which the rules are taken to have changed;
            0 = never.
        regimes: sets of rules that are remembered, at least 1; with 1, a change re-opens what is known.
        eps0: initial rate of random actions while learning, in [0, 1].
        eps_steps: steps after which that rate is halved, > 0.
        eps_floor: rate below which it never falls while learning, in [0, 1].
        curiosity: what every style's curiosity is added to, >= 0.
        optimism: initial evidence of gain for every action, spread over what is observed.
        advice: initial evidence of gain for an action that an adviser names, in [-1, 1].
        trust_steps: steps since the start or the last alarm after which half of the way to `trust_floor` is gone, > 0.
        trust_floor: activation that an adviser's word keeps for ever, in [0, 1]; it starts with 1.
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
    trace_decay: float = 0.6
    cut_traces: bool = False
    variance_floor: float = 0.0
    noise: float = 0.3
    variance: float = 0.002
    kind_variance: Mapping[str, float] = dataclasses.field(default_factory=dict)
    recovery: float = 0.0
    learning_rate: float = 0.1
    common: bool = True
    average_reward: bool = True
    encounter: bool = True
    prototypes: int = 6
    entity: bool = True
    drift: float = 0.01
    conjunctions: int = 0
    conjunction_after: int = 15
    gate: bool = True
    cases: int = 0
    signed: bool = True
    detector: float = 3.5
    regimes: int = 1
    eps0: float = 0.03
    eps_steps: float = 500.0
    eps_floor: float = 0.003
    curiosity: float = 0.1
    optimism: float = 0.0
    advice: float = 0.5
    trust_steps: float = 50.0
    trust_floor: float = 0.1
    opinion_prior: float = 0.0
    opinion_noise: float = 1.5
    reward_bound: float = 1.0
    ledger_capacity: int = 256
    feedback_slots: int = 4

    def __post_init__(self) -> None:
        if self.rule not in get_args(Rule):
            raise ValueError(f"`rule` must be one of {list(get_args(Rule))}, got {self.rule!r}.")
        for name in ("noise", "variance", "trust_steps", "eps_steps", "opinion_noise", "reward_bound"):
            _require(name, getattr(self, name), lambda x: x > 0, "> 0")
        for name in ("gamma", "trace_decay", "variance_floor", "eps0", "eps_floor", "trust_floor"):
            _require(name, getattr(self, name), lambda x: 0 <= x <= 1, "in [0, 1]")
        for name in ("optimism", "opinion_prior", "advice"):
            _require(name, getattr(self, name), lambda x: -1 <= x <= 1, "in [-1, 1]")
        for name in ("recovery", "detector", "curiosity"):
            _require(name, getattr(self, name), lambda x: x >= 0, ">= 0")
        _require("learning_rate", self.learning_rate, lambda x: 0 < x <= 1, "in (0, 1]")
        _require("drift", self.drift, lambda x: 0 <= x < 1, "in [0, 1)")
        for name in ("cut_traces", "common", "average_reward", "encounter", "entity", "gate", "signed"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"`{name}` must be True or False, got {getattr(self, name)!r}.")
        for kind, factor in self.kind_variance.items():
            _require(f"kind_variance[{kind!r}]", factor, lambda x: x > 0, "> 0")
        capacity = self.ledger_capacity
        if not isinstance(capacity, int) or capacity < 1 or capacity & (capacity - 1):
            raise ValueError(f"`ledger_capacity` must be a power of two, got {capacity!r}.")
        for name, least in COUNTS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")

    @property
    def bootstraps(self) -> bool:
        """Whether what the next decision promises is part of a target."""
        return self.rule in BOOTSTRAPPING and self.gamma > 0


COUNTS = {
    "feedback_slots": 1,
    "prototypes": 0,
    "conjunctions": 0,
    "conjunction_after": 1,
    "cases": 0,
    "regimes": 1,
}

# Chosen on seeds 0 to 95 of the three worlds (README): what a field says of every case is learnt slowly, for it is
# learnt at every step; what one entity or one prototype does, or an adviser is worth, quickly.
KIND_VARIANCE: Mapping[str, float] = {"entity": 20.0, "prototype": 10.0, "advice": 20.0, "case": 5.0}


def node_variances(config: Config, kinds: tuple[str, ...]) -> npt.NDArray[np.float32]:
    """[N] f32: initial variance of the edges from each node.

    Raises:
        ValueError: `config.kind_variance` names a kind that no node has.
    """
    if unknown := sorted(set(config.kind_variance) - set(kinds) - set(KIND_VARIANCE)):
        raise ValueError(f"`kind_variance` names {unknown}; the kinds of nodes here are {sorted(set(kinds))}.")
    factors = {**KIND_VARIANCE, **config.kind_variance}
    return np.array([config.variance * factors.get(kind, 1.0) for kind in kinds], np.float32)


def _require(name: str, value: object, holds: Callable[[float], bool], expected: str) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | float) and math.isfinite(value) and holds(value)):
        raise ValueError(f"`{name}` must be a finite number {expected}, got {value!r}.")
