"""A rest brings strengths and variances back within their bounds, and tells a fall of rewards to the edges."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition.learning import resting

CONFIG = cognition.Config(variance=0.2, ledger_capacity=16, prototypes=3)


def edges_of(state, net=None, variance=None):
    """The learner with other strengths and variances, everywhere the same."""
    edges = state.edges
    net = edges.net if net is None else jnp.full_like(edges.net, net)
    variance = edges.variance if variance is None else jnp.full_like(edges.variance, variance)
    return dataclasses.replace(state, edges=dataclasses.replace(edges, net=net, variance=variance))


def refreshed(state, shape, **settings):
    params = cognition.params_of(cognition.Config(**settings), cognition.Style())
    return resting.refreshed(state.edges, params, shape).variance


def test_strengths_that_traces_pushed_too_far_come_back(kept_life):
    state, shape = kept_life
    for signed, least in ((True, -1.0), (False, 0.0)):
        one = dataclasses.replace(shape, signed=signed)
        for net, expected in ((1.7, 1.0), (0.4, 0.4), (-1.2, least)):
            found = resting.bounded(edges_of(state, net=net).edges, one).net
            np.testing.assert_allclose(found, expected, atol=1e-7)


def test_variances_recover_by_the_step_and_not_beyond_the_initial_one(kept_life):
    state, shape = kept_life  # initial variance .2 everywhere
    low = edges_of(state, variance=0.01)
    np.testing.assert_allclose(refreshed(low, shape, recovery=0.0), 0.01, atol=1e-7)
    np.testing.assert_allclose(refreshed(low, shape, recovery=1e-4), 0.01 + 100 * 1e-4, atol=1e-7)
    np.testing.assert_allclose(refreshed(low, shape, recovery=1.0), 0.2, atol=1e-7)
    # what is above its initial variance is not touched
    np.testing.assert_allclose(refreshed(edges_of(state, variance=0.5), shape, recovery=1.0), 0.5, atol=1e-7)


def test_no_variance_stays_below_its_floor(kept_life):
    state, shape = kept_life
    for floor, expected in ((0.0, 0.001), (0.1, 0.02), (1.0, 0.2)):
        low = edges_of(state, variance=0.001)
        np.testing.assert_allclose(refreshed(low, shape, variance_floor=floor), expected, atol=1e-7)


@pytest.fixture
def rested(kept_life, compiled):
    """The learner after a rest in which rewards had fallen by so much."""

    def rest(fall, key=0):
        (state, shape), params = kept_life, cognition.params_of(CONFIG, cognition.Style())
        paid = state.rewards._replace(
            slow=jnp.float32(0.5), fast=jnp.float32(0.5 - fall), spread=jnp.float32(0.2), since=jnp.int32(9_000)
        )
        tired = dataclasses.replace(edges_of(state, variance=0.01), rewards=paid)
        return tired, compiled.rest(tired, jnp.int32(300), jax.random.key(key), shape, params)

    return rest


def test_a_fall_of_rewards_reopens_every_variance_and_exploration(rested):
    # the limit is 3.5 sqrt(.2 / 500) = .07
    before, calm = rested(0.06)
    np.testing.assert_array_equal(calm.edges.variance, before.edges.variance)
    assert int(calm.rewards.since) == 9_000
    _, alarmed = rested(0.08)
    np.testing.assert_allclose(alarmed.edges.variance, 0.2, atol=1e-7)
    np.testing.assert_allclose(alarmed.edges.net, np.clip(before.edges.net, -1, 1))  # what was known is still believed
    assert int(alarmed.rewards.since) == 0
    # bad times being over is a change as well
    np.testing.assert_array_equal(rested(-0.06)[1].edges.variance, before.edges.variance)
    np.testing.assert_allclose(rested(-0.08)[1].edges.variance, 0.2, atol=1e-7)


def test_a_rest_changes_neither_what_waits_nor_what_is_at_hand(rested):
    before, after = rested(0.0)
    for name in ("ledger", "trace", "situation", "paths", "action", "greedy", "step", "version"):
        jax.tree.map(np.testing.assert_array_equal, getattr(after, name), getattr(before, name))


def test_the_same_key_rests_in_the_same_way(rested):
    one, same = rested(0.0, key=1)[1], rested(0.0, key=1)[1]
    jax.tree.map(np.testing.assert_array_equal, one, same)


def test_keys_of_rests_differ_by_seed_and_by_step():
    keys = [resting.key_of(jnp.uint32(seed), jnp.int32(n)) for seed in (0, 1) for n in (100, 200)]
    assert len({jax.random.key_data(key).tobytes() for key in keys}) == 4
