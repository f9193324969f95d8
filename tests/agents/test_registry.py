"""Agents by their kind."""

import subprocess
import sys

import gymnasium
import habitus
import pytest
from habitus import agents
from habitus.agents import AGENTS, PRESETS, Agent, agent_class, make

NEEDS = {"best_fixed": {"action": 0}, "rules": {"policy": lambda _: 1}, "oracle": {"policy": lambda _: 1}}


class Own:
    """A user's agent: three methods, no base class."""

    def __init__(self, env, seed=0, patience=1):
        self.patience = patience

    def begin(self, observation, info): ...

    def act(self, observation):
        return 0

    def observe(self, transition): ...


def test_the_kinds_of_the_issue_are_there():
    assert list(AGENTS) == [
        "random", "best_fixed", "rules", "tabular_q", "linucb", "knn", "substrate",
        "dqn", "ppo", "a2c", "qrdqn", "recurrent_ppo", "oracle"
    ]  # fmt: skip


@pytest.mark.parametrize("kind", AGENTS)
def test_every_kind_lives_fifty_steps_of_its_world(kind):
    env = gymnasium.make(habitus.WORLD_IDS[0], horizon=40)
    agent, shown = make(kind, env, seed=0, **NEEDS.get(kind, {})), []
    assert isinstance(agent, Agent)
    agent.learn(50, callback=lambda _, transition: shown.append(transition.action))
    assert len(shown) == 50
    assert all(0 <= action < 5 for action in shown)
    observation, _ = env.reset(seed=1)
    assert 0 <= int(agent.predict(observation)[0]) < 5


@pytest.mark.parametrize("kind", PRESETS)
def test_a_deep_kind_is_its_algorithm(lanterns, kind):
    assert make(kind, lanterns()).algorithm.lower() == kind.replace("_", "")


def test_a_class_of_ones_own_is_built_by_its_path(lanterns):
    agent = make(f"{__name__}:Own", lanterns(), seed=4, patience=3)
    assert type(agent).__name__ == "Own"
    assert agent.patience == 3
    assert isinstance(agent, Agent)
    assert agents.run(agent, lanterns(), 12) == 12


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("linucp", "did you mean 'linucb'"),
        ("nothing like it", "`kind` must be one of"),
        ("no_such_package.module:Own", "names module 'no_such_package', which cannot be found"),
        ("habitus.agents.tabularr:TabularQ", "names module 'habitus.agents.tabularr', which cannot be found"),
        ("habitus.agents.tabular:TabularK", "does not define; did you mean 'TabularQ'"),
    ],
)
def test_an_unknown_kind_is_refused_with_near_names(lanterns, kind, message):
    with pytest.raises(ValueError, match=message):
        make(kind, lanterns())


def test_settings_are_checked_before_anything_is_built(lanterns):
    with pytest.raises(TypeError, match="'ridg' is not a setting of agent 'linucb'; did you mean 'ridge'"):
        make("linucb", lanterns(), ridg=2.0)
    with pytest.raises(TypeError, match="'colour' is not a setting of agent 'random'; it takes none"):
        make("random", lanterns(), colour=1)
    with pytest.raises(TypeError, match="agent 'rules' needs the setting `policy`"):
        make("rules", lanterns())


def test_classes_are_importable_by_name():
    assert agents.TabularQ is agent_class("tabular_q")
    assert agents.LinUCB is agent_class("linucb")
    assert agents.EpisodicControl is agent_class("knn")
    assert agents.DeepAgent is agent_class("ppo")
    with pytest.raises(AttributeError, match="no attribute 'Tabular'"):
        _ = agents.Tabular


def test_importing_the_package_imports_neither_torch_nor_jax():
    code = "import sys, habitus.agents; print([name for name in ('torch', 'jax', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
