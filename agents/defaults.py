"""Settings of a substrate: what the caller gives, over the defaults of the world at hand."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from ..cognition.config import KIND_VARIANCE, Config, Rule
from .declared import DeclaredReview, DeclaredSchema

# With declared economics a case is worth deciding only near its break-even probability p = gain / (gain + loss) of
# being bad. There what it pays has variance (gain + loss)^2 p (1 - p) = gain loss: the noise of a target. The initial
# variance of an edge is a share of p (1 - p) of it (measured on three real tables): rare bad cases say less.
VARIANCE_PER_NOISE = 0.025
WITH_ECONOMICS: Mapping[str, Any] = {
    "eps0": 0.05,
    "eps_floor": 0.01,
    "eps_steps": 200.0,
    "opinion_prior": 0.5,
    # outcomes are per unit of a stake and a decision has no consequences: what serves long encounters is off
    "curiosity": 0.0,
    "common": False,
    "average_reward": False,
    "encounter": False,
    "detector": 0.0,
    "trace_decay": 0.0,
}
# Without a declaration anything may come, long deterministic tasks included. Measured on six tasks of Gymnasium
# (README): optimism is what explores, traces reach far but not behind an exploratory action, and the variance of the
# active edges together, not of each, is what has to fit the noise.
SUMMED_VARIANCE = 0.3
BIAS_VARIANCE = 1e-3  # of the others': one edge for all states would take their optimism from those never seen
UNDECLARED: Mapping[str, Any] = {
    "gamma": 0.99,
    "trace_decay": 0.5,
    "cut_traces": True,
    "noise": 0.1,
    "variance_floor": 0.1,
    "optimism": 0.4,
    "eps0": 0.05,
    "eps_floor": 0.01,
    "curiosity": 0.0,
    "common": False,
    "average_reward": False,
    "encounter": False,
    "detector": 0.0,
    "prototypes": 0,
}
# What an adviser knows of a whole encounter takes longer to be learnt better than what it knows of a single decision.
WITH_ENCOUNTERS: Mapping[str, Any] = {"trust_floor": 0.4}
# Rules that count lessons start with the doubt of two; the others have no variances.
OF_RULE: Mapping[Rule, Mapping[str, Any]] = {
    "count": {"variance": 0.5, "kind_variance": dict.fromkeys(KIND_VARIANCE, 1.0)},
    "beta": {"variance": 0.5, "kind_variance": dict.fromkeys(KIND_VARIANCE, 1.0)},
}


def config_of(schema: DeclaredSchema | None, rule: Rule, settings: Mapping[str, Any], *, n_paths: int) -> Config:
    """Settings over the defaults of the world at hand."""
    known = [field.name for field in dataclasses.fields(Config)]
    for name in settings:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {known}."
            raise TypeError(f"{name!r} is not a setting of the substrate; {hint}")
    defaults: dict[str, Any] = {"reward_bound": float(schema.reward_bound)} if schema else {}
    if schema is not None and schema.review is not None:
        defaults |= WITH_ECONOMICS
        defaults |= _outcome_variances(schema.review, schema.reward_bound)
    elif schema is not None and schema.behaviours:
        defaults |= WITH_ENCOUNTERS
    elif schema is None:
        n_observed = max(1, n_paths - 1)
        defaults |= {**UNDECLARED, "variance": SUMMED_VARIANCE / n_observed, "kind_variance": {"bias": BIAS_VARIANCE}}
    defaults |= OF_RULE.get(rule, {})
    return Config(**{**defaults, "rule": rule, **settings})


def _outcome_variances(review: DeclaredReview, reward_bound: float) -> dict[str, float]:
    """Noise of a target and initial variance of an edge, in units of the reward bound, from declared economics."""
    p = review.gain / (review.gain + review.loss)
    noise = review.gain * review.loss / reward_bound**2
    return {"noise": noise, "variance": VARIANCE_PER_NOISE * p * (1.0 - p) * noise}
