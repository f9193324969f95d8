"""Records put together: the numbers of a table follow from the records, by hand."""

import csv
import dataclasses
import io
import shutil

import numpy as np
import pytest
from habitus.experiments import execution, records, report, results, summary, tensorboard
from habitus.experiments.errors import RecordError
from habitus.experiments.plan import runs_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


@pytest.fixture
def folder(plain_folder):
    return plain_folder


def test_a_score_is_that_of_the_records(folder):
    loaded = results.load(folder)
    row = loaded.row("fake", "bandit", "attributed", (20, 60))
    by_kind = {"bandit": [], "random": [], "oracle": []}
    for run in runs_of(loaded.study):
        if run.feedback == "attributed":
            trace = records.read(folder / records.RUNS, run.hash).steps
            by_kind[run.agent].append(float(trace.score[20:60].sum() / trace.boundary[20:60].sum()))
    low, high = np.mean(by_kind["random"]), np.mean(by_kind["oracle"])
    expected = [(value - low) / (high - low) for value in by_kind["bandit"]]
    assert list(row.values.values()) == pytest.approx(expected)
    assert row.mean.point == pytest.approx(np.mean(expected))
    assert row.raw.point == pytest.approx(np.mean(by_kind["bandit"]))
    assert row.mean.low <= row.mean.point <= row.mean.high


def test_the_references_are_zero_and_one(folder):
    loaded = results.load(folder)
    for window in ((0, 20), (20, 60)):
        assert loaded.row("fake", "random", "attributed", window).mean.point == pytest.approx(0)
        assert loaded.row("fake", "oracle", "attributed", window).mean.point == pytest.approx(1)


def test_agents_are_compared_in_the_same_variant_and_with_what_does_not_learn(folder):
    loaded = results.load(folder)
    for feedback in ("attributed", "stream"):
        assert [row.agent for row, _ in loaded.paired("fake", feedback, (20, 60))] == ["random"]


def test_a_report_of_the_same_records_is_the_same(folder):
    assert report.html(results.load(folder)) == report.html(results.load(folder))


def test_a_run_that_is_missing_or_damaged_is_named_and_left_out(folder):
    first, second = [run for run in runs_of(results.load(folder).study) if run.agent == "bandit"][:2]
    shutil.rmtree(folder / records.RUNS / first.hash)
    (folder / records.RUNS / second.hash / "steps.npz").write_bytes(b"")
    loaded = results.load(folder)
    assert {run.hash for run, _ in loaded.missing} == {first.hash, second.hash}
    assert loaded.cells["fake", "bandit", "attributed"].seeds == (2,)
    assert any("2 runs of the study are missing or damaged" in warning for warning in summary.warnings(loaded))


def test_records_of_another_study_are_not_averaged_in(folder, make_study):
    other = make_study(steps=61, seeds=[0])
    for run in runs_of(other):
        execution.execute(run, folder / records.RUNS)
    loaded = results.load(folder)
    assert loaded.n_foreign == 3
    assert loaded.cells["fake", "bandit", "attributed"].score.shape == (3, 60)


def test_a_run_that_closed_nothing_has_no_score_and_is_spoken_of(folder):
    loaded = results.load(folder)
    key = ("fake", "bandit", "attributed")
    boundary = loaded.cells[key].boundary.copy()
    boundary[1, 20:60] = False
    cells = {**loaded.cells, key: dataclasses.replace(loaded.cells[key], boundary=boundary)}
    changed = dataclasses.replace(loaded, cells=cells)
    assert set(changed.row(*key, (20, 60)).values) == {0, 2}
    assert set(changed.row(*key, (0, 20)).values) == {0, 1, 2}
    [said] = [warning for warning in summary.warnings(changed) if "have no score there" in warning]
    assert said.startswith("bandit (attributed) in fake: 1 of 3 runs ended no case in steps 20-60")
    curve = next(c for c in changed.curves if (c.agent, c.feedback) == ("bandit", "attributed"))
    assert np.isnan(curve.point).any()
    assert "nan" not in report.html(changed).split("<script>")[0].lower()


@pytest.mark.parametrize("empty", [True, False])
def test_a_folder_without_results_is_refused(tmp_path, make_study, empty):
    if not empty:
        (tmp_path / results.STUDY).write_text(make_study().to_yaml())
    with pytest.raises(RecordError, match=r"there is no study.yaml" if empty else "has no whole record"):
        results.load(tmp_path)


def test_the_csv_holds_every_row_and_the_numbers_of_the_table(folder):
    loaded = results.load(folder)
    lines = list(csv.DictReader(io.StringIO(summary.scores_csv(loaded))))
    assert len(lines) == len(loaded.rows) == 2 * 4
    line = next(one for one in lines if one["agent"] == "bandit" and one["from_step"] == "20")
    assert float(line["score_mean"]) == pytest.approx(
        loaded.row("fake", "bandit", "attributed", (20, 60)).mean.point, abs=1e-5
    )
    seeds = list(csv.DictReader(io.StringIO(summary.seeds_csv(loaded))))
    assert len(seeds) == 3 * 8
    assert {one["run"] for one in seeds} == {run.hash for run in runs_of(loaded.study)}


def test_markdown_and_html_show_the_numbers_of_the_table(folder):
    loaded = results.load(folder)
    texts = summary.markdown(loaded), report.html(loaded)
    for row in loaded.rows:
        for text in texts:
            assert summary.number(row.mean.point) in text
            assert summary.interval(row.mean) in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.424, ".42"),
        (-0.05, "-.05"),
        (1.0, "1.00"),
        (-0.001, ".00"),
        (float("nan"), "–"),
        (-1.234, "-1.23"),
        (10.05, "10.05"),
    ],
)
def test_numbers_are_written_as_people_read_them(value, shown):
    assert summary.number(value) == shown


@pytest.mark.parametrize(("window", "name"), [((0, 500), "0-500"), ((1000, 2000), "1-2k"), ((500, 1000), "500-1000")])
def test_windows_are_named_as_people_say_them(window, name):
    assert summary.window_name(window) == name


def test_tensorboard_reads_what_the_records_say(folder):
    loaded = results.load(folder)
    logdir = tensorboard.export(loaded)
    assert len(list(logdir.rglob("events.out.*"))) == 12
    events = EventAccumulator(str(logdir / "fake" / "bandit" / "stream" / "seed_1"))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert tags == {
        "rollout/ep_rew_mean", "time/fps", "eval/mean_reward", "habitus/score", "habitus/regret", "habitus/epsilon",
    }  # fmt: skip
    run = next(r for r in runs_of(loaded.study) if (r.agent, r.feedback, r.seed) == ("bandit", "stream", 1))
    trace = records.read(folder / records.RUNS, run.hash).steps
    last = {tag: events.Scalars(tag)[-1] for tag in tags}
    assert {event.step for event in last.values()} == {60}
    assert last["rollout/ep_rew_mean"].value == pytest.approx(float(trace.reward.mean()))
    assert last["habitus/regret"].value == pytest.approx(float((1 - trace.score).sum()))
    assert last["habitus/epsilon"].value == pytest.approx(0.2)


def test_exporting_again_does_not_double_the_events(folder):
    loaded = results.load(folder)
    for _ in range(2):
        logdir = tensorboard.export(loaded)
    assert len(list(logdir.rglob("events.out.*"))) == 12
