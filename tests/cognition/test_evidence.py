"""Evidence is a sum over paths, and nothing else moves a score."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import evidence as evidences

CHOOSE = jax.jit(cognition.choose)
EVERYTHING = jnp.ones(4, jnp.bool_)


def tiny(**changes):
    """Two nodes, actions with columns (0, 0) and factors (1, .5)."""
    return cognition.Structure(2, 2, (0, 0), (1.0, 0.5), (False, True), ledger_capacity=1, **changes)


def edges_of(shape, net, variances):
    start = cognition.initial_edges(shape, np.array(variances, np.float32))
    return cognition.Edges(jnp.array(net, jnp.float32), start.variance, start.prior, start.activity)


PATHS = cognition.Paths(jnp.array([0, 1]), jnp.array([1.0, 0.5], jnp.float32), jnp.float32(2.0))


def plain(curiosity=0.0, **style):
    return cognition.params_of(cognition.Config(curiosity=curiosity), cognition.Style(**style))


def test_evidence_by_hand():
    # node 0: gain .3, loss .1; node 1: gain -.2, loss .4
    edges = edges_of(tiny(), [0.3, 0.1, -0.2, 0.4], [0.04, 0.16])
    found = cognition.evaluate(edges, PATHS, tiny(), plain(curiosity=0.1, risk=0.5, caution=0.2))
    # gain 2 (.3 - .1) = .4, loss 2 (.1 + .2) = .6, score .4 - 1.5 * .6 = -.5, deviation
    # 2 sqrt(.04 + .25 * .16) = .5656854
    np.testing.assert_allclose(found.gain, [0.4, 0.2], atol=1e-6)
    np.testing.assert_allclose(found.loss, [0.6, 0.3], atol=1e-6)
    np.testing.assert_allclose(found.score, [-0.5, -0.25], atol=1e-6)
    np.testing.assert_allclose(found.deviation, [0.5656854, 0.2828427], atol=1e-6)
    # the second action has the best score, so that its deviation is what caution is about: -.25 + (.1 + .2) * .2828427
    np.testing.assert_allclose(found.urge, [-0.5 + 0.0565685, -0.25 + 0.0848528], atol=1e-6)


def test_common_edges_add_to_every_action():
    # per node gain own, gain common, loss own, loss common; only node 1 is at a position with common edges
    edges = edges_of(tiny(common=(1,)), [0.3, 9, 0.1, 9, -0.2, 0.6, 0.4, 0.2], [0.04, 0.16])
    found = cognition.evaluate(edges, PATHS, tiny(common=(1,)), plain())
    # gain 2 (.3 - .1 + .3) = 1, loss 2 (.1 + .2 + .1) = .8
    np.testing.assert_allclose(found.gain, [1.0, 0.5], atol=1e-6)
    np.testing.assert_allclose(found.loss, [0.8, 0.4], atol=1e-6)


def test_beta_is_a_mean_of_the_paths_weighted_by_activation_and_precision():
    edges = edges_of(tiny(rule="beta"), [0.3, 0.1, -0.2, 0.4], [0.04, 0.16])
    found = cognition.evaluate(edges, PATHS, tiny(rule="beta"), plain())
    # weights 1 / .04 = 25 and .5 / .16 = 3.125: shares .8888889 and .1111111
    np.testing.assert_allclose(found.gain, 2 * (0.3 * 8 / 9 - 0.2 / 9) * np.array([1, 0.5]), atol=1e-6)
    np.testing.assert_allclose(found.loss, 2 * (0.1 * 8 / 9 + 0.4 / 9) * np.array([1, 0.5]), atol=1e-6)
    np.testing.assert_allclose(evidences.shares(PATHS.activation, edges.variance[:, None]).sum(), 1.0, atol=1e-6)


@pytest.fixture
def known(structure, situation, begun, randomised):
    """(state with random strengths and variances, structure without common edges)."""
    shape = structure(common=(), rule="kalman")
    state = begun(shape, cognition.Config(), situation(shape, np.random.default_rng(0)))
    return randomised(state, np.random.default_rng(0)), shape


def paths_of(shape, rng):
    nodes = rng.choice(shape.n_nodes, shape.n_paths, replace=False).astype(np.int32)
    activation = rng.choice([0.0, 1.0, 0.5, -0.7], shape.n_paths).astype(np.float32)
    return cognition.Paths(nodes, activation, np.float32(rng.uniform(0.2, 3.0)))


@pytest.mark.parametrize("rule", ["kalman", "hebb"])
def test_switching_a_path_off_changes_the_scores_by_exactly_its_contribution(
    rule, structure, situation, begun, randomised, compiled
):
    shape = structure(rule=rule, common=(0, 1, 2) if rule == "kalman" else ())
    rng = np.random.default_rng(1)
    state = randomised(begun(shape, cognition.Config(), situation(shape, rng)), rng)
    net = np.asarray(state.edges.net, np.float64).reshape(shape.n_nodes, 2, shape.width)
    balance, columns = net[:, 0] - net[:, 1], list(shape.columns)
    for _ in range(5):
        whole = paths_of(shape, rng)
        score = compiled.evaluate(state.edges, whole, shape, plain()).score
        for k in range(shape.n_paths):
            without = whole.activation.copy()
            without[k] = 0.0
            rest = compiled.evaluate(state.edges, whole._replace(activation=without), shape, plain()).score
            both = balance[whole.nodes[k], columns] + (balance[whole.nodes[k], -1] if k in shape.common else 0.0)
            expected = np.array(shape.factors) * whole.stake * whole.activation[k] * both
            np.testing.assert_allclose(score - rest, expected, atol=4e-6)


def test_renumbering_nodes_changes_nothing(known, compiled):
    state, shape = known
    rng, edges = np.random.default_rng(2), state.edges
    order = rng.permutation(shape.n_nodes)
    place = np.argsort(order).astype(np.int32)
    moved = dataclasses.replace(
        edges,
        net=edges.net.reshape(shape.n_nodes, -1)[order].reshape(-1),
        variance=edges.variance.reshape(shape.n_nodes, -1)[order].reshape(-1),
    )
    here = paths_of(shape, rng)
    there = here._replace(nodes=place[here.nodes])
    for a, b in zip(
        *(compiled.evaluate(e, p, shape, plain()) for e, p in ((edges, here), (moved, there))), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_more_risk_aversion_lowers_every_score_that_has_evidence_of_loss(known, compiled):
    (state, shape), rng = known, np.random.default_rng(3)
    for _ in range(30):
        here = paths_of(shape, rng)
        found = [compiled.evaluate(state.edges, here, shape, plain(risk=risk)) for risk in (-0.5, 0.0, 0.5, 1.0)]
        scores, loss = np.array([one.score for one in found]), np.asarray(found[0].loss)
        np.testing.assert_allclose(np.diff(scores, axis=0), -0.5 * np.tile(loss, (3, 1)), atol=1e-5)
        assert (np.diff(scores, axis=0)[:, loss > 1e-3] < 0).all()


def test_exploration_falls_to_its_floor_and_not_below():
    params = cognition.params_of(cognition.Config(eps0=0.1, eps_steps=500, eps_floor=0.01), cognition.Style())

    def explores(step, word):
        """Whether this first random word leads to the random action 3; the second one asks for it."""
        noise = jnp.array([word, 3 << 8], jnp.uint32)
        return int(CHOOSE(jnp.int32(1), EVERYTHING, jnp.int32(step), noise, params)) == 3

    whole = 2**32
    for step, rate in ((0, 0.1), (500, 0.05), (4_500, 0.01), (10**7, 0.01)):
        assert explores(step, int(whole * rate * 0.99))
        assert not explores(step, int(whole * rate * 1.01))


def test_without_exploration_the_greedy_action_is_chosen():
    params = cognition.params_of(cognition.Config(), cognition.Style(exploration=0.0))
    assert int(CHOOSE(jnp.int32(2), EVERYTHING, jnp.int32(0), jnp.zeros(2, jnp.uint32), params)) == 2


def test_the_first_of_the_best_is_greedy_and_nothing_impossible_is():
    values = jnp.array([0.0, 1.0, 1.0, 2.0])
    assert int(evidences.greedy(values)) == 3
    assert int(evidences.greedy(evidences.allowed(values, jnp.array([True, True, True, False])))) == 1
    assert int(evidences.greedy(evidences.allowed(-values, jnp.array([False, False, False, True])))) == 3


@pytest.mark.parametrize("mask", [(True,) * 5, (False, True, True, False, True)])
def test_random_actions_are_uniform_over_what_is_possible(mask):
    params = cognition.params_of(cognition.Config(eps0=1.0), cognition.Style())
    words = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, (600, 2), np.uint32))
    choose = jax.vmap(cognition.choose, in_axes=(None, None, None, 0, None))
    choices = choose(jnp.int32(1), jnp.array(mask), jnp.int32(0), words, params)
    # 600 draws of n: standard deviation of a count sqrt(600 / n (1 - 1 / n)) = 9.8 and 11.5; 4.5 of them is a false
    # alarm below 1e-4
    n = sum(mask)
    counts = np.bincount(choices, minlength=5)
    assert (np.abs(counts - np.where(mask, 600 / n, 0)) <= 4.5 * np.sqrt(600 / n * (1 - 1 / n)) * np.array(mask)).all()


def test_paths_of_another_length_are_refused(known):
    state, shape = known
    here = paths_of(shape, np.random.default_rng(0))
    short = here._replace(nodes=here.nodes[:-1])
    with pytest.raises(ValueError, match=r"`paths.nodes` must have shape \(17,\), got \(16,\)"):
        cognition.evaluate(state.edges, short, shape, plain())
