"""What belongs to each of N sub-environments: its random stream, its exact values, its part of what they measure."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from .contract import Solution, World
from .vector_calls import Calls

RESET_MASK = "reset_mask"

PER_SUB_ENV = {
    "action_masks": "action_masks",
    "action_space": "single_action_space",
    "action_values": "action_values",
    "audit": "audit",
    "expected_rewards": "expected_rewards",
    "np_random": "np_random",
    "np_random_seed": "np_random_seed",
    "observation_space": "single_observation_space",
    "oracle_action": "oracle_actions",
    "oracle_actions": "oracle_actions",
    "params": "params",
    "regime_level": "regime_levels",
    "regime_levels": "regime_levels",
    "solution": "solutions",
    "solutions": "solutions",
    "state": "state",
}
"""What sub-environments have one each: the name it has in a scalar environment -> where the vector environment has it
for all of them."""

Facts = tuple[NDArray[np.float64], NDArray[np.float64], dict[str, NDArray[np.int64]], NDArray[np.float64]]
"""Expected rewards and action values, [N, n_actions] each; audit, [N] each; regime levels, [N]."""


class Streams:
    """A generator per sub-environment, each with a seed of its own.

    Args:
        n: number of sub-environments.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._generators: tuple[np.random.Generator, ...] = ()
        self._seeds: tuple[int, ...] = ()

    @property
    def generators(self) -> tuple[np.random.Generator, ...]:
        """Those of the last seeds; before any, of seeds from the operating system."""
        if not self._generators:
            self.seed(None, np.ones(self._n, np.bool_))
        return self._generators

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the generators."""
        return self._seeds if self.generators else ()

    def seed(self, seed: int | Sequence[int | None] | None, mask: NDArray[np.bool_]) -> None:
        """Seed masked sub-environments; nothing changes where the seed is refused.

        Args:
            seed: sub-environment i gets seed + i, or the i-th of a list; None leaves a generator that there is.
            mask: [n].

        Raises:
            ValueError: another type or length.
            gymnasium.error.Error: a seed is negative or no whole number.
        """
        if isinstance(seed, numbers.Integral) and not isinstance(seed, bool):
            wanted: Sequence[Any] = [int(seed) + i for i in range(self._n)]
        else:
            wanted = [None] * self._n if seed is None else seed  # type: ignore[assignment]
        if isinstance(wanted, str) or not isinstance(wanted, Sequence) or len(wanted) != self._n:
            raise ValueError(f"`seed` must be an int or a list of {self._n}, got {seed!r}.")
        generators: list[Any] = list(self._generators) or [None] * self._n
        seeds: list[Any] = list(self._seeds) or [None] * self._n
        for i, own in enumerate(wanted):
            if generators[i] is None or (mask[i] and own is not None):
                generators[i], seeds[i] = seeding.np_random(own if mask[i] else None)
        self._generators, self._seeds = tuple(generators), tuple(int(own) for own in seeds)


def reset_mask(options: dict[str, Any] | None, n: int, *, is_first: bool) -> NDArray[np.bool_]:
    """[n] bool: which sub-environments to reset; all of them without options.

    Raises:
        TypeError, ValueError: the mask is no array of n bools, or none of them is True.
        gymnasium.error.ResetNeeded: the first reset leaves out a sub-environment.
    """
    if options is None or RESET_MASK not in options:
        return np.ones(n, np.bool_)
    mask = options[RESET_MASK]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"`options[{RESET_MASK!r}]` must be an array of bool, got {mask!r}.")
    if mask.shape != (n,) or not mask.any():
        raise ValueError(f"`options[{RESET_MASK!r}]` must have shape ({n},) and at least one True, got {mask!r}.")
    if is_first and not mask.all():
        raise gymnasium.error.ResetNeeded("the first `reset` must be of all sub-environments.")
    return mask.copy()


def solutions_of(world: World, params: Any, n: int) -> tuple[Solution | None, ...]:
    """The solution of each of n params, those of equal params solved once.

    Args:
        world: solves.
        params: every leaf has a leading axis [n].
        n: number of params.
    """
    leaves, tree = jax.tree.flatten(params)
    rows = [np.asarray(leaf) for leaf in leaves]
    found: dict[tuple[bytes, ...], Solution | None] = {}
    listed = []
    for i in range(n):
        content = tuple(row[i].tobytes() for row in rows)
        if content not in found:
            found[content] = world.solve(jax.tree.unflatten(tree, [row[i] for row in rows]))
        listed.append(found[content])
    return tuple(listed)


def facts(calls: Calls, state: Any, params: Any, solved: Solution | None) -> Facts:
    """Measurement of all sub-environments of a call by one solution; leaves of `state` have a leading axis."""
    expected, values, audit, regimes = calls.facts(state, params, solved)
    wide = {name: np.asarray(part).astype(np.int64) for name, part in audit.items()}
    return (
        np.asarray(expected).astype(np.float64),
        np.asarray(values).astype(np.float64),
        wide,
        np.asarray(regimes).astype(np.float64),
    )


def facts_by_own(calls: Calls, state: Any, params: Any, solved: Sequence[Solution | None]) -> Facts:
    """Measurement of each sub-environment by its own solution; `state` and `params` have a leading axis.

    Those that share a solution are measured together: stacked, the tables of many sub-environments would not fit into
    memory. A group is filled up to a power of two, so that few sizes are compiled.
    """
    groups: dict[int, list[int]] = {}
    for i, own in enumerate(solved):
        groups.setdefault(id(own), []).append(i)
    if len(groups) == 1:
        return facts(calls, state, params, solved[0])
    parts, order = [], []
    for members in groups.values():
        filled = np.array(members + members[:1] * ((1 << (len(members) - 1).bit_length()) - len(members)))
        chosen, own_params = jax.tree.map(lambda leaf, filled=filled: leaf[filled], (state, params))
        its = facts(calls, chosen, own_params, solved[members[0]])
        size = len(members)
        parts.append(jax.tree.map(lambda part, size=size: part[:size], its))
        order += members
    back = np.argsort(order)
    together: Facts = jax.tree.map(lambda *of_groups: np.concatenate(of_groups)[back], *parts)
    return together


def rows_of(found: Any, n: int) -> tuple[Any, ...]:
    """What n sub-environments have, one part each: a tuple of n, or a tree whose leaves have a leading axis [n].

    A number of NumPy becomes one of Python, as a scalar environment has it.
    """
    if type(found) is tuple:  # a NamedTuple is a tree
        return found
    return tuple(jax.tree.map(lambda leaf, i=i: plain(leaf[i]), found) for i in range(n))


def plain(value: Any) -> Any:
    """A number of NumPy as one of Python, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
