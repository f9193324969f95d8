"""Exact values of CustomerService with everything known, for one set of rules or a mixture.

The 17,280 states are persona x issue x cause x mood x solved x trust x turn. Customers of a persona come with equal
chance, so the average reward is that of a long run over many customers; an episode of few customers has its own mix.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import planning
from ..contract import Solution
from . import rules
from .rules import Floats

SHAPE = (rules.N_PERSONAS, rules.N_ISSUES, rules.N_CAUSES, rules.N_MOODS, 2, rules.N_TRUST, rules.N_TURNS)
N_STATES = int(np.prod(SHAPE))


def state_index(persona: Any, issue: Any, cause: Any, mood: Any, is_solved: Any, trust: Any, turn: Any) -> Any:
    """Row of a state in `Solution.rewards` and `Solution.values`; all arguments are codes."""
    index = persona
    for code, size in zip((issue, cause, mood, is_solved, trust, turn), SHAPE[1:], strict=True):
        index = index * size + code
    return index


def level_index(solution: Solution, level: jax.Array) -> jax.Array:
    """[] i32: position of a level among those that were solved."""
    return jnp.sum(solution.levels < level, dtype=jnp.int32)


@functools.lru_cache(maxsize=32)
def solved(levels: tuple[int, ...]) -> Solution:
    """Solution for ascending levels."""
    plans = [_plan(level) for level in levels]
    return Solution(
        levels=jnp.asarray(levels, jnp.int32),
        average=jnp.asarray([plan.average for plan, _ in plans], jnp.float32),
        rewards=jnp.asarray(np.stack([rewards for _, rewards in plans]), jnp.float32),
        values=jnp.asarray(np.stack([plan.values for plan, _ in plans]), jnp.float32),
        residual=jnp.asarray([plan.residual for plan, _ in plans], jnp.float32),
    )


@functools.lru_cache(maxsize=rules.N_LEVELS)
def _plan(level: int) -> tuple[planning.Plan, Floats]:
    task = problem(level)
    return planning.solve(task), task.rewards


def problem(level: int) -> planning.Problem:
    """The decision problem of a level, from the same rounded chances as the dynamics."""
    rewards, ends = np.zeros((2, *SHAPE, rules.N_ACTIONS))
    found: list[tuple[Any, Any, Floats]] = []
    for action in range(rules.N_ACTIONS):
        row = np.arange(N_STATES).reshape(SHAPE) * rules.N_ACTIONS + action
        branches = _closed() if action == rules.CLOSE else _answered(level, action)
        rewards[..., action] -= rules.COST[level, action] / rules.MONEY
        for chance, end_chance, end_pays, fee, following in branches:
            rewards[..., action] += chance * (end_chance * end_pays - fee)
            ends[..., action] += chance * end_chance
            stays = chance * (1 - end_chance)
            found.append((row[stays > 0], np.broadcast_to(following, SHAPE)[stays > 0], stays[stays > 0]))
    rows, next_states, chances = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return planning.Problem(
        rewards=rewards.reshape(N_STATES, rules.N_ACTIONS),
        rows=rows,
        next_states=next_states,
        chances=chances,
        ends=ends.reshape(N_STATES, rules.N_ACTIONS),
        start=_start().ravel(),
    )


def _start() -> Floats:
    """Chance that a ticket begins in a state."""
    start = np.zeros(SHAPE)
    persona, issue = rules.chances_below(rules.N_PERSONAS), rules.chances_below(rules.N_ISSUES)
    start[:, :, :, 1:3, 0, rules.UNDECIDED, 0] = (persona[:, None] * issue / 4)[:, :, None, None]
    return start


def _codes() -> tuple[Any, ...]:
    """The codes of all states, each broadcastable to SHAPE."""
    return tuple(np.ogrid[tuple(slice(size) for size in SHAPE)])


def _answered(level: int, action: int) -> Any:
    """Branches of every action but `close`: chance, chance of an end, its pay, a fee, the state otherwise."""
    persona, issue, cause, mood, is_solved, trust, turn = _codes()
    trusts = rules.chances(rules.TRUST[level, :, action])[persona, np.where(turn == 0, 0, trust + 1)]
    moods = rules.chances(rules.MOOD[action])
    for new_trust, new_solved, move in itertools.product(range(rules.N_TRUST), range(2), range(3)):
        solves = rules.SOLVED[level, issue, cause, action, new_trust] / 2**16
        becomes = np.where(is_solved == 1, float(new_solved), solves if new_solved else 1 - solves)
        chance = trusts[..., new_trust] * becomes * moods[new_trust, is_solved + new_solved, move]
        new_mood = rules.CLIPPED_MOOD[mood + move]
        leaves = rules.EVENT[persona, turn, 0, new_solved, new_trust, new_mood] / 2**16
        pays = rules.END_PAYS[0, new_solved, new_trust, new_mood] / rules.MONEY
        next_turn = np.minimum(turn + 1, rules.LAST_TURN)
        following = state_index(persona, issue, cause, new_mood, new_solved, new_trust, next_turn)
        yield np.broadcast_to(chance, SHAPE), leaves, pays, 0.0, following


def _closed() -> Any:
    """Branches of `close`: the ticket ends, or reopens."""
    persona, issue, cause, mood, is_solved, trust, turn = _codes()
    reopens = np.broadcast_to(rules.EVENT[persona, turn, 1, is_solved, trust, mood] / 2**16, SHAPE)
    yield 1 - reopens, 1.0, rules.END_PAYS[1, is_solved, trust, mood] / rules.MONEY, 0.0, 0
    fee = np.where(turn == 0, rules.EMPTY_CLOSE, rules.REOPENING) / rules.MONEY
    new_trust = np.where(turn == 0, rules.LOST, trust)
    next_turn = np.minimum(turn + 1, rules.LAST_TURN)
    following = state_index(persona, issue, cause, rules.CLIPPED_MOOD[mood], 0, new_trust, next_turn)
    yield reopens, 0.0, 0.0, fee, following
