import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs.credit_review import permutation


def order(size, seed, epoch=0):
    key = permutation.order_key(jax.random.key(seed))
    row = jax.jit(jax.vmap(lambda position: permutation.permuted(position, size, key, jnp.int32(epoch))))
    return np.asarray(row(jnp.arange(size, dtype=jnp.int32)))


@pytest.mark.parametrize("size", [1, 2, 5, 16, 4454])
def test_every_row_comes_exactly_once(size):
    np.testing.assert_array_equal(np.sort(order(size, seed=size)), np.arange(size))


def test_seeds_and_epochs_give_different_orders():
    first = order(97, 0)
    assert (first != order(97, 1)).sum() > 80
    assert (first != order(97, 0, epoch=1)).sum() > 80


def test_rows_are_uniform_over_positions():
    # 4,000 seeds, 12 rows at position 3: chi-square with 11 degrees of freedom exceeds 44.4 with probability 6e-6.
    keys = jax.vmap(permutation.order_key)(jax.random.split(jax.random.key(0), 4000))
    rows = jax.jit(jax.vmap(lambda key: permutation.permuted(jnp.int32(3), 12, key, jnp.int32(0))))(keys)
    counts = np.bincount(np.asarray(rows), minlength=12)
    assert ((counts - 4000 / 12) ** 2 / (4000 / 12)).sum() < 44.4


def test_neighbours_in_the_order_are_not_neighbours_in_the_table():
    # The chance that a random permutation keeps a step of +1 is 1/n at each place: about one in 4,454.
    rows = order(4454, 5)
    assert (np.diff(rows) == 1).sum() < 12  # Poisson(1) exceeds 11 with probability 8e-10


@pytest.mark.parametrize("size", [0, -1, permutation.MAX_SIZE + 1])
def test_a_size_out_of_range_is_refused(size):
    with pytest.raises(ValueError, match=r"`size` must lie in \[1, "):
        permutation.permuted(jnp.int32(0), size, jnp.zeros(permutation.KEY_SHAPE, jnp.uint32), jnp.int32(0))


@pytest.mark.parametrize("size", [1, 2, 7, 1000, 4454, permutation.MAX_SIZE])
def test_integers_permute_as_arrays_do(size):
    rng = np.random.default_rng(size)
    n = 60
    positions, epochs = rng.integers(size, size=n), rng.integers(2**20, size=n)
    keys = rng.integers(2**32, size=(n, *permutation.KEY_SHAPE), dtype=np.uint32)
    row = jax.jit(jax.vmap(lambda position, key, epoch: permutation.permuted(position, size, key, epoch)))
    expected = np.asarray(row(positions.astype(np.int32), keys, epochs.astype(np.int32)))
    signed = keys.view(np.int32).tolist()  # the same bits
    found = [
        permutation.permuted_integer(int(position), size, key, int(epoch))
        for position, key, epoch in zip(positions, signed, epochs, strict=True)
    ]
    assert found == expected.tolist()
    assert size < 1000 or len(set(found)) > 50
