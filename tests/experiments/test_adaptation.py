"""Who goes on under new rules, compared with who comes fresh to them."""

import dataclasses

import numpy as np
import pytest
from habitus.envs import regimes
from habitus.experiments import adaptation, results, study, summary

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


SCHEDULE = [[0, "base"], [4000, "regulation"], [8000, "base"], [12000, "regulation"]]
BY_TURN = np.repeat([[0.2, 0.8], [0.1, 0.6], [0.6, 0.8], [0.3, 0.8]], 2000, axis=1).ravel()  # [16,000] steps


def put_together(make_study, folder, worlds, scores, agents=("agent",)):
    """Results in which random scores 0 and the oracle 1; `scores` has (world, agent) -> [S, T]."""
    small = make_study(worlds=worlds, agents=[{"label": label, "kind": "fake_world:Bandit"} for label in agents])
    cells = [cell(world, agent, score) for (world, agent), score in scores.items()]
    for (world, _), score in scores.items():
        for kind, level in (("random", 0.0), ("oracle", 1.0)):
            cells.append(cell(world, kind, np.full(np.shape(score), level), kind))
    return results.Results(
        folder=folder, study=small, command="", failed=(), missing=(), n_foreign=0, runs=(),
        cells={(one.world, one.agent, one.feedback): one for one in cells},
    )  # fmt: skip


@pytest.fixture
def periodic(fake, make_study, tmp_path):
    """First and second rules in turn. Two agents, of which the other is .1 better from the first return on; both are
    also run where the second rules hold from the first step on, and score .25 there."""
    worlds = [
        {"label": "periodic", "id": fake.ID, "steps": 16000, "kwargs": {"regime": SCHEDULE}},
        {"label": "other size", "id": fake.ID, "steps": 2000, "kwargs": {"regime": [[0, "regulation"]], "size": 3}},
        {"label": "second", "id": fake.ID, "steps": 2000, "kwargs": {"regime": "shift", "shift_at": 0}},
    ]
    spread = np.array([[0.0], [0.1], [-0.1]])
    better = BY_TURN + np.where(np.arange(16000) < 8000, 0.0, 0.1)
    scores = {
        ("periodic", "agent"): BY_TURN + spread,
        ("periodic", "other"): better + spread,
        ("other size", "agent"): np.zeros((3, 2000)),
        ("second", "agent"): np.full((3, 2000), 0.25),
        ("second", "other"): np.full((3, 2000), 0.25),
    }
    return put_together(make_study, tmp_path, worlds, scores, ("agent", "other"))


def test_retention_compares_a_return_with_the_end_of_the_time_before(periodic):
    found = [one for one in adaptation.returns(periodic) if one.agent == "agent"]
    assert [(one.world, one.at, one.level) for one in found] == [("periodic", 8000, 0), ("periodic", 12000, 10)]
    first, second = found
    assert (first.before.point, first.again.point) == (pytest.approx(0.8), pytest.approx(0.6))  # 3-4k and 8-9k
    assert first.retention.point == pytest.approx(0.75)
    assert second.retention.point == pytest.approx(0.5)  # .3 of .6
    # one of three seeds makes up a resample in 1 of 27, more often than 2.5 %: the worst has .5 / .7, the best .7 / .9
    assert (first.retention.low, first.retention.high) == (pytest.approx(5 / 7), pytest.approx(7 / 9))


def test_a_return_is_compared_with_the_same_agent_when_it_was_new_to_the_rules(periodic):
    first, second = (one for one in adaptation.returns(periodic) if one.agent == "agent")
    assert first.fresh.point == pytest.approx(0.4)  # .6 less the .2 of its own first steps
    assert first.fresh.high - first.fresh.low == pytest.approx(0, abs=1e-6)  # paired: every seed differs by as much
    assert second.fresh.point == pytest.approx(0.05)  # .3 less .25 where the second rules are the first
    without = {key: one for key, one in periodic.cells.items() if key[0] != "second"}
    _, second, *_ = adaptation.returns(dataclasses.replace(periodic, cells=without))
    assert second.fresh is None


def test_others_are_compared_with_the_first_agent_at_a_return(periodic):
    assert [one.lead and round(one.lead.point, 3) for one in adaptation.returns(periodic)] == [None, None, 0.1, 0.1]


def test_returns_stand_in_the_summary(periodic):
    told = summary.markdown(periodic)
    assert "## Rules that return" in told
    assert "| periodic | first | 8,000 | agent | attributed | .80 [.70, .90] | .60 [.50, .70] | .75 [.71, .78]" in told
    assert "| periodic | second | 12,000 | other | attributed |" in told


def test_nobody_can_keep_a_share_of_nothing(periodic):
    key = ("periodic", "agent", "attributed")
    flat = dataclasses.replace(periodic.cells[key], score=np.full((3, 16000), 0.04, np.float32))
    found = adaptation.returns(dataclasses.replace(periodic, cells={**periodic.cells, key: flat}))
    assert [one.retention for one in found if one.agent == "agent"] == [None, None]


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"regime": "shift", "shift_at": 4000},
        {"regime": "drift"},
        {"regime": [[0, "base"], [4000, "base"]]},
        {"regime": [[0, "base"], [4000, "regulation"], [4500, "base"]]},  # nobody could settle in
        {"regime": [[0, "base"], [4000, "regulation"], [15500, "base"]]},  # the runs end
    ],
    ids=str,
)
def test_where_no_rules_return_nothing_is_told(kwargs, fake, make_study, tmp_path):
    worlds = [{"label": "world", "id": fake.ID, "steps": 16000, "kwargs": kwargs}]
    found = put_together(make_study, tmp_path, worlds, {("world", "agent"): np.ones((2, 16000))})
    assert adaptation.returns(found) == adaptation.redraws(found) == []


def test_a_named_schedule_is_read_too(fake, make_study, tmp_path):
    worlds = [{"label": "world", "id": fake.ID, "steps": 16000, "kwargs": {"regime": "periodic", "shift_at": 4000}}]
    found = put_together(make_study, tmp_path, worlds, {("world", "agent"): [BY_TURN] * 2})
    assert [(one.at, one.retention.point) for one in adaptation.returns(found)] == [
        (8000, pytest.approx(0.75)),
        (12000, pytest.approx(0.5)),
    ]


def test_the_cost_of_a_redraw_is_what_the_next_steps_lose(fake, make_study, tmp_path):
    kwargs = {"regime": [[0, "base"], [2000, "base"]], "redraw_styles": True}
    worlds = [{"label": "world", "id": fake.ID, "steps": 4000, "kwargs": kwargs}]
    score = np.concatenate([np.zeros(1000), np.full(1000, 0.8), np.full(1000, 0.5), np.full(1000, 0.8)])
    made = put_together(make_study, tmp_path, worlds, {("world", "agent"): [score, score - 0.2, score + 0.1]})
    [found] = adaptation.redraws(made)
    assert (found.world, found.agent, found.at) == ("world", "agent", 2000)
    assert found.cost.point == pytest.approx(0.3)
    assert found.cost.high - found.cost.low == pytest.approx(0, abs=1e-6)  # paired by seed
    assert (found.before.point, found.after.point) == (pytest.approx(0.8 - 0.1 / 3), pytest.approx(0.5 - 0.1 / 3))
    assert "| world | 2,000 | agent | attributed | " in summary.markdown(made)
    assert adaptation.returns(made) == []  # the rules have never gone


def levels_of(entry, n_steps):
    """[T] level of the rules at every step of a world of a study."""
    kwargs = entry.kwargs
    listed = regimes.schedule(kwargs.get("regime", "none"), kwargs.get("horizon", n_steps), kwargs.get("shift_at"))
    return listed.levels[np.searchsorted(listed.steps, np.arange(n_steps), side="right") - 1]


@pytest.mark.parametrize("name", study.named_studies())
def test_who_comes_fresh_meets_the_rules_of_who_goes_on(name):
    loaded = study.load(name)
    by_label = {entry.label: entry for entry in loaded.worlds}
    for fresh in loaded.worlds:
        if fresh.fresh_of is not None:
            other, at = by_label[fresh.fresh_of.world], fresh.fresh_of.at
            met = levels_of(fresh, fresh.steps or loaded.steps)
            levels = levels_of(other, other.steps or loaded.steps)
            n = min(len(met), len(levels) - at)
            np.testing.assert_array_equal(met[:n], levels[at : at + n], err_msg=fresh.label)
            assert met[0] != levels[at - 1]  # they are new rules
