import multiprocessing
import subprocess
import sys

import pytest

PROGRAM = """
import warnings, multiprocessing, os
warnings.simplefilter("ignore")
from habitus import envs

env = envs.GameNPCEnv()

def child(pipe):
    try:
        (envs.GameNPCEnv() if {fresh} else env).reset(seed=0)
        pipe.send("went on")
    except RuntimeError as error:
        pipe.send(str(error))

if __name__ == "__main__":
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=child, args=(there,))
    process.start()
    print(here.recv() if here.poll(60) else "hangs")
    process.kill()
"""


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.parametrize("fresh", [True, False])
def test_a_forked_child_is_told_to_be_spawned(fresh):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(fresh=fresh)], capture_output=True, text=True, check=True, timeout=120
    )
    assert "start worker processes by spawn" in done.stdout
