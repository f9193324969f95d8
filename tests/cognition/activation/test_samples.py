"""Samples: what they hold, that they spread as the whole graph does, and what they leave out."""

import numpy as np
import pytest
from habitus.cognition.activation import SpreadRule, literal, recall, samples, sampling, spread_reference, spreadr
from habitus.cognition.graph import EdgeList
from habitus.cognition.graph.memory_graph import MemoryGraph
from habitus.experiments import kernel_graphs

PLAIN = recall(decay=1.0, degree_cap=1e6)  # 3 rounds, sources held, all of an edge's strength


def graph_of(edges):
    """A graph of (source, target, strength) triples."""
    source, target, strength = zip(*edges, strict=True)
    n_nodes = max(*source, *target) + 1
    return held(EdgeList(n_nodes, np.array(source), np.array(target), np.array(strength)))


def held(edges):
    """A memory graph of one capacity, so that little is compiled."""
    return MemoryGraph.from_edges(edges, capacity=1024, pool=256)


def two_components(seed):
    """60 nodes with mixed edges, a hub among them, conjunctions and base levels; 60 more that nothing leads to."""
    rng = np.random.default_rng(seed)
    n = 60
    keys = np.unique(rng.integers(0, n * n, 240))
    source, target = np.divmod(keys, n)
    hub = np.setdiff1d(np.arange(n), target[source == 5])
    source, target = np.concatenate([source, np.full(len(hub), 5)]), np.concatenate([target, hub])
    strength = rng.uniform(0.05, 1, len(source)) * np.where(rng.random(len(source)) < 0.15, -1, 1)
    return EdgeList(
        2 * n,
        np.concatenate([source, n + source]),
        np.concatenate([target, n + target]),
        np.concatenate([strength, strength]),
        rng.integers(0, 9, 2 * len(source)),
        base=rng.uniform(0.3, 1, 2 * n),
        need=np.where(rng.random(2 * n) < 0.1, 2, 0),
    )


@pytest.mark.parametrize(
    "rule",
    [
        recall(threshold=0.05, rounds=6, decay={"default": 1.7}),
        literal(rounds=3, below="zero", cap=5.0),
        spreadr(retention=np.linspace(0.2, 0.8, 120), rounds=4, leak=0.1),
        SpreadRule(normalisation="sqrt", restart=0.2),
        SpreadRule(normalisation="fan", conjunctions=True, decay={"causes": 0.0, "default": 0.9}),
    ],
    ids=["recall", "zero", "spreadr", "sqrt, restart", "fan, no causes"],
)
def test_a_sample_of_the_whole_component_spreads_as_the_graph(rule):
    sources = {3: 1.0, 17: 0.7, 5: 0.5}
    for seed in range(4):
        edges = two_components(seed)
        taken = samples.sample(held(edges), sources, size=64, hops=16, rule=rule)
        expected = spread_reference(edges, sources, rule).activation[-1]
        found = np.zeros(edges.n_nodes)
        found[taken.nodes] = taken.spread(everything=True).everything
        np.testing.assert_allclose(found, expected, atol=1e-5 * max(1, expected.max()))
        assert taken.nodes.max() < 60
        assert tuple(map(int, taken.dropped)) == (0, 0, 0, 0)


def test_edges_that_leave_the_sample_count_for_its_normalisation():
    edges = kernel_graphs.random_graph(800, mean_degree=12, seed=4)
    rule = recall(normalisation="row", threshold=0.01)
    sources = dict.fromkeys(map(int, kernel_graphs.queries(edges, 1)[0]), 1.0)
    taken = samples.sample(MemoryGraph.from_edges(edges), sources, size=60, hops=2, rule=rule)
    assert len(taken.nodes) == 60
    is_inside = np.isin(edges.source, taken.nodes) & np.isin(edges.target, taken.nodes)
    through = EdgeList(
        edges.n_nodes,
        edges.source[is_inside],
        edges.target[is_inside],
        rule.weights(edges)[is_inside],
        base=edges.base,
    )
    expected = spread_reference(through, sources, recall(normalisation="none", decay=1.0, threshold=0.01)).activation[
        -1
    ]
    np.testing.assert_allclose(taken.spread(everything=True).everything, expected[taken.nodes], atol=1e-5)


@pytest.mark.slow
def test_a_sample_finds_what_the_whole_graph_finds():
    kinds = ((64, 2, 0), (64, 2, 2), (64, 0, 0), (256, 2, 0))
    for local in (0.0, 0.7):
        edges = kernel_graphs.random_graph(20_000, local=local, seed=2)
        graph = MemoryGraph.from_edges(edges, pool=4096)
        found = {kind: [] for kind in kinds}
        for query in kernel_graphs.queries(edges, 8).tolist():
            raw = spread_reference(edges, query, recall()).raw[-1]
            best = np.lexsort((np.arange(len(raw)), -raw))[:20]
            for kind in kinds:
                size, hops, pulls = kind
                nodes = samples.sample(graph, query, size, hops, pulls=pulls).spread(everything=True).nodes[:20]
                found[kind].append(len(np.intersect1d(nodes, best)) / 20)
        mean = {kind: np.mean(shares) for kind, shares in found.items()}
        assert mean[64, 2, 0] >= 0.93
        assert mean[64, 2, 2] >= 0.98  # what it pulls in makes up for its size
        assert mean[64, 0, 0] < 0.5  # sources alone do not
        assert mean[256, 2, 0] >= 0.99


def test_a_strong_neighbour_outside_takes_the_place_of_an_idle_member():
    # 0 -> 1 makes 1 active, 0 -> 2 leaves 2 at .1; 1 -> 3 is strong and one hop too far
    graph = graph_of([(0, 1, 0.9), (0, 2, 0.05), (1, 3, 0.9), (1, 4, 0.1)])
    taken = samples.sample(graph, [0], size=3, hops=1, rule=PLAIN)
    assert taken.nodes.tolist() == [0, 1, 2]
    pulled = taken.pull(graph)
    assert pulled.nodes.tolist() == [0, 1, 3]
    assert pulled.pulled == 1
    assert pulled.spread().nodes[:3].tolist() == [1, 3, 0]
    assert pulled.pull(graph) is pulled  # 4 is not strong enough, and nobody is idle


def test_sources_and_active_members_are_never_replaced():
    graph = graph_of([(0, 1, 0.9), (1, 3, 0.9), (2, 4, 0.9)])
    taken = samples.sample(graph, {0: 1.0, 2: 0.01}, size=3, hops=1, rule=PLAIN)
    assert taken.nodes.tolist() == [0, 1, 2]
    assert taken.pull(graph) is taken  # 2 is idle, but a source
    other = taken.pull(graph, {0: 1.0})
    assert other is taken  # it is still what the sample was gathered around


def test_pulling_follows_a_chain_as_far_as_activation_goes():
    chain = [(i, i + 1, 1.0) for i in range(11)]
    taken = samples.sample(graph_of(chain), [0], size=16, hops=1, rule=PLAIN, pulls=20)
    assert taken.nodes.tolist() == [0, 1, 2, 3, 4]  # 3 rounds make 3 active, which would send to 4
    assert taken.pulled == 3


def test_the_weakest_idle_member_goes_first_and_only_for_more_than_it_has():
    edges = [(0, 1, 1.0), (0, 2, 0.02), (0, 3, 0.01), (1, 4, 0.08), (1, 5, 0.5)]
    graph = graph_of(edges)
    taken = samples.sample(graph, [0], size=4, hops=1, rule=PLAIN)
    assert taken.nodes.tolist() == [0, 1, 2, 3]
    # .5 flows into 5 in a round, .08 into 4; 3 has (1 + .9 + .81) * .01 = .027, 2 has .054
    assert taken.pull(graph).nodes.tolist() == [0, 1, 2, 5]
    assert taken.pull(graph, least=0.06).nodes.tolist() == [0, 1, 4, 5]
    assert taken.pull(graph, least=0.6) is taken


def test_what_finds_no_place_is_counted():
    star = graph_of([(0, leaf, leaf / 200) for leaf in range(1, 101)])
    taken = samples.sample(star, [0], size=11, hops=1, rule=PLAIN)
    assert taken.nodes.tolist() == [0, *range(91, 101)]  # the strongest ten
    assert int(taken.dropped.touched) == 90


def test_edges_too_far_back_in_the_pool_are_counted():
    star = graph_of([(0, leaf, leaf / 700) for leaf in range(1, 701)])
    taken = samples.sample(star, [0], size=32, hops=1, rule=PLAIN)
    assert int(taken.dropped.edges) == 700 - 16 - 32 * 16  # a row of 16 and 32 rows of the pool
    assert int(samples.sample(star, [0], size=64, hops=1, rule=PLAIN).dropped.edges) == 0


def test_a_sample_is_the_same_every_time():
    edges = kernel_graphs.random_graph(800, seed=3)
    first, again = held(edges), held(edges)
    queries = [list(map(int, row)) for row in kernel_graphs.queries(edges, 3)]
    expected = [samples.sample(first, query, 64, pulls=2) for query in queries]
    for query, one in reversed(list(zip(queries, expected, strict=True))):
        other = samples.sample(again, query, 64, pulls=2)
        np.testing.assert_array_equal(one.nodes, other.nodes)
        np.testing.assert_array_equal(one.edges.strength, other.edges.strength)
        assert one.dropped == other.dropped
    assert np.all(np.asarray(samples._places[again]) == -1)


@pytest.mark.slow
def test_a_graph_that_has_grown_is_sampled_as_it_is_now():
    graph = graph_of([(0, 1, 0.9), (1, 2, 0.9)])
    assert samples.sample(graph, [0], 32, rule=PLAIN).nodes.tolist() == [0, 1, 2]
    graph.set_edges([1], [2], [0.0])
    graph.add_nodes(1_000)  # beyond its capacity
    assert graph.arrays.capacity == 2048
    graph.set_edges([1], [100], [0.8])
    assert samples.sample(graph, [0], 32, rule=PLAIN).nodes.tolist() == [0, 1, 100]


def test_what_is_learnt_inside_is_written_back_and_nothing_else():
    graph = held(kernel_graphs.random_graph(500, seed=5))
    taken = samples.sample(graph, [0, 1, 2], size=32)
    before = graph.edges()
    strengths = taken.edges.strength.copy()
    strengths[::2] = -0.5
    learnt = taken.with_strengths(strengths)
    assert learnt.spread().n_active < taken.spread().n_active
    assert taken.write_back(graph, strengths) == len(strengths[::2])
    after = graph.edges()
    changed = {
        (int(taken.nodes[source]), int(taken.nodes[target]))
        for source, target in zip(taken.edges.source[::2], taken.edges.target[::2], strict=True)
    }
    known = dict(zip(zip(before.source.tolist(), before.target.tolist(), strict=True), before.strength, strict=True))
    for source, target, strength in zip(after.source.tolist(), after.target.tolist(), after.strength, strict=True):
        assert strength == pytest.approx(-0.5 if (source, target) in changed else known[source, target], abs=1e-7)
    assert after.n_edges == before.n_edges
    assert learnt.write_back(graph) == len(strengths)
    np.testing.assert_array_equal(samples.sample(graph, [0, 1, 2], 32).spread().n_active, learnt.spread().n_active)


def test_a_decision_may_have_sources_of_its_own():
    graph = graph_of([(0, 1, 0.9), (1, 2, 0.9)])
    taken = samples.sample(graph, [0], 32, rule=PLAIN)
    course = spread_reference(graph.edges(), {1: 0.5}, PLAIN)
    np.testing.assert_allclose(taken.spread({1: 0.5}, everything=True).everything, course.activation[-1], atol=1e-6)
    both = taken.spread_many([{1: 0.5}, [0]], everything=True)
    np.testing.assert_allclose(both.everything[0], course.activation[-1], atol=1e-6)
    np.testing.assert_array_equal(both.nodes[1], taken.spread().nodes)
    with pytest.raises(ValueError, match="`sources` must be members of the sample, got node 0; sample around it"):
        samples.sample(graph, [1], 32, rule=PLAIN).spread([0])


def test_evidence_names_nodes_of_the_graph():
    graph = graph_of([(40, 41, 0.9), (41, 42, 0.9)])
    found = samples.sample(graph, [40], 32, rule=PLAIN).spread(evidence=2, top=3)
    flows = sorted(zip(found.flows.source.tolist(), found.flows.target.tolist(), strict=True))
    assert flows == [(40, 41), (41, 42)]


def test_it_is_compiled_once_for_a_size():
    graph = held(kernel_graphs.random_graph(800, seed=6))
    samples.sample(graph, [1], size=33, pulls=1)
    before = sampling.gather._cache_size(), sampling.replace_idle._cache_size()
    for size, hops, n_sources in ((40, 1, 3), (64, 3, 20), (48, 2, 1)):
        rule = recall(threshold=0.1 * hops, retention=0.5)
        samples.sample(graph, list(range(n_sources)), size, hops, rule).pull(graph)
    assert (sampling.gather._cache_size(), sampling.replace_idle._cache_size()) == before


def test_nothing_as_long_as_the_graph_is_copied():
    graph = held(kernel_graphs.random_graph(800, seed=6))
    arrays, rule, size = graph.arrays, recall(), np.int32(32)
    members, score = np.full(32, arrays.capacity, np.int32), np.zeros(32, np.float32)
    rest = rule.code, rule.params(graph.relations)
    calls = (
        sampling.gather.lower(arrays, sampling.unused_places(arrays.capacity), members, score, size, size, *rest),
        sampling.replace_idle.lower(
            arrays, sampling.unused_places(arrays.capacity), members, score, score > 0, size, score[0], *rest
        ),
    )
    for call in calls:
        lines = call.compile().as_text().splitlines()
        assert [line for line in lines if " copy(" in line and f"[{arrays.capacity + 1}" in line] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, r"`size` must be in \[1, 1024\], got 0"),
        ({"size": 2.5}, "`size` must be a whole number, got 2.5"),
        ({"size": 2}, "`size` must be at least 3, the number of sources, got 2"),
        ({"hops": -1}, r"`hops` must be in \[0, 16\], got -1"),
        ({"pulls": True}, "`pulls` must be a whole number, got True"),
        ({"rule": recall(normalisation="symmetric")}, '`rule.normalisation` must not be "symmetric"'),
        ({"rule": recall(dangling=True, restart=0.1)}, "`rule.dangling` must be False"),
    ],
)
def test_what_cannot_be_sampled_is_refused_by_name(options, message):
    graph = graph_of([(0, 1, 0.9), (1, 2, 0.9)])
    with pytest.raises((TypeError, ValueError), match=message):
        samples.sample(graph, [0, 1, 2], **options)
    with pytest.raises(ValueError, match=r"in \[0, 3\), got 3"):
        samples.sample(graph, [3])
    with pytest.raises(ValueError, match="`least` must be at least 0, got -1"):
        samples.sample(graph, [0]).pull(graph, least=-1)


def test_a_sample_is_cut_out_of_a_memory_graph_and_knows_its_members():
    edges = EdgeList(9, [0, 1], [1, 2], [1.0, 1.0])
    with pytest.raises(TypeError, match=r"`graph` must be a MemoryGraph, got EdgeList; `MemoryGraph\.from_edges`"):
        samples.sample(edges, [0])
    taken = samples.sample(MemoryGraph.from_edges(edges), [0], size=2)
    with pytest.raises(ValueError, match="`sources` must be members of the sample, got node 8"):
        taken.spread({8: 1.0})
