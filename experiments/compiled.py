"""Runs that go through one compiled call: all seeds of one agent in one of our worlds, up to MAX_BLOCK at a time.

For the same seeds their records have the same values as those of runs that go step by step; only the clock differs.
What a run took is its share of the block, compilation included.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..agents import compiled as agents_compiled
from ..cognition.evidence import exploration_rate
from ..envs import rollout
from ..envs.adapter import WorldEnv
from ..envs.contract import NO_DECISION
from ..envs.regimes import LEVELS
from . import decisions, execution, records
from .execution import Ending
from .noting import noting
from .plan import Run, is_compiled
from .recording import N_MARKS
from .reference_players import PolicyPlayer, ScriptedPlayer

Array = jax.Array


def can(runs: Sequence[Run]) -> bool:
    """Whether runs of one group go through one compiled call: where it pays and the world is ours, not wrapped."""
    if not is_compiled(runs):
        return False
    try:
        return _world_of(runs[0]) is not None
    except (Exception, SystemExit):  # step by step, it is recorded as the failure of each run
        return False


def execute(runs: Sequence[Run], folder: Path) -> list[Ending]:
    """Do runs that differ in their seeds alone, and commit a record of each.

    Args:
        runs: at least one, for which `can` holds.
        folder: of the records.
    """
    clock = execution.Clock()
    try:
        lived = _live(runs)
    except (Exception, SystemExit) as error:  # as in `execution.execute`
        return [execution.commit_failure(run, folder, error, clock, share=len(runs)) for run in runs]
    return [
        execution.commit(run, folder, facts, timing, steps, clock, share=len(runs))
        for run, (facts, timing, steps) in zip(runs, lived, strict=True)
    ]


def _live(runs: Sequence[Run]) -> list[tuple[dict[str, Any], dict[str, Any], records.Steps]]:
    began_s = time.perf_counter()
    one, n_steps = runs[0], runs[0].steps
    env = execution.make_world(one)
    bare = env.unwrapped
    assert isinstance(bare, WorldEnv)  # `can`
    agents = [execution.make_agent(run, env) for run in runs]
    player, epsilon = _player(one, agents, env)
    noted = noting(player, solution=bare.solution, n_steps=n_steps, n_slots=_n_slots(bare), epsilon=epsilon)
    built_s = time.perf_counter()
    trace = jax.block_until_ready(  # type: ignore[no-untyped-call]
        rollout.rollout(
            bare.world,
            noted,
            rollout.seeds_to_key_data([run.seed for run in runs]),
            n_steps=n_steps,
            params=bare.params,
            solution=bare.solution,
        )
    )
    each_s = (time.perf_counter() - built_s) / len(runs)
    every = max(1, n_steps // N_MARKS)
    timing = {
        "setup_s": round((built_s - began_s) / len(runs), 6),
        "run_s": round(each_s, 6),
        "steps_per_s": round(n_steps / each_s, 3),
        "first_step_s": 0.0,
        "marks_s": [round(min(mark, n_steps) / n_steps * each_s, 6) for mark in range(every, n_steps + every, every)],
        "steps_per_mark": every,
        "block": len(runs),
    }
    world = execution.facts_of(env)
    found = []
    trace = jax.tree.map(np.asarray, trace)
    for number, (run, agent) in enumerate(zip(runs, agents, strict=True)):
        steps, n_pending = _steps(trace, number, pays_on_arrival=bare.schema.feedback == "stream")
        decision = None
        if run.kind == "substrate":
            agent = agents_compiled.lived(agent, trace.carry.carried, number)
            observation = {name: value[number] for name, value in trace.carry.observation.items()}
            last = n_steps - 1
            decision = decisions.taken(agent, observation, int(steps.action[last]), last, world["actions"])
        facts = execution.facts_of_run(run, agent, world, steps, n_pending=n_pending, decision=decision)
        found.append((facts, timing, steps))
    return found


def _player(run: Run, agents: Sequence[Any], env: gymnasium.Env[Any, Any]) -> tuple[Any, Any]:
    """A player that does what the agents do, and what tells its rate of random actions."""
    bare: Any = env.unwrapped
    if run.kind == "substrate":
        adviser = execution.settings_of(run, env).get("adviser")
        pure = adviser.pure() if adviser is not None else None
        return agents_compiled.player_of(agents, feedback_slots=_n_slots(bare), adviser=pure), _exploration
    if run.kind == "rules":
        return PolicyPlayer(agents[0].policy.pure()), None
    if run.kind == "oracle":
        return rollout.OraclePlayer(bare.solution), None
    if run.kind == "filter":
        return rollout.FilterPlayer(bare.world.filter(bare.solution)), None
    # random and best_fixed look at nothing
    actions = [[agent.act(None) for _ in range(run.steps)] for agent in agents]
    return ScriptedPlayer(jnp.asarray(actions, jnp.int32)), None


def _exploration(player: agents_compiled.SubstratePlayer, carry: agents_compiled.Carry) -> Array:
    return exploration_rate(carry.state.rewards.since, player.params)


def _steps(trace: Any, number: int, *, pays_on_arrival: bool) -> tuple[records.Steps, int]:
    """What a record holds of one episode, and how many of its decisions still waited for their outcome.

    Args:
        trace: `rollout.Trace` of the block with a `Noted` carry, as NumPy arrays.
        number: of the episode.
        pays_on_arrival: whether rewards are paid when outcomes arrive.
    """
    notes: Any = jax.tree.map(lambda note: note[number], trace.carry.notes)
    reward, n_pending = _settled(trace.reward[number].astype(np.float64), notes, pays_on_arrival=pays_on_arrival)
    steps = records.Steps(
        action=trace.action[number].astype(np.int16),
        reward=reward.astype(np.float32),
        score=trace.expected[number],
        best=notes.best,
        boundary=trace.boundary[number],
        regime=(trace.level[number] / LEVELS).astype(np.float32),
        epsilon=notes.epsilon if notes.epsilon.size else np.full(len(reward), np.nan, np.float32),
    )
    return steps, n_pending


def _settled(
    reward: npt.NDArray[np.float64], notes: Any, *, pays_on_arrival: bool
) -> tuple[npt.NDArray[np.float64], int]:
    """Rewards with what was paid on arrival put back to the decision that earned it, as `Recorder` does."""
    if not notes.decision_id.size:
        return reward, 0
    waits = np.flatnonzero(notes.decision_id != NO_DECISION)
    step_of = dict(zip(notes.decision_id[waits].tolist(), waits.tolist(), strict=True))
    for step, slot in np.argwhere(notes.feedback_id != NO_DECISION).tolist():
        earner = step_of.pop(int(notes.feedback_id[step, slot]), None)
        if pays_on_arrival and earner is not None:
            reward[step] -= notes.feedback_value[step, slot]
            reward[earner] += notes.feedback_value[step, slot]
    return reward, len(step_of)


def _world_of(run: Run) -> WorldEnv | None:
    """The bare world of a run, or None where it is no world of ours or is wrapped."""
    env = execution.make_world(run)
    inner = env
    while isinstance(inner, gymnasium.wrappers.OrderEnforcing | gymnasium.wrappers.PassiveEnvChecker):
        inner = inner.env
    return inner if isinstance(inner, WorldEnv) else None


def _n_slots(world: WorldEnv) -> int:
    """Outcomes that a world lists in a step."""
    key = jax.random.key(0)
    state = jax.eval_shape(world.world.initial, key, world.params)
    _, outcome = jax.eval_shape(world.world.step, state, jnp.int32(0), key, world.params)
    return int(outcome.feedback_id.shape[0])
