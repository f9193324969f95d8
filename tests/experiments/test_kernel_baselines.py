"""What the kernels are compared with computes the same values as they do; and the graphs that both run on."""

import numpy as np
import pytest
from habitus.cognition.activation import pagerank, recall, spread_reference
from habitus.cognition.graph import EdgeList
from habitus.experiments import kernel_baselines as baselines
from habitus.experiments import kernel_graphs as graphs

N_NODES = 2_000


@pytest.fixture(scope="module", params=["random", "local", "scale-free", "clustered", "signed"])
def edges(request):
    match request.param:
        case "random":
            return graphs.random_graph(N_NODES)
        case "local":
            return graphs.random_graph(N_NODES, local=0.7)
        case "scale-free":
            return graphs.scale_free_graph(N_NODES)
        case "clustered":
            return graphs.clustered_graph(N_NODES)
    drawn = graphs.random_graph(N_NODES)
    sign = np.where(np.random.default_rng(0).random(drawn.n_edges) < 0.2, -1, 1)
    return EdgeList(N_NODES, drawn.source, drawn.target, drawn.strength * sign, drawn.relation, drawn.base)


def reference(edges, nodes, rule):
    return spread_reference(edges, {int(node): 1.0 for node in nodes}, rule).raw[-1]


@pytest.mark.parametrize("rule", [recall(), recall(normalisation="row", threshold=0.05, rounds=5, retention=0.6)])
def test_a_scipy_sweep_and_a_dictionary_of_python_compute_the_rule(edges, rule):
    sweep = baselines.ScipySweep(edges, rule)
    python = None if sweep.inhibits else baselines.PythonFrontier(edges, rule)
    for nodes in graphs.queries(edges, 5):
        raw = reference(edges, nodes, rule)
        np.testing.assert_allclose(sweep.spread(nodes), raw, atol=1e-5)
        if python is not None:
            found = np.zeros(edges.n_nodes)
            for node, value in python.spread(nodes.tolist()).items():
                found[node] = value
            np.testing.assert_allclose(found, raw, atol=1e-5)
        best = np.lexsort((np.arange(len(raw)), -raw))[:32]
        np.testing.assert_allclose(raw[sweep.recall(nodes)], raw[best], atol=1e-5)


def test_a_dictionary_of_python_refuses_edges_that_inhibit():
    edges = EdgeList(2, np.array([0]), np.array([1]), np.array([-0.5]))
    with pytest.raises(ValueError, match=r"`edges` must not inhibit, got strength -0\.5"):
        baselines.PythonFrontier(edges, recall())


def test_a_numpy_batch_computes_the_rule():
    rule, size = recall(), 64
    several = [graphs.clustered_graph(size, inside=0.0, seed=seed) for seed in range(5)]
    nodes = [graphs.queries(edges, 1, 6)[0] for edges in several]
    sources = np.zeros((5, size), np.float32)
    for row, chosen in zip(sources, nodes, strict=True):
        row[chosen] = 1
    weights = baselines.dense_weights(several, rule)
    expected = [reference(edges, chosen, rule) for edges, chosen in zip(several, nodes, strict=True)]
    np.testing.assert_allclose(baselines.numpy_batch(weights, sources, rule), expected, atol=1e-5)
    np.testing.assert_allclose(baselines.numpy_single(weights[0], sources[0], rule), expected[0], atol=1e-5)
    shared = [reference(several[0], chosen, rule) for chosen in nodes]
    np.testing.assert_allclose(baselines.numpy_shared(weights[0].T, sources, rule), shared, atol=1e-5)


@pytest.mark.skipif(not baselines.HAS_SURFER, reason="needs scikit-network, extra `bench`")
def test_pagerank_of_scikit_network_is_ours():
    drawn = graphs.random_graph(N_NODES)
    ring = np.arange(N_NODES)  # besides, so that every node has an out-edge: what dangles differs in scikit-network
    keys = np.concatenate([drawn.source * N_NODES + drawn.target, ring * N_NODES + (ring + 1) % N_NODES])
    source, target = np.divmod(np.unique(keys), N_NODES)
    edges = EdgeList(N_NODES, source, target, np.random.default_rng(1).uniform(0.1, 1, len(source)))
    nodes = graphs.queries(edges, 1)[0].tolist()
    surfer = baselines.Surfer(edges, 0.85, 10)
    rule = pagerank(rounds=10, tolerance=0.0)
    expected = spread_reference(edges, dict.fromkeys(nodes, 1 / len(nodes)), rule).activation[-1]
    np.testing.assert_allclose(surfer.rank(nodes), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"cap": None}, "cap"),
        ({"sources": "once"}, "sources"),
        ({"leak": 0.1}, "leak"),
        ({"restart": 0.1}, "restart"),
        ({"softness": 0.1}, "softness"),
        ({"tolerance": 0.1}, "tolerance"),
        ({"spends": True}, "spends"),
    ],
)
def test_a_baseline_refuses_what_it_would_leave_out(changed, name):
    with pytest.raises(ValueError, match=f"`rule.{name}` must be as in recall"):
        baselines.ScipySweep(graphs.clustered_graph(100), recall(**changed))


def test_the_bandwidth_is_of_what_is_moved():
    moved = baselines.Bandwidth(1_000)
    moved.copy()
    np.testing.assert_array_equal(moved.copied, moved.values)
    moved.gather()
    np.testing.assert_array_equal(moved.copied, moved.values[moved.places])


def test_degrees_of_random_graphs_follow_a_power_law():
    edges = graphs.random_graph(50_000)
    assert 9 < edges.n_edges / edges.n_nodes <= 10
    for degree in (edges.out_degree(), np.bincount(edges.target, minlength=edges.n_nodes)):
        # density ~ k^-2.5: the share above k falls with k^-1.5, from 20 to 200 by a factor of 32
        ratio = (degree >= 20).sum() / (degree >= 200).sum()
        assert 25 < ratio < 40
    assert np.corrcoef(edges.out_degree(), np.bincount(edges.target, minlength=edges.n_nodes))[0, 1] < 0.05


def test_local_edges_join_neighbours_in_number():
    near = [
        np.mean(np.abs(edges.source - edges.target) <= graphs.WINDOW)
        for edges in (graphs.random_graph(50_000, local=local) for local in (0.0, 0.7))
    ]
    assert near[0] < 0.1
    assert near[1] == pytest.approx(0.7 + 0.3 * near[0], abs=0.02)


def test_preferential_attachment_makes_hubs_and_clusters_keep_their_edges():
    grown = graphs.scale_free_graph(20_000, 5)
    degree = grown.out_degree() + np.bincount(grown.target, minlength=grown.n_nodes)
    assert degree.max() > 40 * degree.mean()
    assert degree[:200].mean() > 5 * degree[-10_000:].mean()  # the old are rich
    # density ~ k^-3: the share above k falls with k^-2, from 10 to 40 by a factor of 16
    assert 11 < (degree >= 20).sum() / (degree >= 80).sum() < 22
    clustered = graphs.clustered_graph(5_000, inside=0.8)
    inside = np.mean(clustered.source // 50 == clustered.target // 50)
    assert inside == pytest.approx(0.8, abs=0.03)


def test_graphs_are_the_same_for_a_seed_and_sources_have_out_edges():
    for make in (graphs.random_graph, graphs.scale_free_graph, graphs.clustered_graph):
        first, again, other = make(500, seed=3), make(500, seed=3), make(500, seed=4)
        np.testing.assert_array_equal(first.strength, again.strength)
        assert first.n_edges != other.n_edges or (first.source != other.source).any()
        assert (first.source != first.target).all()
        nodes = graphs.queries(first, 20, 6)
        assert all(len(set(row)) == 6 for row in nodes.tolist())
        assert (first.out_degree()[nodes] > 0).all()
    with pytest.raises(ValueError, match="`n_nodes` must be at least 2, got 1"):
        graphs.random_graph(1)
    with pytest.raises(ValueError, match="`n_sources` must be at most 2, the nodes with out-edges, got 3"):
        graphs.queries(EdgeList(5, np.array([0, 1]), np.array([1, 2]), np.ones(2)), 1, 3)
