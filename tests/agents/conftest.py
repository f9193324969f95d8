"""A world small enough to know by heart: a lantern of one of three colours, and three levers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from habitus.envs import contract

RIGHT = 0.9  # probability that the lever of the colour pays
RANDOM, ORACLE = (RIGHT + 2 * (1 - RIGHT)) / 3, RIGHT  # mean outcomes


def lantern_schema(**changes: Any) -> contract.Schema:
    """What the lantern world declares; `shade` is noise, `guest` an entity, levers 0 to 2 are the colours."""
    schema = contract.Schema(
        world="Lanterns",
        version=0,
        fields=(
            contract.Field("colour", labels=("red", "green", "blue")),
            contract.Field("shade", low=0.0, high=1.0, edges=(0.25, 0.5, 0.75)),
            contract.Field("guest", labels=("new", "ada", "ben")),
        ),
        actions=("pull red", "pull green", "pull blue"),
        entity_field="guest",
        stake_field=None,
        boundary="lantern",
        deliberation=(),
        scaled_actions=(),
        review=None,
        signals=(),
        sensitive=(),
        proxies=(),
        reward_bound=1.0,
        feedback="attributed",
        score_per="step",
    )
    return dataclasses.replace(schema, **changes)


class Lanterns(gymnasium.Env[dict[str, Any], np.int64]):
    """Pulling the lever of the lantern's colour pays 1 with probability .9, any other with .1, `delay` steps later."""

    def __init__(self, delay: int = 0, feedback: contract.FeedbackMode = "attributed", horizon: int = 1_000) -> None:
        self.delay, self.horizon = delay, horizon
        self.schema = lantern_schema(feedback=feedback)
        self.observation_space = gymnasium.spaces.Dict(
            {
                "colour": gymnasium.spaces.Discrete(3),
                "shade": gymnasium.spaces.Box(0.0, 1.0, (1,), np.float32),
                "guest": gymnasium.spaces.Discrete(3),
            }
        )
        self.action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], Any]:
        super().reset(seed=seed)
        self._t, self._pending = 0, []
        return self._show(), {"decision_id": -1, "feedback": [], "boundary": False}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        chance = RIGHT if action == self._colour else 1 - RIGHT
        outcome = float(self.np_random.random() < chance)
        decision_id, self._t = self._t if self.delay else -1, self._t + 1
        if self.delay:
            self._pending.append((decision_id, outcome))
        arrived = [self._pending.pop(0)] if len(self._pending) > self.delay else []
        is_paid_now = not self.delay or self.schema.feedback == "attributed"
        reward = outcome if is_paid_now else sum(value for _, value in arrived)
        info = {"decision_id": decision_id, "feedback": arrived, "boundary": True}
        return self._show(), reward, False, self._t >= self.horizon, info

    def _show(self) -> dict[str, Any]:
        self._colour = int(self.np_random.integers(3))
        shade = np.array([self.np_random.random()], np.float32)
        return {"colour": np.int64(self._colour), "shade": shade, "guest": self.np_random.integers(3)}


def late_score(agent: Any, n_steps: int) -> float:
    """Score of the second half of a life, counted by lever and colour: 0 = random, 1 = the best lever always."""
    right: list[bool] = []
    agent.learn(n_steps, callback=lambda _, t: right.append(t.action == int(t.observation["colour"])))
    share = float(np.mean(right[n_steps // 2 :]))
    return (share - 1 / 3) / (2 / 3)


@pytest.fixture
def lanterns() -> type[Lanterns]:
    return Lanterns


@pytest.fixture
def schema() -> Callable[..., contract.Schema]:
    return lantern_schema


@pytest.fixture
def score() -> Callable[[Any, int], float]:
    return late_score
