"""What an agent is to the harness: three methods that any object can have.

`habitus` runs whatever follows `Agent`: it is told where an episode begins, asked for an action, and shown what came of
it. A delayed outcome reaches it as `info["feedback"]`, a list of `(decision_id, value)` that refers to the
`info["decision_id"]` of earlier transitions (-1 where a decision's reward is already complete).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Transition(NamedTuple):
    """One step of experience, as `gymnasium.Env.step` returned it."""

    observation: Any
    action: int
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]


@runtime_checkable
class Agent(Protocol):
    """The whole interface that a study needs.

    Constructed as `Class(env, seed=..., **settings)`. It may read `env.observation_space`, `env.action_space` and,
    where the world declares one, `env.unwrapped.schema`; nothing else of the environment.
    """

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """A new episode starts with `observation`."""

    def act(self, observation: Any) -> int:
        """Choose an action now, exploring if the agent explores."""

    def observe(self, transition: Transition) -> None:
        """Learn from what the last action brought."""
