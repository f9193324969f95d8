"""Speed of learning: the complete learner with its world on one core, beside PPO and DQN on the same world, in one run.

Every case is timed once a round, as in `world_bench`; seconds are processor seconds. Compiling is timed in processes of
their own, cold and from JAX's persistent cache.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from ..agents import Substrate
from ..agents.compiled import SubstratePlayer, player_of
from ..envs import episode, rollout
from . import bench_tools, world_runs
from .bench_tools import N_ROUNDS, Timed, median_ratio, on_one_core
from .errors import ExperimentError
from .world_runs import label_of, table

MILLION = 1_000_000
MICROSECOND = 1e-6  # seconds
SHORT, LONG = 1_000, 100_000  # steps of one agent, to see whether a step costs more when much was lived
N_STEPS = {1: 20_000, 64: 10_000, 1024: 2_000}  # per agent
QUICK_STEPS = {1: 2_000, 64: 500, 1024: 100}
N_STEPWISE, QUICK_STEPWISE = 3_000, 300
N_DEEP, QUICK_DEEP = 2_048, 256  # of one environment, and per round; a whole rollout of PPO
DEEP_ENVS, DEEP_BATCH = 64, 512  # PPO with many environments
COMPILED_STEPS = 200  # of the run whose compilation is timed: with a rest in it
SEED = 0

STEPS_PER_S = {1: 120_000.0, 64: 350_000.0}  # in the compiled loop, learning included
TIMES_FASTER = {1: 40.0, 64: 100.0}  # than PPO and DQN with one environment
STEPWISE_US = 60.0  # per step from Python, without the world's own time
LENGTH_RATIO = 1.2
MOST_BYTES = 64 * 1024  # per agent
COLD_S, CACHED_S = 15.0, 2.0


@dataclasses.dataclass(frozen=True)
class Case:
    """What was timed.

    Attributes:
        name: what it is called in the table.
        kind: "compiled", "length" (compiled, one agent, `n` steps), "stepwise", or "PPO" and "DQN" of
            stable-baselines3.
        world: label of the world.
        n: agents or environments together; of kind "length" steps.
        seconds: processor seconds per 1 M environment steps, one per round.
    """

    name: str
    kind: str
    world: str
    n: int
    seconds: list[float]

    @property
    def median(self) -> float:
        """Seconds per 1 M environment steps."""
        return statistics.median(self.seconds)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What is no speed.

    Attributes:
        world: label of the world.
        n_bytes: that one agent carries between two steps.
        largest: the largest of its arrays, with their bytes.
        cold_s: processor seconds to trace and compile learner and world for 64 agents.
        cached_s: the same from the persistent cache.
    """

    world: str
    n_bytes: int
    largest: dict[str, int]
    cold_s: float
    cached_s: float


def measure(
    world_ids: Sequence[str],
    *,
    n_rounds: int = N_ROUNDS,
    is_quick: bool = False,
    said: Callable[[str], None] = lambda text: None,
) -> tuple[list[Case], list[Sizes]]:
    """Time everything, `n_rounds` times in turn, on one core.

    Args:
        world_ids: registered worlds.
        n_rounds: times that each case is timed.
        is_quick: few steps, to see that all works.
        said: is told what is being done.
    """
    with on_one_core():
        prepared: list[tuple[Case, Timed]] = []
        for world_id in world_ids:
            said(f"compiling {label_of(world_id)}")
            prepared += _cases(world_id, is_quick)
        for number in range(n_rounds):
            said(f"round {number + 1} of {n_rounds}")
            for case, timed in prepared:
                case.seconds.append(timed())
        sizes = []
        for world_id in world_ids:
            said(f"compiling {label_of(world_id)} in processes of their own")
            sizes.append(_sizes(world_id))
    return [case for case, _ in prepared], sizes


def player(world_id: str, n: int) -> SubstratePlayer:
    """The complete learner, as it is by default, in a world as it is registered; `n` of them."""
    made = world_runs.built(world_runs.Setting(world_id))
    agents = [Substrate(made.env, seed=SEED + i) for i in range(n)]
    return player_of(agents, feedback_slots=n_slots(world_id))


def n_slots(world_id: str) -> int:
    """Outcomes that a world can list in a step; 0 where it pays every decision at once."""
    made = world_runs.built(world_runs.Setting(world_id))

    def stepped() -> Any:
        key = episode.key_of(jnp.zeros(episode.KEY_WORDS, jnp.uint32))
        running, _ = episode.start(made.world, key, made.params)
        return episode.step(made.world, running, jnp.zeros((), jnp.int32), made.params)[1]

    return int(jax.eval_shape(stepped).feedback_id.shape[0])


def _cases(world_id: str, is_quick: bool) -> list[tuple[Case, Timed]]:
    world = label_of(world_id)
    cases: list[tuple[Case, Timed]] = []

    def add(kind: str, name: str, n: int, timed: Timed) -> None:
        cases.append((Case(f"{world}, {name}", kind, world, n, []), timed))

    for n, n_steps in (QUICK_STEPS if is_quick else N_STEPS).items():
        add("compiled", f"compiled, {n:,} agent" + "s" * (n > 1), n, _compiled(world_id, n, n_steps))
    for n_steps in (SHORT, LONG):
        add("length", f"compiled, 1 agent, {n_steps:,} steps", n_steps, _compiled(world_id, 1, n_steps))
    n_stepwise = QUICK_STEPWISE if is_quick else N_STEPWISE
    add("stepwise", "step by step, without the world's time", 1, _stepwise(world_id, n_stepwise))
    n_deep = QUICK_DEEP if is_quick else N_DEEP
    for kind in ("PPO", "DQN"):
        add(kind, f"{kind}, 1 environment", 1, _deep(kind, world_id, n_deep))
    add("PPO", f"PPO, {DEEP_ENVS} environments", DEEP_ENVS, _deep_of_many(world_id, n_deep // 8))
    return cases


def _compiled(world_id: str, n: int, n_steps: int) -> Timed:
    run = _run(world_id, n, n_steps)
    run()

    def timed() -> float:
        began = time.process_time()
        run()
        return (time.process_time() - began) / (n * n_steps) * MILLION

    return timed


def _run(world_id: str, n: int, n_steps: int) -> Callable[[], None]:
    made, players = world_runs.built(world_runs.Setting(world_id)), player(world_id, n)
    keys = rollout.seeds_to_key_data(range(SEED, SEED + n))

    def run() -> None:
        trace = rollout.rollout(made.world, players, keys, n_steps=n_steps, params=made.params, scores=False)
        jax.block_until_ready(trace)  # type: ignore[no-untyped-call]

    return run


def _stepwise(world_id: str, n_steps: int) -> Timed:
    """Learning from Python in the scalar environment, less what the environment takes for the same actions."""
    env: Any = gymnasium.make(world_id, disable_env_checker=True).unwrapped
    agent = Substrate(env, seed=SEED)
    agent.learn(n_steps)

    def timed() -> float:
        actions: list[int] = []
        began = time.process_time()
        agent.learn(n_steps, callback=lambda _, transition: actions.append(int(transition.action)))
        learning = time.process_time() - began
        env.reset(seed=SEED)
        began = time.process_time()
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return max(0.0, learning - (time.process_time() - began)) / len(actions) * MILLION

    return timed


def _deep(kind: str, world_id: str, n_steps: int) -> Timed:
    """An algorithm of stable-baselines3 with its own defaults, but for a rollout of what is timed."""
    env = gymnasium.make(world_id, disable_env_checker=True)
    settings: Mapping[str, Any] = {"n_steps": n_steps} if kind == "PPO" else {}
    return _learning(_algorithm(kind)("MultiInputPolicy", env, seed=SEED, device="cpu", **settings), n_steps)


def _deep_of_many(world_id: str, n_steps: int) -> Timed:
    from ..agents.sb3_vec_env import GymnasiumVecEnv

    envs = gymnasium.make_vec(
        world_id, num_envs=DEEP_ENVS, vectorization_mode="vector_entry_point", autoreset_mode="SameStep"
    )
    settings = {"n_steps": n_steps, "batch_size": DEEP_BATCH}
    model = _algorithm("PPO")("MultiInputPolicy", GymnasiumVecEnv(envs), seed=SEED, device="cpu", **settings)
    return _learning(model, n_steps * DEEP_ENVS)


def _algorithm(kind: str) -> type[Any]:
    """The class of stable-baselines3, imported when it is timed."""
    from ..agents.deep import ALGORITHMS

    found: type[Any] = getattr(importlib.import_module(ALGORITHMS[kind].package), kind)
    return found


def _learning(model: Any, n_steps: int) -> Timed:
    model.learn(n_steps)

    def timed() -> float:
        done = model.num_timesteps
        began = time.process_time()
        model.learn(n_steps, reset_num_timesteps=False)
        return (time.process_time() - began) / float(model.num_timesteps - done) * MILLION

    return timed


def _sizes(world_id: str) -> Sizes:
    of_leaves = bytes_of(world_id)
    largest = dict(sorted(of_leaves.items(), key=lambda item: -item[1])[:4])
    with tempfile.TemporaryDirectory() as cache:
        cold_s, cached_s = (_compile_s(world_id, cache) for _ in range(2))
    return Sizes(label_of(world_id), sum(of_leaves.values()), largest, cold_s, cached_s)


def bytes_of(world_id: str) -> dict[str, int]:
    """Bytes of every array that one agent carries in the compiled loop, by name."""
    made, players = world_runs.built(world_runs.Setting(world_id)), player(world_id, 1)
    one = dataclasses.replace(players, seed=players.seed[0], params=jax.tree.map(lambda leaf: leaf[0], players.params))

    def carried() -> Any:
        key = episode.key_of(jnp.zeros(episode.KEY_WORDS, jnp.uint32))
        return one.initial(episode.start(made.world, key, made.params)[1], key)

    shapes = jax.eval_shape(carried)
    leaves, _ = jax.tree.flatten_with_path(shapes)
    return {
        jax.tree_util.keystr(path).strip("."): int(np.prod(leaf.shape)) * leaf.dtype.itemsize for path, leaf in leaves
    }


def _compile_s(world_id: str, cache: str) -> float:
    """Processor seconds of a fresh process to trace and compile, with a persistent cache in a folder."""
    package = __package__.rpartition(".")[0]
    code = f"from {package}.experiments import training_bench as b; print(b.compile_seconds({world_id!r}))"
    settings = {
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **settings}, check=False
    )
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise ExperimentError(f"compiling {world_id} in a process of its own failed: {reason}")
    return float(done.stdout.split()[-1])


def compile_seconds(world_id: str) -> float:
    """What the first run of 64 agents takes beyond the second: tracing and compiling."""
    run = _run(world_id, 64, COMPILED_STEPS)
    began = time.process_time()
    run()
    first = time.process_time() - began
    began = time.process_time()
    run()
    return first - (time.process_time() - began)


def step_without_delay() -> None:
    """Let JAX run small calls in the calling thread; to be said before JAX does anything."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    deep = {name: importlib.metadata.version(name) for name in ("stable_baselines3", "torch")}
    return bench_tools.machine(jax=jax.__version__, gymnasium=gymnasium.__version__, **deep)


def to_json(cases: Sequence[Case], sizes: Sequence[Sizes], command: str, about: dict[str, Any]) -> str:
    """Everything, one entry per case."""
    entries = [dataclasses.asdict(case) | {"median": case.median} for case in cases]
    said = {"command": command, "machine": about, "cases": entries, "sizes": [dataclasses.asdict(one) for one in sizes]}
    return json.dumps({**said, "goals": [list(goal) for goal in goals(cases, sizes)]}, indent=1) + "\n"


def to_markdown(cases: Sequence[Case], sizes: Sequence[Sizes], command: str, about: dict[str, Any]) -> str:
    """The table for people."""
    rows = []
    for case in cases:
        low, high = min(case.seconds), max(case.seconds)
        spread = f"{case.median:.3g} ({low:.3g}-{high:.3g})"
        rows.append([case.name, spread, f"{MILLION / case.median:,.0f}", *(f"{r:.3g}" for r in _ratios(case, cases))])
    of_sizes = [
        [
            one.world,
            f"{one.n_bytes:,}",
            ", ".join(f"{name} {n_bytes:,}" for name, n_bytes in one.largest.items()),
            f"{one.cold_s:.1f}",
            f"{one.cached_s:.1f}",
        ]
        for one in sizes
    ]
    text = [
        "# Speed of learning",
        f"```\n{command}\n```",
        f"One core of {about['processor']} ({about['cores']} cores, load {about['load_before']} when it began), Python "
        f"{about['python']}, JAX {about['jax']}, stable-baselines3 {about['stable_baselines3']} with torch "
        f"{about['torch']}, one thread. Substrate with its defaults. Processor seconds per 1 M environment steps, with "
        f"the world's unless said otherwise: median (least-most) of {len(cases[0].seconds)} rounds, each of which "
        "times every case once. Times faster: median over rounds of the ratio in the same round.",
        table(["case", "s per 1 M steps", "steps/s", "times PPO, 1", "times DQN, 1", f"times PPO, {DEEP_ENVS}"], rows),
        "## Sizes and compiling",
        table(["world", "bytes per agent", "largest", "compiling cold, s", "from the cache, s"], of_sizes),
        "## Goals",
        table(
            ["goal", "reached", ""],
            [[name, reached, "yes" if ok else "no"] for name, reached, ok in goals(cases, sizes)],
        ),
    ]
    return "\n\n".join(text) + "\n"


def goals(cases: Sequence[Case], sizes: Sequence[Sizes]) -> list[tuple[str, str, bool]]:
    """(goal, what was reached, whether it holds) of every world."""
    found = []
    for case in cases:
        if case.kind == "compiled" and case.n in STEPS_PER_S:
            least, reached = STEPS_PER_S[case.n], MILLION / case.median
            found.append((f"{case.name}: at least {least:,.0f} steps/s", f"{reached:,.0f}", reached >= least))
            for kind, times in zip(("PPO", "DQN"), _ratios(case, cases)[:2], strict=True):
                least = TIMES_FASTER[case.n]
                name = f"{case.name}: at least {least:g} times {kind} with 1 environment"
                found.append((name, f"{times:.3g}", times >= least))
        if case.kind == "stepwise":
            microseconds = case.median / MILLION / MICROSECOND
            name = f"{case.name}: at most {STEPWISE_US:g} us a step"
            found.append((name, f"{microseconds:.1f}", microseconds <= STEPWISE_US))
        if case.kind == "length" and case.n == LONG:
            times = median_ratio(case.seconds, _of(cases, case.world, "length", SHORT).seconds)
            name = f"{case.name}: at most {LENGTH_RATIO:g} times the time per step of {SHORT:,}"
            found.append((name, f"{times:.2f}", times <= LENGTH_RATIO))
    for one in sizes:
        found += [
            (f"{one.world}: at most {MOST_BYTES:,} bytes per agent", f"{one.n_bytes:,}", one.n_bytes <= MOST_BYTES),
            (f"{one.world}: compiles in {COLD_S:g} s", f"{one.cold_s:.1f}", one.cold_s <= COLD_S),
            (f"{one.world}: in {CACHED_S:g} s from the cache", f"{one.cached_s:.1f}", one.cached_s <= CACHED_S),
        ]
    return found


def _ratios(case: Case, cases: Sequence[Case]) -> list[float]:
    """How many times faster than PPO and DQN with one environment, and than PPO with many, in the same world."""
    beside = (("PPO", 1), ("DQN", 1), ("PPO", DEEP_ENVS))
    return [median_ratio(_of(cases, case.world, kind, n).seconds, case.seconds) for kind, n in beside]


def _of(cases: Sequence[Case], world: str, kind: str, n: int) -> Case:
    return next(case for case in cases if (case.world, case.kind, case.n) == (world, kind, n))
