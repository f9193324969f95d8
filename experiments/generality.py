"""One learner on tasks that it was not made for, beside what everybody would use: mean returns of episodes.

Every agent has one setting for all tasks and is told nothing of them, the budget included: one life of 30,000 steps is
read at each budget. The score is that of learning itself, exploration and mistakes included: the mean return of the
episodes that ended in the last 40 % of the steps before the budget. Beside it stands what the greedy policy of that
moment earns, which learns nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from .. import __version__, agents
from . import world_runs
from .errors import ExperimentError

BUDGETS = (2_000, 10_000, 30_000)
N_SEEDS = 10
QUICK_BUDGETS, QUICK_SEEDS = (200, 500, 1_000), 2
LEAST_BUDGET = 10
LAST = 0.4  # share of the steps before a budget in which an episode has to end to count
N_EPISODES, LONGEST = 20, 500  # of the greedy policy; not every task ends an episode that goes nowhere
TRIAL_SEED = 10_000_000  # first seed of these episodes, far off those of lives
TASKS = ("FrozenLake", "Taxi", "CliffWalking", "Blackjack", "CartPole", "Acrobot")
MEMORY_TASKS = ("MiniGrid-MemoryS7-v0", "MiniGrid-MemoryS11-v0")  # where minigrid is installed
# One setting each for all tasks. Those of DQN and PPO are the best of three on CartPole, 10,000 steps, seeds 0 and 1
# (README); their discount is .99.
AGENTS: Mapping[str, Mapping[str, Any]] = {
    "substrate": {},
    "tabular_q": {},
    "dqn": {
        "learning_rate": 1e-3,
        "learning_starts": 200,
        "target_update_interval": 250,
        "train_freq": 2,
        "exploration_final_eps": 0.02,
        "buffer_size": 50_000,
        "batch_size": 64,
        "policy_kwargs": {"net_arch": [64, 64]},
    },
    "ppo": {
        "learning_rate": 7e-4,
        "n_steps": 256,
        "batch_size": 64,
        "n_epochs": 10,
        "gae_lambda": 0.95,
        "ent_coef": 0.01,
        "policy_kwargs": {"net_arch": [64, 64]},
    },
    "random": {},
}
NATIVE = ("ppo",)  # sees numbers as they are and not in the encoder's bins, which cost it Acrobot (README)
DQN_EXPLORES = 1_500  # steps, whatever the budget, which nobody is told


@dataclasses.dataclass(frozen=True)
class Life:
    """What one process does: an agent lives in a task.

    Attributes:
        task: id of an environment.
        agent: one of `AGENTS`.
        seed: of the agent and of the task's first episode.
        budgets: steps after which it is read, growing.
        folder: where its record is kept.
    """

    task: str
    agent: str
    seed: int
    budgets: tuple[int, ...]
    folder: Path

    def __str__(self) -> str:
        return f"{self.task} {self.agent} {self.seed}"

    @property
    def record(self) -> Path:
        """File of its record."""
        return self.folder / f"{self.task.replace('/', '_').replace(':', '_')}-{self.agent}-{self.seed}.json"

    @property
    def settings(self) -> dict[str, Any]:
        """What the agent is built with."""
        if self.agent != "dqn":
            return dict(AGENTS[self.agent])
        return {**AGENTS["dqn"], "exploration_fraction": min(1.0, DQN_EXPLORES / self.budgets[-1])}

    @property
    def identity(self) -> dict[str, Any]:
        """What its record has to agree with to be taken for it."""
        return {
            "task": self.task,
            "agent": self.agent,
            "seed": self.seed,
            "budgets": list(self.budgets),
            "is_native": self.agent in NATIVE,
            "settings": json.loads(json.dumps(self.settings)),
            "habitus": __version__,
            "gymnasium": gymnasium.__version__,
        }


@dataclasses.dataclass(frozen=True)
class Reading:
    """What an agent was worth at a budget.

    Attributes:
        task, agent, seed, budget: which.
        online: mean return of the episodes that ended in the last `LAST` of the steps before the budget; where none
            did, what the one at hand had brought so far.
        n_ended: how many did.
        greedy: mean return of `N_EPISODES` episodes of the greedy policy, of at most `LONGEST` steps each.
    """

    task: str
    agent: str
    seed: int
    budget: int
    online: float
    n_ended: int
    greedy: float


class Meter(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Notes the return of every episode and the step that ended it.

    Attributes:
        n_steps: steps so far.
        at_hand: return of the episode at hand so far.
        ended: (step, return) of every episode that has ended.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.n_steps, self.at_hand = 0, 0.0
        self.ended: list[tuple[int, float]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode; one that was left before its end does not count."""
        self.at_hand = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step, noted."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.n_steps += 1
        self.at_hand += float(reward)
        if terminated or truncated:
            self.ended.append((self.n_steps, self.at_hand))
        return observation, reward, terminated, truncated, info

    def score(self, budget: int) -> tuple[float, int]:
        """Mean return of the episodes that ended in the last `LAST` before a step, and how many these are."""
        returns = [value for step, value in self.ended if budget * (1 - LAST) < step <= budget]
        return (float(np.mean(returns)), len(returns)) if returns else (self.at_hand, 0)


class Unmasked(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Does not say which actions are impossible, as Taxi does: DQN and PPO could make no use of it."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, _without_mask(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, _without_mask(info)


def tasks_of(names: Sequence[str]) -> tuple[str, ...]:
    """Ids of environments by id or by name, such as "Taxi" for the newest version; all tasks for none.

    Raises:
        ExperimentError: no such environment, or one without a Discrete action space.
    """
    chosen = [_newest(name) for name in names or TASKS]
    if not names and importlib.util.find_spec("minigrid") is not None:
        importlib.import_module("minigrid")  # registers its tasks
        chosen += MEMORY_TASKS
    for task in chosen:
        try:
            env = made(task)
        except (gymnasium.error.Error, ImportError) as error:
            raise ExperimentError(f"`tasks`: {task!r} is no environment that can be made: {error}") from error
        if not isinstance(env.action_space, gymnasium.spaces.Discrete):
            raise ExperimentError(f"`tasks`: expected Discrete actions, got {env.action_space} of {task!r}.")
        env.close()
    return tuple(dict.fromkeys(chosen))


def made(task: str) -> gymnasium.Env[Any, Any]:
    """The environment of a task as every agent can use it: without words in observations, nor masks in `info`."""
    env: gymnasium.Env[Any, Any] = Unmasked(gymnasium.make(task))
    space = env.observation_space
    if isinstance(space, gymnasium.spaces.Dict):
        kept = [name for name, entry in space.spaces.items() if not isinstance(entry, gymnasium.spaces.Text)]
        if len(kept) < len(space.spaces):
            return gymnasium.wrappers.FilterObservation(env, kept)
    return env


def agents_of(names: Sequence[str]) -> tuple[str, ...]:
    """The agents of these names, all for none.

    Raises:
        ExperimentError: there is no such agent.
    """
    if unknown := [name for name in names if name not in AGENTS]:
        raise ExperimentError(f"`agents`: expected some of {', '.join(AGENTS)}, got {unknown[0]!r}.")
    return tuple(names or AGENTS)


def budgets_of(words: Sequence[str], *, quick: bool = False) -> tuple[int, ...]:
    """Budgets from what was typed, growing; the usual ones for nothing.

    Raises:
        ExperimentError: something else than whole numbers of at least 10 steps.
    """
    if not words:
        return QUICK_BUDGETS if quick else BUDGETS
    for word in words:
        if not (word.isdecimal() and int(word) >= LEAST_BUDGET):
            raise ExperimentError(f"`budgets`: expected whole numbers of steps, at least {LEAST_BUDGET}, got {word!r}.")
    return tuple(sorted({int(word) for word in words}))


def measure(
    tasks: Sequence[str],
    folder: Path,
    *,
    names: Sequence[str] = tuple(AGENTS),
    n_seeds: int = N_SEEDS,
    first_seed: int = world_runs.FIRST_SEED,
    budgets: tuple[int, ...] = BUDGETS,
    jobs: int = 1,
    said: Callable[[str], None] = lambda text: None,
) -> list[Reading]:
    """All readings. A life that has a record in the folder is not lived again.

    Args:
        tasks: ids of environments, as `tasks_of` gives them.
        folder: where the records are kept, one file a life.
        names: some of `AGENTS`.
        n_seeds: lives of every agent in every task.
        first_seed: seed of the first of them.
        budgets: steps after which agents are read, growing.
        jobs: worker processes.
        said: is told of every life when it, and all before it, are over.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seeds = range(first_seed, first_seed + n_seeds)
    # seed by seed, so that what is there after an interruption compares like with like
    lives = [Life(task, name, seed, budgets, folder) for seed in seeds for task in tasks for name in names]
    return world_runs.each(lived, lives, jobs, said)


def lived(life: Life) -> list[Reading]:
    """The readings of a life, from its record where there is one; else it is lived, and recorded."""
    if (known := recorded(life)) is not None:
        return known
    env, trial, found = Meter(made(life.task)), made(life.task), []
    agent = _agent(life, env)

    def read(living: Any, transition: Any) -> None:
        if env.n_steps in life.budgets:
            online, n_ended = env.score(env.n_steps)
            greedy = greedy_return(living, trial, TRIAL_SEED + life.seed)
            found.append(Reading(life.task, life.agent, life.seed, env.n_steps, online, n_ended, greedy))

    began = time.process_time()
    agent.learn(life.budgets[-1], callback=read)
    readings = [dataclasses.asdict(reading) for reading in found]
    content = {"identity": life.identity, "readings": readings, "cpu_s": round(time.process_time() - began, 1)}
    part = life.record.with_suffix(".part")  # a record is there whole or not at all
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(life.record)
    return found


def recorded(life: Life) -> list[Reading] | None:
    """The readings of a life that was recorded, None where there is no record of this very life."""
    if not life.record.exists():
        return None
    content = json.loads(life.record.read_text(encoding="utf-8"))
    if content["identity"] != life.identity:
        return None
    return [Reading(**reading) for reading in content["readings"]]


def greedy_return(agent: Any, env: gymnasium.Env[Any, Any], seed: int) -> float:
    """Mean return of `N_EPISODES` episodes in which an agent follows its greedy policy and learns nothing."""
    total = 0.0
    for episode in range(N_EPISODES):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        for _ in range(LONGEST):
            action, _ = agent.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(int(action))
            total += float(reward)
            if terminated or truncated:
                break
    return total / N_EPISODES


class _Native:
    """An algorithm of stable-baselines3 as its users run it, on observations as they are."""

    def __init__(self, env: gymnasium.Env[Any, Any], algorithm: str, seed: int, settings: Mapping[str, Any]) -> None:
        from ..agents import deep  # the one home of the package, which is named there

        constructor = getattr(importlib.import_module(deep.ALGORITHMS[algorithm].package), algorithm)
        self.model = constructor("MlpPolicy", env, seed=seed, device="cpu", **settings)

    def learn(self, total_timesteps: int, callback: Callable[[Any, Any], None]) -> None:
        """Live, and call `callback(self, None)` after every step."""

        def after_step(local: dict[str, Any], world: dict[str, Any]) -> bool:
            callback(self, None)
            return True

        self.model.learn(total_timesteps, callback=after_step)

    def predict(self, observation: Any, *, deterministic: bool) -> tuple[Any, Any]:
        """As of the algorithm."""
        return self.model.predict(observation, deterministic=deterministic)  # type: ignore[no-any-return]


def _agent(life: Life, env: gymnasium.Env[Any, Any]) -> Any:
    if life.agent in NATIVE and isinstance(env.observation_space, gymnasium.spaces.Box):
        return _Native(env, life.agent.upper(), life.seed, life.settings)
    return agents.make(life.agent, env, seed=life.seed, **life.settings)


def _without_mask(info: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in info.items() if name != "action_mask"}


@functools.lru_cache(maxsize=64)
def _newest(name: str) -> str:
    """The id of the newest version where only a name is given."""
    if "-v" in name:
        return name
    version = gymnasium.envs.registration.find_highest_version(None, name)
    if version is None:
        known = ", ".join(TASKS)
        raise ExperimentError(f"`tasks`: expected the id of an environment or one of {known}, got {name!r}.")
    return f"{name}-v{version}"
