"""The ledger: decisions that wait for their outcome, with the paths that led to them.

A ring of fixed capacity L (a power of two), addressed by the decision's id modulo L. An entry that is still waiting
when its slot is needed again is lost and counted; so is an outcome that finds no entry. With ids that grow by at most 1
a step nothing is lost as long as outcomes take fewer than L steps.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .config import NO_DECISION, Structure
from .edges import IN_BOUNDS, Paths

Array = jax.Array


class Entry(NamedTuple):
    """One waiting decision.

    Attributes:
        decision_id: [] i32, id under which the outcome will arrive, or NO_DECISION for no entry.
        version: [] i32, lessons that the memory had learnt when the decision was stored.
        action: [] i32, what was decided.
        reward: [] f32, what was paid for it so far.
        paths: the paths that led to it.
    """

    decision_id: Array
    version: Array
    action: Array
    reward: Array
    paths: Paths


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Ledger:
    """Waiting decisions.

    Attributes:
        entries: [L, 2P + 5] i32, one `Entry` a row, floats by their bits: one row is one read and one write.
        waits: [L] i32, 1 where the entry waits, 0 where the slot is free.
        overwritten: [] i32, decisions lost because their slot was needed.
        unmatched: [] i32, outcomes of decisions that were not waiting.
    """

    entries: Array
    waits: Array
    overwritten: Array
    unmatched: Array


def initial_ledger(structure: Structure) -> Ledger:
    """A ledger in which nothing waits."""
    zero = jnp.zeros((), jnp.int32)
    return Ledger(
        entries=jnp.zeros((structure.ledger_capacity, 2 * structure.n_paths + 5), jnp.int32),
        waits=jnp.zeros(structure.ledger_capacity, jnp.int32),
        overwritten=zero,
        unmatched=zero,
    )


def store(ledger: Ledger, entry: Entry) -> Ledger:
    """Let a decision wait; nothing happens where its id is NO_DECISION.

    To be called after the lessons of `settle` were learnt: the entry's version then depends on what `settle` read, and
    only a write that depends on every read is done in place by the compiler instead of in a copy of all entries.
    """
    capacity = ledger.waits.shape[0]
    is_given = entry.decision_id != NO_DECISION
    slot = entry.decision_id & (capacity - 1)
    target = jnp.where(is_given, slot, capacity)  # a write past the end is dropped
    was_waiting = ledger.waits.at[slot].get(mode=IN_BOUNDS)
    return Ledger(
        entries=ledger.entries.at[target].set(_row(entry), mode="drop"),
        waits=ledger.waits.at[target].set(1, mode="drop"),
        overwritten=ledger.overwritten + jnp.where(is_given, was_waiting, 0),
        unmatched=ledger.unmatched,
    )


def settle(ledger: Ledger, decision_ids: Array) -> tuple[Ledger, Entry, Array]:
    """Take out decisions whose outcome arrived.

    Args:
        ledger: waiting decisions.
        decision_ids: [M] i32, distinct, or NO_DECISION for none.

    Returns:
        The ledger without them; their entries, each array with a leading axis M; and [M] bool whether they were found,
        where not, the entry means nothing.
    """
    capacity = ledger.waits.shape[0]
    slots = decision_ids & (capacity - 1)
    entries = jax.vmap(_entry)(ledger.entries.at[slots].get(mode=IN_BOUNDS))
    arrives = decision_ids != NO_DECISION
    found = arrives & (entries.decision_id == decision_ids) & (ledger.waits.at[slots].get(mode=IN_BOUNDS) == 1)
    freed = dataclasses.replace(
        ledger,
        waits=ledger.waits.at[jnp.where(found, slots, capacity)].set(0, mode="drop"),
        unmatched=ledger.unmatched + jnp.sum(arrives & ~found, dtype=jnp.int32),
    )
    return freed, entries, found


def forget_waiting(ledger: Ledger) -> Ledger:
    """Free every slot: a new episode numbers its decisions anew."""
    return dataclasses.replace(ledger, waits=jnp.zeros_like(ledger.waits))


def _row(entry: Entry) -> Array:
    paths = entry.paths
    floats = jnp.concatenate([paths.activation, jnp.stack([paths.stake, entry.reward])])
    bits = jax.lax.bitcast_convert_type(floats, jnp.int32)
    return jnp.concatenate([jnp.stack([entry.decision_id, entry.version, entry.action]), paths.nodes, bits])


def _entry(row: Array) -> Entry:
    n_paths = (row.shape[0] - 5) // 2
    floats = jax.lax.bitcast_convert_type(row[n_paths + 3 :], jnp.float32)
    paths = Paths(row[3 : n_paths + 3], floats[:n_paths], floats[n_paths])
    return Entry(row[0], row[1], row[2], floats[n_paths + 1], paths)
