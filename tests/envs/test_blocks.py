"""Episodes run block after block are the episodes run all at once."""

import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import blocks


def together(first, shared, nested):
    own, common = nested
    notes = (jnp.stack([first[:, 0] + common, first[:, 1] * shared]), jnp.stack([own, own + 1.0]))
    return notes, {"sum": first.sum(axis=1), "own": own[:, None] * jnp.ones(3)}


@pytest.mark.parametrize(
    "block", [0, 2, 3, 5, 7]
)  # all at once, with and without a rest, one block, more than there are
def test_blocks_change_neither_values_nor_order(block):
    rng = np.random.default_rng(0)
    first, own = jnp.asarray(rng.integers(0, 9, (6, 2))), jnp.asarray(rng.normal(size=6))
    arguments, axes = (first, 3, [own, 10]), (0, None, [0, None])
    notes, carry = blocks.block_by_block(together, arguments, axes, block)
    wanted_notes, wanted = together(*arguments)
    for found, expected in zip(notes, wanted_notes, strict=True):
        np.testing.assert_array_equal(found, expected)
    for name, expected in wanted.items():
        np.testing.assert_array_equal(carry[name], expected)


def test_no_more_episodes_than_a_block_are_together():
    sizes = []

    def noted(first):
        sizes.append(len(first))
        return (first[None],), first

    blocks.block_by_block(noted, (jnp.arange(7),), (0,), 3)
    assert sizes == [3, 1]  # one block is traced for all, then the rest
