"""Many copies of a world as one `gymnasium.vector.VectorEnv`: one compiled step for all of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from . import arguments
from .adapter import (
    DEFAULT_HORIZON,
    MAX_HORIZON,
    Info,
    Narrate,
    Observation,
    checked_params,
    checked_world,
    observation_space,
)
from .contract import Schema, Solution, World
from .episode import KEY_WORDS, key_data_of
from .sub_envs import (
    PER_SUB_ENV,
    RESET_MASK,
    Facts,
    Streams,
    facts,
    facts_by_own,
    plain,
    reset_mask,
    rows_of,
    solutions_of,
)
from .vector_calls import Block, Calls, Running, block_of, calls, nothing_running, only_of
from .words import label_table, layout

INFO_NAMES = ("decision_id", "feedback_id", "feedback_value", "boundary", "regime", "action_mask")


class WorldVectorEnv(gymnasium.vector.VectorEnv[Observation, Any, Any]):
    """N episodes of a world, stepped together.

    For one seed it shows the same bytes as `gymnasium.vector.SyncVectorEnv` over N scalar environments, in every
    autoreset mode: sub-environment i is seeded with seed + i, and its later episodes continue its own stream. The state
    stays on the device; a step is one compiled call, whatever the number of environments. On a processor the hand-over
    to a thread is spared by `jax.config.update("jax_cpu_enable_async_dispatch", False)` before JAX does anything.

    ## Observations and infos
    `Dict` of arrays, one per field: [N] i64 codes, [N, 1] f32 numbers. Every key of `infos` has a mask `_key` beside
    it, as in Gymnasium's own vector environments:

    | Key | Type | |
    | --- | --- | --- |
    | `decision_id` | [N] i64 | -1 where nothing of the decision is delayed |
    | `feedback_id`, `feedback_value` | [N, M] i32, f32 | delayed outcomes that arrived, oldest first; -1 and 0 in \
empty slots. The scalar environment has the same as a list `feedback` of pairs |
    | `boundary` | [N] bool | an encounter (a ticket, an application) ended |
    | `regime` | [N] f64 | in which the action was taken |
    | `action_mask` | [N, n_actions] i8 | of the next decision |
    | each signal | [N] object | label |
    | `text` | dict of [N] object | with `narrate` only |
    | `final_obs`, `final_info` | [N] object, dict | SAME_STEP only, where an episode ended |

    ## Autoreset
    `autoreset_mode` is NEXT_STEP (default; the step after the end resets, ignores the action and pays 0), SAME_STEP
    (the observation is already that of the new episode, the last one is in `infos["final_obs"]`), or DISABLED (the user
    resets with `reset(options={"reset_mask": [N] bool})`).

    ## Wrappers
    Those of `gymnasium.wrappers.vector` work. `NormalizeObservation` needs a Box: wrap
    `NormalizeObservation(FlattenObservation(env))`. stable-baselines3 takes
    `habitus.agents.sb3_vec_env.GymnasiumVecEnv` over SAME_STEP.

    ## Parameters
    With `per_env_params` every leaf of `params` has a leading axis [N], so that one call runs a sweep over
    difficulties, schedules or opponents of equal worlds (see `capacity`):
    `params=jax.tree.map(lambda *leaves: jnp.stack(leaves), easy.params, medium.params, hard.params)`.

    Measurement, as in the scalar environment and never for agents: `state`, `solutions`, `expected_rewards()`,
    `action_values()`, `oracle_actions()`, `audit()`, `regime_levels()`; each sub-environment by the exact values of its
    own params, which are worked out when they are first asked for, once for equal params.

    Args:
        world: the dynamics; equal worlds share one compiled step.
        num_envs: number of sub-environments.
        horizon: steps after which an episode is truncated.
        autoreset_mode: an `AutoresetMode` or its value.
        params: parameters in place of `world.params`.
        per_env_params: whether `params` has an entry per sub-environment.
        narrate: makes `infos["text"]`, one sub-environment after another, which takes its time.
        render_mode: None; pictures are made by the scalar environment.

    Raises:
        TypeError, ValueError: an argument is wrong; the message names it, for `params` with its leaf.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        world: World,
        num_envs: int = 1,
        *,
        horizon: int = DEFAULT_HORIZON,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        params: Any = None,
        per_env_params: bool = False,
        narrate: Narrate | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise ValueError(
                f"`render_mode` must be None for a vector environment, got {render_mode!r}; give "
                'vectorization_mode="sync" to `gymnasium.make_vec` to render.'
            )
        self.num_envs = arguments.whole_number("num_envs", num_envs, 1, 2**24)
        self.horizon = arguments.whole_number("horizon", horizon, 1, MAX_HORIZON)
        modes = tuple(mode.value for mode in AutoresetMode)
        mode = autoreset_mode.value if isinstance(autoreset_mode, AutoresetMode) else autoreset_mode
        self.autoreset_mode = AutoresetMode(arguments.choice("autoreset_mode", mode, modes))
        self.metadata = type(self).metadata | {"autoreset_mode": self.autoreset_mode}
        self.world = checked_world(world)
        self.schema: Schema = world.schema
        self.per_env_params = arguments.switch("per_env_params", per_env_params)
        self.params = checked_params(world, params, self.num_envs if per_env_params else None)
        self.narrate = arguments.function("narrate", narrate)
        self.render_mode = None
        self.single_observation_space = observation_space(self.schema)
        self.single_action_space = gymnasium.spaces.Discrete(len(self.schema.actions))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._indices = range(self.num_envs)
        self._n_actions = len(self.schema.actions)
        self._parts = layout(world)
        self._labels = [label_table(group, self.schema) for group in self._parts.groups]
        self._info_names = (*INFO_NAMES, *self._parts.signals)
        self._mask_names = tuple(f"_{name}" for name in self._info_names)
        self._streams = Streams(self.num_envs)
        self._running: Running | None = None
        self._block: Block | None = None  # what was shown last
        self._steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickled copy needs to continue with the same bytes; compiled calls are found again by the world."""
        return {name: part for name, part in self.__dict__.items() if name != "_calls"}

    @functools.cached_property
    def _calls(self) -> Calls:
        return calls(self.world, self.per_env_params)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Start episodes.

        Args:
            seed: sub-environment i gets seed + i, or the i-th of a list; None continues each one's stream.
            options: `reset_mask`, [N] bool array, resets only the sub-environments where it is True.

        Returns:
            Observations of all sub-environments, infos of those that were reset.

        Raises:
            TypeError, ValueError: the seed or the mask does not fit.
            gymnasium.error.ResetNeeded: a mask leaves out a sub-environment that was never reset.
        """
        mask = reset_mask(options, self.num_envs, is_first=self._block is None)
        self._streams.seed(seed, mask)
        block = self._restart(mask)
        self._block = block
        infos = self._infos(block)
        if self.narrate is not None:
            self._narrate(infos, [None] * self.num_envs, block)
        return self._observations(block), infos if mask.all() else only_of(infos, mask)

    def step(
        self, actions: ArrayLike
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """One decision of every sub-environment.

        Args:
            actions: [N] whole numbers in [0, n_actions).

        Returns:
            Observations, [N] f64 rewards, [N] bool terminated and truncated, infos.

        Raises:
            ValueError: the actions have another shape or are none of the actions.
            gymnasium.error.ResetNeeded: before the first `reset`, or, with DISABLED, where an episode has ended.
        """
        if self._running is None or self._block is None:
            raise gymnasium.error.ResetNeeded("`step` needs running episodes; call `reset` first.")
        chosen = self._checked(actions)
        resetting = self._ended if self._ended.any() else None
        if resetting is not None and self.autoreset_mode is AutoresetMode.DISABLED:
            raise gymnasium.error.ResetNeeded(
                f"`step` needs running episodes, but those of {np.flatnonzero(resetting).tolist()} have ended; call "
                f'`reset(options={{"{RESET_MASK}": ...}})`.'
            )
        before = self._block
        self._running, words = self._calls.step(self._running, chosen, self.params)
        block = block_of(words, self._parts, self.num_envs)
        self._steps += 1
        rewards = block.floats[0].astype(np.float64)
        terminated = block.flags[1] != 0
        truncated = self._steps >= self.horizon
        if resetting is not None:
            self._block = block
            block = self._restart(resetting)
            rewards[resetting] = 0.0
            terminated[resetting] = truncated[resetting] = False
        self._ended = terminated | truncated
        infos = self._infos(block)
        if self.narrate is not None:
            actions_seen = [None if resetting is not None and resetting[i] else int(chosen[i]) for i in self._indices]
            self._narrate(infos, actions_seen, block, before)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._ended.any():
            block, infos = self._restarted(block, infos)
        self._block = block
        return self._observations(block), rewards, terminated, truncated, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """[N, n_actions] bool: False where an action is impossible now; taken anyway, it only costs its price."""
        return self._shown().mask.astype(np.bool_)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What the attribute or the method `name` of a scalar environment has for each sub-environment.

        What all of them share, and what is none of `PER_SUB_ENV`, counts for each.
        """
        found = getattr(self, PER_SUB_ENV.get(name, name))
        found = found(*args, **kwargs) if callable(found) else found
        is_shared = name not in PER_SUB_ENV or name.endswith("_space") or (name == "params" and not self.per_env_params)
        return (found,) * self.num_envs if is_shared else rows_of(found, self.num_envs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """The attribute `name` of each sub-environment."""
        return self.call(name)

    @property  # type: ignore[misc]  # read only, as SyncVectorEnv's
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """Generators of the sub-environments."""
        return self._streams.generators

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """Seeds of the sub-environments."""
        return self._streams.seeds

    @property
    def state(self) -> Any:
        """States of the world before the coming decisions: its pytree with a leading axis [N]."""
        self._shown()
        return self._calls.state(self._running)

    @functools.cached_property
    def solutions(self) -> tuple[Solution | None, ...]:
        """Exact values of the world under the params of each sub-environment; the first call takes its time."""
        if self.per_env_params:
            return solutions_of(self.world, self.params, self.num_envs)
        return (self.world.solve(self.params),) * self.num_envs

    @property
    def solution(self) -> Solution | None:
        """The solution that all sub-environments share.

        Raises:
            ValueError: they have different ones.
        """
        first, *others = self.solutions
        if any(other is not first for other in others):
            raise ValueError("`solution` is one for all, but the `params` of these differ in it; read `solutions`.")
        return first

    def expected_rewards(self) -> NDArray[np.float64]:
        """[N, n_actions] f64: expected total reward of each action now, all hidden known."""
        return self._facts()[0]

    def action_values(self) -> NDArray[np.float64]:
        """[N, n_actions] f64: value of each action, later consequences included, all hidden known."""
        return self._facts()[1]

    def oracle_actions(self) -> NDArray[np.int64]:
        """[N] i64: the action of greatest value with all hidden known, the first of equals."""
        best: NDArray[np.int64] = np.argmax(self._facts()[1], axis=1).astype(np.int64)
        return best

    def audit(self) -> dict[str, NDArray[np.int64]]:
        """[N] i64 each: facts of the cases at hand for measurement."""
        return self._facts()[2]

    def regime_levels(self) -> NDArray[np.float64]:
        """[N] f64: regime of the coming decisions."""
        return self._facts()[3]

    def _facts(self) -> Facts:
        if self.per_env_params:
            return facts_by_own(self._calls, self.state, self.params, self.solutions)
        return facts(self._calls, self.state, self.params, self.solution)

    def _shown(self) -> Block:
        if self._block is None:
            raise gymnasium.error.ResetNeeded("the environment has no cases at hand; call `reset` first.")
        return self._block

    def _checked(self, actions: ArrayLike) -> NDArray[np.int32]:
        chosen = np.asarray(actions)
        fits = chosen.shape == (self.num_envs,) and chosen.dtype.kind in "iu"
        if not fits or chosen.min() < 0 or chosen.max() >= self._n_actions:
            known = ", ".join(f"{code} = {label}" for code, label in enumerate(self.schema.actions))
            raise ValueError(f"`actions` must be {self.num_envs} whole numbers of {known}; got {actions!r}.")
        return chosen.astype(np.int32)

    def _restart(self, mask: NDArray[np.bool_]) -> Block:
        """Begin the next episode of masked sub-environments; what all of them show now."""
        key_data = np.zeros((self.num_envs, KEY_WORDS), np.uint32)
        for i in np.flatnonzero(mask).tolist():
            key_data[i] = key_data_of(self._streams.generators[i])
        running = nothing_running(self._parts, self.num_envs) if self._running is None else self._running
        self._running, words = self._calls.restart(running, key_data, mask, self.params)
        fresh = block_of(words, self._parts, self.num_envs)
        self._steps[mask] = 0
        self._ended = self._ended & ~mask
        return fresh if self._block is None or mask.all() else self._block.replaced(fresh, mask)

    def _restarted(self, block: Block, infos: Info) -> tuple[Block, Info]:
        """SAME_STEP: begin new episodes where they ended, and keep what was last."""
        ended = self._ended.copy()
        self._block = block
        last = self._observations(block)
        final_obs = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(ended).tolist():
            final_obs[i] = {name: values[i] for name, values in last.items()}
        final_info = only_of(infos, ended)
        block = self._restart(ended)
        self._ended = np.zeros(self.num_envs, np.bool_)
        text = infos.get("text"), infos.get("_text")
        infos = self._infos(block)
        if self.narrate is not None:
            infos["text"], infos["_text"] = only_of(text[0], ~ended), ~ended  # type: ignore[arg-type]
            starting: list[int | None] = [None] * self.num_envs
            self._narrate(infos, starting, block, only=ended)
        infos |= {"final_obs": final_obs, "_final_obs": ended, "final_info": final_info, "_final_info": ended.copy()}
        return block, infos

    def _observations(self, block: Block) -> Observation:
        values: Observation = dict(zip(self._parts.codes, block.codes[1:].astype(np.int64), strict=True))
        if self._parts.numbers:
            numbers = block.floats[2:].copy()[:, :, None]
            values |= zip(self._parts.numbers, numbers, strict=True)
            values = {field.name: values[field.name] for field in self.schema.fields}
        return values

    def _infos(self, block: Block) -> Info:
        values: list[Any] = [
            block.codes[0].astype(np.int64),
            block.feedback_id.copy(),
            block.feedback_value.copy(),
            block.flags[0] != 0,
            block.floats[1].astype(np.float64),
            block.mask.copy(),
        ]
        for table, entries in zip(self._labels, block.signals, strict=True):
            values.extend(table.take(entries, axis=0).T)
        infos: Info = dict(zip(self._info_names, values, strict=True))
        infos |= zip(self._mask_names, np.ones((len(values), self.num_envs), np.bool_), strict=True)
        return infos

    def _narrate(
        self,
        infos: Info,
        actions: Sequence[int | None],
        block: Block,
        before: Block | None = None,
        only: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add the text of sub-environments to infos; an action of None is a reset."""
        assert self.narrate is not None
        after_all = self._observations(block)
        before_all = None if before is None else self._observations(before)
        shown_all = {name: values for name, values in infos.items() if name != "text" and not name.startswith("_")}
        for i in self._indices:
            if only is not None and not only[i]:
                continue
            info = {name: plain(values[i]) for name, values in shown_all.items()}
            ids, values = info.pop("feedback_id"), info.pop("feedback_value")
            info["feedback"] = [pair for pair in zip(ids.tolist(), values.tolist(), strict=True) if pair[0] >= 0]
            after = {name: part[i] for name, part in after_all.items()}
            action = actions[i]
            shown = None if action is None or before_all is None else {n: part[i] for n, part in before_all.items()}
            self._add_info(infos, {"text": self.narrate(shown, action, info, after, int(self._steps[i]))}, i)
