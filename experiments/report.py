"""The report of a study: one HTML file that opens offline, and its tables as CSV and Markdown beside it."""

from __future__ import annotations

import base64
import dataclasses
import shlex
import statistics as stdlib_statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import numpy as np

from .. import __version__
from . import adaptation, plots, summary
from .results import Cell, Results, Row
from .statistics import Estimate
from .study import NO_LEARNERS

HTML, CSV, SEEDS_CSV, MARKDOWN, FIGURES = "report.html", "summary.csv", "seeds.csv", "summary.md", "figures"
TEMPLATE = "report.html.j2"
N_BARS = 12  # of the explained decision
STRIP = (-0.25, 1.0)  # range of the interval strips, in normalised score


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a table of scores: texts, and numbers to sort by."""

    agent: str
    feedback: str
    kind: str
    colour: str
    n: int
    cells: tuple[tuple[float, str, str], ...]  # (number, shown, interval) per window
    iqm: tuple[float, str, str] | None
    strip: tuple[float, float, float] | None  # low, point, high of the last window in percent of the strip


def write(results: Results) -> Path:
    """Write report.html, summary.csv, seeds.csv, summary.md and the learning curves of each world as figures/*.svg.

    Returns:
        Path of the HTML file.
    """
    folder = results.folder
    (folder / CSV).write_text(summary.scores_csv(results), encoding="utf-8")
    (folder / SEEDS_CSV).write_text(summary.seeds_csv(results), encoding="utf-8")
    (folder / MARKDOWN).write_text(summary.markdown(results), encoding="utf-8")
    (folder / FIGURES).mkdir(exist_ok=True)
    for entry in results.study.worlds:
        if figure := _figure(results, entry.label):
            (folder / FIGURES / f"{entry.label}.svg").write_text(figure, encoding="utf-8")
    (folder / HTML).write_text(html(results), encoding="utf-8")
    return folder / HTML


def html(results: Results) -> str:
    """The report as one self-contained HTML text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    colours = _colours(results)
    headers = [head for cell in results.cells.values() for head in cell.headers]
    return environment.get_template(TEMPLATE).render(
        study=results.study,
        command=results.command,
        version=__version__,
        verdicts=summary.verdicts(results),
        warnings=summary.warnings(results),
        worlds=[_world(results, entry.label, colours) for entry in results.study.worlds if _has(results, entry.label)],
        overall=[
            (
                agent,
                feedback,
                colours[agent],
                estimate.point,
                summary.number(estimate.point),
                summary.interval(estimate),
            )
            for (agent, feedback), estimate in sorted(results.overall.items(), key=lambda pair: -pair[1].point)
        ],
        adapted=[
            (
                one,
                colours[one.agent],
                _lead(one.transfer),
                summary.number(one.level),
                summary.steps_with_interval(one.steps_on),
                summary.steps_with_interval(one.steps_fresh),
            )
            for one in adaptation.of(results)
        ],
        changes=summary.changes(results),
        first=summary.window_name(adaptation.FIRST),
        reached=f"{adaptation.REACHED:.0%}",
        costs=_costs(results),
        decision=_decision(results),
        n_runs=len(headers),
        n_steps=sum(head["spec"]["steps"] for head in headers),
        busy=_duration(sum(float(head["timing"]["total_s"]) for head in headers)),
        machine=headers[0]["machine"],
        study_yaml=results.study.to_yaml(),
        failed=[(run, error) for run, error in results.failed],
        downloads=[
            (CSV, "scores with intervals", _data_uri(summary.scores_csv(results))),
            (SEEDS_CSV, "score of every run", _data_uri(summary.seeds_csv(results))),
        ],
        strip=STRIP,
        least_shown=plots.LEAST_SHOWN,
    )


def _has(results: Results, world: str) -> bool:
    return any(cell.world == world for cell in results.cells.values())


def _world(results: Results, world: str, colours: Mapping[str, str]) -> dict[str, Any]:
    """All that the report says about one world."""
    windows = results.windows_of(world)
    groups = summary.ranked(results, world)
    facts = next(cell.headers[0]["world"] for cell in results.cells.values() if cell.world == world)
    entry = next(entry for entry in results.study.worlds if entry.label == world)
    arguments = ", ".join(f"{key}={value}" for key, value in entry.kwargs.items())
    return {
        "label": world,
        "id": entry.id,
        "arguments": arguments,
        "steps": results.study.steps_of(entry),
        "seeds": results.study.seeds_of(entry),
        "per": facts["score_per"] if facts["score_per"] == "step" else facts["boundary"],
        "is_normalised": groups[0][-1].mean is not None,
        "windows": [summary.window_name(window) for window in windows],
        "lines": [_line(rows, windows, colours) for rows in groups],
        "paired": [
            (feedback, agent, colours[agent], [_lead(cells[w]) if w in cells else None for w in windows])
            for feedback in results.study.feedback
            for agent, cells in reversed(summary.leads_of(results, world, feedback).items())
        ],
        "curves": markupsafe.Markup(_figure(results, world)),
    }


def _figure(results: Results, world: str) -> str:
    """Learning curves of one world, a panel per variant in which somebody learns; "" where nothing was measured."""
    variants = [feedback for feedback in results.study.feedback if _learners(results, world, feedback)]
    panels = [
        (f"{world}, feedback {feedback}", _panel(results, world, feedback)) for feedback in variants or ["attributed"]
    ]
    return plots.learning_curves(panels, _colours(results)) if all(curves for _, curves in panels) else ""


def _colours(results: Results) -> dict[str, str]:
    return plots.colours_of([(agent.label, agent.kind) for agent in results.study.agents])


def _learners(results: Results, world: str, feedback: str) -> bool:
    return any(
        cell.world == world and cell.feedback == feedback and cell.kind not in NO_LEARNERS
        for cell in results.cells.values()
    )


def _panel(results: Results, world: str, feedback: str) -> list[Any]:
    """Curves of one world and variant; what does not learn is the same in both."""
    return [
        curve
        for curve in results.curves
        if curve.world == world
        and np.isfinite(curve.point).any()
        and (curve.feedback == feedback or curve.kind in NO_LEARNERS)
    ]


def _line(rows: list[Row], windows: list[tuple[int, int]], colours: Mapping[str, str]) -> Line:
    by_window = {row.window: row for row in rows}
    last = rows[-1]
    strip = None
    if last.mean is not None:
        strip = (_percent(last.mean.low), _percent(last.mean.point), _percent(last.mean.high))
    return Line(
        agent=last.agent,
        feedback=last.feedback,
        kind=last.kind,
        colour=colours[last.agent],
        n=last.raw.n,
        cells=tuple(_shown(by_window[w].shown) if w in by_window else (-1e9, "", "") for w in windows),
        iqm=_shown(last.iqm) if last.iqm is not None else None,
        strip=strip,
    )


def _percent(value: float) -> float:
    """Place on the strip; NaN bounds fall on nothing and are drawn as the point alone."""
    low, high = STRIP
    return round(100 * (min(max(value, low), high) - low) / (high - low), 2) if value == value else -1.0


def _shown(estimate: Estimate) -> tuple[float, str, str]:
    return estimate.point, summary.number(estimate.point), summary.interval(estimate)


def _lead(lead: Estimate) -> tuple[float, str, str, str]:
    return *_shown(lead), _sure(lead)


def _sure(lead: Estimate) -> str:
    return "ahead" if lead.low > 0 else "behind" if lead.high < 0 else "open"


def _costs(results: Results) -> list[dict[str, Any]]:
    """Time of each agent in each world: median over its runs."""
    costs = []
    for (world, agent, feedback), cell in results.cells.items():
        timings = [head["timing"] for head in cell.headers]
        costs.append(
            {
                "world": world,
                "agent": agent,
                "feedback": feedback,
                "steps_per_s": summary.speed_of(results, world, agent, feedback),
                "setup_s": stdlib_statistics.median(float(timing["setup_s"]) for timing in timings),
                "compile_s": max(float(timing["compile_s"]) for timing in timings),
                "run_s": stdlib_statistics.median(float(timing["run_s"]) for timing in timings),
            }
        )
    return costs


def _decision(results: Results) -> dict[str, Any] | None:
    """Of the last decisions of the focus agent's runs, the most contested one; else of any other agent."""
    found = [
        (cell.agent == results.focus, _contest(decision), decision, cell, seed)
        for cell in results.cells.values()
        for seed, head in zip(cell.seeds, cell.headers, strict=True)
        if (decision := head.get("decision"))
    ]
    if not found:
        return None
    *_, decision, cell, seed = max(found, key=lambda one: one[:2])
    return _drawn(decision, cell, seed, results)


def _contest(decision: Mapping[str, Any]) -> tuple[float, float]:
    """Evidence of the weaker side, for or against; then the size of the score."""
    contributions = [float(path["contribution"]) for path in decision["paths"]]
    sides = sum(max(x, 0.0) for x in contributions), sum(max(-x, 0.0) for x in contributions)
    return min(sides), abs(float(decision["score"]))


def _drawn(decision: Mapping[str, Any], cell: Cell, seed: int, results: Results) -> dict[str, Any]:
    paths = sorted(((p["label"], p["contribution"]) for p in decision["paths"]), key=lambda path: -abs(path[1]))
    shown, rest = paths[:N_BARS], paths[N_BARS:]
    if rest:
        shown.append((f"{len(rest)} more paths together", sum(value for _, value in rest)))
    title = f"score of “{decision['choice']}” = {summary.number(decision['score'], 3)}"
    options = ["--world", cell.world, "--agent", cell.agent, "--feedback", cell.feedback, "--seed", str(seed)]
    options += ["--step", str(decision["step"])]
    return {
        **decision,
        "world": cell.world,
        "agent": cell.agent,
        "feedback": cell.feedback,
        "seed": seed,
        "command": shlex.join(["habitus", "explain", str(results.folder), *options]),
        "bars": markupsafe.Markup(plots.evidence(shown, title)) if shown else "",
    }


def _data_uri(text: str) -> str:
    return "data:text/csv;base64," + base64.b64encode(text.encode()).decode()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
