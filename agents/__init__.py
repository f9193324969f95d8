"""What acts: the substrate as a learner, and every baseline.

An agent is known by its kind. `make("linucb", env, seed=0)` builds one, and a class of one's own is built by its path,
`make("my_package.my_module:MyAgent", env, seed=0)`. Classes are imported when they are first asked for, so that
importing this package costs neither PyTorch nor JAX.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium

from .base import Agent, Transition
from .online import run

if TYPE_CHECKING:
    from .deep import DeepAgent as DeepAgent
    from .episodic import EpisodicControl as EpisodicControl
    from .evaluation import OnlineScore as OnlineScore
    from .evaluation import evaluate_online as evaluate_online
    from .linucb import LinUCB as LinUCB
    from .simple import BestFixed as BestFixed
    from .simple import FixedAction as FixedAction
    from .simple import PolicyAgent as PolicyAgent
    from .simple import RandomAgent as RandomAgent
    from .substrate import Substrate as Substrate
    from .tabular import TabularQ as TabularQ

AGENTS: Mapping[str, str] = {
    "random": "habitus.agents.simple:RandomAgent",
    "best_fixed": "habitus.agents.simple:BestFixed",
    "rules": "habitus.agents.simple:PolicyAgent",
    "tabular_q": "habitus.agents.tabular:TabularQ",
    "linucb": "habitus.agents.linucb:LinUCB",
    "knn": "habitus.agents.episodic:EpisodicControl",
    "substrate": "habitus.agents.substrate:Substrate",
    "dqn": "habitus.agents.deep:DeepAgent",
    "ppo": "habitus.agents.deep:DeepAgent",
    "a2c": "habitus.agents.deep:DeepAgent",
    "qrdqn": "habitus.agents.deep:DeepAgent",
    "recurrent_ppo": "habitus.agents.deep:DeepAgent",
    "oracle": "habitus.agents.simple:PolicyAgent",
}
"""Kind -> where its class is, as "module:Class"."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "dqn": {"algorithm": "DQN"},
    "ppo": {"algorithm": "PPO"},
    "a2c": {"algorithm": "A2C"},
    # 200 quantiles, the default of sb3-contrib, cost six times the time of a run (README)
    "qrdqn": {"algorithm": "QRDQN", "policy_kwargs": {"net_arch": [64, 64], "n_quantiles": 25}},
    "recurrent_ppo": {"algorithm": "RecurrentPPO"},
}
"""Settings that a kind fixes."""

_EXPORTS = {
    "BestFixed": "simple",
    "DeepAgent": "deep",
    "EpisodicControl": "episodic",
    "FixedAction": "simple",
    "LinUCB": "linucb",
    "OnlineScore": "evaluation",
    "PolicyAgent": "simple",
    "RandomAgent": "simple",
    "Substrate": "substrate",
    "TabularQ": "tabular",
    "evaluate_online": "evaluation",
}

__all__ = [
    "AGENTS",
    "PRESETS",
    "Agent",
    "BestFixed",
    "DeepAgent",
    "EpisodicControl",
    "FixedAction",
    "LinUCB",
    "OnlineScore",
    "PolicyAgent",
    "RandomAgent",
    "Substrate",
    "TabularQ",
    "Transition",
    "agent_class",
    "evaluate_online",
    "make",
    "run",
]


def make(kind: str, env: gymnasium.Env[Any, Any], *, seed: int = 0, **settings: Any) -> Any:
    """Build an agent by its kind.

    Args:
        kind: a key of `AGENTS`, or "package.module:Class" of a class of one's own.
        env: the environment that the agent is to live in.
        seed: seed of the agent.
        **settings: settings of its class, over those of `PRESETS`.

    Raises:
        ValueError: no such kind, module or class.
        TypeError: the class has no such setting, or lacks one that it needs.
    """
    constructor = agent_class(kind)
    merged = {**PRESETS.get(kind, {}), **settings}
    _check_settings(kind, constructor, merged)
    return constructor(env, seed=seed, **merged)


def agent_class(kind: str) -> type[Any]:
    """The class of a kind, imported now.

    Raises:
        ValueError: no such kind, module or class.
    """
    path = AGENTS.get(kind, kind)
    module_name, colon, class_name = path.partition(":")
    if not colon:
        near = difflib.get_close_matches(kind, AGENTS, 3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
        raise ValueError(f"`kind` must be one of {list(AGENTS)} or 'package.module:Class', got {kind!r}{hint}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not error.name or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there; something that it imports is not
        raise ValueError(
            f"`kind` {kind!r} names module {error.name!r}, which cannot be found; is it installed?"
        ) from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        near = difflib.get_close_matches(class_name, classes, 3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else "."
        raise ValueError(f"`kind` {kind!r} names class {class_name!r}, which {module_name!r} does not define{hint}")
    return found


def __getattr__(name: str) -> Any:
    """Import an agent's class when it is first asked for."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_EXPORTS[name]}", __name__), name)


def _check_settings(kind: str, constructor: type[Any], settings: Mapping[str, Any]) -> None:
    """A misspelt setting must say so before anything is built."""
    parameters = inspect.signature(constructor).parameters
    named = [
        name
        for name, parameter in list(parameters.items())[1:]
        if name != "seed" and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    for name in settings:
        if name not in named and not takes_any:
            near = difflib.get_close_matches(name, named, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it takes {named}." if named else "; it takes none."
            raise TypeError(f"{name!r} is not a setting of agent {kind!r}{hint}")
    for name in named:
        if parameters[name].default is inspect.Parameter.empty and name not in settings:
            raise TypeError(f"agent {kind!r} needs the setting `{name}`; pass it to `make` as `{name}=...`.")
