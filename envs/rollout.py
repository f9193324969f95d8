"""Many episodes in one compiled call: a world and a player that is a pure function.

Episodes show the same bytes as the scalar and the vector environment of the same seeds: all go through
`habitus.envs.episode`. What a player draws comes from a key of its own, so that it does not disturb the world.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from . import arguments, blocks, draws, episode, regimes
from .adapter import checked_params, checked_world
from .contract import Filter, Seen, Solution, World, oracle

Array = jax.Array

# `split` and `fold_in` count from 0 in the same numbers, and an episode splits its key: the players' number is far off.
PLAYER_STREAM = 0x506C6179
MAX_STEPS = 1_000_000
MAX_SEED = 2**64 - 1


class Turn(NamedTuple):
    """What there is when an action is due, in one episode."""

    observation: dict[str, Array]
    mask: Array  # [n_actions] bool, False where an action is impossible now
    step: Array  # [] i32, from 0
    level: Array  # [] i32, regime level in tenths
    key: Array  # [] key, fresh; for random policies
    state: Any  # hidden; for oracles and measurement only


class Player(Protocol):
    """Decides in one episode; every method is pure. `rollout` vmaps over episodes.

    A player is given to a compiled call as a pytree: arrays in it are inputs, anything else is part of the code and
    must be hashable. A player that is no registered pytree is wholly part of the code. One that may know the world has
    a method `told(world, params) -> Player`, called with the params of each episode. One that has rare work to do has
    `rest_every`, a number of steps (0 = never), and a method `rest(carry, n_done) -> carry`, called whenever that many
    more steps are done; `n_done` [] i32, steps done so far, is the same for all episodes, so that a condition on it is
    a branch and not a selection. One that differs between episodes has `per_episode`, names of fields all of whose
    arrays have a leading axis [N]; its methods see the entry of their episode. One whose carry is large has `block`,
    how many episodes are best stepped together; larger numbers run block after block.
    """

    def initial(self, observation: dict[str, Array], key: Array) -> Any:
        """Carry before the first decision, a pytree of arrays; `key` is the player's."""

    def act(self, carry: Any, turn: Turn) -> tuple[Array, Any]:
        """[] i32 action in [0, n_actions), and the carry."""

    def learn(self, carry: Any, seen: Seen) -> Any:
        """Carry after the step."""


class Trace(NamedTuple):
    """What happened in N episodes of T steps."""

    action: Array  # [N, T] i32
    reward: Array  # [N, T] f32
    expected: Array  # [N, T] f32, expected reward of the action with all hidden known; NaN without `scores`
    boundary: Array  # [N, T] bool
    level: Array  # [N, T] i32, regime level in which the decision was made
    carry: Any  # of the players after the last step, [N, ...] each


def seeds_to_key_data(seeds: Sequence[int]) -> NDArray[np.uint32]:
    """[N, 2] u32: key data of the first episode of scalar environments that are reset with these seeds.

    Raises:
        TypeError, ValueError: there is no seed, or one is no whole number or negative; the message says which.
    """
    wanted = [arguments.whole_number(f"seeds[{i}]", seed, 0, MAX_SEED) for i, seed in enumerate(seeds)]
    if not wanted:
        raise ValueError("`seeds` must be whole numbers, one per episode, got none.")
    return np.stack([episode.key_data_of(seeding.np_random(seed)[0]) for seed in wanted])


def rollout(
    world: World,
    player: Player,
    key_data: NDArray[np.uint32] | Array,
    *,
    n_steps: int,
    params: Any = None,
    per_episode_params: bool = False,
    solution: Solution | None = None,
    scores: bool = True,
) -> Trace:
    """Run one episode per key, all at once; compiled once per world, kind of player, number of episodes and steps.

    Args:
        world: dynamics.
        player: decides; the same for all episodes, with a carry for each.
        key_data: [N, 2] u32, see `seeds_to_key_data`.
        n_steps: steps of each episode; nothing is truncated or reset within.
        params: parameters of the world, by default its own.
        per_episode_params: whether each leaf of `params` has a leading axis [N], one entry per episode.
        solution: exact values for `expected`; by default those of `params`.
        scores: whether `Trace.expected` is computed; a pure measurement of speed does without.

    Raises:
        TypeError, ValueError: an argument is wrong, with its name; or the episodes need different solutions.
    """
    checked_world(world)
    arguments.whole_number("n_steps", n_steps, 1, MAX_STEPS)
    key_data = _checked_key_data(key_data)
    params = checked_params(world, params, len(key_data) if per_episode_params else None)
    if scores and solution is None:
        solution = _solved(world, params, len(key_data) if per_episode_params else None)
    with_paths, tree = jax.tree.flatten_with_path(player)
    leaves = [leaf for _, leaf in with_paths]
    apart = tuple(getattr(player, "per_episode", ()))
    is_apart = tuple(getattr(path[0], "name", None) in apart if path else False for path, _ in with_paths)
    for (path, leaf), own in zip(with_paths, is_apart, strict=True):
        if own and np.shape(leaf)[:1] != (len(key_data),):
            name = jax.tree_util.keystr(path).strip(".")
            raise ValueError(f"`player.{name}` must have one entry per episode, {len(key_data)}, got {np.shape(leaf)}.")
    is_array = tuple(isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves)
    fixed = tuple(None if dynamic else leaf for leaf, dynamic in zip(leaves, is_array, strict=True))
    arrays = [leaf if dynamic else None for leaf, dynamic in zip(leaves, is_array, strict=True)]
    code = _Code(world, tree, str(tree), fixed, is_array, is_apart, n_steps, per_episode_params, scores)
    trace: Trace = _run(code, arrays, key_data, params, solution if scores else None)
    n_actions = len(world.schema.actions)
    for action in (int(jnp.min(trace.action)), int(jnp.max(trace.action))):
        if not 0 <= action < n_actions:  # compiled code cannot refuse it when it happens
            raise ValueError(f"`player.act` must return actions in [0, {n_actions}), got {action}.")
    return trace


class _Code(NamedTuple):
    """What a compiled rollout depends on beside the shapes of its inputs."""

    world: World
    tree: Any  # of the player
    classes: str  # in the tree: trees that differ only in the class of a node compare equal in JAX
    fixed: tuple[Any, ...]  # leaves of the player that are no arrays
    is_array: tuple[bool, ...]
    is_apart: tuple[bool, ...]  # leaves of the player that differ between episodes
    n_steps: int
    per_episode_params: bool
    scores: bool


@functools.partial(jax.jit, static_argnums=0)
def _run(code: _Code, arrays: list[Any], key_data: Array, params: Any, solution: Solution | None) -> Trace:
    world = code.world

    def player_with(arrays: list[Any]) -> Player:
        leaves = [
            array if dynamic else leaf for array, dynamic, leaf in zip(arrays, code.is_array, code.fixed, strict=True)
        ]
        player: Player = jax.tree.unflatten(code.tree, leaves)
        return player

    def begin(key_words: Array, params: Any, arrays: list[Any]) -> tuple[Any, ...]:
        player = player_with(arrays)
        key = episode.key_of(key_words)
        player_key = jax.random.fold_in(key, jnp.uint32(PLAYER_STREAM))
        now, observation = episode.start(world, key, params)
        carry = _told(player, world, params).initial(observation, jax.random.fold_in(player_key, jnp.uint32(0)))
        return now, observation, carry, player_key

    def advance(
        running: tuple[Any, ...], step: Array, params: Any, arrays: list[Any]
    ) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
        now, observation, carry, player_key = running
        acting = _told(player_with(arrays), world, params)
        level = jnp.rint(world.regime(now.state, params) * jnp.float32(regimes.LEVELS)).astype(jnp.int32)
        turn = Turn(
            observation=observation,
            mask=world.action_mask(now.state, params),
            step=step,
            level=level,
            key=jax.random.fold_in(player_key, (step + 1).astype(jnp.uint32)),
            state=now.state,
        )
        action, carry = acting.act(carry, turn)
        action = jnp.asarray(action).astype(jnp.int32)
        scores = (world.expected_rewards(now.state, params, solution)[action],) if code.scores else ()
        now, outcome, following = episode.step(world, now, action, params)
        mask = world.action_mask(now.state, params)
        carry = acting.learn(carry, Seen(observation, action, outcome, following, step, level, mask))
        return (now, following, carry, player_key), (action, outcome.reward, outcome.boundary, level, *scores)

    def rest(carry: Any, n_done: Array, params: Any, arrays: list[Any]) -> Any:
        return _told(player_with(arrays), world, params).rest(carry, n_done)  # type: ignore[attr-defined]

    axis = 0 if code.per_episode_params else None
    axes = [0 if own else None for own in code.is_apart]
    every = int(getattr(player_with(arrays), "rest_every", 0))
    n_whole = code.n_steps - code.n_steps % every if every else 0

    def together(key_data: Array, params: Any, arrays: list[Any]) -> tuple[tuple[Array, ...], Any]:
        """Episodes side by side: what happened, [T, n] each, and the carries of the players."""
        begin_all = jax.vmap(begin, in_axes=(0, axis, axes))
        advance_all = jax.vmap(advance, in_axes=(0, None, axis, axes))
        rest_all = jax.vmap(rest, in_axes=(0, None, axis, axes))

        def lived(running: tuple[Any, ...], steps: Array) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
            return jax.lax.scan(lambda running, step: advance_all(running, step, params, arrays), running, steps)

        def rested(running: tuple[Any, ...], steps: Array) -> tuple[tuple[Any, ...], tuple[Array, ...]]:
            (now, following, carry, player_key), notes = lived(running, steps)
            return (now, following, rest_all(carry, steps[-1] + 1, params, arrays), player_key), notes

        running = begin_all(key_data, params, arrays)
        steps = jnp.arange(code.n_steps, dtype=jnp.int32)
        parts = []
        if n_whole:
            running, notes = jax.lax.scan(rested, running, steps[:n_whole].reshape(-1, every))
            parts.append(jax.tree.map(lambda note: note.reshape(n_whole, *note.shape[2:]), notes))
        if n_whole < code.n_steps:
            running, notes = lived(running, steps[n_whole:])
            parts.append(notes)
        notes = jax.tree.map(lambda *part: jnp.concatenate(part), *parts) if len(parts) > 1 else parts[0]
        return notes, running[2]

    notes, carry = blocks.block_by_block(
        together, (key_data, params, arrays), (0, axis, axes), int(getattr(player_with(arrays), "block", 0))
    )
    action, reward, boundary, level, *scores = (jnp.swapaxes(note, 0, 1) for note in notes)
    expected = scores[0] if scores else jnp.full_like(reward, jnp.nan)
    return Trace(action, reward, expected, boundary, level, carry=carry)


def _checked_key_data(key_data: Any) -> Array:
    found = np.asarray(key_data)
    if found.ndim != 2 or found.shape[1] != episode.KEY_WORDS or not len(found):
        raise ValueError(f"`key_data` must be [N, {episode.KEY_WORDS}] with N >= 1, got {list(found.shape)}.")
    if found.dtype.kind not in "iu":
        raise TypeError(f"`key_data` must be whole numbers, got {found.dtype}; see `seeds_to_key_data`.")
    arguments.entries("key_data", found, 0, 2**32 - 1)
    return jnp.asarray(found.astype(np.uint32))


def _told(player: Player, world: World, params: Any) -> Player:
    tell = getattr(player, "told", None)
    return player if tell is None else tell(world, params)


def _solved(world: World, params: Any, n: int | None) -> Solution | None:
    """The solution of params, or the one that n params share."""
    if n is None:
        return world.solve(params)
    solutions = [world.solve(jax.tree.map(lambda leaf, i=i: leaf[i], params)) for i in range(n)]
    for other in solutions[1:]:
        if not _equal(solutions[0], other):
            raise ValueError(
                "`params` must belong to one solution, got episodes whose exact values differ; give `solution`, run "
                "them in one call per solution, or set scores=False."
            )
    return solutions[0]


def _equal(one: Solution | None, other: Solution | None) -> bool:
    if one is other:
        return True
    if one is None or other is None:
        return False
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@dataclasses.dataclass(frozen=True)
class RandomPlayer:
    """Takes every one of `n_actions` with the same chance, possible or not, as `action_space.sample()` does."""

    n_actions: int

    def told(self, world: World, params: Any) -> RandomPlayer:
        """The same player, whose actions the world has."""
        arguments.whole_number("n_actions", self.n_actions, 1, len(world.schema.actions))
        return self

    def initial(self, observation: dict[str, Array], key: Array) -> tuple[()]:
        """Nothing to carry."""
        return ()

    def act(self, carry: tuple[()], turn: Turn) -> tuple[Array, tuple[()]]:
        """A random action."""
        half = jax.random.bits(turn.key, (), jnp.uint32) >> draws.HALF_BITS
        return draws.below(half, self.n_actions), carry

    def learn(self, carry: tuple[()], seen: Seen) -> tuple[()]:
        """Nothing."""
        return carry


@dataclasses.dataclass(frozen=True)
class FixedPlayer:
    """Always takes `action`."""

    action: int

    def told(self, world: World, params: Any) -> FixedPlayer:
        """The same player, whose action the world has."""
        arguments.whole_number("action", self.action, 0, len(world.schema.actions) - 1)
        return self

    def initial(self, observation: dict[str, Array], key: Array) -> tuple[()]:
        """Nothing to carry."""
        return ()

    def act(self, carry: tuple[()], turn: Turn) -> tuple[Array, tuple[()]]:
        """The action."""
        return jnp.asarray(self.action, jnp.int32), carry

    def learn(self, carry: tuple[()], seen: Seen) -> tuple[()]:
        """Nothing."""
        return carry


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class OraclePlayer:
    """Takes the best action with all hidden known. `solution` is that of `world.solve`, None where there is none."""

    solution: Solution | None
    world: World | None = dataclasses.field(default=None, metadata={"static": True})
    params: Any = None

    def told(self, world: World, params: Any) -> OraclePlayer:
        """The same player, which knows the world."""
        return OraclePlayer(self.solution, world, params)

    def initial(self, observation: dict[str, Array], key: Array) -> tuple[()]:
        """Nothing to carry."""
        return ()

    def act(self, carry: tuple[()], turn: Turn) -> tuple[Array, tuple[()]]:
        """The first of the best actions."""
        assert self.world is not None  # `told`
        return oracle(self.world, turn.state, self.params, self.solution), carry

    def learn(self, carry: tuple[()], seen: Seen) -> tuple[()]:
        """Nothing."""
        return carry


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FilterPlayer:
    """Takes the action of best value over the belief of a filter, the first of equals; its carry is the belief.

    One object of `world.filter(...)` is compiled once; a filter that is a registered pytree even once for its kind.
    """

    filter: Filter
    params: Any = None

    def told(self, world: World, params: Any) -> FilterPlayer:
        """The same player, which knows the parameters."""
        return FilterPlayer(self.filter, params)

    def initial(self, observation: dict[str, Array], key: Array) -> Any:
        """The first belief."""
        return self.filter.initial(observation, self.params)

    def act(self, carry: Any, turn: Turn) -> tuple[Array, Any]:
        """The best action by the belief."""
        values = self.filter.values(carry, turn.observation, turn.level, self.params)
        return jnp.argmax(values).astype(jnp.int32), carry

    def learn(self, carry: Any, seen: Seen) -> Any:
        """The belief after the step."""
        return self.filter.update(carry, seen, self.params)
