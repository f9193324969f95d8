"""CreditReview as an application form, the stamp on the last one, the outcomes that arrived, and a curve of money."""

from __future__ import annotations

from . import panels
from .canvas import (
    AMBER,
    BLUE,
    FAINT,
    GREEN,
    INK,
    LINE,
    MUTED,
    RED,
    WHITE,
    Box,
    Canvas,
    Colour,
    stamp_mask,
)
from .scene import Scene, words

PAPER: Colour = (255, 253, 246)
FORM = Box(16, 56, 472, 430)
STAMPS: dict[str, tuple[str, Colour]] = {
    "approve": ("APPROVED", GREEN),
    "reject": ("REJECTED", RED),
    "manual_review": ("TO REVIEW", AMBER),
    "request_document": ("DOCUMENTS?", BLUE),
    "approve_reduced": ("REDUCED", GREEN),
}
UNKNOWN = ("missing", "hidden")
LEAST_HEIGHT = 24  # pixels of an entry of the form


def paint(canvas: Canvas, scene: Scene) -> None:
    """Draw the application."""
    _form(canvas, scene)
    panels.actions(canvas, Box(16, 440, 472, 496), scene, columns=3)
    _decision(canvas, Box(484, 56, 784, 172), scene)
    panels.outcomes(canvas, Box(484, 182, 784, 366), scene)
    panels.money(canvas, Box(484, 376, 784, 496), scene)


def _form(canvas: Canvas, scene: Scene) -> None:
    canvas.rounded(Box(FORM.left + 3, FORM.top + 3, FORM.right + 3, FORM.bottom + 3), LINE, radius=3)
    canvas.rounded(FORM, PAPER, radius=3, outline=FAINT)
    inner = FORM.inset(18, 12)
    entity = scene.schema.entity_field
    canvas.text(inner.left, inner.top, "Application for a loan", width=270, size=19, bold=True)
    who = words(scene.label(entity))
    if who:
        said = "new applicant" if who in ("new", "unknown") else f"applicant {who}"
        canvas.text(inner.left + 270, inner.top + 4, said, width=inner.width - 270, size=15, colour=BLUE, align="right")
    canvas.draw.line((inner.left, inner.top + 30, inner.right, inner.top + 30), INK, 2)
    rows = [(name, value) for name, value in scene.rows() if name != words(entity or "")]
    _entries(canvas, Box(inner.left, inner.top + 40, inner.right, inner.bottom), rows)


def _entries(canvas: Canvas, box: Box, rows: list[tuple[str, str]]) -> None:
    """Entries in two columns, in three where there are many; what does not fit is counted."""
    columns = next((n for n in (2, 3) if -(-len(rows) // n) * LEAST_HEIGHT <= box.height), 3)
    n_rows = -(-len(rows) // columns)
    height = max(LEAST_HEIGHT, min(54, box.height // max(1, n_rows)))
    capacity = box.height // height * columns
    shown = rows if len(rows) <= capacity else [*rows[: capacity - 1], (f"and {len(rows) - capacity + 1} more", "")]
    width = (box.width + 14) // columns - 14
    n_rows = -(-len(shown) // columns)
    # a name stands above its value where there is room, else beside it
    stacked = height >= 38
    for number, (name, value) in enumerate(shown):
        x, y = box.left + number // n_rows * (width + 14), box.top + number % n_rows * height
        colour = FAINT if value in UNKNOWN else INK
        if stacked:
            canvas.text(x, y, name, width=width, size=11, colour=MUTED)
            canvas.text(x, y + 14, value, width=width, size=15, colour=colour, bold=value not in UNKNOWN)
            line = y + 36
        else:
            half = width if not value else width * 9 // 20
            canvas.text(x, y + 4, name, width=half - 4, size=11, colour=MUTED)
            canvas.text(x + half, y + 3, value, width=width - half, size=12, colour=colour, bold=value not in UNKNOWN)
            line = y + height - 4
        canvas.draw.line((x, line, x + width - 1, line), LINE, 1)


def _decision(canvas: Canvas, box: Box, scene: Scene) -> None:
    """The last decision, stamped."""
    last = scene.last
    title = "last decision" if last is None else f"decision {panels.number_of(last.step)}"
    inner = panels.framed(canvas, box, title)
    if last is None:
        canvas.text(inner.left, inner.top, "none yet", width=inner.width, size=13, colour=MUTED)
        return
    word, colour = STAMPS.get(last.action, (words(last.action).upper(), INK))
    mask = stamp_mask(word, 20, 8.0)
    canvas.paste(
        mask, inner.left + max(0, (190 - mask.width) // 2), inner.top + (inner.height - mask.height) // 2, colour
    )
    panels.amount(canvas, inner.right - 80, inner.top + 4, last.reward, width=80, size=20)
    for number, (name, label) in enumerate(last.signals.items()):
        y = inner.top + 34 + 18 * number
        said = f"{words(name)}: {words(label)}"
        canvas.text(inner.right - 110, y, said, width=110, size=13, colour=MUTED, align="right")
    if not last.boundary:
        canvas.text(
            inner.right - 110, inner.bottom - 18, "same applicant", width=110, size=13, colour=BLUE, align="right"
        )
    canvas.draw.line((box.left + 10, box.top + 26, box.right - 10, box.top + 26), WHITE, 1)
