"""One update, by hand, and the laws that hold for any."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition

# two nodes of three, column 0 of one; the third node is never touched
STRUCTURES = {
    rule: cognition.Structure(3, 2, (0,), (1.0,), (False,), ledger_capacity=2, rule=rule) for rule in ("kalman", "nlms")
}
PARAMS = cognition.params_of(cognition.Config(noise=0.3, learning_rate=0.1), cognition.Style())
LEARN = jax.jit(cognition.learn, static_argnums=2)


def edges(gain=(0.2, -0.1, 0.3), loss=(0.1, 0.2, -0.3), variance=(0.04, 0.02, 0.01)):
    net = np.stack([gain, loss], axis=1).astype(np.float32).reshape(-1)
    known = cognition.initial_edges(STRUCTURES["kalman"], np.array(variance, np.float32))
    return cognition.Edges(jnp.asarray(net), known.variance, known.activity)


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


def test_kalman_moves_each_edge_by_its_share_of_the_uncertainty():
    # prediction of gain .2 + .5 * -.1 = .15, error .85; of loss .1 + .5 * .2 = .2, error -.2
    # spread .3 + .04 * 1 + .02 * .25 = .345; gains .04 / .345 = .115942 and .02 * .5 / .345 = .0289855
    after = learnt("kalman", edges(), lesson())
    net = np.asarray(after.net).reshape(3, 2)
    np.testing.assert_allclose(net[:, 0], [0.2985507, -0.0753623, 0.3], atol=1e-6)
    np.testing.assert_allclose(net[:, 1], [0.0768116, 0.1942029, -0.3], atol=1e-6)
    # v (1 - g x): .04 * (1 - .115942), .02 * (1 - .0289855 * .5)
    np.testing.assert_allclose(after.variance, [0.0353623, 0.0197101, 0.01], atol=1e-6)


def test_nlms_removes_the_learning_rate_of_the_error_and_keeps_variances():
    # sum x^2 = 1.25; steps .1 * 1 / 1.25 = .08 and .1 * .5 / 1.25 = .04; errors .85 and -.2 as above
    after = learnt("nlms", edges(), lesson())
    net = np.asarray(after.net).reshape(3, 2)
    np.testing.assert_allclose(net[:, 0], [0.268, -0.066, 0.3], atol=1e-6)
    np.testing.assert_allclose(net[:, 1], [0.084, 0.192, -0.3], atol=1e-6)
    np.testing.assert_array_equal(after.variance, edges().variance)
    error = 1.0 - (net[0, 0] + 0.5 * net[1, 0])
    assert error == pytest.approx(0.9 * 0.85, abs=1e-6)


@pytest.mark.parametrize("rule", STRUCTURES)
def test_net_strengths_stay_between_minus_one_and_one(rule):
    known = edges(gain=(0.99, -0.99, 0), variance=(5.0, 5.0, 5.0))
    for target in (40.0, -40.0, 7.0):
        for _ in range(30):
            known = learnt(rule, known, lesson(gain=target, loss=-target))
        assert float(jnp.abs(known.net).max()) <= 1.0
    assert float(jnp.abs(known.net).max()) == 1.0  # the bound was reached, so it was tested


@pytest.mark.parametrize("rule", STRUCTURES)
def test_a_lesson_that_does_not_apply_changes_nothing(rule):
    for given in (lesson(applies=False), lesson(activation=(0.0, 0.0))):
        after = learnt(rule, edges(), given)
        jax.tree.map(np.testing.assert_array_equal, after, edges())


@pytest.mark.parametrize("rule", STRUCTURES)
def test_a_switched_off_path_may_repeat_a_node(rule):
    once = learnt(rule, edges(), lesson(activation=(1.0, 0.0), index=(0, 1)))
    twice = learnt(rule, edges(), lesson(activation=(1.0, 0.0), index=(0, 0)))
    jax.tree.map(np.testing.assert_array_equal, once, twice)


def test_noisier_targets_teach_less():
    def change(noise):
        return float(learnt("kalman", edges(), lesson(noise=noise)).net[0] - edges().net[0])

    assert change(0.3) > change(0.45) > change(3.0) > 0


@pytest.mark.parametrize("rule", STRUCTURES)
def test_several_lessons_are_learnt_one_after_the_other(rule):
    given = [lesson(gain=0.4), lesson(gain=0.0, loss=0.9, index=(1, 2)), lesson(applies=False)]
    words = jnp.stack([cognition.lesson_words(one) for one in given])
    together, count = cognition.learn_all(edges(), words, jnp.int32(0), jnp.int32(3), STRUCTURES[rule], PARAMS)
    apart = edges()
    for one in given:
        apart = learnt(rule, apart, one)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), together, apart)
    assert int(count) == 2
    only, count = cognition.learn_all(edges(), words, jnp.int32(1), jnp.int32(2), STRUCTURES[rule], PARAMS)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), only, learnt(rule, edges(), given[1]))
    assert int(count) == 1


@pytest.mark.parametrize("rule", STRUCTURES)
def test_repeated_outcomes_are_predicted_in_the_end(rule):
    known = edges(variance=(1.0, 1.0, 1.0))
    for _ in range(300):
        known = learnt(rule, known, lesson(gain=0.6, loss=0.25))
    net = np.asarray(known.net).reshape(3, 2)
    np.testing.assert_allclose(net[0] + 0.5 * net[1], [0.6, 0.25], atol=1e-3)
