"""A card that a person can read: the case at hand and what came of earlier decisions; as text or as a picture.

It shows what an agent sees, never what is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .contract import NO_DECISION, STATUS_LABELS, Field, Schema

WIDTH = 64  # characters of the text card
PICTURE_INCHES, PICTURE_DPI = (8.0, 5.0), 100
N_EVENTS = 6  # latest events shown
N_VALUE_CHARACTERS = 24  # of a value in the picture, so that it does not reach the second column
KNOWN = STATUS_LABELS[0]


class History:
    """What happened so far in an episode, as far as a card shows it."""

    def __init__(self) -> None:
        self.decision = ""  # line on the last decision
        self.events: list[str] = []  # latest outcomes, newest last
        self.returns: list[float] = []  # sum of rewards after each step
        self._waiting: dict[int, str] = {}  # decision id -> action

    @property
    def n_waiting(self) -> int:
        """Decisions whose outcome has not arrived."""
        return len(self._waiting)

    def add(self, action: str, reward: float, info: Mapping[str, Any]) -> None:
        """Note one step."""
        self.returns.append(reward + (self.returns[-1] if self.returns else 0.0))
        signals = [f"{name}: {value}" for name, value in info.items() if isinstance(value, str) and value != "none"]
        self.decision = ", ".join([f"{_words(action)} -> reward {reward:+.2f}", *signals])
        if info["decision_id"] != NO_DECISION:
            self._waiting[info["decision_id"]] = action
        for decision, value in info["feedback"]:
            made = _words(self._waiting.pop(decision, "?"))
            self.events.append(f"decision {decision + 1} ({made}) brought {value:+.2f}")
        del self.events[:-N_EVENTS]


class Card(NamedTuple):
    """Content of a rendering."""

    title: str
    subtitle: str
    rows: list[tuple[str, str]]  # field, value
    decision: str
    events: list[str]
    summary: str
    returns: list[float]


def card(schema: Schema, observation: Mapping[str, Any], history: History, *, horizon: int, regime: float) -> Card:
    """The card of a case.

    Args:
        schema: of the world.
        observation: of the case at hand.
        history: of the episode.
        horizon: steps of the episode.
        regime: of the coming decision, in [0, 1].
    """
    fields = {field.name: field for field in schema.fields}
    statuses = {field.status for field in schema.fields}
    rows = [
        (_words(name), _value(field, observation, fields)) for name, field in fields.items() if name not in statuses
    ]
    n_made = len(history.returns)
    total = history.returns[-1] if history.returns else 0.0
    waiting = f"{history.n_waiting} outcome" + "s" * (history.n_waiting != 1)
    return Card(
        title=f"{schema.world}: {schema.boundary} for decision {min(n_made + 1, horizon)} of {horizon}",
        subtitle=f"regime {regime:.1f} (0 = first rules, 1 = second rules)",
        rows=rows,
        decision=history.decision or "none yet",
        events=list(history.events),
        summary=f"sum of rewards {total:+.2f} after {n_made} decisions, {waiting} still to arrive",
        returns=list(history.returns),
    )


def text(card: Card) -> str:
    """The card as lines of text, the last one without a line feed."""
    width = max(len(name) for name, _ in card.rows)
    rule = "-" * WIDTH
    lines = [rule, card.title, card.subtitle, rule]
    lines += [f"  {name:<{width}}  {value}" for name, value in card.rows]
    lines += [rule, f"last decision: {card.decision}"]
    lines += [f"  {event}" for event in card.events]
    return "\n".join([*lines, card.summary, rule])


def picture(card: Card) -> NDArray[np.uint8]:
    """The card as an image, [height, width, 3] u8: fields on the left, outcomes and the sum of rewards on the right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # heavy, and wanted by few
    from matplotlib.figure import Figure

    figure = Figure(figsize=PICTURE_INCHES, dpi=PICTURE_DPI, facecolor="white")
    canvas: Any = FigureCanvasAgg(figure)  # its methods have no types
    figure.text(0.04, 0.93, card.title, fontsize=13, weight="bold")
    figure.text(0.04, 0.885, card.subtitle, fontsize=9, color="0.35")
    line = min(0.05, 0.8 / len(card.rows))
    for number, (name, value) in enumerate(card.rows):
        height = 0.82 - line * number
        figure.text(0.04, height, name, fontsize=min(10, 200 * line), color="0.35")
        figure.text(0.25, height, value[:N_VALUE_CHARACTERS], fontsize=min(10, 200 * line), weight="bold")
    figure.text(0.48, 0.82, "last decision", fontsize=9, color="0.35")
    figure.text(0.48, 0.775, card.decision, fontsize=10, weight="bold")
    figure.text(0.48, 0.715, "outcomes that arrived last", fontsize=9, color="0.35")
    for number, event in enumerate(card.events or ["none yet"]):
        figure.text(0.48, 0.67 - 0.04 * number, event, fontsize=9)
    axes = figure.add_axes((0.54, 0.13, 0.42, 0.25))
    axes.plot(np.arange(len(card.returns) + 1), [0.0, *card.returns], color="tab:blue", linewidth=1.5)
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.set_title(card.summary, fontsize=8, loc="right")
    axes.set_xlabel("decisions", fontsize=8)
    axes.set_ylabel("sum of rewards", fontsize=8)
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba(), np.uint8)[..., :3].copy()


def _value(field: Field, observation: Mapping[str, Any], fields: Mapping[str, Field]) -> str:
    if field.is_category:
        return _words(field.labels[int(observation[field.name])])
    if field.status is not None:
        status = STATUS_LABELS[int(observation[field.status])]
        if status != KNOWN:
            return status
    return f"{float(observation[field.name][0]):,.4g} {field.unit}".rstrip()


def _words(name: str) -> str:
    return name.replace("_", " ")
