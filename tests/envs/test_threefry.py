"""Blocks that are written out are those of `jax.random`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import draws, episode, threefry

SIZES = [0, 1, 2, 3, 4, 5, 12, threefry.MOST]


def keys(n=40):
    """[n] keys whose words use all bits."""
    return jax.random.split(jax.random.key(11, impl=threefry.GENERATOR), n)


def of_words(n):
    return lambda key: jnp.stack(threefry.words(key, n)) if n else jnp.zeros(0, jnp.uint32)


def of_keys(n):
    return lambda key: jnp.stack([jax.random.key_data(part) for part in threefry.split(key, n)])


def assert_equal(found, expected):
    assert found.dtype == expected.dtype == jnp.uint32
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n", SIZES)
def test_words_are_those_of_jax(n):
    expected = jax.vmap(lambda key: jax.random.bits(key, (n,), jnp.uint32))(keys())
    assert_equal(jnp.stack([of_words(n)(key) for key in keys()[:3]]), expected[:3])
    assert_equal(jax.jit(of_words(n))(keys()[0]), expected[0])
    assert_equal(jax.vmap(of_words(n))(keys()), expected)
    assert_equal(jax.jit(jax.vmap(of_words(n)))(keys()), expected)
    assert_equal(jax.jit(jax.vmap(jax.vmap(of_words(n))))(keys().reshape(5, 8)).reshape(40, n), expected)


@pytest.mark.parametrize("n", SIZES[1:])
def test_keys_are_those_of_jax(n):
    expected = jax.vmap(lambda key: jax.random.key_data(jax.random.split(key, n)))(keys())
    assert_equal(jnp.stack([of_keys(n)(key) for key in keys()[:3]]), expected[:3])
    assert_equal(jax.jit(jax.vmap(of_keys(n)))(keys()), expected)
    for one, other in zip(threefry.split(keys()[0], n), jax.random.split(keys()[0], n), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape


def test_words_are_those_of_jax_with_wide_numbers():
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(of_words(7)))(keys())
        assert_equal(found, jax.vmap(lambda key: jax.random.bits(key, (7,), jnp.uint32))(keys()))
        assert_equal(
            jax.vmap(of_keys(3))(keys()), jax.vmap(lambda key: jax.random.key_data(jax.random.split(key, 3)))(keys())
        )


def test_one_key_beside_many_gives_each_the_same():
    """A key that is not batched."""
    key = keys()[0]
    found = jax.vmap(lambda number: of_words(6)(key) + number, in_axes=0)(jnp.arange(3, dtype=jnp.uint32))
    np.testing.assert_array_equal(found, np.asarray(of_words(6)(key))[None] + np.arange(3, dtype=np.uint32)[:, None])


@pytest.mark.parametrize("case", ["other layout", "other generator", "old key", "many"])
def test_what_is_not_served_is_drawn_by_jax(case):
    key = jax.random.key(3, impl="unsafe_rbg" if case == "other generator" else threefry.GENERATOR)
    key = jax.random.key_data(key) if case == "old key" else key
    n = 2 * threefry.MOST + 2 if case == "many" else 4
    with jax.threefry_partitionable(case != "other layout"):
        words = jax.random.bits(key, (n // 2,), jnp.uint32)
        expected = np.concatenate([words >> 16, words & 0xFFFF])
        np.testing.assert_array_equal(draws.halves(key, (n,)), expected)
        np.testing.assert_array_equal(jnp.stack(draws.each_half(key, n)), expected)


@pytest.mark.parametrize("is_partitionable", [False, True])
def test_an_episode_splits_its_keys_as_jax_does(is_partitionable):
    with jax.threefry_partitionable(is_partitionable):
        found = jnp.stack(episode.keys(keys()[0]))
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(jax.random.split(keys()[0], 3)))


@pytest.mark.parametrize("use", [lambda key: threefry.words(key, 5), lambda key: threefry.split(key, 2)])
def test_jax_sees_that_a_key_is_used_twice(use):
    with jax.debug_key_reuse(True):
        jax.jit(use)(jax.random.key(0))
        with pytest.raises(jax.errors.KeyReuseError):
            jax.jit(lambda key: (use(key), use(key)))(jax.random.key(0))
