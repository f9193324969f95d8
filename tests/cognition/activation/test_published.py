"""The rule gives the figures that others have published, in the reference and in every kernel that can run it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml
from habitus.cognition.activation import fan, named
from habitus.cognition.activation.frontier import Limits, frontier_spread, supports
from habitus.cognition.activation.frontier.state import new_scratch
from habitus.cognition.activation.reference import spread_reference
from habitus.cognition.activation.rule import SpreadRule
from habitus.cognition.activation.sources import Sources
from habitus.cognition.activation.spreading import spread
from habitus.cognition.graph.edge_list import EdgeList
from habitus.cognition.graph.memory_graph import MemoryGraph

KERNELS = ("dense", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ell", "sweep")))
pytestmark = pytest.mark.filterwarnings("ignore::habitus.cognition.activation.rule.GrowthWarning")


def graph(n_nodes: int, edges: list[Any], **columns: Any) -> EdgeList:
    """Of (source, target) or (source, target, weight); weights above 1 are scaled, which rows do not notice."""
    rows = [(*edge, 1.0)[:3] for edge in edges]
    strength = np.array([row[2] for row in rows], np.float64)
    strength = strength / max(1.0, np.abs(strength).max(initial=0.0))
    ends = np.array([row[:2] for row in rows], np.int32).reshape(-1, 2)
    return EdgeList(n_nodes, ends[:, 0], ends[:, 1], strength, **columns)


def both_ways(edges: list[Any]) -> list[Any]:
    return [way for edge in edges for way in (edge, (edge[1], edge[0], *edge[2:]))]


@dataclasses.dataclass(frozen=True)
class Case:
    """What one source has published; the file says what its entries mean."""

    name: str
    origin: str
    edges: EdgeList
    rule: SpreadRule
    sources: Any
    expected: dict[int, list[float]]
    digits: float


def case_of(row: dict[str, Any]) -> Case:
    n_nodes = row["n_nodes"]
    name = row["rule"].pop("of")
    numbers = {key: np.array(value) if isinstance(value, list) else value for key, value in row["rule"].items()}
    long = dict(tolerance=1e-15, rounds=3_000) if name == "pagerank" else {}  # what makes it converge in float64
    rule = SpreadRule(**numbers) if name == "SpreadRule" else getattr(named, name)(**numbers, **long)
    sources = row["sources"]
    if sources == "uniform":
        sources = [(node, 1.0 / n_nodes) for node in range(n_nodes)]
    if name == "soar_fan":
        sources = fan.soar_sources(sources, rule.rounds, n_nodes)
    base = {"base": np.array(row["base"])} if "base" in row else {}
    return Case(
        name=row["name"],
        origin=row["origin"],
        edges=graph(n_nodes, row["edges"], **base),
        rule=rule,
        sources=sources,
        expected=row["expected"],
        digits=row.get("digits", 1e-12),
    )


PUBLISHED = Path(__file__).with_name("published.yaml")
CASES = [case_of(row) for row in yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))]
PAIR = graph(2, [(0, 1)])
TWO_WAY = graph(2, [(0, 1, 0.8), (1, 0, 0.8)])
WEIGHTED = next(case for case in CASES if case.name == "weighted, alpha 0.5").edges


def case_id(case: Case) -> str:
    return f"{case.origin.split(',')[0]}: {case.name}"


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_the_reference_gives_the_published_figures(case):
    course = spread_reference(case.edges, case.sources, case.rule)
    for number, expected in case.expected.items():
        np.testing.assert_allclose(
            course.activation[number], expected, rtol=0, atol=case.digits * max(1.0, np.max(np.abs(expected)))
        )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_every_kernel_gives_the_published_figures(case, kernel):
    number, expected = max(case.expected.items(), key=lambda item: item[0] if item[0] >= 0 else np.inf)
    rule = case.rule if number < 0 else dataclasses.replace(case.rule, rounds=number)
    if rule.tolerance:  # what converges does so to the default of the rule
        rule = dataclasses.replace(rule, tolerance=1e-7, rounds=1_000)
    found = spread(case.edges, case.sources, rule, kernel=kernel, everything=True, top=8)
    size = max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(found.everything, expected, rtol=0, atol=max(case.digits, 1e-6) * size)
    exact = spread_reference(case.edges, case.sources, rule).activation[-1]
    np.testing.assert_allclose(found.everything, exact, rtol=0, atol=1e-6 * size)


FEW_ROUNDS = [case for case in CASES if supports(case.rule.code) is None and max(case.expected) in range(1, 6)]


@pytest.mark.slow
@pytest.mark.parametrize("case", FEW_ROUNDS, ids=case_id)
def test_a_frontier_gives_the_published_figures(case):
    number, expected = max(case.expected.items())
    rule, n_nodes = dataclasses.replace(case.rule, rounds=number), case.edges.n_nodes
    given = Sources.of(case.sources, n_nodes)
    graph = MemoryGraph.from_edges(case.edges)
    found, _ = jax.jit(frontier_spread, static_argnames=("code", "limits", "top"))(
        graph.arrays,
        new_scratch(graph.arrays.capacity),
        jnp.asarray(given.nodes),
        jnp.asarray(given.values, jnp.float32),
        jnp.asarray(given.rounds),
        code=rule.code,
        params=rule.params(graph.relations),
        limits=Limits(active=(32,)),
        top=n_nodes,
    )
    assert sum(found.dropped) == 0
    activation = np.zeros(n_nodes)  # of active nodes; others are not listed
    is_node = np.asarray(found.nodes) >= 0
    activation[np.asarray(found.nodes)[is_node]] = np.asarray(found.values)[is_node]
    listed = np.where(np.asarray(expected) >= rule.threshold, expected, 0.0)
    size = max(1.0, np.max(np.abs(expected)))
    np.testing.assert_allclose(activation, listed, rtol=0, atol=max(case.digits, 1e-6) * size)


@pytest.mark.parametrize("alpha", [0.5, 0.85])
def test_pagerank_is_the_linear_solve(alpha):
    edges = WEIGHTED  # (1 - alpha) (I - alpha P^T)^-1 s
    step = np.zeros((5, 5))
    np.add.at(step, (edges.target, edges.source), named.pagerank().weights(edges))
    solved = (1 - alpha) * np.linalg.solve(np.eye(5) - alpha * step, np.eye(5)[0])
    found = spread_reference(edges, {0: 1.0}, named.pagerank(alpha, tolerance=1e-15, rounds=3_000)).activation[-1]
    np.testing.assert_allclose(found, solved, atol=1e-12)


def test_pagerank_is_the_discounted_sum_of_a_spread_without_retention():
    course = spread_reference(WEIGHTED, {0: 1.0}, named.spreadr(0.0, leak=0.5, rounds=60))
    total = 0.5 * course.activation.sum(axis=0)
    np.testing.assert_allclose(total, next(case for case in CASES if case.edges is WEIGHTED).expected[-1], atol=5e-10)


@pytest.mark.parametrize(("tolerance", "rounds"), [(1e-3, 24), (1e-6, 59)])
@pytest.mark.parametrize("kernel", ["reference", *KERNELS])
def test_a_contraction_stops_when_its_closed_form_says(tolerance, rounds, kernel):
    rule = SpreadRule(retention=0.5, decay=0.4, rounds=200, tolerance=tolerance)
    found = spread(TWO_WAY, {0: 1.0}, rule, kernel=kernel)
    assert found.rounds == rounds
    assert found.change < tolerance


def test_a_contraction_adds_up_to_its_closed_form():
    rule = SpreadRule(retention=0.5, decay=0.4, rounds=400)
    total = spread_reference(TWO_WAY, {0: 1.0}, rule).activation.sum(axis=0)
    np.testing.assert_allclose(total, (3.387534, 2.168022), atol=5e-7)


def test_even_a_lonely_node_takes_as_long_to_settle_as_the_documents_overlook():
    for tolerance, round_ in ((0.01, 23), (0.001, 45)):
        rule = named.literal(rounds=100, tolerance=tolerance)
        assert len(spread_reference(graph(1, []), {0: 1.0}, rule).flow) == round_


@pytest.mark.parametrize(
    ("edges", "n", "normalisation", "expected"),
    [
        (both_ways([(0, 1, 0.8)]), 2, "none", 1.46),
        (both_ways([(0, 1, 0.8), (1, 2, 0.8), (2, 0, 0.8)]), 3, "none", 2.02),
        (both_ways([(0, leaf, 0.8) for leaf in range(1, 11)]), 11, "none", 2.67),
        ([(i, j, 0.5) for i in range(10) for j in range(10) if i != j], 10, "none", 4.05),
        (both_ways([(0, leaf, 0.8) for leaf in range(1, 11)]), 11, "sqrt", 1.90),
        ([(i, j, 0.5) for i in range(10) for j in range(10) if i != j], 10, "sqrt", 1.95),
        (both_ways([(0, leaf, 0.8) for leaf in range(1, 11)]), 11, "row", 1.6),
        (both_ways([(0, leaf, 0.8) for leaf in range(1, 11)]), 11, "symmetric", 1.6),
        ([(i, j, 0.5) for i in range(10) for j in range(10) if i != j], 10, "row", 1.6),
        ([(i, j, 0.5) for i in range(10) for j in range(10) if i != j], 10, "symmetric", 1.6),
    ],
)
def test_the_growth_of_the_documents_constants(edges, n, normalisation, expected):
    assert named.literal(normalisation=normalisation).growth(graph(n, edges)) == pytest.approx(expected, abs=5e-3)


def test_a_two_way_pair_grows_above_one_seventh():
    assert named.literal().growth(graph(2, both_ways([(0, 1, 1 / 7)]))) == pytest.approx(1.0, abs=1e-9)
    assert named.literal().growth(graph(2, both_ways([(0, 1, 0.15)]))) > 1.0
    assert named.literal().growth(graph(2, both_ways([(0, 1, 0.14)]))) < 1.0


def as_spreadr(weights, start, retention, decay, suppress, rounds):
    """Spreadr as its manual describes a step: spread, decay, set to 0 what is less than suppress, add start_run."""
    total = weights.sum(axis=1)
    activation, course = np.zeros(len(weights)), []
    for number in range(rounds + 1):
        sent = np.where(total > 0, (1 - retention) * activation, 0.0)
        activation = activation - sent + (sent / np.where(total > 0, total, 1.0)) @ weights
        activation = (1 - decay) * activation
        activation[activation < suppress] = 0.0
        for node, value, when in start:
            if when == number:
                activation[node] += value
        course.append(activation)
    return np.array(course)


@pytest.mark.parametrize("seed", range(5))
def test_spreadr_acts_in_the_order_of_its_manual(seed):
    rng = np.random.default_rng(seed)
    weights = np.round(rng.random((8, 8)) * (rng.random((8, 8)) < 0.4), 3)
    np.fill_diagonal(weights, 0.0)
    retention = rng.random(8)
    start = [(int(rng.integers(8)), float(rng.uniform(5, 20)), when) for when in (0, 0, 2, 3)]
    edges = graph(8, [(i, j, weights[i, j]) for i, j in zip(*np.nonzero(weights), strict=True)])
    rule = named.spreadr(retention, leak=0.1, threshold=0.7, below="zero", rounds=6)
    course = spread_reference(edges, start, rule)
    np.testing.assert_allclose(course.activation, as_spreadr(weights, start, retention, 0.1, 0.7, 6), atol=1e-12)


def test_spreadr_keeps_what_equals_suppress():
    # after one round the nodes have 2 and 2; less than 2 is suppressed, 2 is not
    rule = named.spreadr(0.5, threshold=2.0, below="zero", rounds=1)
    np.testing.assert_array_equal(spread_reference(PAIR, {0: 4.0}, rule).activation[1], (2, 2))
    rule = named.spreadr(0.5, threshold=2.001, below="zero", rounds=1)
    np.testing.assert_array_equal(spread_reference(PAIR, {0: 4.0}, rule).activation[1], (0, 0))


def test_soar_adds_the_logarithm_of_what_was_spread():
    # smem_activation.cpp: offset = baseline / (p + ... + p^(depth + 1)), ln(spread) - ln(offset), 0 below the offset
    offset = 1e-4 / sum(0.9**k for k in range(1, 12))
    found = fan.soar_spread([0.0, offset / 2, 0.9, 0.81, 1.81], own=[0, 0, 0, 0, 1.0])
    np.testing.assert_allclose(found, [0, 0, *np.log(np.array([0.9, 0.81, 0.81]) / offset)], atol=1e-12)


def test_associative_activation_of_act_r():
    # ACTRModels.jl, "spreading activation": memories (a, b, c) and (a, b, a); a and b are in the buffer, S is 1.6
    slots = [(0, 2, 0), (1, 2, 1), (3, 2, 2), (0, 4, 0), (1, 4, 1), (0, 4, 2)]  # word, memory, slot
    source, target, slot = np.array(slots).T
    edges = EdgeList(5, source, target, np.ones(6), slot)
    found = fan.actr_fan(edges, [0, 1], maximum=1.6)
    np.testing.assert_allclose(found[[2, 4]], (0.3575467, 0.7041203), atol=1e-7)
    assert found[3] == 0.0  # holds no source


def test_more_facts_about_a_word_make_each_harder_to_reach():
    # the fan experiment of unit 5: S 1.6, weight 1 over person and place, fan = 1 + facts
    edges = graph(6, [(0, 3), (1, 3), (0, 4), (2, 4), (0, 5), (1, 5)])  # hippie in park, in church, in bank...
    found = fan.actr_fan(edges, [0, 1], maximum=1.6)
    assert found[3] == pytest.approx(0.5 * (1.6 - np.log(4)) + 0.5 * (1.6 - np.log(3)), abs=1e-12)
    assert found[4] == pytest.approx(0.5 * (1.6 - np.log(4)), abs=1e-12)
    assert found[0] == pytest.approx(0.5 * (1.6 - np.log(4)), abs=1e-12)  # a source is associated with itself


def test_sources_of_act_r_times_their_strengths_as_in_a_trace():
    # trace of Lisp ACT-R in jACT-R's DefaultBaseLevelLearningTest: level .25 times Sji, added to the base level
    strengths = np.array([0.0, 0.0, 2.190562, 1.8540899])
    np.testing.assert_allclose(0.25 * strengths, (0, 0, 0.5476405, 0.46352246), atol=5e-8)
    maximum = 4.0
    fans = np.exp(maximum - strengths[2:])
    found = 0.25 * fan.actr_strength(fans, maximum)
    assert -3.5563608 + found.sum() == pytest.approx(-2.5451978, abs=5e-7)


def test_sources_that_come_later_are_refused_where_they_mean_nothing():
    for call in (
        lambda: fan.soar_sources([(0, 1.0, 2)], 3, 2),
        lambda: fan.actr_fan(PAIR, Sources.of([(0, 1.0, 2)], 2)),
    ):
        with pytest.raises(ValueError, match="`sources` must all be there from the start, got round 2"):
            call()
