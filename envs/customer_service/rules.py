"""The rules of CustomerService: labels, chances and prices under the first and the second rules, and mixtures of both.

`CustomerServiceEnv` explains them. Chances are thresholds of 1/65536, money is in 1/1000; the dynamics and the exact
solution read the same rounded integers. A mixture of level l lies l tenths of the way from the first rules to the
second, entry by entry.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import draws, regimes

Floats = NDArray[np.float64]

MONEY = 1000
N_LEVELS = regimes.LEVELS + 1

ISSUES = ("setup", "delivery", "damage", "usage", "account", "invoice")
DETAILS = ("unknown", "cause a", "cause b")
MOODS = ("angry", "annoyed", "calm", "pleased")
TURNS = ("1", "2", "3", "4", "5", "6")
REPLIES = ("start", "thanks", "neutral", "money", "why", "human", "hurry", "reopened")
CHANNELS = ("chat", "mail")
TIERS = ("basic", "silver", "gold")
ACTIONS = ("template", "detailed", "apologise", "clarify", "discount", "refund", "replace", "escalate", "close")
PERSONAS = ("hasty", "thorough", "human_seeker", "haggler", "loyal")
SURVEYS = ("none", "low", "middle", "high")
ENDINGS = ("none", "closed", "left")
EXCHANGES = (
    "none",
    *(f"{action}, first" for action in ACTIONS),
    *(f"{action}, later" for action in ACTIONS),
    *(f"reopened after {action}" for action in ACTIONS),
)

START, THANKS, NEUTRAL, ASKS_MONEY, ASKS_WHY, ASKS_HUMAN, ASKS_HURRY, REOPENED = range(len(REPLIES))
APOLOGISE, CLARIFY, CLOSE = (ACTIONS.index(name) for name in ("apologise", "clarify", "close"))
HAGGLER = PERSONAS.index("haggler")
LOST, UNDECIDED, WON = range(3)  # trust
N_CAUSES, N_TRUST = 2, 3
N_ISSUES, N_MOODS, N_TURNS, N_ACTIONS, N_PERSONAS = map(len, (ISSUES, MOODS, TURNS, ACTIONS, PERSONAS))
N_SLOTS = 4  # replies that a customer in one situation may give
LAST_TURN = N_TURNS - 1

# [persona][action but close]: chance in % that this first action wins / loses the trust
FIRST_RULES_TRUST = (
    ((15, 45), (0, 80), (5, 60), (0, 80), (25, 35), (90, 0), (75, 5), (5, 60)),
    ((0, 85), (85, 3), (10, 50), (65, 8), (2, 75), (5, 65), (10, 55), (15, 45)),
    ((0, 90), (5, 70), (5, 60), (0, 80), (2, 70), (10, 55), (10, 55), (92, 0)),
    ((0, 75), (5, 65), (5, 60), (5, 65), (88, 2), (45, 25), (10, 55), (5, 60)),
    ((45, 12), (40, 12), (88, 2), (35, 20), (5, 60), (5, 60), (15, 45), (0, 70)),
)
SECOND_RULES_TRUST = (
    ((65, 8), (0, 80), (5, 60), (0, 80), (85, 3), (10, 65), (25, 40), (5, 60)),
    ((5, 70), (35, 35), (10, 50), (88, 2), (2, 75), (5, 65), (10, 55), (15, 45)),
    ((0, 90), (5, 70), (85, 3), (10, 60), (2, 70), (10, 55), (10, 55), (15, 60)),
    ((0, 75), (5, 65), (5, 60), (5, 65), (20, 50), (15, 55), (88, 2), (5, 60)),
    ((30, 20), (55, 10), (80, 3), (35, 20), (30, 30), (5, 60), (15, 45), (0, 70)),
)
REPAIR = 0.3  # later actions win and lose trust with this part of the chances of a first action

# [issue][cause]: chance that the action solves the issue, before acceptance
FIRST_RULES_SOLVED = {
    "template": ((0.75, 0.05), (0.5, 0.05), (0.05, 0.05), (0.6, 0.05), (0.7, 0.1), (0.1, 0.05)),
    "detailed": ((0.5, 0.1), (0.7, 0.15), (0.1, 0.15), (0.75, 0.55), (0.8, 0.7), (0.15, 0.6)),
    "apologise": 0.0,
    "clarify": 0.0,
    "discount": 0.1,
    "refund": ((0.3, 0.3), (0.3, 0.9), (0.9, 0.9), (0.3, 0.3), (0.3, 0.3), (0.9, 0.3)),
    "replace": ((0.15, 0.9), (0.15, 0.15), (0.9, 0.15), (0.15, 0.15), (0.15, 0.15), (0.15, 0.15)),
    "escalate": 0.8,
    "close": 0.0,
}
SECOND_RULES_SOLVED = {
    "template": ((0.15, 0.1), (0.7, 0.5), (0.05, 0.05), (0.75, 0.6), (0.2, 0.2), (0.5, 0.1)),
    "detailed": ((0.75, 0.6), (0.4, 0.15), (0.1, 0.15), (0.3, 0.15), (0.5, 0.5), (0.2, 0.15)),
    "apologise": 0.0,
    "clarify": 0.0,
    "discount": 0.1,
    "refund": ((0.3, 0.3), (0.3, 0.3), (0.3, 0.8), (0.3, 0.3), (0.3, 0.3), (0.3, 0.3)),
    "replace": ((0.2, 0.2), (0.2, 0.9), (0.9, 0.9), (0.2, 0.2), (0.2, 0.2), (0.9, 0.9)),
    "escalate": 0.5,
    "close": 0.0,
}
ACCEPTANCE = (0.6, 0.85, 1.05)  # by trust: part of the chance of a solution that remains
MOST_SOLVED = 0.97

FIRST_RULES_COST = (50, 150, 80, 100, 350, 700, 550, 550, 0)
SECOND_RULES_COST = (50, 150, 80, 100, 400, 1600, 400, 900, 0)
EMPTY_CLOSE = 600  # for closing a ticket that nobody answered
REOPENING = 300

MOOD_UP, MOOD_DOWN = (0.03, 0.12, 0.3), (0.35, 0.2, 0.08)  # by trust
APOLOGY_LIFTS, SOLUTION_LIFTS, SOLUTION_CALMS = 0.15, 0.4, 0.3
SEEN_WRONG = 0.125  # chance that a mood looks one worse, and one better

REQUEST = (0.75, 0.5, 0.2)  # by trust: chance that a customer whose issue is open asks for what is typical of them
TYPICAL: tuple[tuple[tuple[int, float], tuple[int, float]], ...] = (
    ((ASKS_HURRY, 0.7), (ASKS_MONEY, 0.3)),
    ((ASKS_WHY, 0.9), (ASKS_HURRY, 0.1)),
    ((ASKS_HUMAN, 0.85), (ASKS_WHY, 0.15)),
    ((ASKS_MONEY, 0.85), (ASKS_HURRY, 0.15)),
    ((NEUTRAL, 0.7), (ASKS_WHY, 0.3)),
)
THANKS_IF_SOLVED, THANKS_IF_OPEN = 0.85, 0.05

LEAVES, LEAVES_ANGRY, LEAVES_WITHOUT_TRUST = 0.03, 0.35, 0.12
REOPENS_OPEN, REOPENS_WITHOUT_TRUST, REOPENS_HAGGLING = 0.5, 0.25, 0.2

SOLVED_PAYS, TRUST_PAYS, MOOD_PAYS, LEFT_OPEN = 1400, (-800, 0, 600), (-300, -100, 100, 300), 500

SURVEY_ANSWERED = 0.6
HIGH_BY_ISSUE, LOW_BY_ISSUE = (0.05, 0.35), (0.45, 0.05)  # open, solved
HIGH_BY_TRUST, LOW_BY_TRUST = (0.0, 0.15, 0.5), (0.5, 0.1, 0.0)


def _mixed(first: ArrayLike, second: ArrayLike) -> Floats:
    """[N_LEVELS, ...] mixtures of both rules."""
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    way = np.arange(N_LEVELS).reshape(-1, *[1] * one.ndim) / regimes.LEVELS
    return one + (other - one) * way


def _thresholds(chances: ArrayLike) -> NDArray[np.int64]:
    return np.round(np.asarray(chances, np.float64) * draws.HALF_ONE).astype(np.int64)


def _trust() -> NDArray[np.int64]:
    """[level, persona, action, stage, 2]: cumulative chances of trust LOST, UNDECIDED after an action.

    Stage 0 is the first turn; in later turns the stage is 1 + the trust before.
    """
    win, lose = np.moveaxis(_mixed(FIRST_RULES_TRUST, SECOND_RULES_TRUST) / 100, -1, 0)
    repair, harm = REPAIR * win, REPAIR * lose
    nothing, sure = np.zeros_like(win), np.ones_like(win)
    stages = [(lose, 1 - win), (1 - repair, sure), (harm, 1 - repair), (nothing, harm)]
    answers = np.stack([np.stack(stage, -1) for stage in stages], -2)
    close = np.array([(1, 1), (1, 1), (0, 1), (0, 0)], np.float64)  # unanswered: lost; else as it was
    return _thresholds(np.concatenate([answers, np.broadcast_to(close, (*win.shape[:2], 1, 4, 2))], axis=2))


def _solved() -> NDArray[np.int64]:
    """[level, issue, cause, action, trust]: chance that an open issue is solved."""
    shape = (N_ISSUES, N_CAUSES)
    first, second = (
        np.stack([np.broadcast_to(np.asarray(rules[action], np.float64), shape) for action in ACTIONS], -1)
        for rules in (FIRST_RULES_SOLVED, SECOND_RULES_SOLVED)
    )
    return _thresholds(np.minimum(_mixed(first, second)[..., None] * np.array(ACCEPTANCE), MOST_SOLVED))


def _mood() -> NDArray[np.int64]:
    """[action, trust, progress, 2]: cumulative chances of a mood one worse, the same.

    Progress is 0 while the issue is open, 1 when this action has solved it, 2 when it was solved before.
    """
    up = np.zeros((N_ACTIONS, N_TRUST, 3)) + np.array(MOOD_UP)[:, None]
    down = np.zeros_like(up) + np.array(MOOD_DOWN)[:, None]
    up[APOLOGISE] += APOLOGY_LIFTS
    up[..., 1] += SOLUTION_LIFTS
    down[..., 1:] *= SOLUTION_CALMS
    down = np.minimum(down, 1 - up)
    up[CLOSE] = down[CLOSE] = 0
    return _thresholds(np.stack([down, 1 - up], -1))


def _replies() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[persona, solved, trust, N_SLOTS - 1] cumulative chances of slots, and [..., N_SLOTS]: the reply of each."""
    chances = np.zeros((N_PERSONAS, 2, N_TRUST, N_SLOTS))
    replies = np.full(chances.shape, NEUTRAL)
    replies[..., 0] = THANKS
    chances[:, 1, :, :2] = THANKS_IF_SOLVED, 1 - THANKS_IF_SOLVED
    for persona, ((often, share), (sometimes, rest)) in enumerate(TYPICAL):
        replies[persona, 0, :, 2:] = often, sometimes
        for trust, asks in enumerate(REQUEST):
            chances[persona, 0, trust] = THANKS_IF_OPEN, 1 - THANKS_IF_OPEN - asks, share * asks, rest * asks
    return _thresholds(np.cumsum(chances, -1)[..., :-1]), replies


def _events() -> NDArray[np.int64]:
    """[persona, turn, is_close, solved, trust, mood]: chance that the ticket reopens (close), the customer leaves."""
    events = np.zeros((N_PERSONAS, N_TURNS, 2, 2, N_TRUST, N_MOODS))
    leaves, reopens = events[:, 1:LAST_TURN, 0, 0], events[:, 1:LAST_TURN, 1]
    leaves[...] = LEAVES
    leaves[..., 0] = LEAVES_ANGRY
    leaves[..., LOST, :] += LEAVES_WITHOUT_TRUST
    events[:, LAST_TURN, 0] = 1
    reopens[..., 0, :, :] = REOPENS_OPEN
    reopens[..., 1, LOST, :] = REOPENS_WITHOUT_TRUST
    reopens[HAGGLER, ..., :WON, :] += REOPENS_HAGGLING
    events[:, 0, 1] = 1
    return _thresholds(events)


def _end_pays() -> NDArray[np.int64]:
    """[is_close, solved, trust, mood] in 1/1000."""
    pays = np.zeros((2, 2, N_TRUST, N_MOODS), np.int64)
    pays += np.array((-SOLVED_PAYS, SOLVED_PAYS))[:, None, None] + np.array(TRUST_PAYS)[:, None] + np.array(MOOD_PAYS)
    pays[0, 0] -= LEFT_OPEN
    return pays


def _survey() -> NDArray[np.int64]:
    """[solved, trust, 3]: cumulative chances of no answer, low, middle."""
    high = np.array(HIGH_BY_ISSUE)[:, None] + np.array(HIGH_BY_TRUST)
    low = np.array(LOW_BY_ISSUE)[:, None] + np.array(LOW_BY_TRUST)
    scale = np.maximum(high + low, 1)
    low, high = low / scale * SURVEY_ANSWERED, high / scale * SURVEY_ANSWERED
    silent = np.full_like(low, 1 - SURVEY_ANSWERED)
    return _thresholds(np.stack([silent, silent + low, 1 - high], -1))


TRUST = _trust()
SOLVED = _solved()
MOOD = _mood()
REPLY, REPLY_OF_SLOT = _replies()
EVENT = _events()
END_PAYS = _end_pays()
SURVEY = _survey()
COST = np.round(_mixed(FIRST_RULES_COST, SECOND_RULES_COST)).astype(np.int64)  # [level, action]; no halves occur
CLIPPED_MOOD = np.clip(np.arange(N_MOODS + 2) - 1, 0, N_MOODS - 1)  # [mood + 0, 1 or 2]: one worse, same, one better
SEEN_WORSE, SEEN_BETTER = draws.threshold(SEEN_WRONG), draws.threshold(1 - SEEN_WRONG)


def chances(cumulative: NDArray[Any]) -> Floats:
    """[..., n] exact chances of n categories from their [..., n - 1] cumulative thresholds."""
    edges = np.pad(cumulative, [(0, 0)] * (cumulative.ndim - 1) + [(1, 1)])
    edges[..., -1] = draws.HALF_ONE
    return np.diff(edges, axis=-1) / draws.HALF_ONE


def chances_below(n: int) -> Floats:
    """[n] exact chances of `arithmetic.below(half, n)`."""
    return np.bincount(np.arange(draws.HALF_ONE) * n >> draws.HALF_BITS, minlength=n) / draws.HALF_ONE
