"""Callbacks of stable-baselines3 in a run of an agent of this package.

They read an algorithm: its counts, its logger, its environment as a `VecEnv`, and the local variables of its loop. All
of that is here for them, for as long as the run lasts.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    ConvertCallback,
    EvalCallback,
    EventCallback,
    StopTrainingOnNoModelImprovement,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from . import callbacks, sb3_logging
from .base import Transition

if TYPE_CHECKING:
    from .algorithm import Algorithm


class EnvView(DummyVecEnv):
    """An environment as stable-baselines3 would have wrapped it: in a `Monitor`, as a vector of one.

    Making it neither resets nor steps the environment. Who steps it, steps the environment itself.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__([lambda: env if is_wrapped(env, Monitor) else Monitor(env)])


class Session:
    """One call of `learn` in which callbacks or loggers of stable-baselines3 take part.

    Building it checks everything that can be checked before the first step, and makes the folders.

    Args:
        agent: whose run it is.
        given: callbacks of all kinds, in the order in which they are called.
        arguments: the other arguments of `learn`, which callbacks find among the local variables.

    Raises:
        TypeError: the agent cannot be saved, and a callback would save it.
        ValueError: a callback that works only inside of another one stands alone.
        OSError: a folder cannot be written.
    """

    def __init__(self, agent: Algorithm, given: Sequence[Any], arguments: Mapping[str, Any]) -> None:
        self._agent, self._arguments = agent, arguments
        self._root = CallbackList([_converted(one) for one in given]) if given else None
        for callback, parent in _nested(self._root, None):
            _check(agent, callback, parent)
        self._is_new_episode = True
        self._locals: dict[str, Any] = {}

    def prepare(self) -> None:
        """Let callbacks get ready; the agent has its logger by now."""
        if self._root is not None:
            self._root.init_callback(self._agent)  # type: ignore[arg-type]  # an algorithm in all that callbacks read

    def start(self) -> None:
        """The run begins: counts are as it finds them."""
        agent, arguments = self._agent, self._arguments
        if agent.ep_info_buffer is None or arguments["reset_num_timesteps"]:
            agent.ep_info_buffer = deque(maxlen=sb3_logging.RECENT_EPISODES)
            agent.ep_success_buffer = deque(maxlen=sb3_logging.RECENT_EPISODES)
        self._log = agent.run_log = sb3_logging.RunLog(agent, arguments["log_interval"], arguments["log_steps"])
        self._writes = bool(getattr(agent.logger, "output_formats", True))
        if self._root is None:
            return
        self._locals = {
            "self": agent,
            "env": agent.get_env(),
            "callback": self._root,
            "total_timesteps": agent._total_timesteps,
            **arguments,
        }
        self._root.on_training_start(self._locals, globals())

    def after_step(self, agent: Any, transition: Transition) -> bool:
        """Tell everybody of a step, and write what is due. Returns whether the run goes on."""
        info = dict(transition.info)
        self._log.add(transition, info)
        goes_on = self._root is None or self._called(self._root, transition, info)
        if self._writes and self._log.is_due:
            self._log.write()
        return goes_on

    def end(self) -> None:
        """The run is over."""
        if self._writes and self._log.has_news:
            self._log.write()
        if self._root is not None:
            if not self._is_new_episode:
                self._root.on_rollout_end()
            self._root.on_training_end()

    def _called(self, root: BaseCallback, transition: Transition, info: dict[str, Any]) -> bool:
        """Call stable-baselines3's callbacks after a step; a rollout is an episode to them."""
        is_over = transition.terminated or transition.truncated
        info["TimeLimit.truncated"] = transition.truncated and not transition.terminated
        if is_over:
            info["terminal_observation"] = transition.next_observation
        if self._is_new_episode:
            root.on_rollout_start()
        self._locals.update(
            new_obs=_batch_of_one(transition.next_observation),
            actions=np.array([transition.action], np.int64),
            rewards=np.array([transition.reward], np.float32),
            dones=np.array([is_over]),
            infos=[info],
            transition=transition,
        )
        root.update_locals(self._locals)
        goes_on = bool(root.on_step())
        self._is_new_episode = is_over
        if is_over:
            root.on_rollout_end()
        return goes_on


class _OwnCallback(BaseCallback):
    """A function of (agent, transition) among callbacks of stable-baselines3."""

    def __init__(self, function: callbacks.Callback) -> None:
        super().__init__()
        self._function = function

    def _on_step(self) -> bool:
        return self._function(self.model, self.locals["transition"]) is not False


def _converted(callback: Any) -> BaseCallback:
    if isinstance(callback, BaseCallback):
        return callback
    if callbacks.is_of_stable_baselines3(callback):
        return ConvertCallback(callback)
    return _OwnCallback(callback)


def _nested(callback: Any, parent: BaseCallback | None) -> Iterator[tuple[BaseCallback, BaseCallback | None]]:
    """A callback and all that it calls, each with the event callback that it belongs to."""
    if not isinstance(callback, BaseCallback):
        return
    yield callback, parent
    if isinstance(callback, CallbackList):
        for one in callback.callbacks:
            yield from _nested(one, parent)
    elif isinstance(callback, EventCallback):
        yield from _nested(callback.callback, callback)
        yield from _nested(getattr(callback, "callback_on_new_best", None), callback)


def _check(agent: Algorithm, callback: BaseCallback, parent: BaseCallback | None) -> None:
    """Refuse what would fail in the middle of the run."""
    name = type(callback).__name__
    judges = isinstance(callback, StopTrainingOnRewardThreshold | StopTrainingOnNoModelImprovement)
    if judges and not isinstance(parent, EvalCallback):
        raise ValueError(
            f"`callback` {name} must belong to an EvalCallback, whose scores it reads, got it "
            f"{'in ' + type(parent).__name__ if parent else 'alone'}; pass it to an EvalCallback as "
            "`callback_on_new_best` or `callback_after_eval`."
        )
    folder = None
    if isinstance(callback, CheckpointCallback):
        folder = ("save_path", callback.save_path)
    elif isinstance(callback, EvalCallback):
        if callback.log_path is not None:
            sb3_logging.check_folder("log_path", os.path.dirname(callback.log_path) or os.curdir)
        if callback.best_model_save_path is not None:
            folder = ("best_model_save_path", callback.best_model_save_path)
    if folder is None:
        return
    if not hasattr(agent, "save"):
        raise TypeError(
            f"`callback` {name} needs an agent that can be saved, got {type(agent).__name__}, which has no `save`; "
            "leave it out, or give EvalCallback no `best_model_save_path`."
        )
    sb3_logging.check_folder(*folder)


def _batch_of_one(observation: Any) -> Any:
    """An observation with one more leading axis, as a `VecEnv` shows it."""
    if isinstance(observation, Mapping):
        return {name: np.asarray(value)[None] for name, value in observation.items()}
    return np.asarray(observation)[None]
