"""The parts that the pictures of all worlds share: header, actions, log, outcomes, curve of rewards."""

from __future__ import annotations

from ..contract import NO_DECISION
from . import fonts
from .canvas import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    LINE,
    MUTED,
    NIGHT,
    PAGE,
    RED,
    WHITE,
    Box,
    Canvas,
    Colour,
    blend,
    fitted,
)
from .scene import Scene, signed, words

WIDTH, HEIGHT = 800, 512  # pixels; multiples of 16, as video encoders want them
HEADER = 44


def header(canvas: Canvas, scene: Scene) -> None:
    """A dark strip: the world, how far the episode is, the rules of the last decision."""
    canvas.draw.rectangle((0, 0, WIDTH - 1, HEADER - 1), NIGHT)
    taken = canvas.text(16, 9, scene.schema.world, width=300, size=20, colour=WHITE, bold=True)
    place = f"{words(scene.schema.boundary)} · decision {scene.decision:,} of {scene.horizon:,}"
    canvas.text(32 + taken, 13, place, width=560 - taken, size=14, colour=FAINT)
    if scene.regime is not None:
        box = Box(WIDTH - 176, 10, WIDTH - 16, 34)
        canvas.rounded(box, blend(RED, blend(BLUE, NIGHT, 0.8), scene.regime), radius=12)
        said = {0.0: "first rules", 1.0: "second rules"}.get(scene.regime, f"rules changed by {scene.regime:.0%}")
        canvas.text(box.left + 8, box.top + 3, said, width=144, size=13, colour=WHITE, align="centre")


def framed(canvas: Canvas, box: Box, title: str) -> Box:
    """A white panel with a title. Returns the room inside it."""
    canvas.rounded(box, WHITE, outline=LINE)
    canvas.text(box.left + 10, box.top + 6, words(title), width=box.width - 20, size=12, colour=MUTED)
    return Box(box.left + 10, box.top + 28, box.right - 10, box.bottom - 8)


def actions(canvas: Canvas, box: Box, scene: Scene, *, columns: int) -> None:
    """All actions: the last one marked, impossible ones faint."""
    labels, last = scene.schema.actions, scene.last.action if scene.last is not None else None
    n_rows = -(-len(labels) // columns)
    gap = 6 if n_rows * 26 <= box.height else 3
    width, height = (box.width + gap) // columns - gap, (box.height + gap) // n_rows - gap
    size = max(7, min(13, height - 6))
    names = [words(label) for label in labels]
    if any(len(fitted(name, width - 8, size)) < min(6, len(name)) for name in names):  # too many to be told by name
        names = [str(code) for code in range(len(labels))]
    for code, label in enumerate(labels):
        left, top = box.left + code % columns * (width + gap), box.top + code // columns * (height + gap)
        chip = Box(left, top, left + width, top + height)
        possible, chosen = scene.is_possible(code), label == last
        fill = blend(BLUE, WHITE, 0.16) if chosen else WHITE if possible else PAGE
        canvas.rounded(chip, fill, radius=5, outline=BLUE if chosen else LINE)
        y = top + (height - fonts.line_height(size)) // 2
        colour = (BLUE if chosen else INK) if possible else FAINT
        canvas.text(left + 4, y, names[code], width=width - 8, size=size, colour=colour, bold=chosen, align="centre")


def log(canvas: Canvas, box: Box, scene: Scene, *, title: str = "last decisions") -> None:
    """The last decisions, newest on top: action, what it showed, reward; a line where an encounter ended."""
    inner = framed(canvas, box, title)
    events = list(reversed(scene.history.events))
    if not events:
        canvas.text(inner.left, inner.top, "none yet", width=inner.width, size=13, colour=MUTED)
    y = inner.top
    for event in events:
        shown = [words(label) for label in _told(scene, event.signals)]
        needed = 19 + (15 if shown else 0) + (5 if event.boundary else 0)
        if y + needed > inner.bottom:
            break
        if event.boundary:
            canvas.draw.line((inner.left, y + 1, inner.right, y + 1), FAINT, 1)
            y += 5
        canvas.text(inner.left, y, f"{event.step + 1}", width=36, size=11, colour=MUTED)
        canvas.text(inner.left + 38, y - 1, words(event.action), width=inner.width - 96, size=13, bold=True)
        amount(canvas, inner.right - 56, y - 1, event.reward, width=56)
        y += 19
        if shown:
            said = ", ".join(shown)
            canvas.text(inner.left + 38, y - 3, said, width=inner.width - 38, size=12, colour=MUTED)
            y += 15


def outcomes(canvas: Canvas, box: Box, scene: Scene) -> None:
    """Delayed outcomes, newest on top, and how many are still to come."""
    waiting = scene.history.n_waiting
    inner = framed(canvas, box, f"outcomes that arrived ({waiting} still to come)")
    arrivals = list(reversed(scene.history.arrivals))[: inner.height // 18]
    if not arrivals:
        canvas.text(inner.left, inner.top, "none yet", width=inner.width, size=13, colour=MUTED)
    for number, (decision, action, value) in enumerate(arrivals):
        y = inner.top + 18 * number
        canvas.text(inner.left, y, f"{decision + 1}", width=40, size=11, colour=MUTED)
        canvas.text(inner.left + 42, y - 1, words(action), width=inner.width - 100, size=13)
        amount(canvas, inner.right - 56, y - 1, value, width=56)


def money(canvas: Canvas, box: Box, scene: Scene) -> None:
    """The sum of rewards, as a number and as a curve over the decisions."""
    inner = framed(canvas, box, "sum of rewards")
    total = scene.history.total
    colour = colour_of(total)
    n_made = scene.history.n_made
    said = f"{signed(total)} after {n_made:,}"
    if inner.width > 260:
        said += f" decision{'s' * (n_made != 1)}"
    canvas.text(inner.left + 96, box.top + 5, said, width=inner.width - 96, size=13, colour=colour, align="right")
    canvas.curve(inner, [0.0, *scene.history.returns], BLUE)


def amount(canvas: Canvas, x: int, y: int, value: float, *, width: int, size: int = 13) -> None:
    """A reward with its sign, on the right of its strip, green or red."""
    canvas.text(x, y, signed(value), width=width, size=size, colour=colour_of(value), bold=True, align="right")


def colour_of(value: float) -> Colour:
    """Green above 0, red below, grey at 0."""
    shown = round(value, 2)
    return GREEN if shown > 0 else RED if shown < 0 else MUTED


def number_of(decision: int) -> str:
    """A decision's number as a person counts it, from 1."""
    return "" if decision == NO_DECISION else f"{decision + 1:,}"


def _told(scene: Scene, signals: object) -> list[str]:
    """Labels of the signals of a step; one that is only the situation of another is left out."""
    contexts = {behaviour.context for behaviour in scene.schema.behaviours}
    assert isinstance(signals, dict)
    return [label for name, label in signals.items() if name not in contexts]
