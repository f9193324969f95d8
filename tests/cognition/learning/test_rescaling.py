"""A learner that finds out how large rewards are knows in the new unit what it knew in the old."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import ledger
from habitus.cognition.learning import rescaling

CONFIG = cognition.Config(variance=0.2, ledger_capacity=16, prototypes=3)


@pytest.fixture
def lived(structure, experiences, situation, begun, compiled):
    """(state after 30 steps, the last of which waits for its outcome, structure)."""
    shape = structure(CONFIG)
    params = cognition.params_of(CONFIG, cognition.Style())
    state = begun(shape, CONFIG, situation(shape, np.random.default_rng(3)))
    *life, last = experiences(shape, 30, seed=0)
    for experience in (*life, last._replace(decision_id=np.int32(29), reward=np.float32(0.6))):
        state = compiled.step(state, experience, np.array([2**32 - 1, 0], np.uint32), shape, params)
    return state, shape


def test_in_a_unit_twice_as_large_everything_known_of_rewards_is_half(lived):
    state, shape = lived
    after = rescaling.rescaled(state, jnp.zeros_like(state.edges.net), jnp.float32(0.5), shape)
    np.testing.assert_allclose(after.edges.net, 0.5 * state.edges.net, atol=1e-7)
    np.testing.assert_array_equal(after.edges.variance, state.edges.variance)
    for name, power in (("mean", 1), ("fast", 1), ("slow", 1), ("spread", 2)):
        before = float(getattr(state.rewards, name))
        assert abs(before) > 1e-4
        assert float(getattr(after.rewards, name)) == pytest.approx(before * 0.5**power, rel=1e-5)
    entries = [ledger.settle(s.ledger, jnp.array([29]), jnp.int32(-1)).entries for s in (state, after)]
    assert float(entries[0].reward[0]) == pytest.approx(0.6)
    assert float(entries[1].reward[0]) == pytest.approx(0.3)
    np.testing.assert_array_equal(entries[0].paths.activation, entries[1].paths.activation)


def test_what_was_never_tried_stays_as_promising_in_another_unit(lived):
    state, shape = lived
    prior = jnp.full_like(state.edges.net, 0.2)
    variance = jnp.repeat(state.edges.prior, shape.width)
    untried = dataclasses.replace(state, edges=dataclasses.replace(state.edges, net=prior, variance=variance))
    after = rescaling.rescaled(untried, prior, jnp.float32(0.25), shape)
    np.testing.assert_allclose(after.edges.net, prior, atol=1e-7)


def test_regimes_kept_are_in_the_new_unit_too(structure):
    shape = structure(CONFIG, regimes=3)
    edges = cognition.initial_edges(shape, np.full(shape.n_nodes, 0.1, np.float32))
    state = cognition.initial_state(edges, shape)
    kept = state.regimes._replace(net=jnp.full_like(state.regimes.net, 0.4), level=jnp.full(3, 0.6))
    told = dataclasses.replace(state, regimes=kept)
    after = rescaling.rescaled(told, jnp.zeros_like(edges.net), jnp.float32(0.5), shape).regimes
    np.testing.assert_allclose(after.net, 0.2, atol=1e-7)
    np.testing.assert_allclose(after.level, 0.3, atol=1e-7)
    np.testing.assert_array_equal(after.variance, kept.variance)
