"""The tables of CustomerService against numbers worked out by hand, and against the page that explains them."""

import re

import numpy as np
import pytest
from habitus.envs import draws, regimes
from habitus.envs.arithmetic import ARRAYS, INTEGERS
from habitus.envs.customer_service import CustomerServiceEnv, rules
from habitus.envs.customer_service.tables import drawn, tables

ONE = draws.HALF_ONE
HASTY, THOROUGH, HUMAN_SEEKER, HAGGLER, LOYAL = range(5)
TEMPLATE, DETAILED, APOLOGISE, CLARIFY, DISCOUNT, REFUND, REPLACE, ESCALATE, CLOSE = range(9)
LOST, UNDECIDED, WON = range(3)
SETUP, DELIVERY, DAMAGE, USAGE, ACCOUNT, INVOICE = range(6)
FIRST_TURN, AFTER_LOST, AFTER_UNDECIDED, AFTER_WON = range(4)


@pytest.mark.parametrize(
    ("level", "persona", "action", "stage", "expected"),
    [
        (0, HASTY, REFUND, FIRST_TURN, (0, 0.1, 0.9)),
        (10, HASTY, REFUND, FIRST_TURN, (0.65, 0.25, 0.1)),
        (5, HASTY, REFUND, FIRST_TURN, (0.325, 0.175, 0.5)),
        (0, HAGGLER, DISCOUNT, AFTER_LOST, (1 - 0.264, 0.264, 0)),
        (0, HAGGLER, DISCOUNT, AFTER_UNDECIDED, (0.006, 0.73, 0.264)),
        (0, HAGGLER, REFUND, AFTER_WON, (0, 0.075, 0.925)),
        (3, LOYAL, CLOSE, FIRST_TURN, (1, 0, 0)),
        (3, LOYAL, CLOSE, AFTER_WON, (0, 0, 1)),
        (3, LOYAL, CLOSE, AFTER_UNDECIDED, (0, 1, 0)),
    ],
)
def test_trust_follows_the_table_and_later_moves_by_a_third_of_it(level, persona, action, stage, expected):
    found = rules.chances(rules.TRUST[level, persona, action, stage])
    np.testing.assert_allclose(found, expected, atol=1 / ONE)


@pytest.mark.parametrize(
    ("level", "issue", "cause", "action", "trust", "expected"),
    [
        (0, SETUP, 0, TEMPLATE, UNDECIDED, 0.75 * 0.85),
        (0, DAMAGE, 1, REFUND, WON, 0.9 * 1.05),
        (10, DELIVERY, 1, REPLACE, WON, 0.9 * 1.05),
        (0, ACCOUNT, 0, DETAILED, WON, 0.8 * 1.05),
        (5, INVOICE, 0, REFUND, LOST, 0.6 * 0.6),
        (10, USAGE, 0, ESCALATE, UNDECIDED, 0.5 * 0.85),
        (0, USAGE, 1, CLARIFY, WON, 0),
    ],
)
def test_a_solution_is_the_mixed_chance_times_acceptance(level, issue, cause, action, trust, expected):
    assert rules.SOLVED[level, issue, cause, action, trust] / ONE == pytest.approx(expected, abs=1 / ONE)


def test_no_solution_is_more_certain_than_97_percent(monkeypatch):
    assert rules.SOLVED.max() / ONE <= 0.97
    monkeypatch.setattr(rules, "ACCEPTANCE", (0.6, 0.85, 1.2))
    assert rules._solved().max() / ONE == pytest.approx(0.97, abs=1 / ONE)


def test_moods_replies_and_surveys_by_hand():
    np.testing.assert_allclose(rules.chances(rules.MOOD[APOLOGISE, LOST, 0]), (0.35, 0.47, 0.18), atol=1 / ONE)
    np.testing.assert_allclose(rules.chances(rules.MOOD[DETAILED, WON, 1]), (0.024, 0.276, 0.7), atol=1 / ONE)
    np.testing.assert_allclose(rules.chances(rules.MOOD[DETAILED, LOST, 2]), (0.105, 0.865, 0.03), atol=1 / ONE)
    np.testing.assert_allclose(rules.chances(rules.REPLY[HASTY, 0, LOST]), (0.05, 0.2, 0.525, 0.225), atol=1 / ONE)
    assert rules.REPLY_OF_SLOT[HASTY, 0, LOST, 2:].tolist() == [rules.ASKS_HURRY, rules.ASKS_MONEY]
    np.testing.assert_allclose(rules.chances(rules.REPLY[LOYAL, 1, LOST])[:2], (0.85, 0.15), atol=1 / ONE)
    np.testing.assert_allclose(rules.chances(rules.SURVEY[1, WON]), (0.4, 0.03, 0.06, 0.51), atol=1 / ONE)
    np.testing.assert_allclose(rules.chances(rules.SURVEY[0, LOST]), (0.4, 0.57, 0, 0.03), atol=1 / ONE)


def test_leaving_reopening_and_their_pay_by_hand():
    leaves, reopens = rules.EVENT[:, :, 0] / ONE, rules.EVENT[:, :, 1] / ONE
    assert (leaves[:, 0] == 0).all()
    assert (leaves[:, 5] == 1).all()
    assert (leaves[:, 1:5, 1] == 0).all()
    assert leaves[LOYAL, 2, 0, LOST, 0] == pytest.approx(0.47, abs=1 / ONE)
    assert leaves[LOYAL, 2, 0, WON, 3] == pytest.approx(0.03, abs=1 / ONE)
    assert (reopens[:, 0] == 1).all()
    assert (reopens[:, 5] == 0).all()
    assert reopens[HAGGLER, 3, 0, LOST, 2] == pytest.approx(0.7, abs=1 / ONE)
    assert reopens[HAGGLER, 3, 1, UNDECIDED, 2] == pytest.approx(0.2, abs=1 / ONE)
    assert reopens[HAGGLER, 3, 1, WON, 2] == 0
    assert reopens[HASTY, 3, 1, LOST, 2] == pytest.approx(0.25, abs=1 / ONE)
    assert rules.END_PAYS[1, 1, WON, 3] == 2300
    assert rules.END_PAYS[0, 0, LOST, 0] == -3000
    assert rules.END_PAYS[1, 0, LOST, 0] == -2500


def test_each_category_keeps_its_chance_exactly():
    halves = np.arange(ONE)
    for table, cumulative in ((tables().trust, rules.TRUST), (tables().survey, rules.SURVEY)):
        thresholds = cumulative.reshape(-1, cumulative.shape[-1])
        for row in range(0, len(thresholds), max(1, len(thresholds) // 40)):
            found = np.bincount(np.asarray(drawn(halves, table, row, ARRAYS)), minlength=4)
            expected = np.diff([0, *thresholds[row], ONE])
            assert found[: len(expected)].tolist() == expected.tolist()
            assert found.sum() == found[: len(expected)].sum()
    for half in (0, 16383, 16384, 40000, 65535):
        assert drawn(half, tables().mood, 11, INTEGERS) == int(drawn(np.int32(half), tables().mood, 11, ARRAYS))


def test_no_chance_is_negative_at_any_level_of_the_rules():
    for cumulative in (rules.TRUST, rules.MOOD, rules.REPLY, rules.SURVEY):
        chances = rules.chances(cumulative)
        assert chances.min() >= 0
        np.testing.assert_allclose(chances.sum(axis=-1), 1)


def test_prices_lie_between_those_of_both_rules_without_rounding():
    assert rules.COST[0].tolist() == [50, 150, 80, 100, 350, 700, 550, 550, 0]
    assert rules.COST[10].tolist() == [50, 150, 80, 100, 400, 1600, 400, 900, 0]
    exact = np.linspace(rules.COST[0], rules.COST[10], regimes.LEVELS + 1)
    np.testing.assert_allclose(rules.COST, exact, atol=1e-9)


def rows(begin, end):
    """Cells of the page's tables between two marks."""
    page = CustomerServiceEnv.__doc__
    lines = page[page.index(begin) : page.index(end)].splitlines()
    return [[cell.strip(" *") for cell in line.strip().strip("|").split("|")] for line in lines if "|" in line][2:]


def test_the_page_tells_the_trust_that_the_rules_have():
    for number, (persona, which, *cells) in enumerate(rows("| Persona | Rules", "In later turns")):
        told = (rules.FIRST_RULES_TRUST, rules.SECOND_RULES_TRUST)[number % 2][number // 2]
        assert persona in ("", rules.PERSONAS[number // 2])
        assert which == ("first", "second")[number % 2]
        assert [tuple(map(int, cell.split("/"))) for cell in cells] == list(told)


def test_the_page_tells_the_solutions_and_prices_that_the_rules_have():
    action = ""
    for name, which, *cells in rows("| Action | Rules", "escalate .8"):
        action = name or action
        told = {"first": rules.FIRST_RULES_SOLVED, "second": rules.SECOND_RULES_SOLVED}[which][action]
        assert [tuple(map(float, cell.split("/"))) for cell in cells] == list(told)
    for number, name, first, second in rows("| Num | Action | Price", "## Observation Space"):
        assert re.split(r"\W", name)[0] == rules.ACTIONS[int(number)]
        assert float(first) * rules.MONEY == pytest.approx(rules.FIRST_RULES_COST[int(number)])
        assert float(second) * rules.MONEY == pytest.approx(rules.SECOND_RULES_COST[int(number)])
