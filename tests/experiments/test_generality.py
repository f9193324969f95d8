"""Generality: which episodes count, by hand; records that are kept; the greedy policy; the tables; the command."""

import csv
import dataclasses
import io
import json

import gymnasium
import numpy as np
import pytest
from habitus.experiments import cli, generality, generality_tables
from habitus.experiments.errors import ExperimentError
from habitus.experiments.generality import Life, Meter, Reading
from habitus.experiments.statistics import Estimate
from typer.testing import CliRunner


class Corridor(gymnasium.Env):
    """Three cells; right leads on and pays 1 at the end, left stays and costs 1. A word tells what to do."""

    observation_space = gymnasium.spaces.Dict(
        {"cell": gymnasium.spaces.Discrete(3), "mission": gymnasium.spaces.Text(20)}
    )
    action_space = gymnasium.spaces.Discrete(2)

    def _seen(self):
        return {"cell": self._cell, "mission": "right"}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._cell = 0
        return self._seen(), {}

    def step(self, action):
        if action == 0:
            return self._seen(), -1.0, False, False, {}
        self._cell += 1
        is_over = self._cell == 3
        self._cell = min(self._cell, 2)
        return self._seen(), float(is_over), is_over, False, {}


@pytest.fixture
def corridor():
    gymnasium.register("Corridor-v3", Corridor)
    yield "Corridor-v3"
    del gymnasium.registry["Corridor-v3"]


class Always:
    """Predicts one action."""

    def __init__(self, action):
        self.action = action

    def predict(self, observation, deterministic):
        assert deterministic
        return np.asarray(self.action), None


def test_episodes_count_that_end_in_the_last_two_fifths(corridor):
    meter = Meter(gymnasium.make(corridor))
    meter.reset()
    for actions in ((0, 0, 0, 1, 1, 1), (1, 1, 1), (0, 1)):  # returns -2 at step 6, 1 at step 9, and -1 so far
        for action in actions:
            _, _, is_over, _, _ = meter.step(action)
        if is_over:
            meter.reset()
    assert meter.ended == [(6, -2.0), (9, 1.0)]
    assert meter.score(10) == (1.0, 1)  # after step 6, not with it
    assert meter.score(9) == ((-2.0 + 1.0) / 2, 2)  # after step 5.4
    assert meter.score(6) == (-2.0, 1)
    assert meter.score(100) == (-1.0, 0)  # none ended: what the unfinished one has brought


def test_an_episode_that_is_left_does_not_count(corridor):
    meter = Meter(gymnasium.make(corridor))
    meter.reset()
    meter.step(0)
    meter.reset()
    for _ in range(3):
        meter.step(1)
    assert meter.ended == [(4, 1.0)]


def test_the_greedy_policy_is_cut_where_it_goes_nowhere(corridor):
    env = generality.made(corridor)
    assert generality.greedy_return(Always(1), env, seed=0) == 1.0
    assert generality.greedy_return(Always(0), env, seed=0) == -float(generality.LONGEST)


def test_words_are_left_out_of_what_agents_see(corridor):
    assert set(generality.made(corridor).observation_space.spaces) == {"cell"}


def test_masks_of_possible_actions_are_kept_from_all():
    raw, env = gymnasium.make("Taxi-v4"), generality.made("Taxi-v4")
    assert "action_mask" in raw.reset(seed=0)[1]
    assert "action_mask" in raw.step(0)[4]
    assert set(env.reset(seed=0)[1]) == {"prob"}
    assert set(env.step(0)[4]) == {"prob"}


def test_tasks_are_found_by_name_in_their_newest_version(corridor):
    assert generality.tasks_of(["Corridor", "FrozenLake-v1", "Corridor-v3"]) == ("Corridor-v3", "FrozenLake-v1")
    assert len(generality.tasks_of([])) >= len(generality.TASKS)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["Corridoor"], "expected the id of an environment or one of FrozenLake"),
        (["Corridoor-v0"], "is no environment that can be made"),
        (["Pendulum-v1"], "expected Discrete actions"),
    ],
)
def test_a_task_that_cannot_be_measured_is_refused(names, message):
    with pytest.raises(ExperimentError, match=message):
        generality.tasks_of(names)


def test_agents_and_budgets_are_checked():
    assert generality.budgets_of(["500", "100"]) == (100, 500)
    assert generality.budgets_of([]) == generality.BUDGETS
    for wrong in ("9", "1e3", "-100"):
        with pytest.raises(ExperimentError, match="`budgets`: expected whole numbers of steps, at least 10"):
            generality.budgets_of([wrong])
    with pytest.raises(ExperimentError, match="expected some of substrate, tabular_q, dqn, ppo, random, got 'a3c'"):
        generality.agents_of(["a3c"])


def test_a_life_is_read_at_every_budget_and_lived_once(corridor, tmp_path, monkeypatch):
    life = Life(corridor, "tabular_q", 3, (60, 200), tmp_path)
    first = generality.lived(life)
    assert [(r.task, r.agent, r.seed, r.budget) for r in first] == [
        (corridor, "tabular_q", 3, 60),
        (corridor, "tabular_q", 3, 200),
    ]
    assert first[1].online > 0.5
    assert first[1].greedy == 1.0
    assert json.loads(life.record.read_text())["identity"]["budgets"] == [60, 200]
    monkeypatch.setattr(generality, "made", lambda task: pytest.fail("lived again"))
    assert generality.lived(life) == first


def test_a_record_of_another_life_is_not_taken(corridor, tmp_path):
    generality.lived(Life(corridor, "random", 3, (20,), tmp_path))
    assert generality.recorded(Life(corridor, "random", 3, (20,), tmp_path)) is not None
    assert generality.recorded(Life(corridor, "random", 3, (30,), tmp_path)) is None
    assert generality.recorded(Life(corridor, "random", 4, (20,), tmp_path)) is None


def test_reading_the_greedy_policy_changes_nothing_of_a_life(corridor, tmp_path):
    for folder in ("often", "once"):
        (tmp_path / folder).mkdir()
    for name in ("substrate", "tabular_q", "random"):
        often = generality.lived(Life(corridor, name, 1, (50, 100, 150), tmp_path / "often"))
        once = generality.lived(Life(corridor, name, 1, (150,), tmp_path / "once"))
        assert (often[-1].online, often[-1].n_ended) == (once[-1].online, once[-1].n_ended), name


def test_dqn_explores_as_long_whatever_the_budget(tmp_path):
    for last in (2_000, 30_000):
        settings = Life("CartPole-v1", "dqn", 0, (1_000, last), tmp_path).settings
        assert settings["exploration_fraction"] * last == pytest.approx(generality.DQN_EXPLORES)
    assert Life("CartPole-v1", "dqn", 0, (500,), tmp_path).settings["exploration_fraction"] == 1.0


def test_ppo_sees_numbers_as_they_are_and_is_read_at_exact_steps(tmp_path):
    env = generality.made("CartPole-v1")
    life = Life("CartPole-v1", "ppo", 0, (100, 300), tmp_path)
    assert generality._agent(life, env).model.observation_space.shape == (4,)
    found = generality.lived(life)
    assert [reading.budget for reading in found] == [100, 300]
    (tmp_path / "again").mkdir()
    assert generality.lived(dataclasses.replace(life, folder=tmp_path / "again")) == found
    coded = generality.made("FrozenLake-v1")
    assert generality._agent(Life("FrozenLake-v1", "ppo", 0, (100,), tmp_path), coded).env is coded


def readings(**values):
    return [
        Reading("Corridor-v3", name, seed, budget, value + seed + budget, n_ended, value)
        for name, (value, n_ended) in values.items()
        for seed in (0, 1, 2)
        for budget in (100, 500)
    ]


def test_differences_are_paired_by_seed():
    found = readings(substrate=(5.0, 3), dqn=(3.0, 3), ppo=(5.5, 3))
    assert generality_tables.difference(found, "Corridor-v3", "dqn", 500) == Estimate(2.0, 2.0, 2.0, 3)
    text = generality_tables.to_markdown(found, "habitus generality")
    assert "## Against deep learners at 500 steps" in text
    assert "On 0 of 1 tasks none lies below 0." in text  # PPO is ahead for certain
    assert "On 1 of 1 tasks" in generality_tables.to_markdown(
        readings(substrate=(5.0, 3), dqn=(3.0, 3), ppo=(5.0, 3)), "habitus generality"
    )


def test_tables_mark_lives_in_which_no_episode_ended():
    text = generality_tables.to_markdown(readings(random=(1.0, 0)), "habitus generality")
    assert "| Corridor-v3 | 100 | 102.00 ±1.00 *3 |" in text  # means of 101, 102, 103
    assert "| Corridor-v3 | 100 | 1.00 ±.00 |" in text  # greedy
    assert "Against deep learners" not in text
    lines = list(csv.DictReader(io.StringIO(generality_tables.to_csv(readings(random=(1.0, 0))))))
    assert len(lines) == 6
    assert lines[0] == {
        "task": "Corridor-v3",
        "agent": "random",
        "seed": "0",
        "budget": "100",
        "online": "101",
        "n_ended": "0",
        "greedy": "1",
    }


def test_the_command_writes_both_tables_and_its_own_name(corridor, tmp_path):
    words = ["generality", "--tasks", "Corridor", "--agents", "substrate,random", "--seeds", "2", "--budgets", "20,60"]
    done = CliRunner().invoke(cli.app, [*words, "--jobs", "1", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "generality.md").read_text()
    assert "habitus generality --tasks Corridor --agents substrate,random --seeds 2 --budgets 20,60" in text
    assert len((tmp_path / "generality.csv").read_text().splitlines()) == 1 + 2 * 2 * 2
    assert len(list((tmp_path / "generality").glob("*.json"))) == 4
    done = CliRunner().invoke(cli.app, ["generality", "--tasks", "Nowhere", "--out", str(tmp_path)])
    assert done.exit_code == 2
