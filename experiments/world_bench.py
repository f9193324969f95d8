"""Speed of the worlds on one core, beside environments that everybody knows, in one run.

Every case is timed once a round, so that a round compares what ran side by side; medians over rounds. Absolute numbers
are of the machine at hand, ratios travel. Seconds are processor seconds of all threads: on the one core that they share
these are the seconds of the clock where nothing else runs, and hardly more where something does.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from ..envs import draws, episode, rollout
from ..envs.adapter import WorldEnv
from ..envs.contract import World
from . import bench_tools
from .bench_tools import N_ROUNDS, Timed, median_ratio, on_one_core
from .errors import ExperimentError
from .world_runs import label_of, table

Array = jax.Array

SIZES = (10, 40, 1024, 2000)
VECTOR_SIZE = 1024
GYMNAX_SIZE = 2000
MILLION = 1_000_000
N_STEPS, QUICK_STEPS = MILLION, 100_000  # under jit, all environments together
SLOWER = 25  # one scalar step costs about as much as this many under jit, so the scalar cases take fewer
SEED = 0
CARTPOLE = "CartPole-v1"
REFERENCE = f"Gymnasium {CARTPOLE}, scalar"
GYMNAX = f"gymnax {CARTPOLE}, jit + scan, {GYMNAX_SIZE:,}"
RECIPE = "python -m venv gymnax-venv && gymnax-venv/bin/pip install gymnax six"
# what each kind of case has to reach, in seconds per 1 M steps: 40,000 steps/s of the scalar adapter are 25 s
GOALS = {("jit", 2000): 0.10, ("jit", 40): 0.25, ("scalar", 1): 25.0}
VECTOR_GOAL = 2.0  # times the cost under jit


@dataclasses.dataclass(frozen=True)
class Case:
    """What was timed.

    Attributes:
        name: what it is called in the table.
        kind: "jit" = under jit + scan, "vector" and "scalar" = step by step from Python.
        world: label of the world.
        n_envs: environments stepped together.
        seconds: processor seconds per 1 M environment steps, one per round.
        compile_s: processor seconds to trace and compile, None for what is not compiled ahead.
    """

    name: str
    kind: str
    world: str
    n_envs: int
    seconds: list[float]
    compile_s: float | None = None

    @property
    def median(self) -> float:
        """Seconds per 1 M environment steps."""
        return statistics.median(self.seconds)


def measure(
    world_ids: Sequence[str],
    *,
    n_rounds: int = N_ROUNDS,
    n_steps: int = N_STEPS,
    gymnax: str | None = None,
    said: Callable[[str], None] = lambda text: None,
) -> list[Case]:
    """Time everything, `n_rounds` times in turn, on one core.

    Args:
        world_ids: registered worlds.
        n_rounds: times that each case is timed.
        n_steps: environment steps of one timing under jit.
        gymnax: Python interpreter that has gymnax, see RECIPE; None leaves it out.
        said: is told what is being done.

    Raises:
        ExperimentError: the interpreter does not run gymnax.
    """
    with on_one_core() as core:
        prepared: list[tuple[Case, Timed]] = []
        reference = _scalar(gymnasium.make(CARTPOLE).unwrapped, n_steps // SLOWER)
        prepared.append((Case(REFERENCE, "scalar", CARTPOLE, 1, []), reference))
        for world_id in world_ids:
            said(f"compiling {label_of(world_id)}")
            prepared += _cases(world_id, n_steps)
        if gymnax is not None:
            compile_s, _ = _gymnax(gymnax, n_steps, core)
            case = Case(GYMNAX, "jit", f"gymnax {CARTPOLE}", GYMNAX_SIZE, [], compile_s)
            prepared.append((case, lambda: _gymnax(gymnax, n_steps, core)[1]))
        for number in range(n_rounds):
            said(f"round {number + 1} of {n_rounds}")
            for case, timed in prepared:
                case.seconds.append(timed())
    return [case for case, _ in prepared]


def _cases(world_id: str, n_steps: int) -> list[tuple[Case, Timed]]:
    world_name = label_of(world_id)
    env: Any = gymnasium.make(world_id, disable_env_checker=True).unwrapped
    assert isinstance(env, WorldEnv)
    cases: list[tuple[Case, Timed]] = []
    for n_envs in SIZES:
        timed, compile_s = _in_jit(env.world, env.params, n_envs, max(1, n_steps // n_envs))
        name = f"{world_name}, jit + scan, {n_envs:,}"
        cases.append((Case(name, "jit", world_name, n_envs, [], compile_s), timed))
    vector = gymnasium.make_vec(world_id, num_envs=VECTOR_SIZE, vectorization_mode="vector_entry_point")
    name = f"{world_name}, vector, {VECTOR_SIZE:,}"
    cases.append((Case(name, "vector", world_name, VECTOR_SIZE, []), _vector(vector, n_steps // VECTOR_SIZE // 4)))
    cases.append((Case(f"{world_name}, scalar", "scalar", world_name, 1, []), _scalar(env, n_steps // SLOWER)))
    return cases


def _in_jit(world: World, params: Any, n_envs: int, n_steps: int) -> tuple[Timed, float]:
    """A random policy; everything that a learner would read is read, or the compiler would leave it out."""
    n_actions = len(world.schema.actions)

    def run(key_data: Array, seed: Array, params: Any) -> Array:
        start = jax.vmap(episode.start, in_axes=(None, 0, None))
        step = jax.vmap(episode.step, in_axes=(None, 0, 0, None))
        running, _ = start(world, episode.key_of(key_data), params)

        def advance(carry: tuple[Any, Array], key: Array) -> tuple[tuple[Any, Array], None]:
            running, checksum = carry
            halves = jax.random.bits(key, (n_envs,), jnp.uint32) >> draws.HALF_BITS
            running, outcome, observation = step(world, running, draws.below(halves, n_actions), params)
            seen = sum(jnp.ravel(leaf).astype(jnp.float32) for leaf in observation.values())
            return (running, checksum + outcome.reward + outcome.boundary + seen), None

        keys = jax.random.split(jax.random.key(seed), n_steps)
        (_, checksum), _ = jax.lax.scan(advance, (running, jnp.zeros(n_envs, jnp.float32)), keys)
        return checksum

    key_data = rollout.seeds_to_key_data(range(n_envs))
    began = time.process_time()
    compiled = jax.jit(run).lower(key_data, 0, params).compile()
    compile_s = time.process_time() - began
    compiled(key_data, 0, params).block_until_ready()

    def timed() -> float:
        began = time.process_time()
        compiled(key_data, 0, params).block_until_ready()
        return (time.process_time() - began) / (n_envs * n_steps) * MILLION

    return timed, compile_s


def _vector(env: gymnasium.vector.VectorEnv[Any, Any, Any], n_steps: int) -> Timed:
    n_steps = max(n_steps, 20)
    rng = np.random.default_rng(SEED)
    actions = rng.integers(env.single_action_space.n, size=(n_steps, env.num_envs))  # type: ignore[attr-defined]
    env.reset(seed=SEED)
    env.step(actions[0])

    def timed() -> float:
        began = time.process_time()
        for row in actions:
            env.step(row)
        return (time.process_time() - began) / actions.size * MILLION

    return timed


def _scalar(env: gymnasium.Env[Any, Any], n_steps: int) -> Timed:
    """Without the wrappers of `gymnasium.make`, which cost the same everywhere."""
    rng = np.random.default_rng(SEED)
    actions = rng.integers(env.action_space.n, size=n_steps).tolist()  # type: ignore[attr-defined]
    env.reset(seed=SEED)
    env.step(actions[0])

    def timed() -> float:
        env.reset(seed=SEED)
        began = time.process_time()
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()
        return (time.process_time() - began) / n_steps * MILLION

    return timed


def _gymnax(interpreter: str, n_steps: int, core: int) -> tuple[float, float]:
    """(seconds to compile, median seconds per 1 M steps) of gymnax in its own interpreter."""
    n_each = max(1, n_steps // GYMNAX_SIZE)
    program = Path(__file__).with_name("gymnax_bench.py")
    command = [interpreter, "-I", str(program), *map(str, (GYMNAX_SIZE, n_each, 3, core))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        last = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        raise ExperimentError(
            f"`--gymnax` must be a Python interpreter that has gymnax, got {interpreter}: {last}. Make one: {RECIPE}"
        ) from None
    said = json.loads(done.stdout)
    return float(said["compile_s"]), statistics.median(said["seconds"]) / (GYMNAX_SIZE * n_each) * MILLION


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    return bench_tools.machine(jax=jax.__version__, gymnasium=gymnasium.__version__, numpy=np.__version__)


def to_json(cases: Sequence[Case], command: str, about: dict[str, Any]) -> str:
    """Everything, one entry per case."""
    entries = [dataclasses.asdict(case) | {"median": case.median, "ratio": _ratio(case, cases)} for case in cases]
    return json.dumps({"command": command, "machine": about, "reference": REFERENCE, "cases": entries}, indent=1) + "\n"


def to_markdown(cases: Sequence[Case], command: str, about: dict[str, Any]) -> str:
    """The table for people."""
    rows = []
    for case in cases:
        low, high = min(case.seconds), max(case.seconds)
        spread = f"{_seconds(case.median)} ({_seconds(low)}-{_seconds(high)})"
        compiling = "" if case.compile_s is None else f"{case.compile_s:.1f}"
        rows.append([case.name, spread, f"{MILLION / case.median:,.0f}", f"{_ratio(case, cases):.3g}", compiling])
    text = [
        "# Speed of the worlds",
        f"```\n{command}\n```",
        f"One core of {about['processor']} ({about['cores']} cores, load {about['load_before']} when it began), Python "
        f"{about['python']}, JAX {about['jax']}, Gymnasium {about['gymnasium']}. A random policy; observations are "
        f"built and read at every step. Processor seconds per 1 M environment steps: median (least-most) of "
        f"{len(cases[0].seconds)} rounds, each of which times every case once. Times faster: median over rounds of the "
        f"ratio to {REFERENCE}, in the same round. Compiling is apart.",
        table(["case", "s per 1 M steps", "steps/s", "times faster", "compiling, s"], rows),
        "Gymnax resets within its step; episodes of the worlds run on. gymnax in an environment of its own: "
        f"`{RECIPE}`, then `--gymnax gymnax-venv/bin/python`.",
        "## Goals",
        table(["goal", "reached", ""], [[name, reached, "yes" if ok else "no"] for name, reached, ok in goals(cases)]),
    ]
    return "\n\n".join(text) + "\n"


def goals(cases: Sequence[Case]) -> list[tuple[str, str, bool]]:
    """(goal, what was reached, whether it holds) of every world."""
    found = []
    for case in cases:
        goal = GOALS.get((case.kind, case.n_envs))
        if goal is not None and case.world not in (CARTPOLE, f"gymnax {CARTPOLE}"):
            name = f"{case.name}: at most {goal:g} s per 1 M steps"
            found.append((name, _seconds(case.median), case.median <= goal))
        if case.kind == "vector":
            within = next(c for c in cases if (c.kind, c.world, c.n_envs) == ("jit", case.world, VECTOR_SIZE))
            times = median_ratio(case.seconds, within.seconds)
            name = f"{case.name}: at most {VECTOR_GOAL:g} times the cost under jit"
            found.append((name, f"{times:.2f}", times <= VECTOR_GOAL))
    return found


def _ratio(case: Case, cases: Sequence[Case]) -> float:
    """How many times faster than the reference, median over rounds."""
    return median_ratio(cases[0].seconds, case.seconds)


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"
