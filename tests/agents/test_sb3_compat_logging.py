"""Loggers of stable-baselines3 and TensorBoard files: standard tags, `habitus/` tags, and runs that go on."""

import copy
import csv
import pickle
import tempfile

import gymnasium
import pytest
from habitus.agents import Substrate
from habitus.agents.online import OnlineAgent
from habitus.agents.sb3_logging import RECENT_EPISODES, RECENT_STEPS
from habitus.agents.simple import FixedAction, RandomAgent
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback, LogEveryNTimesteps
from stable_baselines3.common.logger import KVWriter, Logger, configure
from stable_baselines3.common.monitor import Monitor
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


class Lines(KVWriter):
    """Keeps the lines of a log."""

    def __init__(self):
        self.lines = []

    def write(self, key_values, key_excluded, step=0):
        self.lines.append((step, dict(key_values)))


class Quiet(BaseCallback):
    """Does nothing."""

    def _on_step(self):
        return True


def lines_of(agent, n_steps, **settings):
    """Lines that a run logs."""
    lines = Lines()
    agent.set_logger(Logger(None, [lines]))
    agent.learn(n_steps, **settings)
    return lines.lines


def curve(folder, tag):
    """Steps and values of a tag in TensorBoard files."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return [event.step for event in events.Scalars(tag)], [event.value for event in events.Scalars(tag)]


class Learner(OnlineAgent):
    """Does nothing, and says that it explores and has learnt."""

    exploration_rate, lessons = 0.25, 17

    def act(self, observation):
        return 0


def test_the_standard_tags_carry_what_happened(lanterns):
    rewards = []
    agent = FixedAction(lanterns(horizon=5), action=1)
    lines = lines_of(agent, 12, log_interval=2, callback=lambda _, t: rewards.append(t.reward))
    assert [step for step, _ in lines] == [10, 12]  # two episodes, and what was left at the end
    first, last = lines[0][1], lines[1][1]
    assert first["rollout/ep_rew_mean"] == pytest.approx(sum(rewards[:10]) / 2)
    assert first["rollout/ep_len_mean"] == 5
    assert (first["time/total_timesteps"], first["time/iterations"], first["time/episodes"]) == (10, 1, 2)
    assert (last["time/total_timesteps"], last["time/iterations"], last["time/episodes"]) == (12, 2, 2)
    assert last["habitus/reward_mean"] == pytest.approx(sum(rewards) / 12)
    assert first["time/fps"] > 0
    assert "rollout/success_rate" not in first
    assert "habitus/exploration_rate" not in first


def test_a_line_is_due_after_steps_too_for_episodes_may_be_long(lanterns):
    assert [s for s, _ in lines_of(RandomAgent(lanterns()), 25, log_steps=10)] == [10, 20, 25]
    assert [s for s, _ in lines_of(RandomAgent(lanterns(horizon=3)), 12, log_steps=10, log_interval=3)] == [9, 12]
    assert [s for s, _ in lines_of(RandomAgent(lanterns(horizon=3)), 9, log_steps=None, log_interval=None)] == [9]
    assert "rollout/ep_rew_mean" not in lines_of(RandomAgent(lanterns()), 5)[0][1]  # no episode has ended


def test_means_look_back_so_far_and_no_further(lanterns):
    class Ascending(lanterns):
        """Pays the number of the step, in episodes of one step that succeed after the 150th."""

        n = 0

        def step(self, action):
            observation, _, terminated, truncated, info = super().step(action)
            self.n += 1
            return observation, float(self.n), terminated, truncated, {**info, "is_success": self.n > 150}

    line = lines_of(RandomAgent(Ascending(horizon=1)), 1_500, log_interval=None, log_steps=None)[-1][1]
    assert line["rollout/ep_rew_mean"] == 1_500 - (RECENT_EPISODES - 1) / 2
    assert line["habitus/reward_mean"] == 1_500 - (RECENT_STEPS - 1) / 2
    assert line["rollout/success_rate"] == 1.0
    line = lines_of(RandomAgent(Ascending(horizon=1)), 200, log_interval=None, log_steps=None)[-1][1]
    assert line["rollout/success_rate"] == 0.5


def test_an_agent_says_how_much_it_explores_and_has_learnt(lanterns):
    line = lines_of(Learner(lanterns()), 5)[0][1]
    assert (line["habitus/exploration_rate"], line["habitus/lessons"]) == (0.25, 17)
    agent = Substrate(lanterns(delay=2))
    line = lines_of(agent, 8)[0][1]
    assert line["habitus/lessons"] == agent.memory.version > 0


def test_configured_files_hold_the_lines(lanterns, tmp_path):
    agent = RandomAgent(lanterns(horizon=10))
    logger = configure(str(tmp_path), ["csv", "tensorboard"])
    agent.set_logger(logger)
    evaluation = EvalCallback(Monitor(lanterns(horizon=10)), eval_freq=15, n_eval_episodes=1, verbose=0)
    agent.learn(30, evaluation, log_interval=1)
    assert agent.logger is logger
    logger.close()
    with open(tmp_path / "progress.csv") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["time/total_timesteps"]) for row in rows] == [10, 15, 20, 30, 30]
    assert [row["eval/mean_reward"] != "" for row in rows] == [False, True, False, True, False]
    assert curve(tmp_path, "rollout/ep_len_mean") == ([10, 20, 30], [10.0, 10.0, 10.0])
    assert curve(tmp_path, "eval/mean_reward")[0] == [15, 30]
    assert curve(tmp_path, "habitus/reward_mean")[0] == [10, 20, 30]


def test_a_run_that_goes_on_goes_on_in_its_tensorboard_curve(lanterns, tmp_path):
    agent = Substrate(lanterns(horizon=10), seed=0)
    agent.tensorboard_log = tmp_path
    agent.learn(20, log_interval=1)
    first = agent.logger.output_formats[0].writer
    agent.learn(20, log_interval=1, reset_num_timesteps=False)
    assert first.all_writers is None  # closed
    loaded = Substrate.load(agent.save(tmp_path / "agent"), lanterns(horizon=10))
    loaded.learn(10, tensorboard_log=str(tmp_path), log_interval=1, reset_num_timesteps=False)
    assert loaded.num_timesteps == 50
    assert curve(tmp_path / "Substrate_1", "rollout/ep_rew_mean")[0] == [10, 20, 30, 40, 50]
    agent.learn(10, log_interval=1)
    agent.learn(10, log_interval=1, tb_log_name="other")
    assert curve(tmp_path / "Substrate_2", "rollout/ep_rew_mean")[0] == [10]
    assert curve(tmp_path / "other_1", "rollout/ep_rew_mean")[0] == [10]


def test_episodes_are_remembered_by_a_run_that_goes_on_and_by_no_other(lanterns):
    agent = RandomAgent(lanterns(horizon=4)).learn(8, Quiet())
    assert len(agent.ep_info_buffer) == 2
    assert len(agent.learn(4, Quiet(), reset_num_timesteps=False).ep_info_buffer) == 3
    assert len(agent.learn(4, Quiet()).ep_info_buffer) == 1


def test_without_a_logger_nothing_is_written_anywhere(lanterns, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    agent = RandomAgent(lanterns(horizon=3)).learn(10, Quiet())
    agent.logger.record("mine", 1)
    agent.learn(10, EvalCallback(Monitor(lanterns(horizon=3)), eval_freq=5, verbose=0))
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""


def test_a_verbose_agent_prints_a_table(lanterns, capsys):
    agent = RandomAgent(lanterns(horizon=3))
    agent.verbose = 1
    agent.learn(6, log_interval=2)
    shown = capsys.readouterr().out
    assert "ep_rew_mean" in shown
    assert "reward_mean" in shown


def test_a_callback_may_ask_for_lines(lanterns):
    lines = lines_of(RandomAgent(lanterns()), 9, callback=LogEveryNTimesteps(4), log_interval=None, log_steps=None)
    assert [step for step, _ in lines] == [4, 8, 9]
    with pytest.raises(ValueError, match="`dump_logs` must follow `learn`"):
        RandomAgent(lanterns()).dump_logs()


def test_an_agent_that_logs_can_be_copied_and_pickled(tmp_path):
    agent = RandomAgent(gymnasium.make("CliffWalking-v1", max_episode_steps=2))
    logger = configure(str(tmp_path), ["csv"])
    agent.set_logger(logger)
    agent.learn(5, Quiet())
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert twin.num_timesteps == 5
        assert twin.logger.output_formats == []
        assert twin.get_env() is not agent.get_env()
        assert len(twin.learn(2, Quiet(), reset_num_timesteps=False).ep_info_buffer) == 3
    assert len(agent.ep_info_buffer) == 2
    assert agent.logger is logger
    logger.close()
    assert (tmp_path / "progress.csv").read_text().count("\n") == 2  # the header, and the line of the original


def test_a_logger_can_be_taken_away(lanterns):
    agent, lines = RandomAgent(lanterns()), Lines()
    agent.set_logger(Logger(None, [lines]))
    agent.learn(5)
    agent.set_logger(None)
    agent.learn(5)
    assert len(lines.lines) == 1


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"log_interval": 0}, ValueError, "`log_interval` must be at least 1, got 0"),
        ({"log_steps": 1.5}, TypeError, "`log_steps` must be a whole number"),
        ({"total_timesteps": True}, TypeError, "`total_timesteps` must be a whole number"),
        ({"tensorboard_log": 3}, TypeError, "`tensorboard_log` must be the path of a folder, got 3"),
        ({"tensorboard_log": "file/log"}, NotADirectoryError, "must be a folder to write into, got 'file/log'"),
        ({"tensorboard_log": "file"}, FileExistsError, "must be a folder to write into, got 'file'"),
        ({"reset_num_timesteps": "no"}, TypeError, "`reset_num_timesteps` must be True or False, got 'no'"),
    ],
    ids=["interval", "steps", "total", "number", "below a file", "file", "switch"],
)
def test_settings_that_cannot_be_used_are_refused_before_the_first_step(
    lanterns, tmp_path, monkeypatch, settings, error, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    agent = RandomAgent(lanterns()).learn(2)
    with pytest.raises(error, match=message):
        agent.learn(**{"total_timesteps": 5, **settings})
    assert agent.num_timesteps == agent.stage.episode_length == 2


def test_two_places_to_log_to_and_things_that_do_not_log_are_refused(lanterns, tmp_path):
    agent = RandomAgent(lanterns())
    with pytest.raises(TypeError, match=r"`logger` must be a stable_baselines3.*, got 'logs'; make one with"):
        agent.set_logger("logs")
    agent.set_logger(Logger(None, []))
    with pytest.raises(ValueError, match="`tensorboard_log` must be None where a logger was set"):
        agent.learn(5, tensorboard_log=str(tmp_path))
    assert agent.stage is None
