"""The references of a study as pure players for compiled runs, and the filtering oracle as an agent.

They do what the agents of the same kinds do step by step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np

from ..agents.base import Transition
from ..envs.adapter import WorldEnv
from ..envs.contract import NO_DECISION, Filter, Outcome, Seen
from ..envs.regimes import LEVELS
from ..envs.rollout import Turn

Array = jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ScriptedPlayer:
    """Takes `actions`, [N, T] i32, whatever it sees: what an agent does that looks at nothing."""

    actions: Array

    @property
    def per_episode(self) -> tuple[str, ...]:
        """Every episode has its own actions."""
        return ("actions",)

    def initial(self, observation: dict[str, Array], key: Array) -> tuple[()]:
        """Nothing to carry."""
        return ()

    def act(self, carry: tuple[()], turn: Turn) -> tuple[Array, tuple[()]]:
        """The action of this step."""
        return self.actions[turn.step], carry

    def learn(self, carry: tuple[()], seen: Seen) -> tuple[()]:
        """Nothing."""
        return carry


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PolicyPlayer:
    """Follows a pure function of the observation, such as expert rules."""

    policy: Callable[[Mapping[str, Any]], Array] = dataclasses.field(metadata={"static": True})

    def initial(self, observation: dict[str, Array], key: Array) -> tuple[()]:
        """Nothing to carry."""
        return ()

    def act(self, carry: tuple[()], turn: Turn) -> tuple[Array, tuple[()]]:
        """What the policy says."""
        return jnp.asarray(self.policy(turn.observation)).astype(jnp.int32), carry

    def learn(self, carry: tuple[()], seen: Seen) -> tuple[()]:
        """Nothing."""
        return carry


class FilterAgent:
    """The filtering oracle step by step: knows the dynamics and the rules in force, infers what is hidden by Bayes.

    It is lent what agents may not see, the world itself, and bounds what can be reached by whoever has to learn.

    Args:
        env: one of our worlds.
        seed: accepted for uniformity; nothing is drawn.

    Raises:
        TypeError: another environment, whose dynamics nobody can tell it.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, seed: int = 0) -> None:
        bare = env.unwrapped
        if not isinstance(bare, WorldEnv):
            raise TypeError(f"`env` must be one of the worlds of this package, got {env}; a filter needs its dynamics.")
        self._env, self._belief = bare, None
        world_filter: Filter = bare.world.filter(bare.solution)
        self._initial = jax.jit(world_filter.initial)
        self._values = jax.jit(world_filter.values)
        self._update = jax.jit(world_filter.update)
        state = jax.eval_shape(bare.world.initial, jax.random.key(0), bare.params)
        _, outcome = jax.eval_shape(bare.world.step, state, jnp.int32(0), jax.random.key(0), bare.params)
        self._n_slots = int(outcome.feedback_id.shape[0])
        self._codes = {s.name: {label: i for i, label in enumerate(s.labels)} for s in bare.schema.signals}
        self._level, self._n_done = np.int32(0), 0

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """The first belief of an episode."""
        self._belief, self._n_done = self._initial(self._arrays(observation), self._env.params), 0

    def act(self, observation: Any) -> int:
        """The action of best value over the belief, the first of equals."""
        self._level = np.int32(round(self._env.regime_level() * LEVELS))
        values = self._values(self._belief, self._arrays(observation), self._level, self._env.params)
        return int(jnp.argmax(values))

    def observe(self, transition: Transition) -> None:
        """The belief after a step."""
        info = transition.info
        seen = Seen(
            observation=self._arrays(transition.observation),
            action=np.int32(transition.action),  # type: ignore[arg-type]  # becomes an array where it is compiled
            outcome=self._outcome(transition),
            following=self._arrays(transition.next_observation),
            step=np.int32(self._n_done),  # type: ignore[arg-type]
            level=self._level,  # type: ignore[arg-type]
            mask=np.asarray(info["action_mask"], np.bool_),  # type: ignore[arg-type]
        )
        self._belief = self._update(self._belief, seen, self._env.params)
        self._n_done += 1

    def _outcome(self, transition: Transition) -> Outcome:
        info = transition.info
        ids, values = np.full(self._n_slots, NO_DECISION, np.int32), np.zeros(self._n_slots, np.float32)
        for slot, (identity, value) in enumerate(info["feedback"]):
            ids[slot], values[slot] = identity, value
        numbers: dict[str, Any] = {
            "reward": np.float32(transition.reward),
            "terminated": np.bool_(transition.terminated),
            "boundary": np.bool_(info["boundary"]),
            "decision_id": np.int32(info["decision_id"]),
            "feedback_id": ids,
            "feedback_value": values,
            "signals": {name: np.int32(codes[info[name]]) for name, codes in self._codes.items()},
        }
        return Outcome(**numbers)

    def _arrays(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        return {
            field.name: np.int32(observation[field.name])
            if field.is_category
            else np.asarray(observation[field.name], np.float32)
            for field in self._env.schema.fields
        }
