"""Letters: which font can show a text, how wide it is, and its mask.

The first of these that has every character of a text is used: Aileron, which Pillow brings; DejaVu, which matplotlib
brings; a Chinese font of the system. Masks are kept, for the same labels are drawn in every frame.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFont

Font = ImageFont.FreeTypeFont

SCALE = 2  # letters are drawn twice as large and reduced: at small sizes whole pixels close the gaps between words
NO_CHARACTER = "\U0010ffff"  # has no glyph in any font, so it shows what a font draws for a missing one
CJK_FONTS = (
    "NotoSansCJK-Regular.ttc",
    "NotoSansSC-Regular.otf",
    "SourceHanSansSC-Regular.otf",
    "wqy-microhei.ttc",
    "wqy-zenhei.ttc",
    "DroidSansFallbackFull.ttf",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
    "STHeiti Medium.ttc",
    "msyh.ttc",
    "simhei.ttf",
)


def can_show(text: str) -> bool:
    """Whether some font has every character of a text."""
    return _name_for(text) is not None


@functools.lru_cache(maxsize=8192)
def width(text: str, size: int, *, bold: bool = False) -> int:
    """Pixels that a line of text takes."""
    shown, font = _shown(text, size * SCALE)
    return math.ceil((font.getlength(shown) + bold * _stroke(size)) / SCALE)


@functools.cache
def line_height(size: int) -> int:
    """Pixels from the top of one line to that of the next."""
    return round(size * 1.3)


@functools.lru_cache(maxsize=8192)
def mask(text: str, size: int, *, bold: bool = False) -> Image.Image:
    """A line of text as an 8-bit mask of `width` x `line_height` pixels."""
    shown, font = _shown(text, size * SCALE)
    height = line_height(size) * SCALE
    image = Image.new("L", (max(1, width(text, size, bold=bold)) * SCALE, height))
    baseline = height / 2 + 0.36 * size * SCALE  # capitals, .72 of the size high, stand in the middle of the line
    ImageDraw.Draw(image).text((0, round(baseline)), shown, 255, font, anchor="ls")
    if bold:  # Pillow brings no bold face: a second stroke beside the first
        image = ImageChops.lighter(image, ImageChops.offset(image, _stroke(size), 0))
    return image.reduce(SCALE)


def _stroke(size: int) -> int:
    """Pixels, before the reduction, by which a bold stroke is wider."""
    return 2 if size >= 17 else 1


def _shown(text: str, size: int) -> tuple[str, Font]:
    name = _name_for(text)
    if name is not None:
        return text, _font(name, size)
    name = "dejavu" if _font_or_none("dejavu", size) else "aileron"
    return "".join(character if _has(name, character) else "?" for character in text), _font(name, size)


@functools.lru_cache(maxsize=8192)
def _name_for(text: str) -> str | None:
    for name in ("aileron", "dejavu", *CJK_FONTS):
        if _font_or_none(name, 16) is not None and all(_has(name, character) for character in set(text)):
            return name
    return None


@functools.cache
def _has(name: str, character: str) -> bool:
    if character.isspace():
        return True
    font = _font(name, 16)
    glyph, missing = font.getmask(character), font.getmask(NO_CHARACTER)
    return glyph.size != missing.size or bytes(glyph) != bytes(missing)


def _font(name: str, size: int) -> Font:
    font = _font_or_none(name, size)
    assert font is not None
    return font


@functools.cache
def _font_or_none(name: str, size: int) -> Font | None:
    if name == "aileron":
        font = ImageFont.load_default(size)
        assert isinstance(font, Font)
        return font
    path = _dejavu() if name == "dejavu" else name
    try:
        return ImageFont.truetype(path, size) if path else None
    except OSError:  # not installed
        return None


@functools.cache
def _dejavu() -> str | None:
    found = importlib.util.find_spec("matplotlib")  # finds it without importing it
    if found is None or found.origin is None:
        return None
    return str(Path(found.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf")
