"""Prototypes are found in what entities do; the opinion about one entity is fast and nobody else's."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition.learning import prototypes

N_TYPES, N_ENTITIES, N_CONTEXTS, N_SYMBOLS = 3, 16, 2, 4  # symbol 0 is "nothing"; entity 0 nobody
DRIFT = jnp.float32(0.003)
# what each type does in each situation, over symbols 1 to 3
HABITS = np.array(
    [[[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], [[0.1, 0.8, 0.1], [0.8, 0.1, 0.1]], [[0.1, 0.1, 0.8], [0.1, 0.8, 0.1]]]
)
CONSOLIDATE = jax.jit(prototypes.consolidate, static_argnums=3)


@pytest.fixture
def shape(structure):
    return structure(
        prototypes=N_TYPES, n_entities=N_ENTITIES, behaviours=(cognition.Behaviour(N_CONTEXTS, N_SYMBOLS),)
    )


@functools.partial(jax.jit, static_argnums=2)
def lived(known, told, shape):
    """Prototypes after a sequence of (entity, cell, is_new)."""

    def one(known, given):
        entity, cell, is_new = given
        return prototypes.witness(known, entity, cell[None], is_new, DRIFT, shape), None

    return jax.lax.scan(one, known, told)[0]


def behaviour(kinds, n_steps, seed):
    """(entity, cell, is_new) of each step; every second step a new encounter."""
    rng = np.random.default_rng(seed)
    entity = np.repeat(rng.integers(1, N_ENTITIES, n_steps // 2), 2)
    context = rng.integers(N_CONTEXTS, size=n_steps)
    habit = HABITS[kinds[entity], context]
    symbol = 1 + (rng.random((n_steps, 1)) > np.cumsum(habit, axis=1)).sum(axis=1)
    cell = context * N_SYMBOLS + symbol
    return entity.astype(np.int32), cell.astype(np.int32), np.arange(n_steps) % 2 == 0


def grown(shape, kinds, n_steps=600, seed=0, key=0):
    """A life with a rest every hundred steps."""
    known, told = prototypes.initial_prototypes(shape), behaviour(kinds, n_steps, seed)
    for n_done in range(100, n_steps + 1, 100):
        known = lived(known, tuple(x[n_done - 100 : n_done] for x in told), shape)
        known = CONSOLIDATE(known, jnp.int32(n_done), jax.random.fold_in(jax.random.key(key), n_done), shape)
    return known


KINDS = np.arange(N_ENTITIES) % N_TYPES


def purity(known, kinds):
    """Share of entities that are of the commonest true type of their prototype."""
    found = np.asarray(known.opinion)[1:].argmax(axis=1)
    return sum(np.bincount(kinds[1:][found == z]).max(initial=0) for z in range(N_TYPES)) / (N_ENTITIES - 1)


def test_planted_types_are_found_in_what_entities_do(shape):
    """Fifteen entities, forty events each, for three seeds; unrelated labels would agree in half of the entities."""
    for seed in range(3):
        known = grown(shape, KINDS, seed=seed, key=seed)
        assert purity(known, KINDS) > 0.9
    # the habits themselves are found as well, in some order
    theta = np.asarray(known.counts).reshape(N_TYPES, N_CONTEXTS, N_SYMBOLS)[:, :, 1:]
    theta = theta / theta.sum(axis=2, keepdims=True)
    for habit in HABITS:
        assert np.abs(theta - habit).max(axis=(1, 2)).min() < 0.2


def test_without_a_random_start_symmetric_prototypes_never_part(shape):
    """The reason for the restarts, and the control of the test above: steps at which none is due."""
    known = lived(prototypes.initial_prototypes(shape), behaviour(KINDS, 600, 0), shape)
    for n_done in (700, 900):
        known = CONSOLIDATE(known, jnp.int32(n_done), jax.random.key(0), shape)
    np.testing.assert_allclose(known.opinion, 1 / N_TYPES, atol=1e-3)


def test_the_opinion_follows_an_entity_that_changed_within_a_few_encounters(shape):
    known = grown(shape, KINDS)
    old, new = (int(np.asarray(known.opinion)[kind + 3].argmax()) for kind in (0, 1))
    assert old != new
    assert float(known.opinion[3, old]) > 0.9
    rng = np.random.default_rng(5)
    n_encounters = 0
    while float(known.opinion[3, new]) < 0.9:  # entity 3 now does as type 1 does, two events an encounter
        n_encounters += 1
        context = rng.integers(N_CONTEXTS, size=2)
        symbols = [1 + rng.choice(3, p=HABITS[1, c]) for c in context]
        told = np.array([3, 3], np.int32), (context * N_SYMBOLS + symbols).astype(np.int32), np.array([True, False])
        known = lived(known, told, shape)
        assert n_encounters <= 5
    others = np.arange(N_ENTITIES) != 3
    np.testing.assert_array_equal(known.opinion[others], grown(shape, KINDS).opinion[others])


def test_consolidation_never_touches_an_opinion_unless_a_restart_is_accepted(shape):
    known = lived(prototypes.initial_prototypes(shape), behaviour(KINDS, 300, 0), shape)
    parted = CONSOLIDATE(known, jnp.int32(200), jax.random.key(0), shape)
    assert np.abs(parted.opinion - known.opinion).max() > 0.3  # accepted: there was nothing to lose
    parted = lived(parted, behaviour(KINDS, 100, 7), shape)
    for n_done in (300, 500, 800, 1600):  # at the last two a restart is due and has nothing better to offer
        after = CONSOLIDATE(parted, jnp.int32(n_done), jax.random.key(1), shape)
        np.testing.assert_array_equal(after.opinion, parted.opinion)
        assert np.abs(after.counts - parted.counts).max() > 0.01


def test_new_prototypes_take_the_places_of_the_old_ones_that_they_resemble():
    before = np.eye(4, dtype=np.float32)[[0, 0, 0, 1, 1, 2]]
    now = np.eye(4, dtype=np.float32)[[2, 2, 2, 0, 3, 3]]  # 0 became 2; 1 went into 0 and 3, 2 into 3
    place = np.asarray(prototypes.matched(jnp.asarray(before), jnp.asarray(now)))
    assert place.tolist() == [2, 0, 3, 1]  # the pair 1 and 0 comes before the pair 1 and 3, being as common


def test_rounding_does_not_decide_who_takes_whose_place():
    """Nothing tells the old prototypes apart, and what rounding makes of that differs between a batch and one alone."""
    rng = np.random.default_rng(0)
    even, now = np.full((15, 3), 1 / 3, np.float32), np.eye(3, dtype=np.float32)[np.arange(15) % 3]
    places = [
        np.asarray(prototypes.matched(jnp.asarray(even + noise), jnp.asarray(now))).tolist()
        for noise in rng.uniform(-1e-6, 1e-6, (20, 15, 3)).astype(np.float32)
    ]
    assert places == [places[0]] * 20


def test_once_found_prototypes_fade_and_entities_may_change(shape):
    known = grown(shape, KINDS)
    after = CONSOLIDATE(known, jnp.int32(1_700), jax.random.key(0), shape)
    np.testing.assert_allclose(after.counts, prototypes.KEPT * known.counts, rtol=1e-6)
    np.testing.assert_allclose(after.totals, prototypes.KEPT * known.totals, rtol=1e-6)
    mass = prototypes.KEPT * np.asarray(known.totals).sum(axis=1)
    np.testing.assert_allclose(after.share, (mass + 1) / (mass + 1).sum(), rtol=1e-5)
    np.testing.assert_array_equal(after.opinion, known.opinion)


def test_the_ring_forgets_what_is_longer_ago_than_it_holds(shape):
    turned = (KINDS + 1) % N_TYPES
    both = [np.concatenate(pair) for pair in zip(behaviour(KINDS, 600, 0), behaviour(turned, 4096, 1), strict=True)]
    whole = lived(prototypes.initial_prototypes(shape), tuple(both), shape)
    late = lived(prototypes.initial_prototypes(shape), behaviour(turned, 4096, 1), shape)
    assert prototypes.EVENTS == 4096
    assert int(whole.n_events) == 4696
    np.testing.assert_array_equal(np.sort(whole.events), np.sort(late.events))
    assert float(late.counts.sum()) == pytest.approx(4096, rel=1e-4)
    # consolidation counts the ring's events and no others
    assert float(whole.counts.sum()) == pytest.approx(4696, rel=1e-4)
    rested = CONSOLIDATE(whole, jnp.int32(100), jax.random.key(0), shape)
    assert float(rested.counts.sum()) == pytest.approx(4096, rel=1e-4)


def test_nothing_is_learnt_of_the_unknown(shape):
    known = grown(shape, KINDS)
    cells = np.tile([1, 2, 3, 5], 50).astype(np.int32)
    after = lived(known, (np.zeros(200, np.int32), cells, np.ones(200, bool)), shape)
    for name in ("counts", "totals", "events", "n_events"):
        np.testing.assert_array_equal(getattr(after, name), getattr(known, name))
    np.testing.assert_array_equal(after.opinion[1:], known.opinion[1:])
    np.testing.assert_allclose(after.opinion[0].sum(), 1.0, atol=1e-5)


def test_a_symbol_that_was_not_seen_changes_nothing_and_an_encounter_brings_doubt(shape):
    known = grown(shape, KINDS)
    nothing = np.array([3], np.int32), np.array([-1], np.int32)
    np.testing.assert_array_equal(lived(known, (*nothing, np.array([False])), shape).opinion, known.opinion)
    doubted = lived(known, (*nothing, np.array([True])), shape).opinion[3]
    expected = (1 - 0.003) * np.asarray(known.opinion[3]) + 0.003 * np.asarray(known.share)
    np.testing.assert_allclose(doubted, expected, atol=1e-6)


def test_one_symbol_by_hand(shape):
    # prototype 0 showed symbol 1 three times in situation 0, prototype 1 once, of four events each; prior .2 of 3
    # theta: 3.2 / 4.6, 1.2 / 4.6, and .2 / .6 = 1 / 3 of prototype 2, which has seen nothing
    counts = np.zeros((3, 8), np.float32)
    counts[0, 1:4], counts[1, 1:4] = (3, 1, 0), (1, 3, 0)
    known = prototypes.initial_prototypes(shape)._replace(counts=jnp.asarray(counts))
    known = known._replace(totals=jnp.array([[4.0, 0], [4, 0], [0, 0]], jnp.float32))
    after = prototypes.witness(known, jnp.int32(5), jnp.array([1], jnp.int32), jnp.asarray(False), DRIFT, shape)
    likelihood = np.array([3.2 / 4.6, 1.2 / 4.6, 1 / 3])
    np.testing.assert_allclose(after.opinion[5], likelihood / likelihood.sum(), rtol=1e-4)
    np.testing.assert_allclose(after.counts[:, 1] - counts[:, 1], after.opinion[5], atol=1e-6)
    np.testing.assert_allclose(after.totals[:, 0] - known.totals[:, 0], after.opinion[5], atol=1e-6)
    assert int(after.events[0]) == (5 << prototypes.PACK) | 1


def test_the_same_key_gives_the_same_bytes_and_others_find_the_same_kinds(shape):
    known = lived(prototypes.initial_prototypes(shape), behaviour(KINDS, 300, 0), shape)
    found = [CONSOLIDATE(known, jnp.int32(200), jax.random.key(key), shape) for key in (0, 0, 1, 2, 3, 4, 5)]
    content = [b"".join(np.asarray(x).tobytes() for x in one) for one in found]
    assert content[0] == content[1]
    assert all(purity(one, KINDS) > 0.9 for one in found)


def test_cells_of_several_tables_do_not_overlap(structure):
    shape = structure()  # tables of 2 x 3 and 1 x 4
    assert prototypes.first_cells(shape) == [0, 6]
    constants = prototypes.cells(shape)
    assert prototypes.n_cells(shape) == 10 == len(constants.situation)
    assert constants.situation.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    assert constants.possible.tolist() == [0, 1, 1, 0, 1, 1, 0, 1, 1, 1]
    assert constants.member.sum(axis=0).tolist() == constants.n_symbols.tolist() == [2, 2, 3]
