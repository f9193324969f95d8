"""The command: what it prints, its exit codes, and one clear line for each mistake."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from habitus import __version__
from habitus.experiments import cli, cli_errors, listing, records, results
from habitus.experiments.plan import runs_of
from typer.testing import CliRunner


@pytest.fixture
def habitus(monkeypatch):
    """Runs the command; returns (exit code, everything it said on one line)."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words):
        done = CliRunner().invoke(cli.app, [str(word) for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, " ".join(done.output.split())

    return call


@pytest.fixture
def small_file(make_study, tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(make_study().to_yaml())
    return path


@pytest.fixture
def recorded(plain_folder):
    return plain_folder


def test_a_study_is_run_and_reported_with_one_command(habitus, small_file, tmp_path):
    out = tmp_path / "out"
    code, said = habitus("run", small_file, "--out", out, "--seeds", 2, "--steps", 40, "--jobs", 2)
    assert code == 0
    assert "done fake · bandit · attributed: 2 runs" in said
    assert "fake: mean normalised score by steps" in said
    assert f"report: {out / 'report.html'}" in said
    for name in ("report.html", "summary.csv", "summary.md", "seeds.csv", "study.yaml"):
        assert (out / name).stat().st_size > 0
    assert list((out / "tensorboard").rglob("events.out.*"))
    command = f"habitus run {small_file} --out {out} --seeds 2 --steps 40"
    assert json.loads((out / "provenance.json").read_text())["command"] == command
    assert command in (out / "report.html").read_text()

    code, said = habitus("run", small_file, "--out", out, "--seeds", 2, "--steps", 40)
    assert code == 0
    assert "6 of 6 runs are recorded already, 0 to do" in said


def test_failed_runs_give_exit_code_1_and_their_error(habitus, make_study, tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(make_study(agents=[{"kind": "fake_world:Crasher"}], seeds=[0, 1]).to_yaml())
    code, said = habitus("run", path, "--out", tmp_path / "out", "--jobs", 1)
    assert code == 1
    assert "RuntimeError: out of ideas" in said
    assert "1 of 6 runs failed." in said
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_study_that_fails_altogether_gives_no_report(habitus, make_study, tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(make_study(agents=[{"kind": "fake_world:Crasher"}], seeds=[1]).to_yaml())
    code, _ = habitus("run", path, "--out", tmp_path / "out", "--jobs", 1, "--agents", "Crasher")
    assert code == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "quickstrat"], "did you mean `quickstart`?"),
        (["run", "quickstart", "--seeds", "0"], "`--seeds` must be at least 1, got 0."),
        (["run", "quickstart", "--steps", "-5"], "`--steps` must be at least 1, got -5."),
        (["run", "quickstart", "--out", ""], "`--out` must name a folder, got an empty text"),
        (["run", "quickstart", "--jobs", "0"], "`--jobs` must be at least 1, got 0."),
        (["run", "quickstart", "--agents", "dqm"], "got 'dqm'; did you mean `dqn`?"),
        (["run", "quickstart", "--worlds", "french"], "`--worlds`: expected one of synthetic, spanish, got 'french'"),
        (["report", "nowhere"], "`nowhere`: expected results of a study"),
        (["explain", "nowhere"], "`nowhere`: expected results of a study"),
        (["list", "agent"], "got 'agent'; did you mean `agents`?"),
    ],
)
def test_a_mistake_gives_one_clear_message_and_exit_code_2(habitus, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    code, text = habitus(*words)
    assert code == 2
    assert text.startswith("error: ")
    assert said in text
    assert "Traceback" not in text


def test_the_folder_of_another_study_is_refused(habitus, recorded):
    code, said = habitus("run", "quickstart", "--out", recorded)
    assert code == 2
    assert "holds the results of study `small`, not of `quickstart`; choose another `--out`." in said


def test_a_refused_run_leaves_the_description_of_the_results_as_it_was(habitus, make_study, recorded, tmp_path):
    before = (recorded / "study.yaml").read_bytes()
    path = tmp_path / "wrong.yaml"
    path.write_text(make_study(agents=[{"kind": "fake_world:Bandit", "settings": {"epsilom": 1}}]).to_yaml())
    code, said = habitus("run", path, "--out", recorded, "--jobs", 1)
    assert (code, "epsilom" in said) == (2, True)
    assert (recorded / "study.yaml").read_bytes() == before
    assert not (recorded / "provenance.json").exists()


def test_an_out_that_is_a_file_is_refused(habitus, small_file):
    code, said = habitus("run", small_file, "--out", small_file)
    assert code == 2
    assert "error:" in said
    assert "small.yaml" in said


def test_report_is_written_again_from_the_records(habitus, recorded):
    code, said = habitus("report", recorded)
    assert code == 0
    assert "bandit" in said
    assert (recorded / "report.html").is_file()


def test_a_decision_is_explained_as_it_was_taken(habitus, recorded):
    code, said = habitus("explain", recorded, "--seed", 1, "--step", 30)
    assert code == 0
    assert "fake · bandit · attributed · seed 1 · step 30" in said
    assert re.search(r"saw: case = (red|green|blue)", said)
    assert re.search(r"I choose (zero|one|two) because it brought", said)
    action = records.read(recorded / "runs", _run(recorded, "bandit", 1)).steps.action[30]
    assert f"did: {('zero', 'one', 'two')[action]}" in said


def test_a_record_that_the_agent_does_not_repeat_is_not_explained(habitus, recorded):
    run = _run(recorded, "bandit", 1)
    record = records.read(recorded / "runs", run)
    action = record.steps.action.copy()
    action[10] = (action[10] + 1) % 3
    changed = {**vars(record.steps), "action": action}
    header = {key: value for key, value in record.header.items() if key not in ("digest", "format", "steps_sha256")}
    records.write(recorded / "runs", header, records.Steps(**changed))
    assert habitus("explain", recorded, "--seed", 1, "--step", 9)[0] == 0
    code, said = habitus("explain", recorded, "--seed", 1, "--step", 30)
    assert code == 2
    assert f"run {run}: step 10: the record says" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--agent", "bandti"],
            "expected one of bandit, random, oracle, got bandti; did you mean `bandit`?",
        ),
        (["--agent", "random"], "agent `random` (random) does not explain its decisions"),
        (["--step", "60"], "`--step` must lie in [0, 60), the steps of the run, got 60."),
        (["--seed", "7"], "`--seed`: expected one of 0, 1, 2, got 7"),
    ],
)
def test_what_cannot_be_explained_is_said(habitus, recorded, words, said):
    code, text = habitus("explain", recorded, *words)
    assert code == 2
    assert said in text


def test_everything_there_is_can_be_listed(habitus):
    code, said = habitus("list")
    assert code == 0
    for name in ("habitus/CreditReview-v0", "tabular_q", "cautious", "credit-real", "lending_club"):
        assert name in said
    for kind in listing.KINDS:
        assert all(line for line in listing.of(kind).values()), kind


def test_the_version_is_told(habitus):
    assert habitus("--version") == (0, f"habitus {__version__}")


def test_the_command_starts_at_once_and_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['habitus', '--help']\n"
        "from habitus.experiments.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ('jax', 'torch', 'matplotlib', 'pandas', 'tensorboard', 'scipy')\n"
        "print('heavy:', [name for name in heavy if name in sys.modules])"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout
    assert time.monotonic() - began < 5  # under a second on an idle machine


def test_a_named_study_runs_in_a_process_of_its_own(tmp_path):
    small = {
        "name": "tiny",
        "question": "Does the command run?",
        "steps": 30,
        "seeds": [0],
        "worlds": [{"label": "synthetic", "id": "habitus/CreditReview-v0"}],
        "agents": [{"kind": "rules"}],
    }
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(small))
    command = [
        sys.executable,
        "-c",
        "from habitus.experiments.cli import main; main()",
        "run",
        "tiny.yaml",
        "--jobs",
        "1",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "COLUMNS": "160"}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "rules" in done.stdout
    assert (Path(tmp_path) / "results" / "tiny" / "report.html").is_file()


def _run(folder, agent, seed):
    loaded = results.load(folder)
    return next(run.hash for run in runs_of(loaded.study) if (run.agent, run.seed) == (agent, seed))


def test_a_reader_of_a_pipe_that_has_seen_enough_is_no_mistake():
    with pytest.raises(BrokenPipeError), cli_errors.clear_errors():
        raise BrokenPipeError(32, "Broken pipe")  # `cli.main` ends quietly on it
