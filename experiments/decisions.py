"""One decision as plain data, for a record, for the report and for `habitus explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def explains_itself(agent: Any) -> bool:
    """Whether an agent can say what a decision rests on."""
    return callable(getattr(agent, "decide", None))


def taken(agent: Any, observation: Any, action: int, step: int, labels: Sequence[str]) -> dict[str, Any] | None:
    """What an agent says about the decision at hand, as JSON; None for agents that do not explain themselves.

    A decision has `choice` (a label), `score`, `evidence` (paths with `node` and `contribution`, which sum to the
    score) and `explain()`; `share` and `bonus` are taken where it has them.

    Args:
        agent: asked through its `decide(observation)`, before it learns from the step.
        observation: what it decides on.
        action: what it does; differs from its choice where it explores.
        step: number of the decision.
        labels: of the actions.
    """
    if not explains_itself(agent):
        return None
    decision = agent.decide(observation)
    return {
        "step": step,
        "action": labels[action],
        "choice": str(decision.choice),
        "score": float(decision.score),
        "share": float(decision.share) if hasattr(decision, "share") else None,
        "bonus": float(getattr(decision, "bonus", 0.0)),
        "paths": [{"label": str(path.node), "contribution": float(path.contribution)} for path in decision.evidence],
        "text": decision.explain(),
    }


def described(observation: Any, schema: Any) -> str:
    """An observation as a person reads it: codes as the labels that the world declares."""
    if not isinstance(observation, dict):
        return str(observation)
    fields = {field.name: field for field in schema.fields} if schema is not None else {}
    parts = []
    for name, value in observation.items():
        field = fields.get(name)
        if field is not None and field.labels:
            parts.append(f"{name} = {field.labels[int(value)]}")
        else:
            unit = f" {field.unit}" if field is not None and field.unit else ""
            parts.append(f"{name} = {float(np.ravel(value)[0]):.4g}{unit}")
    return ", ".join(parts)
