"""Exact values of GameNPC when the style of the player is known, for the very integers that the dynamics draw with.

Players come with each style alike, so the average reward is that of the mixture of styles; within an encounter nothing
but that average depends on who comes next. A run with few players has another mixture, and may score a little above.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import draws, planning, regimes
from ..contract import Solution
from . import opponents, rules
from .rules import CENTS, HEALTH, N_MOVES, N_SITUATIONS

Value = Any
N_STATES_PER_STYLE = N_SITUATIONS * HEALTH * HEALTH
N_ACTIONS = len(rules.ACTIONS)


class Results(NamedTuple):
    """What hits and blows lead to; integer arrays of one shape."""

    ending: Any  # GOES_ON, KILLED or DIED
    npc_health: Any
    player_health: Any
    cents: Any  # reward of it, without the price of the action


def position(
    style: Value, terrain: Value, distance: Value, hidden: Value, npc_health: Value, player_health: Value
) -> Value:
    """Index of a state, [S * N_STATES_PER_STYLE] of them: i32, or what its arguments are; healths are 1 to HEALTH."""
    situation = (terrain * len(rules.DISTANCES) + distance) * 2 + hidden
    return ((style * N_SITUATIONS + situation) * HEALTH + npc_health - 1) * HEALTH + player_health - 1


def solve(levels: ArrayLike, moves: ArrayLike, agrees: ArrayLike) -> Solution:
    """Values by policy iteration, kept for equal arguments.

    Args:
        levels: [K] levels of the regime, in any order, repeated or not.
        moves: see `opponents.Opponents`.
        agrees: see `opponents.Opponents`.
    """
    wanted = tuple(int(level) for level in np.unique(np.asarray(levels)))
    return _solve(wanted, np.asarray(moves, np.int32).tobytes(), np.asarray(agrees, np.int32).tobytes())


@functools.lru_cache(maxsize=32)
def _solve(levels: tuple[int, ...], moves: bytes, agrees: bytes) -> Solution:
    plans = [_plan(level, moves, agrees) for level in levels]
    return Solution(
        levels=jnp.asarray(levels, jnp.int32),
        average=jnp.asarray([plan.average for plan, _ in plans], jnp.float32),
        rewards=jnp.asarray(np.stack([rewards for _, rewards in plans]), jnp.float32),
        values=jnp.asarray(np.stack([plan.values for plan, _ in plans]), jnp.float32),
        residual=jnp.asarray([plan.residual for plan, _ in plans], jnp.float32),
    )


@functools.lru_cache(maxsize=64)
def _plan(level: int, moves: bytes, agrees: bytes) -> tuple[planning.Plan, NDArray[np.float64]]:
    posed = problem(level, np.frombuffer(moves, np.int32), np.frombuffer(agrees, np.int32))
    return planning.solve(posed), posed.rewards


def problem(level: int, moves: NDArray[np.int32], agrees: NDArray[np.int32]) -> planning.Problem:
    """The decision problem of one level, with the chances of the integer dynamics."""
    chances = opponents.move_chances(moves)
    n_styles = len(chances)
    axes = np.ogrid[:n_styles, :N_SITUATIONS, :HEALTH, :HEALTH, :N_ACTIONS, :N_MOVES]
    style, situation, npc_health, player_health, action, move = (axis.astype(np.int64) for axis in axes)
    npc_health, player_health = npc_health + 1, player_health + 1
    low = (player_health <= rules.LOW_HEALTH).astype(np.int64)

    tables = rules.fight_tables()
    entry = ((level * N_SITUATIONS + situation) * N_ACTIONS + action) * N_MOVES + move
    hit, packed = tables.hits.array[entry] / draws.HALF_ONE, tables.blows.array[entry]
    blow = (packed & rules.THRESHOLD_MASK) / draws.HALF_ONE
    fled = packed >> rules.FLIGHT_BIT & 1
    talks = (action == rules.NEGOTIATE) & (situation % 2 == 0)
    by_health = agrees.reshape(regimes.LEVELS + 1, n_styles, 2)[level] / draws.HALF_ONE
    agreed = np.where(talks, by_health[style, low], 0.0)
    price = rules.PRICE_CENTS + rules.SCOUT_CENTS * (packed >> rules.SCOUT_BIT & 1)
    fought = chances[style, situation, low, move] * (1 - agreed) * (1 - fled)
    parting = rules.PARTING / draws.HALF_ONE

    shape = (n_styles, N_SITUATIONS, HEALTH, HEALTH, N_ACTIONS)
    ending_cents = rules.ENDING_CENTS.array
    cents = agreed * ending_cents[rules.AGREED] + fled * ending_cents[rules.FLED] - price
    rewards = np.zeros(shape) + (chances[style, situation, low, move] * cents).sum(axis=-1)
    goes_on = np.zeros(shape)
    rows, following, weights = [], [], []
    row = np.arange(np.prod(shape)).reshape(shape)[..., None]
    terrain_and = situation // 6 * len(rules.DISTANCES) + (packed >> rules.DISTANCE_BIT & 3)
    situation_then = terrain_and * 2 + (packed >> rules.HIDDEN_BIT & 1)
    for is_hit in (0, 1):
        for is_blow in (0, 1):
            then = results(packed, npc_health, player_health, is_hit, is_blow)
            weight = fought * (hit if is_hit else 1 - hit) * (blow if is_blow else 1 - blow)
            rewards += (weight * then.cents).sum(axis=-1)
            stays = np.where(then.ending == rules.GOES_ON, weight * (1 - parting), 0.0)
            goes_on += stays.sum(axis=-1)
            target = ((style * N_SITUATIONS + situation_then) * HEALTH + then.npc_health - 1) * HEALTH
            target = np.broadcast_to(target + then.player_health - 1, stays.shape)
            kept = stays > 0
            rows.append(np.broadcast_to(row, stays.shape)[kept])
            following.append(target[kept])
            weights.append(stays[kept])
    return planning.Problem(
        rewards=rewards.reshape(-1, N_ACTIONS) / CENTS,
        rows=np.concatenate(rows),
        next_states=np.concatenate(following),
        chances=np.concatenate(weights),
        ends=1 - goes_on.reshape(-1, N_ACTIONS),
        start=_start(n_styles),
    )


def results(packed: Any, npc_health: Any, player_health: Any, is_hit: int, is_blow: int, xp: Any = np) -> Results:
    """What follows if the NPC hits or not and is hit or not.

    Args:
        packed: entries of `FightTables.blows`.
        npc_health: before, 1 to HEALTH.
        player_health: before, 1 to HEALTH.
        is_hit: 1 if the NPC hits, else 0.
        is_blow: 1 if the NPC is hit, else 0.
        xp: whose arrays they are, `numpy` or `jax.numpy`.
    """
    damage = is_hit * (1 + (packed >> rules.HARD_HIT_BIT & 1))
    harm = is_blow * (1 + (packed >> rules.HARD_BLOW_BIT & 1))
    npc_then = npc_health + (packed >> rules.HEAL_BIT & 1) - harm
    player_then = player_health - damage
    ending = xp.where(player_then <= 0, rules.KILLED, xp.where(npc_then <= 0, rules.DIED, rules.GOES_ON))
    dealt = xp.minimum(damage, player_health)
    cents = rules.DAMAGE_CENTS * (dealt - harm) + xp.asarray(rules.ENDING_CENTS.array)[ending]
    return Results(ending, xp.minimum(npc_then, HEALTH), player_then, cents)


def style_chances(n_styles: int) -> NDArray[np.float64]:
    """[S]: chance of each style when it is drawn anew, as `below` draws it."""
    drawn = (np.arange(draws.HALF_ONE) * n_styles) >> draws.HALF_BITS
    return np.bincount(drawn, minlength=n_styles) / draws.HALF_ONE


def _start(n_styles: int) -> NDArray[np.float64]:
    """[S * N_STATES_PER_STYLE]: where encounters begin, see `world._arrival`."""
    start = np.zeros((n_styles, len(rules.TERRAINS), len(rules.DISTANCES), 2, HEALTH, HEALTH))
    chance = style_chances(n_styles)[:, None, None, None] / (len(rules.TERRAINS) * 2 * 2)
    start[:, :, rules.NEAR :, 0, HEALTH - 2 :, HEALTH - 1] = chance
    return start.ravel()
