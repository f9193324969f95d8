"""Who goes on under new rules, compared with who comes fresh to them."""

import dataclasses

import numpy as np
import pytest
from habitus.experiments import adaptation, results, summary

HEADER = {"world": {"score_per": "step", "boundary": "case"}, "machine": {"cpu": "", "python": ""}}


def cell(world, agent, score, kind="substrate"):
    return results.Cell(
        world=world, agent=agent, feedback="attributed", kind=kind, seeds=tuple(range(len(score))),
        score=np.asarray(score, np.float32), reward=np.asarray(score, np.float32),
        boundary=np.ones(np.shape(score), np.bool_), headers=(HEADER,) * len(score),
    )  # fmt: skip


@pytest.fixture
def loaded(make_study, fake, tmp_path):
    """Random scores 0 and the oracle 1. Who is new has 0, and .8 from step 1,000 on; who goes on has .4, then .8 from
    step 500 on."""
    worlds = [
        {"label": "on", "id": fake.ID, "steps": 3000},
        {"label": "fresh", "id": fake.ID, "steps": 2000, "fresh_of": {"world": "on", "at": 1000}},
    ]
    small = make_study(worlds=worlds, agents=[{"label": "agent", "kind": "fake_world:Bandit"}])
    new = np.where(np.arange(2000) < 1000, 0.0, 0.8)
    old = np.concatenate([np.ones(1000), np.where(np.arange(2000) < 500, 0.4, 0.8)])
    cells = [cell("on", "agent", [old, old + 0.1, old - 0.1]), cell("fresh", "agent", [new] * 3)]
    for world, n in (("on", 3000), ("fresh", 2000)):
        cells += [cell(world, "random", np.zeros((3, n)), "random"), cell(world, "oracle", np.ones((3, n)), "oracle")]
    return results.Results(
        folder=tmp_path, study=small, command="", failed=(), missing=(), n_foreign=0, runs=(),
        cells={(one.world, one.agent, one.feedback): one for one in cells},
    )  # fmt: skip


def test_transfer_and_the_steps_to_the_fresh_learners_level_are_told(loaded):
    [found] = adaptation.of(loaded)
    assert (found.world, found.fresh, found.agent) == ("on", "fresh", "agent")
    assert found.transfer.point == pytest.approx(0.4)
    assert 0.3 <= found.transfer.low < 0.4 < found.transfer.high <= 0.5
    assert found.level == pytest.approx(0.8)  # of steps 1,500 to 2,000
    assert found.steps_on.point == 750  # the bin 500 to 750 is the first at .72
    assert found.steps_fresh == dataclasses.replace(found.steps_fresh, point=1250, low=1250, high=1250)
    assert "| on | agent | attributed | .40 " in summary.markdown(loaded)


def test_a_level_that_is_never_reached_is_said(loaded):
    never = adaptation._reached(np.zeros((3, 4)), np.arange(1.0, 5.0), 0.5, np.random.default_rng(0))
    assert np.isnan(never.point)
    assert summary.steps_with_interval(never) == "never [never, never]"


def test_nothing_is_compared_where_runs_are_missing(loaded):
    without = {key: one for key, one in loaded.cells.items() if key[:2] != ("on", "agent")}
    assert adaptation.of(dataclasses.replace(loaded, cells=without)) == []


def test_leads_are_told_for_every_window(loaded):
    leads = summary.leads_of(loaded, "fresh", "attributed")
    assert set(leads) == {"random"}
    assert [round(leads["random"][window].point, 2) for window in loaded.windows_of("fresh")] == [0.0, 0.8, 0.4]


def test_who_was_run_in_another_variant_only_is_compared_in_that(loaded):
    stream = dataclasses.replace(cell("fresh", "streamer", np.zeros((3, 2000))), feedback="stream")
    more = {**loaded.cells, ("fresh", "streamer", "stream"): stream}
    assert "streamer" in summary.leads_of(dataclasses.replace(loaded, cells=more), "fresh", "attributed")
