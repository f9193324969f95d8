"""The loop in which an agent lives: act, see what came of it, learn, go on.

There is no separate training phase: an agent is scored while it learns. `run` drives any object with the three methods
of `Agent`; `OnlineAgent` gives a learner of this package the same loop as a method, in stable-baselines3's signature.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any, Self

import gymnasium
import numpy as np

from . import arguments, callbacks
from .actions import Actions
from .algorithm import Algorithm
from .base import Agent, Transition
from .callbacks import Callback as Callback  # part of this module's face, too
from .encoding import singles

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

    Attributes:
        episode_return: sum of the rewards of the episode so far.
        episode_length: its steps so far.
    """

    def __init__(self, agent: Agent, env: gymnasium.Env[Any, Any], seed: int | None = None) -> None:
        self.agent, self.env, self._seed = agent, env, seed
        self._observation: Any = None
        self._is_open = False
        self._calls, self._n_known = calls_of(env), 0
        is_combined = isinstance(env.action_space, gymnasium.spaces.MultiDiscrete)
        self._of_env = Actions(env.action_space).of_env if is_combined else _same
        self.episode_return, self.episode_length = 0.0, 0

    def advance(self, n_steps: int, callback: Callback | None = None) -> int:
        """Take up to `n_steps` steps; episodes that end are followed by new ones. Returns the number of steps taken."""
        agent, env, calls, of_env = self.agent, self.env, self._calls, self._of_env
        for done in range(n_steps):
            if not self._is_open or calls.n != self._n_known:
                self._observation, info = env.reset(seed=self._seed)
                self._seed, self._is_open = None, True
                self.episode_return, self.episode_length = 0.0, 0
                agent.begin(self._observation, info)
            action = agent.act(self._observation)
            observation, reward, terminated, truncated, info = env.step(of_env(action))
            reward = float(reward)
            transition = Transition(
                self._observation, action, reward, observation, bool(terminated), bool(truncated), info
            )
            agent.observe(transition)
            self.episode_return += reward
            self.episode_length += 1
            self._observation, self._is_open = observation, not (terminated or truncated)
            self._n_known = calls.n
            if callback is not None and callback(agent, transition) is False:
                return done + 1
        return n_steps


def _same(action: Any) -> Any:
    return action


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


class OnlineAgent(Algorithm):
    """Base of the agents that learn step by step. Subclasses implement `begin`, `act`, `observe` and `_greedy`.

    To callbacks, loggers and `evaluate_policy` of stable-baselines3 it is an algorithm (see `Algorithm`).

    Args:
        env: environment with a Discrete action space, or a MultiDiscrete one: its combinations are numbered, the last
            entry changing fastest, and `act` and transitions give these numbers.
        seed: seed of the agent's own choices and of the environment's first reset in `learn`; at least 0.

    Raises:
        TypeError: another action space, or a seed that is no whole number.
        ValueError: a negative seed, or too many combinations of actions.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, seed: int = 0) -> None:
        self._numbers = Actions(env.action_space)
        super().__init__(env)
        self._observation_space: gymnasium.Space[Any] = env.observation_space
        self.seed = arguments.whole_number("seed", seed, 0)
        self.n_actions = self._numbers.n
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
        callback: Any = None,
        log_interval: int | None = 4,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
        *,
        tensorboard_log: str | os.PathLike[str] | None = None,
        log_steps: int | None = 1_000,
    ) -> Self:
        """Live and learn for `total_timesteps` more steps.

        A second call goes on where the first stopped, in the same episode; a new one begins where anybody else has
        reset or stepped the environment in between.

        Something is logged if `set_logger` was called, a folder for TensorBoard is given or `verbose` is set; without
        callbacks and loggers of stable-baselines3 it is not imported, and nothing is counted or written.

        Args:
            total_timesteps: number of steps, at least 1.
            callback: called after every step; what it is told follows from its kind. A function of
                (agent, transition): those two; returning False stops. A `BaseCallback` of stable-baselines3, or a
                function whose parameters are named `locals` and `globals` (underscores are ignored): what
                stable-baselines3 tells it; anything but a true value stops. A list calls all of its members. A rollout
                is an episode, and `new_obs` is what the step showed, also at the end of an episode.
            log_interval: episodes between two lines of the log, as in stable-baselines3; None for no such lines.
            tb_log_name: name of the run among the TensorBoard files; by default that of the class.
            reset_num_timesteps: count `num_timesteps` from 0 again, and begin a new TensorBoard run. False goes on in
                the last one.
            progress_bar: show progress and the estimated time left.
            tensorboard_log: folder of TensorBoard files of this call; by default the attribute of this name.
            log_steps: steps between two lines of the log at most, for episodes may be long; None for no such lines.

        Raises:
            ValueError: no environment, a number below 1, a callback that works only inside of another one, or a
                folder for TensorBoard beside a logger that was set.
            TypeError: a number that is not whole, or a callback that cannot be used.
            OSError: a folder of the log or of a callback cannot be written.
        """
        if self.env is None:
            raise ValueError("`env` is missing; load the agent with an environment, `load(path, env)`, to go on.")
        total_timesteps = arguments.whole_number("total_timesteps", total_timesteps, 1)
        session = self._session(
            callback,
            tensorboard_log,
            log_interval=log_interval,
            log_steps=log_steps,
            tb_log_name=tb_log_name,
            reset_num_timesteps=reset_num_timesteps,
            progress_bar=progress_bar,
        )
        if reset_num_timesteps:
            self.num_timesteps = 0
        self._total_timesteps = self.num_timesteps + total_timesteps
        if session is None:
            on_step = callbacks.joined(callbacks.listed(callback))
            self._show_progress(self.env, total_timesteps, on_step, progress_bar=progress_bar)
            return self
        session.start()
        self._show_progress(self.env, total_timesteps, session.after_step, progress_bar=progress_bar)
        session.end()
        return self

    def _show_progress(
        self, env: gymnasium.Env[Any, Any], total_timesteps: int, on_step: Callback | None, *, progress_bar: bool
    ) -> None:
        if not progress_bar:
            self._live(env, total_timesteps, self._counting(on_step))
            return
        from rich.progress import Progress  # costs 60 ms, and most runs show none

        with Progress() as progress:
            task = progress.add_task("learning", total=total_timesteps)
            self._live(env, total_timesteps, self._counting(on_step, lambda: progress.advance(task)))

    def _live(self, env: gymnasium.Env[Any, Any], total_timesteps: int, on_transition: Callback) -> None:
        """The loop itself; an algorithm that owns its loop puts its own here."""
        if self.stage is None:
            self.stage = Stage(self, env, self._first_seed)
        self.stage.advance(total_timesteps, on_transition)

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
            ([] or [B] i64 actions, state); one more axis, of entries, in a MultiDiscrete space.
        """
        batch = self._unbatch(observation)
        if batch is None:
            return self._numbers.predicted(np.asarray(self._greedy(observation), np.int64)), state
        return self._numbers.predicted(np.array([self._greedy(single) for single in batch], np.int64)), state

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Observations that it was built for."""
        return self._observation_space

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Actions that the environment takes, and that `predict` returns."""
        return self._numbers.space

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
        def count(agent: Any, transition: Transition) -> None:
            self.num_timesteps += 1

        def count_and_call(agent: Any, transition: Transition) -> bool | None:
            self.num_timesteps += 1
            if tick is not None:
                tick()
            return callback(agent, transition) if callback is not None else None

        return count if callback is None and tick is None else count_and_call

    def _unbatch(self, observation: Any) -> list[Any] | None:
        """The single observations of a batch, or None for a single observation."""
        return singles(self._observation_space, observation)
