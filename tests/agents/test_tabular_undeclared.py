"""Tabular Q where nothing is declared: all states, tiles, and optimism in units of the learnt bound."""

import gymnasium
import numpy as np
import pytest
from habitus.agents import RandomAgent, TabularQ
from habitus.agents.base import Transition
from habitus.agents.tabular import UNDECLARED

OPTIMISM = UNDECLARED.optimism


def step(before, action, reward, after, terminated=False):
    return Transition(before, action, reward, after, terminated, False, {})


def mean_return(agent, n_steps):
    """Mean return of the episodes that ended in the second half of a life."""
    ended, total = [], [0.0]

    def note(agent, transition):
        total[0] += transition.reward
        if transition.terminated or transition.truncated:
            ended.append((agent.num_timesteps, total[0]))
            total[0] = 0.0

    agent.learn(n_steps, callback=note)
    return np.mean([value for when, value in ended if when > n_steps / 2])


def test_every_code_and_number_is_in_the_key():
    assert TabularQ(gymnasium.make("Blackjack-v1")).fields == ("x0", "x1", "x2")
    assert len(TabularQ(gymnasium.make("CartPole-v1")).fields) == 4


def test_the_untried_is_worth_a_share_of_the_bound_and_the_tried_what_it_brought():
    agent = TabularQ(gymnasium.make("FrozenLake-v1"))
    assert agent.values(3).tolist() == [OPTIMISM] * 4
    # the first reward is 6 at the end: twenty steps have brought 6 at best, and 8 is the next power of two
    agent.observe(step(3, 2, 6.0, 4, terminated=True))
    assert agent.values(3).tolist() == [8 * OPTIMISM, 8 * OPTIMISM, 6.0, 8 * OPTIMISM]
    assert agent.values(5).tolist() == [8 * OPTIMISM] * 4


def test_what_follows_counts_at_a_discount_of_a_hundredth():
    agent = TabularQ(gymnasium.make("FrozenLake-v1"))
    agent.observe(step(3, 2, 0.0, 4))
    np.testing.assert_allclose(agent.values(3)[2], 0.99 * OPTIMISM)


def test_a_value_over_tiles_is_the_mean_of_their_tables_and_near_numbers_share_some():
    agent = TabularQ(gymnasium.make("CartPole-v1"), optimism=0.0)
    here, near, far = (np.array([x, 0.0, 0.0, 0.0], np.float32) for x in (0.0, 0.7, -4.0))
    agent.observe(step(here, 1, 3.0, far, terminated=True))
    assert agent.values(here).tolist() == [0.0, 3.0]  # the first step of each table is a whole one
    assert 0.0 < agent.values(near)[1] < 3.0
    assert agent.values(far).tolist() == [0.0, 0.0]
    # at the second time the step is a half: 3 + (1 - 3) / 2
    agent.observe(step(here, 1, 1.0, far, terminated=True))
    np.testing.assert_allclose(agent.values(here)[1], 2.0)


def test_a_table_grows_beyond_its_first_rows_without_losing_any():
    agent = TabularQ(gymnasium.make("Taxi-v4"), optimism=0.0)
    for state in range(500):
        agent.observe(step(state, 1, float(state + 1), 0, terminated=True))
    assert [agent.values(state)[1] for state in range(500)] == [state + 1 for state in range(500)]


@pytest.mark.parametrize(("task", "n_steps", "least"), [("FrozenLake-v1", 5_000, 0.2), ("CartPole-v1", 2_500, 40.0)])
def test_learns_tasks_that_declare_nothing(task, n_steps, least):
    learnt = np.mean([mean_return(TabularQ(gymnasium.make(task), seed=seed), n_steps) for seed in (50, 51)])
    chance = mean_return(RandomAgent(gymnasium.make(task), seed=50), n_steps)
    assert learnt > least > 1.5 * chance
