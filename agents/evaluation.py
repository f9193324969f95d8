"""An evaluation in which the agent keeps what makes it one: it learns from what its actions bring.

`evaluate_policy` of stable-baselines3 only asks `predict` for actions, and no reward ever reaches the agent. It thus
scores the policy of one moment, frozen, without exploration. That is the whole truth about an agent that is trained
first and used afterwards. Of one that learns while it acts it tells less than half: not how it gets to know whoever it
meets, not whether it recovers after a change of the rules, not what its exploration costs. `evaluate_online` lets a
copy of the agent live in an environment and keeps every reward that it got there.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from . import arguments
from .base import Agent, Transition
from .online import OnlineAgent, run


@dataclasses.dataclass(frozen=True)
class OnlineScore:
    """What an agent got while it went on learning.

    Attributes:
        rewards: [T] f64, reward of every step, in units of the environment.
        ends: [T] bool, whether the step was the last of an episode.
        seed: seed of the environment's first reset.
    """

    rewards: npt.NDArray[np.float64]
    ends: npt.NDArray[np.bool_]
    seed: int

    @property
    def mean(self) -> float:
        """Mean reward per step."""
        return float(self.rewards.mean())

    @property
    def episode_returns(self) -> npt.NDArray[np.float64]:
        """[E] f64: sums of rewards over the episodes that were completed; what `evaluate_policy` averages."""
        stops = np.flatnonzero(self.ends) + 1
        return np.array([part.sum() for part in np.split(self.rewards, stops)[:-1]], np.float64)

    def windows(self, size: int) -> npt.NDArray[np.float64]:
        """[ceil(T / size)] f64: mean reward per step of windows of `size` steps; the last one may be shorter.

        Raises:
            ValueError: a size below 1.
            TypeError: no whole number.
        """
        starts = np.arange(0, len(self.rewards), arguments.whole_number("size", size, 1))
        lengths = np.diff(starts, append=len(self.rewards))
        return np.add.reduceat(self.rewards, starts) / lengths


def evaluate_online(agent: Agent, env: gymnasium.Env[Any, Any], n_steps: int, seed: int) -> OnlineScore:
    """Let a copy of an agent live, explore and learn in `env`, and keep what it got.

    The agent itself is not touched: what it knows, counts and would do next stay as they are. The copy starts with all
    of that, in a new episode. An environment that the agent holds is not copied; where it is `env` itself, the agent's
    own episode there is over, and its next `learn` begins a new one.

    Args:
        agent: anything with the three methods of `Agent`.
        env: where to evaluate; one of its own is best, with the spaces that the agent was built for.
        n_steps: steps to live, at least 1; episodes that end are followed by new ones.
        seed: seed of the environment's first reset, at least 0; the same one gives the same score.

    Raises:
        TypeError: not an agent of the three methods, one that owns its loop, one that cannot be copied, or a number
            that is not whole.
        ValueError: fewer than 1 step, a negative seed, or spaces that the agent was not built for.
    """
    n_steps = arguments.whole_number("n_steps", n_steps, 1)
    seed = arguments.whole_number("seed", seed, 0)
    _check(agent, env)
    twin = _copied(agent, env)
    rewards, ends = np.empty(n_steps, np.float64), np.empty(n_steps, np.bool_)
    n_kept = 0

    def keep(_: Any, transition: Transition) -> None:
        nonlocal n_kept
        rewards[n_kept] = transition.reward
        ends[n_kept] = transition.terminated or transition.truncated
        n_kept += 1

    run(twin, env, n_steps, seed=seed, callback=keep)
    return OnlineScore(rewards, ends, seed)


def _check(agent: Any, env: gymnasium.Env[Any, Any]) -> None:
    if not isinstance(agent, Agent):
        missing = [name for name in ("begin", "act", "observe") if not hasattr(agent, name)]
        raise TypeError(f"`agent` must have the methods `begin`, `act` and `observe`, got {agent!r} without {missing}.")
    if not isinstance(agent, OnlineAgent):
        return
    if type(agent)._live is not OnlineAgent._live:
        raise TypeError(
            f"`agent` must learn step by step, got a {type(agent).__name__}, which owns its loop and its environment; "
            "`learn(n, callback=...)` shows what it gets while it learns, `evaluate_policy` what it gets frozen."
        )
    for name in ("observation_space", "action_space"):
        built_for, found = getattr(agent, name), getattr(env, name)
        if built_for != found:
            raise ValueError(f"`env.{name}` must be the one that the agent was built for, {built_for}, got {found}.")


def _copied(agent: Agent, *envs: gymnasium.Env[Any, Any]) -> Agent:
    """A deep copy of an agent that shares the environments with it, for those may hold windows and processes."""
    shared: dict[int, Any] = {}
    for env in (*envs, getattr(agent, "env", None)):
        while env is not None:
            shared[id(env)] = env
            env = env.env if isinstance(env, gymnasium.Wrapper) else None
    try:
        return copy.deepcopy(agent, shared)
    # what `deepcopy` and the `__reduce__` of foreign objects raise for windows, generators, locks and endless nesting
    except (TypeError, ValueError, AttributeError, NotImplementedError, RecursionError) as error:
        raise TypeError(
            f"`agent` must be one that `copy.deepcopy` can copy, so that it stays as it is, got {agent!r}: {error}. "
            "Give its class a `__deepcopy__` that leaves out what cannot be copied."
        ) from error
