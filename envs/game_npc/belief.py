"""The filtering oracle of GameNPC: Bayes over the style of every player, from what the NPC sees and nothing else."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import draws, visitors
from ..arithmetic import ARRAYS
from ..contract import Seen, Solution
from . import rules
from .rules import AGREED, CENTS, FLED, GOES_ON, N_MOVES, N_SITUATIONS, PARTED
from .solution import position, results, style_chances

Array = jax.Array
ONE = float(draws.HALF_ONE)


class Belief(NamedTuple):
    """What is believed of each player."""

    styles: Array  # [capacity, S] f32, chance of each style; rows sum to 1
    last_step: Array  # [capacity] i32, step at which each left last; visitors.NEVER before


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StyleFilter:
    """Exact posterior of the styles (`contract.Filter`), acting by Q-MDP on the exact values.

    A step's evidence is everything of it that shows: the move if it was seen, or else the moves that agree with where
    both stand and how they are now, or with the ending and its reward; and whether a player agreed to peace. A style
    lasts from visit to visit but for the drift, and for a redraw at a change of rules.

    Attributes:
        solution: of the world's params.
        capacity: players that there is room for.
        n_styles: hidden styles.
        forgets: starts anew with every encounter. Without the players' numbers in the observation nothing else is left.
    """

    solution: Solution
    capacity: int = dataclasses.field(metadata={"static": True})
    n_styles: int = dataclasses.field(metadata={"static": True})
    forgets: bool = dataclasses.field(metadata={"static": True})

    def initial(self, observation: dict[str, Array], params: Any) -> Belief:
        """Every player has every style alike."""
        styles = jnp.broadcast_to(self._fresh(), (self.capacity, self.n_styles))
        return Belief(styles, jnp.full(self.capacity, visitors.NEVER, jnp.int32))

    def update(self, belief: Belief, seen: Seen, params: Any) -> Belief:
        """Belief after a step. Evidence that is impossible under every style leaves it as it was."""
        player, following = self._player(seen.observation), self._player(seen.following)
        prior = belief.styles[player]
        joint = prior * self._likelihood(seen, params)
        total = jnp.sum(joint)
        posterior = jnp.where(total > 0, joint / jnp.where(total > 0, total, 1), prior)
        ended = seen.outcome.boundary
        last_step = belief.last_step.at[player].set(jnp.where(ended, seen.step, belief.last_step[player]))
        styles = belief.styles.at[player].set(posterior)
        arriving = self._arriving(styles[following], last_step[following], seen.step + 1, params)
        return Belief(styles.at[following].set(jnp.where(ended, arriving, styles[following])), last_step)

    def values(self, belief: Belief, observation: dict[str, Array], level: Array, params: Any) -> Array:
        """[8] f32: value of each action, averaged over the belief in the player at hand."""
        at = position(
            jnp.arange(self.n_styles, dtype=jnp.int32),
            observation["terrain"],
            observation["distance"],
            observation["player_hidden"],
            observation["npc_health"] + 1,
            observation["player_health"] + 1,
        )
        solved = jnp.sum(self.solution.levels < level, dtype=jnp.int32)
        return belief.styles[self._player(observation)] @ self.solution.values[solved, at]

    def _likelihood(self, seen: Seen, params: Any) -> Array:
        """[S] f32: chance of all that showed in a step, by style, up to a factor that is the same for all."""
        before, after, outcome = seen.observation, seen.following, seen.outcome
        ending, move = outcome.signals["ending"], outcome.signals["move"]
        npc_health, player_health = before["npc_health"] + 1, before["player_health"] + 1
        context = before["distance"] * 2 + before["player_hidden"]
        situation, low = before["terrain"] * 6 + context, (player_health <= rules.LOW_HEALTH).astype(jnp.int32)
        tables = rules.fight_tables()
        first = ((seen.level * N_SITUATIONS + situation) * len(rules.ACTIONS) + seen.action) * N_MOVES
        entries = first + jnp.arange(N_MOVES, dtype=jnp.int32)
        packed = jnp.asarray(tables.blows.array)[entries]
        hit = jnp.asarray(tables.hits.array)[entries] / ONE
        blow = (packed & rules.THRESHOLD_MASK) / ONE
        price = rules.PRICE_CENTS + rules.SCOUT_CENTS * (packed >> rules.SCOUT_BIT & 1)
        cents = jnp.round(outcome.reward * CENTS).astype(jnp.int32) + price  # of the fight alone

        stands = ((packed >> rules.DISTANCE_BIT & 3) == after["distance"]) & (
            (packed >> rules.HIDDEN_BIT & 1) == after["player_hidden"]
        )
        parting = rules.PARTING / ONE
        by_move = jnp.zeros(N_MOVES, jnp.float32)  # chance of what showed, given a move
        for is_hit in (0, 1):
            for is_blow in (0, 1):
                then = results(packed, npc_health, player_health, is_hit, is_blow, jnp)
                stayed = stands & (then.npc_health == after["npc_health"] + 1)
                stayed &= then.player_health == after["player_health"] + 1
                went_on = then.ending == GOES_ON
                fits = jnp.select(
                    [ending == GOES_ON, ending == PARTED],
                    [
                        jnp.where(went_on & stayed, 1 - parting, 0),
                        jnp.where(went_on & (then.cents == cents), parting, 0),
                    ],
                    jnp.where((then.ending == ending) & (then.cents == cents), 1.0, 0.0),
                )
                by_move += fits * (hit if is_hit else 1 - hit) * (blow if is_blow else 1 - blow)
        visible = (move == 0) | (move == 1 + jnp.arange(N_MOVES, dtype=jnp.int32))
        fought = self._move_chances(situation, low, params) @ jnp.where(visible, by_move, 0)

        agrees = params.agrees.reshape(-1, self.n_styles, 2)[seen.level, :, low] / ONE
        talks = (seen.action == rules.NEGOTIATE) & (before["player_hidden"] == 0)
        fought *= jnp.where(talks, 1 - agrees, 1)
        return jnp.select([ending == AGREED, ending == FLED], [agrees, jnp.ones_like(agrees)], fought)

    def _move_chances(self, situation: Array, low: Array, params: Any) -> Array:
        """[S, 6] f32: chance of each move by style, see `opponents.move_chances`."""
        slots = params.moves.reshape(self.n_styles, N_SITUATIONS, 2, N_MOVES)[:, situation, low]
        ticks = np.bincount((np.arange(draws.HALF_ONE) * N_MOVES) >> draws.HALF_BITS, minlength=N_MOVES) / ONE
        stays = (slots & rules.THRESHOLD_MASK) / ONE
        stands_for = (slots >> rules.THRESHOLD_BITS)[..., None] == jnp.arange(N_MOVES, dtype=jnp.int32)
        shares = jnp.asarray(ticks, jnp.float32)
        drawn: Array = shares * stays + jnp.sum((shares * (1 - stays))[..., None] * stands_for, axis=1)
        return drawn

    def _arriving(self, styles: Array, last_step: Array, step: Array, params: Any) -> Array:
        """[S] f32: belief in a player who comes at `step`, of whom `styles` was believed, see `visitors.arrive`."""
        if self.forgets:
            return self._fresh()
        entry = ARRAYS.entry_at(params.regime_steps, step)
        is_redrawn = (last_step < params.regime_steps[entry] * params.redraws) & (last_step != visitors.NEVER)
        changes = jnp.where(is_redrawn, 1.0, params.arrivals.drift / ONE)
        mixed: Array = styles + changes * (self._fresh() - styles)
        return mixed

    def _fresh(self) -> Array:
        return jnp.asarray(style_chances(self.n_styles), jnp.float32)

    def _player(self, observation: dict[str, Array]) -> Array:
        return observation["player"] - 1 if "player" in observation else jnp.zeros((), jnp.int32)
