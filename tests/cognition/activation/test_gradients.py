"""Derivatives of spreading with respect to everything that it is given, against finite differences in f64."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.cognition.activation import SpreadRule, dense_spread, ell_spread, recall, spread_reference
from habitus.cognition.activation.pull.forms import columns_of, dense_form, ell_form, ell_shape
from habitus.cognition.graph import EdgeList

N = 16
STEP = 1e-6
HARD = SpreadRule(retention=0.5, threshold=0.1, rounds=3)
SOFT = SpreadRule(retention=0.5, threshold=0.3, softness=0.05, rounds=4, leak=0.1, restart=0.2, sources="held")
CAPPED = SpreadRule(retention=0.9, threshold=0.05, rounds=3, cap=0.6)
RULES = {"hard": HARD, "soft": SOFT, "capped": CAPPED}


def graph() -> EdgeList:
    rng = np.random.default_rng(1)
    keys = rng.choice(N * N, 70, replace=False)
    return EdgeList(N, keys // N, keys % N, rng.uniform(-0.2, 0.7, 70), base=rng.uniform(0.3, 1, N))


def spreading(kernel: str, rule: SpreadRule) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A weighed sum of what is active at the end, and what it is a function of, in f64: weights, sources, base, rho."""
    edges, rng = graph(), np.random.default_rng(2)
    share = jnp.asarray(rng.uniform(0.5, 1.5, N))
    sources = np.zeros(N)
    sources[[0, 3, 7]] = (1.0, 0.6, 0.8)
    columns = columns_of(edges, rule, N)
    given = (jnp.asarray(sources), jnp.asarray(columns[0], float), jnp.asarray(columns[1], float))
    if kernel == "dense":
        weights = jnp.asarray(dense_form(edges, rule, N, counts=False).weights, float)
        return lambda w, s, b, r: share @ dense_spread(w, s, rule, base=b, retention=r), (weights, *given)
    source, weights, owner = ell_form(edges, rule, N, ell_shape([edges], N)._replace(n_slots=4, n_more=16))
    return (
        lambda w, s, b, r: share @ ell_spread(source, w, s, rule, owner=owner, base=b, retention=r),
        (jnp.asarray(weights, float), *given),
    )


@pytest.mark.parametrize("kernel", ["dense", "ell"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_gradient_is_that_of_finite_differences(kernel, rule):
    with jax.enable_x64(True):
        function, given = spreading(kernel, rule)
        function = jax.jit(function)
        gradients = jax.jit(jax.grad(function, argnums=(0, 1, 2, 3)))(*given)
        here, rng, compared = float(function(*given)), np.random.default_rng(3), []
        for number, gradient in enumerate(gradients):
            drawn = rng.integers(0, gradient.shape, (12, gradient.ndim)).tolist()
            for place in map(tuple, [*drawn, *np.argwhere(gradient).tolist()[:20]]):
                below, above = (
                    float(function(*given[:number], given[number].at[place].add(step), *given[number + 1 :]))
                    for step in (-STEP, STEP)
                )
                if abs(above - 2 * here + below) > 1e-3 * STEP:
                    continue  # a kink: where nothing arrives, activation can only rise
                assert gradient[place] == pytest.approx((above - below) / (2 * STEP), abs=1e-7), (number, place)
                compared.append(number)
    assert np.bincount(compared, minlength=4).min() >= 6


@pytest.mark.parametrize("kernel", ["dense", "ell"])
def test_the_gradient_is_not_silently_zero(kernel):
    with jax.enable_x64(True):
        function, given = spreading(kernel, dataclasses.replace(SOFT, softness=0.0))
        hard = jax.grad(function)(*given)
        function, given = spreading(kernel, SOFT)
        soft = jax.grad(function)(*given)
    used = np.asarray(given[0]) != 0
    assert np.count_nonzero(np.asarray(hard)[used]) >= 10
    # below the threshold a soft one still has a slope
    assert np.count_nonzero(np.asarray(soft)[used]) > np.count_nonzero(np.asarray(hard)[used])


@pytest.mark.parametrize("kernel", ["dense", "ell"])
def test_what_is_below_a_hard_threshold_or_at_the_cap_has_no_gradient(kernel):
    rule = SpreadRule(retention=0.0, threshold=0.5, rounds=1, cap=1.0)
    weights = jnp.zeros((8, 8)).at[0, 1].set(0.4).at[2, 3].set(2.0).at[4, 5].set(0.3)
    sources = jnp.zeros(8).at[jnp.array([0, 2, 4])].set(jnp.array([1.0, 1.0, 0.4]))
    if kernel == "dense":
        gradient = jax.grad(lambda w: dense_spread(w, sources, rule).sum())(weights)
    else:
        source = jnp.tile(jnp.arange(8, dtype=jnp.int32)[:, None], (1, 8))
        gradient = jax.grad(lambda w: ell_spread(source, w, sources, rule).sum())(weights)
    assert gradient[0, 1] == 1.0
    assert gradient[2, 3] == 0.0  # at the cap
    assert gradient[4, 5] == 0.0  # node 4 does not transmit


def test_values_are_those_of_the_reference_and_batches_those_of_a_loop():
    edges, rule = graph(), recall(conjunctions=False)
    weights = dense_form(edges, rule, N, counts=False).weights
    batch = jnp.asarray(np.random.default_rng(0).uniform(0, 1, (3, N)), jnp.float32)

    def one(sources):
        return dense_spread(weights, sources, rule, base=jnp.asarray(edges.base, jnp.float32))

    found = jax.vmap(one)(batch)
    for sources, row in zip(batch, found, strict=True):
        wanted = spread_reference(edges, dict(enumerate(sources.tolist())), rule).activation[-1]
        np.testing.assert_allclose(row, wanted, atol=1e-5)
        np.testing.assert_allclose(jax.jit(one)(sources), row, atol=1e-6)


def test_later_sources_and_conjunctions_are_those_of_the_reference():
    edges = EdgeList(
        4, np.array([0, 1, 2]), np.array([2, 2, 3]), np.array([0.5, 0.5, 1.0]), need=np.array([0, 0, 2, 0])
    )
    rule = SpreadRule(conjunctions=True, threshold=0.1, rounds=3)
    weights, sources = dense_form(edges, rule, 4, counts=True).weights, np.zeros((4, 4), np.float32)
    sources[0, 0], sources[1, 1] = 1.0, 0.8
    wanted = spread_reference(edges, [(0, 1.0, 0), (1, 0.8, 1)], rule).activation[-1]
    found = dense_spread(jnp.asarray(weights), jnp.asarray(sources), rule, need=jnp.asarray(edges.need))
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert wanted[2] > 0.5


@pytest.mark.skipif(jax.config.jax_enable_x64, reason="a list of numbers is 64 bits wide there")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kernel", ["dense", "ell"])
def test_numpy_arrays_and_lists_are_taken_as_jax_arrays_are(kernel, compiled):
    edges, found = graph(), []
    for given in (jnp.asarray, np.asarray, lambda values: np.asarray(values).tolist()):
        more = {"base": given(edges.base.astype(np.float32)), "need": given(np.ones(N, np.int32))}
        sources = given(np.eye(N, dtype=np.float32)[0])
        if kernel == "dense":
            form = dense_form(edges, HARD, N, counts=True)
            call = functools.partial(
                dense_spread, given(form.weights), sources, HARD, exciting=given(form.exciting), **more
            )
        else:
            source, weights, owner = ell_form(edges, HARD, N, ell_shape([edges], N))
            owner = np.asarray(owner, np.int32)
            call = functools.partial(
                ell_spread, given(source), given(weights), sources, HARD, owner=given(owner), **more
            )
        found.append(jax.jit(call)() if compiled else call())
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.parametrize("kernel", ["dense", "ell"])
def test_an_edge_list_becomes_arguments_by_its_form(kernel):
    edges = dataclasses.replace(graph(), need=np.arange(N) % 2 * 2)
    rule = SpreadRule(0.5, threshold=0.1, conjunctions=True, normalisation="sqrt", decay={"default": 0.9, "causes": 0})
    sources = np.zeros(N)
    sources[[0, 3, 7]] = (1.0, 0.6, 0.8)
    more = {"base": rule.bases(edges), "retention": rule.retentions(edges), "need": edges.need}
    if kernel == "dense":
        weights, exciting = dense_form(edges, rule)
        found = dense_spread(weights, sources, rule, exciting=exciting, **more)
    else:
        source, weights, owner = ell_form(edges, rule)
        found = ell_spread(source, weights, sources, rule, owner=owner, **more)
    wanted = spread_reference(edges, {0: 1.0, 3: 0.6, 7: 0.8}, rule).activation[-1]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    np.testing.assert_array_equal(np.asarray(found) > 0, wanted > 0)


def test_a_counted_edge_that_lets_nothing_through_has_a_gradient():
    source, weights = jnp.array([[0, 0, 0]], jnp.int32), jnp.array([[0.0, 0.5, -0.0]])
    rule, need = SpreadRule(0.0, conjunctions=True, rounds=1), jnp.array([0, 1, 1])
    slope = jax.grad(lambda w: ell_spread(source, w, jnp.eye(3)[0], rule, need=need)[2])(weights)
    assert slope.tolist() == [[0.0, 0.0, 0.5]]  # half, since 0 is where nothing arrives: a kink


def test_wrong_shapes_are_named():
    square = jnp.zeros((4, 4))
    with pytest.raises(ValueError, match=r"`weights` must have shape \[S, S\], got \(4, 3\)"):
        dense_spread(square[:, :3], jnp.zeros(4), HARD)
    with pytest.raises(ValueError, match=r"`sources` must have shape \(4,\) or \(4, 4\)"):
        dense_spread(square, jnp.zeros(5), HARD)
    with pytest.raises(ValueError, match=r"`base` must be a number or have shape \(4,\), got \(2,\)"):
        dense_spread(square, jnp.zeros(4), HARD, base=jnp.zeros(2))
    with pytest.raises(ValueError, match="must have one shape"):
        ell_spread(jnp.zeros((2, 4), jnp.int32), jnp.zeros((3, 4)), jnp.zeros(4), HARD)
    with pytest.raises(ValueError, match="must not have `dangling`"):
        dense_spread(square, jnp.zeros(4), SpreadRule(restart=0.1, dangling=True))
    with pytest.raises(ValueError, match=r"`weights` must have shape \[S, S\], got \(\)"):
        dense_spread(1.0, np.zeros(4), HARD)
    with pytest.raises(ValueError, match=r"`exciting` must have the shape of `weights`, \(4, 4\), got \(3, 3\)"):
        dense_spread(np.zeros((4, 4)), np.zeros(4), HARD, need=np.ones(4), exciting=np.ones((3, 3)))
    with pytest.raises(ValueError, match=r"`owner` must have shape \[Q\] with Q <= P = 4, got \(1, 2\)"):
        ell_spread(np.zeros((2, 4), int), np.zeros((2, 4)), np.zeros(4), HARD, owner=np.zeros((1, 2), int))
    with pytest.raises(TypeError, match="`source` must be whole numbers, got float"):
        ell_spread(np.zeros((2, 4)), np.zeros((2, 4)), np.zeros(4), HARD)
