"""A person plays in a world: `habitus play`. Sees what an agent sees, and can ask the oracle or an agent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import rich.console
from numpy.typing import NDArray

from ..agents import Transition
from ..envs import rendering
from . import decisions, own_code, play_setup
from .errors import ExperimentError
from .play_screen import Screen
from .play_setup import Game
from .study_file import nearest

EXPLAINED_LINES = 6  # of an agent's explanation
HELP, ORACLE, AGENT, QUIT = "?", "o", "a", "q"


class Stopped(Exception):  # noqa: N818 - the player has had enough, which is no error
    """The player ended the game: by command, by the end of the input, or by Ctrl-C."""


def play(
    world: str,
    *,
    seed: int,
    options: Mapping[str, Any],
    agent: str | None = None,
    record: str | None = None,
    console: rich.console.Console | None = None,
    read: Callable[[], str] = input,
) -> None:
    """Let a person play one episode.

    Args:
        world: name or id.
        seed: of the episode and of the agent.
        options: `difficulty`, `regime`, `text` and `horizon` of the world, each None for its default.
        agent: kind, "module:Class" or saved file of an agent at the player's side, which learns from the player's
            steps; None for nobody.
        record: .gif or .mp4 file to write at the end.
        console: where to print; by default the standard output.
        read: gives the next line of the player; EOFError where there is none.

    Raises:
        ExperimentError: the world, an option, the agent or the recording cannot be had.
    """
    if seed < 0:
        raise ExperimentError(f"`--seed` must be at least 0, got {seed}.")
    if record is not None:
        play_setup.check_recording(record)
    with own_code.importable():
        game = play_setup.make(play_setup.world_id_of(world), options, record=record)
        beside = play_setup.agent_of(game, agent, seed) if agent is not None else None
    screen = Screen(console or rich.console.Console(highlight=False), game)
    session = Session(game, beside, screen, read, records=record is not None)
    try:
        session.run(seed)
    except (Stopped, KeyboardInterrupt):
        screen.note("")
    screen.ending(session.history, play_setup.references(game.schema, options), session.n_boundaries)
    if record is not None and session.frames:
        path = rendering.write_video(session.frames, Path(record), fps=game.env.metadata.get("render_fps", 2))
        screen.place(f"recorded: {path} ({len(session.frames)} frames)")
    game.env.close()


class Session:
    """One episode.

    Args:
        game: the environment.
        agent: at the player's side, or None.
        screen: prints.
        read: the next line of the player.
        records: whether frames are kept.

    Attributes:
        history: what happened.
        frames: pictures, one at the reset and one after every step.
        n_boundaries: encounters (tickets, applications) that ended.
    """

    def __init__(
        self, game: Game, agent: Any, screen: Screen, read: Callable[[], str], *, records: bool = False
    ) -> None:
        self.game, self.agent, self.screen = game, agent, screen
        self.history = rendering.History()
        self.frames: list[NDArray[np.uint8]] = []
        self.n_boundaries = 0
        self._read, self._records = read, records
        self._proposal: int | None = None  # what the oracle or the agent said for the case at hand

    def run(self, seed: int) -> None:
        """Play until the episode ends.

        Raises:
            Stopped: the player has had enough.
        """
        observation, info = self.game.env.reset(seed=seed)
        self.history.begin(observation, info)
        self._picture()
        if self.agent is not None:
            self.agent.begin(observation, info)
        self.screen.note("? for help", "dim")
        self.screen.said(self.history.first_text)
        while True:
            self.screen.case(self.history)
            if self._step(self._ask()):
                self.screen.note("the episode is over.", "bold")
                return

    def _step(self, action: int) -> bool:
        """Take a step; whether the episode ended."""
        before = self.history.observation
        coded = np.int64(action + self.game.first)
        observation, reward, terminated, truncated, info = self.game.env.step(coded)
        self.history.add(self.game.actions[action], float(reward), info, observation)
        self.n_boundaries += bool(info.get("boundary", False))
        self._proposal = None
        self._picture()
        if self.agent is not None:
            self.agent.observe(
                Transition(before, int(coded), float(reward), observation, bool(terminated), bool(truncated), info)
            )
        self.screen.brought(self.history)
        return bool(terminated or truncated)

    def _ask(self) -> int:
        """The action that the player wants, after as many questions as it takes."""
        while True:
            typed = self._line()
            if typed == QUIT:
                raise Stopped
            if typed == HELP:
                self.screen.help(oracle=self._has_oracle, agent=self.agent is not None)
            elif typed == ORACLE:
                self._ask_oracle()
            elif typed == AGENT:
                self._ask_agent()
            elif not typed:
                if self._proposal is not None:
                    return self._proposal
            elif (action := self._meant(typed)) is not None:
                return action

    def _line(self) -> str:
        proposed = "" if self._proposal is None else f", Enter = {self.game.actions[self._proposal].replace('_', ' ')}"
        self.screen.console.print(f"[bold blue]action[/] [dim]or ? o a q{proposed}[/] > ", end="")
        try:
            typed = self._read().strip()
        except EOFError:
            raise Stopped from None
        if not sys.stdin.isatty():  # a script shows what it typed
            self.screen.note(typed)
        return typed.lower()

    def _meant(self, typed: str) -> int | None:
        """The one action that was meant and is possible; else says why there is none."""
        labels = self.game.actions
        found = play_setup.matches(typed, labels)
        names = [labels[number].replace("_", " ") for number in found]
        if len(found) > 1:
            self.screen.note(f"`{typed}` may be {' or '.join(names)}; type more of it.", "yellow")
            return None
        if not found:
            self.screen.note(f"there is no action `{typed}`{nearest(typed, labels)} ? shows help.", "yellow")
            return None
        mask = self.history.info.get("action_mask")
        if mask is not None and not mask[found[0]]:
            self.screen.note(f"{names[0]} is impossible now.", "yellow")
            return None
        return found[0]

    @property
    def _has_oracle(self) -> bool:
        return hasattr(self.game.env.unwrapped, "oracle_action")

    def _ask_oracle(self) -> None:
        if not self._has_oracle:
            self.screen.note("this environment has no oracle.", "yellow")
            return
        self._propose("the oracle", int(self.game.env.unwrapped.oracle_action()))  # type: ignore[attr-defined]

    def _ask_agent(self) -> None:
        if self.agent is None:
            self.screen.note("there is no agent at your side; start with --agent KIND.", "yellow")
            return
        observation = self.history.observation
        if decisions.explains_itself(self.agent):
            decision = self.agent.decide(observation)
            self._propose("the agent", self.game.actions.index(str(decision.choice)))
            lines = str(decision.explain()).splitlines()
            for line in lines[:EXPLAINED_LINES]:
                self.screen.note(f"  {line}", "dim")
            if len(lines) > EXPLAINED_LINES:
                self.screen.note("  ...", "dim")
            return
        if callable(getattr(self.agent, "predict", None)):
            action = int(self.agent.predict(observation)[0])
        else:
            action = int(self.agent.act(observation))
        self._propose("the agent", action - self.game.first)

    def _propose(self, who: str, action: int) -> None:
        """Say what somebody would do; Enter does it then."""
        self._proposal = action
        self.screen.note(f"{who} would: {self.game.actions[action].replace('_', ' ')}", "magenta")

    def _picture(self) -> None:
        if self._records:
            self.frames.append(np.asarray(self.game.env.render(), np.uint8))
