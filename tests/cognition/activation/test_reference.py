"""The reference, worked out by hand: what everything else is compared with."""

import dataclasses

import numpy as np
import pytest
from habitus.cognition.activation import named
from habitus.cognition.activation.reference import spread_reference
from habitus.cognition.activation.rule import SATURATION, SpreadRule
from habitus.cognition.graph.edge_list import EdgeList

CHAIN = EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([0.8, 0.9]))
SILENT = EdgeList(2, np.array([], int), np.array([], int), np.array([]))


def test_a_course_has_every_round_and_the_flow_of_every_edge():
    course = spread_reference(CHAIN, {0: 1.0}, named.literal(rounds=2))
    np.testing.assert_allclose(course.activation, [(1, 0, 0), (0.9, 0.56, 0), (0.81, 1.008, 0.3528)], atol=1e-12)
    np.testing.assert_array_equal(course.raw, course.activation)  # there is no cap
    np.testing.assert_allclose(course.flow, [(0.56, 0), (0.504, 0.3528)], atol=1e-12)


def test_flows_are_what_nodes_gained():
    rng = np.random.default_rng(0)
    source, target = np.nonzero((rng.random((9, 9)) < 0.4) & ~np.eye(9, dtype=bool))
    edges = EdgeList(9, source, target, 1.0 - rng.random(len(source)), base=rng.random(9))
    rule = SpreadRule(retention=0.4, threshold=0.2, normalisation="sqrt", rounds=4)
    course = spread_reference(edges, {0: 1.0, 4: 0.6}, rule)
    for before, after, flow in zip(course.activation, course.activation[1:], course.flow, strict=False):
        np.testing.assert_allclose(after, 0.4 * before + np.bincount(edges.target, flow, 9), atol=1e-12)


def test_the_cap_hides_what_raw_remembers():
    course = spread_reference(CHAIN, {0: 3.0}, named.recall(rounds=1, normalisation="none"))
    np.testing.assert_allclose(course.raw, [(3, 0, 0), (3, 0.56, 0)], atol=1e-12)  # held at 3, but transmits 1
    np.testing.assert_allclose(course.activation, [(1, 0, 0), (1, 0.56, 0)], atol=1e-12)


def test_without_rounds_nothing_moves():
    course = spread_reference(CHAIN, {0: 0.5}, SpreadRule(rounds=0))
    assert course.activation.shape == (1, 3)
    assert course.flow.shape == (0, 2)


def test_a_source_of_a_later_round_is_held_from_then_on():
    rule = SpreadRule(retention=0.5, sources="held", rounds=3)
    course = spread_reference(SILENT, [(0, 1.0, 0), (0, 0.5, 2)], rule)
    # held at 1, then .5 is added to that, and 1.5 is held
    np.testing.assert_array_equal(course.activation[:, 0], (1, 1, 1.5, 1.5))
    course = spread_reference(SILENT, [(0, 1.0, 0), (0, 0.5, 2)], dataclasses.replace(rule, sources="once"))
    np.testing.assert_array_equal(course.activation[:, 0], (1, 0.5, 0.75, 0.375))


def test_what_is_injected_in_the_last_round_is_there_and_not_yet_spread():
    course = spread_reference(CHAIN, [(0, 1.0, 2)], SpreadRule(retention=0.5, rounds=2))
    np.testing.assert_array_equal(course.activation, [(0, 0, 0), (0, 0, 0), (1, 0, 0)])


def test_the_order_of_leak_retention_and_restart():
    rule = SpreadRule(retention=0.5, decay=0.5, leak=0.2, restart=0.25, rounds=1)
    course = spread_reference(CHAIN, {0: 1.0}, rule)
    # node 0: .75 (.8 (.5)) + .25; node 1: .75 (.8 (.8 * .5))
    np.testing.assert_allclose(course.activation[1], (0.55, 0.24, 0), atol=1e-12)


def test_dangling_nodes_return_to_the_sources_in_their_proportion():
    rule = SpreadRule(retention=0.0, restart=0.5, dangling=True, rounds=1)
    course = spread_reference(SILENT, {0: 0.75, 1: 0.25}, rule)
    np.testing.assert_allclose(course.activation[1], (0.75, 0.25), atol=1e-12)


def test_a_tolerance_stops_with_the_first_round_that_changes_less():
    rule = SpreadRule(retention=0.5, rounds=50, tolerance=0.1)
    # 1, .5, .25, .125, .0625: changes .5, .25, .125, .0625
    assert len(spread_reference(SILENT, {0: 1.0}, rule).flow) == 4
    # a change that equals the tolerance does not stop
    assert len(spread_reference(SILENT, {0: 1.0}, dataclasses.replace(rule, tolerance=0.125)).flow) == 4


def test_a_soft_threshold_lets_some_of_everything_through():
    rule = SpreadRule(retention=0.0, threshold=0.5, softness=0.1, rounds=1)
    found = spread_reference(CHAIN, {0: 0.5, 1: 0.4}, rule).activation[1]
    np.testing.assert_allclose(found, (0, 0.8 * 0.25, 0.9 * 0.4 / (1 + np.e)), atol=1e-12)


def test_a_rule_that_diverges_does_so_without_a_warning_and_up_to_where_numbers_end():
    loop = EdgeList(2, np.array([0, 1]), np.array([1, 0]), np.array([1.0, 1.0]))
    rule = named.literal(decay=2.0, rounds=100)
    assert spread_reference(loop, {0: 1.0}, rule).activation[-1].tolist() == [SATURATION, SATURATION]


def test_sources_and_rules_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"the node of entry 0 of `sources` must be in \[0, 3\), got 3"):
        spread_reference(CHAIN, [3], SpreadRule())
    with pytest.raises(ValueError, match="`retention` must be a number or one per node, 3, got 2"):
        spread_reference(CHAIN, [0], SpreadRule(retention=np.zeros(2)))
