"""What all tests share: compiled code is given back before a process has no room for more of it."""

import itertools
from pathlib import Path

import jax
import pytest

MAPS = Path("/proc/self/maps")
MOST_MAPS = 20_000  # of 65,530 that Linux allows a process; beyond, the compiler aborts it
EVERY = 10  # tests; counting maps takes ms

_tests = itertools.count(1)


@pytest.fixture(autouse=True)
def room_for_compiled_code():
    """Forget compiled calls, each of which keeps dozens of memory maps, when a process has very many."""
    yield
    if next(_tests) % EVERY == 0 and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
