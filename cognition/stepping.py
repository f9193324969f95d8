"""The learner one step at a time from Python: few buffers, one compiled call a step.

A call costs about 1.5 us per array that goes in or out, more than the arithmetic of a step. So the small leaves of a
state travel as one vector of 32-bit words, and what a step brought travels as one row of them; the large arrays are
donated and updated in place. Nothing here changes values: `Stepper.step` is `learner.step`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from . import learner
from .config import NO_ACTION, NO_DECISION, Params, Structure
from .edges import Paths, initial_edges, rows
from .evidence import Evidence, evaluate
from .learner import Experience, State
from .words import to_floats

Array = jax.Array
Row = npt.NDArray[np.int32]
Buffers = tuple[Array, ...]
"""Large leaves of a state in order, then all small ones as one vector of i32 words."""

SMALL = 512  # entries; below, copying a leaf is cheaper than passing it on its own
NOISE_BLOCK = 1024  # choices whose random words are drawn in one call


class Reading(NamedTuple):
    """What the memory says about one observation: its evidence and the edges read, from the same strengths.

    Attributes:
        evidence: evidence for every action.
        net: [P, 2C] f32, net strengths of the edges from each path's node.
        variance: [P, C] f32, their variances.
        uses: [P, C] i32, decisions that each edge took part in.
        step: [] i32, steps lived so far.
        version: [] i32, lessons learnt so far.
    """

    evidence: Evidence
    net: Array
    variance: Array
    uses: Array
    step: Array
    version: Array


class Stepper(NamedTuple):
    """Compiled functions of one structure. `Buffers` that are passed to the first four are donated.

    Attributes:
        step: (buffers, params, row of `experience_row`) -> (buffers, [] i32 next action).
        begin: (buffers, params, row of `paths_row`) -> (buffers, [] i32 action); a new episode.
        attend: the same, for another observation within the episode.
        credit: (buffers, params, row of `outcome_row`) -> buffers.
        read: (buffers, params, row of `paths_row`) -> Reading; writes nothing.
    """

    step: Callable[[Buffers, Array, Row], tuple[Buffers, Array]]
    begin: Callable[[Buffers, Array, Row], tuple[Buffers, Array]]
    attend: Callable[[Buffers, Array, Row], tuple[Buffers, Array]]
    credit: Callable[[Buffers, Array, Row], Buffers]
    read: Callable[[Buffers, Array, Row], Reading]


@functools.lru_cache(maxsize=64)
def stepper(structure: Structure) -> Stepper:
    """Compiled functions of a structure, shared by all learners that have it; compilation waits for the first call."""

    def compiled(move: Callable[[State, Row, Params], State]) -> Callable[..., tuple[Buffers, Array]]:
        def packed(buffers: Buffers, params: Array, row: Row) -> tuple[Buffers, Array]:
            state = move(unpack(buffers, structure), row, _unpack_params(params))
            return pack(state), state.action

        return jax.jit(packed, donate_argnums=0)

    def step(state: State, row: Row, params: Params) -> State:
        return learner.step(state, _unpack_experience(row, structure), _unpack_noise(row), structure, params)

    def begin(state: State, row: Row, params: Params) -> State:
        return learner.begin(state, _unpack_paths(row[2:], structure), _unpack_noise(row), structure, params)

    def attend(state: State, row: Row, params: Params) -> State:
        return learner.attend(state, _unpack_paths(row[2:], structure), _unpack_noise(row), structure, params)

    def credit(buffers: Buffers, params: Array, row: Row) -> Buffers:
        value = to_floats(row[1])
        return pack(learner.credit(unpack(buffers, structure), row[0], value, structure, _unpack_params(params)))

    def read(buffers: Buffers, params: Array, row: Row) -> Reading:
        state = unpack(buffers, structure)
        paths = _unpack_paths(row[2:], structure)
        net, variance = rows(state.edges, paths, structure)
        activity = state.edges.activity.reshape(structure.n_nodes, 2, structure.n_columns)
        uses = activity[paths.nodes, 1]
        evidence = evaluate(state.edges, paths, structure, _unpack_params(params))
        return Reading(evidence, net, variance, uses, state.step, state.version)

    return Stepper(
        compiled(step), compiled(begin), compiled(attend), jax.jit(credit, donate_argnums=0), cast("Any", jax.jit(read))
    )


@functools.partial(jax.jit, static_argnames="n")
def noise_block(seed: Array, block: Array, n: int = NOISE_BLOCK) -> Array:
    """[n, 2] u32: random words of choices `block * n` to `(block + 1) * n` of a learner with this seed ([] u32).

    Drawn in bulk, because a draw within the step costs as much as the step; numbered, so that a learner that is stored
    needs nothing but the number of its next choice.
    """
    return jax.random.bits(jax.random.fold_in(jax.random.key(seed), block), (n, 2), jnp.uint32)


def pack(state: State) -> Buffers:
    """A state as buffers."""
    leaves = jax.tree.leaves(state)
    small = [jax.lax.bitcast_convert_type(leaf, jnp.int32).reshape(-1) for leaf in leaves if leaf.size < SMALL]
    return (*(leaf for leaf in leaves if leaf.size >= SMALL), jnp.concatenate(small))


def unpack(buffers: Buffers, structure: Structure) -> State:
    """The state in `buffers`."""
    shapes, tree = _layout(structure)
    large, words, leaves, offset = iter(buffers[:-1]), buffers[-1], [], 0
    for shape in shapes:
        size = int(np.prod(shape.shape))
        if size >= SMALL:
            leaves.append(next(large))
        else:
            word = words[offset : offset + size].reshape(shape.shape)
            leaves.append(jax.lax.bitcast_convert_type(word, shape.dtype))
            offset += size
    return cast("State", jax.tree.unflatten(tree, leaves))


def pack_params(params: Params) -> Array:
    """[n] f32: parameters as one vector."""
    return jnp.stack(jax.tree.leaves(params))


def paths_row(
    noise: npt.NDArray[np.uint32], index: npt.NDArray[np.int32], activation: npt.NDArray[np.float32], stake: float
) -> Row:
    """[2 random words, P nodes, P activations, stake] of an observation."""
    n_paths = len(index)
    row = np.empty(2 * n_paths + 3, np.int32)
    row[:2] = noise.view(np.int32)
    row[2 : n_paths + 2] = index
    floats = row[n_paths + 2 :].view(np.float32)
    floats[:n_paths] = activation
    floats[n_paths] = stake
    return row


def experience_row(
    structure: Structure,
    next_paths: Row,
    *,
    action: int,
    reward: float,
    is_boundary: bool,
    decision_id: int = NO_DECISION,
    feedback: Sequence[tuple[int, float]] = (),
    opinion: tuple[int, float] | None = None,
) -> Row:
    """What a step brought as one row; arguments as in `Experience`, at most M outcomes in `feedback`."""
    n_slots, n_next = structure.feedback_slots, len(next_paths)
    row = np.empty(n_next + 6 + 2 * n_slots, np.int32)
    row[:n_next] = next_paths
    words = row[n_next:]
    floats = words.view(np.float32)
    words[0], words[1], words[2] = action, is_boundary, decision_id
    floats[3] = reward
    if opinion is None:
        words[4], words[5] = NO_ACTION, 0
    else:
        words[4], floats[5] = opinion
    words[6 : 6 + n_slots] = NO_DECISION
    words[6 + n_slots :] = 0
    for slot, (arrived_id, value) in enumerate(feedback):
        words[6 + slot], floats[6 + n_slots + slot] = arrived_id, value
    return row


def outcome_row(decision_id: int, value: float) -> Row:
    """[decision id, value] of one outcome."""
    row = np.array([decision_id, 0], np.int32)
    row.view(np.float32)[1] = value
    return row


def _unpack_noise(row: Array | Row) -> Array:
    return jax.lax.bitcast_convert_type(jnp.asarray(row[:2]), jnp.uint32)


def _unpack_paths(words: Array | Row, structure: Structure) -> Paths:
    n_paths = structure.n_paths
    floats = to_floats(jnp.asarray(words[n_paths : 2 * n_paths + 1]))
    return Paths(jnp.asarray(words[:n_paths]), floats[:n_paths], floats[n_paths])


def _unpack_experience(row: Array | Row, structure: Structure) -> Experience:
    n_slots, n_paths = structure.feedback_slots, structure.n_paths
    words = jnp.asarray(row[2 * n_paths + 3 :])
    floats = to_floats(words)
    return Experience(
        action=words[0],
        reward=floats[3],
        is_boundary=words[1] != 0,
        decision_id=words[2],
        feedback_id=words[6 : 6 + n_slots],
        feedback_value=floats[6 + n_slots :],
        opinion_action=words[4],
        opinion=floats[5],
        next_paths=_unpack_paths(row[2:], structure),
    )


def _unpack_params(vector: Array) -> Params:
    return Params(*(vector[i] for i in range(len(Params.__dataclass_fields__))))


@functools.lru_cache(maxsize=64)
def _layout(structure: Structure) -> tuple[list[jax.ShapeDtypeStruct], Any]:
    """Shapes and tree of a state."""

    def example() -> State:
        return learner.initial_state(initial_edges(structure, np.ones(structure.n_nodes, np.float32)), structure)

    return jax.tree.flatten(jax.eval_shape(example))
