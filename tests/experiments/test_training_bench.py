"""The bench of learning: what it computes from its timings, and that it times all there is."""

import json
import math

import jax
import pytest
from habitus.cognition import learner
from habitus.cognition.learning import resting
from habitus.experiments import bench_tools, cli, training_bench
from habitus.experiments.errors import ExperimentError
from habitus.experiments.training_bench import Case, Sizes
from typer.testing import CliRunner

ABOUT = {
    "processor": "P",
    "cores": 2,
    "load_before": 0.5,
    "python": "3",
    "jax": "0",
    "gymnasium": "1",
    "stable_baselines3": "2",
    "torch": "2",
}


@pytest.fixture
def cases():
    return [
        Case("Toy, compiled, 1 agent", "compiled", "Toy", 1, [8.0, 8.0, 10.0]),
        Case("Toy, compiled, 64 agents", "compiled", "Toy", 64, [3.0, 2.0, 4.0]),
        Case("Toy, compiled, 1,024 agents", "compiled", "Toy", 1024, [3.0, 3.0, 3.0]),
        Case("Toy, compiled, 1 agent, 1,000 steps", "length", "Toy", 1_000, [8.0, 10.0, 10.0]),
        Case("Toy, compiled, 1 agent, 100,000 steps", "length", "Toy", 100_000, [12.0, 11.0, 13.0]),
        Case("Toy, step by step, without the world's time", "stepwise", "Toy", 1, [50.0, 61.0, 65.0]),
        Case("Toy, PPO, 1 environment", "PPO", "Toy", 1, [400.0, 200.0, 500.0]),
        Case("Toy, DQN, 1 environment", "DQN", "Toy", 1, [300.0, 100.0, 310.0]),
        Case("Toy, PPO, 64 environments", "PPO", "Toy", 64, [40.0, 40.0, 40.0]),
    ]


SIZES = [Sizes("Toy", 65_536, {"edges.net": 40_000, "trace.cells": 100}, 14.0, 2.5)]


def test_ratios_are_taken_within_a_round(cases):
    # PPO / compiled: 400/8, 200/8, 500/10 = 50, 25, 50; DQN: 37.5, 12.5, 31; PPO with 64: 5, 5, 4
    assert training_bench._ratios(cases[0], cases) == [50.0, 31.0, 5.0]


def test_goals_are_held_against_what_was_timed(cases):
    reached = {name: (text, ok) for name, text, ok in training_bench.goals(cases, SIZES)}
    assert reached == {
        "Toy, compiled, 1 agent: at least 120,000 steps/s": ("125,000", True),
        "Toy, compiled, 1 agent: at least 40 times PPO with 1 environment": ("50", True),
        "Toy, compiled, 1 agent: at least 40 times DQN with 1 environment": ("31", False),
        "Toy, compiled, 64 agents: at least 350,000 steps/s": ("333,333", False),
        "Toy, compiled, 64 agents: at least 100 times PPO with 1 environment": ("125", True),  # 133, 100, 125
        "Toy, compiled, 64 agents: at least 100 times DQN with 1 environment": ("77.5", False),  # 100, 50, 77.5
        "Toy, compiled, 1 agent, 100,000 steps: at most 1.2 times the time per step of 1,000": ("1.30", False),
        "Toy, step by step, without the world's time: at most 60 us a step": ("61.0", False),
        "Toy: at most 65,536 bytes per agent": ("65,536", True),
        "Toy: compiles in 15 s": ("14.0", True),
        "Toy: in 2 s from the cache": ("2.5", False),
    }


def test_the_table_names_command_machine_and_goals(cases):
    page = training_bench.to_markdown(cases, SIZES, "habitus bench training", ABOUT)
    assert "```\nhabitus bench training\n```" in page
    assert "One core of P (2 cores, load 0.5 when it began)" in page
    assert "| Toy, compiled, 64 agents | 3 (2-4) | 333,333 | 125 | 77.5 | 13.3 |" in page
    assert "| Toy | 65,536 | edges.net 40,000, trace.cells 100 | 14.0 | 2.5 |" in page
    assert "| Toy: in 2 s from the cache | 2.5 | no |" in page
    assert max(map(len, page.splitlines())) < 1_000


def test_the_numbers_carry_goals_and_rounds(cases):
    said = json.loads(training_bench.to_json(cases, SIZES, "habitus bench training", ABOUT))
    assert [len(case["seconds"]) for case in said["cases"]] == [3] * 9
    assert said["cases"][1]["median"] == 3.0
    assert ["Toy: in 2 s from the cache", "2.5", False] in said["goals"]


def test_bytes_are_those_of_every_array_of_a_state():
    found = training_bench.bytes_of("habitus/GameNPC-v0")
    player = training_bench.player("habitus/GameNPC-v0", 1)
    state = learner.initial_state(player.edges, player.structure)
    of_draws = 4 + 4 * 2 * resting.REST  # number of the next choice, and two words for each until the next rest
    assert sum(found.values()) == sum(leaf.nbytes for leaf in jax.tree.leaves(state)) + of_draws
    structure = player.structure
    assert found["state.edges.net"] == 4 * structure.n_nodes * 2 * structure.width


def test_a_world_that_pays_at_once_needs_no_slots():
    assert training_bench.n_slots("habitus/GameNPC-v0") == 0
    assert training_bench.n_slots("habitus/CreditReview-v0") > 0


def test_a_process_that_fails_says_why(tmp_path):
    with pytest.raises(ExperimentError, match=r"compiling habitus/Nowhere-v0 .*failed: .*Nowhere"):
        training_bench._compile_s("habitus/Nowhere-v0", str(tmp_path))


@pytest.mark.slow
def test_the_learner_is_timed_in_every_way(tmp_path, monkeypatch):
    monkeypatch.setattr(training_bench, "LONG", 2_000)
    files = ["--json", str(tmp_path / "b.json"), "--markdown", str(tmp_path / "b.md")]
    done = CliRunner().invoke(cli.app, ["bench", "training", "--quick", "--worlds", "GameNPC", *files])
    assert done.exit_code == 0, done.output
    said = json.loads((tmp_path / "b.json").read_text())
    found = [(case["kind"], case["n"]) for case in said["cases"]]
    compiled = [("compiled", n) for n in training_bench.N_STEPS]
    lengths = [("length", training_bench.SHORT), ("length", 2_000)]
    deep = [("PPO", 1), ("DQN", 1), ("PPO", training_bench.DEEP_ENVS)]
    assert found == [*compiled, *lengths, ("stepwise", 1), *deep]
    assert all(len(case["seconds"]) == bench_tools.QUICK_ROUNDS for case in said["cases"])
    assert all(0 <= seconds < math.inf for case in said["cases"] for seconds in case["seconds"])
    (sizes,) = said["sizes"]
    assert math.isfinite(sizes["cold_s"])
    assert math.isfinite(sizes["cached_s"])
    assert "GameNPC, compiled, 64 agents: at least 350,000 steps/s" in (tmp_path / "b.md").read_text()
