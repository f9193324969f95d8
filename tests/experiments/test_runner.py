"""A study goes on where it stopped, survives what fails in it, and ends with the same bytes."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import rich.console
from habitus.experiments import execution, lock, progress, records, runner
from habitus.experiments.errors import NewerRecordError, StudyError
from habitus.experiments.plan import runs_of


@pytest.fixture
def quiet(tmp_path):
    """A console that writes to a file, as without a terminal."""
    with (tmp_path / "log.txt").open("w") as file:
        yield rich.console.Console(file=file, width=200)


def log(tmp_path):
    return (tmp_path / "log.txt").read_text()


def contents(folder, run):
    """What must be equal in two executions of a run: the steps to the byte, the header but for time and machine."""
    header = json.loads((folder / "runs" / run / "record.json").read_text())
    stable = {key: value for key, value in header.items() if key not in records.VOLATILE}
    return (folder / "runs" / run / "steps.npz").read_bytes(), stable


def test_what_is_recorded_is_not_run_again_and_what_is_lost_is_made_anew_equal_to_the_byte(make_study, tmp_path, quiet):
    small = make_study()
    hashes = [run.hash for run in runs_of(small)]
    assert runner.run_study(small, tmp_path, jobs=2, console=quiet) == runner.Outcome(9, 0, ())
    before = {run: contents(tmp_path, run) for run in hashes}
    written = {run: (tmp_path / "runs" / run).stat().st_mtime_ns for run in hashes}
    lost, damaged = hashes[0], hashes[4]
    for file in (tmp_path / "runs" / lost).iterdir():
        file.unlink()
    (tmp_path / "runs" / lost).rmdir()
    path = tmp_path / "runs" / damaged / "steps.npz"
    path.write_bytes(path.read_bytes()[:-20])

    assert runner.run_study(small, tmp_path, jobs=1, console=quiet) == runner.Outcome(9, 7, ())
    assert {run: contents(tmp_path, run) for run in hashes} == before
    again = {run for run in hashes if (tmp_path / "runs" / run).stat().st_mtime_ns != written[run]}
    assert again == {lost, damaged}
    quiet.file.flush()
    assert f"damaged  {path}" in log(tmp_path)
    assert "7 of 9 runs are recorded already, 2 to do" in log(tmp_path)


def test_a_run_that_fails_and_one_that_dies_are_recorded_and_the_rest_goes_on(make_study, tmp_path, quiet):
    small = make_study(agents=[{"kind": "fake_world:Crasher"}, {"kind": "fake_world:Killer"}])
    outcome = runner.run_study(small, tmp_path, jobs=2, console=quiet)
    assert {(run.agent, run.seed) for run, _ in outcome.failed} == {("Crasher", 1), ("Killer", 1)}
    by_name = {(run.agent, run.seed): records.read(tmp_path / "runs", run.hash) for run in runs_of(small)}
    assert sum(record.is_complete for record in by_name.values()) == 10
    error = by_name["Crasher", 1].header["error"]
    assert (error["type"], error["message"]) == ("RuntimeError", "out of ideas")
    assert 'raise RuntimeError("out of ideas")' in error["traceback"]
    assert "died twice" in by_name["Killer", 1].header["error"]["message"]


def test_an_agent_that_leaves_the_process_is_a_failed_run(make_study, tmp_path):
    small = make_study(agents=[{"kind": "fake_world:Quitter"}], seeds=[0, 1])
    endings = {run.seed: execution.execute(run, tmp_path) for run in runs_of(small) if run.agent == "Quitter"}
    assert [endings[seed].error for seed in (0, 1)] == [None, "SystemExit: 4"]
    assert records.read(tmp_path, endings[1].run).header["error"]["type"] == "SystemExit"


def test_a_failed_run_is_tried_again(make_study, tmp_path, quiet):
    small = make_study(agents=[{"kind": "fake_world:Crasher"}], seeds=[1])
    for _ in range(2):
        outcome = runner.run_study(small, tmp_path, jobs=1, console=quiet)
        assert (outcome.n_skipped, len(outcome.failed)) == (outcome.n_runs - 1, 1) or outcome.n_skipped == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"worlds": [{"label": "fake", "id": "fake_world:habitus/Fake-v0", "kwargs": {"colour": "blue"}}]},
            "world `fake` .*: `colour` must be plain or striped, got 'blue'",
        ),
        ({"agents": [{"kind": "fake_world:Bandit", "settings": {"epsilom": 1}}]}, "agent `Bandit` .*epsilom.*epsilon"),
        ({"agents": [{"kind": "fake_world:Bandti"}]}, "agent `Bandti` .*'Bandti'.*did you mean 'Bandit'"),
        ({"agents": [{"kind": "no_such_module:Agent"}]}, "no_such_module"),
        (
            {"agents": [{"kind": "fake_world:Quitter", "settings": {"at_once": True}}]},
            "`Quitter` .*SystemExit: 4",
        ),
        ({"agents": [{"kind": "best_fixed", "settings": {"action": "twoo"}}]}, "did you mean 'two'"),
    ],
)
def test_what_cannot_be_built_is_said(make_study, changes, said):
    [complaint] = execution.check([run for run in runs_of(make_study(**changes)) if run.seed == 0])
    assert re.search(said, complaint)


def test_what_cannot_be_built_is_refused_before_anything_is_run(make_study, fake, tmp_path, quiet):
    worlds = [{"label": "fake", "id": fake.ID}, {"label": "blue", "id": fake.ID, "kwargs": {"colour": "blue"}}]
    with pytest.raises(StudyError, match="world `blue`"):
        runner.run_study(make_study(worlds=worlds), tmp_path, jobs=1, console=quiet)
    assert list((tmp_path / "runs").iterdir()) == []


def test_what_can_be_built_is_not_complained_about(make_study):
    assert execution.check(runs_of(make_study(agents=[{"kind": "fake_world:Bandit"}, {"kind": "linucb"}]))) == []


def test_half_written_records_of_a_killed_study_are_removed(make_study, tmp_path, quiet):
    (tmp_path / "runs" / ".writing-0123-99").mkdir(parents=True)
    runner.run_study(make_study(seeds=[0]), tmp_path, jobs=1, console=quiet)
    assert not list((tmp_path / "runs").glob(".*"))


def test_a_file_where_a_record_belongs_is_named_and_replaced(make_study, tmp_path, quiet):
    small = make_study(seeds=[0])
    path = tmp_path / "runs" / runs_of(small)[0].hash
    path.parent.mkdir()
    path.write_text("not a record")
    assert runner.run_study(small, tmp_path, jobs=1, console=quiet).failed == ()
    quiet.file.flush()
    assert f"damaged  {path}" in log(tmp_path)
    assert records.read(path.parent, path.name).is_complete


def test_a_record_of_a_newer_format_is_refused_and_kept(make_study, tmp_path, quiet):
    small = make_study(seeds=[0])
    path = tmp_path / "runs" / runs_of(small)[0].hash / "record.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"format": 99}')
    with pytest.raises(NewerRecordError, match="got 99; read it with a newer habitus"):
        runner.run_study(small, tmp_path, jobs=1, console=quiet)
    assert path.read_text() == '{"format": 99}'


def test_a_second_runner_is_refused_and_the_lock_of_a_dead_one_is_taken_over(make_study, tmp_path, quiet):
    runs = tmp_path / "runs"
    runs.mkdir()
    with lock.held(runs):
        kept = (runs / lock.LOCK).read_text()
        with pytest.raises(StudyError, match=rf"another habitus \(process {os.getpid()}\) runs a study in this folder"):
            runner.run_study(make_study(), tmp_path, jobs=1, console=quiet)
        assert (runs / lock.LOCK).read_text() == kept
    assert not (runs / lock.LOCK).exists()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for stale in (str(dead.pid), f"{os.getpid()} 1"):  # the second: its number was used again
        (runs / lock.LOCK).write_text(stale)
        with lock.held(runs):
            assert (runs / lock.LOCK).read_text() == kept
    (runs / lock.LOCK).write_text("")
    with pytest.raises(StudyError, match=r"remove .*lock"), lock.held(runs):
        pass


def test_long_batches_go_first_and_hold_one_group(make_study):
    runs = runs_of(make_study(agents=[{"kind": "rules"}, {"kind": "dqn"}], steps=3000, seeds={"count": 8}))
    batches = runner.batches_of(runs, jobs=2)
    assert sorted(run.hash for batch in batches for run in batch) == sorted(run.hash for run in runs)
    assert all(len({run.group for run in batch}) == 1 for batch in batches)
    costs = [sum(map(progress.rough_cost, batch)) for batch in batches]
    assert costs == sorted(costs, reverse=True)
    assert max(len(batch) for batch in batches) > 1


def test_an_agent_that_owns_its_loop_meets_the_same_episode(make_study, tmp_path):
    first, second = (
        execution.execute(run, tmp_path)
        for run in runs_of(make_study(agents=[{"kind": "fake_world:OwnsLoop"}], seeds=[4]))
        if run.kind in ("fake_world:OwnsLoop", "oracle")
    )
    owns, oracle = (records.read(tmp_path, ending.run).steps for ending in (first, second))
    assert (owns.action == 0).all()
    assert ((oracle.action == 0) == (owns.score == 1)).all()  # the oracle plays 0 just where 0 is right


def test_the_best_fixed_action_is_found_on_a_seed_of_its_own(make_study, tmp_path):
    run = next(run for run in runs_of(make_study(agents=[{"kind": "best_fixed"}])) if run.kind == "best_fixed")
    ending = execution.execute(run, tmp_path)
    record = records.read(tmp_path, ending.run)
    assert (record.steps.action == record.header["agent"]["action"]).all()


def test_the_variant_reaches_an_agent_that_asks_for_it(make_study):
    for run in runs_of(make_study(feedback=["stream", "attributed"])):
        recorder, agent = execution.build(run)
        assert recorder.unwrapped.feedback == run.feedback
        assert getattr(agent, "credit", run.feedback) == run.feedback


def test_a_record_says_where_and_with_what_it_was_made(make_study, tmp_path):
    run = runs_of(make_study())[0]
    execution.execute(run, tmp_path)
    head = records.read(tmp_path, run.hash).header
    assert head["spec"]["habitus"]
    assert head["machine"]["cpu"]
    assert head["machine"]["versions"]["numpy"]
    assert head["world"] == {
        "name": "Fake", "version": 1, "actions": ["zero", "one", "two"], "boundary": "case", "score_per": "boundary",
    }  # fmt: skip
    assert head["timing"]["steps_per_s"] > 0
    assert head["decision"]["step"] == 59
    assert sum(path["contribution"] for path in head["decision"]["paths"]) == pytest.approx(head["decision"]["score"])


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_a_study_that_is_interrupted_or_killed_goes_on_and_leaves_no_worker_behind(make_study, tmp_path, quiet, sent):
    small = make_study(agents=[{"kind": "fake_world:Sleeper"}], seeds={"count": 4}, steps=100)
    script = textwrap.dedent(f"""
        import signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background are born deaf to Ctrl-C
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from habitus.experiments import runner, study
        study.WORLD_IDS = (*study.WORLD_IDS, "habitus/Fake-v0")
        from pathlib import Path
        if __name__ == "__main__":
            try:
                runner.run_study(study.load({str(tmp_path / "small.yaml")!r}), Path({str(tmp_path)!r}), jobs=2)
            except runner.Interrupted:
                sys.exit(130)
    """)
    (tmp_path / "small.yaml").write_text(small.to_yaml())
    (tmp_path / "main.py").write_text(script)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "main.py")], stderr=subprocess.DEVNULL, env={**os.environ, "SLEEPER_S": "0.5"}
    )
    n_runs = len(runs_of(small))
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list((tmp_path / "runs").glob("[0-9a-f]*"))) < 2:
        time.sleep(0.02)
    children = _children(process.pid)
    os.kill(process.pid, sent)
    assert process.wait(timeout=60) == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    n_done = len(list((tmp_path / "runs").glob("[0-9a-f]*")))
    assert 2 <= n_done < n_runs
    while time.monotonic() < deadline and any(map(_is_alive, children)):
        time.sleep(0.02)
    assert not [child for child in children if _is_alive(child)]
    outcome = runner.run_study(small, tmp_path, jobs=2, console=quiet)
    assert (outcome.n_skipped, outcome.failed) == (n_done, ())


def _children(pid):
    """Living processes whose parent is `pid`; empty where there is no /proc."""
    processes = [int(folder.name) for folder in Path("/proc").glob("[0-9]*")]
    return [process for process in processes if _is_alive(process) and _stat(process)[1] == str(pid)]


def _is_alive(pid):
    return _stat(pid)[0] not in "ZX"  # a zombie has ended and waits to be counted


def _stat(pid):
    """State and parent of a process; "X" where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[:2]
    except OSError:
        return ["X", ""]
