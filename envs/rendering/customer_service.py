"""CustomerService as a thread of messages: the customer on the left, the agent on the right, stars of the survey."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from . import fonts, panels
from .canvas import (
    BLUE,
    FAINT,
    GOLD,
    INK,
    LINE,
    MUTED,
    WHITE,
    Box,
    Canvas,
    Colour,
    blend,
    star_mask,
    wrapped,
)
from .scene import Event, Scene, words

THREAD = Box(16, 118, 532, 496)
MOODS: dict[str, Colour] = {
    "angry": (206, 62, 54),
    "annoyed": (222, 134, 40),
    "calm": (88, 128, 176),
    "pleased": (46, 150, 92),
}
TIERS: dict[str, Colour] = {"basic": (148, 154, 164), "silver": (128, 146, 170), "gold": (206, 150, 24)}
STARS = {"low": 1, "middle": 2, "high": 3}
MOST_STARS = 3
N_TURNS = 6
BUBBLE = 340  # pixels, at most
SIZE = 13
MAX_LINES = 5
MAX_EVENTS = 12  # two rows each, of which not 12 have room
NOTHING = ("", "none", "unknown")


class Message(NamedTuple):
    """An entry of the thread.

    Attributes:
        side: "customer", "agent", or "end" of a ticket.
        text: what is said.
        label: what stands for it where no font of this machine has its letters: an action, a reply, an issue, a survey.
        mood: of the customer, "" where it is not known.
        value: reward, of an entry of the agent or of an end.
        stars: of the survey, 0 for none.
    """

    side: str
    text: str
    label: str
    mood: str = ""
    value: float = 0.0
    stars: int = 0


def paint(canvas: Canvas, scene: Scene) -> None:
    """Draw the ticket."""
    _ticket(canvas, Box(16, 56, 532, 110), scene)
    _thread(canvas, scene)
    _customer(canvas, Box(544, 56, 784, 158), scene)
    panels.actions(canvas, Box(544, 168, 784, 258), scene, columns=3)
    _tickets(canvas, Box(544, 268, 784, 394), scene)
    panels.money(canvas, Box(544, 404, 784, 496), scene)


def messages(scene: Scene) -> list[Message]:
    """The end of the thread, more of it than there is room for, oldest first."""
    history = scene.history
    events = list(history.events)[-MAX_EVENTS:]
    found = []
    if history.n_made <= len(events):
        found.append(_opening(scene, history.first_observation, history.first_text))
    for event in events:
        action, answer = words(event.action), words(event.signals.get("answer", ""))
        found.append(Message("agent", event.text.get("agent") or action, action, value=event.reward))
        if not event.boundary:
            reply, mood = (words(scene.label(name, event.observation)) for name in ("reply", "mood"))
            found.append(Message("customer", event.text.get("customer") or answer or reply, answer or reply, mood))
            continue
        if farewell := event.text.get("farewell") or answer:  # `customer` is then the next one's first message
            found.append(Message("customer", farewell, answer or "farewell"))
        found += [_ending(event), _opening(scene, event.observation, event.text)]
    return found


def _opening(scene: Scene, observation: Any, text: Mapping[str, str]) -> Message:
    """What a customer begins with."""
    issue, mood = (words(scene.label(name, observation)) for name in ("issue", "mood"))
    return Message("customer", text.get("customer") or issue, issue, mood)


def _ending(event: Event) -> Message:
    how, survey = words(event.signals.get("ending", "ended")), event.signals.get("survey", "")
    return Message("end", f"ticket {how}", survey, value=event.reward, stars=STARS.get(survey, 0))


def _ticket(canvas: Canvas, box: Box, scene: Scene) -> None:
    """What is known of the ticket, and its turns as dots."""
    canvas.rounded(box, WHITE, outline=LINE)
    issue, detail = words(scene.label("issue")), scene.label("detail")
    canvas.text(box.left + 12, box.top + 5, issue, width=300, size=17, bold=True)
    known = "cause not known yet" if detail in NOTHING else words(detail)
    canvas.text(box.left + 12, box.top + 29, known, width=300, size=13, colour=MUTED)
    turn = scene.label("turn")
    n = int(turn) if turn.isdigit() else 0
    canvas.text(box.right - 190, box.top + 7, f"turn {turn} of {N_TURNS}", width=178, size=13, align="right")
    for number in range(N_TURNS):
        canvas.disc(box.right - 12 - 18 * (N_TURNS - number) + 10, box.top + 38, 6, BLUE if number < n else LINE)


def _thread(canvas: Canvas, scene: Scene) -> None:
    """The newest messages, as many as there is room for."""
    canvas.rounded(THREAD, blend(BLUE, WHITE, 0.06), outline=LINE)
    fitting: list[tuple[Message, tuple[str, ...], int]] = []
    room = THREAD.height - 16
    for message in reversed(messages(scene)):
        lines = wrapped(_shown(message), BUBBLE - 24, SIZE, max_lines=MAX_LINES)
        height = 34 if message.side == "end" else len(lines) * fonts.line_height(SIZE) + 20
        if height > room:
            break
        fitting.append((message, lines, height))
        room -= height
    y = THREAD.top + 10  # a short thread begins at the top
    for message, lines, height in reversed(fitting):
        if message.side == "end":
            _end(canvas, y, message)
        else:
            _bubble(canvas, y, message, lines)
        y += height


def _shown(message: Message) -> str:
    """The text where it can be drawn, else its label."""
    return message.text if fonts.can_show(message.text) else message.label


def _bubble(canvas: Canvas, top: int, message: Message, lines: tuple[str, ...]) -> None:
    is_agent, colour = message.side == "agent", MOODS.get(message.mood, FAINT)
    text_width = max(fonts.width(line, SIZE) for line in lines)
    width = min(BUBBLE, max(60, text_width + 24))
    left = THREAD.right - 12 - width if is_agent else THREAD.left + 12
    bottom = top + len(lines) * fonts.line_height(SIZE) + 14
    box = Box(left, top, left + width, bottom)
    canvas.rounded(box, blend(BLUE, WHITE, 0.85) if is_agent else WHITE, radius=10, outline=None if is_agent else LINE)
    if not is_agent:
        canvas.rounded(Box(box.left + 5, box.top + 7, box.left + 9, box.bottom - 7), colour, radius=2)
    canvas.lines(
        box.left + (12 if is_agent else 15),
        box.top + 6,
        lines,
        width=width - 24 + (0 if is_agent else 3),
        size=SIZE,
        colour=WHITE if is_agent else INK,
    )
    y, beside = (top + bottom) // 2 - 8, THREAD.width - 24 - width - 8  # small print stands in the free part of the row
    if is_agent:
        panels.amount(canvas, box.left - 50, y, message.value, width=42, size=12)
        label = "" if message.label == _shown(message) else message.label
        canvas.text(box.left - 8 - beside, y, label, width=beside - 52, size=12, colour=MUTED, align="right")
    else:
        canvas.text(box.right + 8, y, message.mood, width=beside, size=12, colour=colour)


def _end(canvas: Canvas, top: int, message: Message) -> None:
    """A line across the thread: how the ticket ended and what the survey said."""
    middle = top + 13
    canvas.draw.line((THREAD.left + 12, middle, THREAD.right - 13, middle), FAINT, 1)
    stars = MOST_STARS * 18 if message.stars else 0
    taken = min(220, fonts.width(message.text, 12))
    width = taken + stars + 24
    left = (THREAD.left + THREAD.right - width) // 2
    canvas.rounded(Box(left, top + 2, left + width, top + 25), WHITE, radius=11, outline=FAINT)
    canvas.text(left + 12, top + 5, message.text, width=taken, size=12, colour=MUTED)
    _stars(canvas, left + taken + 18, top + 6, message.stars)


def _stars(canvas: Canvas, x: int, y: int, n: int) -> None:
    if n:
        for number in range(MOST_STARS):
            canvas.paste(star_mask(15), x + 18 * number, y, GOLD if number < n else LINE)


def _customer(canvas: Canvas, box: Box, scene: Scene) -> None:
    """Who writes: number, mood as a face, channel, tier, when here last."""
    inner = panels.framed(canvas, box, "customer")
    mood, tier, channel, seen = (scene.label(name) for name in ("mood", "tier", "channel", "last_seen"))
    _face(canvas, inner.left + 24, inner.top + 20, mood)
    x = inner.left + 62
    who = scene.label(scene.schema.entity_field) or "customer"
    canvas.text(x, inner.top - 8, who, width=80, size=19, bold=True)
    left = x + 90
    canvas.rounded(Box(left, inner.top - 4, inner.right, inner.top + 16), TIERS.get(tier, MUTED), radius=10)
    canvas.text(left + 2, inner.top - 2, tier, width=inner.right - left - 4, size=12, colour=WHITE, align="centre")
    canvas.text(x, inner.top + 18, f"{words(mood)} · {words(channel)}", width=inner.right - x, size=13, colour=INK)
    said = "here for the first time" if seen == "never" else f"here {seen}" if seen else ""
    canvas.text(inner.left, inner.bottom - 18, said, width=inner.width, size=12, colour=MUTED)


def _face(canvas: Canvas, x: int, y: int, mood: str) -> None:
    canvas.disc(x, y, 22, MOODS.get(mood, MUTED))
    for eye in (-8, 8):
        canvas.disc(x + eye, y - 6, 3, WHITE)
    mouth = {"angry": (200, 340, 13), "annoyed": (215, 325, 11), "pleased": (20, 160, 1)}.get(mood)
    if mouth is None:
        canvas.draw.line((x - 8, y + 9, x + 8, y + 9), WHITE, 3)
        return
    start, end, drop = mouth
    canvas.draw.arc((x - 10, y - 8 + drop, x + 10, y + 8 + drop), start, end, WHITE, 3)


def _tickets(canvas: Canvas, box: Box, scene: Scene) -> None:
    """How the last tickets ended, newest on top."""
    inner = panels.framed(canvas, box, "tickets that ended")
    ended = [event for event in scene.history.events if event.boundary]
    if not ended:
        canvas.text(inner.left, inner.top, "none yet", width=inner.width, size=13, colour=MUTED)
    for number, event in enumerate(reversed(ended[-(inner.height // 19) :])):
        y = inner.top + 19 * number
        message = _ending(event)
        canvas.text(inner.left, y, f"{event.step + 1}", width=36, size=11, colour=MUTED)
        canvas.text(inner.left + 38, y - 1, message.text.removeprefix("ticket "), width=62, size=13)
        _stars(canvas, inner.left + 102, y, message.stars)
        panels.amount(canvas, inner.right - 56, y - 1, event.reward, width=56)
