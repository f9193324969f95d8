"""The bench of the kernels: what is timed computes the same values, what is said follows from the timings."""

import json

import jax
import numpy as np
import pytest
from habitus.cognition.activation import EachSpreader, Sources, Spreader, recall
from habitus.cognition.graph import MemoryGraph
from habitus.experiments import bench_tools, cli, kernel_bench, world_bench
from habitus.experiments import kernel_baselines as baselines
from habitus.experiments import kernel_big_cases as big
from habitus.experiments import kernel_edit_cases as edit_cases
from habitus.experiments import kernel_graphs as graphs
from habitus.experiments import kernel_small_cases as small
from habitus.experiments.errors import ExperimentError
from habitus.experiments.kernel_bench import Bench
from typer.testing import CliRunner

ABOUT = {
    "processor": "P",
    "cores": 2,
    "load_before": 0.5,
    "python": "3",
    "jax": "0",
    "numpy": "2",
    "scipy": "1",
}


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    """The command limits the threads of its process; here that is given back."""
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")


@pytest.fixture
def bench():
    made = Bench(is_quick=True)
    for name, seconds in (("fast", [1e-6, 2e-6, 1e-6]), ("slow", [4e-6, 2e-6, 3e-6]), ("limit", [5e-7] * 3)):
        made.time(name, lambda: None, unit="query")
        made.cases[-1].seconds.extend(seconds)
    made.claim("fast against slow", "times faster", "fast", "slow", goal=2.5)
    made.claim("slow beside fast", "times the cost", "slow", "fast", goal=1.5)
    made.claim("fast", "microseconds", "fast", goal=1.0)
    made.claim("of the limit", "share", "fast", "limit", scale=1.2)
    made.fact("found", 0.5, "of all", 0.99)
    made.fact("size", 150.0, "MB", 200.0, at_most=True)
    return made


def test_claims_are_taken_within_a_round_and_held_against_their_goals(bench):
    assert [(one.name, one.value, one.goal, one.holds) for one in bench.reached()] == [
        ("fast against slow", pytest.approx(3), "at least 2.5", True),  # 4, 1, 3
        ("slow beside fast", pytest.approx(3), "at most 1.5", False),
        ("fast", pytest.approx(1), "at most 1", True),
        ("of the limit", pytest.approx(0.6), "", None),  # 1.2 * .5, .25, .5
        ("found", 0.5, "at least 0.99", False),
        ("size", 150.0, "at most 200", True),
    ]


def test_the_table_names_command_machine_results_and_times(bench):
    page = kernel_bench.to_markdown(bench, "habitus bench kernel --nodes 1e4", ABOUT)
    assert "```\nhabitus bench kernel --nodes 1e4\n```" in page
    assert "One core of P (2 cores, load 0.5 when it began), Python 3, JAX 0, NumPy 2, SciPy 1." in page
    assert "medians of 3 rounds" in page
    assert "| fast against slow | 3 times faster | at least 2.5 | yes |" in page
    assert "| slow beside fast | 3 times the cost | at most 1.5 | no |" in page
    assert "| of the limit | 0.6 of the limit |  |  |" in page
    assert "| slow | 3 (2-4) | query |" in page


def test_the_json_has_every_number(bench):
    said = json.loads(kernel_bench.to_json(bench, "habitus bench kernel", ABOUT))
    assert said["command"] == "habitus bench kernel"
    assert said["machine"] == ABOUT
    assert said["cases"][1] == {"name": "slow", "unit": "query", "seconds": [4e-6, 2e-6, 3e-6], "median": 3e-6}
    assert said["results"][1] == {
        "name": "slow beside fast",
        "value": pytest.approx(3),
        "unit": "times the cost",
        "goal": "at most 1.5",
        "holds": False,
    }


def test_a_case_has_a_name_of_its_own(bench):
    with pytest.raises(ValueError, match="`name` must be new, got 'fast' again"):
        bench.time("fast", lambda: None)


def test_a_timing_is_per_unit_and_every_round_times_every_case():
    called = []
    made = Bench(is_quick=True)
    made.time("sum", lambda: called.append(sum(range(20_000))), units=10)
    made.run(3)
    (case,) = made.cases
    assert len(case.seconds) == 3
    assert 0 < case.median < 0.01
    assert len(called) >= 5  # twice before, once a round at least


def test_numbers_are_told_with_three_digits():
    assert [kernel_bench.number(value) for value in (0.0, 0.0461, 0.5, 1.0, 23.46, 350.4, 145_848.2, 1e-5)] == [
        "0", "0.0461", "0.5", "1", "23.5", "350", "145,848", "1e-05",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["abc", "1e4,abc", "999", "2e7", "1e4,,1e5", "", "1500.5", "nan", "-1e4"])
def test_sizes_out_of_range_are_refused_by_name(text):
    done = CliRunner().invoke(cli.app, ["bench", "kernel", "--nodes", text])
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "`--nodes` must be whole numbers from 1,000 to 10,000,000 separated by commas, such as 1e4,1e5; got" in said


def test_sizes_are_read_in_any_order():
    assert kernel_bench.sizes_of("1e5, 2000,1e4,1e5") == (2_000, 10_000, 100_000)
    with pytest.raises(ExperimentError, match="got 'x'"):
        kernel_bench.sizes_of("1e5,x")


@pytest.fixture(scope="module")
def edges():
    return graphs.random_graph(2_000, local=0.7)


@pytest.fixture(scope="module")
def kernel(edges):
    return big.Frontier(MemoryGraph.from_edges(edges), recall(), hubs=True)


@pytest.mark.slow
def test_the_frontier_that_is_timed_finds_what_the_scipy_sweep_finds(edges, kernel):
    sweep = baselines.ScipySweep(edges, recall())
    queries = graphs.queries(edges, 10, big.N_SOURCES)
    many = kernel.recall_many(queries)
    for number, query in enumerate(queries):
        found, raw = kernel.recall(query), sweep.spread(query).copy()
        there = np.asarray(found.nodes) >= 0
        nodes = np.asarray(found.nodes)[there]
        assert len(nodes) >= big.BEST
        np.testing.assert_allclose(np.asarray(found.raw)[there], raw[nodes], atol=1e-5)
        np.testing.assert_allclose(raw[nodes], raw[sweep.recall(query)][: len(nodes)], atol=1e-5)
        np.testing.assert_array_equal(np.asarray(many.nodes[number])[there], nodes)
    share, n_active, dropped = big.overlap(kernel, sweep, queries)
    assert (share, dropped) == (1.0, 0.0)
    assert n_active == np.mean([(sweep.spread(query) >= sweep.numbers.threshold).sum() for query in queries])


def test_the_overlap_falls_where_something_is_missed(edges, kernel):
    other = baselines.ScipySweep(graphs.random_graph(edges.n_nodes, seed=9), recall())
    share, *_ = big.overlap(kernel, other, graphs.queries(edges, 10, big.N_SOURCES))
    assert share < 0.6  # sources, 8 of 20, are found on any graph


def test_the_sweep_that_is_timed_multiplies_and_spreads_as_scipy(edges):
    rule = recall()
    sweep = baselines.ScipySweep(edges, rule)
    x = np.random.default_rng(0).random(edges.n_nodes, dtype=np.float32)
    # SciPy's matrix has the base levels in it
    expected = sweep.multiply(x)
    found = np.asarray(big.product_of(edges, rule)(jax.device_put(x))) * edges.base
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    query = graphs.queries(edges, 1)[0]
    spreader = Spreader(edges, rule, kernel="sweep", everything=True)
    found = spreader(Sources(query, np.ones(8), np.zeros(8, np.int32)))
    np.testing.assert_allclose(found.everything, np.minimum(sweep.spread(query), 1), atol=1e-5)


def test_small_graphs_that_are_timed_decide_as_numpy():
    rule, batch = recall(), 8
    for size in (64, 128):
        several = [small.small_graph(size, seed) for seed in range(batch)]
        sources, dense = small.sources_of(size, batch)
        weights = baselines.dense_weights(several, rule)
        expected = baselines.numpy_batch(weights, dense, rule)
        own = EachSpreader(several, rule, top=small.TOP)(sources)
        np.testing.assert_allclose(own.raw, np.take_along_axis(expected, own.nodes, axis=1), atol=1e-5)
        np.testing.assert_allclose(own.raw[:, 0], expected.max(axis=1), atol=1e-5)
        expected = baselines.numpy_shared(weights[0].T, dense, rule)
        shared = Spreader(several[0], rule, top=small.TOP).many(sources)
        np.testing.assert_allclose(shared.raw[:, 0], expected.max(axis=1), atol=1e-5)
        one = Spreader(several[0], rule, top=small.TOP)(Sources(*(part[0] for part in sources)))
        single = baselines.numpy_single(weights[0], dense[0], rule)
        np.testing.assert_allclose(one.raw[0], single.max(), atol=1e-5)
        plain = baselines.PythonFrontier(several[0], rule).spread(sources.nodes[0].tolist())
        assert max(plain.values()) == pytest.approx(single.max(), abs=1e-5)


@pytest.mark.parametrize("by_matrix", [True, False])
def test_gradients_that_are_timed_are_of_what_is_timed_forward(by_matrix):
    edges = small.small_graph(64, 0)
    start = small.sources_of(64, 1)[1][0]
    forward, gradient, weights = small.gradients(edges, start, recall(softness=0.02), by_matrix=by_matrix)
    weights = np.asarray(weights)
    direction = np.random.default_rng(0).normal(size=weights.shape).astype(np.float32) * (weights != 0)
    step = 1e-3
    numeric = (float(forward(weights + step * direction)) - float(forward(weights - step * direction))) / (2 * step)
    assert abs(numeric) > 0.1
    assert float((np.asarray(gradient(weights)) * direction).sum()) == pytest.approx(numeric, rel=0.02)


def test_edges_to_strengthen_are_of_any_node_alike():
    edges = graphs.random_graph(2_000, seed=7)
    rows = edit_cases.some_edges(edges, 4_000, 0)
    degree = edges.out_degree()
    # of a random edge, the mean degree of its source is far above that of a node
    assert degree[edges.source].mean() > 3 * degree.mean()
    assert degree[edges.source[rows]].mean() == pytest.approx(degree[degree > 0].mean(), rel=0.2)
    rows = edit_cases.some_edges(edges, 40_000, 1)
    of_hub = edges.target[rows[edges.source[rows] == degree.argmax()]]
    assert len(set(of_hub.tolist())) > 5  # and not always the same one


@pytest.mark.slow
def test_edits_that_are_timed_change_the_graph(edges):
    graph = MemoryGraph.from_edges(edges)
    batches = edit_cases.new_edges(edges.n_nodes, 64)
    columns = next(batches)
    edit_cases.insert(graph, columns)
    made = {(int(s), int(t)) for s, t in zip(graph.edges().source, graph.edges().target, strict=True)}
    assert {(int(s), int(t)) for s, t in zip(*columns[:2], strict=True)} <= made
    strengthened = edit_cases.Strengthening(edges, size=64)
    before = np.asarray(strengthened.arrays.out_strength).sum(dtype=np.float64)
    copied = strengthened.copied()
    assert np.asarray(strengthened.arrays.out_strength).sum(dtype=np.float64) == before
    strengthened.in_place()
    np.testing.assert_array_equal(np.asarray(strengthened.arrays.rows), np.asarray(copied.rows))
    assert (np.asarray(copied.rows) != np.asarray(graph.from_edges(edges).arrays.rows)).sum() > 32


@pytest.mark.slow
def test_the_online_step_that_is_timed_decides_as_the_sweep_and_strengthens_what_led_there(edges):
    query = graphs.queries(edges, 1, big.N_SOURCES)[0]
    online = edit_cases.Online(edges, recall(), n_sources=big.N_SOURCES, hubs=True)
    raw = baselines.ScipySweep(edges, recall()).spread(query).copy()
    raw[query] = 0
    before = float(np.asarray(online.arrays.out_strength).sum(dtype=np.float64))
    decisions = [online.step(query) for _ in range(20)]
    assert int(decisions[0].choice) == raw.argmax()
    assert float(decisions[0].value) == pytest.approx(raw.max(), abs=1e-5)
    values = [float(decision.value) for decision in decisions]
    assert values == sorted(values)
    assert values[-1] > values[0] + 1e-4
    assert float(np.asarray(online.arrays.out_strength).sum(dtype=np.float64)) > before


@pytest.mark.slow
def test_of_the_largest_graphs_only_what_the_goals_ask_for_is_timed(monkeypatch):
    monkeypatch.setattr(big, "LARGE", 1_000)
    monkeypatch.setattr(big, "SURFED", 1_500)
    monkeypatch.setattr(big, "GOALS_SCALING", {2_000: 1e9})
    made = Bench(is_quick=True)
    big.add(made, (1_500, 2_000))
    made.run(1)
    names = [case.name for case in made.cases]
    assert "recall, random, 2,000 nodes, SciPy CSR" in names
    assert not any(word in name for name in names for word in ("local", "wide", "plain Python", "product", "insertion"))
    scaling = next(one for one in made.reached() if one.name == "recall, random, 2,000 nodes beside 1,500")
    assert scaling.holds


@pytest.mark.slow
def test_everything_is_timed_from_the_command_line(tmp_path):
    files = ["--json", str(tmp_path / "b.json"), "--markdown", str(tmp_path / "b.md")]
    done = CliRunner().invoke(cli.app, ["bench", "kernel", "--quick", "--nodes", "2e3", *files])
    assert done.exit_code == 0, done.output
    said = json.loads((tmp_path / "b.json").read_text())
    assert said["command"] == "habitus bench kernel --nodes 2e3 --quick"
    assert all(len(case["seconds"]) == bench_tools.QUICK_ROUNDS for case in said["cases"])
    assert all(0 < seconds < 100 for case in said["cases"] for seconds in case["seconds"])
    names = " ".join(case["name"] for case in said["cases"])
    for part in (
        "own: 64 graphs of 128 nodes, NumPy matmul",
        "shared: one graph of 256 nodes, 64 sources",
        "single: one decision, 64 nodes, plain Python",
        "gradient: ELL kernel",
        "memory: copy in order",
        "recall, random, 2,000 nodes, SciPy CSR",
        "recall, local, 2,000 nodes, 64 in one scan",
        "hubs exact",
        "sweep, random, 2,000 nodes, SciPy CSR",
        "product, local, 2,000 nodes",
        "insertion, random, 2,000 nodes, batches of 1,024",
        "strengthening, random, 2,000 nodes, with a copy",
        "online step, random, 2,000 nodes, rows only, 64 in one scan",
        "wide recall, local, 2,000 nodes, plain Python",
    ):
        assert part in names
    results = {one["name"]: one for one in said["results"]}
    assert results["recall, random, 2,000 nodes, hubs exact: best 20 found"]["value"] >= 0.99
    assert results["graph, 2,000 nodes: arrays"]["value"] == pytest.approx(0.4, abs=0.2)
    assert "| recall, random, 2,000 nodes, against SciPy CSR |" in (tmp_path / "b.md").read_text()


@pytest.mark.parametrize("bench_name", ["kernel", "worlds"])
def test_a_path_that_cannot_be_written_is_refused_before_anything_is_timed(bench_name, tmp_path, monkeypatch):
    def timed(*args, **kwargs):
        raise AssertionError("it was timed all the same")

    monkeypatch.setattr(kernel_bench, "measure", timed)
    monkeypatch.setattr(world_bench, "measure", timed)
    result = CliRunner().invoke(cli.app, ["bench", bench_name, "--json", str(tmp_path)])
    assert result.exit_code == 2
    assert "directory" in result.output.lower()
