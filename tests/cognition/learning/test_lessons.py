"""One update under every rule, by hand, and the laws that hold for any."""

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition.learning import lessons

RULES = get_args(cognition.Rule)
# two nodes of three, column 0 of one; the third node is never touched
STRUCTURES = {
    rule: cognition.Structure(3, 2, (0,), (1.0,), (False,), ledger_capacity=2, rule=rule, bootstraps=False)
    for rule in RULES
}
PARAMS = cognition.params_of(cognition.Config(noise=0.3, learning_rate=0.1), cognition.Style())
LEARN = jax.jit(cognition.learn, static_argnums=2)


def edges(gain=(0.2, -0.1, 0.3), loss=(0.1, 0.2, -0.3), variance=(0.04, 0.02, 0.01)):
    net = np.stack([gain, loss], axis=1).astype(np.float32).reshape(-1)
    known = cognition.initial_edges(STRUCTURES["kalman"], np.array(variance, np.float32))
    return cognition.Edges(jnp.asarray(net), known.variance, known.prior, known.activity)


def lesson(gain=1.0, loss=0.0, activation=(1.0, 0.5), index=(0, 1), applies=True, noise=0.3):
    return cognition.Lesson(
        jnp.asarray(applies),
        jnp.array(index, jnp.int32),
        jnp.array(activation, jnp.float32),
        jnp.int32(0),
        jnp.float32(gain),
        jnp.float32(loss),
        jnp.float32(noise),
    )


def learnt(rule, known, given):
    return LEARN(known, given, STRUCTURES[rule], PARAMS)


def changed(rule):
    """[3, 2] strengths and [3] variances after the lesson."""
    after = learnt(rule, edges(), lesson())
    return np.asarray(after.net).reshape(3, 2), np.asarray(after.variance)


def test_kalman_moves_each_edge_by_its_share_of_the_uncertainty():
    # prediction of gain .2 + .5 * -.1 = .15, error .85; of loss .1 + .5 * .2 = .2, error -.2
    # spread .3 + .04 * 1 + .02 * .25 = .345; gains .04 / .345 = .115942 and .02 * .5 / .345 = .0289855
    net, variance = changed("kalman")
    np.testing.assert_allclose(net[:, 0], [0.2985507, -0.0753623, 0.3], atol=1e-6)
    np.testing.assert_allclose(net[:, 1], [0.0768116, 0.1942029, -0.3], atol=1e-6)
    # v (1 - g x): .04 * (1 - .115942), .02 * (1 - .0289855 * .5)
    np.testing.assert_allclose(variance, [0.0353623, 0.0197101, 0.01], atol=1e-6)


def test_nlms_removes_the_learning_rate_of_the_error_and_keeps_variances():
    # sum x^2 = 1.25; steps .1 * 1 / 1.25 = .08 and .1 * .5 / 1.25 = .04; errors .85 and -.2 as above
    net, variance = changed("nlms")
    np.testing.assert_allclose(net[:, 0], [0.268, -0.066, 0.3], atol=1e-6)
    np.testing.assert_allclose(net[:, 1], [0.084, 0.192, -0.3], atol=1e-6)
    np.testing.assert_array_equal(variance, edges().variance)
    assert 1.0 - (net[0, 0] + 0.5 * net[1, 0]) == pytest.approx(0.9 * 0.85, abs=1e-6)


def test_count_learns_from_the_error_at_a_rate_that_counts_lessons():
    # steps v x = .04 and .01, since .045 of uncertainty is below 1; errors .85 and -.2; 1 / v: 25 + 1, 50 + .25
    net, variance = changed("count")
    np.testing.assert_allclose(net[:, 0], [0.234, -0.0915, 0.3], atol=1e-6)
    np.testing.assert_allclose(net[:, 1], [0.092, 0.198, -0.3], atol=1e-6)
    np.testing.assert_allclose(variance, [1 / 26, 1 / 50.25, 0.01], atol=1e-7)


def test_beta_averages_outcomes_on_each_edge_for_itself():
    # 1 / v: 25 + 1, 50 + .5; steps 1 / 26 and .5 / 50.5 of the edge's own error: .8 and 1.1 of gain, -.1, -.2 of loss
    net, variance = changed("beta")
    np.testing.assert_allclose(net[:, 0], [0.2 + 0.8 / 26, -0.1 + 1.1 * 0.5 / 50.5, 0.3], atol=1e-6)
    np.testing.assert_allclose(net[:, 1], [0.1 - 0.1 / 26, 0.2 - 0.2 * 0.5 / 50.5, -0.3], atol=1e-6)
    np.testing.assert_allclose(variance, [1 / 26, 1 / 50.5, 0.01], atol=1e-7)


@pytest.mark.parametrize("rule", ["hebb", "hebb_advantage"])
def test_hebb_strengthens_what_was_on_and_weakens_the_opposite_whatever_was_expected(rule):
    # rates .1 and .05; gain grows by rate (1 - w): .8 and 1.1; loss shrinks by rate w: .1 and .2
    net, variance = changed(rule)
    np.testing.assert_allclose(net[:, 0], [0.28, -0.045, 0.3], atol=1e-6)
    np.testing.assert_allclose(net[:, 1], [0.09, 0.19, -0.3], atol=1e-6)
    np.testing.assert_array_equal(variance, edges().variance)


def test_the_common_edge_of_a_path_takes_its_share_of_the_error():
    # node 0 has an edge of gain .3 to all actions: prediction .2 + .5 * -.1 + .3 = .45, error .55;
    # spread .3 + .04 + .02 * .25 + .04 = .385; the common edge moves as far as the own one, .04 / .385 * .55
    shape = cognition.Structure(3, 2, (0,), (1.0,), (False,), ledger_capacity=2, common=(0,))
    known = cognition.initial_edges(shape, np.array([0.04, 0.02, 0.01], np.float32))
    net = np.zeros((3, 2, 2), np.float32)  # node, channel, own or common
    net[:, 0, 0], net[0, 0, 1] = (0.2, -0.1, 0.3), 0.3
    known = cognition.Edges(jnp.asarray(net.reshape(-1)), known.variance, known.prior, known.activity)
    after = LEARN(known, lesson(), shape, PARAMS)
    moved = (np.asarray(after.net).reshape(3, 2, 2) - net)[:, 0]
    step = 0.55 * 0.04 / 0.385
    np.testing.assert_allclose(moved, [[step, step], [0.55 * 0.01 / 0.385, 0], [0, 0]], atol=1e-6)
    v = 0.04 * (1 - 0.04 / 0.385)
    np.testing.assert_allclose(after.variance.reshape(3, 2)[0], [v, v], atol=1e-7)


@pytest.mark.parametrize("rule", RULES)
def test_net_strengths_stay_between_minus_one_and_one(rule):
    known = edges(gain=(0.99, -0.99, 0), variance=(5.0, 5.0, 5.0))
    of_edges = rule == "beta"  # a mean of what it was told, which the caller keeps within the bounds
    largest = 0.0
    for target in (1.0, -1.0, 1.0) if of_edges else (40.0, -40.0, 7.0):
        for _ in range(30):
            known = learnt(rule, known, lesson(gain=target, loss=-target))
            largest = max(largest, float(jnp.abs(known.net).max()))
        assert float(jnp.abs(known.net).max()) <= 1.0
    assert largest > 0.99  # the bound was reached, so it was tested


@pytest.mark.parametrize("rule", sorted(set(RULES) - {"beta"}))
def test_unsigned_strengths_stay_between_zero_and_one(rule):
    shape = cognition.Structure(3, 2, (0,), (1.0,), (False,), ledger_capacity=2, rule=rule, signed=False)
    known = edges(gain=(0.4, 0.1, 0), loss=(0.2, 0.2, 0), variance=(5.0, 5.0, 5.0))
    for target in (-3.0, 3.0, -0.2):
        known = LEARN(known, lesson(gain=target, loss=-target), shape, PARAMS)
        assert float(known.net.min()) >= 0.0
        assert float(known.net.max()) <= 1.0
    assert float(known.net.min()) == 0.0


def test_beta_is_the_mean_of_its_outcomes_and_as_many_of_the_prior_as_its_precision_says():
    rng = np.random.default_rng(0)
    outcomes = rng.uniform(0, 1, 40).astype(np.float32)
    known = edges(gain=(0.2, 0, 0), variance=(0.25, 1, 1))  # precision 4: as if it had seen .2 four times
    for y in outcomes:
        known = learnt("beta", known, lesson(gain=y, activation=(1.0, 0.0)))
    assert float(known.net[0]) == pytest.approx((4 * 0.2 + outcomes.sum()) / 44, abs=1e-5)
    assert float(known.variance[0]) == pytest.approx(1 / 44, rel=1e-4)


@pytest.mark.parametrize("rule", RULES)
def test_a_lesson_that_does_not_apply_changes_nothing(rule):
    for given in (lesson(applies=False), lesson(activation=(0.0, 0.0))):
        after = learnt(rule, edges(), given)
        jax.tree.map(np.testing.assert_array_equal, after, edges())


@pytest.mark.parametrize("rule", RULES)
def test_a_switched_off_path_may_repeat_a_node(rule):
    once = learnt(rule, edges(), lesson(activation=(1.0, 0.0), index=(0, 1)))
    twice = learnt(rule, edges(), lesson(activation=(1.0, 0.0), index=(0, 0)))
    jax.tree.map(np.testing.assert_array_equal, once, twice)


def test_noisier_targets_teach_less():
    def change(noise):
        return float(learnt("kalman", edges(), lesson(noise=noise)).net[0] - edges().net[0])

    assert change(0.3) > change(0.45) > change(3.0) > 0


@pytest.mark.parametrize("rule", ["kalman", "beta"])
def test_several_lessons_are_learnt_one_after_the_other(rule):
    given = [lesson(gain=0.4), lesson(gain=0.0, loss=0.9, index=(1, 2)), lesson(applies=False)]
    words = jnp.stack([cognition.lesson_words(one) for one in given])
    learn_all = jax.jit(cognition.learn_all, static_argnums=4)
    together, count = learn_all(edges(), words, jnp.int32(0), jnp.int32(3), STRUCTURES[rule], PARAMS)
    apart = edges()
    for one in given:
        apart = learnt(rule, apart, one)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), together, apart)
    assert int(count) == 2
    only, count = learn_all(edges(), words, jnp.int32(1), jnp.int32(2), STRUCTURES[rule], PARAMS)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), only, learnt(rule, edges(), given[1]))
    assert int(count) == 1


@pytest.mark.parametrize("rule", ["kalman", "nlms", "count"])
def test_repeated_outcomes_are_predicted_in_the_end(rule):
    known = edges(variance=(1.0, 1.0, 1.0))
    for _ in range(300):
        known = learnt(rule, known, lesson(gain=0.6, loss=0.25))
    net = np.asarray(known.net).reshape(3, 2)
    np.testing.assert_allclose(net[0] + 0.5 * net[1], [0.6, 0.25], atol=2e-3)


def test_hebb_predicts_no_more_for_an_outcome_that_two_paths_explain_than_for_one():
    """It has no error: each path grows towards the bound by itself, so that together they promise too much."""
    known = edges(gain=(0.0, 0.0, 0.0), loss=(0.0, 0.0, 0.0))
    for _ in range(300):
        known = learnt("hebb", known, lesson(gain=0.6, activation=(1.0, 1.0)))
    assert float(known.net[0] + known.net[2]) > 1.9  # of .6


def test_what_a_reach_names_lies_within_the_edges():
    shape = cognition.Structure(3, 2, (0, 1), (1.0, 1.0), (False, False), ledger_capacity=2, common=(0, 1))
    nodes, on = jnp.array([2, 0], jnp.int32), jnp.ones(2, jnp.float32)
    at = lessons.reach(nodes, on, jnp.int32(1), shape)
    # rows of 3 gains and 3 losses: nodes 2 and 0, column 1, then the common column 2
    assert at.cells.tolist() == [13, 1, 14, 2]
    assert at.variances.tolist() == [7, 1, 8, 2]
