"""Decisions wait, outcomes find them, and what is lost is counted."""

import jax
import jax.numpy as jnp
import numpy as np
from habitus import cognition
from habitus.cognition import ledger

SHAPE = cognition.Structure(9, 2, (0, 1), (1.0, 1.0), (False, False), ledger_capacity=4)  # two paths


def entry(decision_id, action=0, reward=0.0):
    paths = cognition.Paths(
        jnp.array([decision_id % 9, 8], jnp.int32), jnp.array([1.0, -0.25], jnp.float32), jnp.float32(1.5)
    )
    return cognition.Entry(jnp.int32(decision_id), jnp.int32(7), jnp.int32(action), jnp.float32(reward), paths)


NOTHING = ledger.nothing(SHAPE)


def stored(book, given):
    nobody = jnp.full(1, -1, jnp.int32)
    return ledger.update(book, ledger.settle(book, nobody, given.decision_id), given)


def filled(*ids):
    book = ledger.initial_ledger(SHAPE)
    for decision_id in ids:
        book = stored(book, entry(decision_id, action=decision_id % 2, reward=decision_id / 8))
    return book


def settled(book, *ids, new=NOTHING):
    """The ledger afterwards, what was stored, and what was found."""
    looked_up = ledger.settle(book, jnp.array(ids, jnp.int32), new.decision_id)
    return ledger.update(book, looked_up, new), looked_up.entries, looked_up.found


def counts(book):
    return int(book.overwritten), int(book.unmatched), int((book.entries[:, 0] != -1).sum())


def test_outcomes_in_any_order_find_the_paths_of_their_decision():
    book, found_entries, found = settled(filled(4, 5, 6, 7), 6, -1, 4)
    assert found.tolist() == [True, False, True]
    assert found_entries.decision_id.tolist()[::2] == [6, 4]
    assert found_entries.paths.nodes.tolist()[::2] == [[6, 8], [4, 8]]
    assert found_entries.paths.activation.tolist()[0] == [1.0, -0.25]
    assert found_entries.paths.stake.tolist()[0] == 1.5
    assert found_entries.action.tolist()[::2] == [0, 0]
    assert found_entries.reward.tolist()[::2] == [0.75, 0.5]
    assert found_entries.version.tolist()[0] == 7
    assert counts(book) == (0, 0, 2)


def test_an_outcome_is_credited_once():
    book, _, found = settled(filled(2), 2)
    assert found.all()
    book, _, found = settled(book, 2)
    assert not found.any()
    assert counts(book) == (0, 1, 0)


def test_an_overwritten_decision_is_counted_and_its_outcome_finds_nothing():
    book = filled(1, 2, 5)  # 5 takes the slot of 1
    assert counts(book) == (1, 0, 2)
    book, _, found = settled(book, 1, 5)
    assert found.tolist() == [False, True]
    assert counts(book) == (1, 1, 1)


def test_nothing_is_stored_without_an_id():
    assert counts(filled(-1)) == (0, 0, 0)
    np.testing.assert_array_equal(filled(3, -1).entries, filled(3).entries)


def test_a_new_episode_forgets_who_waits():
    book = ledger.forget_waiting(filled(1, 2))
    assert counts(book) == (0, 0, 0)
    _, _, found = settled(book, 1, 2)
    assert not found.any()


def test_a_slot_that_was_settled_is_free():
    book, _, _ = settled(filled(1), 1)
    assert counts(stored(book, entry(5))) == (0, 0, 1)


def test_a_slot_can_be_freed_and_taken_in_the_same_step():
    book, found_entries, found = settled(filled(1, 2), 1, new=entry(5, reward=0.5))
    assert found.all()
    assert found_entries.decision_id.tolist() == [1]
    assert counts(book) == (0, 0, 2)
    _, found_entries, found = settled(book, 5)
    assert found.all()
    assert found_entries.reward.tolist() == [0.5]


def test_in_another_unit_only_the_rewards_of_waiting_decisions_change():
    book = filled(4, 5, 7)
    _, before, _ = settled(book, 4, 5, 7)
    _, after, found = settled(ledger.rescaled(book, jnp.float32(0.25)), 4, 5, 7)
    assert found.all()
    np.testing.assert_allclose(after.reward, 0.25 * before.reward)
    for a, b in zip(after._replace(reward=0), before._replace(reward=0), strict=True):
        jax.tree.map(np.testing.assert_array_equal, a, b)
