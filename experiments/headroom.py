"""What there is to gain by knowing who one deals with, and to lose by not noticing that the rules have changed.

*Headroom*: the same learner with the hidden type given, minus without type and identity. Where it is nothing, memory of
entities has nothing to do. *Damage*: the learner that goes on learning when the rules change, minus the one that is
frozen at the change. Where it is nothing, adaptation has nothing to do.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import world_runs
from .reference_learner import KNOWS, Knows, reference_learner
from .statistics import Estimate
from .summary import number, window_name
from .world_runs import DIFFICULTIES, FIRST_SEED, Policy, Setting, of_seeds, table

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_SEEDS, N_STEPS = 20, 30_000
QUICK_SEEDS, QUICK_STEPS = 2, 900
REFERENCES: tuple[Policy, ...] = ("random", "filter", "oracle")
SCHEDULES = ("shift", "periodic", "drift")
SECOND_LEVEL = 10
LATE = 10  # the late steps are a tenth of the episode
HEADROOM, DAMAGE = "headroom", "damage"


@dataclasses.dataclass(frozen=True)
class Fact:
    """One measured number.

    Attributes:
        world, difficulty, regime: where.
        quantity: "score"; "headroom" = knows the type - knows nothing; "gap" = filter - learner; and under a schedule
            "before" = score before the first change, "adapted" and "frozen" = scores of the learner that goes on and of
            the one that stopped at the first change, "damage" = adapted - frozen, "loss" = before - frozen.
        of: a reference policy, or what the learner knows.
        window: steps (from, to).
        estimate: normalised, (score - random) / (oracle - random) in the same steps.
    """

    world: str
    difficulty: str
    regime: str
    quantity: str
    of: str
    window: tuple[int, int]
    estimate: Estimate


def headroom(setting: Setting, seeds: Sequence[int]) -> list[Fact]:
    """Facts of a world whose rules stay; the first third of the episode is for learning."""
    window = (setting.horizon // 3, setting.horizon)
    mask = np.zeros((len(seeds), setting.horizon), np.bool_)
    mask[:, slice(*window)] = True
    references = {policy: _reference(policy, setting, seeds, mask) for policy in REFERENCES}
    learners = {knows: _mean(_learner(setting, knows, seeds).score, mask) for knows in KNOWS}

    def scaled(values: Floats) -> Floats:
        return world_runs.normalised(values, references["random"], references["oracle"])

    where = (world_runs.label_of(setting.world_id), setting.difficulty, "none")
    facts = [
        Fact(*where, "score", of, window, of_seeds(scaled(values))) for of, values in (references | learners).items()
    ]
    gain = of_seeds(scaled(learners["type"]) - scaled(learners["nothing"]))
    facts.append(Fact(*where, HEADROOM, "learner", window, gain))
    for knows in KNOWS:
        gap = of_seeds(scaled(references["filter"]) - scaled(learners[knows]))
        facts.append(Fact(*where, "gap", knows, window, gap))
    return facts


def damage(setting: Setting, seeds: Sequence[int]) -> list[Fact]:
    """Facts of a world whose rules change.

    Scores are taken late: `adapted` and `frozen` over the last of the steps in which the second rules hold in full,
    `before` over as many before the first change; LATE says how many.
    """
    made = world_runs.built(setting)
    change = int(np.asarray(made.params.regime_steps)[1])
    runs = {policy: _run(policy, setting, seeds) for policy in ("random", "oracle")}
    n_late = setting.horizon // LATE
    stop = 1 + int(np.flatnonzero(runs["random"].level[0] == SECOND_LEVEL)[-1])
    earlier, later = (change - min(n_late, change), change), (stop - n_late, stop)
    before, after = np.zeros((2, len(seeds), setting.horizon), np.bool_)
    before[:, slice(*earlier)], after[:, slice(*later)] = True, True
    low, high = (
        {when: _mean(runs[p].score, m) for when, m in (("b", before), ("a", after))} for p in ("random", "oracle")
    )

    def scaled(values: NDArray[np.float32], when: str) -> Floats:
        return world_runs.normalised(_mean(values, before if when == "b" else after), low[when], high[when])

    where = (world_runs.label_of(setting.world_id), setting.difficulty, str(setting.regime))
    facts = []
    for knows in KNOWS:
        goes_on = _learner(setting, knows, seeds).score
        stopped = _learner(setting, knows, seeds, freeze_at=change).score
        was, adapted, frozen = scaled(goes_on, "b"), scaled(goes_on, "a"), scaled(stopped, "a")
        for quantity, window, values in (
            ("before", earlier, was),
            ("adapted", later, adapted),
            ("frozen", later, frozen),
            (DAMAGE, later, adapted - frozen),
            ("loss", later, was - frozen),
        ):
            facts.append(Fact(*where, quantity, knows, window, of_seeds(values)))
    return facts


def schedules(world_id: str, n_steps: int) -> list[Setting]:
    """The schedules: a shift after n_steps, and changes from a third of them on, all over 5/3 of n_steps."""
    horizon = n_steps * 5 // 3
    return [
        Setting(world_id, "medium", regime, n_steps if regime == "shift" else n_steps // 3, horizon)
        for regime in SCHEDULES
    ]


def measure(
    world_ids: Sequence[str],
    *,
    n_seeds: int = N_SEEDS,
    n_steps: int = N_STEPS,
    difficulties: Sequence[str] = DIFFICULTIES,
    jobs: int = 1,
    said: Callable[[str], None] = lambda text: None,
) -> list[Fact]:
    """All facts; seeds from FIRST_SEED on; arguments as in `world_scores.measure`."""
    parts = [
        Part(setting, n_seeds)
        for world_id in world_ids
        for setting in (
            *(Setting(world_id, difficulty, horizon=n_steps) for difficulty in difficulties),
            *schedules(world_id, n_steps),
        )
    ]
    return world_runs.each(_facts, parts, jobs, said)


@dataclasses.dataclass(frozen=True)
class Part:
    """What one process measures."""

    setting: Setting
    n_seeds: int

    def __str__(self) -> str:
        return f"{world_runs.label_of(self.setting.world_id)} {self.setting.difficulty} {self.setting.regime}"


def _facts(part: Part) -> list[Fact]:
    seeds = range(FIRST_SEED, FIRST_SEED + part.n_seeds)
    return headroom(part.setting, seeds) if part.setting.regime == "none" else damage(part.setting, seeds)


def to_csv(facts: Sequence[Fact]) -> str:
    """One line per fact."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        ["world", "difficulty", "regime", "quantity", "of", "from_step", "to_step", "seeds", "mean", "low", "high"]
    )
    for fact in facts:
        numbers = [f"{value:.6g}" for value in (fact.estimate.point, fact.estimate.low, fact.estimate.high)]
        where = [fact.world, fact.difficulty, fact.regime, fact.quantity, fact.of]
        writer.writerow([*where, *fact.window, fact.estimate.n, *numbers])
    return buffer.getvalue()


def to_markdown(facts: Sequence[Fact], command: str) -> str:
    """The tables for people."""
    known = {(f.world, f.difficulty, f.regime, f.quantity, f.of): f.estimate for f in facts}
    windows = {(f.regime, f.quantity): f.window for f in facts}
    worlds = list(dict.fromkeys(fact.world for fact in facts))
    measured = {fact.difficulty for fact in facts}
    n = facts[0].estimate.n
    text = [
        "# Headroom and damage",
        f"```\n{command}\n```",
        f"The reference learner (`experiments/reference_learner.py`), seeds {FIRST_SEED}-{FIRST_SEED + n - 1}. Scores "
        "are (score - random) / (oracle - random) in the same steps, ± half the 95 % bootstrap interval over seeds; "
        "differences are paired by seed. In CreditReview the outcome is paid at its decision, and the type is the "
        "quintile of the applicant's own effect, unknown for new applicants.",
        "## Headroom",
        f"Steps {window_name(windows['none', 'score'])}, first rules. The learner knows nothing, the identity "
        "(entity), or the hidden type. Headroom = type - nothing; gap = filter - learner that knows the identity.",
    ]
    columns = ("random", "nothing", "entity", "type", "filter", "oracle")
    rows = []
    for world in worlds:
        for difficulty in (level for level in DIFFICULTIES if level in measured):
            where = (world, difficulty, "none")
            cells = [known[(*where, "score", of)] for of in columns]
            cells += [known[(*where, HEADROOM, "learner")], known[(*where, "gap", "entity")]]
            rows.append([world, difficulty, *map(_cell, cells)])
    text.append(table(["world", "difficulty", *columns, "headroom", "gap"], rows))
    text.append("## Damage")
    changes = ", ".join(f"{regime} {windows[regime, 'before'][1]}" for regime in SCHEDULES)
    text.append(
        f"Medium difficulty. Frozen = learns nothing from the first change on (step: {changes}); adapted = goes on; "
        "both over the last steps in which the second rules hold in full, a tenth of the episode. Before = as many "
        "steps before the first change. Damage = adapted - frozen; loss = before - frozen."
    )
    rows = []
    quantities = ("before", "adapted", "frozen", DAMAGE, "loss")
    for world in worlds:
        for regime in SCHEDULES:
            for knows in KNOWS:
                cells = [known[world, "medium", regime, quantity, knows] for quantity in quantities]
                rows.append([world, regime, knows, *map(_cell, cells)])
    text.append(table(["world", "schedule", "knows", *quantities], rows))
    return "\n\n".join(text) + "\n"


def _cell(estimate: Estimate) -> str:
    return f"{number(estimate.point)} ±{number((estimate.high - estimate.low) / 2)}"


def _run(policy: Policy, setting: Setting, seeds: Sequence[int]) -> world_runs.Run:
    return world_runs.run(setting, world_runs.player_of(policy, setting, ()), seeds)


def _learner(setting: Setting, knows: Knows, seeds: Sequence[int], freeze_at: int | None = None) -> world_runs.Run:
    world = world_runs.built(setting).world
    player = (
        reference_learner(world, knows) if freeze_at is None else reference_learner(world, knows, freeze_at=freeze_at)
    )
    return world_runs.run(setting, player, seeds)


def _reference(policy: Policy, setting: Setting, seeds: Sequence[int], mask: Mask) -> Floats:
    return _mean(_run(policy, setting, seeds).score, mask)


def _mean(score: NDArray[np.float32], mask: Mask) -> Floats:
    """[S]: mean of each seed over the steps of the mask."""
    return np.asarray((score * mask).sum(axis=1, dtype=np.float64) / mask.sum(axis=1), np.float64)
