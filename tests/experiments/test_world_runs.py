"""Runs that measure worlds are those of the environments that a user makes."""

import gymnasium
import numpy as np
import pytest
from habitus import WORLD_IDS, scenarios
from habitus.experiments import world_runs
from habitus.experiments.errors import ExperimentError
from habitus.experiments.world_runs import Setting

ANY_WORLD = "habitus/GameNPC-v0"
SLOW_WORLDS = [pytest.param(world, marks=pytest.mark.slow) for world in WORLD_IDS if world != ANY_WORLD]


@pytest.mark.parametrize("world_id", [ANY_WORLD, *SLOW_WORLDS])
def test_rules_decide_as_in_a_scalar_environment(world_id):
    setting, seeds, n_steps = Setting(world_id, horizon=300), (1000, 1001, 1002), 100
    run = world_runs.run(setting, world_runs.player_of("rules", setting, ()), seeds, n_steps)
    for row, seed in enumerate(seeds):
        env = gymnasium.make(world_id, horizon=300).unwrapped
        policy = scenarios.expert_policy(env)
        observation, _ = env.reset(seed=seed)
        for step in range(n_steps):
            action = policy(observation)
            assert action == run.action[row, step]
            assert env.expected_rewards()[action] == pytest.approx(run.score[row, step], abs=1e-6)
            observation, reward, *_ = env.step(action)
            assert np.float32(reward) == run.reward[row, step]


def test_the_best_fixed_action_earns_most(monkeypatch):
    earned = {0: 0.1, 1: 0.4, 2: 0.4, 3: -1.0}
    action_of = []

    def run(setting, player, seeds):
        action_of.append(int(player.action))
        return world_runs.Run(None, np.full((2, 3), earned.get(action_of[-1], -2.0)), None, None)

    monkeypatch.setattr(world_runs, "run", run)
    assert world_runs.best_fixed(Setting(ANY_WORLD), (0, 1)) == 1  # the first of equals
    assert action_of == list(range(8))


def test_worlds_have_short_names():
    assert world_runs.label_of("habitus/GameNPC-v0") == "GameNPC"
    assert world_runs.worlds_of(()) == WORLD_IDS
    assert world_runs.worlds_of(["GameNPC", "habitus/CreditReview-v0"]) == (
        "habitus/GameNPC-v0",
        "habitus/CreditReview-v0",
    )
    with pytest.raises(ExperimentError, match=r"got .GamNPC.*GameNPC"):
        world_runs.worlds_of(["GamNPC"])


def test_scores_lie_between_random_and_oracle():
    values = np.array([1.0, 2.0, 4.0])
    scaled = world_runs.normalised(values, np.array([0.0, 2.0]), np.array([4.0, 6.0]))  # means 1 and 5
    assert scaled == pytest.approx([0.0, 0.25, 0.75])


def test_results_come_in_the_order_of_the_tasks():
    told = []
    assert world_runs.each(lambda task: [task, -task], [3, 1, 2], 1, told.append) == [3, -3, 1, -1, 2, -2]
    assert told == ["1 of 3: 3", "2 of 3: 1", "3 of 3: 2"]


@pytest.mark.slow
def test_worker_processes_find_the_same_in_the_same_order():
    tasks = [["GameNPC"], ["CreditReview"], ["CustomerService"]]
    found = world_runs.each(world_runs.worlds_of, tasks, 2)
    assert found == world_runs.each(world_runs.worlds_of, tasks, 1)
    assert found == ["habitus/GameNPC-v0", "habitus/CreditReview-v0", "habitus/CustomerService-v0"]
