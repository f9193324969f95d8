"""What an agent did is measured at its world, the same for every kind of agent and of feedback."""

import gymnasium
import numpy as np
import pytest
from habitus.agents import online
from habitus.experiments.recording import Recorder, epsilon_of


def record(fake, feedback="attributed", steps=60, seed=0, agent=None, **kwargs):
    recorder = Recorder(fake.FakeWorld(horizon=steps, feedback=feedback), steps=steps, seed=seed, **kwargs)
    agent = agent or fake.Bandit(recorder, seed=seed, epsilon=1.0)
    online.run(agent, recorder, steps)
    return recorder


def test_a_late_reward_is_put_back_to_its_decision(fake):
    paid_at_once, paid_late = (record(fake, feedback).steps() for feedback in ("attributed", "stream"))
    np.testing.assert_array_equal(paid_at_once.action, paid_late.action)
    done = slice(0, 60 - fake.DELAY)
    np.testing.assert_array_equal(paid_at_once.reward[done], paid_late.reward[done])
    assert paid_late.reward[60 - fake.DELAY + 1 :].sum() == 0  # not arrived when the record ended


def test_decisions_whose_outcome_is_open_are_counted(fake):
    recorder = record(fake, "stream", seed=3)
    trace = recorder.steps()
    # an outcome of step t arrives with step t + DELAY - 1, so those of the last DELAY - 1 steps are open
    assert recorder.n_pending == int((trace.score[60 - fake.DELAY + 1 :] == 1).sum()) > 0


def test_the_score_is_the_expected_reward_of_what_was_done(fake):
    trace = record(fake).steps()
    np.testing.assert_array_equal(trace.score, trace.reward)  # the fake world pays what it expects
    assert (trace.best == 1).all()
    assert trace.boundary.all()


def test_the_regime_is_that_under_which_was_decided(fake):
    trace = record(fake).steps()
    assert trace.regime[:30].tolist() == [0.0] * 30
    assert trace.regime[30:].tolist() == [1.0] * 30


def test_the_first_episode_has_the_seed_of_the_run_whoever_resets(fake):
    expected = record(fake, seed=5, agent=fake.Bandit(None, seed=0, epsilon=0.0)).steps()
    recorder = Recorder(fake.FakeWorld(horizon=60), steps=60, seed=5)
    recorder.reset(seed=999)
    recorder.reset()
    agent = fake.Bandit(recorder, seed=0, epsilon=0.0)
    online.run(agent, recorder, 60, seed=123)
    np.testing.assert_array_equal(recorder.steps().reward, expected.reward)


def test_steps_beyond_the_budget_are_not_recorded(fake):
    recorder = record(fake)
    recorder.reset()
    recorder.step(0)
    assert len(recorder.steps()) == 60


def test_an_agent_that_stops_early_is_an_error(fake):
    recorder = Recorder(fake.FakeWorld(), steps=60, seed=0)
    online.run(fake.Bandit(recorder), recorder, 59)
    with pytest.raises(RuntimeError, match="stopped after 59 of 60 steps"):
        recorder.steps()


def test_the_hook_sees_the_decision_before_it_is_taken(fake):
    seen = []
    recorder = record(fake, before_step=lambda number, observation, action: seen.append((number, action)))
    assert seen == list(enumerate(recorder.steps().action))


def test_exploration_is_recorded_where_an_agent_declares_it(fake):
    recorder = Recorder(fake.FakeWorld(), steps=10, seed=0)
    agent = fake.Bandit(recorder, epsilon=0.25)
    recorder.epsilon = epsilon_of(agent)
    online.run(agent, recorder, 10)
    assert recorder.steps().epsilon.tolist() == [0.25] * 10
    assert np.isnan(record(fake).steps().epsilon).all()


def test_a_world_without_an_oracle_is_scored_by_its_reward():
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    recorder = Recorder(env, steps=30, seed=0)
    recorder.reset()
    for _ in range(30):
        _, _, terminated, truncated, _ = recorder.step(0)
        if terminated or truncated:
            recorder.reset()
    trace = recorder.steps()
    assert trace.score.tolist() == trace.reward.tolist() == [1.0] * 30
    assert trace.boundary.sum() >= 1
    assert np.isnan(trace.best).all()


def test_a_world_with_other_actions_is_refused():
    env = gymnasium.make("Pendulum-v1", disable_env_checker=True)
    with pytest.raises(TypeError, match="a study needs a Discrete action space, got Box"):
        Recorder(env, steps=1, seed=0)


def test_times_are_taken_along_the_way(fake):
    timing = record(fake).timing()
    assert len(timing["marks_s"]) == 60
    assert timing["marks_s"] == sorted(timing["marks_s"])
    assert 0 < timing["first_step_s"] <= timing["marks_s"][0]
