"""Who learns from an outcome, and when."""

from types import MappingProxyType

import pytest
from habitus.agents.base import Transition
from habitus.agents.credit import Ledger


def step(reward, decision_id=-1, feedback=()):
    info = MappingProxyType({"decision_id": decision_id, "feedback": list(feedback), "boundary": True})
    return Transition({}, 0, reward, {}, False, False, info)


def test_a_pending_decision_is_settled_with_its_own_reward_when_its_outcome_is_listed(schema):
    ledger = Ledger("attributed", schema(feedback="attributed"))
    assert ledger.settle("first", step(5.0, decision_id=7)) == (
        None,
        [],
    )  # 5 is known to the world, not yet to the agent
    assert ledger.settle("second", step(1.0)) == (1.0, [])
    assert ledger.settle("third", step(2.0, feedback=[(7, 5.0)])) == (2.0, [("first", 5.0)])
    assert len(ledger) == 0


def test_a_world_that_pays_on_arrival_is_read_by_decision(schema):
    ledger = Ledger("attributed", schema(feedback="stream"))
    assert ledger.settle("first", step(-0.25, decision_id=0)) == (None, [])  # a fee now, 4 later
    assert ledger.settle("second", step(4.5, feedback=[(0, 4.0)])) == (0.5, [("first", 3.75)])


def test_stream_takes_the_reward_as_it_comes(schema):
    ledger = Ledger("stream", schema(feedback="stream"))
    assert ledger.settle("first", step(0.0, decision_id=0)) == (0.0, [])
    assert ledger.settle("second", step(4.0, decision_id=1, feedback=[(0, 4.0)])) == (4.0, [])
    assert len(ledger) == 0


def test_outcomes_of_one_step_are_settled_oldest_first_and_a_decision_may_be_its_own(schema):
    ledger = Ledger("attributed", schema())
    ledger.settle("a", step(1.0, decision_id=0))
    assert ledger.settle("b", step(2.0, decision_id=1, feedback=[(0, 1.0), (1, 2.0)])).late == [("a", 1.0), ("b", 2.0)]


def test_a_cleared_ledger_ignores_outcomes_of_the_episode_before(schema):
    ledger = Ledger("attributed", schema())
    ledger.settle("old", step(1.0, decision_id=0))
    ledger.clear()
    assert ledger.settle("new", step(2.0, feedback=[(0, 1.0)])) == (2.0, [])


def test_a_plain_environment_settles_at_once():
    transition = Transition(0, 0, 1.5, 1, False, False, {})
    assert Ledger("attributed", None).settle("only", transition) == (1.5, [])


def test_an_unknown_variant_is_refused():
    with pytest.raises(ValueError, match=r"`credit` must be one of \['attributed', 'stream'\], got 'delayed'"):
        Ledger("delayed", None)
