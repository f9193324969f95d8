"""A run is known by what is run: not by its labels, not by where a table lies, not by the order of keys."""

import dataclasses
import hashlib

import pytest
from habitus.experiments import plan


def run_of(**changes):
    run = plan.Run(
        world="w",
        agent="a",
        world_id="habitus/CreditReview-v0",
        world_kwargs={"horizon": 100, "regime": "none"},
        kind="linucb",
        settings={"alpha": 0.5, "forget": 1.0},
        feedback="attributed",
        steps=100,
        seed=7,
    )
    return dataclasses.replace(run, **changes)


def test_the_hash_is_the_digest_of_the_canonical_specification(monkeypatch):
    monkeypatch.setattr(plan, "__version__", "9.9.9")
    text = (
        '{"agent":{"kind":"linucb","settings":{"alpha":0.5,"forget":1.0}},"feedback":"attributed","habitus":"9.9.9",'
        '"seed":7,"steps":100,"world":{"id":"habitus/CreditReview-v0","kwargs":{"horizon":100,"regime":"none"}}}'
    )
    assert run_of().hash == hashlib.sha256(text.encode()).hexdigest()[:16] == "feece944b89ea734"


def test_the_order_of_keys_does_not_change_the_hash():
    assert run_of(settings={"forget": 1.0, "alpha": 0.5}).hash == run_of().hash


def test_labels_do_not_change_the_hash():
    assert run_of(world="other", agent="name").hash == run_of().hash


@pytest.mark.parametrize(
    "change",
    [
        {"world_id": "habitus/Other-v0"},
        {"world_kwargs": {"horizon": 101, "regime": "none"}},
        {"kind": "substrate"},
        {"settings": {"alpha": 0.6, "forget": 1.0}},
        {"settings": {"alpha": 0.5}},
        {"feedback": "stream"},
        {"steps": 101},
        {"seed": 8},
    ],
)
def test_every_part_of_the_specification_changes_the_hash(change):
    assert run_of(**change).hash != run_of().hash


def test_the_version_changes_the_hash(monkeypatch):
    before = run_of().hash
    monkeypatch.setattr(plan, "__version__", "9.9.9")
    assert run_of().hash != before


def test_a_table_is_known_by_its_content_and_not_by_its_place(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    for folder in ("here", "there"):
        (tmp_path / folder / "loans.csv").write_text("a,b\n1,2\n")
        (tmp_path / folder / "loans.yaml").write_text("outcome: b\n")
    here, there = (run_of(world_kwargs={"applicants": str(tmp_path / f / "loans.csv")}) for f in ("here", "there"))
    assert here.hash == there.hash
    (tmp_path / "there" / "loans.yaml").write_text("outcome: another\n")
    assert here.hash != dataclasses.replace(there).hash


def test_the_plan_has_every_run_once(make_study):
    runs = plan.runs_of(make_study(feedback=["attributed", "stream"]))
    assert len({run.hash for run in runs}) == len(runs) == 3 * (2 + 1 + 1)
    assert {run.world_kwargs["horizon"] for run in runs} == {60}


def test_a_foreign_world_gets_no_arguments_of_ours_and_no_oracle(make_study):
    runs = plan.runs_of(make_study(worlds=[{"label": "pole", "id": "CartPole-v1"}], feedback=["attributed", "stream"]))
    assert {run.feedback for run in runs} == {"attributed"}
    assert "oracle" not in {run.kind for run in runs}
    assert all(run.world_kwargs == {} for run in runs)
