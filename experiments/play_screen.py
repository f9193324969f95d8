"""What `habitus play` prints: the case as an agent sees it, the actions, what a step brought, how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import rich.console
import rich.markup
import rich.panel
import rich.table

from ..envs.rendering import History, Scene
from ..envs.rendering.scene import signed, words
from .play_setup import Game

MOST_NUMBERS = 24  # of an array without names that are printed one by one
TWO_COLUMNS_FROM = 6  # fields

HELP = """\
Type the number of an action, its name, or the beginning of it; Enter then takes the step.
  ?  this help
  o  ask the oracle, which sees what is hidden{oracle}
  a  ask the agent at your side{agent}
  q  end the episode here
After o or a, Enter alone does what was proposed."""


class Screen:
    """Prints a game.

    Args:
        console: where to.
        game: what is played.
    """

    def __init__(self, console: rich.console.Console, game: Game) -> None:
        self.console, self.game = console, game

    def case(self, history: History) -> None:
        """The case at hand and what can be done."""
        game = self.game
        if game.schema is not None:
            rows = Scene(game.schema, history, game.horizon or 0).rows()
            what = f"{game.schema.world} · {words(game.schema.boundary)}"
        else:
            rows, what = _rows(history.observation), game.world_id
        of = f" of {game.horizon:,}" if game.horizon else ""
        title = f"{what} · decision {history.n_made + 1:,}{of}"
        if "regime" in history.info:
            title += f" · regime {float(history.info['regime']):.1f}"
        self.console.print(
            rich.panel.Panel(_grid(rows), title=f"[bold]{_safe(title)}[/]", title_align="left", border_style="blue")
        )
        self._actions(history)

    def said(self, text: Mapping[str, str]) -> None:
        """What was said, where the environment tells it in words."""
        styles = {"agent": "cyan", "customer": "yellow", "farewell": "yellow"}
        for speaker, line in text.items():
            if line:
                self.console.print(f"[{styles.get(speaker, 'bold')}]{_safe(words(speaker))}:[/] {_safe(line)}")

    def brought(self, history: History) -> None:
        """What the last step brought."""
        event = history.events[-1]
        parts = [f"{words(event.action)} -> reward [{_style(event.reward)}]{signed(event.reward)}[/]"]
        parts += [f"{words(name)}: [bold]{_safe(words(label))}[/]" for name, label in event.signals.items()]
        self.console.print(", ".join(parts))
        coming = {"customer": event.text["customer"]} if "customer" in event.text else {}
        self.said({speaker: line for speaker, line in event.text.items() if speaker not in coming})
        for decision, action, value in event.arrived:
            self.console.print(
                f"  decision {decision + 1} ({_safe(words(action))}) brought [{_style(value)}]{signed(value)}[/]"
            )
        if event.boundary and self.game.schema is not None:
            self.console.rule(f"[dim]{_safe(words(self.game.schema.boundary))} over[/]", style="dim")
        self.said(coming)  # after the rule: at the end of a ticket it is the next customer who speaks

    def note(self, text: str, style: str = "") -> None:
        """A line of the game itself."""
        self.console.print(f"[{style}]{_safe(text)}[/]" if style else _safe(text))

    def place(self, text: str) -> None:
        """A line with a path, which is not broken, so that it can be copied."""
        self.console.print(_safe(text), soft_wrap=True)

    def help(self, *, oracle: bool, agent: bool) -> None:
        """What can be typed."""
        said = HELP.format(
            oracle="" if oracle else " (this environment has none)",
            agent="" if agent else " (start with --agent KIND to have one)",
        )
        self.console.print(_safe(said))

    def ending(self, history: History, references: Sequence[tuple[str, float]], n_boundaries: int) -> None:
        """Sum, means, and how others would do."""
        n, total = history.n_made, history.total
        if not n:
            self.console.print("nothing was decided.")
            return
        line = f"{n:,} decision{'s' * (n != 1)}, sum of rewards [{_style(total)}]{signed(total)}[/]"
        line += f", mean {total / n:+.3f}"
        if self.game.schema is not None and self.game.schema.score_per == "boundary" and n_boundaries:
            line += f", {total / n_boundaries:+.3f} per {words(self.game.schema.boundary)}"
        self.console.print(line)
        if history.n_waiting:
            self.console.print(f"outcomes still to arrive: {history.n_waiting}")
        if references:
            others = ", ".join(f"{name} {value:+.3f}" for name, value in references)
            self.console.print(f"published means of a step in this world: {others}")

    def _actions(self, history: History) -> None:
        mask = history.info.get("action_mask")
        parts = []
        for number, label in enumerate(self.game.actions):
            name = words(label)
            shown = name if self.game.schema is None else f"{number} {name}"
            possible = mask is None or bool(mask[number])
            # brackets say it where there are no colours
            parts.append(f"[bold]{_safe(shown)}[/]" if possible else f"[dim]({_safe(shown)})[/]")
        self.console.print("  ".join(parts))
        if mask is not None and not np.all(mask):
            self.console.print("[dim]in brackets: impossible now[/]")


def _grid(rows: Sequence[tuple[str, str]]) -> rich.table.Table:
    """Names and values, in two columns where there are many."""
    grid = rich.table.Table.grid(padding=(0, 2))
    columns = 2 if len(rows) >= TWO_COLUMNS_FROM else 1
    for _ in range(columns):
        grid.add_column(style="dim")
        grid.add_column(style="bold")
    n = -(-len(rows) // columns)
    for number in range(n):
        cells = [cell for row in rows[number::n] for cell in row]
        grid.add_row(*(_safe(cell) for cell in cells))
    return grid


def _rows(observation: Any) -> list[tuple[str, str]]:
    """An observation of which nothing is declared: number by number, or its shape where there are many."""
    if isinstance(observation, Mapping):
        return [(str(name), _short(value)) for name, value in observation.items()]
    values = np.ravel(observation)
    if np.ndim(observation) and values.size <= MOST_NUMBERS:
        return [(str(number), f"{value:.4g}") for number, value in enumerate(values.tolist())]
    return [("observation", _short(observation))]


def _short(value: Any) -> str:
    values = np.ravel(value)
    if values.dtype.kind not in "biuf":
        return str(value)
    if values.size <= MOST_NUMBERS:
        return ", ".join(f"{number:.4g}" for number in values.tolist())
    return f"array of shape {np.shape(value)}, mean {values.mean():.4g}"


def _style(value: float) -> str:
    shown = round(value, 2)
    return "bold green" if shown > 0 else "bold red" if shown < 0 else "bold"


def _safe(text: str) -> str:
    return rich.markup.escape(text)
