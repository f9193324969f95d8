"""How players move, and whether they agree to peace: the five built-in styles, or tables that a user brings.

A row of move chances is drawn from by Walker's alias method (see `visitors.alias_table`): one slot of six, and with
some chance another move instead. That takes one look into a table where thresholds in a row would take five.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments, draws, visitors
from . import rules
from .rules import ADVANCE, BACK_OFF, CLOSE, FOREST, GUARD, HIDE, N_MOVES, NEAR, RUINS, SHOOT, STRIKE

STYLES = ("aggressive", "kiter", "ambusher", "guard", "diplomat")
AGGRESSIVE, KITER, AMBUSHER, GUARDED, DIPLOMAT = range(len(STYLES))
NEGOTIATION = ((0.02, 0.08, 0.04, 0.25, 0.65), (0.02, 0.5, 0.04, 0.05, 0.15))  # chance to agree, by rules and style

SITUATION_SHAPE = (len(rules.TERRAINS), len(rules.DISTANCES), 2, 2)  # terrain, distance, hidden, low health
MAX_STYLES = 64
TOLERANCE = 1e-6  # by which chances may miss 1
RETREAT_WHEN_LOW = 0.4  # part of its moves that a visible player of low health turns into backing off


class Opponents(NamedTuple):
    """Players' behaviour, for the executors; both flat."""

    moves: NDArray[np.int32]  # [S * 4 * 3 * 2 * 2 * 6], of each slot: alias << THRESHOLD_BITS | threshold of the slot
    agrees: NDArray[np.int32]  # [(LEVELS + 1) * S * 2], threshold to agree, by level, style and low health


def built_in_moves() -> NDArray[np.float64]:
    """[5, 4, 3, 2, 2, 6]: chances of the moves by style, terrain, distance, hidden and low health."""
    table = np.zeros((len(STYLES), *SITUATION_SHAPE, N_MOVES))
    far = slice(NEAR, None)

    aggressive = table[AGGRESSIVE]
    aggressive[:, CLOSE, ..., [STRIKE, BACK_OFF, GUARD]] = np.array([0.85, 0.1, 0.05])[:, None, None, None]
    aggressive[:, far, ..., ADVANCE], aggressive[:, far, ..., SHOOT], aggressive[:, far, ..., GUARD] = 0.85, 0.1, 0.05

    kiter = table[KITER]
    kiter[:, CLOSE, ..., BACK_OFF], kiter[:, CLOSE, ..., STRIKE] = 0.75, 0.25
    kiter[:, NEAR, ..., SHOOT], kiter[:, NEAR, ..., BACK_OFF], kiter[:, NEAR, ..., GUARD] = 0.75, 0.2, 0.05
    kiter[:, 2, ..., SHOOT], kiter[:, 2, ..., ADVANCE] = 0.65, 0.35

    ambusher = table[AMBUSHER]
    hides = np.full(len(rules.TERRAINS), 0.6)
    hides[[FOREST, RUINS]] = 0.85
    rest = ((1 - hides) / 2)[:, None]
    ambusher[:, :, 0, :, HIDE] = hides[:, None, None]
    ambusher[:, :, 0, :, BACK_OFF] = rest[:, None]
    ambusher[:, CLOSE, 0, :, STRIKE] = rest
    ambusher[:, far, 0, :, SHOOT] = rest[:, None]
    ambusher[:, CLOSE, 1, :, STRIKE], ambusher[:, CLOSE, 1, :, HIDE] = 0.85, 0.15
    ambusher[:, far, 1, :, ADVANCE], ambusher[:, far, 1, :, HIDE] = 0.65, 0.35

    guarded = table[GUARDED]
    guarded[..., GUARD], guarded[:, CLOSE, ..., STRIKE] = 0.7, 0.3
    guarded[:, far, ..., ADVANCE], guarded[:, far, ..., SHOOT] = 0.1, 0.2

    diplomat = table[DIPLOMAT]
    diplomat[..., GUARD], diplomat[..., BACK_OFF], diplomat[..., ADVANCE] = 0.35, 0.25, 0.2
    diplomat[:, CLOSE, ..., STRIKE], diplomat[:, far, ..., SHOOT] = 0.2, 0.2

    wary = table[AGGRESSIVE + 1 :, :, :, 0, 1]  # visible and of low health
    wary *= 1 - RETREAT_WHEN_LOW
    wary[..., BACK_OFF] += RETREAT_WHEN_LOW
    return table


def opponents(moves: ArrayLike | None = None, negotiation: ArrayLike | None = None) -> Opponents:
    """Behaviour of players.

    Args:
        moves: [S, 4, 3, 2, 2, 6] chances of the moves by style, terrain, distance, whether the player is hidden and
            whether its health is low; an axis of situations may have size 1, which stands for all. None = built in.
        negotiation: [S] or [2, S] chances to agree by style, or by rules and style. None = built in.

    Raises:
        TypeError, ValueError: with the name of the argument, what was expected and what came.
    """
    if moves is None:
        table = built_in_moves()
        talks = np.array(NEGOTIATION) if negotiation is None else _chances("negotiation", negotiation)
    else:
        table = _move_table(moves)
        if negotiation is None:
            raise ValueError(
                "`negotiation` must be given with `opponents`: the chance to agree of each of its "
                f"{len(table)} styles, got None."
            )
        talks = _chances("negotiation", negotiation)
    n_styles = len(table)
    if talks.shape not in ((n_styles,), (2, n_styles)):
        raise ValueError(
            f"`negotiation` must have the shape ({n_styles},) or (2, {n_styles}), one chance to agree per style, "
            f"got {talks.shape}."
        )
    talks = np.broadcast_to(talks, (2, n_styles))
    by_health = np.stack([talks, np.minimum(talks * rules.LOW_HEALTH_TALKS, 1)], axis=-1)
    first, second = rules.thresholds(by_health)
    return Opponents(
        moves=_slots(table.reshape(-1, N_MOVES)).astype(np.int32).ravel(),
        agrees=rules.mixed(first, second).astype(np.int32).ravel(),
    )


def check_moves(moves: ArrayLike) -> None:
    """Check `params.moves`, [..., S * 4 * 3 * 2 * 2 * 6], see `Opponents.moves`.

    Raises:
        ValueError: a slot has an alias that is no move, or a threshold above certainty.
    """
    slots = np.asarray(moves)
    arguments.entries("params.moves >> 17 (a move)", slots >> rules.THRESHOLD_BITS, 0, N_MOVES - 1)
    arguments.entries("params.moves & 0x1FFFF (a threshold)", slots & rules.THRESHOLD_MASK, 0, draws.HALF_ONE)


def move_chances(moves: NDArray[np.int32]) -> NDArray[np.float64]:
    """[S, 24, 2, 6]: exact chances with which `Opponents.moves` draws each move."""
    slots = moves.reshape(-1, N_MOVES).astype(np.int64)
    ticks = np.bincount((np.arange(draws.HALF_ONE) * N_MOVES) >> draws.HALF_BITS, minlength=N_MOVES)
    stays, alias = slots & rules.THRESHOLD_MASK, slots >> rules.THRESHOLD_BITS
    chances = (ticks * stays).astype(np.float64)
    rows = np.arange(len(slots))
    for slot in range(N_MOVES):
        np.add.at(chances, (rows, alias[:, slot]), ticks[slot] * (draws.HALF_ONE - stays[:, slot]))
    return (chances / draws.HALF_ONE**2).reshape(-1, rules.N_SITUATIONS, 2, N_MOVES)


def _slots(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    packed = np.empty(rows.shape, np.int64)
    for number, row in enumerate(rows):
        stays, alias = visitors.alias_table(row)
        packed[number] = (alias.astype(np.int64) << rules.THRESHOLD_BITS) | stays
    return packed


def _move_table(moves: ArrayLike) -> NDArray[np.float64]:
    table = _chances("opponents", moves)
    full = (*SITUATION_SHAPE, N_MOVES)
    fits = table.ndim == 1 + len(full) and table.shape[-1] == N_MOVES
    fits = fits and all(size in (1, of) for size, of in zip(table.shape[1:], full, strict=True))
    if not fits:
        raise ValueError(
            f"`opponents` must have the shape (styles, 4, 3, 2, 2, {N_MOVES}): chances of {', '.join(rules.MOVES)} by "
            "style, terrain, distance, hidden and low health (an axis of size 1 stands for all its values), "
            f"got {table.shape}."
        )
    if not 1 <= len(table) <= MAX_STYLES:
        raise ValueError(f"`opponents` must have 1 to {MAX_STYLES} styles, got {len(table)}.")
    total = table.sum(axis=-1)
    if (np.abs(total - 1) > TOLERANCE).any():
        where = tuple(int(i) for i in np.argwhere(np.abs(total - 1) > TOLERANCE)[0])
        raise ValueError(
            f"`opponents` must sum to 1 over its last axis, got {total[where]:g} at {where}; every row holds the "
            "chances of all moves in one situation."
        )
    return np.broadcast_to(table / total[..., None], (len(table), *full))


def _chances(name: str, values: ArrayLike) -> NDArray[np.float64]:
    try:
        given = np.array(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` must be an array of chances, got {values!r}.") from error
    if given.dtype.kind not in "fiu":
        raise TypeError(f"`{name}` must be an array of chances, got one of {given.dtype}: {values!r}.")
    table = given.astype(np.float64)
    if not np.isfinite(table).all():
        raise ValueError(f"`{name}` must be finite, got {table[~np.isfinite(table)][0]}.")
    if table.size and (table.min() < 0 or table.max() > 1):
        worst = table.min() if table.min() < 0 else table.max()
        raise ValueError(f"`{name}` must hold chances in [0, 1], got {worst:g}.")
    return table
