import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import draws

N = 2**16
ALL = jnp.arange(N, dtype=jnp.uint32)  # every half there is


@pytest.mark.parametrize("probability", [0.0, 0.05, 0.35, 0.9, 1.0])
def test_a_threshold_is_met_by_its_share_of_all_halves(probability):
    assert float(draws.happens(ALL, draws.threshold(probability)).mean()) == pytest.approx(probability, abs=1 / N)


@pytest.mark.parametrize("n", [2, 5, 81, 240])
def test_below_is_uniform_over_all_halves(n):
    counts = np.bincount(np.asarray(draws.below(ALL, n)), minlength=n)
    assert counts.size == n
    assert counts.max() - counts.min() <= 1


def test_normal_has_the_moments_of_a_standard_normal():
    values = np.asarray(draws.normal(ALL)) / draws.MILLI
    assert values.mean() == pytest.approx(0, abs=1e-3)
    assert values.std() == pytest.approx(1, abs=1e-3)


def test_chances_follow_the_logistic_function():
    log_odds = np.arange(-8000, 8000, 37)
    chance = np.asarray(draws.log_odds_chance(jnp.asarray(log_odds))) / draws.CHANCE_ONE
    np.testing.assert_allclose(chance, 1 / (1 + np.exp(-log_odds / 1000)), atol=6e-4)  # half a table step, at 1/4 each


def test_chances_stay_inside_the_table_for_any_log_odds():
    low, high = np.asarray(draws.log_odds_chance(jnp.array([-(2**30), 2**30])))
    assert 0 < low < 20
    assert draws.CHANCE_ONE - 20 < high < draws.CHANCE_ONE


def test_what_happens_by_chance_agrees_with_the_chance_on_all_halves():
    chance = 12345
    assert float(draws.happens_by_chance(ALL, jnp.int32(chance)).mean()) == chance / draws.CHANCE_ONE


def test_halves_are_uniform_words_of_sixteen_bits():
    halves = np.asarray(draws.halves(jax.random.key(0), (1000, 24)))
    assert halves.shape == (1000, 24)
    assert halves.max() < N
    # mean of 24,000 uniform values: standard error 65536 / sqrt(12 x 24000) = 122; 4.5 of it is passed once in 150,000
    assert abs(halves.mean() - (N - 1) / 2) < 4.5 * 122


@pytest.mark.parametrize("n", [0, 2, 18])
def test_halves_of_many_keys_are_those_of_each_key(n):
    keys = jax.random.split(jax.random.key(3), 50)

    def of_one(key):
        return draws.halves(key, (n,))

    each = np.stack([of_one(key) for key in keys])
    np.testing.assert_array_equal(jax.jit(jax.vmap(of_one))(keys), each)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(of_one))(keys.reshape(5, 10)).reshape(50, n), each)


def test_halves_of_many_keys_of_another_generator_are_those_of_each_key():
    keys = jax.random.split(jax.random.key(3, impl="unsafe_rbg"), 4)
    together = jax.vmap(lambda key: draws.halves(key, (6,)))(keys)
    words = jax.vmap(lambda key: jax.random.bits(key, (3,), jnp.uint32))(keys)
    np.testing.assert_array_equal(together, np.concatenate([words >> 16, words & 0xFFFF], axis=-1))
