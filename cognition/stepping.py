"""The learner one step at a time from Python: few buffers, one compiled call a step.

A call costs about 1.5 us per array that goes in or out, more than the arithmetic of a step. So the small leaves of a
state travel as one vector of 32-bit words, and what a step brought travels as one row of them; the large arrays are
donated and updated in place. Nothing here changes values: `Stepper.step` is `learner.step`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from . import learner
from .config import NO_ACTION, NO_DECISION, NOTHING_SEEN
from .edges import Paths, initial_edges, rows
from .evidence import Evidence, evaluate
from .learner import Experience, State
from .learning import rescaling, resting
from .learning.recall import recall
from .ledger import initial_ledger
from .params import Params
from .situation import Situation
from .structure import Structure
from .words import to_floats, to_words

Array = jax.Array
Row = npt.NDArray[np.int32]
Buffers = tuple[Array, ...]
"""What waits in the ledger, the large leaves of a state in order, then all small ones as one vector of i32 words."""

SMALL = 512  # entries; below, copying a leaf is cheaper than passing it on its own
NOISE_BLOCK = 1024  # choices whose random words are drawn in one call
MASK_BITS = 32  # actions per word of a mask
TYPES = (jnp.float32, jnp.int32, jnp.bool_)
"""Small leaves of one type lie side by side: they become words together, in one kernel and not in one each."""


class Reading(NamedTuple):
    """What the memory says about one observation: its evidence and the edges read, from the same strengths.

    Attributes:
        evidence: evidence for every action.
        paths: the paths that it opens.
        net: [P, 2W] f32, net strengths of the edges from each path's node.
        variance: [P, W] f32, their variances.
        uses: [P, C] i32, decisions that each edge took part in.
        step: [] i32, steps lived so far.
        version: [] i32, lessons learnt so far.
    """

    evidence: Evidence
    paths: Paths
    net: Array
    variance: Array
    uses: Array
    step: Array
    version: Array


class Stepper(NamedTuple):
    """Compiled functions of one structure. `Buffers` that are passed to them, but for `read`, are donated.

    Attributes:
        step: (buffers, params, row of `experience_row`) -> (buffers, [] i32 next action).
        prompt: the same, and faster, for a step that is complete: its reward is all that it will bring, and with it
            came neither outcomes of earlier decisions nor a second opinion. Takes and returns `Buffers` without the
            first, for every array that goes in and out has its price.
        learn: the same without a next choice -> buffers; what `attend` with the same row adds makes it a `step`.
        begin: (buffers, params, row of `situation_row`) -> (buffers, [] i32 action); a new episode.
        attend: the same, for another observation within the episode.
        credit: (buffers, params, row of `outcome_row`) -> buffers.
        rescale: (buffers, [N * 2W] f32 initial strengths, [] f32 factor) -> buffers; the unit of rewards has changed.
        since: buffers -> [] i32, steps since learning began or began anew; writes nothing.
        rest: (buffers, params, [] u32 seed) -> buffers; due every `resting.REST` steps.
        read: (buffers, params, row of `situation_row`) -> Reading; writes nothing.
    """

    step: Callable[[Buffers, Array, Row], tuple[Buffers, Array]]
    prompt: Callable[[Buffers, Array, Row], tuple[Buffers, Array]]
    learn: Callable[[Buffers, Array, Row], Buffers]
    begin: Callable[[Buffers, Array, Row], tuple[Buffers, Array]]
    attend: Callable[[Buffers, Array, Row], tuple[Buffers, Array]]
    credit: Callable[[Buffers, Array, Row], Buffers]
    rescale: Callable[[Buffers, Array, Array | np.float32], Buffers]
    since: Callable[[Buffers], Array]
    rest: Callable[[Buffers, Array, Array | np.uint32], Buffers]
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

    alone = dataclasses.replace(structure, feedback_slots=0, ledger_capacity=1)

    def prompt(buffers: Buffers, params: Array, row: Row) -> tuple[Buffers, Array]:
        known = unpack((jnp.zeros((0,), jnp.int32), *buffers), structure)
        experience = _unpack_experience(row, structure)._replace(
            decision_id=jnp.full((), NO_DECISION, jnp.int32),
            feedback_id=jnp.zeros((0,), jnp.int32),
            feedback_value=jnp.zeros((0,), jnp.float32),
            opinion_action=jnp.full((), NO_ACTION, jnp.int32),
        )
        # with constants in the place of what waits, the compiler leaves out all that would read or write it
        state = dataclasses.replace(known, ledger=initial_ledger(alone))
        state = learner.step(state, experience, _unpack_noise(row), alone, _unpack_params(params))
        return pack(dataclasses.replace(state, ledger=known.ledger))[1:], state.action

    def learn(buffers: Buffers, params: Array, row: Row) -> Buffers:
        experience = _unpack_experience(row, structure)
        return pack(learner.observe(unpack(buffers, structure), experience, structure, _unpack_params(params)))

    def rescale(buffers: Buffers, initial_net: Array, factor: Array) -> Buffers:
        return pack(rescaling.rescaled(unpack(buffers, structure), initial_net, factor, structure))

    def begin(state: State, row: Row, params: Params) -> State:
        return learner.begin(state, _unpack_situation(row[2:], structure), _unpack_noise(row), structure, params)

    def attend(state: State, row: Row, params: Params) -> State:
        return learner.attend(state, _unpack_situation(row[2:], structure), _unpack_noise(row), structure, params)

    def credit(buffers: Buffers, params: Array, row: Row) -> Buffers:
        value = to_floats(row[1])
        return pack(learner.credit(unpack(buffers, structure), row[0], value, structure, _unpack_params(params)))

    def since(buffers: Buffers) -> Array:
        return unpack(buffers, structure).rewards.since

    def rest(buffers: Buffers, params: Array, seed: Array) -> Buffers:
        state = unpack(buffers, structure)
        key = resting.key_of(seed, state.step)
        return pack(resting.rest(state, state.step, key, structure, _unpack_params(params)))

    def read(buffers: Buffers, params: Array, row: Row) -> Reading:
        state = unpack(buffers, structure)
        paths = recall(state.known, _unpack_situation(row[2:], structure), structure)
        net, variance = rows(state.edges, paths, structure)
        activity = state.edges.activity.reshape(structure.n_nodes, 2, structure.n_columns)
        uses = activity[paths.nodes, 1]
        evidence = evaluate(state.edges, paths, structure, _unpack_params(params))
        return Reading(evidence, paths, net, variance, uses, state.step, state.version)

    return Stepper(
        compiled(step),
        cast("Any", jax.jit(prompt, donate_argnums=0)),
        jax.jit(learn, donate_argnums=0),
        compiled(begin),
        compiled(attend),
        jax.jit(credit, donate_argnums=0),
        jax.jit(rescale, donate_argnums=0),
        jax.jit(since),
        jax.jit(rest, donate_argnums=0),
        cast("Any", jax.jit(read)),
    )


def noise_of(seed: Array, choice: Array) -> Array:
    """[2] u32: random words of a learner's choice number `choice` ([] i32); `seed` [] u32."""
    return jax.random.bits(jax.random.fold_in(jax.random.key(seed), choice), (2,), jnp.uint32)


@functools.partial(jax.jit, static_argnames="n")
def noise_block(seed: Array, block: Array, n: int = NOISE_BLOCK) -> Array:
    """[n, 2] u32: `noise_of` choices `block * n` to `(block + 1) * n`.

    Drawn in bulk, because from Python a draw within the step costs as much as the step.
    """
    return jax.vmap(noise_of, in_axes=(None, 0))(seed, block * n + jnp.arange(n, dtype=jnp.int32))


def pack(state: State) -> Buffers:
    """A state as buffers."""
    leaves = jax.tree.leaves(_without_entries(state))
    small = [leaf for leaf in leaves if leaf.size < SMALL]
    words = [_joined([leaf for leaf in small if leaf.dtype == dtype]) for dtype in TYPES]
    return (state.ledger.entries, *(leaf for leaf in leaves if leaf.size >= SMALL), jnp.concatenate(words))


def unpack(buffers: Buffers, structure: Structure) -> State:
    """The state in `buffers`."""
    shapes, tree = _layout(structure)
    large, words, leaves, offset = iter(buffers[1:-1]), buffers[-1], dict[int, Array](), 0
    for dtype in TYPES:
        for at, shape in enumerate(shapes):
            if shape.size < SMALL and shape.dtype == dtype:
                word = words[offset : offset + shape.size].reshape(shape.shape)
                leaves[at] = word != 0 if dtype == jnp.bool_ else jax.lax.bitcast_convert_type(word, dtype)
                offset += shape.size
    found = [leaves[at] if at in leaves else next(large) for at in range(len(shapes))]
    state = cast("State", jax.tree.unflatten(tree, found))
    return dataclasses.replace(state, ledger=dataclasses.replace(state.ledger, entries=buffers[0]))


def _joined(leaves: Sequence[Array]) -> Array:
    """[n] i32: leaves of one type as words."""
    if not leaves:
        return jnp.zeros((0,), jnp.int32)
    flat = jnp.concatenate([leaf.reshape(-1) for leaf in leaves])
    return to_words(flat) if flat.dtype == jnp.float32 else flat.astype(jnp.int32)


def _without_entries(state: State) -> State:
    """The state without what waits in its ledger, which is a buffer of its own, first among them."""
    return dataclasses.replace(state, ledger=dataclasses.replace(state.ledger, entries=None))  # type: ignore[arg-type]


def pack_params(params: Params) -> Array:
    """[n] f32: parameters as one vector."""
    return jnp.stack(jax.tree.leaves(params))


def situation_row(
    noise: npt.NDArray[np.uint32],
    nodes: npt.NDArray[np.int32],
    activation: npt.NDArray[np.float32],
    stake: float,
    *,
    entity: int = 0,
    advice: int = NO_ACTION,
    mask: npt.NDArray[Any] | None = None,
    n_actions: int = 0,
) -> Row:
    """[2 random words, B nodes, B activations, stake, entity, advice, mask as bits] of an observation.

    Args:
        noise: [2] u32.
        nodes: [B] i32.
        activation: [B] f32.
        stake: as in `Situation`.
        entity: as in `Situation`.
        advice: as in `Situation`.
        mask: [A] bool or whole numbers, 0 where an action is impossible; None where everything is possible.
        n_actions: A, where there is no mask.
    """
    n_base = len(nodes)
    n_words = -(-(n_actions if mask is None else len(mask)) // MASK_BITS)
    row = np.empty(2 * n_base + 5 + n_words, np.int32)
    row[:2] = noise.view(np.int32)
    row[2 : n_base + 2] = nodes
    floats = row[n_base + 2 :].view(np.float32)
    floats[:n_base] = activation
    floats[n_base] = stake
    row[2 * n_base + 3], row[2 * n_base + 4] = entity, advice
    if mask is None:
        row[2 * n_base + 5 :] = -1
    else:
        packed = np.packbits(mask, bitorder="little").tobytes()
        row[2 * n_base + 5 :] = np.frombuffer(packed.ljust(4 * n_words, b"\0"), "<i4")
    return row


def experience_row(
    structure: Structure,
    following: Row,
    *,
    action: int,
    reward: float,
    is_boundary: bool,
    decision_id: int = NO_DECISION,
    feedback: Sequence[tuple[int, float]] = (),
    opinion: tuple[int, float] | None = None,
    seen: Sequence[int] = (),
) -> Row:
    """What a step brought as one row; arguments as in `Experience`, at most M outcomes in `feedback`.

    `following` is the `situation_row` of the next observation, `seen` one cell per table of behaviours.
    """
    n_slots, n_next, n_seen = structure.feedback_slots, len(following), len(structure.behaviours)
    row = np.empty(n_next + 6 + 2 * n_slots + n_seen, np.int32)
    row[:n_next] = following
    words = row[n_next:]
    floats = words.view(np.float32)
    words[0], words[1], words[2] = action, is_boundary, decision_id
    floats[3] = reward
    if opinion is None:
        words[4], words[5] = NO_ACTION, 0
    else:
        words[4], floats[5] = opinion
    words[6 : 6 + n_slots] = NO_DECISION
    words[6 + n_slots : 6 + 2 * n_slots] = 0
    for slot, (arrived_id, value) in enumerate(feedback):
        words[6 + slot], floats[6 + n_slots + slot] = arrived_id, value
    words[6 + 2 * n_slots :] = seen if seen else NOTHING_SEEN
    return row


def outcome_row(decision_id: int, value: float) -> Row:
    """[decision id, value] of one outcome."""
    row = np.array([decision_id, 0], np.int32)
    row.view(np.float32)[1] = value
    return row


def _unpack_noise(row: Array | Row) -> Array:
    return jax.lax.bitcast_convert_type(jnp.asarray(row[:2]), jnp.uint32)


def _unpack_situation(words: Array | Row, structure: Structure) -> Situation:
    n_base, n_actions = structure.n_base, structure.n_actions
    floats = to_floats(jnp.asarray(words[n_base : 2 * n_base + 1]))
    at = np.arange(n_actions, dtype=np.int32)
    bits = jnp.asarray(words[2 * n_base + 3 :])[at // MASK_BITS] >> (at % MASK_BITS)
    return Situation(
        jnp.asarray(words[:n_base]),
        floats[:n_base],
        floats[n_base],
        jnp.asarray(words[2 * n_base + 1]),
        jnp.asarray(words[2 * n_base + 2]),
        (bits & 1) != 0,
    )


def _unpack_experience(row: Array | Row, structure: Structure) -> Experience:
    n_slots = structure.feedback_slots
    n_situation = 2 * structure.n_base + 5 - (-structure.n_actions // MASK_BITS)
    words = jnp.asarray(row[n_situation:])
    floats = to_floats(words)
    return Experience(
        action=words[0],
        reward=floats[3],
        is_boundary=words[1] != 0,
        decision_id=words[2],
        feedback_id=words[6 : 6 + n_slots],
        feedback_value=floats[6 + n_slots : 6 + 2 * n_slots],
        opinion_action=words[4],
        opinion=floats[5],
        seen=words[6 + 2 * n_slots :],
        following=_unpack_situation(row[2:n_situation], structure),
    )


def _unpack_params(vector: Array) -> Params:
    return Params(*(vector[i] for i in range(len(Params.__dataclass_fields__))))


@functools.lru_cache(maxsize=64)
def _layout(structure: Structure) -> tuple[list[jax.ShapeDtypeStruct], Any]:
    """Shapes and tree of a state without the entries of its ledger."""

    def example() -> State:
        edges = initial_edges(structure, np.ones(structure.n_nodes, np.float32))
        return _without_entries(learner.initial_state(edges, structure))

    return jax.tree.flatten(jax.eval_shape(example))
