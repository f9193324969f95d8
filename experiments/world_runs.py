"""Runs that measure worlds: a registered world in one of its settings, a player, many seeds in one compiled call."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .. import WORLD_IDS
from ..envs import rollout
from ..envs.adapter import WorldEnv
from ..envs.contract import Seen, Solution, World
from . import worker
from .errors import ExperimentError
from .statistics import Estimate, estimate, mean
from .study_file import nearest

Task = TypeVar("Task")
Found = TypeVar("Found")

Array = jax.Array
Floats = NDArray[np.float64]
Regime = str | tuple[tuple[int, str], ...]

FIRST_SEED = 1000
"""Published numbers come from these seeds and later ones; seeds below are for choosing."""
DIFFICULTIES = ("easy", "medium", "hard")
SECOND: Regime = ((0, "regulation"),)
"""The second rules from the first step on."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """A registered world as it is measured; `horizon` steps, of which the schedules of rules are parts."""

    world_id: str
    difficulty: str = "medium"
    regime: Regime = "none"
    shift_at: int | None = None
    horizon: int = 30_000


class Built(NamedTuple):
    """A world ready to be run, with its exact solution, which takes seconds and is kept."""

    env: WorldEnv
    world: World
    params: Any
    solution: Solution | None


@functools.lru_cache(maxsize=64)
def built(setting: Setting) -> Built:
    """The world of a setting, and what its oracles need."""
    regime = setting.regime if isinstance(setting.regime, str) else [list(entry) for entry in setting.regime]
    env = gymnasium.make(
        setting.world_id,
        difficulty=setting.difficulty,
        regime=regime,
        shift_at=setting.shift_at,
        horizon=setting.horizon,
        disable_env_checker=True,
    ).unwrapped
    assert isinstance(env, WorldEnv)
    return Built(env, env.world, env.params, env.world.solve(env.params))


class Run(NamedTuple):
    """What a player did in S episodes of T steps."""

    action: NDArray[np.int32]  # [S, T]
    score: NDArray[np.float32]  # [S, T], expected reward of each action, with all hidden known
    reward: NDArray[np.float32]  # [S, T]
    level: NDArray[np.int32]  # [S, T]


def run(setting: Setting, player: Any, seeds: Sequence[int], n_steps: int | None = None) -> Run:
    """One episode per seed, by default of the whole horizon.

    The score of a step is the expected reward of what was done, its delayed outcome included: the same mean as the
    reward's, without the luck of single outcomes.
    """
    made = built(setting)
    trace = rollout.rollout(
        made.world,
        player,
        rollout.seeds_to_key_data(seeds),
        n_steps=setting.horizon if n_steps is None else n_steps,
        params=made.params,
        solution=made.solution,
    )
    return Run(*(np.asarray(part) for part in (trace.action, trace.expected, trace.reward, trace.level)))


def each(
    function: Callable[[Task], list[Found]],
    tasks: Sequence[Task],
    jobs: int,
    said: Callable[[str], None] = lambda text: None,
) -> list[Found]:
    """What a function finds in each task, in the order of the tasks.

    Args:
        function: of a module, so that a worker process can import it.
        tasks: what can be pickled.
        jobs: worker processes, each with one thread; for 1 all is done in this process.
        said: is told of every task when it, and all before it, are done.
    """
    found: list[Found] = []
    with contextlib.ExitStack() as stack:
        if jobs == 1:
            results: Iterator[list[Found]] = map(function, tasks)
        else:
            stack.enter_context(worker.environment())
            spawn = multiprocessing.get_context("spawn")
            pool = stack.enter_context(concurrent.futures.ProcessPoolExecutor(min(jobs, len(tasks)), spawn))
            results = pool.map(function, tasks)
        for number, (task, result) in enumerate(zip(tasks, results, strict=True), 1):
            found += result
            said(f"{number} of {len(tasks)}: {task}")
    return found


def worlds_of(names: Sequence[str]) -> tuple[str, ...]:
    """Ids of registered worlds by id or short name, such as "GameNPC"; all of them for none.

    Raises:
        ExperimentError: there is no such world.
    """
    if not names:
        return WORLD_IDS
    by_name = {label_of(world_id): world_id for world_id in WORLD_IDS} | {world_id: world_id for world_id in WORLD_IDS}
    for name in names:
        if name not in by_name:
            raise ExperimentError(
                f"expected a world of {', '.join(WORLD_IDS)}, got {name!r}{nearest(name, [*by_name])}"
            )
    return tuple(by_name[name] for name in names)


def label_of(world_id: str) -> str:
    """The short name: "GameNPC" of "habitus/GameNPC-v0"."""
    return world_id.partition("/")[2].partition("-v")[0]


def of_seeds(values: Floats) -> Estimate:
    """Mean over seeds with its 95 % bootstrap interval, the same twice."""
    return estimate([values], np.random.default_rng(0), statistic=mean)


def normalised(values: Floats, random: Floats, oracle: Floats) -> Floats:
    """[S]: (value - random) / (oracle - random), with the means of the references over their seeds."""
    low, high = random.mean(), oracle.mean()
    return np.asarray((values - low) / (high - low), np.float64)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AlwaysPlayer:
    """Always takes `action`, [] i32: compiled once for all actions."""

    action: Array

    def initial(self, observation: dict[str, Array], key: Array) -> tuple[()]:
        """Nothing to carry."""
        return ()

    def act(self, carry: tuple[()], turn: rollout.Turn) -> tuple[Array, tuple[()]]:
        """The action."""
        return self.action, carry

    def learn(self, carry: tuple[()], seen: Seen) -> tuple[()]:
        """Nothing."""
        return carry


@dataclasses.dataclass(frozen=True)
class CallbackPlayer:
    """A Python policy of an observation, called from within the compiled run: 100 us a step for 20 episodes.

    Args:
        policy: observation of category codes -> action; no memory.
        names: fields of the observation.
    """

    policy: Callable[[Mapping[str, Any]], int]
    names: tuple[str, ...]

    def initial(self, observation: dict[str, Array], key: Array) -> tuple[()]:
        """Nothing to carry."""
        return ()

    def act(self, carry: tuple[()], turn: rollout.Turn) -> tuple[Array, tuple[()]]:
        """The action of the policy."""
        codes = jnp.stack([turn.observation[name].astype(jnp.int32) for name in self.names])
        result = jax.ShapeDtypeStruct((), jnp.int32)  # type: ignore[no-untyped-call]
        action = jax.pure_callback(self._decide, result, codes, vmap_method="expand_dims")
        return jnp.asarray(action), carry

    def learn(self, carry: tuple[()], seen: Seen) -> tuple[()]:
        """Nothing."""
        return carry

    def _decide(self, codes: Array) -> NDArray[np.int32]:
        rows = np.asarray(codes)
        actions = [
            self.policy(dict(zip(self.names, row, strict=True))) for row in rows.reshape(-1, rows.shape[-1]).tolist()
        ]
        return np.array(actions, np.int32).reshape(rows.shape[:-1])


Policy = Literal["random", "best fixed", "rules", "forgetful filter", "filter", "oracle"]
POLICIES: tuple[Policy, ...] = ("random", "best fixed", "rules", "forgetful filter", "filter", "oracle")


def player_of(policy: Policy, setting: Setting, tuning_seeds: Sequence[int]) -> Any:
    """The player of a reference policy; None where nobody wrote rules for the world."""
    made = built(setting)
    if policy == "random":
        return rollout.RandomPlayer(len(made.world.schema.actions))
    if policy == "oracle":
        return rollout.OraclePlayer(made.solution)
    if policy == "rules":
        return _rules(made)
    if policy == "best fixed":
        return AlwaysPlayer(jnp.asarray(best_fixed(setting, tuning_seeds), jnp.int32))
    return rollout.FilterPlayer(made.world.filter(made.solution, forgets=policy == "forgetful filter"))


def best_fixed(setting: Setting, seeds: Sequence[int]) -> int:
    """The action that earns most when nothing else is ever done, found on these seeds."""
    n_actions = len(built(setting).world.schema.actions)
    earned = [run(setting, AlwaysPlayer(jnp.asarray(a, jnp.int32)), seeds).score.mean() for a in range(n_actions)]
    return int(np.argmax(earned))


def _rules(made: Built) -> CallbackPlayer | None:
    from .. import scenarios

    policy = scenarios.expert_policy(made.env)
    names = tuple(field.name for field in made.world.schema.fields)
    return None if policy is None else CallbackPlayer(policy, names)
