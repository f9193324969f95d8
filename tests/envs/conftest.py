import importlib.util
from pathlib import Path

import pytest


def module(name):
    """A module of this folder; tests are no package, so it is loaded by its path."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="session")
def rollouts():
    """The module `rollouts`."""
    return module("rollouts")


@pytest.fixture(scope="session")
def toys():
    """The module `toys`."""
    return module("toys")


@pytest.fixture(scope="session")
def toy_table(rollouts):
    return rollouts.toy_table


@pytest.fixture(scope="session")
def vectors():
    """The module `vectors`."""
    return module("vectors")
