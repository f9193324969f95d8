"""What a run writes into a logger of stable-baselines3: its standard tags, and what this package adds under `habitus/`.

Standard tags are those of stable-baselines3's off-policy algorithms (`OffPolicyAlgorithm.dump_logs` of 2.9), which log
after a number of episodes. Differs: 1. worlds here have episodes of thousands of steps, so that a line is also due
after a number of steps, and at the end of a run;  2. `time/iterations` counts the lines.
"""

from __future__ import annotations

import errno
import numbers
import os
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from stable_baselines3.common.logger import HumanOutputFormat
from stable_baselines3.common.logger import Logger as Logger
from stable_baselines3.common.utils import configure_logger

from .base import Transition
from .online import calls_of

if TYPE_CHECKING:
    from .algorithm import Algorithm

RECENT_EPISODES = 100  # that the means under `rollout/` look back, as in stable-baselines3
RECENT_STEPS = 1_000  # that `habitus/reward_mean` looks back
_EXPLORATION = ("exploration_rate", "epsilon")  # how agents call their probability of a random action


def silent() -> Logger:
    """A logger that writes nothing, and no folder either (`configure` makes one in any case)."""
    return Logger(folder=None, output_formats=[])


def opened(folder: str | os.PathLike[str] | None, verbose: int, run_name: str, *, goes_on: bool) -> Logger:
    """The logger of a run that was given none: TensorBoard files in `<folder>/<run_name>_<number>`, a table if verbose.

    A run that goes on gets the folder of the last one of its name; a new one the next number.

    Raises:
        TypeError: the folder is no path.
        OSError: the folder cannot be written.
    """
    if folder is not None:
        check_folder("tensorboard_log", folder)
        return configure_logger(verbose, os.fspath(folder), run_name, reset_num_timesteps=not goes_on)
    return Logger(folder=None, output_formats=[HumanOutputFormat(sys.stdout)]) if verbose else silent()


def check_folder(name: str, folder: str | os.PathLike[str]) -> None:
    """Make a folder, and refuse one that nothing can be written into.

    Raises:
        TypeError: no path.
        OSError: it cannot be made or written.
    """
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"`{name}` must be the path of a folder, got {folder!r}.")
    way_out = "no step was taken. Give a folder that this process may write."
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        message = f"`{name}` must be a folder to write into, got {os.fspath(folder)!r} ({error.strerror}); {way_out}"
        raise OSError(error.errno, message) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"`{name}` must be a folder to write into, got {os.fspath(folder)!r} (read-only); {way_out}"
        raise PermissionError(errno.EACCES, message)


class RunLog:
    """Statistics of a run, and when they are written.

    Args:
        agent: whose run it is; its `logger` is written to, its `ep_info_buffer` and `ep_success_buffer` are filled.
        log_interval: episodes between two lines, or None.
        log_steps: steps between two lines, or None.
    """

    def __init__(self, agent: Algorithm, log_interval: int | None, log_steps: int | None) -> None:
        assert agent.env is not None
        self._agent, self._log_interval, self._log_steps = agent, log_interval, log_steps
        self._started_s, self._first_step = time.perf_counter(), agent.num_timesteps
        self._rewards: deque[float] = deque(maxlen=RECENT_STEPS)
        self._n_lines = self._n_episodes = 0
        self._last_step, self._last_episode = agent.num_timesteps, 0
        # for agents that own their loop
        self._reward, self._length, self._is_whole = 0.0, 0, calls_of(agent.env).n == 0

    def add(self, transition: Transition, info: dict[str, Any]) -> None:
        """Take note of a step. Where an episode ends, `info` gets what `Monitor` would have put there.

        Args:
            transition: the step.
            info: a copy of its info, to be completed.
        """
        self._rewards.append(transition.reward)
        episode = self._episode(transition)
        if not (transition.terminated or transition.truncated):
            return
        self._n_episodes += 1
        if "episode" not in info and episode is not None:
            seconds = round(time.perf_counter() - self._started_s, 6)
            info["episode"] = {"r": round(episode[0], 6), "l": episode[1], "t": seconds}
        assert self._agent.ep_info_buffer is not None
        assert self._agent.ep_success_buffer is not None
        if "episode" in info:
            self._agent.ep_info_buffer.append(info["episode"])
        if info.get("is_success") is not None:
            self._agent.ep_success_buffer.append(info["is_success"])

    @property
    def is_due(self) -> bool:
        """Whether as many episodes or steps have passed since the last line as were asked for."""
        if self._log_steps is not None and self._agent.num_timesteps - self._last_step >= self._log_steps:
            return True
        return self._log_interval is not None and self._n_episodes - self._last_episode >= self._log_interval

    @property
    def has_news(self) -> bool:
        """Whether a step was taken since the last line."""
        return self._agent.num_timesteps > self._last_step

    def write(self) -> None:
        """Write a line: everything recorded so far, at the agent's number of steps."""
        agent, logger = self._agent, self._agent.logger
        self._n_lines += 1
        self._last_step, self._last_episode = agent.num_timesteps, self._n_episodes
        if agent.ep_info_buffer:
            logger.record("rollout/ep_rew_mean", float(np.mean([one["r"] for one in agent.ep_info_buffer])))
            logger.record("rollout/ep_len_mean", float(np.mean([one["l"] for one in agent.ep_info_buffer])))
        if agent.ep_success_buffer:
            logger.record("rollout/success_rate", float(np.mean(agent.ep_success_buffer)))
        seconds = max(time.perf_counter() - self._started_s, sys.float_info.epsilon)
        logger.record("time/fps", int((agent.num_timesteps - self._first_step) / seconds))
        # as in stable-baselines3, not in TensorBoard, whose axes they are
        logger.record("time/iterations", self._n_lines, exclude="tensorboard")
        logger.record("time/episodes", self._n_episodes, exclude="tensorboard")
        logger.record("time/time_elapsed", int(seconds), exclude="tensorboard")
        logger.record("time/total_timesteps", agent.num_timesteps, exclude="tensorboard")
        if self._rewards:
            logger.record("habitus/reward_mean", float(np.mean(self._rewards)))
        exploration = next((rate for name in _EXPLORATION if _is_number(rate := getattr(agent, name, None))), None)
        if exploration is not None:
            logger.record("habitus/exploration_rate", float(exploration))
        lessons = getattr(agent, "lessons", None)
        if lessons is None and (memory := getattr(agent, "memory", None)) is not None:
            lessons = memory.version
        if _is_number(lessons):
            logger.record("habitus/lessons", int(lessons))
        logger.dump(step=agent.num_timesteps)

    def _episode(self, transition: Transition) -> tuple[float, int] | None:
        """Return and length of the episode up to here; None where its beginning is not known."""
        stage = self._agent.stage
        if stage is not None:
            return stage.episode_return, stage.episode_length
        self._reward, self._length = self._reward + transition.reward, self._length + 1
        episode = (self._reward, self._length) if self._is_whole else None
        if transition.terminated or transition.truncated:
            self._reward, self._length, self._is_whole = 0.0, 0, True
        return episode


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, numbers.Real)
