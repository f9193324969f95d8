"""Rules of a fight between the NPC and a player: what every pair of an action and a move brings.

Actions are the NPC's (the agent's), moves are the player's. Both happen at once. The page of `GameNPCEnv` says the same
in words. Chances become thresholds of 16-bit halves, everything else small whole numbers packed beside them.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import draws, regimes
from ..arithmetic import Table

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

TERRAINS = ("plain", "forest", "ruins", "hills")
PLAIN, FOREST, RUINS, HILLS = range(len(TERRAINS))
DISTANCES = ("close", "near", "far")
CLOSE, NEAR, FAR = range(len(DISTANCES))
N_SITUATIONS = len(TERRAINS) * len(DISTANCES) * 2  # the last: whether the player is hidden
HEALTH = 5  # of both, at most

ACTIONS = ("attack", "shoot", "defend", "scout", "retreat", "ambush", "heal", "negotiate")
ATTACK, SHOOT_BACK, DEFEND, SCOUT, RETREAT, AMBUSH, HEAL, NEGOTIATE = range(len(ACTIONS))
MOVES = ("strike", "shoot", "hide", "advance", "back_off", "guard")
STRIKE, SHOOT, HIDE, ADVANCE, BACK_OFF, GUARD = range(len(MOVES))
N_MOVES = len(MOVES)
ENDINGS = ("none", "killed", "died", "fled", "agreed", "parted")
GOES_ON, KILLED, DIED, FLED, AGREED, PARTED = range(len(ENDINGS))

# Rewards in 1/100
CENTS = 100
ENDING_CENTS = Table([0, 200, -400, -50, 200, 0])
DAMAGE_CENTS = 100
PRICE_CENTS = 5  # of a step
SCOUT_CENTS = 3  # that a scout costs more
LARGEST_CENTS = 608  # a scout who is struck from hiding and dies: 3 + 5 + 200 + 400

PARTING = draws.threshold(0.04)  # of an encounter that nothing else has ended
LOW_HEALTH = 1  # of a player, who then fights differently
LOW_HEALTH_TALKS = 1.3  # factor of the chance to agree

COVER = ((0.3, 0.9, 0.8, 0.5), (0.75, 0.4, 0.4, 0.75))  # of an ambush, by rules and terrain
SHOT_LOSS = 0.55  # part of its chance that the NPC's shot loses under the second rules
IN_FOREST = 0.6  # factor of the chance of every shot

THRESHOLD_BITS = 17  # a threshold is at most 2^16, for certain
THRESHOLD_MASK = (1 << THRESHOLD_BITS) - 1
HARD_HIT_BIT, HARD_BLOW_BIT, DISTANCE_BIT, HIDDEN_BIT, HEAL_BIT, FLIGHT_BIT, SCOUT_BIT = 17, 18, 19, 21, 22, 23, 24


class Fight(NamedTuple):
    """What follows from a situation, an action and a move.

    Each array is [4 terrains, 3 distances, 2 (whether the player is hidden), 8 actions, 6 moves]. A hit is dealt by the
    NPC, a blow is taken by it.
    """

    hit: Floats  # chance of a hit
    blow: Floats  # chance of a blow
    damage: Codes  # of a hit, 1 or 2
    harm: Codes  # of a blow, 1 or 2
    distance: Codes  # afterwards
    hidden: Codes  # afterwards, 0 or 1
    heals: Codes  # health that the NPC gains
    flees: Codes  # 1: the NPC escapes before anything else happens


class FightTables(NamedTuple):
    """`Fight` for the executors, flat, by level of the regime, situation, action and move."""

    hits: Table  # threshold of a hit
    blows: Table  # threshold of a blow, and from bit 17 on everything that is certain


def fight(second_rules: bool) -> Fight:
    """The first or the second rules."""
    shape = (len(TERRAINS), len(DISTANCES), 2, len(ACTIONS), N_MOVES)
    terrain, distance, hidden, action, move = np.indices(shape)
    strikes = (move == STRIKE) & (distance == CLOSE)
    shoots = move == SHOOT
    in_forest = np.where(terrain == FOREST, IN_FOREST, 1.0)
    cover = np.array(COVER[second_rules])[terrain]
    close, unseen = distance == CLOSE, hidden == 1

    # The move alone
    blow = np.select([strikes, shoots], [np.full(shape, 0.9), np.where(close, 0.3, 0.7) * in_forest], 0.0)
    harm = np.where(strikes & unseen, 2, 1)
    hides = np.select([move == HIDE, strikes | shoots], [1, 0], hidden)
    goes = np.clip(distance - (move == ADVANCE) + (move == BACK_OFF), CLOSE, FAR)
    hit, damage = np.zeros(shape), np.ones(shape, np.int64)

    attacks = action == ATTACK
    in_reach = attacks & close & (move != BACK_OFF)
    pursues = attacks & close & (move == BACK_OFF)
    hit = np.where(in_reach, np.select([unseen, move == GUARD], [0.15, 0.25], 0.85), hit)
    blow = np.where(in_reach & (move == GUARD), 0.45, blow)  # a guard strikes back
    hit, goes, hides = np.where(pursues, 0.3, hit), np.where(pursues, CLOSE, goes), np.where(pursues, 0, hides)
    goes = np.where(attacks & ~close, np.maximum(goes - 1, CLOSE), goes)

    aim = np.where(close, 0.25, 0.6) * in_forest * (1 - SHOT_LOSS * second_rules)
    aim *= np.where(move == GUARD, 0.35, 1.0) * np.where(unseen, 0.15, 1.0)
    hit = np.where(action == SHOOT_BACK, aim, hit)

    parries = (action == DEFEND) & strikes
    hit = np.where(parries, 0.5, hit)
    blow = np.where(parries, np.where(unseen, 0.35, 0.12), np.where(action == DEFEND, blow * 0.4, blow))

    finds = (action == SCOUT) & (unseen | (move == HIDE))
    hit, blow, hides = np.where(finds, 0.6, hit), np.where(finds, blow * 0.2, blow), np.where(finds, 0, hides)

    retreats = action == RETREAT
    blow = np.where(retreats, blow * 0.6, blow)
    flees = retreats & (distance == FAR)
    goes = np.where(retreats, np.minimum(goes + 1, FAR), goes)

    ambushes = action == AMBUSH
    surprises = ambushes & ((move == ADVANCE) | strikes)
    hit, damage, hides = np.where(surprises, cover, hit), np.where(surprises, 2, damage), np.where(surprises, 0, hides)
    blow = np.where(surprises & strikes, blow * (1 - 0.7 * cover), np.where(ambushes & shoots, 0.8 * in_forest, blow))

    hit, blow = np.where(flees, 0.0, hit), np.where(flees, 0.0, blow)
    return Fight(hit, blow, damage, harm, goes, hides, (action == HEAL).astype(np.int64), flees.astype(np.int64))


def thresholds(chances: Floats) -> Codes:
    """Thresholds of chances, elementwise."""
    return np.round(chances * draws.HALF_ONE).astype(np.int64)


def mixed(first: Codes, second: Codes) -> Codes:
    """[LEVELS + 1, ...]: thresholds at each level of the regime, between the rules rounded towards the first."""
    levels = np.arange(regimes.LEVELS + 1).reshape(-1, *(1,) * first.ndim)
    return first + np.trunc((second - first) * levels / regimes.LEVELS).astype(np.int64)


@functools.cache
def fight_tables() -> FightTables:
    """The tables of the executors."""
    first, second = fight(False), fight(True)
    hits = mixed(thresholds(first.hit), thresholds(second.hit))
    blows = mixed(thresholds(first.blow), thresholds(second.blow))
    scouts = np.indices(first.hit.shape)[3] == SCOUT
    certain = (
        ((first.damage - 1) << HARD_HIT_BIT)
        | ((first.harm - 1) << HARD_BLOW_BIT)
        | (first.distance << DISTANCE_BIT)
        | (first.hidden << HIDDEN_BIT)
        | (first.heals << HEAL_BIT)
        | (first.flees << FLIGHT_BIT)
        | (scouts.astype(np.int64) << SCOUT_BIT)
    )
    return FightTables(Table(hits), Table(blows | certain))
