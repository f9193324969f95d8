"""The bench: what it computes from its timings, and that it times all there is."""

import json
import os
import sys
import threading

import pytest
from habitus import WORLD_IDS
from habitus.experiments import bench_tools, cli, world_bench
from habitus.experiments.errors import ExperimentError
from habitus.experiments.world_bench import Case
from typer.testing import CliRunner

ABOUT = {"processor": "P", "cores": 2, "load_before": 0.5, "python": "3", "jax": "0", "gymnasium": "1", "numpy": "2"}


@pytest.fixture
def cases():
    return [
        Case(world_bench.REFERENCE, "scalar", world_bench.CARTPOLE, 1, [4.0, 5.0, 6.0]),
        Case("Toy, jit + scan, 40", "jit", "Toy", 40, [0.2, 0.2, 0.3], 1.5),
        Case("Toy, jit + scan, 1,024", "jit", "Toy", 1024, [0.1, 0.1, 0.3], 1.5),
        Case("Toy, jit + scan, 2,000", "jit", "Toy", 2000, [0.11, 0.12, 0.09], 1.5),
        Case("Toy, vector, 1,024", "vector", "Toy", 1024, [0.15, 0.25, 0.6]),
        Case("Toy, scalar", "scalar", "Toy", 1, [20.0, 24.0, 22.0]),
    ]


def test_ratios_are_taken_within_a_round(cases):
    said = json.loads(world_bench.to_json(cases, "habitus bench worlds", ABOUT))
    by_name = {case["name"]: case for case in said["cases"]}
    assert by_name["Toy, jit + scan, 40"]["ratio"] == pytest.approx(20)  # 4/.2, 5/.2, 6/.3: 20, 25, 20
    assert by_name["Toy, jit + scan, 40"]["median"] == pytest.approx(0.2)
    assert by_name[world_bench.REFERENCE]["ratio"] == 1
    assert said["command"] == "habitus bench worlds"


def test_goals_are_held_against_what_was_timed(cases):
    reached = {name: (text, ok) for name, text, ok in world_bench.goals(cases)}
    assert reached == {
        "Toy, jit + scan, 40: at most 0.25 s per 1 M steps": ("0.200", True),
        "Toy, jit + scan, 2,000: at most 0.1 s per 1 M steps": ("0.110", False),
        "Toy, vector, 1,024: at most 2 times the cost under jit": ("2.00", True),  # 1.5, 2.5, 2
        "Toy, scalar: at most 25 s per 1 M steps": ("22.00", True),
    }


def test_the_table_names_command_machine_and_goals(cases):
    page = world_bench.to_markdown(cases, "habitus bench worlds", ABOUT)
    assert "habitus bench worlds" in page
    assert "One core of P (2 cores, load 0.5 when it began)" in page
    assert "| Toy, jit + scan, 40 | 0.200 (0.200-0.300) | 5,000,000 | 20 | 1.5 |" in page
    assert "| Toy, jit + scan, 2,000: at most 0.1 s per 1 M steps | 0.110 | no |" in page


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux to keep a process on one core")
def test_all_threads_are_on_one_core_and_go_back():
    before, seen, go, done = os.sched_getaffinity(0), [], threading.Event(), threading.Event()

    def other():
        go.wait()
        seen.append(os.sched_getaffinity(0))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()  # before: as the threads of JAX
    with world_bench.on_one_core() as core:
        assert os.sched_getaffinity(0) == {core}
        go.set()
        done.wait()
    thread.join()
    assert seen == [{core}]
    assert os.sched_getaffinity(0) == before


def test_an_interpreter_without_gymnax_is_one_clear_message():
    with pytest.raises(ExperimentError, match=r"has gymnax, got /nowhere/python: .*pip install gymnax"):
        world_bench._gymnax("/nowhere/python", 1000, -1)
    with pytest.raises(ExperimentError, match="No module named 'gymnax'"):
        world_bench._gymnax(sys.executable, 1000, -1)


def test_what_is_not_timed_is_refused_by_name():
    done = CliRunner().invoke(cli.app, ["bench", "agents"])
    assert done.exit_code == 2
    assert "No such command 'agents'" in " ".join(done.output.split())


@pytest.mark.slow
@pytest.mark.parametrize("world_id", WORLD_IDS)
def test_every_world_is_timed_in_every_way(world_id, tmp_path, monkeypatch):
    monkeypatch.setattr(world_bench, "QUICK_STEPS", 40_000)
    name = world_id.partition("/")[2].partition("-")[0]
    files = ["--json", str(tmp_path / "b.json"), "--markdown", str(tmp_path / "b.md")]
    done = CliRunner().invoke(cli.app, ["bench", "worlds", "--quick", "--worlds", name, *files])
    assert done.exit_code == 0, done.output
    cases = json.loads((tmp_path / "b.json").read_text())["cases"]
    found = [(case["kind"], case["n_envs"], len(case["seconds"])) for case in cases]
    rounds = bench_tools.QUICK_ROUNDS
    sizes = [("jit", size, rounds) for size in world_bench.SIZES]
    assert found == [("scalar", 1, rounds), *sizes, ("vector", world_bench.VECTOR_SIZE, rounds), ("scalar", 1, rounds)]
    assert all(0 < seconds < 1_000 for case in cases for seconds in case["seconds"])
    assert f"{name}, vector, 1,024: at most 2 times" in (tmp_path / "b.md").read_text()
