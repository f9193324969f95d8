"""A world as a `gymnasium.Env`: Python numbers and NumPy arrays in and out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import gymnasium
import jax
import numpy as np
from numpy.typing import NDArray

from . import arguments, forks, rendering
from .contract import ChecksParams, Field, IntegerWorld, Schema, Solution, World
from .episode import key_data_of
from .frame import CompiledRun, Executor, Frame
from .integers import IntegerRun
from .words import Facts, measurement

Observation = dict[str, Any]
Info = dict[str, Any]
Narrate = Callable[[Observation | None, int | None, Info, Observation, int], dict[str, str]]
"""What `info["text"]` holds, as a function of what an agent sees: (observation before, None at a reset; action or None;
info; observation after; number of the step, 0 at a reset). The same arguments give the same text."""

MAX_HORIZON = 1_000_000
DEFAULT_HORIZON = 2_000
WORLD_PARTS = (
    "schema",
    "params",
    "initial",
    "observe",
    "step",
    "action_mask",
    "expected_rewards",
    "action_values",
    "regime",
    "audit",
    "solve",
    "filter",
)
RENDER_MODES = ("human", "ansi", "rgb_array")


class WorldEnv(gymnasium.Env[Observation, Any]):
    """One episode of a world, step by step.

    Beyond Gymnasium's interface `env.unwrapped` has `schema` and `action_masks()`, which agents may read, and what only
    measurement may: `world`, `params`, `solution`, `state`, `expected_rewards()`, `action_values()`, `oracle_action()`,
    `audit()` and `regime_level()`. Measurement is computed when it is asked for and costs nothing otherwise.

    A world that is written in integers runs in plain Python, any other with one compiled call a step; both show the
    bytes of the vector environment and of `rollout` for the same seed.

    Args:
        world: the dynamics; equal worlds share what is compiled.
        horizon: steps after which an episode is truncated.
        render_mode: None, "human" (prints the card at every step), "ansi" or "rgb_array".
        params: parameters in place of `world.params`, a pytree of the same shapes and types.
        narrate: makes `info["text"]`, or None for no text.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it, for `params` with its leaf.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # noqa: RUF012 - Gymnasium's form

    def __init__(
        self,
        world: World,
        *,
        horizon: int = DEFAULT_HORIZON,
        render_mode: str | None = None,
        params: Any = None,
        narrate: Narrate | None = None,
    ) -> None:
        forks.note_world()
        if render_mode is not None:
            arguments.choice("render_mode", render_mode, RENDER_MODES)
        self.world = checked_world(world)
        self.schema: Schema = world.schema
        self.params = checked_params(world, params)
        self.horizon = arguments.whole_number("horizon", horizon, 1, MAX_HORIZON)
        self.render_mode = render_mode
        self.narrate = arguments.function("narrate", narrate)
        self.observation_space = observation_space(self.schema)
        self.action_space = gymnasium.spaces.Discrete(len(self.schema.actions))
        self._n_actions = len(self.schema.actions)
        self._names = tuple(field.name for field in self.schema.fields)
        self._categories = tuple(field.name for field in self.schema.fields if field.is_category)
        self._numbers = tuple(field.name for field in self.schema.fields if not field.is_category)
        self._signals = tuple((signal.name, signal.labels) for signal in self.schema.signals)
        self._executor: Executor | None = None
        self._frame: Frame | None = None
        self._facts: Facts | None = None  # of the case at hand, once they are asked for
        self._seen_observation: Observation | None = None  # kept only for `narrate`
        self._steps = 0
        self._ended = False
        self._history = rendering.History()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Start an episode.

        Args:
            seed: of this episode and those after it; None continues the stream of the last seed.
            options: none are known, and none are looked at.

        Returns:
            The first observation; info with the keys of `step` and no events.
        """
        forks.refuse_forked()
        super().reset(seed=seed, options=options)
        if self._executor is None:
            run = IntegerRun if isinstance(self.world, IntegerWorld) else CompiledRun
            self._executor = run(self.world, self.params)
        self._frame = frame = self._executor.start(key_data_of(self.np_random))
        self._facts = None
        self._steps, self._ended = 0, False
        observation, info = self._observation(frame), self._info(frame)
        if self.narrate is not None:
            self._tell(None, observation, info)
        if self.render_mode is not None:
            self._history.begin(observation, info)
            if self.render_mode == "human":
                self.render()
        return observation, info

    def step(self, action: int) -> tuple[Observation, float, bool, bool, Info]:
        """Decide the case at hand.

        Args:
            action: code of one of `schema.actions`.

        Returns:
            Observation of the next case, or of the same one if the action did not close it; reward; False, for these
            worlds never end; whether the horizon is reached; info: `decision_id`, `feedback`, `boundary`, `regime` (in
            which the action was taken), `action_mask` ([n_actions] i8, of the next decision), the signals of the
            schema, and `text` where there is a narrator.

        Raises:
            ValueError: if `action` is none of the actions.
            gymnasium.error.ResetNeeded: before the first `reset` and after the end of an episode.
        """
        if self._executor is None or self._frame is None or self._ended:
            raise gymnasium.error.ResetNeeded("`step` needs a running episode; call `reset` first.")
        if type(action) is not int:
            action = self._whole(action)
        if not 0 <= action < self._n_actions:
            self._refuse(action)
        self._frame = frame = self._executor.step(action)
        self._facts = None
        self._steps = steps = self._steps + 1
        truncated = steps >= self.horizon
        self._ended = truncated or frame.terminated
        observation, info = self._observation(frame), self._info(frame)
        if self.narrate is not None:
            self._tell(action, observation, info)
        if self.render_mode is not None:
            self._history.add(self.schema.actions[action], frame.reward, info, observation)
            if self.render_mode == "human":
                self.render()
        return observation, frame.reward, frame.terminated, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """[n_actions] bool: False where an action is impossible now; taken anyway, it only costs its price."""
        return np.array(self._seen().mask, np.bool_)

    def render(self) -> Any:
        """The case at hand and what came of earlier decisions: as text ("ansi"), picture ("rgb_array") or printed.

        Returns:
            str; [height, width, 3] u8; or None when it was printed or there is no `render_mode`.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("`render` shows nothing without a `render_mode`; give one to `gymnasium.make`.")
            return None
        self._seen()
        scene = rendering.Scene(self.schema, self._history, self.horizon)
        if self.render_mode == "rgb_array":
            return rendering.picture(scene)
        text = rendering.text(scene)
        if self.render_mode == "ansi":
            return text
        print(text)
        return None

    @property
    def state(self) -> Any:
        """State of the world before the coming decision: its pytree of arrays."""
        self._seen()
        return measurement(self.world).state(self._words())

    @functools.cached_property
    def solution(self) -> Solution | None:
        """Exact values of the world under these params; the first call takes its time."""
        return self.world.solve(self.params)

    def expected_rewards(self) -> NDArray[np.float64]:
        """[n_actions] f64: expected total reward of each action now, its delayed outcome included, all hidden known."""
        return self._measured().expected_rewards.copy()

    def action_values(self) -> NDArray[np.float64]:
        """[n_actions] f64: value of each action, later consequences included, all hidden known."""
        return self._measured().action_values.copy()

    def oracle_action(self) -> int:
        """The action of greatest value with all hidden known, the first of equals."""
        return int(np.argmax(self._measured().action_values))

    def audit(self) -> dict[str, int]:
        """Facts of the case at hand for measurement, such as the sensitive `group`."""
        return dict(self._measured().audit)

    def regime_level(self) -> float:
        """Regime of the coming decision: 0 = the first set of rules, 1 = the second."""
        return self._seen().coming_regime

    def _measured(self) -> Facts:
        self._seen()
        if self._facts is None:
            self._facts = measurement(self.world).facts(self._words(), self.params, self.solution)
        return self._facts

    def _words(self) -> Any:
        assert self._executor is not None  # `_seen` has been asked
        return self._executor.words

    def _seen(self) -> Frame:
        if self._frame is None:
            raise gymnasium.error.ResetNeeded("the environment has no case at hand; call `reset` first.")
        return self._frame

    def _whole(self, action: Any) -> int:
        return int(action) if self.action_space.contains(action) else self._refuse(action)

    def _refuse(self, action: Any) -> NoReturn:
        known = ", ".join(f"{code} = {label}" for code, label in enumerate(self.schema.actions))
        raise ValueError(f"`action` must be one of {known}; got {action!r} of type {type(action).__name__}.")

    def _tell(self, action: int | None, observation: Observation, info: Info) -> None:
        assert self.narrate is not None
        before = None if action is None else self._seen_observation
        info["text"] = self.narrate(before, action, info, observation, self._steps)
        self._seen_observation = dict(observation)

    def _observation(self, frame: Frame) -> Observation:
        """A new observation, which shares nothing with the one before."""
        values = dict(zip(self._categories, np.array(frame.codes, np.int64), strict=True))
        if not self._numbers:
            return values
        values |= zip(self._numbers, np.array(frame.numbers, np.float32)[:, None], strict=True)
        return {name: values[name] for name in self._names}

    def _info(self, frame: Frame) -> Info:
        info: Info = {
            "decision_id": frame.decision_id,
            "feedback": frame.feedback,
            "boundary": frame.boundary,
            "regime": frame.regime,
            "action_mask": np.array(frame.mask, np.int8),  # as `Discrete.sample` takes it
        }
        for (name, labels), code in zip(self._signals, frame.signals, strict=True):
            info[name] = labels[code]
        return info


def observation_space(schema: Schema) -> gymnasium.spaces.Dict:
    """Space of one observation: Discrete per category, Box of shape (1,) per number."""
    return gymnasium.spaces.Dict([(field.name, _space(field)) for field in schema.fields])


def checked_params(world: World, params: Any, n: int | None = None) -> Any:
    """`params`, or those of the world for None.

    Args:
        world: has params of the right shapes and types.
        params: to be checked.
        n: leading axis that every leaf has beside, or None.

    Raises:
        TypeError: another structure or type of number.
        ValueError: another shape, a number that is not finite, or one that the world refuses (`ChecksParams`).
    """
    if params is None:
        params = world.params
    wanted, found = jax.tree.structure(world.params), jax.tree.structure(params)
    if found != wanted:  # type: ignore[operator]
        raise TypeError(f"`params` must be a pytree like `world.params`, {wanted}, got {found}.")
    lead = () if n is None else (n,)
    for (path, like), leaf in zip(jax.tree.leaves_with_path(world.params), jax.tree.leaves(params), strict=True):
        name, array = "params" + jax.tree_util.keystr(path), np.asarray(leaf)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"`{name}` must be finite numbers, got {array[~np.isfinite(array)][0]}.")
        if array.dtype != like.dtype:
            raise TypeError(f"`{name}` must be {like.dtype}, got {array.dtype}.")
        if array.shape != (*lead, *like.shape):
            raise ValueError(f"`{name}` must have shape {(*lead, *like.shape)}, got {array.shape}.")
    if isinstance(world, ChecksParams):
        world.check(params)
    return params


def checked_world(world: World) -> World:
    """`world`, which has all that a `World` has.

    Raises:
        TypeError: if it is something else.
    """
    missing = [part for part in WORLD_PARTS if not hasattr(world, part)]
    if missing or isinstance(world, type):
        kind = f"the class {world.__name__}" if isinstance(world, type) else f"an object of type {type(world).__name__}"
        lacks = f" without `{missing[0]}`" if missing else ""
        raise TypeError(
            f"`world` must be a World (habitus.envs.contract), got {kind}{lacks}; of an environment it is "
            "`env.unwrapped.world`."
        )
    return world


def _space(field: Field) -> gymnasium.spaces.Space[Any]:
    if field.is_category:
        return gymnasium.spaces.Discrete(len(field.labels))
    return gymnasium.spaces.Box(np.float32(field.low), np.float32(field.high), (1,), np.float32)
