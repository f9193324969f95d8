"""Steps of CustomerService by hand, its arguments and its presets."""

import copy
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import visitors
from habitus.envs.arithmetic import INTEGERS, as_integers
from habitus.envs.customer_service import CustomerServiceEnv, rules
from habitus.envs.customer_service import world as service
from habitus.envs.rollout import RandomPlayer, rollout, seeds_to_key_data

HASTY, THOROUGH, HUMAN_SEEKER, HAGGLER, LOYAL = range(5)
TEMPLATE, DETAILED, APOLOGISE, CLARIFY, DISCOUNT, REFUND, REPLACE, ESCALATE, CLOSE = range(9)
LOST, UNDECIDED, WON = range(3)
ANGRY, ANNOYED, CALM, PLEASED = range(4)
ALWAYS, NEVER = 0, 65535  # halves that make every event happen that can, and none that need not


@functools.cache
def env(**arguments):
    return CustomerServiceEnv(**arguments)


def advanced(
    action, *, persona=HASTY, becomes=None, solves=NEVER, feels=None, answers=None, event=NEVER, level=0, **ticket
):
    """Outcome and state after a step in which trust, mood and answer become as told; the ticket begins as told."""
    world = env().world
    params = as_integers(world.params)
    params = params._replace(regime_levels=[level] * len(params.regime_levels))
    state = first_state()
    begin = {"issue": 0, "cause": 0, "channel": 0, "mood": CALM, "trust": UNDECIDED, "is_solved": 0, "opening": 0}
    state = state._replace(ticket=state.ticket._replace(**(begin | {"turn": 0} | ticket)))
    state.known.types[state.ticket.customer] = persona
    halves = [20000, solves, 20000, 30000, event, NEVER, *(12345 for _ in range(world.n_step_halves - 6))]

    def result():
        return world.advance(copy.deepcopy(state), action, halves, params, INTEGERS)

    for place, wanted, found in (
        (service.TRUST_HALF, becomes, lambda after, outcome: after.ticket.trust),
        (service.MOOD_HALF, feels, lambda after, outcome: after.ticket.mood),
        (service.REPLY_HALF, answers, lambda after, outcome: outcome.signals["answer"] - 1),
    ):
        if wanted is not None:  # try halves until one draws it
            for halves[place] in range(0, 65536, 200):
                if found(*result()) == wanted:
                    break
            assert found(*result()) == wanted
    after, outcome = result()
    return outcome, after


def first_state():
    """A state of Python integers, not shared."""
    return as_integers(_first_state())


@functools.cache
def _first_state():
    return jax.jit(env().world.initial)(jax.random.key(0), env().world.params)


def label(signal, outcome):
    labels = {one.name: one.labels for one in env().schema.signals}[signal]
    return labels[outcome.signals[signal]]


def test_a_first_action_that_wins_trust_solves_lifts_the_mood_and_is_thanked():
    outcome, state = advanced(REFUND, becomes=WON, solves=ALWAYS, feels=PLEASED, answers=rules.THANKS)
    assert outcome.reward == pytest.approx(-0.70)
    assert not outcome.boundary
    assert (state.ticket.trust, state.ticket.is_solved, state.ticket.mood, state.ticket.turn) == (WON, 1, PLEASED, 1)
    assert label("answer", outcome) == "thanks"
    assert label("exchange", outcome) == "refund, first"
    assert label("survey", outcome) == label("first_action", outcome) == label("ending", outcome) == "none"


def test_closing_a_solved_ticket_of_a_won_customer_pays_by_hand():
    outcome, state = advanced(CLOSE, turn=2, opening=1 + REFUND, is_solved=1, mood=CALM)
    assert outcome.boundary
    # before: trust undecided, solved, calm
    assert outcome.reward == pytest.approx(1.4 + 0 + 0.1)
    assert label("ending", outcome) == "closed"
    assert label("first_action", outcome) == "refund"
    assert label("answer", outcome) == label("exchange", outcome) == "none"
    assert (state.ticket.turn, state.ticket.opening, state.ticket.trust, state.ticket.is_solved) == (0, 0, UNDECIDED, 0)


def test_closing_an_unanswered_ticket_reopens_it_and_loses_the_trust():
    for event in (ALWAYS, NEVER):
        outcome, state = advanced(CLOSE, event=event)
        assert outcome.reward == pytest.approx(-0.6)
        assert not outcome.boundary
        ticket = state.ticket
        assert (ticket.trust, ticket.mood, ticket.reply, ticket.turn) == (LOST, ANNOYED, rules.REOPENED, 1)
        assert label("exchange", outcome) == "reopened after close"


def test_a_later_close_may_reopen_and_the_ticket_is_open_again():
    ticket = {"turn": 3, "opening": 1 + ESCALATE, "is_solved": 1, "trust": LOST}
    outcome, state = advanced(CLOSE, event=ALWAYS, **ticket)
    assert outcome.reward == pytest.approx(-0.3)
    assert (state.ticket.is_solved, state.ticket.mood, state.ticket.trust, state.ticket.turn) == (0, ANNOYED, LOST, 4)
    assert label("answer", outcome) == "reopened"
    assert label("exchange", outcome) == "reopened after escalate"
    assert advanced(CLOSE, event=NEVER, **ticket)[0].boundary


def test_a_customer_who_leaves_with_an_open_issue_costs_by_hand_and_still_answers():
    outcome, _ = advanced(DISCOUNT, event=ALWAYS, turn=1, opening=1 + DETAILED)
    assert outcome.boundary
    assert label("ending", outcome) == "left"
    assert label("answer", outcome) != "none"
    assert label("exchange", outcome) == "discount, later"
    assert label("first_action", outcome) == "detailed"
    # price .35, open -1.4, left open -.5, and what trust (lost, undecided, won) and mood (angry to pleased) pay
    possible = {round(-0.35 - 1.9 + trust + mood, 6) for trust in (-0.8, 0, 0.6) for mood in (-0.3, -0.1, 0.1, 0.3)}
    assert round(outcome.reward, 6) in possible


def test_the_sixth_turn_is_the_last():
    for action in (TEMPLATE, CLOSE):
        outcome, _ = advanced(action, event=NEVER, turn=5, opening=1, is_solved=0)
        assert outcome.boundary
        assert outcome.reward < 0


def test_clarify_shows_the_cause_until_the_ticket_ends():
    world, params = env().world, as_integers(env().world.params)
    _, state = advanced(CLARIFY, becomes=LOST, cause=1)
    assert world.show(state, [30000, 0], params, INTEGERS)["detail"] == 2
    _, state = advanced(TEMPLATE, becomes=LOST, cause=1)
    assert world.show(state, [30000, 0], params, INTEGERS)["detail"] == 0


def test_the_seen_mood_is_right_three_times_in_four_and_clipped():
    world, params = env().world, as_integers(env().world.params)
    _, state = advanced(TEMPLATE, becomes=LOST)
    chances = {ANGRY: (0.875, 0.125, 0, 0), CALM: (0, 0.125, 0.75, 0.125), PLEASED: (0, 0, 0.125, 0.875)}
    for mood, expected in chances.items():
        at_hand = state._replace(ticket=state.ticket._replace(mood=mood))
        seen = [world.show(at_hand, [half, 0], params, INTEGERS)["mood"] for half in range(0, 65536, 64)]
        np.testing.assert_array_equal(np.bincount(seen, minlength=4) / len(seen), expected)


def test_second_rules_charge_their_own_prices():
    assert advanced(REFUND, level=10)[0].reward == pytest.approx(-1.60)
    assert advanced(ESCALATE, level=5)[0].reward == pytest.approx(-0.725)


def test_nothing_before_the_first_action_depends_on_the_persona():
    world = env().world
    params = as_integers(world.params)
    state = first_state()
    seen = []
    for persona in range(5):
        state.known.types[:] = [persona] * len(state.known.types)
        seen.append(world.show(state, [777, 0], params, INTEGERS))
        last_turn = copy.deepcopy(state)._replace(ticket=state.ticket._replace(turn=5, opening=1))
        halves = list(range(1000, 1000 + 3000 * world.n_step_halves, 3000))
        ended, outcome = world.advance(last_turn, CLOSE, halves, params, INTEGERS)
        assert outcome.boundary
        seen[-1] |= {"next": world.show(ended, [777, 0], params, INTEGERS)}
    assert all(shown == seen[0] for shown in seen)


def test_every_signal_and_every_field_takes_all_its_values():
    world = env().world
    key_data = seeds_to_key_data(range(32))
    trace = rollout(world, _Watcher(), key_data, n_steps=500, scores=False)
    for name, counts in trace.carry.items():
        found = np.asarray(counts).sum(axis=0)
        labels = {part.name: part.labels for part in (*world.schema.fields, *world.schema.signals)}[name]
        impossible = {"answer": {1}, "exchange": {9, 18}, "customer": {0}}.get(name, set())
        missing = {code for code in range(len(labels)) if found[code] == 0}
        assert missing == impossible, name


class _Watcher(RandomPlayer):
    """Random, and counts what it sees."""

    def __init__(self):
        super().__init__(9)

    def initial(self, observation, key):
        schema = env().schema
        return {part.name: jnp.zeros(len(part.labels), jnp.int32) for part in (*schema.fields, *schema.signals)}

    def learn(self, carry, seen):
        codes = seen.following | seen.outcome.signals
        return {name: counts.at[codes[name]].add(1) for name, counts in carry.items()}


def test_rewards_never_exceed_the_declared_bound():
    trace = rollout(env(regime="drift", horizon=500).world, RandomPlayer(9), seeds_to_key_data(range(64)), n_steps=500)
    assert np.abs(trace.reward).max() <= env().schema.reward_bound
    assert env().schema.reward_bound == pytest.approx(1.6 + 3.0, rel=1e-6)


def test_presets_change_what_there_is_to_remember():
    presets = service.DIFFICULTIES
    assert [tuple(presets[name]) for name in ("easy", "medium", "hard")] == [
        (12, 0.002, 0.15, 0.3, 0),
        (40, 0.005, 0.15, 0.0, 0),
        (400, 0.05, 0.01, 0.0, 120),
    ]
    for name, preset in presets.items():
        assert len(env(difficulty=name).schema.fields[-1].labels) == preset.n + 1


def test_hidden_customers_leave_the_dynamics_as_they_are():
    shown, hidden = env(), env(observe_entity=False)
    assert hidden.schema.entity_field is None
    assert set(shown.observation_space) - set(hidden.observation_space) == {"customer"}
    key_data = seeds_to_key_data(range(4))
    one, other = (rollout(part.world, RandomPlayer(9), key_data, n_steps=100) for part in (shown, hidden))
    np.testing.assert_array_equal(one.reward, other.reward)


def test_a_change_of_rules_redraws_personas_only_on_request():
    at = [(0, 0), (300, 0)]  # the entry changes no rule
    before_and_after = {}
    for redraws in (False, True):
        world = env(regime=tuple(at), redraw_personas=redraws, difficulty="easy").world
        trace = rollout(world, _Types(), seeds_to_key_data(range(20)), n_steps=1200, scores=False)
        before_and_after[redraws] = [np.asarray(types) for types in trace.carry]
    np.testing.assert_array_equal(before_and_after[False][0], before_and_after[True][0])
    stays = {redraws: (before == after).mean() for redraws, (before, after) in before_and_after.items()}
    # drift .002 an arrival leaves most personas; of those redrawn a fifth stays by chance
    assert stays[False] > 0.85
    assert stays[True] < 0.45


def persona_of_comer(step, last_step, *, redraws=1, at_hand=False):
    """Persona of a hasty customer who writes after the decision of `step` and had left at `last_step`.

    The rules change with decision 100; a persona drawn anew is LOYAL. `at_hand`: it has just left.
    """
    world = env(difficulty="easy").world
    params = as_integers(env(difficulty="easy", regime=((0, 0.0), (100, 0.0))).params)
    params = params._replace(redraws=redraws, arrivals=params.arrivals._replace(stays=[65536] * 12, hot=0))
    state = as_integers(jax.jit(world.initial)(jax.random.key(0), world.params))
    state = state._replace(step=step, ticket=state.ticket._replace(turn=5, opening=1))
    comer = state.ticket.customer if at_hand else (state.ticket.customer + 1) % 12
    state.known.types[comer], state.known.last_step[comer] = HASTY, last_step
    halves = [20000] * world.n_step_halves
    halves[service.N_TURN_HALVES : service.N_TURN_HALVES + 8 : 2] = [-(-65536 * comer // 12)] * 4
    halves[-2:] = [NEVER, 65535]
    state, outcome = world.advance(state, CLOSE, halves, params, INTEGERS)
    assert (outcome.boundary, state.ticket.customer) == (True, comer)
    return state.known.types[comer]


@pytest.mark.slow
def test_a_redraw_reaches_whoever_writes_with_the_first_decision_under_the_new_entry():
    assert persona_of_comer(99, 50) == LOYAL  # decides at 100
    assert persona_of_comer(98, 50) == HASTY  # decides at 99
    assert persona_of_comer(150, 98) == persona_of_comer(150, 99) == LOYAL
    assert persona_of_comer(150, 100) == HASTY  # met the new entry already
    assert persona_of_comer(99, 50, at_hand=True) == LOYAL  # left with 99, before the entry
    assert persona_of_comer(100, 50, at_hand=True) == HASTY  # was at hand when it came
    assert persona_of_comer(150, visitors.NEVER) == HASTY  # never seen: nothing to be drawn anew
    assert persona_of_comer(99, 50, redraws=0) == HASTY


class _Types(RandomPlayer):
    """Random, and remembers the hidden personas before step 300 and now."""

    def __init__(self):
        super().__init__(9)

    def initial(self, observation, key):
        return jnp.zeros(12, jnp.int32), jnp.zeros(12, jnp.int32)

    def act(self, carry, turn):
        types = turn.state.known.types
        return super().act(carry, turn)[0], (jnp.where(turn.step < 300, types, carry[0]), types)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"difficulty": "impossible"}, ValueError, "`difficulty` must be one of .*'impossible'"),
        ({"horizon": 0}, ValueError, "`horizon` must lie in"),
        ({"regime": [(5, 0.0), (3, 1.0)]}, ValueError, "`regime.1. step` must be greater"),
        ({"regime": [(5, float("nan"))]}, ValueError, "`regime.0. level` must lie in"),
        ({"feedback": "late"}, ValueError, "`feedback` must be one of"),
        ({"observe_entity": 1}, TypeError, "`observe_entity` must be True or False"),
        ({"redraw_personas": "yes"}, TypeError, "`redraw_personas` must be True or False"),
        ({"capacity": 39}, ValueError, "`capacity` must lie in .40"),
        ({"capacity": 2**15}, ValueError, "`capacity` must lie in"),
    ],
)
def test_a_wrong_argument_fails_at_construction_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        CustomerServiceEnv(**arguments)


def test_both_kinds_of_feedback_pay_the_same():
    rewards = []
    for feedback in ("attributed", "stream"):
        environment = CustomerServiceEnv(feedback=feedback)
        environment.reset(seed=2)
        steps = [environment.step(number % 9) for number in range(200)]
        rewards.append([step[1] for step in steps])
        assert all(step[4]["decision_id"] == -1 and step[4]["feedback"] == [] for step in steps)
    assert rewards[0] == rewards[1]


def test_audit_tells_the_persona_and_the_oracle_its_best_opening():
    environment = CustomerServiceEnv(difficulty="easy")
    environment.reset(seed=0)
    best = {HASTY: {REFUND, REPLACE}, THOROUGH: {DETAILED}, HUMAN_SEEKER: {ESCALATE}, HAGGLER: {DISCOUNT}}
    best[LOYAL] = {APOLOGISE, TEMPLATE}
    found = set()
    for _ in range(300):
        action = environment.oracle_action()
        if environment.state.ticket.turn == 0:
            persona = environment.audit()["type"]
            found.add(persona)
            assert action in best[persona]
        environment.step(action)
    assert len(found) == 5
