"""`habitus/GameNPC-v0` as Gymnasium sees it."""

from __future__ import annotations

from typing import NamedTuple, get_args

from numpy.typing import ArrayLike

from .. import arguments, regimes, visitors
from ..adapter import DEFAULT_HORIZON, MAX_HORIZON, WorldEnv
from ..contract import FeedbackMode
from .opponents import opponents as behaviour_of
from .world import game_world

DEFAULT_DIFFICULTY = "medium"
MAX_CAPACITY = 2**15 - 1


class Difficulty(NamedTuple):
    """How much there is to remember, for how long, and how much of it shows."""

    players: visitors.Preset
    see: float  # chance that a player's move is seen


DIFFICULTIES = {
    "easy": Difficulty(visitors.Preset(8, 0.002, 0.35, 0.3, 0), 1.0),
    "medium": Difficulty(visitors.Preset(12, 0.01, 0.35, 0.0, 0), 1.0),
    "hard": Difficulty(visitors.Preset(200, 0.06, 0.01, 0.0, 60), 0.35),
}


class GameNPCEnv(WorldEnv):
    """An NPC meets returning players, whose hidden style decides what works against them."""

    def __init__(
        self,
        *,
        horizon: int = DEFAULT_HORIZON,
        regime: regimes.RegimeArgument = "none",
        shift_at: int | None = None,
        difficulty: str = DEFAULT_DIFFICULTY,
        opponents: ArrayLike | None = None,
        negotiation: ArrayLike | None = None,
        redraw_styles: bool = False,
        observe_entity: bool = True,
        feedback: FeedbackMode = "attributed",
        capacity: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        arguments.whole_number("horizon", horizon, 1, MAX_HORIZON)
        arguments.choice("difficulty", difficulty, tuple(DIFFICULTIES))
        arguments.choice("feedback", feedback, get_args(FeedbackMode))
        arguments.switch("observe_entity", observe_entity)
        arguments.switch("redraw_styles", redraw_styles)
        preset, see = DIFFICULTIES[difficulty]
        if capacity is not None:
            arguments.whole_number("capacity", capacity, preset.n, MAX_CAPACITY)
        world = game_world(
            preset,
            see=see,
            capacity=preset.n if capacity is None else capacity,
            schedule=regimes.schedule(regime, horizon, shift_at),
            opponents=behaviour_of(opponents, negotiation),
            redraw_styles=redraw_styles,
            observe_entity=observe_entity,
            feedback=feedback,
        )
        super().__init__(world, horizon=horizon, render_mode=render_mode)
