"""The loop: who is told what and in which order, where it stops, and how it goes on."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from habitus.agents import Agent, run
from habitus.agents.declared import schema_of, verdict_value
from habitus.agents.linucb import LinUCB
from habitus.agents.online import OnlineAgent, Stage
from habitus.agents.simple import BestFixed, FixedAction, PolicyAgent, RandomAgent
from habitus.agents.substrate import Substrate
from habitus.agents.tabular import TabularQ
from habitus.envs import contract


class Diary:
    """An agent that writes down what it is told."""

    def __init__(self):
        self.lines = []

    def begin(self, observation, info):
        self.lines.append(("begin", observation))

    def act(self, observation):
        self.lines.append(("act", observation))
        return 1

    def observe(self, transition):
        self.lines.append(("observe", transition))


def test_an_agent_is_told_begin_act_observe_in_order(lanterns):
    diary = Diary()
    assert isinstance(diary, Agent)
    assert run(diary, lanterns(horizon=2), 3, seed=0) == 3
    assert [word for word, _ in diary.lines] == ["begin", "act", "observe", "act", "observe", "begin", "act", "observe"]
    first, second = diary.lines[2][1], diary.lines[4][1]
    assert first.observation is diary.lines[0][1]
    assert first.next_observation is second.observation
    assert (first.truncated, second.truncated) == (False, True)
    assert first.action == 1


def test_a_callback_stops_the_run_after_its_step(lanterns):
    seen = []
    assert run(Diary(), lanterns(), 10, callback=lambda agent, t: seen.append(t) or len(seen) < 4) == 4
    assert len(seen) == 4


def test_learning_in_pieces_equals_learning_at_once(lanterns):
    def live(*pieces):
        shown, agent = [], RandomAgent(lanterns(horizon=7), seed=2)
        for piece in pieces:
            agent.learn(piece, callback=lambda _, t: shown.append((t.action, t.reward)), reset_num_timesteps=False)
        assert agent.num_timesteps == sum(pieces)
        return shown

    assert live(20) == live(3, 11, 6)


@pytest.mark.parametrize("meddle", [lambda env: env.reset(seed=1), lambda env: env.step(0)], ids=["reset", "step"])
@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: gymnasium.wrappers.TimeLimit(env, 50)])
def test_an_episode_that_others_touched_is_left(lanterns, meddle, wrap):
    env, diary = wrap(lanterns()), Diary()
    stage = Stage(diary, env, seed=0)
    stage.advance(2)
    meddle(env)
    stage.advance(1)
    stage.advance(1)
    words = [word for word, _ in diary.lines]
    assert words == ["begin", "act", "observe", "act", "observe", "begin", "act", "observe", "act", "observe"]
    assert diary.lines[7][1].observation is diary.lines[5][1]


def test_a_callback_may_evaluate_in_the_same_environment(lanterns):
    env, ids = lanterns(delay=2), []

    def evaluate(_, transition):
        ids.append(transition.info["decision_id"])
        if len(ids) == 3:
            env.reset()
            env.step(0)

    RandomAgent(env).learn(6, callback=evaluate)
    assert ids == [0, 1, 2, 0, 1, 2]


def test_an_environment_that_was_learnt_in_can_be_copied_and_pickled():
    env = gymnasium.make("CliffWalking-v1")
    RandomAgent(env).learn(3)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        before, state = env.unwrapped.reset.calls.n, env.unwrapped.s
        other.reset(seed=0)
        other.step(0)
        assert env.unwrapped.reset.calls.n == before
        assert env.unwrapped.s == state
        assert other.unwrapped.reset.calls.n == before + 2


def test_the_count_starts_again_unless_told_otherwise(lanterns):
    agent = RandomAgent(lanterns())
    assert agent.learn(5).learn(3).num_timesteps == 3
    assert agent.learn(2, reset_num_timesteps=False).num_timesteps == 5


def test_the_progress_bar_changes_nothing(lanterns, capsys):
    agent = RandomAgent(lanterns()).learn(5, progress_bar=True)
    assert agent.num_timesteps == 5
    assert "learning" in capsys.readouterr().out


def test_only_discrete_actions_from_zero_are_taken():
    env = gymnasium.make("CliffWalking-v1")
    for space in (gymnasium.spaces.Discrete(3, start=1), gymnasium.spaces.Box(-1, 1, (2,))):
        env.action_space = space
        with pytest.raises(TypeError, match="must be Discrete and start at 0"):
            RandomAgent(env)


def test_nothing_is_learnt_without_steps_or_an_environment(lanterns):
    agent = RandomAgent(lanterns())
    with pytest.raises(ValueError, match="`total_timesteps` must be at least 1, got 0"):
        agent.learn(0)
    agent.env = None
    with pytest.raises(ValueError, match="`env` is missing"):
        agent.learn(1)


class Spoilt(gymnasium.Wrapper):
    """Pays `value` at step 5: as the reward, or as a late outcome."""

    def __init__(self, env, value, late=False):
        super().__init__(env)
        self.value, self.late, self.t = value, late, 0

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.t += 1
        if self.t == 5 and self.late:
            info["feedback"] = [(0, self.value)]
        return observation, self.value if self.t == 5 and not self.late else reward, terminated, truncated, info


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [Substrate, LinUCB, TabularQ])
def test_a_reward_that_is_no_number_is_refused_at_its_step(lanterns, kind, value):
    agent = kind(Spoilt(lanterns(), value))
    with pytest.raises(ValueError, match=r"the reward must be finite, got .* at step 5 .*TransformReward"):
        agent.learn(10)
    assert agent.num_timesteps == 4
    assert agent.learn(3).num_timesteps == 3  # what was learnt before is sound


@pytest.mark.parametrize("kind", [Substrate, LinUCB, TabularQ])
def test_a_late_outcome_that_is_no_number_is_refused(lanterns, kind):
    with pytest.raises(ValueError, match=r"the outcome of decision 0 must be finite, got nan at step 5"):
        kind(Spoilt(lanterns(delay=9), np.nan, late=True)).learn(10)


class OneBuffer(gymnasium.Env):
    """Counts down in one array that every observation is; action 1 pays what the count was when it was chosen."""

    observation_space = gymnasium.spaces.MultiDiscrete([3])
    action_space = gymnasium.spaces.Discrete(2)
    copies = False

    def __init__(self):
        self.count = np.zeros(1, np.int64)

    def shown(self):
        return self.count.copy() if self.copies else self.count

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count[0] = self.np_random.integers(3)
        return self.shown(), {}

    def step(self, action):
        reward = float(self.count[0] * action)
        self.count[0] = self.np_random.integers(3)
        return self.shown(), reward, False, False, {"boundary": True}


@pytest.mark.parametrize("kind", [Substrate, LinUCB, TabularQ])
def test_an_environment_may_reuse_the_array_of_its_observation(kind):
    def life(copies):
        env, rewards = OneBuffer(), []
        env.copies = copies
        settings = {"reward_bound": 2.0} if kind is Substrate else {}
        kind(env, seed=1, **settings).learn(200, callback=lambda _, t: rewards.append(t.reward))
        return rewards

    assert life(copies=False) == life(copies=True)


def test_random_is_uniform(lanterns):
    actions = []
    RandomAgent(lanterns(), seed=0).learn(3_000, callback=lambda _, t: actions.append(t.action))
    # 1,000 each, sd 26; five of them
    assert np.abs(np.bincount(actions, minlength=3) - 1_000).max() < 130


def test_a_fixed_action_is_named_by_number_or_label(lanterns):
    for action in (2, "pull blue"):
        assert FixedAction(lanterns(), action=action).act(None) == 2
    assert BestFixed(lanterns(), action=1).predict(lanterns().reset(seed=0)[0])[0] == 1
    with pytest.raises(ValueError, match="did you mean 'pull blue'"):
        FixedAction(lanterns(), action="pull blu")
    with pytest.raises(ValueError, match=r"must lie in \[0, 3\), got 3"):
        FixedAction(lanterns(), action=3)


def test_a_policy_is_followed(lanterns, score):
    agent = PolicyAgent(lanterns(), policy=lambda observation: observation["colour"])
    assert score(agent, 100) == pytest.approx(1.0)
    assert type(agent.act({"colour": np.int64(2)})) is int


def test_a_base_agent_without_a_choice_says_so(lanterns):
    with pytest.raises(NotImplementedError):
        OnlineAgent(lanterns()).learn(1)


def test_the_schema_is_found_through_wrappers_and_missing_elsewhere(lanterns):
    env = lanterns()
    assert schema_of(gymnasium.wrappers.TimeLimit(env, 5)) is env.schema
    assert schema_of(gymnasium.make("CliffWalking-v1")) is None


@pytest.mark.parametrize(("is_bad", "truth"), [(False, 0.5), (True, -1.0)])
def test_a_verdict_is_an_unbiased_label(is_bad, truth):
    review = contract.Review("ask", "pull", "verdict", "good", "bad", reliability=0.8, gain=0.5, loss=1.0)
    right, wrong = ("bad", "good") if is_bad else ("good", "bad")
    mean = 0.8 * verdict_value(review, right) + 0.2 * verdict_value(review, wrong)
    np.testing.assert_allclose(mean, truth, atol=1e-12)
    assert verdict_value(review, "none") is None
