"""Exact average-reward control of a small world whose hidden state is known: Howard's policy iteration.

Source: Puterman (1994), "Markov Decision Processes", 8.6, unichain policy iteration for average reward. The world is
given as sparse transitions within an encounter; an encounter that ends begins the next one from a start distribution,
so that every policy has one recurrent class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_ROUNDS = 100
TOLERANCE = 1e-9  # by how much an action must be better to replace another


class Problem(NamedTuple):
    """A decision problem of S states and A actions; row = state * A + action."""

    rewards: NDArray[np.float64]  # [S, A], expected reward of an action
    rows: NDArray[np.int64]  # [K], of each transition
    next_states: NDArray[np.int64]  # [K]
    chances: NDArray[np.float64]  # [K]; those of a row sum to 1 minus its chance to end
    ends: NDArray[np.float64]  # [S, A], chance that the encounter ends with this action
    start: NDArray[np.float64]  # [S], chance that an encounter begins in a state, sums to 1


class Plan(NamedTuple):
    """What the best policy earns."""

    average: float  # reward per step
    values: NDArray[np.float64]  # [S, A], differential; start @ max over actions is 0
    residual: float  # largest error of the optimality equation
    rounds: int  # improvements until no action was better


def solve(problem: Problem) -> Plan:
    """Values of the best policy.

    Raises:
        ValueError: a row's chances and its chance to end do not sum to 1.
        RuntimeError: no best policy after MAX_ROUNDS improvements.
    """
    from scipy import sparse  # type: ignore[import-untyped]
    from scipy.sparse import linalg  # type: ignore[import-untyped]

    n_states, n_actions = problem.rewards.shape
    moves = sparse.csr_matrix(
        (problem.chances, (problem.rows, problem.next_states)), shape=(n_states * n_actions, n_states)
    )
    total = np.asarray(moves.sum(axis=1)).ravel() + problem.ends.ravel()
    if not np.allclose(total, 1, atol=1e-9):
        worst = int(np.argmax(np.abs(total - 1)))
        raise ValueError(f"chances of row {worst} must sum to 1 with its chance to end, got {total[worst]}.")
    policy = np.argmax(problem.rewards, axis=1)
    states = np.arange(n_states)
    for rounds in range(1, MAX_ROUNDS + 1):
        chosen = states * n_actions + policy
        # V = r - average + P V within an encounter; the value of a start, start @ V, is 0: it settles the average
        within = linalg.splu(sparse.csc_matrix(sparse.identity(n_states) - moves[chosen]))
        earned = within.solve(problem.rewards.ravel()[chosen])
        duration = within.solve(np.ones(n_states))
        average = float(problem.start @ earned / (problem.start @ duration))
        value = earned - average * duration
        values = problem.rewards - average + (moves @ value).reshape(n_states, n_actions)
        better = values.max(axis=1) > values[states, policy] + TOLERANCE
        if not better.any():
            return Plan(average, values, float(np.abs(values.max(axis=1) - value).max()), rounds)
        policy = np.where(better, np.argmax(values, axis=1), policy)
    raise RuntimeError(f"no best policy after {MAX_ROUNDS} rounds of improvement.")
