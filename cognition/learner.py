"""One step of a learner: credit what arrived, learn the step just taken, and choose the next action.

Pure functions for ONE agent; vmap them over states and params, scan them over steps. Order within a step:

1. the next observation is evaluated, unless a boundary (the end of an encounter) lies between, for what follows;
2. a second opinion, if one was bought, teaches the action it is about, at once;
3. the step just taken is learnt, unless its outcome is still to come: target = reward plus gamma times what follows,
   the gain and the loss of the next greedy action;
4. outcomes that arrived are credited to the paths stored with their decision (target = everything it was paid);
5. a decision whose outcome is still to come is stored in the ledger;
6. the next observation is evaluated with the new strengths, and an action is chosen.

Source of 3: temporal-difference learning, Sutton (1988), per channel.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from . import ledger as ledgers
from .config import NO_ACTION, NO_DECISION, Params, Structure
from .edges import Edges, Paths, mark_activated
from .evidence import choose, evaluate, greedy
from .learning import Lesson, learn_all, lesson, lesson_words
from .ledger import Entry, Ledger, Settled

Array = jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """Everything that a learner knows between two steps, except its random key.

    Attributes:
        edges: learnt strengths.
        ledger: decisions that wait for their outcome.
        paths: paths of the observation at hand.
        action: [] i32, action chosen for it.
        step: [] i32, steps lived.
        version: [] i32, lessons learnt; it changes when, and only when, strengths may have.
    """

    edges: Edges
    ledger: Ledger
    paths: Paths
    action: Array
    step: Array
    version: Array


class Experience(NamedTuple):
    """What one step brought. Rewards are in units of the reward bound.

    Attributes:
        action: [] i32, the action taken, which need not be the one chosen.
        reward: [] f32, paid for this step's own decision.
        is_boundary: [] bool, an encounter ended with this step.
        decision_id: [] i32, id under which the outcome will arrive, NO_DECISION if the reward is complete.
        feedback_id: [M] i32, decisions whose outcome arrived, NO_DECISION in empty slots.
        feedback_value: [M] f32, the part of their outcome that was not in the reward of their step.
        opinion_action: [] i32, action that a second opinion is about, NO_ACTION if there is none.
        opinion: [] f32, what it says that this action would pay, per unit of stake.
        next_paths: paths of the next observation.
    """

    action: Array
    reward: Array
    is_boundary: Array
    decision_id: Array
    feedback_id: Array
    feedback_value: Array
    opinion_action: Array
    opinion: Array
    next_paths: Paths


def initial_state(edges: Edges, structure: Structure) -> State:
    """A learner that has seen nothing, not even a first observation; `attend` shows it one."""
    nowhere, zero = ledgers.nothing(structure).paths, jnp.zeros((), jnp.int32)
    return State(edges, ledgers.initial_ledger(structure), nowhere, zero, zero, zero)


def attend(state: State, paths: Paths, noise: Array, structure: Structure, params: Params) -> State:
    """Turn to another observation and choose an action, without learning. `noise` as in `choose`."""
    action = choose(evaluate(state.edges, paths, structure, params), state.step, noise, params)
    return dataclasses.replace(state, paths=paths, action=action)


def begin(state: State, paths: Paths, noise: Array, structure: Structure, params: Params) -> State:
    """A new episode starts at `paths`; outcomes that are still to come will never arrive."""
    state = dataclasses.replace(state, ledger=ledgers.forget_waiting(state.ledger))
    return attend(state, paths, noise, structure, params)


def step(state: State, experience: Experience, noise: Array, structure: Structure, params: Params) -> State:
    """One step, see the module. `noise` as in `choose`; the chosen action is in the returned state."""
    settled = ledgers.settle(state.ledger, experience.feedback_id, experience.decision_id)
    arrived, n_arrived = _arrived(settled, experience.feedback_id, experience.feedback_value, structure, params)
    opinion, own = _opinion(state, experience, structure, params), _own(state, experience, structure, params)
    lessons = jnp.concatenate([jnp.stack([lesson_words(opinion), lesson_words(own)]), arrived])
    start = jnp.where(experience.opinion_action == NO_ACTION, 1, 0).astype(jnp.int32)
    edges, n_learnt = learn_all(state.edges, lessons, start, 2 + n_arrived, structure, params)
    version = state.version + n_learnt
    edges = mark_activated(edges, state.paths, _columns(structure)[experience.action], state.step, structure)
    entry = Entry(experience.decision_id, version, experience.action, experience.reward, state.paths)
    ledger = ledgers.update(state.ledger, settled, entry)
    done = State(edges, ledger, state.paths, state.action, state.step + 1, version)
    return attend(done, experience.next_paths, noise, structure, params)


def credit(state: State, decision_id: Array, value: Array, structure: Structure, params: Params) -> State:
    """Credit one outcome outside of a step: when more arrived than a step has slots."""
    nothing = ledgers.nothing(structure)
    settled = ledgers.settle(state.ledger, decision_id[None], nothing.decision_id)
    arrived, n_arrived = _arrived(settled, decision_id[None], value[None], structure, params)
    edges, n_learnt = learn_all(state.edges, arrived, jnp.zeros((), jnp.int32), n_arrived, structure, params)
    ledger = ledgers.update(state.ledger, settled, nothing)
    return dataclasses.replace(state, edges=edges, ledger=ledger, version=state.version + n_learnt)


def _arrived(
    settled: Settled, decision_ids: Array, values: Array, structure: Structure, params: Params
) -> tuple[Array, Array]:
    """Lessons of the outcomes that arrived, [M, 2P + 5] words, and [] i32 how many slots are in use."""
    entries, found = settled.entries, settled.found
    scale = jnp.where(found, entries.paths.stake * _factors(structure)[entries.action], 1.0)
    noise = jnp.broadcast_to(params.noise, found.shape)
    column = _columns(structure)[entries.action]
    lessons = lesson(found, entries.paths, column, (entries.reward + values) / scale, noise)
    in_use = jnp.where(decision_ids == NO_DECISION, 0, jnp.arange(1, decision_ids.shape[0] + 1, dtype=jnp.int32))
    return jax.vmap(lesson_words)(lessons), jnp.max(in_use)


def _opinion(state: State, experience: Experience, structure: Structure, params: Params) -> Lesson:
    """What a second opinion teaches about the case just decided."""
    applies = experience.opinion_action != NO_ACTION
    column = _columns(structure)[jnp.maximum(experience.opinion_action, 0)]
    return lesson(applies, state.paths, column, experience.opinion, params.noise * params.opinion_noise)


def _own(state: State, experience: Experience, structure: Structure, params: Params) -> Lesson:
    """What the step just taken teaches: its reward and what follows; nothing while its outcome is still to come."""
    ahead = evaluate(state.edges, experience.next_paths, structure, params)
    best = greedy(ahead.score)
    discount = jnp.where(experience.is_boundary, 0.0, params.gamma)
    scale = state.paths.stake * _factors(structure)[experience.action]
    column = _columns(structure)[experience.action]
    applies = experience.decision_id == NO_DECISION
    own = lesson(applies, state.paths, column, experience.reward / scale, params.noise)
    gain, loss = discount * ahead.gain[best] / scale, discount * ahead.loss[best] / scale
    return own._replace(gain=own.gain + gain, loss=own.loss + loss)


def _columns(structure: Structure) -> Array:
    return jnp.asarray(structure.columns, jnp.int32)


def _factors(structure: Structure) -> Array:
    return jnp.asarray(structure.factors, jnp.float32)
