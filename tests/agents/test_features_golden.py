"""Nodes that saved agents and published records rest on stay what they are.

The golden file says how it was made. To write it anew after a change that is meant, say why in the commit and run
`python tests/agents/test_features_golden.py`.
"""

import json
from pathlib import Path
from typing import Any

import gymnasium
import habitus  # noqa: F401 - registers the worlds
import numpy as np
import pytest
from gymnasium import spaces
from habitus.agents.declared import schema_of
from habitus.agents.features import FeatureEncoder

GOLDEN = Path(__file__).with_name("features_golden.json")
RANKS = ("signed", "poles", "none")
SPACES: dict[str, gymnasium.Space[Any]] = {
    "discrete": spaces.Discrete(5),
    "multi_discrete": spaces.MultiDiscrete([2, 3, 4]),
    "multi_binary": spaces.MultiBinary(4),
    "box": spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([1.0, 5.0], np.float32)),
    "dict": spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-2.0, 2.0, (1,), np.float32)}),
}
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "game_npc": ("habitus/GameNPC-v0", {}),
    "customer_service": ("habitus/CustomerService-v0", {}),
    "credit_review": ("habitus/CreditReview-v0", {}),
    "spanish": ("habitus/CreditReview-v0", {"applicants": "spanish"}),
}


def encoder_of(name: str, rank: str) -> FeatureEncoder:
    """As every learner had it before there were tiles and combinations."""
    if name in SPACES:
        return FeatureEncoder(SPACES[name], rank=rank, box="uniform", joint=False)
    env = gymnasium.make(WORLDS[name][0], **WORLDS[name][1])
    return FeatureEncoder(env.observation_space, schema_of(env), rank=rank)


def recorded(name: str, rank: str, observations: list[Any]) -> dict[str, Any]:
    encoder = encoder_of(name, rank)
    features = [encoder.encode(unpacked(one)) for one in observations]
    return {
        "n_nodes": encoder.n_nodes,
        "n_active": encoder.n_active,
        "labels": [encoder.labels[1], encoder.labels[-1]],
        "kinds": sorted(set(encoder.kinds)),
        "cells": encoder.cells,
        "nodes": [one.nodes.tolist() for one in features],
        "activation": [[float(x) for x in one.activation] for one in features],
        "stake": [one.stake for one in features],
    }


def unpacked(observation: Any) -> Any:
    """An observation as the environment gives it: lists are arrays of float32 or of whole numbers."""
    if isinstance(observation, dict):
        return {name: unpacked(value) for name, value in observation.items()}
    if isinstance(observation, list):
        return np.array(observation, np.float32 if isinstance(observation[0], float) else np.int64)
    return np.int64(observation)


def golden() -> dict[str, Any]:
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("name", [*SPACES, *WORLDS])
def test_nodes_and_activations_are_those_of_the_golden_file(name, rank):
    held = golden()
    assert recorded(name, rank, held["observations"][name]) == held["features"][f"{name} {rank}"]


if __name__ == "__main__":
    held = golden()
    held["features"] = {
        f"{name} {rank}": recorded(name, rank, seen) for name, seen in held["observations"].items() for rank in RANKS
    }
    GOLDEN.write_text(json.dumps(held, separators=(",", ":")) + "\n", encoding="utf-8")
