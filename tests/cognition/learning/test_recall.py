"""Activation is the least along a path, so that what was not observed or recalled is no evidence."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition.learning import recall as recalling
from habitus.cognition.situation import Encounter

CONFIG = cognition.Config(ledger_capacity=16, prototypes=3)
OPINION = (0.1, 0.6, 0.3)  # of entity 2
CROSSED = slice(7, 17)  # paths: 4 observed, 2 own actions, 1 of advice, then 5 with each of two prototypes


def known_of(shape, opinion=OPINION, encounter=(0, 0)):
    known = cognition.initial_state(cognition.initial_edges(shape, np.ones(shape.n_nodes, np.float32)), shape).known
    prototypes = known.prototypes
    if shape.prototypes:
        prototypes = prototypes._replace(opinion=prototypes.opinion.at[2].set(jnp.array(opinion, jnp.float32)))
    last, first = encounter
    return dataclasses.replace(
        known, prototypes=prototypes, encounter=Encounter(jnp.int32(last), jnp.int32(first), jnp.asarray(first == 0))
    )


def seen(entity=2, activation=(1.0, 0.5, 1.0, 1.0), advice=-1):
    nodes = np.array([0, 2, 5, 7 + entity], np.int32)
    on = np.array(activation, np.float32)
    return cognition.Situation(nodes, on, np.float32(1.5), np.int32(entity), np.int32(advice), np.ones(4, bool))


def opened(shape, compiled, known=None, **what):
    paths = compiled.recall(known or known_of(shape), seen(**what), shape)
    return np.asarray(paths.nodes), np.asarray(paths.activation)


def test_every_path_of_a_prototype_is_on_as_far_as_its_weaker_part(structure, compiled):
    nodes, on = opened(structure(CONFIG), compiled)
    # bias, first field at .5, second field, last and first own action; prototype 1 at .6, then prototype 2 at .3
    np.testing.assert_allclose(on[CROSSED], [0.6, 0.5, 0.6, 0.6, 0.6, 0.3, 0.3, 0.3, 0.3, 0.3], atol=1e-6)
    # crossed nodes are 0 to 6 and the own actions 12 to 21; three prototypes each, from node 26 on
    crossed = [0, 2, 5, 7, 12]
    assert nodes[CROSSED].tolist() == [26 + 3 * k + 1 for k in crossed] + [26 + 3 * k + 2 for k in crossed]


def test_without_the_gate_a_path_is_on_by_the_mean_of_its_parts(structure, compiled):
    shape = structure(dataclasses.replace(CONFIG, gate=False))
    _, on = opened(shape, compiled)
    np.testing.assert_allclose(on[CROSSED], [0.8, 0.55, 0.8, 0.8, 0.8, 0.65, 0.4, 0.65, 0.65, 0.65], atol=1e-6)
    # so that half of a conjunction is half on; the gate is there to prevent just this
    _, on = opened(shape, compiled, activation=(1.0, 0.0, 1.0, 1.0))
    assert on[CROSSED][1] == pytest.approx(0.3)


def test_half_a_match_is_no_evidence_behind_the_gate(structure, compiled):
    shape = structure(CONFIG)
    _, on = opened(shape, compiled, activation=(1.0, 0.0, 1.0, 1.0))
    assert on[CROSSED][[1, 6]].tolist() == [0.0, 0.0]
    assert (on[CROSSED] > 0).sum() == 8
    _, on = opened(shape, compiled, known=known_of(shape, opinion=(0.86, 0.14, 0.0)))
    assert (on[CROSSED][5:] == 0).all()  # too unlikely to be believed


def test_of_an_unknown_entity_no_prototype_is_recalled(structure, compiled):
    shape = structure(CONFIG)
    known = known_of(shape)
    sure = known.prototypes._replace(
        opinion=known.prototypes.opinion.at[0].set(jnp.array([0.0, 1.0, 0.0], jnp.float32))
    )
    _, on = opened(shape, compiled, known=dataclasses.replace(known, prototypes=sure), entity=0)
    assert (on[CROSSED] == 0).all()


def test_own_actions_of_the_encounter_are_nodes(structure, compiled):
    shape = structure(CONFIG)
    nodes, on = opened(shape, compiled, known=known_of(shape, encounter=(3, 1)))
    # 12: last own action none; action 2 is three further. 17: first own action none; action 0 is one further
    assert nodes[4:6].tolist() == [15, 18]
    assert on[4:6].tolist() == [1.0, 1.0]
    assert opened(shape, compiled)[0][4:6].tolist() == [12, 17]


def test_advice_is_a_node_and_silence_is_none(structure, compiled):
    shape = structure(CONFIG)
    nodes, on = opened(shape, compiled, advice=3)
    assert (int(nodes[6]), float(on[6])) == (shape.first_advice + 3, 1.0)
    assert opened(shape, compiled)[1][6] == 0.0


def test_what_differs_by_rounding_alone_does_not_decide_which_prototypes_are_on(structure):
    shape = structure(CONFIG)
    third = np.float32(1 / 3)
    for up in range(3):
        opinion = np.full(3, third)
        opinion[up] = np.nextafter(third, np.float32(1))
        found, likely = recalling.likeliest(jnp.asarray(opinion), shape)
        assert found.tolist() == [0, 1]
        np.testing.assert_array_equal(likely, opinion[:2])
    found, _ = recalling.likeliest(jnp.array([0.3, 0.34, 0.36]), shape)
    assert found.tolist() == [2, 1]


def test_node_numbers_lie_within_the_edges_whatever_was_lived(structure, experiences, situation, begun, compiled):
    config = cognition.Config(ledger_capacity=16, prototypes=3, conjunctions=5, conjunction_after=2, cases=3)
    shape = structure(config)
    params = cognition.params_of(config, cognition.Style())
    state = begun(shape, config, situation(shape, np.random.default_rng(0)))
    kinds_on = np.zeros(2, bool)
    for experience in experiences(shape, 80, seed=1):
        state = compiled.step(state, experience, np.array([2**32 - 1, 0], np.uint32), shape, params)
        nodes, on = np.asarray(state.paths.nodes), np.asarray(state.paths.activation)
        assert 0 <= nodes.min() <= nodes.max() < shape.n_nodes
        assert len(set(nodes[on != 0].tolist())) == np.count_nonzero(on)  # no node is on twice
        later = nodes[on != 0]
        kinds_on |= [
            bool(((later >= shape.first_conjunction) & (later < shape.first_case)).any()),
            bool((later >= shape.first_case).any()),
        ]
    assert kinds_on.all()
