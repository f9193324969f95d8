"""Base-level activation against values that others have published."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.cognition.activation import base_level as levels
from habitus.cognition.activation import fan
from habitus.cognition.graph import EdgeList, MemoryGraph

# two memories of a gesture model after weeks of simulated time, from the trace of Lisp ACT-R (`:ol 15`), published as
# a test of jACT-R (amharrison/jactr, DefaultBaseLevelLearningTest): clock, creation, uses in all, the latest 15, B
TRACES = [
    (
        789951.153,
        720.557,
        19,
        "703211.94 527465.75 526783.4 352191.1 351877.84 351706.38 351595.1 351529.25 "
        "264139.03 263885.56 176681.58 176403.27 176135.89 175781.58 88255.03",
        -3.5563608,
    ),
    (
        878734.486,
        193.896,
        25,
        "791320.75 790070.8 703376.5 703198.5 702295.2 615071.07 527492.9 527275.25 "
        "527024.57 526952.9 351581.56 264605.0 264283.38 263723.03 176766.86",
        -3.212534,
    ),
]


@pytest.mark.parametrize(
    ("ages", "decay", "expected", "digits"),
    [
        # ACT-R, extra spacing-effect, its comparison with the default equation: uses at 4844, 252, 126, 0, now 5877
        ([1033, 5625, 5751, 5877], 0.5, -2.649625, 5e-7),
        # pyactup, test_decay
        ([10, 7], 0.0, 0.6931471805599453, 1e-12),
        ([10, 7], 0.8, -0.9961078949810501, 1e-12),
        # pyactup, test_blend: chunks learned at 1, 1005 and 1007, at 0, at 3 and at 1004, now 1009
        ([1008, 4, 2], 0.5, 0.2139847941319404, 1e-12),
        ([1009], 0.5, -3.4583575101768043, 1e-12),
        ([1006], 0.5, -3.4568686753298423, 1e-12),
        ([5], 0.5, -0.8047189562170503, 1e-12),
        # ACTRModels.jl, Memory Tests
        ([1], 0.1, 0.0, 1e-12),
        ([2, 10], 0.5, 0.023066, 1e-6),
        ([0.5, 10], 0.4, 0.540936, 1e-6),
        ([2], 0.5, -0.346573, 1e-6),
    ],
)
def test_exact_base_level_as_published(ages, decay, expected, digits):
    assert levels.actr_base_level(ages, decay=decay) == pytest.approx(expected, abs=digits)
    in_float32 = levels.actr_base_level(jnp.asarray(ages, jnp.float32), decay=decay)
    assert in_float32.dtype == jnp.float32
    assert float(in_float32) == pytest.approx(expected, abs=max(digits, 1e-6 * max(1, abs(expected))))


@pytest.mark.parametrize(("now", "created", "n_uses", "times", "expected"), TRACES)
def test_recent_uses_and_a_count_give_the_base_level_of_act_r(now, created, n_uses, times, expected):
    ages = now - np.array(times.split(), float)
    found = levels.recent_base_level(ages, n_uses, now - created)
    assert found == pytest.approx(expected, abs=5e-7)
    compiled = jax.jit(levels.recent_base_level)(jnp.asarray(ages, jnp.float32), n_uses, now - created)
    assert float(compiled) == pytest.approx(expected, abs=2e-6)


def test_one_recent_use_of_actrmodels():
    # ACTRModels.jl, baselevel!: created at 0, uses at 10 and 12 kept as the latest one, N = 2, now 14
    assert levels.recent_base_level([2.0], 2, 14.0) == pytest.approx(0.09076, abs=1e-5)
    assert levels.recent_base_level([2.0], 2, 14.0, decay=0.8) == pytest.approx(-0.220564, abs=1e-6)


@pytest.mark.parametrize(("ages", "expected"), [([1, 2], -0.461), ([1, 2, 4], -0.374), ([2], -0.881), ([3], -1.005)])
def test_soar_shows_the_logarithm_of_a_probability(ages, expected):
    # Soar, SMemFunctionalTests, base level "stable", "naive", "incremental"; the ages are inferred from the values
    level = levels.actr_base_level(ages)
    assert levels.soar_base_level(level) == pytest.approx(expected, abs=5e-4)
    s = np.sum(np.array(ages, float) ** -0.5)
    assert levels.soar_base_level(level) == pytest.approx(np.log(s / (1 + s)), abs=1e-12)
    assert levels.uptake(level) == pytest.approx(s / (1 + s), abs=1e-12)


def test_all_uses_kept_is_the_exact_base_level():
    ages = np.random.default_rng(0).uniform(0.1, 50, (20, 6))
    exact = levels.actr_base_level(ages, decay=0.3)
    np.testing.assert_allclose(
        levels.recent_base_level(ages, 6, ages.max(axis=1), decay=0.3), exact, rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(levels.recent_base_level(ages, 6, 60.0, decay=0.3), exact, rtol=1e-12, atol=1e-12)


def test_no_use_kept_is_the_optimised_base_level():
    # Petrov 2006: with k = 0 the approximation is ln(n / (1 - d)) - d ln L
    by_hand = np.log(7 / (1 - 0.5)) - 0.5 * np.log(40)
    assert levels.recent_base_level(np.ones((1,)), 7, 40.0, used=np.array([False])) == pytest.approx(by_hand, abs=1e-12)
    assert levels.optimised_base_level(7, 40.0) == pytest.approx(by_hand, abs=1e-12)


def test_uses_spread_evenly_are_what_the_approximations_assume():
    ages = np.arange(1, 2001) - 0.5
    exact = levels.actr_base_level(ages)
    assert abs(levels.optimised_base_level(2000, 2000.0) - exact) < 0.01
    assert abs(levels.recent_base_level(ages[:10], 2000, 2000.0) - exact) < 2e-3  # and the latest uses help


def test_a_memory_never_used_is_out_of_reach():
    never = np.zeros((3, 4), bool)
    assert (levels.actr_base_level(np.ones((3, 4)), used=never) == -np.inf).all()
    assert (levels.uptake(levels.actr_base_level(np.ones((3, 4)), used=never)) == 0).all()
    assert levels.optimised_base_level(0, 5.0) == -np.inf
    assert levels.soar_base_level(-np.inf) == -np.inf


def test_empty_places_change_nothing_not_even_the_gradient():
    def total(ages, used):
        return levels.actr_base_level(ages, used=used).sum()

    ages = jnp.array([1.0, 4.0])
    padded, used = jnp.array([1.0, 4.0, 0.0, 9.0]), jnp.array([True, True, False, False])
    assert float(total(padded, used)) == float(total(ages, None))
    np.testing.assert_array_equal(jax.grad(total)(padded, used)[:2], jax.grad(total)(ages, None))
    np.testing.assert_array_equal(jax.grad(total)(padded, used)[2:], 0)


def test_compiled_and_in_batches_as_one_by_one():
    rng = np.random.default_rng(1)
    ages = rng.uniform(0.5, 9, (5, 3, 4)).astype(np.float32)
    one_by_one = np.array([[levels.actr_base_level(jnp.asarray(a)) for a in row] for row in ages])
    np.testing.assert_allclose(jax.jit(levels.actr_base_level)(ages), one_by_one, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(levels.actr_base_level)(ages), one_by_one, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: levels.actr_base_level([1.0, 0.0]), r"`ages` must be above 0, got 0\.0"),
        (lambda: levels.actr_base_level([1.0, -2.0]), r"`ages` must be above 0, got -2\.0"),
        (lambda: levels.actr_base_level([np.nan]), r"`ages` must be above 0, got nan"),
        (lambda: levels.actr_base_level(3.0), "`ages` must have an axis for the uses"),
        (lambda: levels.actr_base_level([1.0], decay=-0.1), r"`decay` must be at least 0, got -0\.1"),
        (
            lambda: levels.actr_base_level([1.0], used=[True, False]),
            r"`used` must be true or false for each age, \(1,\)",
        ),
        (lambda: levels.actr_base_level([1.0], used=[1]), "`used` must be true or false"),
        (lambda: levels.optimised_base_level(2, 0.0), r"`lifetime` must be above 0, got 0\.0"),
        (lambda: levels.optimised_base_level(-1, 1.0), r"`n_uses` must be at least 0, got -1\.0"),
        (lambda: levels.optimised_base_level(2, 1.0, decay=1.0), r"`decay` must be in \[0, 1\), got 1\.0"),
        (lambda: levels.recent_base_level([5.0], 2, 4.0), r"`lifetime` must be at least the largest age, 5\.0, got 4"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_more_recent_ages_than_uses_are_refused():
    with pytest.raises(ValueError, match="`n_uses` must be at least the number of `ages`, 3, got 2"):
        levels.recent_base_level([1.0, 10.0, 100.0], 2, 100.0)


def test_the_fan_of_a_memory_graph_is_that_of_its_edges():
    edges = EdgeList(3, [0, 0], [1, 2], [1.0, 1.0])
    assert fan.actr_fan(MemoryGraph.from_edges(edges), [0]).tolist() == fan.actr_fan(edges, [0]).tolist()
    with pytest.raises(TypeError, match="`graph` must be an EdgeList or a MemoryGraph, got int"):
        fan.actr_fan(3, [0])
