"""Prototypes: kinds of entities, found in what entities do, with a fast opinion about each entity.

A mixture model. Prototype z shows symbol y in situation c with probability theta_z[c, y], learnt from expected counts
n_z[c, y] with a Dirichlet prior. Entity e is of prototype z with probability r_e(z), filtered as it is met:

    at an encounter     r_e <- (1 - drift) r_e + drift pi
    at a symbol         r_e(z) <- r_e(z) theta_z[c, y] / sum;   n_z[c, y] <- n_z[c, y] + r_e(z)

Every REST steps `consolidate` runs expectation maximisation over the events so far, and a few times from random starts
as well: symmetric prototypes never part by themselves. It takes an entity for the same all along, which is true of the
first 1,600 steps and false of a long life. From then on prototypes only learn as they go, from what the opinion of the
moment says that an entity is, and what is old fades. `consolidate` never touches r_e, the fast opinion, unless the
prototypes themselves are replaced.

Sources: Dempster, Laird & Rubin (1977); Cappe & Moulines (2009), "On-line expectation-maximization algorithm for latent
data models". Differs: counts fade by a factor per rest instead of by a rate per event.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..config import NOTHING_SEEN
from ..edges import IN_BOUNDS
from ..structure import Structure

Array = jax.Array

EVENTS = 4096
"""Latest events that consolidation looks at, a power of two."""
PRIOR = 0.2
"""Dirichlet prior of a symbol."""
FLOOR = 1e-4
"""Least opinion: a single symbol that a prototype never shows must not rule it out for ever."""
SWEEPS, FIRST_SWEEPS = 2, 12
RESTARTS = 6
RESTART_STEPS = (200, 400, 800, 1600)
KEPT = 0.97
"""Share of the expected counts that is kept from one rest to the next, once prototypes are found."""
LIKENESS = 64.0
"""Steps into which an entity in common is divided where prototypes are matched: before anything tells them apart they
differ by rounding alone, which is another one in a batch, and must not decide who takes whose place."""
BETTER = 5.0
"""Log likelihood by which a random start must be better to be taken."""
PACK = 16
"""Bits of a cell in a packed event; the entity takes the others."""


class Prototypes(NamedTuple):
    """What is known of kinds of entities. E entities, Z prototypes, D cells (situation and symbol), G situations.

    Attributes:
        opinion: [E, Z] f32, r, rows sum to 1.
        counts: [Z, D] f32, n.
        totals: [Z, G] f32, n summed over symbols.
        share: [Z] f32, pi, how common each prototype is.
        events: [EVENTS] i32, entity and cell packed, NOTHING_SEEN where there is none.
        n_events: [] i32, events so far.
    """

    opinion: Array
    counts: Array
    totals: Array
    share: Array
    events: Array
    n_events: Array


class Cells(NamedTuple):
    """How cells belong to situations: constants of a structure."""

    situation: npt.NDArray[np.int32]  # [D]
    possible: npt.NDArray[np.float32]  # [D], 0 for "nothing seen"
    n_symbols: npt.NDArray[np.float32]  # [G], symbols that a situation can show
    member: npt.NDArray[np.float32]  # [D, G], one-hot of `situation`, possible cells only


def n_cells(structure: Structure) -> int:
    """D."""
    return sum(table.n_contexts * table.n_symbols for table in structure.behaviours)


def first_cells(structure: Structure) -> list[int]:
    """Per table of behaviours, its first cell."""
    sizes = [table.n_contexts * table.n_symbols for table in structure.behaviours]
    return [sum(sizes[:i]) for i in range(len(sizes))]


def cells(structure: Structure) -> Cells:
    """Constants of the cells."""
    situation, possible, n_symbols, n = [], [], [], 0
    for table in structure.behaviours:
        situation += [n + i // table.n_symbols for i in range(table.n_contexts * table.n_symbols)]
        possible += [float(i % table.n_symbols > 0) for i in range(table.n_contexts * table.n_symbols)]
        n_symbols += [table.n_symbols - 1.0] * table.n_contexts
        n += table.n_contexts
    member = np.eye(n, dtype=np.float32)[np.array(situation, np.int32)] * np.array(possible, np.float32)[:, None]
    return Cells(np.array(situation, np.int32), np.array(possible, np.float32), np.array(n_symbols, np.float32), member)


def initial_prototypes(structure: Structure) -> Prototypes:
    """Prototypes that know nothing; empty arrays where there are none."""
    n = structure.prototypes
    n_entities = structure.n_entities if n else 0
    n_situations = sum(table.n_contexts for table in structure.behaviours)
    return Prototypes(
        opinion=jnp.full((n_entities, n), 1.0 / max(n, 1), jnp.float32),
        counts=jnp.zeros((n, n_cells(structure) if n else 0), jnp.float32),
        totals=jnp.zeros((n, n_situations if n else 0), jnp.float32),
        share=jnp.full(n, 1.0 / max(n, 1), jnp.float32),
        events=jnp.full(EVENTS if n else 0, NOTHING_SEEN, jnp.int32),
        n_events=jnp.zeros((), jnp.int32),
    )


def witness(
    prototypes: Prototypes, entity: Array, seen: Array, is_new: Array, drift: Array, structure: Structure
) -> Prototypes:
    """Prototypes after an entity was met, and after what it did.

    Args:
        prototypes: before.
        entity: [] i32, who; nothing is learnt of 0, the unknown.
        seen: [S] i32, cells of what it did, one per table of behaviours; NOTHING_SEEN for nothing.
        is_new: [] bool, whether an encounter began with this step.
        drift: [] f32, chance that it has changed since its last encounter.
        structure: shapes.
    """
    constants = cells(structure)
    opinion = prototypes.opinion.at[entity].get(mode=IN_BOUNDS)
    opinion = jnp.where(is_new, (1.0 - drift) * opinion + drift * prototypes.share, opinion)
    counts, totals, events, n_events = prototypes.counts, prototypes.totals, prototypes.events, prototypes.n_events
    for i in range(len(structure.behaviours)):
        happened = (seen[i] >= 0) & (entity > 0)
        cell = jnp.maximum(seen[i], 0)
        situation = jnp.asarray(constants.situation)[cell]
        n_symbols = jnp.asarray(constants.n_symbols)[situation]
        likelihood = (counts[:, cell] + PRIOR) / (totals[:, situation] + PRIOR * n_symbols)
        posterior = (opinion + FLOOR) * likelihood
        opinion = jnp.where(happened, posterior / jnp.sum(posterior), opinion)
        weight = jnp.where(happened, opinion, 0.0)
        counts, totals = counts.at[:, cell].add(weight), totals.at[:, situation].add(weight)
        slot = jnp.where(happened, n_events & (EVENTS - 1), EVENTS)
        events = events.at[slot].set((entity << PACK) | cell, mode="drop")
        n_events = n_events + happened.astype(jnp.int32)
    return Prototypes(
        prototypes.opinion.at[entity].set(opinion, mode=IN_BOUNDS), counts, totals, prototypes.share, events, n_events
    )


def consolidate(prototypes: Prototypes, n_done: Array, key: Array, structure: Structure) -> Prototypes:
    """Prototypes that explain what was seen better, while they are looked for; afterwards what is old fades.

    Args:
        prototypes: before.
        n_done: [] i32, steps done; the same for all agents of a batch, so that rare work is a branch.
        key: of the random starts.
        structure: shapes.
    """
    is_found = n_done > RESTART_STEPS[-1]
    done: Prototypes = jax.lax.cond(is_found, _faded, lambda old: _sought(old, n_done, key, structure), prototypes)
    return done


def _faded(prototypes: Prototypes) -> Prototypes:
    """Events of long ago count less than new ones."""
    counts, totals = KEPT * prototypes.counts, KEPT * prototypes.totals
    return prototypes._replace(counts=counts, totals=totals, share=_shares(jnp.sum(totals, axis=1)))


def _sought(prototypes: Prototypes, n_done: Array, key: Array, structure: Structure) -> Prototypes:
    """Some sweeps of expectation maximisation over the events, and at RESTART_STEPS from random starts as well."""
    constants = cells(structure)
    happened = prototypes.events != NOTHING_SEEN
    entity, cell = prototypes.events >> PACK, prototypes.events & ((1 << PACK) - 1)
    where = jnp.where(happened, entity * n_cells(structure) + cell, structure.n_entities * n_cells(structure))
    table = jnp.zeros(structure.n_entities * n_cells(structure), jnp.float32).at[where].add(1.0, mode="drop")
    table = table.reshape(structure.n_entities, n_cells(structure))
    counts, share = _maximised(table, prototypes.counts, prototypes.share, SWEEPS, constants)

    def restarted(old: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        counts, share, opinion = old

        def started(key: Array) -> tuple[Array, Array, Array]:
            # the square of a normal deviate is twice a gamma of shape 1/2, of which JAX draws one after the other
            guess = jnp.square(jax.random.normal(key, (structure.n_entities, structure.prototypes), jnp.float32))
            guess = guess / jnp.maximum(jnp.sum(guess, axis=1, keepdims=True), 1e-30)
            even = jnp.full(structure.prototypes, 1.0 / structure.prototypes, jnp.float32)
            found = _maximised(table, guess.T @ table, even, FIRST_SWEEPS, constants)
            return (*found, _log_likelihood(table, *found, constants))

        # side by side: the columns of all starts make one product of matrices, those of one are too few
        all_counts, shares, fits = jax.vmap(started)(jax.random.split(key, RESTARTS))
        best = jnp.argmax(fits)
        is_better = fits[best] > _log_likelihood(table, counts, share, constants) + BETTER
        fresh = jax.nn.softmax(_log_joint(table, all_counts[best], shares[best], constants), axis=-1)
        place = matched(opinion, fresh)
        return (
            jnp.where(is_better, all_counts[best][place], counts),
            jnp.where(is_better, shares[best][place], share),
            jnp.where(is_better, fresh[:, place], opinion),
        )

    is_due = jnp.any(n_done == jnp.array(RESTART_STEPS, jnp.int32))
    counts, share, opinion = jax.lax.cond(is_due, restarted, lambda old: old, (counts, share, prototypes.opinion))
    return prototypes._replace(
        opinion=opinion, counts=counts, totals=counts @ jnp.asarray(constants.member), share=share
    )


def matched(before: Array, now: Array) -> Array:
    """[Z] i32: which new prototype takes the place of each old one, so that what was learnt of it stays true.

    Greedy: the pair with most entities in common comes first.

    Args:
        before: [E, Z] f32, opinions about the old prototypes.
        now: [E, Z] f32, about the new ones.
    """
    n = before.shape[1]
    common = jnp.round(before.T @ now * LIKENESS)
    place = jnp.zeros(n, jnp.int32)
    for _ in range(n):
        best = jnp.argmax(common).astype(jnp.int32)
        old, new = best // n, best % n
        place = place.at[old].set(new)
        common = common.at[old].set(-1.0).at[:, new].set(-1.0)
    return place


def _log_theta(counts: Array, constants: Cells) -> Array:
    """[Z, D] f32, 0 for impossible cells."""
    member = jnp.asarray(constants.member)
    total = (counts @ member + PRIOR * constants.n_symbols) @ member.T
    return jnp.log((counts + PRIOR) / jnp.maximum(total, PRIOR)) * constants.possible


def _log_joint(table: Array, counts: Array, share: Array, constants: Cells) -> Array:
    """[E, Z] f32: log probability of each entity's events and prototype."""
    return table @ _log_theta(counts, constants).T + jnp.log(share)


def _log_likelihood(table: Array, counts: Array, share: Array, constants: Cells) -> Array:
    seen = jnp.sum(table, axis=1) > 0
    return jnp.sum(jax.nn.logsumexp(_log_joint(table, counts, share, constants), axis=-1) * seen)


def _shares(mass: Array) -> Array:
    """[Z] f32: how common each prototype is, from what was seen of it, with a prior of one each."""
    return (mass + 1.0) / (jnp.sum(mass) + mass.shape[0])


def _maximised(table: Array, counts: Array, share: Array, n_sweeps: int, constants: Cells) -> tuple[Array, Array]:
    """Counts and shares after some sweeps of expectation maximisation."""
    seen = (jnp.sum(table, axis=1) > 0)[:, None]

    def sweep(_: Array, known: tuple[Array, Array]) -> tuple[Array, Array]:
        belongs = jax.nn.softmax(_log_joint(table, *known, constants), axis=-1) * seen
        mass = jnp.sum(belongs, axis=0)
        return belongs.T @ table, _shares(mass)

    done: tuple[Array, Array] = jax.lax.fori_loop(0, n_sweeps, sweep, (counts, share))
    return done
