"""`habitus play`, driven by scripted lines."""

import io
import re

import gymnasium
import numpy as np
import pytest
import rich.console
from habitus import agents
from habitus.envs.contract import Field, Schema, Signal
from habitus.experiments import cli, play, play_setup
from habitus.experiments.errors import ExperimentError
from habitus.experiments.play_setup import matches, references
from PIL import Image
from typer.testing import CliRunner

LABELS = ("template", "detailed", "discount", "re_place")
SCHEMA = Schema(
    world="Chat",
    version=2,
    fields=(Field("mood", ("angry", "calm")), Field("wait", low=0.0, high=1.0, unit="h"), Field("who", ("?", "#1"))),
    actions=LABELS,
    entity_field="who",
    stake_field=None,
    boundary="ticket",
    deliberation=(),
    scaled_actions=(),
    review=None,
    signals=(Signal("answer", ("none", "thanks", "why")),),
    sensitive=(),
    proxies=(),
    reward_bound=1.0,
    feedback="attributed",
    score_per="boundary",
)


class Chat(gymnasium.Env):
    """Counts; `discount` is impossible on even steps; every second step ends a ticket."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012
    schema = SCHEMA

    def __init__(self, horizon=6, text=False, render_mode=None):
        self.observation_space = gymnasium.spaces.Dict(
            mood=gymnasium.spaces.Discrete(2),
            wait=gymnasium.spaces.Box(0.0, 1.0, (1,)),
            who=gymnasium.spaces.Discrete(2),
        )
        self.action_space = gymnasium.spaces.Discrete(4)
        self.horizon, self.render_mode, self.text = horizon, render_mode, text

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self._seen(), self._info(text={"customer": "Hello [bold]there[/]"})

    def step(self, action):
        assert action in range(4)
        self.t += 1
        feedback = [(0, -0.25)] if self.t == 3 else []
        info = self._info(
            decision_id=0 if self.t == 1 else -1,
            feedback=feedback,
            boundary=self.t % 2 == 0,
            answer="thanks" if self.t == 1 else "none",
            text={"agent": f"Said {LABELS[action]}", "customer": f"Heard {self.t}"},
        )
        return self._seen(), float(action) / 4, False, self.t >= self.horizon, info

    def render(self):
        return np.full((32, 48, 3), 20 * self.t, np.uint8)

    def oracle_action(self):
        return 3

    def _seen(self):
        return {"mood": np.int64(self.t % 2), "wait": np.array([0.5], np.float32), "who": np.int64(1)}

    def _info(self, **more):
        mask = np.array([True, True, self.t % 2 == 1, True])
        return {"decision_id": -1, "feedback": [], "boundary": False, "regime": 0.0, "action_mask": mask} | more


@pytest.fixture(autouse=True)
def _chat_is_known():
    gymnasium.register("test/Chat-v2", Chat)
    gymnasium.register("test/Late-v0", Late)
    yield
    del gymnasium.registry["test/Chat-v2"], gymnasium.registry["test/Late-v0"]


class Late(gymnasium.Env):
    """Declares nothing; its actions are 5 and 6; an observation of many numbers."""

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self):
        self.observation_space = gymnasium.spaces.Box(0, 255, (8, 8), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(2, start=5)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros((8, 8), np.uint8), {}

    def step(self, action):
        assert action in (5, 6)
        return np.zeros((8, 8), np.uint8), float(action == 6), False, False, {}


@pytest.fixture
def habitus(monkeypatch):
    """Plays with the given lines; returns (exit code, what was printed)."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(world, *words, lines=""):
        done = CliRunner().invoke(cli.app, ["play", world, *map(str, words)], input=lines)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    return call


def test_a_whole_episode_is_played_and_summed_up(habitus):
    code, said = habitus("test/Chat-v2", lines="0\n1\ndetailed\ndet\nRE-PLACE\n3\n")
    assert code == 0
    assert "Chat · ticket · decision 1 of 6" in said
    assert "the episode is over." in said
    # 0 + 1/4 + 1/4 + 1/4 + 3/4 + 3/4 = 2.25 in three tickets
    assert "6 decisions, sum of rewards +2.25, mean +0.375, +0.750 per ticket" in said


def test_the_player_sees_what_an_agent_sees(habitus):
    _, said = habitus("test/Chat-v2", lines="1\n1\n1\n")
    for part in ("mood", "angry", "calm", "wait", "0.5 h", "who", "#1"):
        assert part in said
    assert "detailed -> reward +0.25, answer: thanks" in said
    assert "decision 1 (detailed) brought -0.25" in said
    assert "customer: Hello [bold]there[/]" in said  # no markup of rich
    assert "agent: Said detailed" in said
    assert "customer: Heard 1" in said
    assert "ticket over" in said


def test_what_is_impossible_stands_in_brackets_and_is_refused(habitus):
    _, said = habitus("test/Chat-v2", lines="discount\n0\ndisc\n")
    assert "(2 discount)" in said
    assert "in brackets: impossible now" in said
    assert "discount is impossible now." in said
    assert "discount -> reward +0.50" in said  # possible on the second step
    assert "2 decisions" in said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("d", "`d` may be detailed or discount; type more of it."),
        ("detialed", "there is no action `detialed`; did you mean `detailed`? ? shows help."),
        ("4", "there is no action `4`. ? shows help."),
        ("-1", "there is no action `-1`. ? shows help."),
        ("?", "q end the episode here"),
        ("a", "there is no agent at your side; start with --agent KIND."),
        ("", "action or ? o a q > "),
    ],
)
def test_a_line_that_is_no_action_takes_no_step(habitus, typed, said):
    code, text = habitus("test/Chat-v2", lines=f"{typed}\nq\n")
    assert code == 0
    assert said in " ".join(text.split()) + " "
    assert "nothing was decided." in text


def test_enter_does_what_the_oracle_proposed_and_only_that(habitus):
    _, said = habitus("test/Chat-v2", lines="\no\n\n\nq\n")
    assert "the oracle would: re place" in said
    assert "re_place -> " not in said
    assert "re place -> reward +0.75" in said
    assert "1 decision, sum of rewards +0.75" in said


@pytest.mark.parametrize("lines", ["", "0\n", "0\nq\n0\n", "0\n1"])
def test_the_end_of_the_input_and_quitting_end_cleanly(habitus, lines):
    code, said = habitus("test/Chat-v2", lines=lines)
    assert code == 0
    expected = {"": "nothing was decided.", "0\n1": "2 decisions,"}.get(lines, "1 decision,")
    assert expected in said


def test_an_interrupt_ends_cleanly():
    def interrupt():
        raise KeyboardInterrupt

    written = io.StringIO()
    console = rich.console.Console(file=written, width=100)
    play.play("test/Chat-v2", seed=0, options={}, console=console, read=interrupt)
    assert "nothing was decided." in written.getvalue()


def test_an_agent_proposes_learns_along_and_explains(habitus):
    _, said = habitus("test/Chat-v2", "--agent", "substrate", lines="3\n3\n3\n3\na\n\nq\n")
    assert "the agent would: " in said
    proposed = said.split("the agent would: ")[1].splitlines()[0]
    assert f"{proposed} -> reward" in said
    assert "Read after 4 steps" in said or "score" in said
    assert "5 decisions" in said


@pytest.mark.parametrize("kind", ["random", "tabular_q", "linucb", "oracle", "best_fixed"])
def test_agents_without_an_explanation_propose_too(habitus, kind):
    code, said = habitus("test/Chat-v2", "--agent", kind, lines="1\n1\na\n\nq\n")
    assert code == 0
    assert "the agent would: " in said
    assert "3 decisions" in said
    if kind == "oracle":
        assert "the agent would: re place" in said


def test_a_saved_substrate_plays_from_its_file(habitus, tmp_path):
    env = gymnasium.make("test/Chat-v2", horizon=50)
    agent = agents.Substrate(env).learn(200)
    path = agent.save(tmp_path / "kept")
    best = agent.decide(env.reset(seed=0)[0]).choice
    _, said = habitus("test/Chat-v2", "--agent", path, lines="a\nq\n")
    assert f"the agent would: {best.replace('_', ' ')}" in said


def test_a_foreign_environment_is_played_by_number(habitus):
    code, said = habitus("test/Late-v0", lines="6\n5\n0\nq\n")
    assert code == 0
    assert "array of shape (8, 8), mean 0" in said
    assert "6 -> reward +1.00" in said
    assert "5 -> reward +0.00" in said
    assert "there is no action `0`." in said
    assert "2 decisions, sum of rewards +1.00" in said


def test_cartpole_is_played_with_its_numbers_and_time_limit(habitus):
    code, said = habitus("CartPole-v1", "--horizon", 3, lines="0\n1\n0\no\n")
    assert code == 0
    assert "CartPole-v1 · decision 1 of 3" in said
    assert "3 decisions, sum of rewards +3.00" in said


@pytest.mark.parametrize(
    "name", ["CreditReview", "creditreview-v0", "habitus/CreditReview-v0", "habitus:habitus/CreditReview-v0"]
)
def test_a_world_of_habitus_has_many_spellings(name):
    assert play_setup.world_id_of(name) == "habitus/CreditReview-v0"


def test_a_world_of_habitus_is_played(habitus):
    code, said = habitus("CreditReview", "--seed", 3, "--difficulty", "easy", "--horizon", 2, lines="rej\no\n\n")
    assert code == 0
    assert "CreditReview · application · decision 1 of 2" in said
    assert "the episode is over." in said


@pytest.mark.parametrize(
    ("language", "spoken"), [("en", r"customer: .*[a-z]{4}"), ("zh", "customer: .*[\u4e00-\u9fff]{2}")]
)
def test_customers_are_read_in_words(habitus, language, spoken):
    code, said = habitus("CustomerService", "--text", language, "--seed", 1, lines="det\no\n\n")
    assert code == 0
    assert "CustomerService · ticket · decision 2 of 200" in said
    assert re.search(spoken, said.replace("\n", " "))
    assert said.count("agent: ") == 2


def test_without_a_language_customers_are_seen_in_labels_only(habitus):
    _, said = habitus("CustomerService", lines="det\n")
    assert "customer:" not in said


def test_a_fight_is_played_with_the_rules_at_ones_side(habitus):
    code, said = habitus("gamenpc", "--agent", "rules", "--horizon", 5, lines="a\n\n" * 5)
    assert code == 0
    assert "GameNPC · encounter · decision 1 of 5" in said
    assert "5 decisions" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["CustomerService", "--text", "fr"], "`text` must be"),
        (["CreditReveiw"], "got 'CreditReveiw'; did you mean `CreditReview`"),
        (["CartPol-v1"], "did you mean `CartPole-v1`"),
        (["nowhere:Some-v0"], "the module of 'nowhere:Some-v0' cannot be imported"),
        (["CreditReview", "--difficulty", "eazy"], "`difficulty` must be one of"),
        (["CreditReview", "--horizon", "0"], "`horizon` must"),
        (["CreditReview", "--regime", "shfit"], "`regime` must be"),
        (["CreditReview", "--text", "en"], "`--text`: only CustomerService tells what is said in words"),
        (["CreditReview", "--seed", "-1"], "`--seed` must be at least 0, got -1."),
        (["CreditReview", "--agent", "substrat"], "did you mean 'substrate'?"),
        (["CreditReview", "--agent", "dqn"], "dqn runs a loop of its own"),
        (["CreditReview", "--agent", "gone.zip"], "there is no file 'gone.zip'."),
        (["CreditReview", "--record", "film.avi"], "`--record` must end in .gif or .mp4, got 'film.avi'."),
        (["CreditReview", "--record", "no/where/film.gif"], "the folder 'no/where' does not exist"),
        (["CartPole-v1", "--difficulty", "easy"], "`--difficulty`: only the worlds of habitus have it"),
        (["CartPole-v1", "--agent", "oracle"], "CartPole-v1 has no oracle."),
        (["CartPole-v1", "--agent", "rules"], "this world has no expert rules"),
        (["Pendulum-v1"], "only numbered ones (Discrete) can be typed"),
        (["test/Late-v0", "--record", "film.gif"], "test/Late-v0 draws no pictures"),
    ],
)
def test_a_mistake_gives_one_clear_message_and_exit_code_2(habitus, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    code, text = habitus(*words)
    assert code == 2
    assert text.startswith("error: ")
    assert said in " ".join(text.split())


def test_a_recording_has_a_frame_for_the_start_and_for_each_step(habitus, tmp_path):
    path = tmp_path / "film.gif"
    code, said = habitus("test/Chat-v2", "--record", path, lines="0\n1\nq\n")
    assert code == 0
    assert "(3 frames)" in said
    with Image.open(path) as film:
        assert film.n_frames == 3
        assert film.info["duration"] == 200


def test_colours_are_off_with_no_color(habitus):
    _, said = habitus("test/Chat-v2", lines="0\n")
    assert "\x1b[" not in said


@pytest.mark.parametrize(
    ("typed", "found"),
    [("0", [0]), ("3", [3]), ("4", []), ("tem", [0]), ("d", [1, 2]), ("detailed", [1]), ("re place", [3]), ("x", [])],
)
def test_a_number_a_name_or_its_beginning_means_an_action(typed, found):
    assert matches(typed, LABELS) == found


def test_a_name_that_begins_another_is_meant_itself():
    assert matches("approve", ("approve", "approve_reduced")) == [0]
    assert matches("appr", ("approve", "approve_reduced")) == [0, 1]


TABLE = """\
world,version,difficulty,regime,policy,action,seeds,reward_per_step,reward_per_step_low
Chat,2,medium,first,random,,20,-0.2,0
Chat,2,medium,first,oracle,,20,0.5,0
Chat,2,medium,first,value of memory,,20,0.1,0
Chat,2,medium,shift,random,,20,-0.3,0
Chat,2,easy,first,random,,20,-0.4,0
Chat,1,medium,first,rules,,20,-9,0
Other,2,medium,first,rules,,20,-9,0
"""


def test_published_means_are_those_of_the_world_and_setting_at_hand():
    assert references(SCHEMA, {}, TABLE) == [("random", -0.2), ("oracle", 0.5)]
    assert references(SCHEMA, {"regime": "shift"}, TABLE) == [("random", -0.3)]
    assert references(SCHEMA, {"difficulty": "easy", "regime": "none"}, TABLE) == [("random", -0.4)]
    assert references(SCHEMA, {"difficulty": "hard"}, TABLE) == []
    assert references(None, {}, TABLE) == []


def test_published_means_are_told_at_the_end(habitus, monkeypatch, tmp_path):
    (tmp_path / "worlds.csv").write_text(TABLE)
    monkeypatch.setattr(play_setup, "SCORES", tmp_path / "worlds.csv")
    _, said = habitus("test/Chat-v2", lines="0\nq\n")
    assert "published means of a step in this world: random -0.200, oracle +0.500" in said
    monkeypatch.setattr(play_setup, "SCORES", tmp_path / "gone.csv")
    _, said = habitus("test/Chat-v2", lines="0\nq\n")
    assert "published" not in said


def test_the_seed_decides_the_episode(habitus):
    same, again, other = (habitus("CreditReview", "--seed", seed, lines="rej\n" * 5)[1] for seed in (1, 1, 2))
    assert same == again
    assert same != other


def test_a_negative_seed_is_refused_in_code_too():
    with pytest.raises(ExperimentError, match="`--seed` must be at least 0"):
        play.play("test/Chat-v2", seed=-1, options={})
