"""Same seed, same life: in this process, and in a new one."""

import json
import subprocess
import sys

import pytest

LIFE = """
import gymnasium, json, sys
from habitus.agents import make
kind, seed, settings, steps = json.loads(sys.argv[1])
env, actions = gymnasium.make("FrozenLake-v1"), []
make(kind, env, seed=seed, **settings).learn(steps, callback=lambda _, t: actions.append(t.action))
print(json.dumps(actions))
"""
CASES = {
    "random": ({}, 200),
    "tabular_q": ({}, 400),
    "linucb": ({"forgetting": 0.999}, 700),
    "dqn": ({"learning_starts": 30, "exploration_fraction": 0.1}, 200),
}


def life(kind, seed):
    spec = json.dumps([kind, seed, *CASES[kind]])
    done = subprocess.run([sys.executable, "-c", LIFE, spec], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", [*list(CASES)[:-1], pytest.param("dqn", marks=pytest.mark.slow)])
def test_a_seed_gives_the_same_actions_in_a_new_process(kind):
    first = life(kind, 3)
    assert len(first) == CASES[kind][1]
    assert life(kind, 3) == first
    assert life(kind, 4) != first
