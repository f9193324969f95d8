"""Agents that do not learn: the marks that every learner is measured against."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import gymnasium

from .declared import schema_of
from .online import OnlineAgent, generator


class RandomAgent(OnlineAgent):
    """Chooses uniformly; score 0 by definition of the normalised score."""

    def __init__(self, env: gymnasium.Env[Any, Any], *, seed: int = 0) -> None:
        super().__init__(env, seed=seed)
        self._rng = generator(self.seed)
        self._idle_rng = self._rng.spawn(1)[0]  # of `predict`, which must leave the agent's own choices alone

    def act(self, observation: Any) -> int:
        """Uniform over the actions."""
        return int(self._rng.integers(self.n_actions))

    def _greedy(self, observation: Any) -> int:
        return int(self._idle_rng.integers(self.n_actions))


class FixedAction(OnlineAgent):
    """Always the same action.

    Args:
        env: environment.
        seed: accepted for uniformity; nothing is drawn.
        action: number, or a label that the world declares, e.g. "manual_review".

    Raises:
        ValueError: no such action.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, seed: int = 0, action: int | str) -> None:
        super().__init__(env, seed=seed)
        self.action = self._number(action)

    def act(self, observation: Any) -> int:
        """The action."""
        return self.action

    def _greedy(self, observation: Any) -> int:
        return self.action

    def _number(self, action: int | str) -> int:
        if isinstance(action, str):
            schema = schema_of(self.env)
            labels = list(schema.actions) if schema else []
            if action not in labels:
                near = difflib.get_close_matches(action, labels, 1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise ValueError(f"`action` must be one of {labels}, got {action!r}{hint}")
            return labels.index(action)
        if not 0 <= action < self.n_actions:
            raise ValueError(f"`action` must lie in [0, {self.n_actions}), got {action}.")
        return int(action)


class BestFixed(FixedAction):
    """The best single action, which whoever runs the study finds on seeds of its own and passes as `action`."""


class PolicyAgent(OnlineAgent):
    """Follows a given policy: expert rules, or an oracle that a harness lends for reference.

    Args:
        env: environment.
        seed: accepted for uniformity; nothing is drawn.
        policy: observation -> action number.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, seed: int = 0, policy: Callable[[Any], int]) -> None:
        super().__init__(env, seed=seed)
        self.policy = policy

    def act(self, observation: Any) -> int:
        """What the policy says."""
        return int(self.policy(observation))

    def _greedy(self, observation: Any) -> int:
        return int(self.policy(observation))
