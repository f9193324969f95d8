"""Evidence is a sum over paths, and nothing else moves a score."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition

EVALUATE = jax.jit(cognition.evaluate, static_argnums=2)
CHOOSE = jax.jit(cognition.choose)


@pytest.fixture
def known(structure):
    """Random strengths and variances."""
    shape, rng = structure(), np.random.default_rng(0)
    start = cognition.initial_edges(shape, rng.uniform(0.01, 0.1, shape.n_nodes).astype(np.float32))
    net = jnp.asarray(rng.uniform(-0.5, 0.5, start.net.shape), jnp.float32)
    return cognition.Edges(net, start.variance, start.activity)


def evaluated(known, paths, structure, **style):
    params = cognition.params_of(cognition.Config(), cognition.Style(**style))
    return EVALUATE(known, paths, structure, params)


def test_evidence_by_hand():
    # two nodes, actions with columns (0, 0) and factors (1, .5), stake 2
    shape = cognition.Structure(2, 2, (0, 0), (1.0, 0.5), (False, True), ledger_capacity=1)
    start = cognition.initial_edges(shape, np.array([0.04, 0.16], np.float32))
    net = jnp.array([0.3, 0.1, -0.2, 0.4], jnp.float32)  # node 0: gain .3, loss .1; node 1: gain -.2, loss .4
    edges = cognition.Edges(net, start.variance, start.activity)
    paths = cognition.Paths(jnp.array([0, 1]), jnp.array([1.0, 0.5], jnp.float32), jnp.float32(2.0))
    found = evaluated(edges, paths, shape, risk=0.5, curiosity=0.1, caution=0.2)
    # gain 2 (.3 - .1) = .4, loss 2 (.1 + .2) = .6, score .4 - 1.5 * .6 = -.5, deviation
    # 2 sqrt(.04 + .25 * .16) = .5656854
    np.testing.assert_allclose(found.gain, [0.4, 0.2], atol=1e-6)
    np.testing.assert_allclose(found.loss, [0.6, 0.3], atol=1e-6)
    np.testing.assert_allclose(found.score, [-0.5, -0.25], atol=1e-6)
    np.testing.assert_allclose(found.deviation, [0.5656854, 0.2828427], atol=1e-6)
    # the second action has the best score, so that its deviation is what caution is about: -.25 + (.1 + .2) * .2828427
    np.testing.assert_allclose(found.urge, [-0.5 + 0.0565685, -0.25 + 0.0848528], atol=1e-6)


def test_switching_a_path_off_changes_the_scores_by_exactly_its_contribution(known, structure, paths):
    shape, rng = structure(), np.random.default_rng(1)
    net = np.asarray(known.net, np.float64).reshape(shape.n_nodes, 2, shape.n_columns)
    for _ in range(50):
        whole = paths(shape, rng)
        for k in range(shape.n_paths):
            without = whole.activation.copy()
            without[k] = 0.0
            rest = evaluated(known, whole._replace(activation=without), shape)
            change = evaluated(known, whole, shape).score - rest.score
            factors = np.array(shape.factors) * whole.stake * whole.activation[k]
            columns = list(shape.columns)
            expected = factors * (net[whole.nodes[k], 0, columns] - net[whole.nodes[k], 1, columns])
            np.testing.assert_allclose(change, expected, atol=2e-6)


def test_renumbering_nodes_changes_nothing(known, structure, paths):
    shape, rng = structure(), np.random.default_rng(2)
    order = rng.permutation(shape.n_nodes)
    place = np.argsort(order).astype(np.int32)
    moved = cognition.Edges(
        known.net.reshape(shape.n_nodes, -1)[order].reshape(-1),
        known.variance.reshape(shape.n_nodes, -1)[order].reshape(-1),
        known.activity,
    )
    here = paths(shape, rng)
    there = here._replace(nodes=place[here.nodes])
    for a, b in zip(evaluated(known, here, shape), evaluated(moved, there, shape), strict=True):
        np.testing.assert_array_equal(a, b)


def test_more_risk_aversion_lowers_every_score_that_has_evidence_of_loss(known, structure, paths):
    shape, rng = structure(), np.random.default_rng(3)
    for _ in range(30):
        here = paths(shape, rng)
        scores = np.array([evaluated(known, here, shape, risk=risk).score for risk in (-0.5, 0.0, 0.5, 1.0)])
        loss = np.asarray(evaluated(known, here, shape).loss)
        np.testing.assert_allclose(np.diff(scores, axis=0), -0.5 * np.tile(loss, (3, 1)), atol=1e-5)
        assert (np.diff(scores, axis=0)[:, loss > 1e-3] < 0).all()


def test_exploration_falls_to_its_floor_and_not_below():
    params = cognition.params_of(cognition.Config(eps0=0.1, eps_steps=500, eps_floor=0.01), cognition.Style())
    evidence = cognition.Evidence(*[jnp.array([0.0, 1.0, 0.0, 0.0])] * 5)

    def explores(step, word):
        """Whether this first random word leads to the random action 3; the second one asks for it."""
        noise = jnp.array([word, 3 << 8], jnp.uint32)
        return int(cognition.choose(evidence, jnp.int32(step), noise, params)) == 3

    whole = 2**32
    for step, rate in ((0, 0.1), (500, 0.05), (4_500, 0.01), (10**7, 0.01)):
        assert explores(step, int(whole * rate * 0.99))
        assert not explores(step, int(whole * rate * 1.01))


def test_without_exploration_the_first_of_the_best_is_chosen():
    params = cognition.params_of(cognition.Config(), cognition.Style(exploration=0.0))
    evidence = cognition.Evidence(*[jnp.array([0.0, 1.0, 1.0])] * 5)
    assert int(cognition.choose(evidence, jnp.int32(0), jnp.zeros(2, jnp.uint32), params)) == 1


def test_random_actions_are_uniform():
    params = cognition.params_of(cognition.Config(eps0=1.0), cognition.Style())
    evidence = cognition.Evidence(*[jnp.zeros(5)] * 5)
    words = np.random.default_rng(0).integers(0, 2**32, (600, 2), np.uint32)
    choices = [int(CHOOSE(evidence, jnp.int32(0), jnp.asarray(word), params)) for word in words]
    # 600 draws of 5: standard deviation of a count sqrt(600 * .2 * .8) = 9.8; 45 is 4.6 of them, false alarm < 1e-4
    assert (np.abs(np.bincount(choices, minlength=5) - 120) < 45).all()


def test_paths_of_another_length_are_refused(known, structure, paths):
    shape = structure()
    here = paths(structure(n_paths=3), np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"`paths.nodes` must have shape \(4,\), got \(3,\)"):
        evaluated(known, here, shape)
