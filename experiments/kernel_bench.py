"""Speed of the activation kernels on one core, beside what a researcher would use instead, in one run.

Every case is timed once a round, so that a round compares what ran side by side; ratios are medians over rounds of the
ratio within a round. Absolute numbers are of the machine at hand, ratios travel. Seconds are processor seconds of all
threads on the one core that they share.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import numpy as np
import scipy  # type: ignore[import-untyped]

from ..cognition.activation import recall
from . import bench_tools
from .bench_tools import N_ROUNDS, Timed, median_ratio, on_one_core, repeated
from .errors import ExperimentError
from .world_runs import table

SMALLEST, LARGEST = 1_000, 10_000_000
NODES = (10_000, 100_000, 1_000_000)
MICRO = 1e6
Kind = Literal["times faster", "times the cost", "microseconds", "share"]


@dataclasses.dataclass(frozen=True)
class Case:
    """What was timed.

    Attributes:
        name: what it is called in the table.
        unit: what its seconds are for one of.
        seconds: processor seconds, one entry per round.
    """

    name: str
    unit: str
    seconds: list[float]

    @property
    def median(self) -> float:
        """Seconds."""
        return statistics.median(self.seconds)


@dataclasses.dataclass(frozen=True)
class Claim:
    """A comparison of two cases, or of one with a number.

    Attributes:
        name: what is compared.
        kind: "times faster" = theirs / ours, the more the better; "times the cost" = ours / theirs, "microseconds" of
            ours, the less the better; "share" = scale theirs / ours, of a limit.
        ours: name of a case.
        theirs: name of a case; empty for "microseconds".
        goal: bound; None = only reported.
        scale: see `kind`.
    """

    name: str
    kind: Kind
    ours: str
    theirs: str = ""
    goal: float | None = None
    scale: float = 1.0


@dataclasses.dataclass(frozen=True)
class Fact:
    """Something that was measured and is no time. `goal` is a bound from below, or from above with `at_most`."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    at_most: bool = False


@dataclasses.dataclass(frozen=True)
class Reached:
    """A line of the table of results: what a claim or a fact came to."""

    name: str
    value: float
    unit: str
    goal: str
    holds: bool | None


class Bench:
    """Collects cases, claims and facts; then times all cases in turn.

    Args:
        is_quick: small sizes and short timings, to see that all works.
        said: is told what is being done.
    """

    def __init__(self, *, is_quick: bool = False, said: Callable[[str], None] = lambda text: None) -> None:
        self.is_quick = is_quick
        self.said = said
        self.cases: list[Case] = []
        self.claims: list[Claim] = []
        self.facts: list[Fact] = []
        self._timers: list[Timed] = []

    def time(self, name: str, call: Callable[[], object], *, units: float = 1.0, unit: str = "call") -> str:
        """Add a case; returns its name. The call is made twice at once, to warm up and to find how often to repeat."""
        if any(case.name == name for case in self.cases):
            raise ValueError(f"`name` must be new, got {name!r} again.")
        self._timers.append(repeated(call, units, 0.002 if self.is_quick else 0.02))
        self.cases.append(Case(name, unit, []))
        return name

    def claim(
        self, name: str, kind: Kind, ours: str, theirs: str = "", goal: float | None = None, scale: float = 1.0
    ) -> None:
        """Add a claim about cases."""
        self.claims.append(Claim(name, kind, ours, theirs, goal, scale))

    def fact(self, name: str, value: float, unit: str, goal: float | None = None, *, at_most: bool = False) -> None:
        """Add a fact."""
        self.facts.append(Fact(name, value, unit, goal, at_most))

    def run(self, n_rounds: int) -> None:
        """Time every case once in each round."""
        for number in range(n_rounds):
            self.said(f"round {number + 1} of {n_rounds}")
            for case, timed in zip(self.cases, self._timers, strict=True):
                case.seconds.append(timed())

    def reached(self) -> list[Reached]:
        """What claims and facts came to."""
        by_name = {case.name: case for case in self.cases}
        return [_of_claim(claim, by_name) for claim in self.claims] + [_of_fact(fact) for fact in self.facts]


def _of_claim(claim: Claim, cases: dict[str, Case]) -> Reached:
    ours = cases[claim.ours]
    if claim.kind == "microseconds":
        value = ours.median * MICRO
    elif claim.kind == "times the cost":
        value = median_ratio(ours.seconds, cases[claim.theirs].seconds) * claim.scale
    else:
        value = median_ratio(cases[claim.theirs].seconds, ours.seconds) * claim.scale
    at_most = claim.kind in ("microseconds", "times the cost")
    unit = {"microseconds": f"us per {ours.unit}", "share": "of the limit"}.get(claim.kind, claim.kind)
    return Reached(claim.name, value, unit, _goal(claim.goal, at_most), _holds(value, claim.goal, at_most))


def _of_fact(fact: Fact) -> Reached:
    goal = _goal(fact.goal, fact.at_most)
    return Reached(fact.name, fact.value, fact.unit, goal, _holds(fact.value, fact.goal, fact.at_most))


def _goal(goal: float | None, at_most: bool) -> str:
    return "" if goal is None else f"{'at most' if at_most else 'at least'} {goal:g}"


def _holds(value: float, goal: float | None, at_most: bool) -> bool | None:
    return None if goal is None else (value <= goal if at_most else value >= goal)


def sizes_of(text: str) -> tuple[int, ...]:
    """Numbers of nodes such as "1e4,1e5", ascending.

    Raises:
        ExperimentError: an entry is no whole number in range.
    """
    sizes = set()
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = float("nan")
        if not SMALLEST <= value <= LARGEST or value != int(value):
            raise ExperimentError(
                f"`--nodes` must be whole numbers from {SMALLEST:,} to {LARGEST:,} separated by commas, such as "
                f"1e4,1e5; got {part.strip()!r}."
            )
        sizes.add(int(value))
    return tuple(sorted(sizes))


def measure(
    sizes: Sequence[int] = NODES,
    *,
    n_rounds: int = N_ROUNDS,
    is_quick: bool = False,
    said: Callable[[str], None] = lambda text: None,
) -> Bench:
    """Prepare and time everything on one core.

    Args:
        sizes: nodes of the large graphs.
        n_rounds: times that each case is timed.
        is_quick: small batches and short timings.
        said: is told what is being done.
    """
    from . import kernel_big_cases, kernel_small_cases

    bench = Bench(is_quick=is_quick, said=said)
    with on_one_core():
        kernel_small_cases.add(bench)
        kernel_big_cases.add(bench, sizes)
        bench.run(n_rounds)
    return bench


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    return bench_tools.machine(jax=jax.__version__, numpy=np.__version__, scipy=scipy.__version__)


def to_json(bench: Bench, command: str, about: dict[str, Any]) -> str:
    """Everything: results, and the seconds of all rounds."""
    cases = [dataclasses.asdict(case) | {"median": case.median} for case in bench.cases]
    results = [dataclasses.asdict(one) for one in bench.reached()]
    return json.dumps({"command": command, "machine": about, "results": results, "cases": cases}, indent=1) + "\n"


def to_markdown(bench: Bench, command: str, about: dict[str, Any]) -> str:
    """The tables for people."""
    from . import kernel_big_cases

    reached = bench.reached()
    words = {None: "", True: "yes", False: "no"}
    results = [[one.name, f"{number(one.value)} {one.unit}", one.goal, words[one.holds]] for one in reached]
    cases = []
    for case in bench.cases:
        low, high = min(case.seconds) * MICRO, max(case.seconds) * MICRO
        cases.append([case.name, f"{number(case.median * MICRO)} ({number(low)}-{number(high)})", case.unit])
    text = [
        "# Speed of the activation kernels",
        f"```\n{command}\n```",
        f"One core of {about['processor']} ({about['cores']} cores, load {about['load_before']} when it began), Python "
        f"{about['python']}, JAX {about['jax']}, NumPy {about['numpy']}, SciPy {about['scipy']}. Ratios are medians of "
        f"{len(bench.cases[0].seconds)} rounds, each of which times every case once; below, processor time as median "
        "(least-most). `random` and `local` are graphs of mean degree 10 whose degrees follow a power law; in `local` "
        "ones 70 % of the edges join neighbours in number. A recall is 8 sources, 3 rounds, the 32 best. Whatever runs "
        "beside the kernels follows the same rule, in float32, with its matrices and buffers made beforehand and one "
        "thread; plain Python keeps the out-edges of nodes as lists once it has met them. `Wide` recall divides from a "
        f"degree of {kernel_big_cases.WIDE:g} on, where `recall()` does from {recall().degree_cap:g}.",
        "## Results",
        table(["what", "reached", "goal", ""], results),
        "## Times",
        table(["case", "us", "per"], cases),
    ]
    return "\n\n".join(text) + "\n"


def number(value: float) -> str:
    """Three digits that count."""
    if value == 0 or 1e-3 <= abs(value) < 1:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
