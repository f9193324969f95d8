"""The results of a study as tables of text: CSV, Markdown, and the terminal."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import rich.box
import rich.table

from ..envs.regimes import LEVELS
from . import adaptation
from .results import FEW_SEEDS, Results, Row
from .statistics import Estimate
from .study import REFERENCES


def window_name(window: tuple[int, int]) -> str:
    """A window as people say it: 0-500, 1-2k, 25-30k."""
    start, stop = window
    if start % 1000 == 0 and stop % 1000 == 0:
        return f"{start // 1000}-{stop // 1000}k"
    return f"{start}-{stop}"


def number(value: float, digits: int = 2) -> str:
    """A score without its leading zero, as in .42 and -.05."""
    if math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def interval(estimate: Estimate) -> str:
    """The interval of an estimate, as in [.40, .47]."""
    return "" if math.isnan(estimate.low) else f"[{number(estimate.low)}, {number(estimate.high)}]"


def scores_csv(results: Results) -> str:
    """One line per world, agent, variant and window, with intervals."""
    estimates = ("raw_mean", "score_mean", "score_iqm")
    header = ["world", "agent", "kind", "feedback", "from_step", "to_step", "seeds"]
    header += [name + part for name in estimates for part in ("", "_low", "_high")]
    lines = []
    for row in results.rows:
        line = [row.world, row.agent, row.kind, row.feedback, *row.window, row.raw.n]
        for estimate in (row.raw, row.mean, row.iqm):
            numbers = (estimate.point, estimate.low, estimate.high) if estimate else (math.nan,) * 3
            line += ["" if math.isnan(value) else f"{value:.6g}" for value in numbers]
        lines.append(line)
    return _csv(header, lines)


def seeds_csv(results: Results) -> str:
    """One line per run and window: the values from which everything else is computed."""
    header = ["world", "agent", "kind", "feedback", "seed", "run", "from_step", "to_step", "score"]
    runs = {
        (*group, seed): head["run"]
        for group, cell in results.cells.items()
        for seed, head in zip(cell.seeds, cell.headers, strict=True)
    }
    lines = [
        [
            row.world,
            row.agent,
            row.kind,
            row.feedback,
            seed,
            runs[row.world, row.agent, row.feedback, seed],
            *row.window,
            f"{value:.6g}",
        ]
        for row in results.rows
        for seed, value in row.values.items()
    ]
    return _csv(header, lines)


def ranked(results: Results, world: str) -> list[list[Row]]:
    """Rows of one world grouped by agent and variant, each over the windows; the best of the last window first."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in results.rows:
        if row.world == world:
            groups.setdefault((row.agent, row.feedback), []).append(row)
    return sorted(groups.values(), key=lambda rows: -rows[-1].shown.point)


def verdicts(results: Results) -> list[str]:
    """One sentence per world and variant: where the study's first agent stands, and how sure that is."""
    return [
        sentence
        for entry in results.study.worlds
        for feedback in results.study.feedback
        if (sentence := _verdict(results, entry.label, feedback))
    ]


def _verdict(results: Results, world: str, feedback: str) -> str:
    window = results.windows_of(world)[-1]
    ours = results.row(world, results.focus, feedback, window)
    rivals = results.paired(world, feedback, window)
    if ours is None or not rivals:
        return ""
    nearest, lead = rivals[0]
    sure = "ahead" if lead.low > 0 else "behind" if lead.high < 0 else "not separable"
    seeds = f"{lead.n} seed{'s' if lead.n != 1 else ''}"
    return (
        f"{world}, {feedback}, steps {window_name(window)}: {results.focus} {_with_interval(ours.shown)}; best of the "
        f"others, {nearest.agent} {_with_interval(nearest.shown)}; paired difference {_with_interval(lead)} over "
        f"{seeds}: {sure}."
    )


def _with_interval(estimate: Estimate) -> str:
    return f"{number(estimate.point)} {interval(estimate)}".strip()


def warnings(results: Results) -> list[str]:
    """What a reader must know before trusting the numbers."""
    said = []
    smallest = min(len(cell.seeds) for cell in results.cells.values())
    if smallest < FEW_SEEDS:
        said.append(
            f"{smallest} seed{'s' if smallest != 1 else ''} in the smallest group: intervals from fewer than "
            f"{FEW_SEEDS} seeds are rough and tend to be too narrow."
        )
    if results.failed:
        agents = ", ".join(sorted({f"{run.agent} in {run.world}" for run, _ in results.failed}))
        said.append(f"{len(results.failed)} runs failed and are left out: {agents}. Their records hold the errors.")
    if results.missing:
        said.append(
            f"{len(results.missing)} runs of the study are missing or damaged and are left out; the command that ran "
            "the study does them."
        )
    if results.n_foreign:
        said.append(
            f"{results.n_foreign} records in the folder belong to another version of the study and are left out."
        )
    said += _nothing_closed(results)
    if any(row.mean is None for row in results.rows):
        said.append("Some scores are raw rewards: their world has no oracle, or the references coincide there.")
    machines = {
        (head["machine"]["cpu"], head["machine"]["python"]) for cell in results.cells.values() for head in cell.headers
    }
    if len(machines) > 1:
        said.append("The runs were done on more than one kind of machine or Python; do not compare their speeds.")
    return said


def _nothing_closed(results: Results) -> list[str]:
    """Runs that have no score in some window, because they ended no encounter there: the worst ones, left out."""
    scored = {(row.world, row.agent, row.feedback, row.window): row.raw.n for row in results.rows}
    said = []
    for (world, agent, feedback), cell in results.cells.items():
        for window in results.windows_of(world):
            n = len(cell.seeds) - scored.get((world, agent, feedback, window), 0)
            if n:
                boundary = cell.headers[0]["world"]["boundary"]
                said.append(
                    f"{agent} ({feedback}) in {world}: {n} of {len(cell.seeds)} runs ended no {boundary} in steps "
                    f"{window_name(window)} and have no score there; the mean of the others flatters it."
                )
    return said


def markdown(results: Results) -> str:
    """The result tables as Markdown, with the command that made them."""
    parts = [f"# {results.study.name}", "", results.study.question, "", "```", results.command, "```", ""]
    parts += [f"- {sentence}" for sentence in verdicts(results)] + [""]
    for entry in results.study.worlds:
        groups = ranked(results, entry.label)
        if not groups:
            continue
        windows = results.windows_of(entry.label)
        unit = "normalised score" if groups[0][-1].mean else "reward"
        parts += [f"## {entry.label}", "", f"Mean {unit} over seeds [95 % interval] in windows of steps.", ""]
        parts += [
            _line(["agent", "feedback", "seeds", *map(window_name, windows)]),
            _line(["---"] * (3 + len(windows))),
        ]
        for rows in groups:
            by_window = {row.window: row for row in rows}
            cells = [_with_interval(by_window[w].shown) if w in by_window else "" for w in windows]
            parts.append(_line([rows[0].agent, rows[0].feedback, str(rows[-1].raw.n), *cells]))
        parts += ["", *_paired(results, entry.label)]
    parts += _adapted(results)
    for table in changes(results):
        parts += [f"## {table.title}", "", table.note, "", _line(table.header), _line(["---"] * len(table.header))]
        parts += [*map(_line, table.rows), ""]
    if results.overall:
        parts += ["## All worlds", "", "Interquartile mean over worlds and seeds, last window of each world.", ""]
        parts += [_line(["agent", "feedback", "score"]), _line(["---"] * 3)]
        for (agent, feedback), estimate in sorted(results.overall.items(), key=lambda pair: -pair[1].point):
            parts.append(_line([agent, feedback, _with_interval(estimate)]))
        parts.append("")
    parts += [f"- Note: {warning}" for warning in warnings(results)]
    return "\n".join(parts).rstrip() + "\n"


def _paired(results: Results, world: str) -> list[str]:
    """How far the study's first agent is ahead of each other one, in every window."""
    windows = results.windows_of(world)
    parts = []
    for feedback in results.study.feedback:
        leads = leads_of(results, world, feedback)
        if not leads:
            continue
        parts += [f"{results.focus} less the others, paired by seed [95 % interval], feedback {feedback}.", ""]
        parts += [_line(["agent", *map(window_name, windows)]), _line(["---"] * (1 + len(windows)))]
        parts += [
            _line([agent, *(_with_interval(cells[w]) if w in cells else "" for w in windows)])
            for agent, cells in leads.items()
        ]
        parts.append("")
    return parts


def leads_of(results: Results, world: str, feedback: str) -> dict[str, dict[tuple[int, int], Estimate]]:
    """Other agent -> window -> lead of the study's first agent over it; the smallest lead of the last window first."""
    found: dict[str, dict[tuple[int, int], Estimate]] = {}
    for window in reversed(results.windows_of(world)):
        for row, lead in results.paired(world, feedback, window):
            found.setdefault(row.agent, {})[window] = lead
    return found


def _adapted(results: Results) -> list[str]:
    """Who goes on under new rules beside who comes fresh to them."""
    found = adaptation.of(results)
    if not found:
        return []
    first, reached = window_name(adaptation.FIRST), f"{adaptation.REACHED:.0%}"
    header = ["world", "agent", "feedback", f"transfer, {first}", "final level", f"steps to {reached}", "fresh learner"]
    parts = ["## Under new rules", ""]
    parts += [
        "Transfer: score of who goes on less that of who is new to the rules, paired by seed. Final level: of who is "
        f"new, over its last quarter. Steps until the mean over seeds is first at {reached} of that level, in bins of "
        f"{adaptation.BIN_STEPS} [95 % interval over seeds].",
        "",
        _line(header),
        _line(["---"] * len(header)),
    ]
    parts += [
        _line([
            one.world, one.agent, one.feedback, _with_interval(one.transfer), number(one.level),
            steps_with_interval(one.steps_on), steps_with_interval(one.steps_fresh),
        ])
        for one in found
    ]  # fmt: skip
    return [*parts, ""]


class Changes(NamedTuple):
    """A table of what agents kept or lost at changes of a kind, as texts."""

    title: str
    note: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def changes(results: Results) -> list[Changes]:
    """What is kept until rules return, and what a redraw costs, where worlds of a study show it."""
    n, focus = f"{adaptation.NEXT:,}", results.focus
    returned, redrawn = adaptation.returns(results), adaptation.redraws(results)
    found = []
    if returned:
        note = (
            f"Normalised scores of {n} steps [95 % interval over seeds]. Left: the last ones of the time before under "
            "these rules. Returned: the first ones of this time. Retention: the second as a share of the first. Less "
            "fresh: returned, less the first ones of the same agent when it was new to these rules, paired by seed. "
            f"Less {focus}: returned, less the same steps of {focus}, paired by seed."
        )
        header = ["world", "rules", "from step", "agent", "feedback", "left", "returned", "retention", "less fresh"]
        rows = [
            [
                one.world, _rules(one.level), f"{one.at:,}", one.agent, one.feedback,
                *map(_with_interval_or_dash, (one.before, one.again, one.retention, one.fresh, one.lead)),
            ]
            for one in returned
        ]  # fmt: skip
        found.append(Changes("Rules that return", note, [*header, f"less {focus}"], rows))
    if redrawn:
        note = (
            f"The same rules, new hidden types. Normalised scores of the last {n} steps before and the next {n} "
            "[95 % interval over seeds]; the cost is their difference, paired by seed."
        )
        rows = [
            [
                one.world, f"{one.at:,}", one.agent, one.feedback,
                *map(_with_interval_or_dash, (one.before, one.after, one.cost)),
            ]
            for one in redrawn
        ]  # fmt: skip
        header = ["world", "at step", "agent", "feedback", "before", "after", "cost"]
        found.append(Changes("Everybody somebody else", note, header, rows))
    return found


def _rules(level: int) -> str:
    return {0: "first", LEVELS: "second"}.get(level, f"{level}/{LEVELS}")


def _with_interval_or_dash(estimate: Estimate | None) -> str:
    return "–" if estimate is None else _with_interval(estimate)


def steps_with_interval(estimate: Estimate) -> str:
    """Steps as people say them; "never" where a level is not reached."""
    point, low, high = (
        "never" if math.isnan(value) or math.isinf(value) else f"{value:,.0f}"
        for value in (estimate.point, estimate.low, estimate.high)
    )
    return f"{point} [{low}, {high}]"


def terminal(results: Results) -> list[tuple[str, rich.table.Table]]:
    """Title and table of each world for a terminal; with three windows they fit into 80 columns."""
    return [_terminal(results, entry.label) for entry in results.study.worlds if ranked(results, entry.label)]


def _terminal(results: Results, world: str) -> tuple[str, rich.table.Table]:
    groups, windows = ranked(results, world), results.windows_of(world)
    unit = "normalised score" if groups[0][-1].mean else "reward"
    n = max(rows[-1].raw.n for rows in groups)
    title = f"{world}: mean {unit} by steps, ± half the 95 % interval, {n} seed{'s' if n != 1 else ''}"
    table = rich.table.Table(box=rich.box.SIMPLE_HEAD)
    has_variants = len({feedback for _, _, feedback in results.cells}) > 1
    for name in ("agent", "feedback") if has_variants else ("agent",):
        table.add_column(name, no_wrap=True)
    for name in (*map(window_name, windows), "steps/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for rows in groups:
        first, by_window = rows[0], {row.window: row for row in rows}
        names = (first.agent, first.feedback) if has_variants else (first.agent,)
        cells = [_terminal_cell(by_window[w].shown) if w in by_window else "" for w in windows]
        speed = speed_of(results, world, first.agent, first.feedback)
        style = "bold" if first.agent == results.focus else "dim" if first.kind in REFERENCES else ""
        table.add_row(*names, *cells, f"{speed:,.0f}", style=style)
    return title, table


def speed_of(results: Results, world: str, agent: str, feedback: str) -> float:
    """Median steps per second of a group's runs, compilation included."""
    speeds = sorted(float(head["timing"]["steps_per_s"]) for head in results.cells[world, agent, feedback].headers)
    middle = len(speeds) // 2
    return speeds[middle] if len(speeds) % 2 else (speeds[middle - 1] + speeds[middle]) / 2


def _terminal_cell(estimate: Estimate) -> str:
    half = (estimate.high - estimate.low) / 2
    return number(estimate.point) + ("" if math.isnan(half) else f" ±{number(half)}")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _csv(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    return buffer.getvalue()
