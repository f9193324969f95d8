"""What callbacks, loggers and evaluations of stable-baselines3 read of an algorithm, for agents that are none of its.

stable-baselines3, and PyTorch with it, is imported when one of its callbacks or loggers takes part, not before.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium

from . import arguments, callbacks

if TYPE_CHECKING:
    from .online import Stage
    from .sb3_callbacks import EnvView, Session
    from .sb3_logging import Logger, RunLog


class Algorithm:
    """The counts, the logger and the environment that stable-baselines3 looks for, under its names.

    The exception is `env`: in stable-baselines3 a `VecEnv`, here the environment that was given. `get_env()` has the
    other.

    Attributes:
        env: the environment, or None after loading without one.
        num_timesteps: steps learnt so far.
        n_envs: 1, the environments that it lives in at once.
        verbose: 1 prints a table of statistics while learning, where no logger was set; 0 does not.
        tensorboard_log: folder of TensorBoard files of every `learn`, or None.
        ep_info_buffer: return "r", length "l" and time "t" of the last 100 episodes; None before a run that logs or
            calls back.
        ep_success_buffer: their `info["is_success"]`, where an environment gives it.
        stage: the agent in its environment; None before the first step, and where an algorithm owns its loop.
        run_log: statistics of the last run that logged or called back.
    """

    n_envs = 1

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self.env: gymnasium.Env[Any, Any] | None = env
        self.num_timesteps = 0
        self.verbose = 0
        self.tensorboard_log: str | os.PathLike[str] | None = None
        self.ep_info_buffer: deque[dict[str, Any]] | None = None
        self.ep_success_buffer: deque[bool] | None = None
        self.stage: Stage | None = None
        self.run_log: RunLog | None = None
        self._total_timesteps = 0  # that `num_timesteps` is to reach in this run
        self._logger: Logger | None = None
        self._is_logger_set = False  # by the user
        self._env_view: EnvView | None = None

    @property
    def logger(self) -> Logger:
        """The logger that was set, that of the last run, or one that writes nothing."""
        if self._logger is None:
            from .sb3_logging import silent

            self._logger = silent()
        return self._logger

    def set_logger(self, logger: Logger | None) -> None:
        """Log into `logger`, as `stable_baselines3.common.logger.configure(folder, formats)` makes one; None ends that.

        All later runs use it instead of `tensorboard_log` and `verbose`. Who made it closes it.

        Raises:
            TypeError: no logger.
        """
        if logger is not None and not (hasattr(logger, "record") and hasattr(logger, "dump")):
            raise TypeError(
                f"`logger` must be a stable_baselines3.common.logger.Logger, got {logger!r}; make one with "
                '`configure(folder, ["csv", "tensorboard"])`.'
            )
        self._close_own_logger()
        self._logger, self._is_logger_set = logger, logger is not None

    def dump_logs(self) -> None:
        """Write a line of the log now, as `LogEveryNTimesteps` asks for.

        Raises:
            ValueError: no run has logged or called back yet, so that there is nothing to write.
        """
        if self.run_log is None:
            raise ValueError("`dump_logs` must follow `learn` with a logger or a callback of stable-baselines3.")
        self.run_log.write()

    def get_env(self) -> EnvView | None:
        """The environment as a `VecEnv` of one in a `Monitor`, always the same object; None without an environment.

        Making it changes nothing. Who resets or steps it does so with the agent's own environment, in which the next
        `learn` then begins a new episode.
        """
        if self._env_view is None and self.env is not None:
            from .sb3_callbacks import EnvView

            self._env_view = EnvView(self.env)
        return self._env_view

    def get_vec_normalize_env(self) -> None:
        """None: nothing is normalised around these agents, they scale what they see themselves."""

    def _session(self, callback: Any, tensorboard_log: str | os.PathLike[str] | None, **others: Any) -> Session | None:
        """The run to come as one that stable-baselines3 takes part in; None where it has no part in it.

        Args:
            callback: as `learn` takes it.
            tensorboard_log: as `learn` takes it.
            **others: the other arguments of `learn`.
        """
        for name in ("log_interval", "log_steps"):
            if others[name] is not None:
                arguments.whole_number(name, others[name], 1)
        arguments.switches(reset_num_timesteps=others["reset_num_timesteps"], progress_bar=others["progress_bar"])
        if tensorboard_log is not None and self._is_logger_set:
            raise ValueError(
                "`tensorboard_log` must be None where a logger was set, which is used alone, got "
                f"{tensorboard_log!r}; give `configure` the format 'tensorboard', or call `set_logger(None)`."
            )
        given: Sequence[Any] = callbacks.listed(callback)
        folder = self.tensorboard_log if tensorboard_log is None else tensorboard_log
        is_logged = self._is_logger_set or folder is not None or self.verbose > 0
        if not is_logged and not any(map(callbacks.is_of_stable_baselines3, given)):
            return None
        from . import sb3_callbacks, sb3_logging

        if others["tb_log_name"] is None:
            others["tb_log_name"] = type(self).__name__
        session = sb3_callbacks.Session(self, given, others)
        if not self._is_logger_set:
            self._close_own_logger()
            self._logger = sb3_logging.opened(
                folder, self.verbose, others["tb_log_name"], goes_on=not others["reset_num_timesteps"]
            )
        session.prepare()
        return session

    def _close_own_logger(self) -> None:
        if self._logger is not None and not self._is_logger_set:
            self._logger.close()

    def __getstate__(self) -> dict[str, Any]:
        """A copy is of the agent, and not of its open files and of what watched it."""
        apart = {"_logger": None, "_is_logger_set": False, "_env_view": None, "run_log": None}
        return {**self.__dict__, **apart}
