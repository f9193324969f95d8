"""Measures an agent at its environment, so that every kind of agent is measured in the same way.

Whoever steps the environment, the harness or a library that owns its loop, goes through `Recorder`. What it stores does
not depend on the feedback variant: a reward that arrives late is put back to the decision that earned it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from .records import Steps

N_MARKS = 100  # times taken during a run, for the speed over time
TICK_S = 0.25  # seconds between two reports of progress


class Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Passes everything through and takes notes of the first `steps` steps.

    Args:
        env: environment with a Discrete action space.
        steps: number of steps to record.
        seed: seed of the first episode. It is enforced, so that an agent that resets by itself meets the same episode.
        epsilon: tells the agent's present rate of random actions, or None.
        before_step: called before each recorded step as (step number, observation, action).
        tick: called a few times a second with the number of steps done; may raise to end the run.

    Raises:
        TypeError: the actions are not numbered.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        steps: int,
        seed: int,
        before_step: Callable[[int, Any, int], None] | None = None,
        tick: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(env)
        if not isinstance(env.action_space, gymnasium.spaces.Discrete):
            raise TypeError(
                f"a study needs a Discrete action space, got {env.action_space}; wrap the environment so that each "
                "choice has one number."
            )
        self.epsilon: Callable[[], float | None] = lambda: None
        self.n_done = 0
        self.n_steps = steps
        self.first_step_s = 0.0
        self.marks_s: list[float] = []
        self.seed = seed
        self._before_step, self._tick = before_step, tick
        self._expected_rewards = getattr(env.unwrapped, "expected_rewards", None)
        schema = getattr(env.unwrapped, "schema", None)
        self._pays_on_arrival = schema is not None and schema.feedback == "stream"
        self._pending: dict[int, int] = {}  # decision id -> step
        self._observation: Any = None
        self._mark_every = max(1, steps // N_MARKS)
        self._began_s = self._ticked_s = time.perf_counter()
        empty = np.full(steps, np.nan, np.float32)
        self._action = np.zeros(steps, np.int16)
        self._reward = np.zeros(steps, np.float64)
        self._score, self._best, self._epsilon = empty.copy(), empty.copy(), empty.copy()
        self._regimes = np.zeros(steps, np.float32)
        self._boundary = np.zeros(steps, np.bool_)

    @property
    def is_full(self) -> bool:
        """Whether all steps are recorded."""
        return self.n_done >= self.n_steps

    @property
    def n_pending(self) -> int:
        """Decisions whose outcome had not arrived when the record ended; in "stream" their rewards lack it."""
        return len(self._pending)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; before the first step always with the run's seed."""
        observation, info = self.env.reset(seed=self.seed if self.n_done == 0 else seed, options=options)
        if not self.is_full:
            self._observation = observation
            self._pending.clear()  # an episode numbers its decisions anew
            if self.n_done == 0:
                self._began_s = time.perf_counter()
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step of the environment, noted while there is room."""
        if self.is_full:
            return self.env.step(action)
        number, choice = self.n_done, int(action)
        if self._before_step is not None:
            self._before_step(number, self._observation, choice)
        epsilon = self.epsilon()
        if epsilon is not None:
            self._epsilon[number] = epsilon
        expected = self._expected_rewards() if self._expected_rewards is not None else None
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._action[number] = choice
        self._regimes[number] = float(info.get("regime", 0.0))  # in which the action was taken
        self._boundary[number] = bool(info.get("boundary", terminated or truncated))
        self._settle(number, float(reward), info)
        if expected is not None:
            self._score[number], self._best[number] = expected[choice], np.max(expected)
        self._observation = observation
        self.n_done += 1
        self._take_time()
        return observation, reward, terminated, truncated, info

    def steps(self) -> Steps:
        """The record.

        Raises:
            RuntimeError: the agent stopped early.
        """
        if not self.is_full:
            raise RuntimeError(f"the agent stopped after {self.n_done} of {self.n_steps} steps.")
        reward = self._reward.astype(np.float32)
        return Steps(
            action=self._action,
            reward=reward,
            score=self._score if self._expected_rewards is not None else reward,
            best=self._best,
            boundary=self._boundary,
            regime=self._regimes,
            epsilon=self._epsilon,
        )

    def timing(self) -> dict[str, Any]:
        """Seconds from the first reset to the first step, to each mark, and the steps between marks."""
        return {
            "first_step_s": round(self.first_step_s, 6),
            "marks_s": [round(mark, 6) for mark in self.marks_s],
            "steps_per_mark": self._mark_every,
        }

    def _settle(self, number: int, reward: float, info: dict[str, Any]) -> None:
        feedback: list[tuple[int, float]] = info.get("feedback", [])
        decision = int(info.get("decision_id", -1))
        self._reward[number] = reward
        if decision >= 0:
            self._pending[decision] = number
        if self._pays_on_arrival:
            self._reward[number] -= sum(value for _, value in feedback)
        for identity, value in feedback:
            earner = self._pending.pop(identity, None)
            if self._pays_on_arrival and earner is not None:
                self._reward[earner] += value

    def _take_time(self) -> None:
        now_s = time.perf_counter()
        if self.n_done == 1:
            self.first_step_s = now_s - self._began_s
        if self.n_done % self._mark_every == 0 or self.is_full:
            self.marks_s.append(now_s - self._began_s)
        if self._tick is not None and (now_s - self._ticked_s > TICK_S):
            self._ticked_s = now_s
            self._tick(self.n_done)


def epsilon_of(agent: Any) -> Callable[[], float | None]:
    """Reads the rate of random actions off an agent that declares one as `epsilon` or `exploration_rate`."""
    for holder in (agent, getattr(agent, "model", None)):
        for name in ("epsilon", "exploration_rate"):
            if isinstance(getattr(holder, name, None), int | float | np.floating):
                return lambda holder=holder, name=name: float(getattr(holder, name))  # type: ignore[misc]
    return lambda: None
