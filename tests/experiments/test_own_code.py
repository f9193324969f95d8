"""An agent in a file beside the study is found, and is known by its code."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from habitus.experiments import own_code, plan

AGENT = textwrap.dedent("""
    class Mine:
        def __init__(self, env, *, seed=0): pass
        def begin(self, observation, info): pass
        def act(self, observation): return 0
        def observe(self, transition): pass
""")
STUDY = {
    "name": "own",
    "question": "Is it found?",
    "steps": 20,
    "seeds": [0],
    "worlds": [{"label": "synthetic", "id": "habitus/CreditReview-v0"}],
    "agents": [{"kind": "my_own_agent:Mine"}],
}


def habitus(cwd, *words):
    command = [sys.executable, "-c", "from habitus.experiments.cli import main; main()", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={**os.environ, "COLUMNS": "160"}, check=False
    )


def test_the_path_is_as_before_after_the_block(tmp_path):
    before = list(sys.path)
    with own_code.importable(tmp_path):
        assert str(tmp_path) in sys.path
        assert sys.path.index(str(tmp_path)) > next(
            at for at, p in enumerate(sys.path) if Path(p, "random.py").exists()
        )
    assert sys.path == before


def test_what_the_package_has_is_not_code_of_the_user():
    assert own_code.module_of("linucb") is None
    assert own_code.module_of("habitus.agents.bandits:LinUCB") is None
    assert own_code.module_of("mine:Agent") == "mine"


def test_an_agent_beside_the_study_is_run_from_anywhere(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "my_own_agent.py").write_text(AGENT)
    (tmp_path / "study" / "own.yaml").write_text(json.dumps(STUDY))
    done = habitus(tmp_path, "run", "study/own.yaml", "--jobs", 1)
    assert done.returncode == 0, done.stderr
    assert habitus(tmp_path, "report", "results/own").returncode == 0
    done = habitus(tmp_path, "explain", "results/own", "--agent", "Mine")
    assert "agent `Mine` (my_own_agent:Mine) does not explain its decisions" in done.stderr


ROWS = [f"{'paid' if i % 4 else 'default'},{900 + 37 * i % 1100}" for i in range(200)]


@pytest.mark.slow
@pytest.mark.parametrize("is_noted", [True, False])
def test_results_outlive_the_table_and_the_module_that_they_were_made_of(tmp_path, is_noted):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    world = {"label": "mine", "id": "habitus/CreditReview-v0", "kwargs": {"applicants": "loans.csv"}}
    (here / "own.yaml").write_text(json.dumps(STUDY | {"worlds": [world]}))
    (here / "my_own_agent.py").write_text(AGENT)
    (here / "loans.csv").write_text("\n".join(["status,income", *ROWS]))
    (here / "loans.yaml").write_text("outcome: {column: status, good: paid}\nnumeric: [income]\n")
    out = tmp_path / "out"
    done = habitus(tmp_path, "run", "here/own.yaml", "--jobs", 1, "--out", out)
    assert done.returncode == 0, done.stderr
    here.rename(there)
    if not is_noted:
        (out / "provenance.json").unlink()
    done = habitus(tmp_path, "report", out)
    assert (done.returncode, "Mine" in done.stdout, "missing" in done.stdout) == (0, True, False), done.stderr
    done = habitus(tmp_path, "explain", out)
    assert done.returncode == 2
    assert "is needed again, and is gone" in done.stderr
    done = habitus(tmp_path, "run", "there/own.yaml", "--out", out)
    assert "3 of 3 runs are recorded already" in done.stderr


@pytest.mark.parametrize("name", ["kind", "world_id"])
def test_changed_code_is_another_run_and_code_of_the_package_is_not(tmp_path, name):
    made = {"world": "w", "agent": "a", "world_id": "CartPole-v1", "world_kwargs": {}, "kind": "random"}
    made |= {"settings": {}, "feedback": "attributed", "steps": 10, "seed": 0, name: "changing_code:Thing-v0"}
    path, hashes = tmp_path / "changing_code.py", set()
    with own_code.importable(tmp_path):
        for text in ("x = 1", "x = 10", "x = 100"):
            path.write_text(text)
            hashes.add(plan.Run(**made).hash)
    assert len(hashes) == 3
    assert "code" not in plan.Run(**made | {"kind": "linucb", "world_id": "CartPole-v1"}).spec()["agent"]
