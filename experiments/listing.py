"""What there is: worlds, agents, styles, studies and applicants, with a line about each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from .. import WORLD_IDS, scenarios
from . import study, study_file
from .errors import StudyError

_WORLDS = {
    "habitus/CreditReview-v0": "decide on applicants whose outcome shows late, or never",
    "habitus/CustomerService-v0": "answer customers whose persona shows only over several tickets",
    "habitus/GameNPC-v0": "fight or talk with players who return, each with a style of its own",
}
_AGENTS = {
    "random": "any action; score 0 by definition",
    "best_fixed": "always one action: `action`, or the best that a search on its own seed finds",
    "rules": "the expert rules of the world",
    "tabular_q": "Q-learning on a coarse key",
    "linucb": "linear bandit with an upper confidence bound",
    "knn": "episodic control: the returns of the nearest remembered situations",
    "substrate": "the cognitive substrate; explains its decisions",
    "dqn": "deep Q-network of stable-baselines3",
    "ppo": "proximal policy optimisation of stable-baselines3",
    "a2c": "advantage actor-critic of stable-baselines3",
    "qrdqn": "quantile-regression DQN of sb3-contrib",
    "recurrent_ppo": "PPO with an LSTM, of sb3-contrib",
    "oracle": "knows the hidden variables; score 1 by definition",
    "filter": "knows the dynamics and infers what is hidden: what can be reached at best; for studies",
}
_APPLICANTS = {
    "synthetic": "generated, with returning applicants and a sensitive group",
    "spanish": "4,454 loans of a Spanish bank (extra `data`)",
    "lending_club": "loans of a lending platform (extra `data`)",
    "hmda": "mortgage applications in Boston, with a recorded group (extra `data`)",
    "PATH.csv": "your own table, described by PATH.yaml beside it",
}


def _worlds() -> Mapping[str, str]:
    return {world: _WORLDS.get(world, "") for world in WORLD_IDS}


def _agents() -> Mapping[str, str]:
    return {kind: _AGENTS.get(kind, "") for kind in study.KINDS} | {
        "module:Class": "your own, with the three methods of habitus.agents.Agent"
    }


def _styles() -> Mapping[str, str]:
    from ..cognition import STYLES  # brings JAX

    def described(style: object) -> str:
        changed = {
            field.name: getattr(style, field.name)
            for field in dataclasses.fields(style)  # type: ignore[arg-type]
            if getattr(style, field.name) != field.default
        }
        return ", ".join(f"{name} {value:g}" for name, value in changed.items()) or "the default"

    return {name: described(style) for name, style in STYLES.items()}


def _studies() -> Mapping[str, str]:
    return {name: study.load(name).question for name in study.named_studies()}


def _applicants() -> Mapping[str, str]:
    return {name: _APPLICANTS.get(name, "") for name in (*scenarios.APPLICANTS, "PATH.csv")}


KINDS: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "worlds": _worlds,
    "agents": _agents,
    "styles": _styles,
    "studies": _studies,
    "applicants": _applicants,
}


def of(kind: str) -> Mapping[str, str]:
    """Names of one kind, each with a line about it.

    Raises:
        StudyError: there is no such kind.
    """
    if kind not in KINDS:
        raise StudyError(f"expected one of {', '.join(KINDS)}, got {kind!r}{study_file.nearest(kind, list(KINDS))}")
    return KINDS[kind]()
