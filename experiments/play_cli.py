"""The command `habitus play`."""

from __future__ import annotations

from typing import Annotated

import typer

from .cli_errors import clear_errors


def play(
    world: Annotated[
        str, typer.Argument(metavar="WORLD", help="GameNPC, habitus/GameNPC-v0, or any id with numbered actions.")
    ],
    seed: Annotated[int, typer.Option(help="Seed of the episode and of the agent.")] = 0,
    difficulty: Annotated[str | None, typer.Option(help="easy, medium or hard.")] = None,
    regime: Annotated[str | None, typer.Option(help="none, shift, periodic or drift.")] = None,
    text: Annotated[str | None, typer.Option(metavar="en|zh", help="Language of CustomerService.")] = None,
    agent: Annotated[
        str | None,
        typer.Option(metavar="KIND|FILE", help="An agent to ask: it learns from your steps; or a saved substrate."),
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps of the episode; default 200.")] = None,
    record: Annotated[str | None, typer.Option(metavar="FILE", help="Record pictures to a .gif or .mp4 file.")] = None,
) -> None:
    """Play in a world yourself: see what an agent sees, ask the oracle or an agent for a move."""
    with clear_errors():
        from . import play as play_module

        options = {"difficulty": difficulty, "regime": regime, "text": text, "horizon": horizon}
        play_module.play(world, seed=seed, options=options, agent=agent, record=record)
