"""A world as a `gymnasium.Env`: Python numbers and NumPy arrays in and out, one compiled call a step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from . import arguments, render
from .contract import Field, Schema, World
from .episode import key_data_of
from .frame import Frame, compiled

Observation = dict[str, Any]
Info = dict[str, Any]

MAX_HORIZON = 1_000_000
DEFAULT_HORIZON = 2_000
RENDER_MODES = ("human", "ansi", "rgb_array")


class WorldEnv(gymnasium.Env[Observation, Any]):
    """One episode of a world, step by step.

    Beyond Gymnasium's interface `env.unwrapped` has `schema`, which agents may read, and what only measurement may:
    `world`, `params`, `state`, `expected_rewards()`, `oracle_action()`, `audit()` and `regime_level()`.

    Args:
        world: the dynamics; equal worlds share one compiled step.
        horizon: steps after which an episode is truncated.
        render_mode: None, "human" (prints the card at every step), "ansi" or "rgb_array".
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012 - Gymnasium's form

    def __init__(self, world: World, *, horizon: int = DEFAULT_HORIZON, render_mode: str | None = None) -> None:
        if render_mode is not None:
            arguments.choice("render_mode", render_mode, RENDER_MODES)
        self.world = world
        self.schema: Schema = world.schema
        self.params = world.params
        self.horizon = arguments.whole_number("horizon", horizon, 1, MAX_HORIZON)
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Dict([(field.name, _space(field)) for field in self.schema.fields])
        self.action_space = gymnasium.spaces.Discrete(len(self.schema.actions))
        self._categories = [field.name for field in self.schema.fields if field.is_category]
        self._numbers = [field.name for field in self.schema.fields if not field.is_category]
        self._compiled = compiled(world)
        self._words: Any = None  # the one vector of `frame.Compiled`
        self._frame: Frame | None = None
        self._steps = 0
        self._ended = False
        self._history = render.History()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode.

        Args:
            seed: of this episode and those after it; None continues the stream of the last seed.
            options: none are known, and none are looked at.

        Returns:
            The first observation; info with the keys of `step` and no events.
        """
        super().reset(seed=seed, options=options)
        self._words = self._compiled.start(key_data_of(self.np_random), self.params)
        self._frame = self._compiled.frame(self._words)
        self._steps, self._ended = 0, False
        self._history = render.History()
        if self.render_mode == "human":
            self.render()
        return self._observation(self._frame), self._info(self._frame)

    def step(self, action: int) -> tuple[Observation, float, bool, bool, Info]:
        """Decide the case at hand.

        Args:
            action: code of one of `schema.actions`.

        Returns:
            Observation of the next case, or of the same one if the action did not close it; reward; False, for these
            worlds never end; whether the horizon is reached; info: `decision_id`, `feedback`, `boundary`, `regime` (in
            which the action was taken) and the signals of the schema.

        Raises:
            ValueError: if `action` is none of the actions.
            gymnasium.error.ResetNeeded: before the first `reset` and after the end of an episode.
        """
        if self._frame is None or self._ended:
            raise gymnasium.error.ResetNeeded("`step` needs a running episode; call `reset` first.")
        if not self.action_space.contains(action):
            known = ", ".join(f"{code} = {label}" for code, label in enumerate(self.schema.actions))
            raise ValueError(f"`action` must be one of {known}; got {action!r} of type {type(action).__name__}.")
        self._words = self._compiled.step(self._words, np.int32(action), self.params)
        self._frame = frame = self._compiled.frame(self._words)
        self._steps += 1
        truncated = self._steps >= self.horizon
        self._ended = frame.terminated or truncated
        info = self._info(frame)
        if self.render_mode is not None:
            self._history.add(self.schema.actions[action], frame.reward, info)
        if self.render_mode == "human":
            self.render()
        return self._observation(frame), frame.reward, frame.terminated, truncated, info

    def render(self) -> Any:
        """The case at hand and what came of earlier decisions: as text ("ansi"), picture ("rgb_array") or printed.

        Returns:
            str; [height, width, 3] u8; or None when it was printed or there is no `render_mode`.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("`render` shows nothing without a `render_mode`; give one to `gymnasium.make`.")
            return None
        frame = self._seen()
        card = render.card(
            self.schema, self._observation(frame), self._history, horizon=self.horizon, regime=frame.coming_regime
        )
        if self.render_mode == "rgb_array":
            return render.picture(card)
        text = render.text(card)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    @property
    def state(self) -> Any:
        """State of the world before the coming decision."""
        self._seen()
        return self._compiled.state(self._words)

    def expected_rewards(self) -> NDArray[np.float64]:
        """[n_actions] f64: expected total reward of each action now, its delayed outcome included, all hidden known."""
        return np.array(self._seen().expected_rewards, np.float64)

    def oracle_action(self) -> int:
        """The action of greatest expected reward."""
        return self._seen().oracle

    def audit(self) -> dict[str, int]:
        """Facts of the case at hand for measurement, such as the sensitive `group`."""
        return dict(zip(self._compiled.audit, self._seen().audit, strict=True))

    def regime_level(self) -> float:
        """Regime of the coming decision: 0 = the first set of rules, 1 = the second."""
        return self._seen().coming_regime

    def _seen(self) -> Frame:
        if self._frame is None:
            raise gymnasium.error.ResetNeeded("the environment has no case at hand; call `reset` first.")
        return self._frame

    def _observation(self, frame: Frame) -> Observation:
        """A new observation, which shares nothing with the one before."""
        values = dict(zip(self._categories, np.array(frame.codes, np.int64), strict=True))
        if not self._numbers:
            return values
        values |= zip(self._numbers, np.array(frame.numbers, np.float32)[:, None], strict=True)
        return {field.name: values[field.name] for field in self.schema.fields}

    def _info(self, frame: Frame) -> Info:
        info: Info = {
            "decision_id": frame.decision_id,
            "feedback": list(frame.feedback),
            "boundary": frame.boundary,
            "regime": frame.regime,
        }
        for signal, code in zip(self.schema.signals, frame.signals, strict=True):
            info[signal.name] = signal.labels[code]
        return info


def _space(field: Field) -> gymnasium.spaces.Space[Any]:
    if field.is_category:
        return gymnasium.spaces.Discrete(len(field.labels))
    return gymnasium.spaces.Box(np.float32(field.low), np.float32(field.high), (1,), np.float32)
