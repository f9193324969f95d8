"""Figures of the report, as SVG text that needs nothing else. The only file of this folder that imports matplotlib.

Colours begin with those of Okabe and Ito, which people with any common colour blindness tell apart; lines are labelled
at their end, so that no legend has to be matched.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.axes
import matplotlib.figure
import matplotlib.ticker
import numpy as np

from .results import Curve
from .study import NO_LEARNERS

FOCUS = "#D55E00"
COLOURS = ("#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#8C6D1F", "#3B4CC0")
QUIET = {"random": ("#9AA0A6", (0, (1, 1.5))), "oracle": ("#202124", (0, (1, 1.5)))}
NO_LEARNER_DASHES = (0, (5, 2))
FOR, AGAINST = "#0072B2", "#D55E00"
LEAST_GAP = 0.062  # between two labels, as a share of the axis
LEAST_SHOWN = -0.4  # normalised score; an agent that explores wildly would press all others together
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: searchable, and in the reader's font
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#80868B",
    "axes.linewidth": 0.8,
    "xtick.color": "#5F6368",
    "ytick.color": "#5F6368",
    "axes.labelcolor": "#3C4043",
}


def colours_of(agents: Sequence[tuple[str, str]]) -> dict[str, str]:
    """A colour for each (label, kind); the first is the focus, the references are grey and black."""
    colours, free = {}, iter(COLOURS * (1 + len(agents) // len(COLOURS)))
    for number, (label, kind) in enumerate(agents):
        if kind in QUIET:
            colours[label] = QUIET[kind][0]
        else:
            colours[label] = FOCUS if number == 0 else next(free)
    return colours


def learning_curves(panels: Sequence[tuple[str, Sequence[Curve]]], colours: dict[str, str]) -> str:
    """Learning curves of one world with their intervals, one panel per variant.

    Args:
        panels: (title, curves) each; normalised scores or rewards.
        colours: by agent.

    Returns:
        An `<svg>` element.
    """
    with mpl.rc_context({**STYLE, "svg.hashsalt": panels[0][1][0].world}):
        width = 9.4 if len(panels) > 1 else 7.6
        figure = matplotlib.figure.Figure(figsize=(width, 3.9), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, (title, curves) in zip(axes, panels, strict=True):
            _curves(axis, curves, colours)
            axis.set_title(title, loc="left", fontsize=10, color="#3C4043")
        axes[0].set_ylabel("normalised score" if panels[0][1][0].is_normalised else "reward")
        low, high = _range([curve for _, curves in panels for curve in curves])
        axes[0].set_ylim(low, high)
        for axis, (_, curves) in zip(axes, panels, strict=True):
            _label_ends(axis, curves, colours)
        return _svg(figure)


def evidence(paths: Sequence[tuple[str, float]], title: str) -> str:
    """What spoke for (to the right) and against a decision, one bar per path.

    Args:
        paths: (label, contribution), strongest first.
        title: above the bars.

    Returns:
        An `<svg>` element.
    """
    with mpl.rc_context({**STYLE, "svg.hashsalt": "evidence"}):
        figure = matplotlib.figure.Figure(figsize=(7.6, 0.75 + 0.29 * len(paths)), layout="constrained")
        axis = figure.subplots()
        values = [value for _, value in paths]
        places = np.arange(len(paths))
        axis.barh(places, values, height=0.62, color=[FOR if value >= 0 else AGAINST for value in values])
        axis.axvline(0, color="#3C4043", linewidth=0.8)
        axis.set_yticks(places, [label for label, _ in paths])
        axis.tick_params(axis="y", length=0, labelcolor="#202124")
        axis.invert_yaxis()
        axis.spines["left"].set_visible(False)
        reach = max((abs(value) for value in values), default=1.0) or 1.0
        axis.set_xlim(min(0.0, *values) - 0.16 * reach, max(0.0, *values) + 0.16 * reach)
        for place, value in zip(places, values, strict=True):
            side = 1 if value >= 0 else -1
            axis.annotate(
                f"{value:+.3f}",
                (value, float(place)),
                (4 * side, 0),
                textcoords="offset points",
                va="center",
                ha="left" if side > 0 else "right",
                fontsize=8.5,
                color="#3C4043",
            )
        axis.set_xlabel("contribution to the score of the decision")
        axis.set_title(title, loc="left", fontsize=10, color="#3C4043")
        return _svg(figure)


def _curves(axis: matplotlib.axes.Axes, curves: Sequence[Curve], colours: dict[str, str]) -> None:
    axis.axhline(0, color="#DADCE0", linewidth=0.8, zorder=0)
    axis.grid(axis="y", color="#EEF0F2", linewidth=0.8)
    axis.set_axisbelow(True)
    for number, curve in enumerate(curves):
        is_focus = colours[curve.agent] == FOCUS
        dashes = (
            QUIET[curve.kind][1] if curve.kind in QUIET else NO_LEARNER_DASHES if curve.kind in NO_LEARNERS else "-"
        )
        axis.plot(
            curve.steps,
            curve.point,
            color=colours[curve.agent],
            linestyle=dashes,
            linewidth=2.4 if is_focus else 1.4,
            zorder=4 if is_focus else 3,
            gid=f"curve-{number}",
        )
        if curve.kind not in QUIET:
            axis.fill_between(
                curve.steps,
                curve.low,
                curve.high,
                color=colours[curve.agent],
                alpha=0.16 if is_focus else 0.08,
                linewidth=0,
            )
    axis.set_xlim(0, max(curve.steps[-1] for curve in curves))
    axis.set_xlabel("steps")
    axis.xaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _range(curves: Sequence[Curve]) -> tuple[float, float]:
    """Limits that show every curve, but not the whole of a wild interval nor the depths below LEAST_SHOWN."""
    points = np.concatenate([curve.point for curve in curves])
    low, high = float(np.nanmin(points)), float(np.nanmax(points))
    if curves[0].is_normalised:
        low = max(low, LEAST_SHOWN)
    room = 0.06 * (high - low or 1.0)
    return low - room, high + room


def _label_ends(axis: matplotlib.axes.Axes, curves: Sequence[Curve], colours: dict[str, str]) -> None:
    """Labels at the right end of the lines, pushed apart where they would overlap."""
    low, high = axis.get_ylim()
    ends = {curve.agent: float(curve.point[np.isfinite(curve.point)][-1]) for curve in curves}
    ordered = sorted(curves, key=lambda curve: ends[curve.agent])
    wanted = [min(max((ends[curve.agent] - low) / (high - low), 0.0), 1.0) for curve in ordered]
    places = _apart(wanted)
    for curve, place in zip(ordered, places, strict=True):
        axis.annotate(
            curve.agent,
            (float(curve.steps[-1]), max(ends[curve.agent], low)),
            (1.025, place),
            textcoords="axes fraction",
            va="center",
            color=colours[curve.agent],
            fontsize=9,
            fontweight="bold" if colours[curve.agent] == FOCUS else "normal",
            arrowprops={
                "arrowstyle": "-",
                "color": colours[curve.agent],
                "linewidth": 0.5,
                "alpha": 0.6,
                "shrinkB": 0,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def _apart(wanted: Sequence[float]) -> list[float]:
    """Places nearest to the wanted ones (ascending, in [0, 1]) that are LEAST_GAP apart; pooled where they clash."""
    pools: list[list[float]] = []  # each [sum of shifted places, number]
    for number, place in enumerate(wanted):
        pools.append([place - number * LEAST_GAP, 1.0])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += count
    shifted = [total / count for total, count in pools for _ in range(int(count))]
    highest = max(0.0, 1.0 - (len(wanted) - 1) * LEAST_GAP)
    return [min(max(place, 0.0), highest) + number * LEAST_GAP for number, place in enumerate(shifted)]


def _svg(figure: matplotlib.figure.Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
