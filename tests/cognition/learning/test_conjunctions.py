"""A pair of nodes gets a node of its own when it is met often, and gives it up for one that is met oftener."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import learner
from habitus.cognition.learning import conjunctions

ON = np.ones(6, np.float32)
MEET, RECALL = (jax.jit(f, static_argnums=3) for f in (conjunctions.meet, conjunctions.recall))


def shape_of(structure, capacity=64, after=3, **changes):
    return structure(conjunctions=capacity, conjunction_after=after, **changes)


def nodes_of(a=1, b=4, last=12, first=17):
    return np.array([0, a, b, 7, last, first], np.int32)


def met(shape, *sightings):
    table = conjunctions.initial_conjunctions(shape)
    for nodes in sightings:
        table, _ = MEET(table, nodes, ON, shape)
    return table


def test_a_conjunction_is_made_after_so_many_meetings_and_not_before(structure):
    shape = shape_of(structure)
    for n in range(1, 6):
        table = met(shape, *[nodes_of()] * n)
        _, on = RECALL(table, nodes_of(), ON, shape)
        assert (np.asarray(on) > 0).any() == (n >= 3)
        if n >= 3:  # six pairs of four nodes, two of which share a slot
            assert np.count_nonzero(on) == np.count_nonzero(table.counts >= 3) == 5


def test_half_a_match_is_off_behind_the_gate_and_half_on_without(structure):
    for gate, expected in ((True, 0.0), (False, 0.5)):
        shape = shape_of(structure, gate=gate, paired=(1, 2))
        table = met(shape, *[nodes_of()] * 3)
        on = ON.copy()
        on[2] = 0.0
        assert RECALL(table, nodes_of(), ON, shape)[1].tolist() == [1.0]
        assert RECALL(table, nodes_of(), on, shape)[1].tolist() == [expected]
        # another value of the same field is no match at all
        assert RECALL(table, nodes_of(b=5), ON, shape)[1].tolist() == [0.0]


def test_a_pair_with_a_part_that_is_off_is_not_met(structure):
    shape = shape_of(structure, paired=(1, 2))
    on = ON.copy()
    on[1] = 0.0
    table, changed = MEET(conjunctions.initial_conjunctions(shape), nodes_of(), on, shape)
    assert changed.tolist() == [shape.conjunctions]
    assert (np.asarray(table.pairs) == conjunctions.FREE).all()


def test_the_pair_that_is_met_oftener_takes_the_slot(structure):
    shape = shape_of(structure, capacity=1, paired=(1, 2))  # one slot for all
    table = met(shape, *[nodes_of(1, 4)] * 4)
    changes = []
    for _ in range(6):
        table, changed = MEET(table, nodes_of(2, 5), ON, shape)
        changes.append(int(changed[0]))
    # four meetings wear the first pair down to 0, the fifth takes the slot
    assert changes == [1, 1, 1, 1, 0, 1]
    assert conjunctions.parts(int(table.pairs[0]), shape) == (2, 5)
    assert int(table.counts[0]) == 2


def test_a_pair_that_is_met_now_and_then_does_not_oust_a_frequent_one(structure):
    shape = shape_of(structure, capacity=1, paired=(1, 2))
    rng = np.random.default_rng(0)
    sightings = [nodes_of(1, 4) if rng.random() < 0.8 else nodes_of(3, 6) for _ in range(200)]
    assert conjunctions.parts(int(met(shape, *sightings).pairs[0]), shape) == (1, 4)


def test_of_pairs_that_are_always_met_together_one_gets_the_slot(structure):
    shape = shape_of(structure, capacity=1)
    table = met(shape, *[nodes_of()] * 3)
    assert int(table.counts[0]) == 3
    assert np.count_nonzero(RECALL(table, nodes_of(), ON, shape)[1]) == 1


def test_nodes_never_exceed_the_capacity(structure):
    shape = shape_of(structure, capacity=7, after=1)
    rng, table = np.random.default_rng(0), conjunctions.initial_conjunctions(shape)
    for _ in range(100):
        a, b, last, first = rng.integers(1, 4), rng.integers(4, 7), rng.integers(12, 17), rng.integers(17, 22)
        nodes = nodes_of(a, b, last, first)
        slots, _ = RECALL(table, nodes, ON, shape)
        assert 0 <= int(slots.min()) <= int(slots.max()) < 7
        table, changed = MEET(table, nodes, ON, shape)
        assert int(changed.max()) <= 7
        assert int(table.counts.min()) >= 0
    assert table.pairs.shape == (7,)


def test_parts_are_the_two_nodes_of_every_pair(structure):
    shape = shape_of(structure, after=1)
    table = met(shape, nodes_of(3, 5, 13, 20))
    there = [conjunctions.parts(int(pair), shape) for pair in table.pairs if int(pair) != conjunctions.FREE]
    assert set(there) <= {(3, 5), (3, 13), (3, 20), (5, 13), (5, 20), (13, 20)}
    assert len(there) >= 5


def test_edges_of_a_slot_that_changes_hands_are_blank(structure):
    shape = shape_of(structure)
    known = cognition.initial_edges(shape, np.linspace(0.1, 0.2, shape.n_nodes, dtype=np.float32))
    edges = cognition.Edges(jnp.full_like(known.net, 0.3), known.variance * 0.5, known.prior, known.activity)
    node = shape.first_conjunction + 2
    after = learner.blanked(edges, jnp.array([node, shape.n_nodes]), shape)
    net, variance = (np.asarray(x).reshape(shape.n_nodes, -1) for x in (after.net, after.variance))
    assert (net[node] == 0).all()
    np.testing.assert_allclose(variance[node], known.prior[node])
    others = np.arange(shape.n_nodes) != node
    assert (net[others] == np.float32(0.3)).all()
    np.testing.assert_array_equal(variance[others], np.asarray(edges.variance).reshape(shape.n_nodes, -1)[others])


@pytest.mark.slow
def test_a_step_that_gives_a_slot_to_another_pair_blanks_its_edges(structure, experiences, situation, begun, compiled):
    config = cognition.Config(ledger_capacity=16, prototypes=3, conjunctions=5, conjunction_after=2, cases=3)
    shape = structure(config)
    params = cognition.params_of(config, cognition.Style())
    state = begun(shape, config, situation(shape, np.random.default_rng(0)))
    state = compiled.attend(state, state.situation, np.array([2**32 - 1, 0], np.uint32), shape, params)
    n_changed = 0
    for experience in experiences(shape, 60, seed=1):
        before = state
        state = compiled.step(state, experience, np.array([2**32 - 1, 0], np.uint32), shape, params)
        changed = np.flatnonzero(before.known.conjunctions.pairs != state.known.conjunctions.pairs)
        n_changed += len(changed)
        net = np.asarray(state.edges.net).reshape(shape.n_nodes, -1)
        assert (net[shape.first_conjunction + changed] == 0).all()
    assert n_changed > 5
