"""Raw scores of the reference policies in every world, difficulty and regime, and what memory is worth there.

`habitus scores` writes them as the table that agents are compared with: a score of one's own becomes comparable by
(score - random) / (oracle - random), with the numbers of the same line.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import world_runs
from .statistics import Estimate
from .summary import number
from .world_runs import DIFFICULTIES, FIRST_SEED, POLICIES, SECOND, Policy, Regime, Setting, of_seeds, table

Floats = NDArray[np.float64]

REGIMES: dict[str, Regime] = {
    "first": "none",
    "second": SECOND,
    "shift": "shift",
    "periodic": "periodic",
    "drift": "drift",
}
SCHEDULES = ("shift", "periodic", "drift")  # at medium difficulty only
N_SEEDS, N_STEPS = 20, 30_000
QUICK_SEEDS, QUICK_STEPS = 2, 900
TUNING_SEEDS = range(20)
MEMORY = ("filter", "forgetful filter")
ABOUT = {
    "random": "any action with the same chance",
    "best fixed": "the one action that, always taken, earned most on seeds 0-19",
    "rules": "expert rules of `habitus.scenarios`",
    "forgetful filter": "the filter, which forgets everybody at the end of an encounter",
    "filter": "knows the dynamics, infers what is hidden by Bayes from what an agent sees",
    "oracle": "sees what is hidden",
}


@dataclasses.dataclass(frozen=True)
class Line:
    """One world in one difficulty and regime: mean reward per step of each policy, per seed."""

    world: str
    version: int
    difficulty: str
    regime: str
    fixed: str  # the best fixed action
    scores: dict[Policy, Floats]  # [S] each

    def raw(self, policy: Policy) -> Estimate:
        """Mean reward per step."""
        return of_seeds(self.scores[policy])

    def normalised(self, policy: Policy) -> Estimate:
        """The score between random, 0, and the oracle, 1."""
        return of_seeds(self._scaled(policy))

    def difference(self, one: Policy, other: Policy) -> Estimate:
        """Normalised difference, paired by seed."""
        return of_seeds(self._scaled(one) - self._scaled(other))

    def _scaled(self, policy: Policy) -> Floats:
        return world_runs.normalised(self.scores[policy], self.scores["random"], self.scores["oracle"])


@dataclasses.dataclass(frozen=True)
class Part:
    """A world in one difficulty: what one process measures, for it shares compiled code."""

    world_id: str
    difficulty: str
    n_seeds: int
    n_steps: int

    def __str__(self) -> str:
        return f"{world_runs.label_of(self.world_id)} {self.difficulty}"


def measure(
    world_ids: Sequence[str],
    *,
    n_seeds: int = N_SEEDS,
    n_steps: int = N_STEPS,
    difficulties: Sequence[str] = DIFFICULTIES,
    jobs: int = 1,
    said: Callable[[str], None] = lambda text: None,
) -> list[Line]:
    """All lines of the table.

    Args:
        world_ids: registered worlds.
        n_seeds: from FIRST_SEED on.
        n_steps: of each episode.
        difficulties: some of DIFFICULTIES; the schedules belong to "medium".
        jobs: worker processes.
        said: is told what has been measured.
    """
    parts = [Part(world_id, difficulty, n_seeds, n_steps) for world_id in world_ids for difficulty in difficulties]
    return world_runs.each(_lines, parts, jobs, said)


def _lines(part: Part) -> list[Line]:
    seeds = range(FIRST_SEED, FIRST_SEED + part.n_seeds)
    return [
        line(Setting(part.world_id, part.difficulty, rules, horizon=part.n_steps), regime, seeds)
        for regime, rules in REGIMES.items()
        if part.difficulty == "medium" or regime not in SCHEDULES
    ]


def line(setting: Setting, regime: str, seeds: Sequence[int], policies: Sequence[Policy] = POLICIES) -> Line:
    """One line of the table."""
    schema = world_runs.built(setting).world.schema
    scores: dict[Policy, Floats] = {}
    fixed = ""
    for policy in policies:
        player = world_runs.player_of(policy, setting, TUNING_SEEDS[: len(seeds)])
        if player is None:
            continue
        if isinstance(player, world_runs.AlwaysPlayer):
            fixed = schema.actions[int(player.action)]
        scores[policy] = world_runs.run(setting, player, seeds).score.mean(axis=1, dtype=np.float64)
    return Line(schema.world, schema.version, setting.difficulty, regime, fixed, scores)


def failures(lines: Sequence[Line]) -> list[str]:
    """Where the order of the references is not what it must be, in words; empty where all is well.

    Memory must be worth something, and no policy that must infer may beat the one that knows, both by the intervals.
    """
    wrong = []
    for at in lines:
        where = f"{at.world} {at.difficulty} {at.regime}"
        if at.difference("filter", "oracle").low > 0:
            wrong.append(f"{where}: the filter beats the oracle, {_signed(at.difference('filter', 'oracle'))}")
        for better, worse in ((MEMORY[0], MEMORY[1]), (MEMORY[1], "random")):
            gap = at.difference(better, worse)  # type: ignore[arg-type]
            if not gap.low > 0:
                wrong.append(f"{where}: {better} is not better than {worse}, {_signed(gap)}")
    return wrong


def to_csv(lines: Sequence[Line]) -> str:
    """One line per setting and policy; the last policy of each setting is filter minus forgetful filter."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    header = ["world", "version", "difficulty", "regime", "policy", "action", "seeds"]
    estimates = ("reward_per_step", "normalised")
    writer.writerow(header + [name + part for name in estimates for part in ("", "_low", "_high")])
    for at in lines:
        start = [at.world, at.version, at.difficulty, at.regime]
        for policy in at.scores:
            action = at.fixed if policy == "best fixed" else ""
            raw, scaled = at.raw(policy), at.normalised(policy)
            writer.writerow([*start, policy, action, raw.n, *_numbers(raw), *_numbers(scaled)])
        raw = of_seeds(at.scores["filter"] - at.scores["forgetful filter"])
        scaled = at.difference("filter", "forgetful filter")
        writer.writerow([*start, "value of memory", "", raw.n, *_numbers(raw), *_numbers(scaled)])
    return buffer.getvalue()


def to_markdown(lines: Sequence[Line], command: str) -> str:
    """The tables for people."""
    n_seeds = len(next(iter(lines[0].scores.values())))
    text = [
        "# Reference scores of the worlds",
        f"```\n{command}\n```",
        f"Mean reward per step over whole episodes, seeds {FIRST_SEED}-{FIRST_SEED + n_seeds - 1}, ± half the 95 % "
        "bootstrap interval over seeds. The reward of a step is the expected reward of what was done, its delayed "
        "outcome included, all hidden known: the same mean as that of the rewards paid, without the luck of single "
        'outcomes. `regime`: "first" and "second" are the two sets of rules throughout; the others are schedules.',
        "\n".join(f"- **{name}**: {about}" for name, about in ABOUT.items()),
    ]
    for world in dict.fromkeys(at.world for at in lines):
        here = [at for at in lines if at.world == world]
        names = [policy for policy in POLICIES if policy in here[0].scores]
        text.append(f"## {world}-v{here[0].version}")
        text.append("Reward per step.")
        rows = [[at.difficulty, at.regime, *(_cell(at.raw(p), 3) for p in names), at.fixed] for at in here]
        text.append(table(["difficulty", "regime", *names, "best action"], rows))
        text.append("Normalised, (score - random) / (oracle - random); value of memory = filter - forgetful filter.")
        inner = [policy for policy in names if policy not in ("random", "oracle")]
        rows = [
            [
                at.difficulty,
                at.regime,
                *(_cell(at.normalised(p), 2) for p in inner),
                _cell(at.difference("filter", "forgetful filter"), 2),
                _signed(at.difference("oracle", "filter")),
            ]
            for at in here
        ]
        text.append(table(["difficulty", "regime", *inner, "value of memory", "oracle - filter"], rows))
    wrong = failures(lines)
    text.append("## Order of the references")
    if wrong:
        text.append("\n".join(f"- {sentence}" for sentence in wrong))
    else:
        text.append("In every line: oracle >= filter > forgetful filter > random, by the 95 % intervals.")
    return "\n\n".join(text) + "\n"


def _cell(estimate: Estimate, digits: int) -> str:
    return f"{number(estimate.point, digits)} ±{number((estimate.high - estimate.low) / 2, digits)}"


def _signed(estimate: Estimate) -> str:
    return f"{number(estimate.point)} [{number(estimate.low)}, {number(estimate.high)}]"


def _numbers(estimate: Estimate) -> list[str]:
    return [f"{value:.6g}" for value in (estimate.point, estimate.low, estimate.high)]
