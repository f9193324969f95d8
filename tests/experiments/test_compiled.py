"""Runs in one compiled call leave the same records as runs that go step by step."""

import dataclasses
import types

import numpy as np
import pytest
from habitus.experiments import compiled, execution, explain, plan, records, results, runner, study

GAME, SERVICE, CREDIT = "habitus/GameNPC-v0", "habitus/CustomerService-v0", "habitus/CreditReview-v0"


def runs_of(world, agent, *, steps=60, seeds=2, feedback="attributed", **kwargs):
    data = {
        "name": "few", "question": "Equal?", "steps": steps, "seeds": {"start": 3, "count": seeds},
        "worlds": [{"label": "world", "id": world, "kwargs": kwargs}], "agents": [agent], "feedback": [feedback],
    }  # fmt: skip
    return [run for run in plan.runs_of(study.Study.model_validate(data))]


def both(runs, folder):
    """Records of the runs: (compiled, step by step) each."""
    endings = compiled.execute(runs, folder / "compiled")
    assert [ending.error for ending in endings] == [None] * len(runs)
    for run in runs:
        assert execution.execute(run, folder / "stepwise").error is None
    return [tuple(records.read(folder / way, run.hash) for way in ("compiled", "stepwise")) for run in runs]


def assert_same(one, other):
    for field in dataclasses.fields(records.Steps):
        found, expected = getattr(one.steps, field.name), getattr(other.steps, field.name)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected, equal_nan=True), field.name
    stable = [key for key in other.header if key not in (*records.VOLATILE, "decision")]
    assert {key: one.header[key] for key in stable} == {key: other.header[key] for key in stable}
    found, expected = one.header["decision"], other.header["decision"]
    assert (found is None) == (expected is None)
    if expected is not None:  # sums are rounded in another order
        assert {path["label"]: path["contribution"] for path in found["paths"]} == pytest.approx(
            {path["label"]: path["contribution"] for path in expected["paths"]}, abs=1e-5
        )
        assert (found["choice"], found["action"], found["step"]) == tuple(
            expected[key] for key in ("choice", "action", "step")
        )


@pytest.mark.parametrize("kind", ["random", "rules", "best_fixed"])
def test_what_learns_nothing_leaves_the_same_record(kind, tmp_path):
    pairs = both(runs_of(GAME, {"kind": kind}, steps=40), tmp_path)
    for pair in pairs:
        assert_same(*pair)
    assert not np.array_equal(pairs[0][0].steps.score, pairs[1][0].steps.score)  # each seed has its own episode


@pytest.mark.slow
@pytest.mark.parametrize("world", [GAME, SERVICE, CREDIT])
@pytest.mark.parametrize("kind", ["filter", "oracle"])
def test_the_references_that_are_lent_a_world_leave_the_same_record(kind, world, tmp_path):
    for pair in both(runs_of(world, {"kind": kind}, regime="shift"), tmp_path):
        assert_same(*pair)


@pytest.mark.slow
@pytest.mark.parametrize("feedback", ["attributed", "stream"])
def test_a_substrate_leaves_the_same_record_where_outcomes_come_late(feedback, tmp_path):
    runs = runs_of(CREDIT, {"kind": "substrate", "settings": {"adviser": "rules"}}, steps=230, feedback=feedback)
    pairs = both(runs, tmp_path)
    for pair in pairs:
        assert_same(*pair)
    assert pairs[0][0].header["n_pending"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"adviser": "rules"}, {"conjunctions": 64, "cases": 16}])
def test_a_substrate_leaves_the_same_record_in_long_encounters(settings, tmp_path):
    for pair in both(runs_of(GAME, {"kind": "substrate", "settings": settings}, steps=200), tmp_path):
        assert_same(*pair)


@pytest.mark.slow
def test_a_compiled_run_can_be_explained(tmp_path):
    data = {
        "name": "few", "question": "Why?", "steps": 120, "seeds": [3],
        "worlds": [{"label": "game", "id": GAME}], "agents": [{"kind": "substrate"}],
    }  # fmt: skip
    small = study.Study.model_validate(data).with_references()
    (tmp_path / results.STUDY).write_text(small.to_yaml())
    runs = [run for run in plan.runs_of(small) if run.kind == "substrate"]
    compiled.execute(runs, tmp_path / records.RUNS)
    found = explain.explain(tmp_path, step=100)
    assert (
        found.action
        == records.read(tmp_path / records.RUNS, runs[0].hash).header["world"]["actions"][
            records.read(tmp_path / records.RUNS, runs[0].hash).steps.action[100]
        ]
    )


def test_a_reward_paid_on_arrival_goes_back_to_the_decision_that_earned_it():
    notes = types.SimpleNamespace(
        decision_id=np.array([7, -1, 8, 9]),
        feedback_id=np.array([[-1, -1], [7, -1], [-1, -1], [8, -1]]),
        feedback_value=np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 0.0], [2.0, 0.0]]),
    )
    paid = np.array([1.0, 5.5, 0.0, 2.25])
    reward, n_pending = compiled._settled(paid.copy(), notes, pays_on_arrival=True)
    # step 1 brought .5 of its own and 5 of step 0; step 3 .25 of its own and 2 of step 2; decision 9 still waits
    assert reward.tolist() == [6.0, 0.5, 2.0, 0.25]
    assert n_pending == 1
    assert compiled._settled(paid.copy(), notes, pays_on_arrival=False)[0].tolist() == paid.tolist()


def test_runs_are_compiled_where_it_pays_and_can_be_done():
    many = runs_of(GAME, {"kind": "substrate"}, steps=30_000, seeds=4)
    assert plan.is_compiled(many)
    assert not plan.is_compiled(many[:2])
    assert not plan.is_compiled(runs_of(GAME, {"kind": "linucb"}, steps=30_000, seeds=4))
    assert not plan.is_compiled(runs_of("CartPole-v1", {"kind": "substrate"}, steps=30_000, seeds=4))
    assert not plan.is_compiled(runs_of(GAME, {"kind": "substrate"}, steps=30_000, seeds=4, horizon=1000))
    assert compiled.can(many)


def test_a_world_that_is_not_ours_or_cannot_be_built_goes_step_by_step(make_study):
    fake = [run for run in plan.runs_of(make_study(steps=60_000)) if run.kind == "random"]
    assert plan.is_compiled(fake)  # by its name it could be
    assert not compiled.can(fake)
    assert not compiled.can(runs_of(GAME, {"kind": "random"}, steps=60_000, difficulty="none such"))


def test_blocks_stay_together_and_hold_at_most_64_seeds():
    runs = runs_of(GAME, {"kind": "substrate"}, steps=30_000, seeds=70)
    assert [len(batch) for batch in runner.batches_of(runs, jobs=2)] == [64, 6]
    assert max(len(batch) for batch in runner.batches_of(runs, jobs=2, stepwise=True)) < 64


def test_a_failure_is_recorded_for_every_run_of_a_block(tmp_path):
    runs = runs_of(GAME, {"kind": "substrate", "settings": {"prototypes": -1}}, steps=10)
    endings = compiled.execute(runs, tmp_path)
    assert all("`prototypes` must be" in ending.error for ending in endings)
    assert [records.read(tmp_path, run.hash).header["status"] for run in runs] == ["failed", "failed"]
