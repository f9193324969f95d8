"""The loop in which an agent lives: act, see what came of it, learn, go on.

There is no separate training phase: an agent is scored while it learns. `run` drives any object with the three methods
of `Agent`; `OnlineAgent` gives a learner of this package the same loop as a method, in stable-baselines3's signature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Self

import gymnasium
import numpy as np

from . import arguments
from .base import Agent, Transition

Callback = Callable[[Any, Transition], bool | None]
"""Called after every step with (agent, transition); returning False ends the run."""

AGENT_STREAM = 1  # Gymnasium's environments draw from default_rng(seed), which is [seed] without a second word


def generator(seed: int) -> np.random.Generator:
    """The random numbers of an agent. An environment reset with the same seed has a stream of its own."""
    return np.random.default_rng([seed, AGENT_STREAM])


def later_seed(seed: int, n_choices: int) -> int:
    """Seed of an environment in which an agent lives on after `n_choices`: not the one that it has already seen."""
    return int(np.random.SeedSequence([seed, AGENT_STREAM, n_choices]).generate_state(1)[0] >> 1)


class Calls:
    """Number of resets and steps that an environment was asked for, by anybody."""

    def __init__(self) -> None:
        self.n = 0


class _Counted:
    """A method of an environment that counts its calls. A class and not a closure, so that it copies and pickles."""

    def __init__(self, method: Callable[..., Any], calls: Calls) -> None:
        self.method, self.calls = method, calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.n += 1
        return self.method(*args, **kwargs)


def calls_of(env: gymnasium.Env[Any, Any]) -> Calls:
    """The counter of an environment, installed in the innermost one: all of its wrappers lead there, the user's too."""
    base = env.unwrapped
    if isinstance(installed := base.reset, _Counted):
        return installed.calls
    calls = Calls()
    for name in ("reset", "step"):
        setattr(base, name, _Counted(getattr(base, name), calls))
    return calls


class Stage:
    """An agent in its environment, between two steps, so that a run can be continued where it stopped.

    Where anybody else has reset or stepped the environment since, its episode is not the agent's any more, and a new
    one begins.

    Args:
        agent: what acts.
        env: where it acts.
        seed: seed of the environment's first reset; later episodes continue its stream.
    """

    def __init__(self, agent: Agent, env: gymnasium.Env[Any, Any], seed: int | None = None) -> None:
        self.agent, self.env, self._seed = agent, env, seed
        self._observation: Any = None
        self._is_open = False
        self._calls, self._n_known = calls_of(env), 0

    def advance(self, n_steps: int, callback: Callback | None = None) -> int:
        """Take up to `n_steps` steps; episodes that end are followed by new ones. Returns the number of steps taken."""
        for done in range(n_steps):
            if not self._is_open or self._calls.n != self._n_known:
                self._observation, info = self.env.reset(seed=self._seed)
                self._seed, self._is_open = None, True
                self.agent.begin(self._observation, info)
            action = self.agent.act(self._observation)
            observation, reward, terminated, truncated, info = self.env.step(action)
            transition = Transition(
                self._observation, action, float(reward), observation, bool(terminated), bool(truncated), info
            )
            self.agent.observe(transition)
            self._observation, self._is_open = observation, not (terminated or truncated)
            self._n_known = self._calls.n
            if callback is not None and callback(self.agent, transition) is False:
                return done + 1
        return n_steps


def run(
    agent: Agent,
    env: gymnasium.Env[Any, Any],
    n_steps: int,
    *,
    seed: int | None = None,
    callback: Callback | None = None,
) -> int:
    """Let any `Agent` live in `env` for `n_steps` steps from a fresh reset with `seed`. Returns the steps taken."""
    return Stage(agent, env, seed).advance(n_steps, callback)


class OnlineAgent:
    """Base of the agents that learn step by step. Subclasses implement `begin`, `act`, `observe` and `_greedy`.

    Args:
        env: environment with a Discrete action space.
        seed: seed of the agent's own choices and of the environment's first reset in `learn`; at least 0.

    Raises:
        TypeError: another action space, or a seed that is no whole number.
        ValueError: a negative seed.

    Attributes:
        env: the environment, or None after loading without one.
        num_timesteps: steps learnt so far.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, seed: int = 0) -> None:
        if not isinstance(env.action_space, gymnasium.spaces.Discrete) or env.action_space.start != 0:
            raise TypeError(
                f"`env.action_space` must be Discrete and start at 0, got {env.action_space}; "
                "wrap the environment so that each choice has one number."
            )
        self.env: gymnasium.Env[Any, Any] | None = env
        self._observation_space: gymnasium.Space[Any] = env.observation_space
        self.seed = arguments.whole_number("seed", seed, 0)
        self.n_actions = int(env.action_space.n)
        self.num_timesteps = 0
        self._stage: Stage | None = None
        self._n_observed = 0
        self._first_seed = self.seed  # of the environment's first reset in `learn`

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """A new episode starts."""

    def act(self, observation: Any) -> int:
        """Choose an action, exploring if the agent explores."""
        raise NotImplementedError

    def observe(self, transition: Transition) -> None:
        """Learn from one step."""

    def _greedy(self, observation: Any) -> int:
        """Best action for one observation, without exploration and without learning."""
        raise NotImplementedError

    def learn(
        self,
        total_timesteps: int,
        *,
        callback: Callback | None = None,
        progress_bar: bool = False,
        reset_num_timesteps: bool = True,
    ) -> Self:
        """Live and learn for `total_timesteps` more steps.

        A second call goes on where the first stopped, in the same episode; a new one begins where anybody else has
        reset or stepped the environment in between.

        Args:
            total_timesteps: number of steps, at least 1.
            callback: called as `callback(agent, transition)` after every step; returning False stops.
            progress_bar: show progress and the estimated time left.
            reset_num_timesteps: count `num_timesteps` from 0 again.

        Raises:
            ValueError: no environment, or a number of steps below 1.
            TypeError: the number of steps is not a whole one.
        """
        if self.env is None:
            raise ValueError("`env` is missing; load the agent with an environment, `load(path, env)`, to go on.")
        total_timesteps = arguments.whole_number("total_timesteps", total_timesteps, 1)
        if reset_num_timesteps:
            self.num_timesteps = 0
        if not progress_bar:
            self._live(self.env, total_timesteps, self._counting(callback))
            return self
        from rich.progress import Progress  # costs 60 ms, and most runs show none

        with Progress() as progress:
            task = progress.add_task("learning", total=total_timesteps)
            self._live(self.env, total_timesteps, self._counting(callback, lambda: progress.advance(task)))
        return self

    def _live(self, env: gymnasium.Env[Any, Any], total_timesteps: int, on_transition: Callback) -> None:
        """The loop itself; an algorithm that owns its loop puts its own here."""
        if self._stage is None:
            self._stage = Stage(self, env, self._first_seed)
        self._stage.advance(total_timesteps, on_transition)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Any]:
        """Action for one observation or a batch, in stable-baselines3's signature. Learns nothing, writes nothing.

        Args:
            observation: one observation, or a batch of them (arrays with one more leading axis).
            state: passed through; the memory of these agents lives in the agent.
            episode_start: ignored.
            deterministic: accepted for compatibility; these agents predict without exploring.

        Returns:
            ([] or [B] i64 actions, state).
        """
        batch = self._unbatch(observation)
        if batch is None:
            return np.asarray(self._greedy(observation), np.int64), state
        return np.array([self._greedy(single) for single in batch], np.int64), state

    def _check_outcomes(self, transition: Transition) -> None:
        """Refuse rewards that nothing can be learnt from, before they reach a memory that they would spoil for good.

        Raises:
            ValueError: a reward or a delayed outcome is NaN or infinite.
        """
        self._n_observed += 1
        outcomes = [("reward", transition.reward)]
        outcomes += [(f"outcome of decision {i}", value) for i, value in transition.info.get("feedback", ())]
        for name, value in outcomes:
            if not math.isfinite(value):
                raise ValueError(
                    f"the {name} must be finite, got {value} at step {self._n_observed} of this agent; nothing was "
                    "learnt from the step. Correct the environment, or replace such rewards in a "
                    "gymnasium.wrappers.TransformReward."
                )

    def _counting(self, callback: Callback | None, tick: Callable[[], None] | None = None) -> Callback:
        def count(agent: Any, transition: Transition) -> bool | None:
            self.num_timesteps += 1
            if tick is not None:
                tick()
            return callback(agent, transition) if callback is not None else None

        return count

    def _unbatch(self, observation: Any) -> list[Any] | None:
        """The single observations of a batch, or None for a single observation."""
        space = self._observation_space
        if isinstance(space, gymnasium.spaces.Dict):
            name, entry = next(iter(space.spaces.items()))
            if np.ndim(observation[name]) == len(entry.shape or ()):
                return None
            size = len(observation[name])
            return [{key: values[i] for key, values in observation.items()} for i in range(size)]
        return None if np.ndim(observation) == len(space.shape or ()) else list(observation)
