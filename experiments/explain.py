"""Explains one decision of a recorded run, by running it again up to there.

A run is deterministic, so nothing but its actions has to be kept: the agent lives its life again, every action is
compared with the record, and at the step in question it is asked what it sees in its memory.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import records, results, study, study_file, worker
from .errors import RecordError, StudyError
from .plan import Run
from .records import Record


@dataclasses.dataclass(frozen=True)
class Explained:
    """A decision and what came of it.

    Attributes:
        run: the run it belongs to.
        step: number of the decision.
        observation: what the agent saw, as text.
        action: label of what it did.
        choice: label of what its evidence chose; differs where it explored.
        text: the agent's own explanation.
        reward: of the decision, with its delayed outcome.
        score: expected reward of what it did.
        best: the largest expected reward on offer, NaN where the world cannot say it.
    """

    run: Run
    step: int
    observation: str
    action: str
    choice: str
    text: str
    reward: float
    score: float
    best: float


MOST_ROUNDED = 0.001
"""Share of the steps of a compiled run that may come out otherwise step by step, see `_Rounded`."""


class _Reached(BaseException):
    """Ends the re-run at the decision in question."""


def explain(
    folder: Path,
    *,
    world: str | None = None,
    agent: str | None = None,
    feedback: str | None = None,
    seed: int | None = None,
    step: int | None = None,
) -> Explained:
    """Explain the decision of one step of a recorded run.

    Args:
        folder: results of a study.
        world: label; by default the study's first.
        agent: label; by default the study's first.
        feedback: variant; by default the first.
        seed: of the run; by default the first.
        step: by default the last.

    Raises:
        StudyError: the study has no such run or step, or the agent does not explain itself.
        RecordError: the run is not recorded, or the re-run does not do what the record says.
    """
    run, record = _find(folder, world=world, agent=agent, feedback=feedback, seed=seed)
    steps = record.steps
    assert steps is not None  # _find returns complete records only
    at = len(steps) - 1 if step is None else step
    if not 0 <= at < len(steps):
        raise StudyError(f"`--step` must lie in [0, {len(steps)}), the steps of the run, got {at}.")
    with worker.environment():
        return _live_again(run, record, at)


def _live_again(run: Run, record: Record, at: int) -> Explained:
    from . import decisions, execution  # JAX, after the environment variables of a worker are set

    steps = record.steps
    assert steps is not None
    labels = record.header["world"]["actions"]
    seen: dict[str, Any] = {}
    rounded = _Rounded(steps.action, at) if "block" in record.header["timing"] else None

    def compare(number: int, observation: Any, action: int) -> None:
        wanted = action if rounded is None else rounded.wanted(number)
        if wanted != steps.action[number] and (rounded is None or not rounded.may_differ(number)):
            raise RecordError(_diverged(run, record, number, labels[steps.action[number]], labels[wanted]))
        if number == at:
            seen.update(decision=decisions.taken(agent, observation, action, number, labels), observation=observation)
            raise _Reached

    recorder, agent = execution.build(run, before_step=compare)
    if not decisions.explains_itself(agent):
        raise StudyError(
            f"agent `{run.agent}` ({run.kind}) does not explain its decisions: it has no method `decide`; "
            "choose another with `--agent`."
        )
    try:
        execution.drive(recorder, agent if rounded is None else rounded.led(agent))
    except _Reached:
        pass
    decision = seen["decision"]
    return Explained(
        run=run,
        step=at,
        observation=decisions.described(seen["observation"], getattr(recorder.unwrapped, "schema", None)),
        action=decision["action"],
        choice=decision["choice"],
        text=decision["text"],
        reward=float(steps.reward[at]),
        score=float(steps.score[at]),
        best=float(steps.best[at]),
    )


class _Rounded:
    """Leads an agent along a record that was made in a compiled call, which rounds its sums in another order.

    After thousands of steps two actions of nearly equal score may come out the other way round. The agent then does
    what the record says and learns from it, and few such steps are let pass; more mean that something has changed.
    """

    def __init__(self, actions: npt.NDArray[np.int16], at: int) -> None:
        self._actions, self._at = actions, at
        self._wanted: list[int] = []
        self._n_other = 0

    def led(self, agent: Any) -> Any:
        """The agent, doing what is recorded."""
        act = agent.act

        def recorded(observation: Any) -> int:
            self._wanted.append(int(act(observation)))
            return int(self._actions[len(self._wanted) - 1])

        agent.act = recorded
        return agent

    def wanted(self, number: int) -> int:
        """What the agent would have done by itself."""
        return self._wanted[number]

    def may_differ(self, number: int) -> bool:
        """Whether one more step that is not as recorded can be rounding; never the one that is asked for."""
        self._n_other += 1
        return number != self._at and self._n_other <= 1 + MOST_ROUNDED * number


def _find(
    folder: Path, *, world: str | None, agent: str | None, feedback: str | None, seed: int | None
) -> tuple[Run, Record]:
    """The run that is meant, and its record."""
    runs: list[Run] = list(results.planned_in(folder)[1])
    for option, wanted in (("world", world), ("agent", agent), ("feedback", feedback), ("seed", seed)):
        valid = list(dict.fromkeys(getattr(run, option) for run in runs))
        if wanted is None:
            wanted = valid[0]
        if wanted not in valid:
            hint = study_file.nearest(str(wanted), [str(value) for value in valid])
            raise StudyError(f"`--{option}`: expected one of {', '.join(map(str, valid))}, got {wanted}{hint}")
        runs = [run for run in runs if getattr(run, option) == wanted]
    record = records.read(folder / records.RUNS, runs[0].hash)
    if not record.is_complete:
        raise RecordError(f"run {runs[0].hash} failed and has no steps: {record.header['error']['message']}")
    for key, value in runs[0].world_kwargs.items():
        if study.is_table(value) and not Path(value).is_file():
            raise StudyError(f"world `{runs[0].world}`: `{key}`: the table {value!r} is needed again, and is gone.")
    return runs[0], record


def _diverged(run: Run, record: Record, number: int, recorded: str, done: str) -> str:
    from . import execution

    here, there = execution.machine(), record.header["machine"]
    differing = [
        f"{name} {there['versions'].get(name)} -> {version}"
        for name, version in here["versions"].items()
        if there["versions"].get(name) != version
    ]
    differing += [f"{name} {there[name]} -> {here[name]}" for name in ("cpu", "python") if there[name] != here[name]]
    reason = f"Since then changed: {', '.join(differing)}." if differing else "Versions and machine are the same."
    return (
        f"run {run.hash}: step {number}: the record says {recorded}, the re-run did {done}; this decision cannot be "
        f"explained from the record. {reason}"
    )
