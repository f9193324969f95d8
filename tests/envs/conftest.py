import importlib.util
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "rollouts.py"


@pytest.fixture(scope="session")
def rollouts():
    """The module `rollouts`; tests are no package, so it is loaded by its path."""
    spec = importlib.util.spec_from_file_location("rollouts", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def toy_table(rollouts):
    return rollouts.toy_table
