"""A rule refuses what it cannot mean, and folds its numbers as its formulas say."""

import dataclasses
import warnings

import jax
import numpy as np
import pytest
from habitus.cognition.activation import GrowthWarning, named, recall, spread
from habitus.cognition.activation.rule import MAX_ROUNDS, SATURATION, SpreadRule
from habitus.cognition.graph.edge_list import EdgeList
from habitus.cognition.graph.relations import MAX_RELATIONS, RELATIONS

FAN = EdgeList(4, np.array([0, 0, 0, 1]), np.array([1, 2, 3, 3]), np.array([0.8, -0.4, 0.4, 0.5]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"retention": 1.5}, ValueError, r"`retention` must be in \[0, 1\], got 1\.5"),
        ({"retention": -0.1}, ValueError, r"`retention` must be in \[0, 1\], got -0\.1"),
        ({"retention": float("nan")}, ValueError, r"`retention` must be in \[0, 1\], got nan"),
        ({"retention": True}, TypeError, "`retention` must be a number or one per node, got True"),
        ({"retention": "half"}, TypeError, "`retention` must be a number or one per node, got 'half'"),
        ({"retention": np.array([0.1, 1.2])}, ValueError, r"`retention` must be in \[0, 1\], got 1\.2 for node 1"),
        ({"retention": np.ones((2, 2))}, TypeError, "`retention` must be a number or one per node"),
        ({"threshold": -0.2}, ValueError, r"`threshold` must be in \[0, inf\), got -0\.2"),
        ({"threshold": float("inf")}, ValueError, r"`threshold` must be in \[0, inf\), got inf"),
        ({"threshold": "low"}, TypeError, "`threshold` must be a number, got 'low'"),
        ({"threshold": True}, TypeError, "`threshold` must be a number, got True"),
        ({"below": "drop"}, ValueError, r"`below` must be one of \['gate', 'zero'\], got 'drop'"),
        ({"normalisation": "l2"}, ValueError, "`normalisation` must be one of .*'capped_sqrt'.*, got 'l2'"),
        ({"sources": "twice"}, ValueError, r"`sources` must be one of \['once', 'held'\], got 'twice'"),
        ({"decay": -1.0}, ValueError, r"`decay\['default'\]` must be in \[0, inf\), got -1\.0"),
        ({"decay": {"causes": "far"}}, TypeError, r"`decay\['causes'\]` must be a number, got 'far'"),
        ({"decay": {3: 0.5}}, TypeError, "`decay` must be by name of relation, got 3"),
        ({"degree_cap": 0.0}, ValueError, r"`degree_cap` must be in \(0, inf\), got 0\.0"),
        ({"cap": 0.0}, ValueError, r"`cap` must be in \(0, inf\), got 0\.0"),
        ({"cap": float("inf")}, ValueError, r"`cap` must be in \(0, inf\), got inf"),
        ({"leak": 1.1}, ValueError, r"`leak` must be in \[0, 1\], got 1\.1"),
        ({"restart": 1.0}, ValueError, r"`restart` must be in \[0, 1\), got 1\.0"),
        ({"tolerance": -1e-6}, ValueError, r"`tolerance` must be in \[0, inf\), got -1e-06"),
        ({"softness": -1.0}, ValueError, r"`softness` must be in \[0, inf\), got -1\.0"),
        ({"softness": 0.1, "below": "zero"}, ValueError, '`softness` makes a gradual gate .* use below="gate"'),
        ({"rounds": 3.0}, TypeError, "`rounds` must be a whole number, got 3.0"),
        ({"rounds": True}, TypeError, "`rounds` must be a whole number, got True"),
        ({"rounds": -1}, ValueError, rf"`rounds` must be in \[0, {MAX_ROUNDS}\], got -1"),
        ({"rounds": MAX_ROUNDS + 1}, ValueError, rf"`rounds` must be in \[0, {MAX_ROUNDS}\], got {MAX_ROUNDS + 1}"),
        ({"spends": 1}, TypeError, "`spends` must be True or False, got 1"),
        ({"use_base": None}, TypeError, "`use_base` must be True or False, got None"),
        ({"dangling": "yes"}, TypeError, "`dangling` must be True or False, got 'yes'"),
        ({"conjunctions": 0}, TypeError, "`conjunctions` must be True or False, got 0"),
        ({"dangling": True}, ValueError, "`dangling` returns activation to the sources and needs `restart` > 0"),
    ],
)
def test_a_wrong_argument_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        SpreadRule(**arguments)


def test_a_named_rule_refuses_what_a_rule_refuses():
    with pytest.raises(ValueError, match="`rounds` must be in"):
        named.recall(rounds=-1)
    with pytest.raises(ValueError, match=r"`restart` must be in \[0, 1\), got 1\.0"):
        named.pagerank(alpha=0.0)
    with pytest.raises(ValueError, match=r"`decay\['default'\]` must be in"):
        named.soar_fan(probability=-0.5)


def test_a_rule_that_does_not_fit_the_graph_is_refused():
    with pytest.raises(ValueError, match=r"`decay` must name relations of the graph, \[.*\], got 'loves'"):
        SpreadRule(decay={"loves": 0.5}).weights(FAN)
    with pytest.raises(ValueError, match=r"`decay` must name relations of the graph, \['knows'\], got 'causes'"):
        SpreadRule(decay={"causes": 0.5}).params(("knows",))
    with pytest.raises(ValueError, match="`retention` must be a number or one per node, 4, got 3"):
        SpreadRule(retention=np.zeros(3)).retentions(FAN)


def test_a_rule_does_not_change_with_the_array_it_was_given():
    given = np.array([0.1, 0.2])
    rule = SpreadRule(retention=given)
    given[:] = 0.9
    np.testing.assert_array_equal(rule.retention, (0.1, 0.2))
    with pytest.raises(ValueError, match="read-only"):
        rule.retention[0] = 0.5
    with pytest.raises(dataclasses.FrozenInstanceError):
        rule.threshold = 0.5


@pytest.mark.parametrize(
    ("normalisation", "expected"),
    [
        # node 0 has three edges of |W| .8, .4, .4, node 1 one of .5; .8, .4 and .9 reach nodes 1, 2 and 3
        ("none", (0.8, -0.4, 0.4, 0.5)),
        ("sqrt", (0.8 / 3**0.5, -0.4 / 3**0.5, 0.4 / 3**0.5, 0.5)),
        ("capped_sqrt", (0.8 * (2 / 3) ** 0.5, -0.4 * (2 / 3) ** 0.5, 0.4 * (2 / 3) ** 0.5, 0.5)),
        ("fan", (0.8 / 3, -0.4 / 3, 0.4 / 3, 0.5)),
        ("row", (0.5, -0.25, 0.25, 1.0)),
        ("symmetric", (0.8 / 1.28**0.5, -0.4 / 0.64**0.5, 0.4 / 1.44**0.5, 0.5 / 0.45**0.5)),
    ],
)
def test_normalisations_by_hand(normalisation, expected):
    found = SpreadRule(normalisation=normalisation, degree_cap=2.0).weights(FAN)
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_a_node_spends_what_it_does_not_keep_and_a_sink_keeps_all():
    rule = SpreadRule(retention=np.array([0.25, 0.5, 0.1, 0.2]), spends=True)
    np.testing.assert_allclose(rule.weights(FAN), (0.6, -0.3, 0.3, 0.25))
    np.testing.assert_array_equal(rule.retentions(FAN), (0.25, 0.5, 1, 1))


def test_decay_is_by_relation_and_default_counts_for_the_rest():
    relation = np.array([RELATIONS.index(name) for name in ("causes", "scene", "is_similar_to")])
    edges = EdgeList(4, np.zeros(3, np.int32), np.array([1, 2, 3]), np.ones(3), relation)
    np.testing.assert_array_equal(named.literal().weights(edges), (0.8, 0.7, 0.5))
    np.testing.assert_array_equal(SpreadRule(decay={"causes": 0.3}).weights(edges), (0.3, 1.0, 1.0))
    assert named.literal().params(RELATIONS).decay.shape == (MAX_RELATIONS,)


def test_numbers_are_no_part_of_what_is_compiled():
    assert named.recall(retention=0.3, threshold=0.4, cap=2.0).code == named.recall().code
    assert hash(named.recall(degree_cap=5.0).code) == hash(named.recall().code)
    assert named.recall(cap=None).code != named.recall().code
    assert named.recall(rounds=4).code != named.recall().code


def test_numbers_of_numpy_are_numbers():
    rule = SpreadRule(retention=np.float32(0.5), threshold=np.float64(0.25), rounds=np.int64(4), decay=np.float32(0.75))
    assert rule.code == SpreadRule(retention=0.5, threshold=0.25, rounds=4, decay=0.75).code
    assert type(rule.rounds) is int
    np.testing.assert_array_equal(rule.weights(FAN), 0.75 * FAN.strength)


def test_recall_is_as_the_design_says():
    rule = named.recall()
    assert (rule.threshold, rule.cap, rule.sources, rule.conjunctions, rule.rounds) == (0.2, 1.0, "held", True, 3)
    assert rule.below == "gate"


def test_rules_of_equal_settings_are_equal():
    assert recall() == recall()
    assert hash(recall()) == hash(recall())
    assert recall() != recall(rounds=4)
    assert SpreadRule(retention=np.array([0.1, 0.2])) == SpreadRule(retention=np.array([0.1, 0.2]))
    assert SpreadRule(retention=np.array([0.1, 0.2])) != SpreadRule(retention=np.array([0.1, 0.3]))
    assert recall() != "recall"


@pytest.mark.parametrize("kernel", ["reference", "dense", "ell", "sweep", "frontier"])
def test_what_grows_without_end_stops_where_numbers_end(kernel):
    pair = EdgeList(3, [0, 1, 0, 1], [1, 0, 2, 2], [1.0, 1.0, 1.0, -1.0])
    rule = SpreadRule(retention=1.0, rounds=200, threshold=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrowthWarning)
        found = spread(pair, {0: 1.0}, rule, kernel=kernel, top=3)
    assert found.raw[:2].tolist() == pytest.approx([SATURATION, SATURATION])
    assert found.nodes.tolist()[:2] == [0, 1]
    assert np.isfinite(found.change)


def test_a_traced_retention_is_pointed_to_the_pure_functions():
    with pytest.raises(TypeError, match="made outside of compiled code"):
        jax.jit(lambda r: SpreadRule(retention=r).rounds)(0.5)
