"""A player that takes notes: what a record holds of each step and a compiled run does not return by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..envs.contract import Seen, Solution, World
from ..envs.rollout import Player, Turn

Array = jax.Array
Rate = Callable[[Any, Any], Array]
"""(player, what it carries) -> [] f32, its present rate of random actions."""


class Notes(NamedTuple):
    """One value per step of an episode of T steps in a world with M feedback slots.

    Attributes:
        best: [T] f32, the largest expected reward that was on offer.
        epsilon: [T] f32, rate of random actions; [0] where the player declares none.
        decision_id: [T] i32, id under which the outcome of the step will arrive; [0] where M = 0.
        feedback_id: [T, M] i32, decisions whose outcome arrived.
        feedback_value: [T, M] f32, the outcomes.
    """

    best: Array
    epsilon: Array
    decision_id: Array
    feedback_id: Array
    feedback_value: Array


class Noted(NamedTuple):
    """What a player carries, the notes about it, and the observation that it decided on last."""

    carried: Any
    notes: Notes
    observation: dict[str, Array]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class NotingPlayer:
    """Plays as another player does and takes notes; `noting` makes it.

    Nothing is learnt from the last step, so that what the last decision rested on can be read from the carry.

    Attributes:
        shared: the player without the fields that differ between episodes.
        own: those fields, [N, ...] each.
        solution: exact values for what is on offer, or None where the world has no need of them.
        n_steps: T.
        n_slots: M of the world.
        epsilon: tells the player's rate of random actions, or None.
        world, params: what it is told by the rollout.
    """

    shared: Any
    own: Mapping[str, Any]
    solution: Solution | None
    n_steps: int = dataclasses.field(metadata={"static": True})
    n_slots: int = dataclasses.field(metadata={"static": True})
    epsilon: Rate | None = dataclasses.field(default=None, metadata={"static": True})
    world: World | None = dataclasses.field(default=None, metadata={"static": True})
    params: Any = None

    @property
    def per_episode(self) -> tuple[str, ...]:
        """Fields with one entry per episode."""
        return ("own",)

    @property
    def rest_every(self) -> int:
        """Steps between two rests of the player."""
        return int(getattr(self.shared, "rest_every", 0))

    def told(self, world: World, params: Any) -> NotingPlayer:
        """The same player, which can measure what is on offer."""
        return dataclasses.replace(self, world=world, params=params)

    def initial(self, observation: dict[str, Array], key: Array) -> Noted:
        """The player's carry and empty notes."""
        n, m = self.n_steps, self.n_slots
        notes = Notes(
            best=jnp.zeros(n, jnp.float32),
            epsilon=jnp.zeros(n if self.epsilon else 0, jnp.float32),
            decision_id=jnp.zeros(n if m else 0, jnp.int32),
            feedback_id=jnp.zeros((n, m), jnp.int32),
            feedback_value=jnp.zeros((n, m), jnp.float32),
        )
        return Noted(self._player().initial(observation, key), notes, observation)

    def act(self, carry: Noted, turn: Turn) -> tuple[Array, Noted]:
        """The player's action."""
        assert self.world is not None  # `told`
        player, notes = self._player(), carry.notes
        action, carried = player.act(carry.carried, turn)
        on_offer = self.world.expected_rewards(turn.state, self.params, self.solution)
        notes = notes._replace(best=_put(notes.best, jnp.max(on_offer), turn.step))
        if self.epsilon is not None:
            notes = notes._replace(epsilon=_put(notes.epsilon, self.epsilon(player, carried), turn.step))
        return action, Noted(carried, notes, turn.observation)

    def learn(self, carry: Noted, seen: Seen) -> Noted:
        """What the player learns from the step, unless it is the last."""
        player, notes, outcome = self._player(), carry.notes, seen.outcome
        if self.n_slots:
            notes = notes._replace(
                decision_id=_put(notes.decision_id, outcome.decision_id, seen.step),
                feedback_id=_put(notes.feedback_id, outcome.feedback_id, seen.step),
                feedback_value=_put(notes.feedback_value, outcome.feedback_value, seen.step),
            )
        is_last = seen.step == self.n_steps - 1
        carried = jax.lax.cond(is_last, lambda c: c, lambda c: player.learn(c, seen), carry.carried)
        return Noted(carried, notes, carry.observation)

    def rest(self, carry: Noted, n_done: Array) -> Noted:
        """What is rare, unless the run is over."""
        player: Any = self._player()
        is_over = n_done == self.n_steps
        carried = jax.lax.cond(is_over, lambda c: c, lambda c: player.rest(c, n_done), carry.carried)
        return carry._replace(carried=carried)

    def _player(self) -> Player:
        player = dataclasses.replace(self.shared, **self.own)
        tell = getattr(player, "told", None)
        told: Player = player if tell is None else tell(self.world, self.params)
        return told


def noting(
    player: Any, *, solution: Solution | None, n_steps: int, n_slots: int, epsilon: Rate | None = None
) -> NotingPlayer:
    """A player, a registered frozen dataclass, that takes notes of `n_steps` steps; see `NotingPlayer`."""
    names = tuple(getattr(player, "per_episode", ()))
    return NotingPlayer(
        shared=dataclasses.replace(player, **dict.fromkeys(names)),
        own={name: getattr(player, name) for name in names},
        solution=solution,
        n_steps=n_steps,
        n_slots=n_slots,
        epsilon=epsilon,
    )


def _put(values: Array, value: Array, step: Array) -> Array:
    put: Array = jax.lax.dynamic_update_index_in_dim(values, value.astype(values.dtype), step, 0)
    return put
