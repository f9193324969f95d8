import numpy as np
import pytest
from habitus.envs.game_npc import opponents, rules
from habitus.envs.game_npc.rules import (
    ADVANCE,
    AMBUSH,
    ATTACK,
    BACK_OFF,
    CLOSE,
    DEFEND,
    FAR,
    FOREST,
    GUARD,
    HEAL,
    HIDE,
    HILLS,
    NEAR,
    NEGOTIATE,
    PLAIN,
    RETREAT,
    RUINS,
    SCOUT,
    SHOOT,
    SHOOT_BACK,
    STRIKE,
)

VISIBLE, HIDDEN = 0, 1
FIRST, SECOND = False, True


@pytest.mark.parametrize(
    ("second", "terrain", "distance", "hidden", "action", "move", "hit", "blow"),
    [
        (FIRST, PLAIN, CLOSE, VISIBLE, ATTACK, STRIKE, 0.85, 0.9),
        (FIRST, PLAIN, CLOSE, VISIBLE, ATTACK, GUARD, 0.25, 0.45),  # a guard strikes back
        (FIRST, PLAIN, CLOSE, HIDDEN, ATTACK, STRIKE, 0.15, 0.9),
        (FIRST, PLAIN, CLOSE, VISIBLE, ATTACK, BACK_OFF, 0.3, 0),
        (FIRST, PLAIN, NEAR, VISIBLE, ATTACK, STRIKE, 0, 0),  # neither reaches the other
        (FIRST, PLAIN, NEAR, VISIBLE, SHOOT_BACK, SHOOT, 0.6, 0.7),
        (FIRST, FOREST, NEAR, VISIBLE, SHOOT_BACK, SHOOT, 0.36, 0.42),  # x .6 both
        (FIRST, PLAIN, CLOSE, VISIBLE, SHOOT_BACK, SHOOT, 0.25, 0.3),
        (SECOND, PLAIN, NEAR, VISIBLE, SHOOT_BACK, SHOOT, 0.27, 0.7),  # .6 x .45
        (FIRST, PLAIN, FAR, HIDDEN, SHOOT_BACK, GUARD, 0.0315, 0),  # .6 x .35 x .15
        (FIRST, PLAIN, CLOSE, VISIBLE, DEFEND, STRIKE, 0.5, 0.12),
        (FIRST, PLAIN, CLOSE, HIDDEN, DEFEND, STRIKE, 0.5, 0.35),
        (FIRST, PLAIN, NEAR, VISIBLE, DEFEND, SHOOT, 0, 0.28),  # .7 x .4
        (FIRST, PLAIN, CLOSE, HIDDEN, SCOUT, STRIKE, 0.6, 0.18),  # .9 x .2
        (FIRST, PLAIN, NEAR, VISIBLE, SCOUT, HIDE, 0.6, 0),
        (FIRST, PLAIN, NEAR, VISIBLE, SCOUT, SHOOT, 0, 0.7),
        (FIRST, PLAIN, NEAR, VISIBLE, RETREAT, SHOOT, 0, 0.42),  # .7 x .6
        (FIRST, PLAIN, FAR, VISIBLE, RETREAT, SHOOT, 0, 0),  # away before the shot
        (FIRST, FOREST, NEAR, VISIBLE, AMBUSH, ADVANCE, 0.9, 0),
        (SECOND, FOREST, NEAR, VISIBLE, AMBUSH, ADVANCE, 0.4, 0),
        (FIRST, RUINS, CLOSE, VISIBLE, AMBUSH, STRIKE, 0.8, 0.396),  # .9 (1 - .7 x .8)
        (SECOND, HILLS, CLOSE, VISIBLE, AMBUSH, STRIKE, 0.75, 0.4275),  # .9 (1 - .7 x .75)
        (FIRST, FOREST, NEAR, VISIBLE, AMBUSH, SHOOT, 0, 0.48),  # lying still: .8 x .6
        (FIRST, PLAIN, CLOSE, VISIBLE, HEAL, STRIKE, 0, 0.9),
        (FIRST, PLAIN, CLOSE, VISIBLE, NEGOTIATE, SHOOT, 0, 0.3),
    ],
)
def test_chances_of_hits_and_blows_are_those_of_the_page(second, terrain, distance, hidden, action, move, hit, blow):
    fight = rules.fight(second)
    at = terrain, distance, hidden, action, move
    assert (fight.hit[at], fight.blow[at]) == pytest.approx((hit, blow))


@pytest.mark.parametrize(
    ("distance", "hidden", "action", "move", "then"),
    [
        (NEAR, VISIBLE, NEGOTIATE, ADVANCE, (CLOSE, VISIBLE)),
        (NEAR, VISIBLE, NEGOTIATE, BACK_OFF, (FAR, VISIBLE)),
        (FAR, VISIBLE, NEGOTIATE, BACK_OFF, (FAR, VISIBLE)),
        (FAR, VISIBLE, NEGOTIATE, HIDE, (FAR, HIDDEN)),
        (FAR, HIDDEN, NEGOTIATE, ADVANCE, (NEAR, HIDDEN)),  # stalks
        (FAR, HIDDEN, NEGOTIATE, STRIKE, (FAR, HIDDEN)),  # nothing comes of it
        (FAR, HIDDEN, NEGOTIATE, SHOOT, (FAR, VISIBLE)),
        (CLOSE, HIDDEN, NEGOTIATE, STRIKE, (CLOSE, VISIBLE)),
        (FAR, VISIBLE, ATTACK, ADVANCE, (CLOSE, VISIBLE)),
        (CLOSE, VISIBLE, ATTACK, BACK_OFF, (CLOSE, VISIBLE)),  # pursued
        (CLOSE, HIDDEN, ATTACK, BACK_OFF, (CLOSE, VISIBLE)),
        (CLOSE, HIDDEN, ATTACK, GUARD, (CLOSE, HIDDEN)),
        (CLOSE, VISIBLE, RETREAT, ADVANCE, (NEAR, VISIBLE)),
        (NEAR, VISIBLE, RETREAT, BACK_OFF, (FAR, VISIBLE)),
        (NEAR, HIDDEN, SCOUT, GUARD, (NEAR, VISIBLE)),
        (NEAR, VISIBLE, SCOUT, HIDE, (NEAR, VISIBLE)),
        (NEAR, HIDDEN, AMBUSH, ADVANCE, (CLOSE, VISIBLE)),
        (NEAR, HIDDEN, AMBUSH, HIDE, (NEAR, HIDDEN)),
    ],
)
def test_who_stands_where_afterwards(distance, hidden, action, move, then):
    for second in (FIRST, SECOND):
        fight = rules.fight(second)
        at = PLAIN, distance, hidden, action, move
        assert (fight.distance[at], fight.hidden[at]) == then


def test_surprise_and_strikes_from_hiding_hurt_twice():
    fight = rules.fight(FIRST)
    _, distance, hidden, action, move = np.indices(fight.hit.shape)
    surprises = (action == AMBUSH) & ((move == ADVANCE) | ((move == STRIKE) & (distance == CLOSE)))
    np.testing.assert_array_equal(fight.damage, 1 + surprises)
    np.testing.assert_array_equal(fight.harm, 1 + ((move == STRIKE) & (distance == CLOSE) & (hidden == 1)))


def test_tables_hold_the_rules_at_both_ends_and_between():
    tables = rules.fight_tables()
    hits, blows = tables.hits.array.reshape(11, -1), (tables.blows.array & rules.THRESHOLD_MASK).reshape(11, -1)
    for level, second in ((0, FIRST), (10, SECOND)):
        np.testing.assert_array_equal(hits[level], np.round(rules.fight(second).hit.ravel() * 65536))
        np.testing.assert_array_equal(blows[level], np.round(rules.fight(second).blow.ravel() * 65536))
    between = 0.7 * rules.fight(FIRST).hit.ravel() + 0.3 * rules.fight(SECOND).hit.ravel()
    np.testing.assert_allclose(hits[3] / 65536, between, atol=1.5 / 65536)
    packed = tables.blows.array.reshape(11, *rules.fight(FIRST).hit.shape)[5]
    np.testing.assert_array_equal(packed >> rules.DISTANCE_BIT & 3, rules.fight(SECOND).distance)
    np.testing.assert_array_equal(packed >> rules.HIDDEN_BIT & 1, rules.fight(SECOND).hidden)
    np.testing.assert_array_equal(1 + (packed >> rules.HARD_HIT_BIT & 1), rules.fight(SECOND).damage)
    np.testing.assert_array_equal(1 + (packed >> rules.HARD_BLOW_BIT & 1), rules.fight(SECOND).harm)


@pytest.mark.parametrize(
    ("style", "terrain", "distance", "hidden", "low", "chances"),  # strike, shoot, hide, advance, back off, guard
    [
        (opponents.AGGRESSIVE, PLAIN, CLOSE, VISIBLE, 0, (0.85, 0, 0, 0, 0.1, 0.05)),
        (opponents.AGGRESSIVE, PLAIN, FAR, VISIBLE, 1, (0, 0.1, 0, 0.85, 0, 0.05)),  # knows no caution
        (opponents.KITER, PLAIN, NEAR, VISIBLE, 0, (0, 0.75, 0, 0, 0.2, 0.05)),
        (opponents.KITER, PLAIN, NEAR, VISIBLE, 1, (0, 0.45, 0, 0, 0.52, 0.03)),  # x .6, + .4 backs off
        (opponents.AMBUSHER, FOREST, CLOSE, VISIBLE, 0, (0.075, 0, 0.85, 0, 0.075, 0)),
        (opponents.AMBUSHER, HILLS, FAR, VISIBLE, 0, (0, 0.2, 0.6, 0, 0.2, 0)),
        (opponents.AMBUSHER, HILLS, NEAR, HIDDEN, 1, (0, 0, 0.35, 0.65, 0, 0)),  # hidden it fears nothing
        (opponents.GUARDED, RUINS, CLOSE, VISIBLE, 0, (0.3, 0, 0, 0, 0, 0.7)),
        (opponents.DIPLOMAT, RUINS, NEAR, VISIBLE, 0, (0, 0.2, 0, 0.2, 0.25, 0.35)),
    ],
)
def test_styles_move_as_the_page_says(style, terrain, distance, hidden, low, chances):
    table = opponents.built_in_moves()
    np.testing.assert_allclose(table[style, terrain, distance, hidden, low], chances, atol=1e-12)


def test_drawn_moves_have_the_chances_of_their_table():
    table = opponents.built_in_moves()
    drawn = opponents.move_chances(opponents.opponents().moves).reshape(table.shape)
    np.testing.assert_allclose(drawn, table, atol=3e-5)
    np.testing.assert_allclose(drawn.sum(axis=-1), 1, atol=1e-12)
    assert (drawn[table == 0] == 0).all()
    # by enumeration: a slot for each of 65,536 halves, and its threshold
    slots = opponents.opponents().moves.reshape(-1, 6)[100]
    slot = np.arange(65536) * 6 >> 16
    stays = (slots & rules.THRESHOLD_MASK)[slot] / 65536
    counted = np.zeros(6)
    np.add.at(counted, slot, stays)
    np.add.at(counted, (slots >> rules.THRESHOLD_BITS)[slot], 1 - stays)
    np.testing.assert_allclose(drawn.reshape(-1, 6)[100], counted / 65536, atol=1e-12)
