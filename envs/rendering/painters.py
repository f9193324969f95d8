"""Which painter draws which world, and the card that any other world gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from . import credit_review, customer_service, game_npc, panels
from .canvas import MUTED, Box, Canvas
from .scene import Scene

Painter = Callable[[Canvas, Scene], None]


def picture(scene: Scene) -> NDArray[np.uint8]:
    """The scene as an image, [HEIGHT, WIDTH, 3] u8."""
    canvas = Canvas(panels.WIDTH, panels.HEIGHT)
    panels.header(canvas, scene)
    PAINTERS.get(scene.schema.world, card)(canvas, scene)
    return canvas.pixels()


def card(canvas: Canvas, scene: Scene) -> None:
    """Any world: its fields on the left, what came of earlier decisions on the right."""
    table = Box(16, 60, 400, 440)
    inner = panels.framed(canvas, table, scene.schema.boundary)
    rows = scene.rows()
    height = max(15, min(26, inner.height // max(1, len(rows))))
    n_shown = min(len(rows), inner.height // height)
    if n_shown < len(rows):
        n_shown -= 1  # room for the line that says so
    size = min(14, height - 4)
    for number, (name, value) in enumerate(rows[:n_shown]):
        y = inner.top + number * height
        canvas.text(inner.left, y, name, width=140, size=size, colour=MUTED)
        canvas.text(inner.left + 150, y, value, width=inner.width - 150, size=size, bold=True)
    if n_shown < len(rows):
        y = inner.top + n_shown * height
        canvas.text(inner.left, y, f"and {len(rows) - n_shown} more", width=inner.width, size=size, colour=MUTED)
    panels.actions(
        canvas,
        Box(16, 448, 400, 496),
        scene,
        columns=4 if len(scene.schema.actions) <= 8 else 6 if len(scene.schema.actions) <= 18 else 12,
    )
    has_outcomes = bool(scene.history.arrivals or scene.history.n_waiting)
    panels.log(canvas, Box(412, 60, 784, 230 if has_outcomes else 350), scene)
    if has_outcomes:
        panels.outcomes(canvas, Box(412, 240, 784, 370), scene)
    panels.money(canvas, Box(412, 380 if has_outcomes else 360, 784, 496), scene)


PAINTERS: Mapping[str, Painter] = {
    "CreditReview": credit_review.paint,
    "CustomerService": customer_service.paint,
    "GameNPC": game_npc.paint,
}
"""Name of a world -> what draws it below the header."""
