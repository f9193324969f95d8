"""The filtering oracle of CustomerService: Bayes over all that is hidden, from what an agent sees.

Within a ticket the belief is joint over persona, cause, mood, solved and trust (240 cases); between tickets the persona
of each customer remains, and drifts towards the chances of a new one at each arrival as the persona itself does. Both
are exact: customers have nothing to do with each other, and a ticket depends on earlier ones through the persona alone.
Evidence: the answer, the noisy mood, a clarified cause, whether the ticket ended or reopened, the reward of the end
(in which solution, trust and mood are paid) and the survey. Computed in float32.

The action is that of Q-MDP: the best on average over the belief, as if everything came to light with the next step. So
it never pays for information, and is a lower bound of what a perfect reasoner would earn.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .. import draws, visitors
from ..arithmetic import ARRAYS
from ..contract import Seen, Solution
from . import rules, solution
from .state import ServiceParams

Array = jax.Array

_ONE = draws.HALF_ONE


def _f32(chances: rules.Floats) -> NDArray[np.float32]:
    return chances.astype(np.float32)


def _mood_moves() -> rules.Floats:
    """[action, trust, progress, mood, new mood]."""
    by_move = rules.chances(rules.MOOD)
    moves = np.zeros((*by_move.shape[:-1], rules.N_MOODS, rules.N_MOODS))
    for mood in range(rules.N_MOODS):
        for move in range(3):
            moves[..., mood, rules.CLIPPED_MOOD[mood + move]] += by_move[..., move]
    return moves


def _seen_mood() -> rules.Floats:
    """[seen, mood]: chance that a mood looks like this."""
    seen = np.zeros((rules.N_MOODS, rules.N_MOODS))
    worse, better = rules.SEEN_WORSE / _ONE, 1 - rules.SEEN_BETTER / _ONE
    for mood in range(rules.N_MOODS):
        for move, chance in enumerate((worse, 1 - worse - better, better)):
            seen[rules.CLIPPED_MOOD[mood + move], mood] += chance
    return seen


def _reply() -> rules.Floats:
    """[reply, persona, solved, trust]."""
    chances, by_slot = np.zeros((len(rules.REPLIES), *rules.REPLY.shape[:-1])), rules.chances(rules.REPLY)
    for slot in range(rules.N_SLOTS):
        for reply in range(len(rules.REPLIES)):
            chances[reply] += by_slot[..., slot] * (rules.REPLY_OF_SLOT[..., slot] == reply)
    return chances


TRUST = _f32(rules.chances(rules.TRUST))
SOLVED = _f32(rules.SOLVED / _ONE)
MOOD_MOVES = _f32(_mood_moves())
SEEN_MOOD = _f32(_seen_mood())
REPLY = _f32(_reply())
EVENT = _f32(rules.EVENT / _ONE)
SURVEY = _f32(rules.chances(rules.SURVEY))
NEW_PERSONA = _f32(rules.chances_below(rules.N_PERSONAS))
END_PAYS, COST = rules.END_PAYS.astype(np.int32), rules.COST.astype(np.int32)


class Belief(NamedTuple):
    """What is believed; a filter that forgets has a capacity of 0."""

    ticket: Array  # [persona, cause, mood, solved, trust] f32, of the ticket at hand
    personas: Array  # [capacity, persona] f32, of each customer after their last ticket
    left_at: Array  # [capacity] i32, step at which each left last, or visitors.NEVER


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ServiceFilter:
    """Filter of CustomerService (`habitus.envs.contract.Filter`).

    Attributes:
        capacity: of the world.
        remembers: whether a customer's persona is remembered from ticket to ticket.
        solution: exact values by which it acts.
    """

    capacity: int = dataclasses.field(metadata={"static": True})
    remembers: bool = dataclasses.field(metadata={"static": True})
    solution: Solution

    def initial(self, observation: dict[str, Array], params: ServiceParams) -> Belief:
        """Belief at the first observation of an episode."""
        size = self.capacity if self.remembers else 0
        return Belief(
            ticket=_opened(jnp.asarray(NEW_PERSONA), observation),
            personas=jnp.tile(jnp.asarray(NEW_PERSONA), (size, 1)),
            left_at=jnp.full(size, visitors.NEVER, jnp.int32),
        )

    def update(self, belief: Belief, seen: Seen, params: ServiceParams) -> Belief:
        """Belief after a step, the next observation included."""
        stays, ends = _after(belief.ticket, seen)
        is_over = seen.outcome.boundary
        persona = _normalised(jnp.sum(ends, axis=(1, 2, 3, 4)))
        personas, left_at, prior = belief.personas, belief.left_at, jnp.asarray(NEW_PERSONA)
        if self.remembers:
            left, coming = seen.observation["customer"] - 1, seen.following["customer"] - 1
            personas = personas.at[left].set(jnp.where(is_over, persona, personas[left]))
            left_at = left_at.at[left].set(jnp.where(is_over, seen.step, left_at[left]))
            drift = params.arrivals.drift.astype(jnp.float32) / _ONE
            prior = (1 - drift) * personas[coming] + drift * NEW_PERSONA
            changed_at = params.redraws * params.regime_steps[ARRAYS.entry_at(params.regime_steps, seen.step + 1)]
            is_redrawn = (left_at[coming] < changed_at) & (left_at[coming] != visitors.NEVER)
            prior = jnp.where(is_redrawn, NEW_PERSONA, prior)
        ticket = jnp.where(is_over, _opened(prior, seen.following), _normalised(stays))
        return Belief(ticket, personas, left_at)

    def values(self, belief: Belief, observation: dict[str, Array], level: Array, params: ServiceParams) -> Array:
        """[9] f32: value of each action, averaged over the belief, under the regime `level` at hand."""
        return jnp.einsum("gkmru,gkmrua->a", belief.ticket, self._values(observation, level))

    def _values(self, observation: dict[str, Array], level: Array) -> Array:
        """[persona, cause, mood, solved, trust, 9] f32 of the issue and turn at hand."""
        values = self.solution.values
        shaped = values.reshape(len(values), *solution.SHAPE, rules.N_ACTIONS)
        chosen: Array = shaped[solution.level_index(self.solution, level)]
        return chosen[:, observation["issue"]][..., observation["turn"], :]


def _opened(persona: Array, observation: dict[str, Array]) -> Array:
    """[240 cases] belief at the start of a ticket."""
    ticket = jnp.zeros((rules.N_PERSONAS, rules.N_CAUSES, rules.N_MOODS, 2, rules.N_TRUST), jnp.float32)
    ticket = ticket.at[:, :, 1:3, 0, rules.UNDECIDED].set(persona[:, None, None])
    return _normalised(ticket * _mood_evidence(observation))


def _mood_evidence(observation: dict[str, Array]) -> Array:
    """[mood, 1, 1] f32: chance of the seen mood."""
    return jnp.asarray(SEEN_MOOD)[observation["mood"]][:, None, None]


def _after(ticket: Array, seen: Seen) -> tuple[Array, Array]:
    """Chance of each case after a step together with all that was seen: if the ticket goes on, and if it ended."""
    action, level = seen.action, seen.level
    issue, turn, signals = seen.observation["issue"], seen.observation["turn"], seen.outcome.signals
    closes = (action == rules.CLOSE).astype(jnp.int32)
    stages = jnp.asarray(TRUST)[level, :, action]
    trusts = jnp.where(turn == 0, stages[:, :1], stages[:, 1:])
    acted = jnp.einsum("gkmru,guv->gkmrv", ticket, trusts)
    solves = jnp.asarray(SOLVED)[level, issue, :, action][:, None]  # [cause, 1, trust]
    is_open, was_solved = acted[:, :, :, 0], acted[:, :, :, 1]
    by_progress = jnp.stack([is_open * (1 - solves), is_open * solves, was_solved])
    moved = jnp.einsum("pgkmv,vpmn->pgknv", by_progress, jnp.asarray(MOOD_MOVES)[action])
    cases = jnp.stack([moved[0], moved[1] + moved[2]], axis=3)

    said = jnp.where(closes == 1, 1.0, jnp.asarray(REPLY)[jnp.maximum(signals["answer"] - 1, 0)])
    cases = cases * said[:, None, None]
    event = jnp.transpose(jnp.asarray(EVENT)[:, turn, closes], (0, 3, 1, 2))[
        :, None
    ]  # [persona, 1, mood, solved, trust]
    is_over = jnp.where(closes == 1, 1 - event, event)

    money = jnp.rint(seen.outcome.reward * rules.MONEY).astype(jnp.int32) + jnp.asarray(COST)[level, action]
    paid = jnp.transpose(jnp.asarray(END_PAYS)[closes] == money, (2, 0, 1))  # [mood, solved, trust]
    ends = cases * is_over * paid * jnp.asarray(SURVEY)[:, :, signals["survey"]]

    stays = cases * (1 - is_over)
    stays = jnp.where(closes == 1, _reopened(stays), stays)
    detail = seen.following["detail"]
    knows = (detail == 0) | (jnp.arange(rules.N_CAUSES, dtype=jnp.int32) == detail - 1)
    return stays * _mood_evidence(seen.following) * knows[:, None, None, None], ends


def _reopened(cases: Array) -> Array:
    """The same cases after the ticket reopened: open, and in a worse mood."""
    open_again = jnp.sum(cases, axis=3)
    worse = jnp.concatenate([open_again[:, :, :1] + open_again[:, :, 1:2], open_again[:, :, 2:]], axis=2)
    worse = jnp.pad(worse, ((0, 0), (0, 0), (0, 1), (0, 0)))
    return jnp.stack([worse, jnp.zeros_like(worse)], axis=3)


def _normalised(chances: Array) -> Array:
    """Chances that sum to 1. If float32 leaves none of the cases, nothing is known, and all are as likely."""
    total = jnp.sum(chances)
    return jnp.where(total > 0, chances / jnp.where(total > 0, total, 1.0), 1.0 / chances.size)
