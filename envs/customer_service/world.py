"""CustomerService: tickets of returning customers, in integers, for arrays and for Python alike.

`CustomerServiceEnv` has the rules in words, `rules` has their tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from .. import arguments, draws, regimes, visitors
from ..arithmetic import ARRAYS, INTEGERS, Arithmetic, below, happens
from ..contract import NO_DECISION, Behaviour, FeedbackMode, Field, Filter, Outcome, Schema, Signal, Solution
from . import belief, rules, solution
from .state import ServiceParams, ServiceState, Ticket
from .tables import CHANCE_BITS, CHANCE_MASK, PAYS_OFFSET, drawn, tables

Array = jax.Array

DIFFICULTIES = {
    "easy": visitors.Preset(n=12, drift=0.002, slope=0.15, hot=0.3, gap=0),
    "medium": visitors.Preset(n=40, drift=0.005, slope=0.15, hot=0.0, gap=0),
    "hard": visitors.Preset(n=400, drift=0.05, slope=0.01, hot=0.0, gap=120),
}

TRUST_HALF, SOLVED_HALF, MOOD_HALF, REPLY_HALF, EVENT_HALF, SURVEY_HALF, ISSUE_HALF, BITS_HALF, N_TURN_HALVES = range(9)
N_NEW_HALVES = visitors.N_HALVES - 2  # the last two say whether a persona changes, and to what
CUSTOMER = "customer"


@dataclasses.dataclass(frozen=True)
class CustomerService:
    """World of returning customers (`habitus.envs.contract.World`, `IntegerWorld`).

    Two worlds are equal when they compile to the same code; whatever else differs is in `params`.
    """

    capacity: int
    observe_entity: bool
    schema: Schema = dataclasses.field(compare=False, repr=False)
    params: ServiceParams = dataclasses.field(compare=False, repr=False)

    draws_apart = False
    n_step_halves = N_TURN_HALVES + visitors.N_HALVES
    n_observe_halves = 2

    def initial(self, key: Array, params: ServiceParams) -> ServiceState:
        """State before the first decision: everybody has a persona, and somebody has written."""
        persona_key, ticket_key = jax.random.split(key)
        halves = draws.halves(ticket_key, (2 + visitors.N_HALVES,)).astype(jnp.int32)
        known = visitors.nobody_yet(persona_key, params.arrivals, rules.N_PERSONAS)
        customer = visitors.next_visitor(known, params.arrivals, list(halves[2 : 2 + N_NEW_HALVES]), ARRAYS)
        known = visitors.arrive(
            known,
            params.arrivals,
            customer,
            list(halves[2 + N_NEW_HALVES :]),
            redraws_before=jnp.zeros((), jnp.int32),
            n_types=rules.N_PERSONAS,
            condition=jnp.ones((), jnp.bool_),
            arithmetic=ARRAYS,
        )
        ticket = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.int32), _new_ticket(customer, halves[0], halves[1]))
        return ServiceState(jnp.zeros((), jnp.int32), known, ticket)

    def observe(self, state: ServiceState, key: Array, params: ServiceParams) -> dict[str, Array]:
        """[] i32 codes of the observed fields; the mood is noisy."""
        halves: Any = draws.halves(key, (self.n_observe_halves,)).astype(jnp.int32)
        return self.show(state, halves, params, ARRAYS)

    def step(
        self, state: ServiceState, action: Array, key: Array, params: ServiceParams
    ) -> tuple[ServiceState, Outcome]:
        """One answer to the customer at hand; `action` is [] i32 in [0, 9)."""
        halves: Any = draws.halves(key, (self.n_step_halves,)).astype(jnp.int32)
        return self.advance(state, action, halves, params, ARRAYS)

    def advance(
        self, state: ServiceState, action: Any, halves: Sequence[Any], params: ServiceParams, arithmetic: Arithmetic
    ) -> tuple[ServiceState, Outcome]:
        """One answer, in the order trust, solution, mood, reply, end, survey, next customer."""
        take, where, integer = arithmetic.take, arithmetic.where, arithmetic.integer
        known, ticket = state.known, state.ticket
        level = take(params.regime_levels, arithmetic.entry_at(params.regime_steps, state.step))
        persona = take(known.types, ticket.customer)
        closes, is_first = action == rules.CLOSE, ticket.turn == 0

        read = tables()
        row = ((level * rules.N_PERSONAS + persona) * rules.N_ACTIONS + action) * 4
        trust = drawn(halves[TRUST_HALF], read.trust, row + where(is_first, 0, ticket.trust + 1), arithmetic)
        row = (level * rules.N_ISSUES + ticket.issue) * 2 + ticket.cause
        packed = take(read.solved, (row * rules.N_ACTIONS + action) * rules.N_TRUST + trust)
        solves = happens(halves[SOLVED_HALF], packed & CHANCE_MASK) & (ticket.is_solved == 0)
        cost, is_solved = packed >> CHANCE_BITS, ticket.is_solved + integer(solves)
        row = (action * rules.N_TRUST + trust) * 3 + ticket.is_solved + is_solved
        mood = drawn(halves[MOOD_HALF], read.mood, row * rules.N_MOODS + ticket.mood, arithmetic)
        attitude = is_solved * rules.N_TRUST + trust
        reply = drawn(halves[REPLY_HALF], read.reply, persona * 6 + attitude, arithmetic)
        row = (persona * rules.N_TURNS + ticket.turn) * 2 + integer(closes)
        packed = take(read.event, (row * 6 + attitude) * rules.N_MOODS + mood)
        event = happens(halves[EVENT_HALF], packed & CHANCE_MASK)
        is_over, reopens = event ^ closes, event & closes
        pays = where(is_over, (packed >> CHANCE_BITS) - PAYS_OFFSET, 0)
        fee = where(reopens, where(is_first, rules.EMPTY_CLOSE, rules.REOPENING), 0)
        survey = drawn(halves[SURVEY_HALF], read.survey, attitude, arithmetic)

        opening = where(is_first, action + 1, ticket.opening)
        later = where(is_first, 1, 1 + rules.N_ACTIONS)
        outcome = _outcome(
            arithmetic,
            pays - fee - cost,
            is_over,
            {
                "answer": where(closes, where(reopens, 1 + rules.REOPENED, 0), 1 + reply),
                "exchange": where(closes, where(reopens, 2 * rules.N_ACTIONS + opening, 0), later + action),
                "survey": where(is_over, survey, 0),
                "first_action": where(is_over, opening, 0),
                "ending": integer(is_over) * where(closes, 1, 2),
            },
        )

        def following() -> Ticket:
            return ticket._replace(
                mood=mood - integer(reopens & (mood > 0)),
                trust=trust,
                is_solved=where(reopens, 0, is_solved),
                is_clarified=ticket.is_clarified | integer(action == rules.CLARIFY),
                turn=ticket.turn + 1,
                reply=where(reopens, rules.REOPENED, reply),
                opening=opening,
            )

        def opened() -> Ticket:
            halves_of_arrival = list(halves[N_TURN_HALVES : N_TURN_HALVES + N_NEW_HALVES])
            customer = visitors.next_visitor(known, params.arrivals, halves_of_arrival, arithmetic)
            return _new_ticket(customer, halves[ISSUE_HALF], halves[BITS_HALF])

        coming = arithmetic.choose(is_over, opened, following)
        coming_entry = arithmetic.entry_at(params.regime_steps, state.step + 1)
        known = visitors.leave(known, ticket.customer, state.step, is_over, arithmetic)
        known = visitors.arrive(
            known,
            params.arrivals,
            coming.customer,
            list(halves[N_TURN_HALVES + N_NEW_HALVES :]),
            redraws_before=params.redraws * take(params.regime_steps, coming_entry),
            n_types=rules.N_PERSONAS,
            condition=is_over,
            arithmetic=arithmetic,
        )
        return ServiceState(state.step + 1, known, coming), outcome

    def show(
        self, state: ServiceState, halves: Sequence[Any], params: ServiceParams, arithmetic: Arithmetic
    ) -> dict[str, Any]:
        """The observation."""
        ticket = state.ticket
        shown = {
            "issue": ticket.issue,
            "detail": arithmetic.where(ticket.is_clarified == 1, ticket.cause + 1, 0),
            "mood": drawn(halves[0], tables().seen_mood, ticket.mood, arithmetic),
            "turn": ticket.turn,
            "reply": ticket.reply,
            "channel": ticket.channel,
            "tier": ticket.customer - arithmetic.divide(ticket.customer, 3) * 3,
            "last_seen": visitors.last_seen(state.known, ticket.customer, state.step, arithmetic),
        }
        if self.observe_entity:
            shown[CUSTOMER] = ticket.customer + 1
        return shown

    def mask(self, state: ServiceState, params: ServiceParams, arithmetic: Arithmetic) -> list[Any]:
        """Everything is possible at any time."""
        return [True] * rules.N_ACTIONS

    def action_mask(self, state: ServiceState, params: ServiceParams) -> Array:
        """[9] bool, all True."""
        return jnp.ones(rules.N_ACTIONS, jnp.bool_)

    def expected_rewards(self, state: ServiceState, params: ServiceParams, solution: Solution | None) -> Array:
        """[9] f32: expected reward of each action itself, all hidden known."""
        return self._looked_up("rewards", state, params, solution)

    def action_values(self, state: ServiceState, params: ServiceParams, solution: Solution | None) -> Array:
        """[9] f32: differential value of each action, all hidden known, the rules of the coming decision for ever."""
        return self._looked_up("values", state, params, solution)

    def regime(self, state: ServiceState, params: ServiceParams) -> Array:
        """[] f32: regime of the coming decision."""
        return regimes.fraction(self._level(state, params))

    def audit(self, state: ServiceState, params: ServiceParams) -> dict[str, Array]:
        """What is hidden of the ticket at hand, [] i32 each; `type` is the persona."""
        ticket = state.ticket
        return {
            "type": state.known.types[ticket.customer],
            "visitor": ticket.customer,
            "cause": ticket.cause,
            "mood": ticket.mood,
            "trust": ticket.trust,
            "is_solved": ticket.is_solved,
        }

    def check(self, params: ServiceParams) -> None:
        """Refuse params out of range, see `contract.ChecksParams`."""
        regimes.check(params.regime_steps, params.regime_levels)
        visitors.check(params.arrivals)
        arguments.entries("params.redraws", params.redraws, 0, 1)

    def solve(self, params: ServiceParams) -> Solution:
        """Exact values for the levels of the schedule; those of a level are worked out once."""
        return solution.solved(tuple(sorted({int(level) for level in jax.device_get(params.regime_levels).ravel()})))

    def filter(self, solution: Solution | None, *, forgets: bool = False) -> Filter:
        """The filtering oracle, see `belief`. Where customers are not observed it cannot remember them either."""
        if solution is None:
            raise ValueError("`solution` must be that of `solve(params)`, got None.")
        return belief.ServiceFilter(self.capacity, remembers=self.observe_entity and not forgets, solution=solution)

    def _level(self, state: ServiceState, params: ServiceParams) -> Array:
        return regimes.level_at(params.regime_steps, params.regime_levels, state.step)

    def _looked_up(self, what: str, state: ServiceState, params: ServiceParams, solved: Solution | None) -> Array:
        if solved is None:
            raise ValueError("`solution` must be that of `solve(params)`, got None; values here need planning.")
        ticket = state.ticket
        index = solution.state_index(
            state.known.types[ticket.customer],
            ticket.issue,
            ticket.cause,
            ticket.mood,
            ticket.is_solved,
            ticket.trust,
            ticket.turn,
        )
        table: Array = getattr(solved, what)
        return table[solution.level_index(solved, self._level(state, params)), index]


def _new_ticket(customer: Any, issue_half: Any, bits_half: Any) -> Ticket:
    """The first turn of a ticket; nothing in it depends on the persona."""
    return Ticket(
        customer=customer,
        issue=below(issue_half, rules.N_ISSUES),
        cause=bits_half >> 15,
        channel=(bits_half >> 14) & 1,
        mood=1 + ((bits_half >> 13) & 1),
        trust=rules.UNDECIDED,
        is_solved=0,
        is_clarified=0,
        turn=0,
        reply=rules.START,
        opening=0,
    )


def _outcome(arithmetic: Arithmetic, money: Any, is_over: Any, signals: dict[str, Any]) -> Outcome:
    """Nothing comes later than its decision, and nothing ends the episode."""
    reward = arithmetic.money(money, rules.MONEY)
    if arithmetic is ARRAYS:
        nothing = jnp.full((), NO_DECISION, jnp.int32), jnp.zeros(0, jnp.int32), jnp.zeros(0, jnp.float32)
        return Outcome(reward, jnp.zeros((), jnp.bool_), is_over, *nothing, signals)
    return Outcome(reward, False, is_over, NO_DECISION, [], [], signals)  # type: ignore[arg-type]  # Python numbers


def customer_service(
    *,
    preset: visitors.Preset,
    capacity: int,
    schedule: regimes.Schedule,
    feedback: FeedbackMode,
    observe_entity: bool,
    redraw_personas: bool,
) -> CustomerService:
    """World for arguments that `CustomerServiceEnv` has checked."""
    customer = Field(CUSTOMER, ("unknown", *(f"#{number}" for number in range(1, capacity + 1))))
    schema = Schema(
        world="CustomerService",
        version=0,
        fields=(
            Field("issue", rules.ISSUES),
            Field("detail", rules.DETAILS),
            Field("mood", rules.MOODS),
            Field("turn", rules.TURNS),
            Field("reply", rules.REPLIES),
            Field("channel", rules.CHANNELS),
            Field("tier", rules.TIERS),
            Field("last_seen", visitors.SEEN_LABELS),
            *((customer,) if observe_entity else ()),
        ),
        actions=rules.ACTIONS,
        entity_field=CUSTOMER if observe_entity else None,
        stake_field=None,
        boundary="ticket",
        deliberation=("clarify",),
        scaled_actions=(),
        review=None,
        signals=(
            Signal("answer", ("none", *rules.REPLIES)),
            Signal("exchange", rules.EXCHANGES),
            Signal("survey", rules.SURVEYS),
            Signal("first_action", ("none", *rules.ACTIONS)),
            Signal("ending", rules.ENDINGS),
        ),
        sensitive=(),
        proxies=(),
        reward_bound=INTEGERS.money(rules.COST.max() - rules.END_PAYS.min(), rules.MONEY),  # float32, like a reward
        feedback=feedback,
        score_per="step",
        behaviours=(Behaviour("answer", "exchange"), Behaviour("survey", "first_action")),
    )
    params = ServiceParams(
        regime_steps=jnp.asarray(schedule.steps),
        regime_levels=jnp.asarray(schedule.levels),
        redraws=jnp.asarray(int(redraw_personas), jnp.int32),
        arrivals=visitors.arrivals(preset, capacity),
    )
    return CustomerService(capacity, observe_entity, schema, params)
