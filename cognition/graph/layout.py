"""The one truth of a memory graph: flat arrays of fixed capacity, which compiled code changes in place.

Edges stand with the node that they leave. The first K edges of node i are row i of `rows`, further ones fill
consecutive rows of `pool` from `spill[i]` on: edge s of a node is in column s of its row, or, from K on, in column
(s - K) mod K of pool row spill[i] + (s - K) div K. There are no holes; `out_degree` says how many there are. A node's
row holds its strongest edges, as far as they were known when they were written.

A row is K packed keys, then the K strengths they belong to, f32 bits in the same int32 array: one read and one write an
edge, which is what lets the compiler work in place. A key is target + relation * 2^27.

In the shapes below N is the capacity for nodes, Q for pool rows. Row N is nobody's: always empty, a safe target.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array

DEFAULT_ROW = 16
"""K: edges in the row of a node, 128 bytes of them."""
TARGET_BITS = 27
TARGET_MASK = (1 << TARGET_BITS) - 1
EMPTY = 2**31 - 1
"""Key of an empty slot: relation 15 of a target that no graph has."""
NOWHERE = 0
"""`spill` of a node without rows in the pool; pool row 0 is nobody's."""


class GraphArrays(NamedTuple):
    """A memory graph as a pytree.

    Attributes:
        rows: [N + 1, 2K] i32, packed keys, then bits of strengths; EMPTY and 0 in empty slots.
        pool: [Q, 2K] i32, rows of nodes with more than K edges; row 0 is nobody's.
        spill: [N + 1] i32, first pool row of a node, NOWHERE without one. A node that needs n rows there owns the next
            power of two.
        out_degree: [N + 1] i32, edges that leave a node.
        out_strength: [N + 1] f32, sum of their |strength|.
        base: [N + 1] f32 in [0, 1], base level; 0 where there is no node.
        need: [N + 1] i32 >= 0, see `EdgeList.need`.
        n_nodes: [] i32, node numbers given out so far.
        n_pool: [] i32, pool rows given out so far, row 0 included.
    """

    rows: Array
    pool: Array
    spill: Array
    out_degree: Array
    out_strength: Array
    base: Array
    need: Array
    n_nodes: Array
    n_pool: Array

    @property
    def capacity(self) -> int:
        """N."""
        return self.rows.shape[0] - 1

    @property
    def width(self) -> int:
        """K."""
        return self.rows.shape[1] // 2


def keys_of(rows: Array) -> Array:
    """[..., K] i32 packed keys of [..., 2K] rows."""
    return rows[..., : rows.shape[-1] // 2]


def strengths_of(rows: Array) -> Array:
    """[..., K] f32 strengths of [..., 2K] rows."""
    return jax.lax.bitcast_convert_type(rows[..., rows.shape[-1] // 2 :], jnp.float32)


def packed_rows(keys: Array, strengths: Array) -> Array:
    """[..., 2K] i32 of [..., K] packed keys and [..., K] f32 strengths."""
    return jnp.concatenate([keys, jax.lax.bitcast_convert_type(strengths, jnp.int32)], axis=-1)


def targets_of(keys: Array) -> Array:
    """Node numbers of packed keys; beyond every graph for EMPTY."""
    return keys & TARGET_MASK


def relations_of(keys: Array) -> Array:
    """Numbers of the relations of packed keys."""
    return keys >> TARGET_BITS


def packed_keys(targets: Array, relations: Array) -> Array:
    """Packed keys, i32, of node numbers and numbers of relations."""
    return targets | (relations << TARGET_BITS)
