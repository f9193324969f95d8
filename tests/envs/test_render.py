import numpy as np
import pytest
from habitus import envs
from habitus.envs.credit_review.terms import APPROVE, MANUAL_REVIEW


@pytest.fixture
def make(toy_table):
    return lambda kind, **arguments: envs.CreditReviewEnv(toy_table() if kind == "table" else kind, **arguments)


@pytest.mark.parametrize("kind", ["synthetic", "table"])
def test_text_shows_the_case_and_the_last_decision(make, kind):
    env = make(kind, render_mode="ansi", horizon=300)
    observation, _ = env.reset(seed=0)
    assert "none yet" in env.render()
    assert "application for decision 1 of 300" in env.render()
    for field in env.schema.fields:
        if field.is_category and field.name != "income_status":
            assert field.labels[observation[field.name]] in env.render()
    *_, info = env.step(MANUAL_REVIEW)
    assert f"manual review -> reward {env._frame.reward:+.2f}, verdict: {info['verdict']}" in env.render()


def test_text_lists_outcomes_as_they_arrive(make):
    env = make("synthetic", render_mode="ansi")
    env.reset(seed=0)
    arrived = []
    while not arrived:
        *_, info = env.step(APPROVE)
        arrived = info["feedback"]
    decision, value = arrived[0]
    assert f"decision {decision + 1} (approve) brought {value:+.2f}" in env.render()


def test_unknown_numbers_show_why_they_are_unknown(make):
    env = make("table", render_mode="ansi", hide_probability=1.0)
    env.reset(seed=0)
    lines = [line.split() for line in env.render().splitlines()]
    assert ["income", "hidden"] in lines
    assert ["documents", "withheld"] in lines


@pytest.mark.parametrize("kind", ["synthetic", "table"])
def test_a_picture_has_ink_and_changes_with_the_case(make, kind):
    env = make(kind, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    for _ in range(30):
        env.step(APPROVE)
    second = env.render()
    assert first.dtype == np.uint8
    assert first.shape == second.shape == (512, 800, 3)
    assert 0.01 < (first < 128).mean() < 0.2
    assert (first != second).any()
    assert second.flags.writeable


def test_human_mode_prints_the_card_at_every_step(make, capsys):
    env = make("synthetic", render_mode="human")
    env.reset(seed=0)
    env.step(APPROVE)
    shown = capsys.readouterr().out
    assert "decision 1 of 2000" in shown
    assert "decision 2 of 2000" in shown
    assert env.render() is None


def test_rendering_without_a_mode_warns_and_shows_nothing(make):
    env = make("synthetic")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="`render` shows nothing without a `render_mode`"):
        assert env.render() is None
