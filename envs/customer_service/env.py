"""`habitus/CustomerService-v0` as Gymnasium sees it."""

from __future__ import annotations

from typing import get_args

from .. import arguments, regimes
from ..adapter import DEFAULT_HORIZON, MAX_HORIZON, Narrate, WorldEnv
from ..contract import FeedbackMode
from .world import DIFFICULTIES, customer_service

DEFAULT_DIFFICULTY = "medium"
MAX_CAPACITY = 2**15 - 1


class CustomerServiceEnv(WorldEnv):
    """Tickets of returning customers."""

    def __init__(
        self,
        *,
        horizon: int = DEFAULT_HORIZON,
        regime: regimes.RegimeArgument = "none",
        shift_at: int | None = None,
        difficulty: str = DEFAULT_DIFFICULTY,
        observe_entity: bool = True,
        feedback: FeedbackMode = "attributed",
        redraw_personas: bool = False,
        capacity: int | None = None,
        render_mode: str | None = None,
        narrate: Narrate | None = None,
    ) -> None:
        arguments.whole_number("horizon", horizon, 1, MAX_HORIZON)
        arguments.choice("difficulty", difficulty, tuple(DIFFICULTIES))
        arguments.choice("feedback", feedback, get_args(FeedbackMode))
        preset = DIFFICULTIES[difficulty]
        if capacity is not None:
            arguments.whole_number("capacity", capacity, preset.n, MAX_CAPACITY)
        world = customer_service(
            preset=preset,
            capacity=preset.n if capacity is None else capacity,
            schedule=regimes.schedule(regime, horizon, shift_at),
            feedback=feedback,
            observe_entity=arguments.switch("observe_entity", observe_entity),
            redraw_personas=arguments.switch("redraw_personas", redraw_personas),
        )
        super().__init__(world, horizon=horizon, render_mode=render_mode, narrate=narrate)
