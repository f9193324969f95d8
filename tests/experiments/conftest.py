"""Tests of studies run on a tiny world and tiny agents; worker processes find them on the path."""

import shutil
import sys
from pathlib import Path

import pytest

FOLDER = str(Path(__file__).parent)
if FOLDER not in sys.path:
    sys.path.insert(0, FOLDER)

import fake_world  # noqa: E402
from habitus.experiments import execution, records, results  # noqa: E402
from habitus.experiments import study as study_module  # noqa: E402
from habitus.experiments.plan import runs_of  # noqa: E402


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def _fake_is_known():
    """The fake world counts as one of the worlds of this package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_module, "WORLD_IDS", (*study_module.WORLD_IDS, "habitus/Fake-v0"))
        yield


@pytest.fixture(scope="session")
def fake(_fake_is_known):
    """The module of the fake world and its agents."""
    return fake_world


@pytest.fixture(scope="session")
def make_study(fake):
    """Builds a valid small study, with changes."""

    def make(**changes):
        data = {
            "name": "small",
            "question": "Does it work?",
            "steps": 60,
            "seeds": {"start": 0, "count": 3},
            "worlds": [{"label": "fake", "id": fake.ID}],
            "agents": [{"label": "bandit", "kind": "fake_world:Bandit"}],
        }
        return study_module.Study.model_validate(data | changes).with_references()

    return make


def record(study, folder):
    """Does all runs of a study in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / results.STUDY).write_text(study.to_yaml())
    for run in runs_of(study):
        execution.execute(run, folder / records.RUNS)
    return folder


@pytest.fixture(scope="session")
def record_study():
    return record


@pytest.fixture(scope="session")
def _rich_records(make_study, fake, tmp_path_factory):
    agents = [{"label": "bandit", "kind": "fake_world:Bandit"}, {"kind": "fake_world:Crasher"}, {"kind": "best_fixed"}]
    worlds = [{"label": "one", "id": fake.ID}, {"label": "two + three", "id": fake.ID}]
    study = make_study(agents=agents, worlds=worlds, feedback=["attributed", "stream"], windows=[[0, 20], [20, 60]])
    return record(study, tmp_path_factory.mktemp("rich"))


@pytest.fixture
def rich_folder(_rich_records, tmp_path):
    """A copy of the records of a study with two worlds, two variants and failed runs."""
    return shutil.copytree(_rich_records, tmp_path / "rich")


@pytest.fixture(scope="session")
def _plain_records(make_study, tmp_path_factory):
    study = make_study(feedback=["attributed", "stream"], windows=[[0, 20], [20, 60]])
    return record(study, tmp_path_factory.mktemp("plain"))


@pytest.fixture
def plain_folder(_plain_records, tmp_path):
    """A copy of the records of a study with one world, one agent and two variants."""
    return shutil.copytree(_plain_records, tmp_path / "plain")
