"""The table of reference scores: numbers by hand, what is in it, and what it finds wrong."""

import csv
import io

import numpy as np
import pytest
from habitus.experiments import cli, world_scores
from habitus.experiments.world_scores import Line
from typer.testing import CliRunner

OFFSETS = np.array([-0.01, 0.0, 0.01])


def made_up(**means):
    """A line with three seeds and these means; random 0, oracle 2 unless said otherwise."""
    usual = {"random": 0.0, "best fixed": 0.4, "rules": 0.8, "forgetful filter": 1.0, "filter": 1.6, "oracle": 2.0}
    scores = {name: mean + OFFSETS for name, mean in (usual | means).items()}
    return Line("Toy", 3, "medium", "first", "wave", scores)


def test_numbers_by_hand():
    line = made_up()
    assert line.raw("filter").point == pytest.approx(1.6)
    assert line.normalised("filter").point == pytest.approx(0.8)
    gap = line.difference("filter", "forgetful filter")
    assert (gap.point, gap.low, gap.high) == pytest.approx((0.3, 0.3, 0.3))  # paired: what a seed adds to both is gone
    assert gap.n == 3


def test_an_order_as_it_must_be_is_not_complained_about():
    assert world_scores.failures([made_up()]) == []
    assert world_scores.failures([made_up(filter=2.0)]) == []  # as good as the oracle is possible


@pytest.mark.parametrize(
    ("means", "complaint"),
    [
        ({"filter": 2.2}, "the filter beats the oracle"),
        ({"forgetful filter": 1.6}, "filter is not better than forgetful filter"),
        ({"forgetful filter": -0.5}, "forgetful filter is not better than random"),
    ],
)
def test_a_wrong_order_is_named(means, complaint):
    (sentence,) = world_scores.failures([made_up(**means)])
    assert sentence.startswith("Toy medium first: ")
    assert complaint in sentence


def test_the_table_has_every_policy_and_what_memory_is_worth():
    rows = list(csv.DictReader(io.StringIO(world_scores.to_csv([made_up()]))))
    assert [row["policy"] for row in rows] == [*world_scores.POLICIES, "value of memory"]
    by_policy = {row["policy"]: row for row in rows}
    assert by_policy["best fixed"]["action"] == "wave"
    assert float(by_policy["value of memory"]["reward_per_step"]) == pytest.approx(0.6)
    assert float(by_policy["value of memory"]["normalised"]) == pytest.approx(0.3)
    assert float(by_policy["rules"]["normalised"]) == pytest.approx(0.4)


def test_the_page_says_its_command_and_whether_the_order_holds():
    page = world_scores.to_markdown([made_up()], "habitus scores --seeds 3")
    assert "habitus scores --seeds 3" in page
    assert "seeds 1000-1002" in page
    assert "## Toy-v3" in page
    assert "In every line: oracle >= filter > forgetful filter > random" in page
    assert "the filter beats the oracle" in world_scores.to_markdown([made_up(filter=2.2)], "")


def test_schedules_are_measured_at_medium_difficulty(monkeypatch):
    measured = []
    monkeypatch.setattr(world_scores, "line", lambda setting, regime, seeds: measured.append((setting, regime, seeds)))
    world_scores.measure(["habitus/GameNPC-v0"], n_seeds=2, n_steps=500)
    assert [(setting.difficulty, regime) for setting, regime, _ in measured] == [
        ("easy", "first"),
        ("easy", "second"),
        *(("medium", regime) for regime in world_scores.REGIMES),
        ("hard", "first"),
        ("hard", "second"),
    ]
    assert {tuple(seeds) for *_, seeds in measured} == {(1000, 1001)}  # published numbers: never below 1000


def test_an_unknown_world_is_one_clear_line(tmp_path):
    done = CliRunner().invoke(cli.app, ["scores", "--worlds", "Chess", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "expected a world of habitus/CreditReview-v0" in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_command_writes_both_tables(tmp_path):
    words = ["scores", "--quick", "--worlds", "GameNPC", "--steps", "600", "--seeds", "3", "--out", str(tmp_path)]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    rows = list(csv.DictReader((tmp_path / "worlds.csv").read_text().splitlines()))
    assert {row["regime"] for row in rows} == set(world_scores.REGIMES)
    assert len(rows) == 5 * (len(world_scores.POLICIES) + 1)  # medium difficulty only
    assert "habitus scores --worlds GameNPC --seeds 3 --steps 600" in (tmp_path / "worlds.md").read_text()
