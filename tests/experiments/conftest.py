"""Tests of studies run on a tiny world and tiny agents; worker processes find them on the path."""

import sys
from pathlib import Path

import pytest

FOLDER = str(Path(__file__).parent)
if FOLDER not in sys.path:
    sys.path.insert(0, FOLDER)

import fake_world  # noqa: E402
from habitus.experiments import study as study_module  # noqa: E402


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def fake(monkeypatch):
    """The fake world, known as one of the worlds of this package."""
    monkeypatch.setattr(study_module, "WORLD_IDS", (*study_module.WORLD_IDS, "habitus/Fake-v0"))
    return fake_world


@pytest.fixture
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
