"""Executes one run: builds the world and the agent, lets the agent live, commits the record.

Everything here happens in a worker process. An agent that fails is recorded with its error; only the end of the study
itself (`Stopped`) passes through.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import inspect
import os
import platform
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import jax.monitoring
import numpy as np

from .. import agents, scenarios
from ..agents import online
from . import decisions, records
from .errors import StudyError
from .plan import Run
from .recording import Recorder, epsilon_of

LIBRARIES = ("gymnasium", "jax", "jaxlib", "numpy", "stable_baselines3", "torch")
PROBE_STEPS = 2000  # steps on which each fixed action is tried
ADVISER = "rules"
"""Value of an agent's setting `adviser` that stands for the expert rules of the world."""
LENT: Mapping[str, str] = {"filter": "habitus.experiments.reference_players:FilterAgent"}
"""Kinds that a study has beside those of `agents.AGENTS`, because they are lent a world -> where their class is."""
PROBE_SEED = 2**30  # of the search for the best fixed action; studies use small seeds


class Stopped(BaseException):
    """The study is being stopped; not an error of the run."""


@dataclasses.dataclass(frozen=True)
class Ending:
    """How a run ended.

    Attributes:
        run: its hash.
        seconds: time from building the world to the committed record.
        error: last line of the error, or None.
    """

    run: str
    seconds: float
    error: str | None


class Clock:
    """When something began, and what JAX had spent on compiling until then."""

    def __init__(self) -> None:
        self.started_unix_s, self._began_s, self._compiled_s = time.time(), time.perf_counter(), _compile_seconds()

    def total_s(self) -> float:
        """Seconds since then."""
        return time.perf_counter() - self._began_s

    def compile_s(self) -> float:
        """Seconds of them that JAX has spent on tracing and compiling."""
        return _compile_seconds() - self._compiled_s


def execute(run: Run, runs: Path, tick: Callable[[int], None] | None = None) -> Ending:
    """Do one run and commit its record, whatever comes of it.

    Args:
        run: what to do.
        runs: folder of the records.
        tick: called a few times a second with the number of steps done; may raise `Stopped`.
    """
    clock = Clock()
    try:
        facts, timing, steps = _live(run, tick)
    except (Exception, SystemExit) as error:  # the run is the unit of failure: whatever it was, the study goes on
        return commit_failure(run, runs, error, clock)
    return commit(run, runs, facts, timing, steps, clock)


def commit(
    run: Run,
    runs: Path,
    facts: Mapping[str, Any],
    timing: Mapping[str, Any],
    steps: records.Steps,
    clock: Clock,
    *,
    share: int = 1,
) -> Ending:
    """Commit the record of a run that went to its end.

    Args:
        run: what was done.
        runs: folder of the records.
        facts: of `facts_of_run`.
        timing: seconds of its parts.
        steps: what happened.
        clock: when it began.
        share: number of runs that the time since then is divided by.
    """
    seconds = clock.total_s() / share
    timing = {
        **timing,
        "started_unix_s": round(clock.started_unix_s, 3),
        "total_s": round(seconds, 6),
        "compile_s": round(clock.compile_s() / share, 6),
    }
    records.write(runs, _header(run) | {"status": "complete", "error": None, "timing": timing, **facts}, steps)
    return Ending(run.hash, seconds, None)


def commit_failure(run: Run, runs: Path, error: BaseException, clock: Clock, *, share: int = 1) -> Ending:
    """Commit the record of a run that failed; `share` as in `commit`."""
    seconds = clock.total_s() / share
    text = "".join(traceback.format_exception(error))
    failure = {"type": type(error).__name__, "message": str(error), "traceback": text}
    header = _header(run) | {"status": "failed", "error": failure, "timing": {"total_s": round(seconds, 6)}}
    records.write(runs, header, None)
    return Ending(run.hash, seconds, f"{type(error).__name__}: {error}")


def _header(run: Run) -> dict[str, Any]:
    return {"run": run.hash, "spec": run.spec(), "machine": machine()}


def build(
    run: Run,
    *,
    before_step: Callable[[int, Any, int], None] | None = None,
    tick: Callable[[int], None] | None = None,
) -> tuple[Recorder, Any]:
    """The world of a run in its recorder, and the agent in it."""
    recorder = Recorder(make_world(run), steps=run.steps, seed=run.seed, before_step=before_step, tick=tick)
    agent = make_agent(run, recorder)
    recorder.epsilon = epsilon_of(agent)
    return recorder, agent


def drive(recorder: Recorder, agent: Any) -> None:
    """Let the agent live until the recorder is full: agents with `learn` own their loop, the others are given one."""
    if callable(getattr(agent, "learn", None)):
        agent.learn(total_timesteps=recorder.n_steps, callback=lambda *_: not recorder.is_full)
    else:
        online.run(agent, recorder, recorder.n_steps, seed=recorder.seed, callback=lambda *_: not recorder.is_full)


def make_world(run: Run) -> gymnasium.Env[Any, Any]:
    """The world of a run, without the checks that Gymnasium adds to a world under test."""
    return gymnasium.make(run.world_id, disable_env_checker=True, **run.world_kwargs)


def make_agent(run: Run, env: gymnasium.Env[Any, Any]) -> Any:
    """The agent of a run, with what a study lends it."""
    return agents.make(LENT.get(run.kind, run.kind), env, seed=run.seed, **settings_of(run, env))


def settings_of(run: Run, env: gymnasium.Env[Any, Any]) -> dict[str, Any]:
    """The agent's settings with what a study lends it: rules, the oracle, the best fixed action, the variant."""
    settings = dict(run.settings)
    if run.kind == "rules":
        settings.setdefault("policy", _rules(env))
    elif run.kind == "oracle":
        settings.setdefault("policy", lambda _: env.unwrapped.oracle_action())  # type: ignore[attr-defined]
    elif run.kind == "best_fixed" and "action" not in settings:
        settings["action"] = _best_fixed(run)
    parameters = inspect.signature(agents.agent_class(LENT.get(run.kind, run.kind))).parameters
    if "credit" in parameters:
        settings.setdefault("credit", run.feedback)
    if "adviser" in parameters and isinstance(settings.get("adviser"), str):
        settings["adviser"] = _adviser(settings["adviser"], env)
    return settings


def check(runs: Sequence[Run]) -> list[str]:
    """Build one world, and in it every agent that the user configured, and throw them away.

    Args:
        runs: runs in the same world, one per agent.

    Returns:
        What the world or its agents say about their arguments; empty where all can be built.
    """
    complaints, worlds = [], {}
    for run in runs:
        if run.feedback not in worlds:
            try:
                worlds[run.feedback] = make_world(run)
            except (Exception, SystemExit) as error:  # whatever they say about their arguments is for the user
                return [f"world `{run.world}` ({run.world_id}): {_said(error)}"]
        if run.settings or run.kind not in agents.PRESETS:  # PyTorch is not imported only to look
            try:
                make_agent(run, worlds[run.feedback])
            except (Exception, SystemExit) as error:
                complaints.append(f"agent `{run.agent}` in world `{run.world}`: {_said(error)}")
    return complaints


def _said(error: BaseException) -> str:
    """The text of an error, without what Gymnasium appends to it."""
    if isinstance(error, SystemExit):
        return f"it ended the process (SystemExit: {error})"
    return str(error).split(" was raised from the environment creator")[0] or type(error).__name__


@functools.cache
def machine() -> dict[str, Any]:
    """Where a run was done."""
    versions: dict[str, str | None] = {}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            versions[library] = None
    return {
        "cpu": _cpu(),
        "cpu_count": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def _live(run: Run, tick: Callable[[int], None] | None) -> tuple[dict[str, Any], dict[str, Any], records.Steps]:
    decision: dict[str, Any] = {}

    def explain_last(number: int, observation: Any, action: int) -> None:
        if number == run.steps - 1:
            decision.update(decisions.taken(agent, observation, action, number, world["actions"]) or {})

    began_s = time.perf_counter()
    recorder, agent = build(run, before_step=explain_last, tick=tick)
    world = facts_of(recorder)
    built_s = time.perf_counter()
    drive(recorder, agent)
    lived_s = time.perf_counter() - built_s
    steps = recorder.steps()
    timing = {
        "setup_s": round(built_s - began_s, 6),
        "run_s": round(lived_s, 6),
        "steps_per_s": round(run.steps / lived_s, 3),
        **recorder.timing(),
    }
    facts = facts_of_run(run, agent, world, steps, n_pending=recorder.n_pending, decision=decision or None)
    recorder.close()
    return facts, timing, steps


def facts_of_run(
    run: Run,
    agent: Any,
    world: Mapping[str, Any],
    steps: records.Steps,
    *,
    n_pending: int,
    decision: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What a record says of a run beside its specification and its time.

    Args:
        run: what was done.
        agent: who did it.
        world: of `facts_of`.
        steps: what happened.
        n_pending: decisions whose outcome had not arrived at the end.
        decision: the last one, of `decisions.taken`.
    """
    return {
        "world": dict(world),
        "agent": {"action": agent.action} if run.kind == "best_fixed" else {},
        "n_boundaries": int(np.sum(steps.boundary)),
        "n_pending": n_pending,
        "reward_sum": float(np.sum(steps.reward, dtype=np.float64)),
        "score_sum": float(np.sum(steps.score, dtype=np.float64)),
        "decision": decision,
    }


def facts_of(env: gymnasium.Env[Any, Any]) -> dict[str, Any]:
    """What a report has to know of a world without building it again."""
    schema = getattr(env.unwrapped, "schema", None)
    if schema is None:
        n = int(env.action_space.n)  # type: ignore[attr-defined]
        return {
            "name": env.spec.id if env.spec else "",
            "version": None,
            "actions": [str(a) for a in range(n)],
            "boundary": "episode",
            "score_per": "step",
        }
    return {
        "name": schema.world,
        "version": schema.version,
        "actions": list(schema.actions),
        "boundary": schema.boundary,
        "score_per": schema.score_per,
    }


def _rules(env: gymnasium.Env[Any, Any]) -> Callable[[Any], int]:
    policy = scenarios.expert_policy(env)
    if policy is None:
        raise StudyError("this world has no expert rules; leave out the agent `rules` and advisers.")
    return policy


def _adviser(name: str, env: gymnasium.Env[Any, Any]) -> Callable[[Any], int]:
    if name != ADVISER:
        raise StudyError(f"`adviser` must be {ADVISER!r}, the expert rules of the world, got {name!r}.")
    return _rules(env)


def _best_fixed(run: Run) -> int:
    """The action with the best mean score when taken always, found on a seed that no study uses."""
    kwargs = dict(run.world_kwargs)
    steps = min(run.steps, PROBE_STEPS)
    if "horizon" in kwargs:
        kwargs |= _squeezed(kwargs, steps)
    return _probe(_Frozen(run.world_id, kwargs), steps)


def _squeezed(kwargs: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """Arguments of an episode of `steps` steps in which the rules change as they do in the whole one."""
    horizon = int(kwargs["horizon"])
    changed: dict[str, Any] = {"horizon": steps}
    if kwargs.get("shift_at") is not None:
        changed["shift_at"] = int(kwargs["shift_at"]) * steps // horizon
    if isinstance(kwargs.get("regime"), list | tuple):
        entries = {int(at) * steps // horizon: level for at, level in kwargs["regime"]}  # of equal steps the last
        changed["regime"] = [[at, level] for at, level in entries.items()]
    return changed


class _Frozen:
    """A world's arguments as a key of a cache."""

    def __init__(self, world_id: str, kwargs: Mapping[str, Any]) -> None:
        self.world_id, self.kwargs = world_id, kwargs
        self._key = (world_id, repr(sorted(kwargs.items())))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Frozen) and self._key == other._key


@functools.lru_cache(maxsize=64)
def _probe(world: _Frozen, steps: int) -> int:
    env = gymnasium.make(world.world_id, disable_env_checker=True, **world.kwargs)
    per_boundary = getattr(getattr(env.unwrapped, "schema", None), "score_per", "step") == "boundary"
    means = []
    for action in range(int(env.action_space.n)):  # type: ignore[attr-defined]
        recorder = Recorder(env, steps=steps, seed=PROBE_SEED)
        online.run(agents.make("best_fixed", recorder, action=action), recorder, steps)
        trace = recorder.steps()
        n = np.sum(trace.boundary) if per_boundary else steps
        means.append(float(np.sum(trace.score)) / n if n else -np.inf)
    return int(np.argmax(means))


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


_compiled_s = [0.0]


@functools.cache
def _listen_to_compiler() -> None:
    def add(event: str, duration_secs: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            _compiled_s[0] += duration_secs

    jax.monitoring.register_event_duration_secs_listener(add)


def _compile_seconds() -> float:
    """Seconds that JAX has spent tracing and compiling in this process, as JAX itself reports them."""
    _listen_to_compiler()
    return _compiled_s[0]
