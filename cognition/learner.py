"""One step of a learner: credit what arrived, learn the step just taken, and choose the next action.

Pure functions for ONE agent; vmap them over states and params, scan them over steps. Order within `observe`:

1. what the entity did is taken in, so that the next situation is read with the latest opinion;
2. the next situation is evaluated, unless a boundary (the end of an encounter) lies between, for what follows;
3. the step just taken is learnt, unless its outcome is still to come: target = reward, less the cost of time, plus
   gamma times what follows, the gain and the loss of the next greedy action; decisions before it in the same encounter
   take their share of the error (TD(lambda));
4. a second opinion, if one was bought, teaches the action it is about;
5. outcomes that arrived are credited to the paths stored with their decision (target = everything it was paid);
6. a decision whose outcome is still to come is stored in the ledger.

`decide` then evaluates the next situation with the new strengths and chooses. Every REST steps, `rest` does what is
rare (`learning.resting`); what it changes opens other paths, so that the situation at hand is to be faced again.

Sources of 3: temporal-difference learning, Sutton (1988), per channel; Mahadevan (1996) for the cost of time.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from . import ledger as ledgers
from .config import NO_ACTION, NO_DECISION
from .edges import IN_BOUNDS, Edges, Paths, mark_activated
from .evidence import allowed, choose, evaluate, greedy
from .learning import cases, conjunctions, rewards
from .learning.knowledge import Knowledge, initial_knowledge
from .learning.lessons import Lesson, learn_all, lesson, lesson_words, reach, update
from .learning.prototypes import witness
from .learning.recall import recall
from .learning.regimes import Regimes, initial_regimes
from .learning.rewards import Rewards, initial_rewards
from .ledger import Entry, Ledger, Settled
from .params import Params
from .situation import Situation, after, initial_encounter, own_actions
from .structure import Structure

Array = jax.Array


class Trace(NamedTuple):
    """Edges of the latest decisions of the encounter at hand, newest first; R edges each.

    Attributes:
        cells: [T - 1, R] i32, cells of the gain channel.
        steps: [T - 1, R] f32, share of an error that each takes, decayed.
    """

    cells: Array
    steps: Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """Everything that a learner knows between two steps, except its random key.

    Attributes:
        edges: learnt strengths.
        ledger: decisions that wait for their outcome.
        known: what decides which paths a situation opens.
        trace: decisions that later errors reach.
        rewards: what is usually paid.
        regimes: strengths under other rules.
        situation: what the observation at hand shows.
        paths: the paths that it opens.
        action: [] i32, action chosen for it.
        greedy: [] i32, the one that would have been chosen without exploration.
        step: [] i32, steps lived.
        version: [] i32, lessons learnt; it changes when, and only when, strengths may have.
    """

    edges: Edges
    ledger: Ledger
    known: Knowledge
    trace: Trace
    rewards: Rewards
    regimes: Regimes
    situation: Situation
    paths: Paths
    action: Array
    greedy: Array
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
        seen: [S] i32, cells of what the entity did (`learning.prototypes`), NOTHING_SEEN for nothing.
        following: the next situation.
    """

    action: Array
    reward: Array
    is_boundary: Array
    decision_id: Array
    feedback_id: Array
    feedback_value: Array
    opinion_action: Array
    opinion: Array
    seen: Array
    following: Situation


def initial_state(edges: Edges, structure: Structure) -> State:
    """A learner that has seen nothing, not even a first observation; `attend` shows it one."""
    zero, n_reached = jnp.zeros((), jnp.int32), structure.n_paths + len(structure.common)
    n_traces = structure.traces - 1
    return State(
        edges=edges,
        ledger=ledgers.initial_ledger(structure),
        known=initial_knowledge(structure),
        trace=Trace(jnp.zeros((n_traces, n_reached), jnp.int32), jnp.zeros((n_traces, n_reached), jnp.float32)),
        rewards=initial_rewards(),
        regimes=initial_regimes(edges, structure),
        situation=Situation(
            jnp.zeros(structure.n_base, jnp.int32),
            jnp.zeros(structure.n_base, jnp.float32),
            jnp.ones((), jnp.float32),
            zero,
            jnp.full((), NO_ACTION, jnp.int32),
            jnp.ones(structure.n_actions, jnp.bool_),
        ),
        paths=ledgers.nothing(structure).paths,
        action=zero,
        greedy=zero,
        step=zero,
        version=zero,
    )


def attend(state: State, situation: Situation, noise: Array, structure: Structure, params: Params) -> State:
    """Turn to a situation and choose an action, without learning. `noise` as in `choose`."""
    return decide(face(state, situation, structure), noise, structure, params)


def face(state: State, situation: Situation, structure: Structure) -> State:
    """Turn to a situation: recall the paths that it opens, and choose nothing."""
    return dataclasses.replace(state, situation=situation, paths=recall(state.known, situation, structure))


def decide(state: State, noise: Array, structure: Structure, params: Params) -> State:
    """Choose an action for the situation at hand. `noise` as in `choose`."""
    mask = state.situation.mask
    best = greedy(allowed(evaluate(state.edges, state.paths, structure, params).urge, mask))
    action = choose(best, mask, state.rewards.since, noise, params)
    return dataclasses.replace(state, action=action, greedy=best)


def open_episode(state: State) -> State:
    """A new episode starts: outcomes that are still to come will never arrive, and a new encounter begins."""
    return dataclasses.replace(
        state,
        ledger=ledgers.forget_waiting(state.ledger),
        known=dataclasses.replace(state.known, encounter=initial_encounter()),
        trace=state.trace._replace(steps=jnp.zeros_like(state.trace.steps)),
    )


def begin(state: State, situation: Situation, noise: Array, structure: Structure, params: Params) -> State:
    """A new episode starts with `situation`. `noise` as in `choose`."""
    return attend(open_episode(state), situation, noise, structure, params)


def step(state: State, experience: Experience, noise: Array, structure: Structure, params: Params) -> State:
    """One step, see the module. `noise` as in `choose`; the chosen action is in the returned state."""
    return decide(follow(state, experience, structure, params), noise, structure, params)


def follow(state: State, experience: Experience, structure: Structure, params: Params) -> State:
    """Learn from one step and turn to the next situation, and choose nothing."""
    done, ahead = _observed(state, experience, structure, params)
    if ahead is None or structure.conjunctions or structure.cases:
        return face(done, experience.following, structure)
    # nothing that recall reads has changed since the paths were recalled for what follows
    return dataclasses.replace(done, situation=experience.following, paths=ahead)


def observe(state: State, experience: Experience, structure: Structure, params: Params) -> State:
    """Learn from one step, and choose nothing."""
    return _observed(state, experience, structure, params)[0]


def _observed(state: State, experience: Experience, structure: Structure, params: Params) -> tuple[State, Paths | None]:
    """The learner after a step, and the paths of what follows, where they were needed."""
    known = _witnessed(state, experience, structure, params)
    ahead = recall(known, experience.following, structure) if structure.bootstraps else None
    settled = ledgers.settle(state.ledger, experience.feedback_id, experience.decision_id)
    edges, trace, n_own = _own(state, experience, ahead, structure, params)
    lessons, start, stop = _others(state, experience, settled, structure, params)
    edges, n_learnt = learn_all(edges, lessons, start, stop, structure, params)
    version = state.version + n_own + n_learnt
    edges = mark_activated(edges, state.paths, _column(experience.action, structure), state.step, structure)
    known, edges = _kept(state, known, edges, structure)
    entry = Entry(experience.decision_id, version, experience.action, experience.reward, state.paths)
    is_paid = experience.decision_id == NO_DECISION  # what is still to come is not known yet, whatever the reward holds
    late = jnp.sum(jnp.where(settled.found, settled.entries.reward + experience.feedback_value, 0.0))
    paid = jnp.where(is_paid, experience.reward, 0.0) + late
    done = dataclasses.replace(
        state,
        edges=edges,
        ledger=ledgers.update(state.ledger, settled, entry),
        known=known,
        trace=trace,
        rewards=rewards.after(state.rewards, paid),
        step=state.step + 1,
        version=version,
    )
    return done, ahead


def credit(state: State, decision_id: Array, value: Array, structure: Structure, params: Params) -> State:
    """Credit one outcome outside of a step: when more arrived than a step has slots."""
    nothing = ledgers.nothing(structure)
    settled = ledgers.settle(state.ledger, decision_id[None], nothing.decision_id)
    arrived, n_arrived = _arrived(state, settled, decision_id[None], value[None], structure, params)
    edges, n_learnt = learn_all(state.edges, arrived, jnp.zeros((), jnp.int32), n_arrived, structure, params)
    ledger = ledgers.update(state.ledger, settled, nothing)
    return dataclasses.replace(state, edges=edges, ledger=ledger, version=state.version + n_learnt)


def _witnessed(state: State, experience: Experience, structure: Structure, params: Params) -> Knowledge:
    """What is known after what the entity did and after the own action."""
    known = state.known
    prototypes = known.prototypes
    if structure.prototypes:
        prototypes = witness(
            prototypes, state.situation.entity, experience.seen, known.encounter.is_new, params.drift, structure
        )
    encounter = after(known.encounter, experience.action, experience.is_boundary)
    is_new = params.trust_steps / (params.trust_steps + (state.rewards.since + 1).astype(jnp.float32))
    trust = params.trust_floor + (1.0 - params.trust_floor) * is_new
    return dataclasses.replace(known, prototypes=prototypes, encounter=encounter, trust=trust)


def _own(
    state: State, experience: Experience, ahead: Paths | None, structure: Structure, params: Params
) -> tuple[Edges, Trace, Array]:
    """What the step just taken teaches: its reward and what follows along the paths `ahead`; nothing while its outcome
    is still to come.

    Returns:
        The edges, the trace, and [] i32 how many lessons that was.
    """
    gain, loss = _targets(experience.reward, state, structure)
    scale = _scale(state.paths.stake, experience.action, structure)
    gain, loss = gain / scale, loss / scale
    if ahead is not None:
        next_one = evaluate(state.edges, ahead, structure, params)
        best = greedy(allowed(next_one.score, experience.following.mask))
        discount = jnp.where(experience.is_boundary, 0.0, params.gamma)
        gain, loss = gain + discount * next_one.gain[best] / scale, loss + discount * next_one.loss[best] / scale
    applies = experience.decision_id == NO_DECISION
    at = reach(state.paths.nodes, state.paths.activation, _column(experience.action, structure), structure)
    done = update(state.edges, at, gain, loss, params.noise, structure, params)
    weight = applies.astype(jnp.float32)
    cells, gains, losses = at.cells, weight * done.gain, weight * done.loss
    trace = state.trace
    if structure.traces > 1:
        width = structure.width
        gain_error = weight * (gain - at.activation @ state.edges.net.at[at.cells].get(mode=IN_BOUNDS))
        loss_error = weight * (loss - at.activation @ state.edges.net.at[at.cells + width].get(mode=IN_BOUNDS))
        decayed = trace.steps * (params.gamma * params.trace_decay)
        if structure.cuts:
            decayed = jnp.where(experience.action == state.greedy, decayed, 0.0)
        earlier, share = trace.cells.reshape(-1), decayed.reshape(-1)
        cells = jnp.concatenate([cells, earlier])
        gains = jnp.concatenate([gains, share * gain_error])
        losses = jnp.concatenate([losses, share * loss_error])
        steps = jnp.concatenate([(weight * done.step)[None], decayed[:-1]])
        trace = Trace(
            jnp.concatenate([at.cells[None], trace.cells[:-1]]), jnp.where(experience.is_boundary, 0.0, steps)
        )
    edges = dataclasses.replace(
        state.edges,
        net=state.edges.net.at[jnp.concatenate([cells, cells + structure.width])].add(
            jnp.concatenate([gains, losses]), mode=IN_BOUNDS
        ),
        variance=state.edges.variance.at[at.variances].add(weight * done.variance, mode=IN_BOUNDS),
    )
    return edges, trace, applies.astype(jnp.int32)


def _others(
    state: State, experience: Experience, settled: Settled, structure: Structure, params: Params
) -> tuple[Array, Array, Array]:
    """Lessons of a second opinion and of outcomes that arrived, [1 + M, 2P + 5] words, and which of them are in use."""
    applies = experience.opinion_action != NO_ACTION
    column = _column(jnp.maximum(experience.opinion_action, 0), structure)
    worth = experience.opinion / _scale(jnp.ones((), jnp.float32), jnp.maximum(experience.opinion_action, 0), structure)
    opinion = lesson(applies, state.paths, column, worth, params.noise * params.opinion_noise)
    arrived, n_arrived = _arrived(state, settled, experience.feedback_id, experience.feedback_value, structure, params)
    return (
        jnp.concatenate([lesson_words(opinion)[None], arrived]),
        jnp.where(applies, 0, 1).astype(jnp.int32),
        1 + n_arrived,
    )


def _arrived(
    state: State, settled: Settled, decision_ids: Array, values: Array, structure: Structure, params: Params
) -> tuple[Array, Array]:
    """Lessons of the outcomes that arrived, [M, 2P + 5] words, and [] i32 how many slots are in use."""
    entries, found = settled.entries, settled.found
    scale = jnp.where(found, _scale(entries.paths.stake, entries.action, structure), 1.0)
    gain, loss = _targets(entries.reward + values, state, structure)
    noise = jnp.broadcast_to(params.noise, found.shape)
    lessons = Lesson(
        found,
        entries.paths.nodes,
        entries.paths.activation,
        _column(entries.action, structure),
        gain / scale,
        loss / scale,
        noise,
    )
    in_use = jnp.where(decision_ids == NO_DECISION, 0, jnp.arange(1, decision_ids.shape[0] + 1, dtype=jnp.int32))
    return jax.vmap(lesson_words)(lessons), jnp.max(in_use, initial=0)


def _targets(outcome: Array, state: State, structure: Structure) -> tuple[Array, Array]:
    """Gain and loss that an outcome stands for, of the shape of `outcome`, before stake and factor are taken out."""
    if structure.rule == "hebb_advantage":
        outcome = outcome - state.rewards.mean
    gain, loss = jnp.maximum(outcome, 0.0), jnp.maximum(-outcome, 0.0)
    if structure.average_reward:
        loss = loss + rewards.cost_of_time(state.rewards)
    return gain, loss


def _kept(state: State, known: Knowledge, edges: Edges, structure: Structure) -> tuple[Knowledge, Edges]:
    """Conjunctions and cases after the situation just decided, with blank edges where a node changed hands."""
    blank = []
    if structure.conjunctions:
        seen, strength = state.situation.nodes, state.situation.activation
        if structure.encounter:
            seen = jnp.concatenate([seen, own_actions(state.known.encounter, structure)])
            strength = jnp.concatenate([strength, jnp.ones(2, jnp.float32)])
        table, changed = conjunctions.meet(known.conjunctions, seen, strength, structure)
        known = dataclasses.replace(known, conjunctions=table)
        blank.append(
            jnp.where(changed < structure.conjunctions, structure.first_conjunction + changed, structure.n_nodes)
        )
    if structure.cases:
        kept, slot = cases.meet(known.cases, state.situation, structure)
        known = dataclasses.replace(known, cases=kept)
        blank.append(jnp.where(slot < structure.cases, structure.first_case + slot, structure.n_nodes)[None])
    return known, blanked(edges, jnp.concatenate(blank), structure) if blank else edges


def blanked(edges: Edges, nodes: Array, structure: Structure) -> Edges:
    """Edges without what they said of some nodes ([n] i32; N or more for none)."""
    net = edges.net.reshape(structure.n_nodes, -1).at[nodes].set(0.0, mode="drop")
    fresh = edges.prior.at[nodes].get(mode="fill", fill_value=0.0)[:, None]
    variance = edges.variance.reshape(structure.n_nodes, -1).at[nodes].set(fresh, mode="drop")
    return dataclasses.replace(edges, net=net.reshape(-1), variance=variance.reshape(-1))


def _column(action: Array, structure: Structure) -> Array:
    return jnp.asarray(structure.columns, jnp.int32)[action]


def _scale(stake: Array, action: Array, structure: Structure) -> Array:
    return stake * jnp.asarray(structure.factors, jnp.float32)[action]
