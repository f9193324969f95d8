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

from .config import NO_DECISION
from .edges import IN_BOUNDS, Paths
from .structure import Structure
from .words import to_floats, to_words

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
        entries: [L, 2P + 5] i32, one `Entry` a row, floats by their bits; decision id NO_DECISION where a slot is free.
        overwritten: [] i32, decisions lost because their slot was needed.
        unmatched: [] i32, outcomes of decisions that were not waiting.
    """

    entries: Array
    overwritten: Array
    unmatched: Array


class Settled(NamedTuple):
    """Decisions whose outcome arrived, looked up but not yet taken out; M outcomes.

    Attributes:
        entries: [M, ...] what was stored; means nothing where it was not found.
        found: [M] bool, whether the decision was waiting.
        unmatched: [M] bool, whether an outcome arrived for a decision that was not.
        slots: [M] i32, where they waited.
        loses: [] bool, whether the slot that the new decision needs is taken by one that goes on waiting.
    """

    entries: Entry
    found: Array
    unmatched: Array
    slots: Array
    loses: Array


def initial_ledger(structure: Structure) -> Ledger:
    """A ledger in which nothing waits."""
    zero = jnp.zeros((), jnp.int32)
    entries = jnp.zeros((structure.ledger_capacity, 2 * structure.n_paths + 5), jnp.int32)
    return Ledger(entries.at[:, 0].set(NO_DECISION), zero, zero)


def settle(ledger: Ledger, decision_ids: Array, new_id: Array) -> Settled:
    """Look up decisions whose outcome arrived; `update` takes them out.

    Args:
        ledger: waiting decisions.
        decision_ids: [M] i32, distinct, or NO_DECISION for none.
        new_id: [] i32, decision that is about to wait, or NO_DECISION.
    """
    wanted = jnp.concatenate([decision_ids, new_id[None]])
    slots = wanted & (ledger.entries.shape[0] - 1)
    rows = ledger.entries.at[slots].get(mode=IN_BOUNDS)
    entries = jax.vmap(_entry)(rows[:-1])
    arrives, matches = decision_ids != NO_DECISION, entries.decision_id == decision_ids
    found = arrives & matches
    is_freed = jnp.any(found & (slots[:-1] == slots[-1]))
    loses = (new_id != NO_DECISION) & (rows[-1, 0] != NO_DECISION) & ~is_freed
    return Settled(entries, found, arrives & ~matches, slots[:-1], loses)


def update(ledger: Ledger, settled: Settled, entry: Entry) -> Ledger:
    """Take out what was settled, then let a new decision wait, unless its id is NO_DECISION.

    To be called after the lessons of what was settled were learnt: the entry's version then depends on all that
    `settle` read, and only a write that depends on every read is done in place instead of in a copy of all entries.
    """
    capacity, width = ledger.entries.shape
    slot = jnp.where(entry.decision_id == NO_DECISION, capacity, entry.decision_id & (capacity - 1))
    # one write; what is past the end is dropped, and a slot that is freed and taken at once is only taken
    freed = jnp.where(settled.found & (settled.slots != slot), settled.slots, capacity) * width
    cells = jnp.concatenate([freed, slot * width + jnp.arange(width, dtype=jnp.int32)])
    words = jnp.concatenate([jnp.full_like(freed, NO_DECISION), _row(entry)])
    return Ledger(
        entries=ledger.entries.reshape(-1).at[cells].set(words, mode="drop").reshape(capacity, width),
        overwritten=ledger.overwritten + settled.loses.astype(jnp.int32),
        unmatched=ledger.unmatched + jnp.sum(settled.unmatched, dtype=jnp.int32),
    )


def forget_waiting(ledger: Ledger) -> Ledger:
    """Free every slot: a new episode numbers its decisions anew."""
    return dataclasses.replace(ledger, entries=ledger.entries.at[:, 0].set(NO_DECISION))


def rescaled(ledger: Ledger, factor: Array) -> Ledger:
    """The ledger with the rewards of waiting decisions in another unit; `factor` [] f32, old unit over new one."""
    paid = to_words(factor * to_floats(ledger.entries[:, -1]))
    return dataclasses.replace(ledger, entries=ledger.entries.at[:, -1].set(paid))


def nothing(structure: Structure) -> Entry:
    """No decision."""
    zero, n_paths = jnp.zeros((), jnp.int32), structure.n_paths
    paths = Paths(jnp.zeros(n_paths, jnp.int32), jnp.zeros(n_paths, jnp.float32), jnp.ones((), jnp.float32))
    return Entry(jnp.full((), NO_DECISION, jnp.int32), zero, zero, jnp.zeros((), jnp.float32), paths)


def _row(entry: Entry) -> Array:
    paths = entry.paths
    floats = jnp.concatenate([paths.activation, jnp.stack([paths.stake, entry.reward])])
    return jnp.concatenate([jnp.stack([entry.decision_id, entry.version, entry.action]), paths.nodes, to_words(floats)])


def _entry(row: Array) -> Entry:
    n_paths = (row.shape[0] - 5) // 2
    floats = to_floats(row[n_paths + 3 :])
    paths = Paths(row[3 : n_paths + 3], floats[:n_paths], floats[n_paths])
    return Entry(row[0], row[1], row[2], floats[n_paths + 1], paths)
