"""Drawing with Pillow: text that stays in its box, and shapes with smooth edges.

Pillow draws shapes without smoothing. Those that have curved or slanting edges are drawn four times as large, reduced
to masks, and kept: few different ones are needed.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from . import fonts

Colour = tuple[int, int, int]
Align = Literal["left", "centre", "right"]
SCALE = 4  # of a shape before it is reduced
WHITE: Colour = (255, 255, 255)
INK: Colour = (31, 41, 55)
MUTED: Colour = (104, 112, 126)
FAINT: Colour = (176, 182, 192)
LINE: Colour = (220, 224, 230)
PAGE: Colour = (243, 245, 248)
NIGHT: Colour = (30, 41, 59)
BLUE: Colour = (37, 99, 190)
GREEN: Colour = (21, 128, 74)
RED: Colour = (190, 48, 42)
AMBER: Colour = (196, 120, 10)
GOLD: Colour = (240, 176, 30)
# a line break may stand at a space and between Chinese characters
_PIECES = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]|[^\s\u2e80-\u9fff\uff00-\uffef]+|\s+")


class Box(NamedTuple):
    """A rectangle in pixels; right and bottom lie outside."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return self.right - self.left

    @property
    def height(self) -> int:
        """Pixels from top to bottom."""
        return self.bottom - self.top

    def inset(self, x: int, y: int | None = None) -> Box:
        """The box without a margin of x pixels left and right, and y (default x) above and below."""
        y = x if y is None else y
        return Box(self.left + x, self.top + y, self.right - x, self.bottom - y)


class Canvas:
    """An image to draw on.

    Args:
        width, height: in pixels.
        colour: of the ground.
    """

    def __init__(self, width: int, height: int, colour: Colour = PAGE) -> None:
        self.image = Image.new("RGB", (width, height), colour)
        self.draw = ImageDraw.Draw(self.image)

    def pixels(self) -> NDArray[np.uint8]:
        """[height, width, 3] u8, the caller's own."""
        return np.array(self.image)

    def text(
        self,
        x: int,
        y: int,
        text: str,
        *,
        width: int,
        size: int = 14,
        colour: Colour = INK,
        bold: bool = False,
        align: Align = "left",
    ) -> int:
        """Write one line into a strip `width` wide whose top left corner is (x, y); shortened with "..." to fit.

        Returns:
            Pixels written.
        """
        shown = fitted(" ".join(text.split()), width, size, bold=bold)  # one line, whatever a user's label holds
        if not shown:
            return 0
        taken = fonts.width(shown, size, bold=bold)
        x += {"left": 0, "centre": (width - taken) // 2, "right": width - taken}[align]
        self.paste(fonts.mask(shown, size, bold=bold), x, y, colour)
        return taken

    def lines(self, x: int, y: int, lines: Sequence[str], *, width: int, size: int = 14, colour: Colour = INK) -> None:
        """Write lines below each other, the first at (x, y)."""
        for number, line in enumerate(lines):
            self.text(x, y + number * fonts.line_height(size), line, width=width, size=size, colour=colour)

    def paste(self, mask: Image.Image, x: int, y: int, colour: Colour) -> None:
        """Colour the ground through a mask whose top left corner is (x, y)."""
        self.image.paste(colour, (x, y, x + mask.width, y + mask.height), mask)

    def rounded(self, box: Box, fill: Colour, *, radius: int = 6, outline: Colour | None = None) -> None:
        """A filled rectangle with round corners, and a line of one pixel around it."""
        if outline is not None:
            self.rounded(box, outline, radius=radius)
            box, radius = box.inset(1), radius - 1
        r = max(0, min(radius, box.width // 2, box.height // 2))
        if box.height > 2 * r:
            self.draw.rectangle((box.left, box.top + r, box.right - 1, box.bottom - r - 1), fill)
        if box.width > 2 * r:
            self.draw.rectangle((box.left + r, box.top, box.right - r - 1, box.bottom - 1), fill)
        if not r:
            return
        disc = disc_mask(r)
        for left, x in ((0, box.left), (r, box.right - r)):
            for top, y in ((0, box.top), (r, box.bottom - r)):
                # over what was there before, so that the corner stays see-through; drawn last, the bars end before it
                self.paste(disc.crop((left, top, left + r, top + r)), x, y, fill)

    def disc(self, x: int, y: int, radius: int, fill: Colour, *, opacity: float = 1.0) -> None:
        """A disc around (x, y)."""
        self.paste(disc_mask(radius, opacity), x - radius, y - radius, fill)

    def curve(self, box: Box, values: Sequence[float], colour: Colour) -> None:
        """A line through values, with a line at 0, over the whole width of a box."""
        shown = _thinned(values, box.width)
        low, high = min(0.0, *shown), max(0.0, *shown)
        span = (high - low) or 1.0
        part = Image.new("RGB", (box.width * 2, box.height * 2), WHITE)
        draw = ImageDraw.Draw(part)

        def y_of(value: float) -> float:
            return 8 + (high - value) / span * (part.height - 16)

        draw.line((0, y_of(0.0), part.width, y_of(0.0)), LINE, 2)
        step = (part.width - 16) / max(1, len(shown) - 1)
        points = [(8 + step * number, y_of(value)) for number, value in enumerate(shown)]
        if len(points) > 1:
            draw.line(points, colour, 4, joint="curve")
        x, y = points[-1]
        draw.ellipse((x - 6, y - 6, x + 6, y + 6), colour)
        self.image.paste(part.reduce(2), (box.left, box.top))


def fitted(text: str, width: int, size: int, *, bold: bool = False) -> str:
    """The text, shortened with "..." to the width where it is longer."""
    if fonts.width(text, size, bold=bold) <= width:
        return text
    low, high = 0, len(text)  # longest beginning that fits, by halving
    while low < high:
        middle = (low + high + 1) // 2
        if fonts.width(text[:middle].rstrip() + "...", size, bold=bold) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "..." if low else ""


@functools.lru_cache(maxsize=1024)
def wrapped(text: str, width: int, size: int, *, max_lines: int) -> tuple[str, ...]:
    """The text in lines that fit the width; what is too long for `max_lines` ends in "..."."""
    lines = [""]
    for piece in _PIECES.findall(" ".join(text.split())):
        if fonts.width(lines[-1] + piece.rstrip(), size) <= width or not lines[-1]:
            lines[-1] += piece
        elif piece.isspace():
            lines.append("")
        else:
            lines.append(piece)
    lines = [line.strip() for line in lines if line.strip()] or [""]
    if len(lines) > max_lines:
        lines = [*lines[: max_lines - 1], " ".join(lines[max_lines - 1 :])]
    return tuple(fitted(line, width, size) for line in lines)


@functools.lru_cache(maxsize=256)
def disc_mask(radius: int, opacity: float = 1.0) -> Image.Image:
    """A disc, 2 x radius wide, as a mask."""
    side = 2 * radius * SCALE
    image = Image.new("L", (side, side))
    ImageDraw.Draw(image).ellipse((0, 0, side - 1, side - 1), round(255 * opacity))
    return image.reduce(SCALE)


@functools.lru_cache(maxsize=256)
def shape_mask(points: tuple[tuple[float, float], ...], width: int, height: int) -> Image.Image:
    """A polygon, its corners in units of the mask's width and height."""
    image = Image.new("L", (width * SCALE, height * SCALE))
    corners = [(x * (image.width - 1), y * (image.height - 1)) for x, y in points]
    ImageDraw.Draw(image).polygon(corners, 255)
    return image.reduce(SCALE)


def star_mask(side: int) -> Image.Image:
    """A star of five points."""
    turns = [math.pi * (number / 5 - 0.5) for number in range(10)]
    radii = [0.5, 0.2] * 5
    return shape_mask(
        tuple((0.5 + r * math.cos(t), 0.52 + r * math.sin(t)) for t, r in zip(turns, radii, strict=True)), side, side
    )


@functools.lru_cache(maxsize=16)
def heart_mask(side: int) -> Image.Image:
    """A heart."""
    large = side * SCALE
    image = Image.new("L", (large, large))
    draw = ImageDraw.Draw(image)
    for left in (0.02, 0.46):
        draw.ellipse((left * large, 0.08 * large, (left + 0.52) * large, 0.6 * large), 255)
    draw.polygon([(x * large, y * large) for x, y in ((0.06, 0.46), (0.94, 0.46), (0.5, 0.96))], 255)
    return image.reduce(SCALE)


@functools.lru_cache(maxsize=64)
def stamp_mask(text: str, size: int, degrees: float) -> Image.Image:
    """A word in a frame with round corners, turned."""
    letters = fonts.mask(text, size * 2, bold=True)
    margin = size
    image = Image.new("L", (letters.width + 2 * margin, letters.height + margin))
    ImageDraw.Draw(image).rounded_rectangle((2, 2, image.width - 3, image.height - 3), size // 2, 0, 255, 5)
    image.paste(255, (margin, margin // 2, margin + letters.width, margin // 2 + letters.height), letters)
    turned = image.rotate(degrees, Image.Resampling.BICUBIC, expand=True)
    return turned.reduce(2)


def blend(colour: Colour, ground: Colour, part: float) -> Colour:
    """A mixture of two colours, `part` of the first."""
    mixed = [round(part * a + (1 - part) * b) for a, b in zip(colour, ground, strict=True)]
    return (mixed[0], mixed[1], mixed[2])


def _thinned(values: Sequence[float], n: int) -> list[float]:
    """At most n of the values, evenly, the last one always."""
    if len(values) <= n:
        return list(values) or [0.0]
    step = (len(values) - 1) / (n - 1)
    return [values[round(number * step)] for number in range(n)]
