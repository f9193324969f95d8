"""What a frontier knows of the nodes that it has reached, and how a node number becomes a place among them.

Reached nodes are numbered as they come; everything about them stands in short arrays by that number, their place. The
only array as long as the graph says which place a node has. It is never cleared: each query counts on from where the
last one ended, so that what an earlier query wrote is smaller than `Scratch.start` and means nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array

IN_BOUNDS = "promise_in_bounds"
LARGEST = 2**31 - 1


class Scratch(NamedTuple):
    """What a frontier needs beside the graph; donate it and pass on what comes back.

    Attributes:
        place: [N + 1] i32, start + place of a node that the running query has reached, smaller for any other.
        start: [] i32, where the next query counts from.
    """

    place: Array
    start: Array


def new_scratch(capacity: int) -> Scratch:
    """Scratch for graphs with room for `capacity` nodes."""
    return Scratch(jnp.full(capacity + 1, -1, jnp.int32), jnp.zeros((), jnp.int32))


def opened(scratch: Scratch, n_places: int) -> Scratch:
    """The scratch with room to count `n_places` on; cleared where the numbers have run out."""
    full = scratch.start > LARGEST - n_places

    # a loop of no or one turn works in place, a conditional would copy
    place = jax.lax.fori_loop(
        jnp.int32(0), full.astype(jnp.int32), lambda _, place: jnp.full_like(place, -1), scratch.place
    )
    return Scratch(place, jnp.where(full, 0, scratch.start))


class Reached(NamedTuple):
    """Where entries ended up.

    Attributes:
        scratch: as it is now.
        place: [E] i32, place of each entry's node; of an entry that is none its own, which is nobody's.
        is_first: [E] bool, entries that hold a place of their own: the node had none before.
    """

    scratch: Scratch
    place: Array
    is_first: Array


def reach(scratch: Scratch, offset: int, nodes: Array, is_entry: Array) -> Reached:
    """Give places to nodes; entry e gets offset + e where its node has none and no other entry won it.

    Args:
        scratch: of this query.
        offset: places given so far.
        nodes: [E] i32 nodes, those that are no entries included.
        is_entry: [E] bool.
    """
    own = scratch.start + offset + jnp.arange(nodes.shape[0], dtype=jnp.int32)
    nobody = scratch.place.shape[0] - 1
    nodes = jnp.where(is_entry, nodes, nobody)
    is_new = is_entry & (_taken(scratch.place, nodes) < scratch.start)
    place = scratch.place.at[jnp.where(is_new, nodes, nobody)].set(own, mode=IN_BOUNDS)
    found = jnp.where(is_entry, _taken(place, nodes), own)
    # `own` is written by its entry only; `is_new` must not be read again, or the array before the write is copied
    is_first = is_entry & (found == own)
    return Reached(Scratch(place, scratch.start), found - scratch.start, is_first)


def _taken(array: Array, index: Array) -> Array:
    return array.at[index].get(mode=IN_BOUNDS)


class Here(NamedTuple):
    """Reached nodes by place. P places; those that nobody holds have node N, base 0 and activation 0.

    Attributes:
        node: [P] i32.
        activation: [P] f32, A.
        raw: [P] f32, before the cap.
        held: [P] f32, what was injected so far; [] where the rule does not ask.
        base: [P] f32, C; [] where the rule does not ask.
        need: [P] i32; [] where the rule does not ask.
        retention: [P] f32, rho; [] where all nodes have the same.
    """

    node: Array
    activation: Array
    raw: Array
    held: Array
    base: Array
    need: Array
    retention: Array


class Counts(NamedTuple):
    """What was left out so far; [] i32 each. See `Dropped`."""

    active: Any
    touched: Any
    edges: Any


class Record(NamedTuple):
    """What flows are worked out from. R rounds, P places.

    Attributes:
        sent: [R, P] f32, what each node transmitted in each round.
        ready: [R, P] bool, which took up what arrived.
        activation: [R + 1, P] f32, A after each round.
    """

    sent: Array
    ready: Array
    activation: Array
