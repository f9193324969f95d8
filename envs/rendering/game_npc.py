"""GameNPC as a tile of a map: the terrain, both fighters at their distance, their health, their last moves."""

from __future__ import annotations

import functools
import random

from PIL import Image, ImageDraw, ImageFilter

from . import fonts, panels
from .canvas import (
    BLUE,
    FAINT,
    INK,
    MUTED,
    NIGHT,
    RED,
    WHITE,
    Box,
    Canvas,
    Colour,
    blend,
    heart_mask,
    shape_mask,
)
from .scene import Event, Scene, signed, words

MAP = Box(16, 56, 532, 336)
GROUND = {"plain": (168, 199, 122), "forest": (104, 148, 92), "ruins": (188, 180, 164), "hills": (196, 172, 122)}
GREY: Colour = (190, 190, 190)
NPC_X = 100  # pixels from the left edge of the map
GAP = {"close": 122, "near": 212, "far": 316}  # pixels between the fighters
FEET = 180  # pixels from the upper edge of the map
RADIUS = 30
MAX_HEALTH = 5


def paint(canvas: Canvas, scene: Scene) -> None:
    """Draw the encounter."""
    _map(canvas, scene)
    panels.actions(canvas, Box(16, 346, 532, 404), scene, columns=4)
    panels.money(canvas, Box(16, 414, 532, 496), scene)
    _opponent(canvas, Box(544, 56, 784, 136), scene)
    panels.log(canvas, Box(544, 146, 784, 496), scene)


def _map(canvas: Canvas, scene: Scene) -> None:
    terrain, distance = scene.label("terrain"), scene.label("distance")
    canvas.image.paste(_tile(terrain), (MAP.left, MAP.top))
    y = MAP.top + FEET
    npc_x = MAP.left + NPC_X
    player_x = npc_x + GAP.get(distance, 200)
    for x in range(npc_x + RADIUS + 8, player_x - RADIUS - 8, 12):
        canvas.draw.line((x, y, x + 6, y), blend(INK, GROUND.get(terrain, GREY), 0.55), 2)
    _tag(canvas, (npc_x + player_x) // 2, y + 10, distance)
    last = scene.last
    goes_on = last is not None and not last.boundary  # else the last moves belong to an encounter that is over
    done = words(last.action) if last is not None and goes_on else ""
    _fighter(canvas, npc_x, y, BLUE, "NPC", scene.label("npc_health"), below="you", said=done)
    who = _player(scene)
    move, hidden = scene.label("last_move"), scene.label("player_hidden") == "yes"
    _fighter(
        canvas,
        player_x,
        y,
        RED,
        "?" if who == "player" else who,
        scene.label("player_health"),
        below="hidden" if hidden else "player",
        said="" if move == "none" else words(move),
        hidden=hidden,
    )
    _tag(canvas, MAP.right - 56, MAP.bottom - 28, terrain)
    if last is not None and last.boundary:
        _banner(canvas, last)


def _fighter(
    canvas: Canvas,
    x: int,
    y: int,
    colour: Colour,
    name: str,
    health: str,
    *,
    below: str,
    said: str,
    hidden: bool = False,
) -> None:
    """A token on its shadow, hearts above, who it is below, the last move in a bubble; pale where it hides."""
    opacity = 0.35 if hidden else 1.0
    canvas.paste(_shadow(RADIUS), x - RADIUS - 6, y + RADIUS - 9, (40, 50, 40))
    canvas.disc(x, y, RADIUS, WHITE, opacity=opacity)
    canvas.disc(x, y, RADIUS - 3, colour, opacity=opacity)
    canvas.text(x - 25, y - 12, name, width=50, size=18, colour=WHITE, bold=True, align="centre")
    n = int(health) if health.isdigit() else 0
    heart = heart_mask(16)
    left = x - (MAX_HEALTH * 18 - 2) // 2
    canvas.rounded(Box(left - 5, y - 60, left + MAX_HEALTH * 18 + 3, y - 38), blend(NIGHT, WHITE, 0.85), radius=11)
    for number in range(MAX_HEALTH):
        canvas.paste(heart, left + 18 * number, y - 57, (226, 62, 70) if number < n else (86, 96, 112))
    _tag(canvas, x, y + RADIUS + 8, below)
    if said:
        _bubble(canvas, x, y - 68, said)


def _bubble(canvas: Canvas, x: int, bottom: int, said: str) -> None:
    taken = min(130, fonts.width(said, 14, bold=True))
    left = max(MAP.left + 6, min(MAP.right - taken - 26, x - taken // 2 - 10))
    box = Box(left, bottom - 34, left + taken + 20, bottom - 8)
    canvas.paste(shape_mask(((0.0, 0.0), (1.0, 0.0), (0.5, 1.0)), 14, 9), x - 7, bottom - 9, WHITE)
    canvas.rounded(box, WHITE, radius=10)
    canvas.text(box.left + 10, box.top + 4, said, width=taken, size=14, bold=True)


def _tag(canvas: Canvas, x: int, y: int, text: str) -> None:
    """A dark label whose upper edge is centred at (x, y)."""
    if not text:
        return
    taken = min(120, fonts.width(text, 12))
    box = Box(x - taken // 2 - 8, y, x - taken // 2 + taken + 8, y + 20)
    canvas.rounded(box, NIGHT, radius=10)
    canvas.text(box.left + 8, box.top + 2, text, width=taken, size=12, colour=WHITE)


def _banner(canvas: Canvas, last: Event) -> None:
    """How the encounter before this one ended."""
    box = Box(MAP.left + 10, MAP.top + 10, MAP.right - 10, MAP.top + 40)
    canvas.rounded(box, blend(NIGHT, WHITE, 0.92), radius=8)
    ending = words(last.signals.get("ending", "over"))
    said = f"last encounter: {words(last.action)}, {ending}"
    canvas.text(box.left + 12, box.top + 6, said, width=box.width - 90, size=14, colour=WHITE)
    colour = (134, 226, 160) if last.reward > 0 else (250, 160, 150)
    canvas.text(
        box.right - 72, box.top + 6, signed(last.reward), width=60, size=14, colour=colour, bold=True, align="right"
    )


def _opponent(canvas: Canvas, box: Box, scene: Scene) -> None:
    """Who the player is, and when he was here last."""
    inner = panels.framed(canvas, box, "opponent")
    seen = scene.label("last_seen")
    canvas.disc(inner.left + 12, inner.top + 12, 11, RED)
    canvas.text(inner.left + 34, inner.top, _player(scene), width=inner.width - 34, size=18, bold=True)
    said = "never met before" if seen == "never" else f"met {seen}" if seen else ""
    canvas.text(inner.left, inner.top + 26, said, width=inner.width, size=13, colour=MUTED)


def _player(scene: Scene) -> str:
    return scene.label(scene.schema.entity_field) or "player"


@functools.lru_cache(maxsize=8)
def _shadow(radius: int) -> Image.Image:
    image = Image.new("L", (2 * radius + 12, 22))
    ImageDraw.Draw(image).ellipse((4, 4, image.width - 5, image.height - 5), 110)
    return image.filter(ImageFilter.GaussianBlur(3))


@functools.lru_cache(maxsize=8)
def _tile(terrain: str) -> Image.Image:
    """The map of a terrain, always the same one."""
    ground = GROUND.get(terrain, GREY)
    scale = 2
    image = Image.new("RGB", (MAP.width * scale, MAP.height * scale), ground)
    draw = ImageDraw.Draw(image)
    chance = random.Random(terrain)  # of its own: a picture must not touch anybody's random numbers
    _patches(draw, image.size, ground, chance)
    marks = {"forest": (_tree, 60), "ruins": (_stones, 34), "hills": (_ridge, 30)}.get(terrain, (_grass, 130))
    mark, n = marks
    places = sorted(((chance.random(), chance.random()) for _ in range(n)), key=lambda place: place[1])
    for u, v in places:  # from back to front
        x, y = u * image.width, v * image.height
        if mark is _grass or not 0.3 < v < 0.94:  # the fighters stand in the open
            mark(draw, x, y, ground, chance)
    draw.rectangle((0, 0, image.width - 1, image.height - 1), outline=blend(INK, ground, 0.4), width=4)
    return image.reduce(scale)


def _patches(draw: ImageDraw.ImageDraw, size: tuple[int, int], ground: Colour, chance: random.Random) -> None:
    for _ in range(26):
        x, y = chance.uniform(0, size[0]), chance.uniform(0, size[1])
        a, b = chance.uniform(60, 170), chance.uniform(16, 44)
        draw.ellipse((x - a, y - b, x + a, y + b), blend(chance.choice((WHITE, INK)), ground, 0.045))


def _grass(draw: ImageDraw.ImageDraw, x: float, y: float, ground: Colour, chance: random.Random) -> None:
    colour = blend((60, 110, 40), ground, 0.55)
    for lean in (-5, 0, 5):
        draw.line((x, y, x + lean, y - chance.uniform(9, 16)), colour, 3)


def _tree(draw: ImageDraw.ImageDraw, x: float, y: float, ground: Colour, chance: random.Random) -> None:
    size = chance.uniform(30, 52)
    draw.ellipse((x - size * 0.6, y - 8, x + size * 0.6, y + 10), blend(INK, ground, 0.25))
    draw.rectangle((x - 4, y - size * 0.5, x + 4, y), (96, 70, 44))
    leaves = blend(WHITE if chance.random() < 0.5 else INK, (46, 104, 62), 0.08)
    for level in range(3):
        half, foot = size * (0.52 - 0.12 * level), y - size * (0.3 + 0.42 * level)
        draw.polygon(((x - half, foot), (x + half, foot), (x, foot - size * 0.7)), leaves)


def _stones(draw: ImageDraw.ImageDraw, x: float, y: float, ground: Colour, chance: random.Random) -> None:
    for number in range(chance.choice((1, 2, 3, 4))):
        left, width, height = x + 24 * number, 22, chance.uniform(16, 74)
        draw.rectangle((left + 6, y - 4, left + width + 8, y + 6), blend(INK, ground, 0.2))
        draw.rectangle((left, y - height, left + width, y), (146, 140, 128), blend(INK, (146, 140, 128), 0.35), 2)
        draw.line((left + 3, y - height + 3, left + width - 3, y - height + 3), FAINT, 3)


def _ridge(draw: ImageDraw.ImageDraw, x: float, y: float, ground: Colour, chance: random.Random) -> None:
    half, height = chance.uniform(70, 150), chance.uniform(40, 84)
    dark, light = blend((110, 84, 44), ground, 0.5), blend((110, 84, 44), ground, 0.28)
    top = (x + chance.uniform(-20, 20), y - height)
    draw.polygon(((x - half, y), top, (x + half, y)), light)
    draw.polygon((top, (x + half, y), (x + half * 0.2, y)), dark)
