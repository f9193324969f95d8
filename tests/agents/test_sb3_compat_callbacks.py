"""Callbacks of stable-baselines3 in `learn`, beside our own."""

import gymnasium
import numpy as np
import pytest
from habitus.agents import LinUCB, Substrate, TabularQ
from habitus.agents.deep import DeepAgent
from habitus.agents.simple import RandomAgent
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    CheckpointCallback,
    ConvertCallback,
    EvalCallback,
    EveryNTimesteps,
    ProgressBarCallback,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
    StopTrainingOnRewardThreshold,
)
from stable_baselines3.common.monitor import Monitor


class Diary(BaseCallback):
    """Writes down when it is called, and what it finds."""

    def __init__(self, stop_at=None):
        super().__init__()
        self.words, self.found, self.stop_at = [], [], stop_at

    def _on_training_start(self):
        self.words.append(f"start {self.num_timesteps} {self.locals['total_timesteps']}")

    def _on_rollout_start(self):
        self.words.append("rollout")

    def _on_step(self):
        self.words.append(f"step {self.num_timesteps}")
        self.found.append(dict(self.locals))
        return self.num_timesteps != self.stop_at

    def _on_rollout_end(self):
        self.words.append("over")

    def _on_training_end(self):
        self.words.append("end")


def actions_of(agent, n_steps, callback=None):
    """Actions of a run, seen by a function of ours beside `callback`."""
    actions = []
    watchers = [lambda _, t: actions.append(t.action)]
    agent.learn(n_steps, watchers if callback is None else [callback, *watchers])
    return actions


def test_a_callback_is_told_of_training_rollouts_and_steps_in_order(lanterns):
    diary = Diary()
    agent = RandomAgent(lanterns(horizon=2)).learn(3, diary)
    episode = ["rollout", "step 1", "step 2", "over"]
    assert diary.words == ["start 0 3", *episode, "rollout", "step 3", "over", "end"]
    diary.words.clear()
    agent.learn(2, diary, reset_num_timesteps=False)
    assert diary.words == ["start 3 5", "rollout", "step 4", "over", "rollout", "step 5", "over", "end"]
    assert diary.n_calls == 5
    assert diary.training_env is agent.get_env()
    assert diary.model is agent


def test_a_callback_finds_what_an_algorithm_of_stable_baselines3_shows_it(lanterns):
    theirs, ours = Diary(), Diary()
    A2C("MultiInputPolicy", lanterns(horizon=3), n_steps=3, device="cpu").learn(6, theirs)
    Substrate(lanterns(horizon=3)).learn(6, ours)
    for there, here in zip(theirs.found, ours.found, strict=True):
        for name in ("self", "callback", "env", "total_timesteps", "tb_log_name", "log_interval", "progress_bar"):
            assert name in there
            assert name in here
        for name in ("rewards", "dones", "actions"):
            shown = np.asarray(here[name])
            assert (shown.shape, shown.dtype) == (there[name].shape, there[name].dtype)
        np.testing.assert_array_equal(here["dones"], there["dones"])
        assert {k: v.shape for k, v in here["new_obs"].items()} == {k: v.shape for k, v in there["new_obs"].items()}
        # what comes from the environment apart, both add the same
        assert set(here["infos"][0]) == set(there["infos"][0])
        assert here["infos"][0]["TimeLimit.truncated"] == there["infos"][0]["TimeLimit.truncated"]
    assert set(ours.found[2]["infos"][0]["episode"]) == set(theirs.found[2]["infos"][0]["episode"])


def test_the_end_of_an_episode_is_shown_as_it_was(lanterns):
    diary, transitions = Diary(), []
    RandomAgent(lanterns(horizon=4), seed=3).learn(5, [diary, lambda _, t: transitions.append(t)])
    info, last = diary.found[3]["infos"][0], transitions[3]
    assert info["terminal_observation"] is last.next_observation
    assert diary.found[3]["new_obs"]["colour"].tolist() == [last.next_observation["colour"]]
    assert info["episode"]["r"] == sum(t.reward for t in transitions[:4])
    assert info["episode"]["l"] == 4
    assert "episode" not in diary.found[4]["infos"][0]
    assert "episode" not in last.info  # the environment's own dict is left alone
    assert [float(one["rewards"][0]) for one in diary.found] == [t.reward for t in transitions]


@pytest.mark.parametrize("kind", [Substrate, LinUCB, TabularQ])
def test_callbacks_change_nothing_about_the_life_of_an_agent(lanterns, kind):
    eval_env = Monitor(lanterns(horizon=10))
    observed = EvalCallback(eval_env, eval_freq=20, n_eval_episodes=1, verbose=0)
    expected = actions_of(kind(lanterns(horizon=30), seed=4), 100)
    assert actions_of(kind(lanterns(horizon=30), seed=4), 100, observed) == expected
    assert observed.evaluations_timesteps == []
    assert observed.n_calls == 100


def test_false_of_a_callback_stops_after_its_step(lanterns):
    diary, later = Diary(stop_at=3), Diary()
    agent = RandomAgent(lanterns()).learn(10, [diary, later])
    assert agent.num_timesteps == 3
    assert diary.words[-3:] == ["step 3", "over", "end"]
    assert later.words[-3:] == ["step 3", "over", "end"]
    agent.learn(2, reset_num_timesteps=False)
    assert agent.num_timesteps == 5


def test_functions_are_told_apart_by_the_names_of_their_parameters(lanterns):
    seen = []

    def theirs(_locals, _globals):
        seen.append(("theirs", _locals["self"].num_timesteps, _locals["actions"].shape))
        return len(seen) < 6

    def ours(agent, transition):
        seen.append(("ours", agent.num_timesteps, transition.action))

    agent = RandomAgent(lanterns()).learn(10, [theirs, ours])
    assert [kind for kind, *_ in seen] == ["theirs", "ours"] * 4  # the seventh entry is the first that says False
    assert agent.num_timesteps == 4
    assert RandomAgent(lanterns()).learn(10, theirs).num_timesteps == 1
    unnamed = ConvertCallback(lambda a, b: a["self"].num_timesteps < 2)
    assert RandomAgent(lanterns()).learn(10, unnamed).num_timesteps == 2
    for names in ("locals, globals", "locals_, globals_", "_locals, _globals"):
        function = eval(f"lambda {names}: {names.split(',')[0]}['self'].num_timesteps < 3")
        assert RandomAgent(lanterns()).learn(10, function).num_timesteps == 3


def test_functions_of_ours_alone_may_be_a_list(lanterns):
    counts = [0, 0]

    def counter(i, stops_at):
        def count(agent, transition):
            counts[i] += 1
            return counts[i] != stops_at

        return count

    assert RandomAgent(lanterns()).learn(9, [counter(0, 4), counter(1, 99)]).num_timesteps == 4
    assert counts == [4, 4]
    assert RandomAgent(lanterns()).learn(3, []).num_timesteps == 3


def test_an_eval_callback_keeps_the_best_model_and_can_end_the_run(lanterns, tmp_path):
    stops = StopTrainingOnRewardThreshold(reward_threshold=20.0)  # of 30; at random 11
    evaluation = EvalCallback(
        Monitor(lanterns(horizon=30)),
        callback_on_new_best=stops,
        best_model_save_path=str(tmp_path / "best"),
        log_path=str(tmp_path / "log"),
        eval_freq=100,
        verbose=0,
    )
    agent = Substrate(lanterns(), seed=0).learn(5_000, evaluation)
    assert agent.num_timesteps < 5_000
    assert agent.num_timesteps % 100 == 0
    assert evaluation.best_mean_reward >= 20.0
    steps = np.load(tmp_path / "log" / "evaluations.npz")["timesteps"]
    assert steps.tolist() == list(range(100, agent.num_timesteps + 1, 100))
    best = Substrate.load(tmp_path / "best" / "best_model", lanterns())
    np.testing.assert_array_equal(best.memory.gain, agent.memory.gain)


def test_a_run_ends_where_evaluations_get_no_better(lanterns):
    stops = StopTrainingOnNoModelImprovement(max_no_improvement_evals=1, min_evals=0)
    evaluation = EvalCallback(
        Monitor(lanterns(horizon=5)), callback_after_eval=stops, eval_freq=10, n_eval_episodes=1, verbose=0
    )
    agent = RandomAgent(lanterns()).learn(10_000, evaluation)
    assert agent.num_timesteps < 10_000
    assert stops.no_improvement_evals == 2


def test_an_eval_callback_may_use_the_environment_of_the_agent(lanterns):
    env, ids = Monitor(lanterns(delay=1, horizon=4)), []
    evaluation = EvalCallback(env, eval_freq=3, n_eval_episodes=1, verbose=0)
    RandomAgent(env).learn(7, [evaluation, lambda _, t: ids.append(t.info["decision_id"])])
    assert ids == [0, 1, 2, 0, 1, 2, 0]


def test_checkpoints_can_be_loaded_and_go_on(lanterns, tmp_path):
    checkpoints = CheckpointCallback(
        50, str(tmp_path / "points"), "lamp", save_replay_buffer=True, save_vecnormalize=True
    )
    agent = Substrate(lanterns(), seed=1).learn(120, checkpoints)
    assert sorted(path.name for path in (tmp_path / "points").iterdir()) == ["lamp_100_steps.zip", "lamp_50_steps.zip"]
    loaded = Substrate.load(tmp_path / "points" / "lamp_100_steps.zip", lanterns())
    assert loaded.num_timesteps == loaded.memory.step == 100
    more = CheckpointCallback(50, str(tmp_path / "points"), "lamp")
    loaded.learn(50, more, reset_num_timesteps=False)
    assert (tmp_path / "points" / "lamp_150_steps.zip").exists()
    assert agent.num_timesteps == 120


def test_every_n_timesteps_and_max_episodes_count_right(lanterns):
    steps = []
    every = EveryNTimesteps(7, ConvertCallback(lambda found, _: steps.append(found["self"].num_timesteps) or True))
    agent = RandomAgent(lanterns(horizon=10)).learn(100, CallbackList([every, StopTrainingOnMaxEpisodes(3)]))
    assert steps == [7, 14, 21, 28]
    assert agent.num_timesteps == 30


@pytest.mark.filterwarnings("ignore:rich is experimental")
def test_the_progress_bar_of_stable_baselines3_reaches_its_end(lanterns, capsys):
    bar = ProgressBarCallback()
    agent = RandomAgent(lanterns()).learn(4, bar)
    assert (bar.pbar.n, bar.pbar.total) == (4, 4)
    agent.learn(3, bar, reset_num_timesteps=False)
    assert (bar.pbar.n, bar.pbar.total) == (3, 3)


def test_our_progress_bar_stands_beside_callbacks(lanterns, capsys):
    diary = Diary()
    RandomAgent(lanterns()).learn(4, diary, progress_bar=True)
    assert diary.n_calls == 4
    assert "learning" in capsys.readouterr().out


def test_episodes_are_those_of_the_users_monitor_and_time_limit():
    env = Monitor(gymnasium.make("CliffWalking-v1", max_episode_steps=6))
    diary = Diary()
    agent = RandomAgent(env).learn(13, diary)
    assert [one["l"] for one in agent.ep_info_buffer] == [6, 6]
    assert [one["r"] for one in agent.ep_info_buffer] == env.get_episode_rewards()
    assert diary.found[5]["infos"][0]["episode"] is agent.ep_info_buffer[0]
    limited = [one["infos"][0]["TimeLimit.truncated"] for one in diary.found]
    assert limited == [step in (5, 11) for step in range(13)]


def test_an_episode_that_began_before_anybody_watched_is_counted_whole(lanterns):
    env, total = lanterns(horizon=6), []
    agent = RandomAgent(env, seed=2)
    agent.learn(4, lambda _, t: total.append(t.reward))
    agent.learn(2, [Diary(), lambda _, t: total.append(t.reward)], reset_num_timesteps=False)
    assert [(one["r"], one["l"]) for one in agent.ep_info_buffer] == [(sum(total), 6)]


def test_a_deep_agent_takes_them_too(lanterns):
    diary = Diary()
    agent = DeepAgent(lanterns(horizon=4), algorithm="A2C", seed=0)
    agent.learn(10, [diary, StopTrainingOnMaxEpisodes(2)])
    assert agent.num_timesteps == diary.n_calls == 8
    assert [one["l"] for one in agent.ep_info_buffer] == [4, 4]


@pytest.mark.parametrize(
    ("callback", "error", "message"),
    [
        (3, TypeError, "got 3"),
        ("no", TypeError, "got 'no'"),
        (EvalCallback, TypeError, r"got the class EvalCallback; pass an object of it, EvalCallback\(...\)"),
        ([lambda a, t: None, None], TypeError, "got None"),
        (lambda only: None, TypeError, "cannot be called with two arguments"),
        (StopTrainingOnRewardThreshold(1.0), ValueError, "must belong to an EvalCallback, .* got it alone"),
        (
            CallbackList([EveryNTimesteps(1, StopTrainingOnNoModelImprovement(1))]),
            ValueError,
            "StopTrainingOnNoModelImprovement must belong to an EvalCallback, .* got it in EveryNTimesteps",
        ),
    ],
    ids=["number", "text", "class", "list", "arity", "alone", "nested"],
)
def test_a_callback_that_cannot_be_used_is_refused_before_the_first_step(lanterns, callback, error, message):
    agent = RandomAgent(lanterns()).learn(2)
    with pytest.raises(error, match=message):
        agent.learn(5, callback)
    assert agent.num_timesteps == agent.stage.episode_length == 2


def test_an_agent_that_cannot_be_saved_is_refused_before_the_first_step(lanterns, tmp_path):
    env = Monitor(lanterns())
    for callback in (
        CheckpointCallback(5, str(tmp_path / "a")),
        EveryNTimesteps(5, EvalCallback(env, best_model_save_path=str(tmp_path / "a"))),
    ):
        agent = RandomAgent(lanterns())
        with pytest.raises(TypeError, match="needs an agent that can be saved, got RandomAgent"):
            agent.learn(5, callback)
        assert agent.stage is None
    assert list(tmp_path.iterdir()) == []
    RandomAgent(lanterns()).learn(5, EvalCallback(env, verbose=0))


@pytest.mark.parametrize("where", ["save_path", "best_model_save_path", "log_path"])
def test_a_folder_that_cannot_be_written_is_refused_before_the_first_step(lanterns, tmp_path, where):
    (tmp_path / "file").write_text("")
    folder = str(tmp_path / "file" / "folder")
    callback = (
        CheckpointCallback(5, folder) if where == "save_path" else EvalCallback(Monitor(lanterns()), **{where: folder})
    )
    agent = Substrate(lanterns())
    with pytest.raises(NotADirectoryError, match=f"`{where}` must be a folder to write into, got .*no step was taken"):
        agent.learn(5, callback)
    assert agent.num_timesteps == 0
    assert agent.stage is None
