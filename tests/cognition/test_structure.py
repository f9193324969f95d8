"""Nodes are numbered without gaps or overlaps, and paths are as many as are counted."""

import functools

import jax
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import structure as structures
from habitus.cognition.learning.recall import recall


def random_structure(structure, rng):
    """Any combination of parts."""
    z = int(rng.integers(0, 5))
    config = cognition.Config(
        ledger_capacity=16,
        prototypes=z,
        conjunctions=int(rng.choice([0, 1, 7])),
        cases=int(rng.choice([0, 2, 9])),
        gate=bool(rng.integers(2)),
        common=bool(rng.integers(2)),
    )
    has_own = bool(rng.integers(2))
    coded = tuple(p for p in (0, 1, 2, 4, 5) if has_own or p < 4)
    own = tuple(range(12, 22)) if has_own else ()
    return structure(
        config,
        encounter=has_own,
        advice=bool(rng.integers(2)),
        common=coded if config.common else (),
        crossed=coded if z else (),
        crossed_nodes=(*range(7), *own) if z else (),
        paired=coded[1:],
    )


def spans(shape):
    """First node and number of nodes of every part, by the description of the numbering."""
    own = 2 * (shape.n_actions + 1) * shape.encounter
    crossed = shape.prototypes * len(shape.crossed_nodes)
    return [
        (0, shape.n_context),
        (shape.first_own_action, own),
        (shape.first_advice, shape.n_actions * shape.advice),
        (shape.first_prototype, crossed),
        (shape.first_conjunction, shape.conjunctions),
        (shape.first_case, shape.cases),
    ]


def test_the_numbering_has_no_gaps_and_no_overlaps(structure):
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = random_structure(structure, rng)
        nodes = [n for first, count in spans(shape) for n in range(first, first + count)]
        assert nodes == list(range(shape.n_nodes))


def test_an_observation_opens_as_many_paths_as_are_counted_to_nodes_that_exist(structure, situation, compiled):
    rng, counts = np.random.default_rng(1), set()
    for number in range(16):
        shape = random_structure(structure, rng)
        edges = cognition.initial_edges(shape, np.ones(shape.n_nodes, np.float32))
        assert edges.net.shape == (shape.n_nodes * 2 * shape.width,)
        known = cognition.initial_state(edges, shape).known
        opened = jax.eval_shape(functools.partial(recall, structure=shape), known, situation(shape, rng))
        assert opened.nodes.shape == opened.activation.shape == (shape.n_paths,)
        counts.add(shape.n_paths)
        for _ in range(10 if number < 2 else 0):  # each structure is compiled
            paths = compiled.recall(known, situation(shape, rng), shape)
            assert 0 <= int(paths.nodes.min()) <= int(paths.nodes.max()) < shape.n_nodes
    assert len(counts) > 6


def test_paths_by_hand(structure):
    # 4 observed, 2 own actions, 1 word of advice, 2 of 3 prototypes with 5 positions each
    config = cognition.Config(ledger_capacity=16, prototypes=3)
    assert structure(config).n_paths == 4 + 2 + 1 + 2 * 5
    # one prototype cannot fill two slots; 4 positions make 6 pairs; of 9 cases the 4 most similar are on
    config = cognition.Config(ledger_capacity=16, prototypes=1, conjunctions=3, cases=9)
    assert structure(config).n_paths == 4 + 2 + 1 + 5 + 6 + 4
    # 12 of context, 2 * 5 own actions, 4 of advice, 1 prototype with 17 nodes, then 3 and 9
    assert structure(config).n_nodes == 12 + 10 + 4 + 17 + 3 + 9


@pytest.mark.parametrize(
    ("gamma", "trace_decay", "expected"),
    [(0.9, 0.5, 4), (0.9, 0.0, 1), (0.0, 0.5, 1), (1.0, 1.0, structures.MAX_TRACES), (0.99, 0.95, 32), (0.5, 0.1, 1)],
)
def test_traces_reach_back_until_an_error_has_faded(gamma, trace_decay, expected):
    # the error that reaches T decisions back is (gamma lambda)^T < .05: .45^4 = .041, .45^3 = .091
    config = cognition.Config(gamma=gamma, trace_decay=trace_decay)
    assert structures.n_traces(config) == expected


def test_rules_that_learn_no_consequences_have_neither_traces_nor_what_follows():
    for rule in ("beta", "hebb", "hebb_advantage"):
        switches = structures.switches(cognition.Config(rule=rule, gamma=0.9, trace_decay=0.9))
        assert switches["traces"] == 1
        assert switches["bootstraps"] is False


def test_equal_configurations_give_equal_structures(structure):
    assert structure() == structure()
    assert hash(structure()) == hash(structure())
    assert structure() != structure(rule="count")
