"""Pictures and cards of made-up episodes: what they show, and that text stays in its place."""

import importlib.util
import itertools
import time
from pathlib import Path

import gymnasium
import habitus
import numpy as np
import pytest
from habitus.envs import rendering
from habitus.envs.game_npc import GameNPCEnv
from habitus.envs.rendering import canvas, customer_service, fonts, painters
from PIL import Image, ImageFont

_spec = importlib.util.spec_from_file_location("scenes", Path(__file__).parent / "scenes.py")
scenes = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(scenes)

ENGLISH = {
    "agent": "I am sorry that your parcel has not arrived yet; I have asked the carrier, who will call you today. " * 4,
    "customer": "This is the third time that I write about this, and nobody tells me why.",
}
CHINESE = {"agent": "您好，很抱歉给您带来不便。" * 9, "customer": "我的包裹在哪里？"}
LENGTHS = (0, 1, 4, 60)


@pytest.fixture(params=scenes.ALL)
def schema(request):
    return scenes.ALL[request.param]


@pytest.mark.parametrize("n_steps", LENGTHS)
def test_a_picture_is_a_new_array_of_one_size(schema, n_steps):
    scene = scenes.played(schema, n_steps, horizon=60)
    first, second = rendering.picture(scene), rendering.picture(scene)
    assert first.shape == (512, 800, 3)
    assert first.dtype == np.uint8
    assert first.flags.writeable
    assert (first == second).all()
    first[:] = 0
    assert second.any()


@pytest.mark.parametrize("n_steps", LENGTHS)
@pytest.mark.parametrize("text", [None, ENGLISH, CHINESE], ids=["labels", "english", "chinese"])
def test_text_stays_in_its_strip_and_covers_no_other_text(schema, n_steps, text, monkeypatch):
    written = []
    write = canvas.Canvas.text

    def spy(self, x, y, text, *, width, size=14, align="left", **rest):
        taken = write(self, x, y, text, width=width, size=size, align=align, **rest)
        assert taken <= width, text
        left = x + {"left": 0, "centre": (width - taken) // 2, "right": width - taken}[align]
        height = fonts.line_height(size)
        if taken:  # letters fill the middle of a line
            written.append((left, y + height // 5, left + taken, y + height - height // 5, text))
        return taken

    monkeypatch.setattr(canvas.Canvas, "text", spy)
    rendering.picture(scenes.played(schema, n_steps, seed=n_steps, text=text))
    assert len(written) > 12
    for left, top, right, bottom, said in written:
        assert left >= 0, said
        assert top >= 0, said
        assert right <= 800, said
        assert bottom <= 512, said
    for one, other in itertools.combinations(written, 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (one[4], other[4])


@pytest.mark.parametrize("n_steps", LENGTHS)
def test_nothing_is_drawn_outside_the_frame(schema, n_steps, monkeypatch):
    paste = canvas.Canvas.paste

    def spy(self, mask, x, y, colour):
        assert x >= 0
        assert y >= 0
        assert x + mask.width <= 800
        assert y + mask.height <= 512
        paste(self, mask, x, y, colour)

    monkeypatch.setattr(canvas.Canvas, "paste", spy)
    rendering.picture(scenes.played(schema, n_steps, seed=n_steps, text=ENGLISH))


def fixed(schema, **labels):
    """A scene at the start, all labels given or the first ones."""
    history = rendering.History()
    given = {field.name: field.labels[0] for field in schema.fields if field.labels} | labels
    history.begin(scenes.observation(schema, np.random.default_rng(0), **given), {"regime": 0.0})
    return rendering.Scene(schema, history, 2000)


@pytest.mark.parametrize("field", [field.name for field in scenes.GAME.fields])
def test_every_field_of_the_game_shows_in_its_picture(field):
    labels = next(each.labels for each in scenes.GAME.fields if each.name == field)
    pictures = {rendering.picture(fixed(scenes.GAME, **{field: label})).tobytes() for label in labels[:7]}
    assert len(pictures) == len(labels[:7])


# what a customer replies is in the thread only after the first turn, so it is no part of the first picture
@pytest.mark.parametrize("field", [field.name for field in scenes.SERVICE.fields if field.name != "reply"])
def test_every_field_of_the_service_shows_in_its_picture(field):
    labels = next(each.labels for each in scenes.SERVICE.fields if each.name == field)
    pictures = {rendering.picture(fixed(scenes.SERVICE, **{field: label})).tobytes() for label in labels[:7]}
    assert len(pictures) == len(labels[:7])


def test_a_hidden_player_is_paler_than_one_in_sight():
    seen, hidden = (rendering.picture(fixed(scenes.GAME, player_hidden=label)) for label in ("no", "yes"))
    red = [
        (picture[..., 0].astype(int) - picture[..., 2] > 110).sum()
        for picture in (seen[60:330, :530], hidden[60:330, :530])
    ]
    assert red[1] < 0.5 * red[0]


def test_impossible_actions_are_faint():
    scene = fixed(scenes.GAME)
    plain = rendering.picture(scene)
    scene.history.info["action_mask"] = np.array([False] * 8)
    masked = rendering.picture(scene)
    differs = (plain != masked).any(axis=2)
    rows, columns = np.nonzero(differs)
    assert 346 <= rows.min()
    assert rows.max() < 404
    assert columns.max() < 532
    assert masked[differs].min() > plain[differs].min() + 60


def test_what_is_not_observed_is_not_needed():
    without = [field for field in scenes.GAME.fields if field.name != "player"]
    blind = scenes.schema("GameNPC", tuple(without), scenes.GAME.actions, scenes.GAME.signals)
    assert rendering.picture(scenes.played(blind, 9)).any()


def test_the_thread_holds_what_was_said():
    history = rendering.History()
    rng = np.random.default_rng(0)
    history.begin(
        scenes.observation(scenes.SERVICE, rng, mood="angry", issue="delivery"),
        {"regime": 0.0, "text": {"customer": "Where is it?"}},
    )
    info = {"boundary": False, "answer": "why", "survey": "none", "text": {"agent": "On its way.", "customer": "Why?"}}
    history.add("detailed", -0.15, info, scenes.observation(scenes.SERVICE, rng, mood="calm"))
    info = {"boundary": True, "answer": "none", "survey": "high", "ending": "closed", "text": {}}
    info["text"] = {"agent": "Goodbye.", "farewell": "Well done.", "customer": "How do I use it?"}
    history.add("close", 1.4, info, scenes.observation(scenes.SERVICE, rng, mood="annoyed", issue="usage"))
    found = customer_service.messages(rendering.Scene(scenes.SERVICE, history, 2000))
    assert [(each.side, each.text, each.label, each.mood, each.stars) for each in found] == [
        ("customer", "Where is it?", "delivery", "angry", 0),
        ("agent", "On its way.", "detailed", "", 0),
        ("customer", "Why?", "why", "calm", 0),
        ("agent", "Goodbye.", "close", "", 0),
        ("customer", "Well done.", "farewell", "", 0),
        ("end", "ticket closed", "high", "", 3),
        ("customer", "How do I use it?", "usage", "annoyed", 0),
    ]


def test_letters_that_no_font_has_give_way_to_labels(monkeypatch):
    message = customer_service.Message("agent", CHINESE["agent"], "apologise")
    monkeypatch.setattr(fonts, "can_show", lambda text: text.isascii())
    assert customer_service._shown(message) == "apologise"
    monkeypatch.setattr(fonts, "can_show", lambda text: True)
    assert customer_service._shown(message) == CHINESE["agent"]


def test_a_font_is_asked_for_every_letter():
    assert fonts.can_show("A customer's question: 3.5 %?")
    assert fonts.can_show("déjà vu")  # the second font has them
    assert not fonts.can_show("\U0010fffe")


@pytest.mark.parametrize("width", [0, 5, 40, 100, 1000])
def test_text_is_shortened_to_its_width_and_not_more(width):
    text = "a rather long sentence about nothing"
    shown = canvas.fitted(text, width, 14)
    assert fonts.width(shown, 14) <= width or not shown
    if width == 1000:
        assert shown == text
    if width == 100:
        assert shown.endswith("...")
        longer = text[: len(shown) - 3 + 2] + "..."
        assert fonts.width(longer, 14) > width


def test_lines_break_at_spaces_and_between_chinese_letters():
    lines = canvas.wrapped("one two three four five six seven", 80, 14, max_lines=9)
    assert " ".join(lines) == "one two three four five six seven"
    assert len(lines) > 2
    assert len(canvas.wrapped("一二三四五六七八九十" * 3, 80, 14, max_lines=9)) > 1
    assert canvas.wrapped("one two three four five six seven", 80, 14, max_lines=2)[-1].endswith("...")


def test_a_card_says_what_is_impossible_and_what_was_said():
    scene = scenes.played(scenes.SERVICE, 3, text=ENGLISH)
    scene.history.info["action_mask"] = np.array([True] * 8 + [False])
    text = rendering.text(scene)
    assert "impossible now: close" in text
    assert f"customer: {ENGLISH['customer']}" in text
    assert "regime 0.3" in text
    assert "ticket for decision 4 of 2000" in text


def test_numbers_are_written_as_people_write_them():
    scene = scenes.played(scenes.CREDIT, 0)
    field = next(field for field in scenes.CREDIT.fields if not field.is_category)
    scene.history.observation[field.status] = np.int64(0)
    for number, said in ((123456.0, "123,456 units of money"), (0.5, "0.5 units of money")):
        scene.history.observation[field.name] = np.array([number], np.float32)
        assert scene.value(field) == said
    scene.history.observation[field.status] = np.int64(2)
    assert scene.value(field) == "hidden"


def test_outcomes_name_the_decision_that_they_belong_to():
    history = rendering.History()
    rng = np.random.default_rng(0)
    history.begin(scenes.observation(scenes.CREDIT, rng), {})
    history.add("approve", 0.0, {"decision_id": 0, "feedback": []}, scenes.observation(scenes.CREDIT, rng))
    assert history.n_waiting == 1
    info = {"decision_id": -1, "feedback": [(0, -1.6)]}
    history.add("reject", 0.0, info, scenes.observation(scenes.CREDIT, rng))
    assert history.n_waiting == 0
    assert "decision 1 (approve) brought -1.60" in rendering.text(rendering.Scene(scenes.CREDIT, history, 10))


def test_a_long_episode_keeps_its_whole_curve_but_few_events():
    scene = scenes.played(scenes.GAME, 3000, horizon=3000)
    assert len(scene.history.events) == 40
    assert scene.history.n_made == 3000
    assert scene.decision == 3000
    assert rendering.picture(scene).any()


def test_a_frame_takes_milliseconds(schema):
    scene = scenes.played(schema, 60, text=ENGLISH)
    rendering.picture(scene)
    best = min(_seconds(scene) for _ in range(10))
    assert best < 0.015


def _seconds(scene):
    began = time.process_time()
    rendering.picture(scene)
    return time.process_time() - began


def test_a_gif_holds_every_frame_and_repeats(tmp_path):
    frames = [rendering.picture(scenes.played(scenes.GAME, n, seed=3)) for n in range(4)]
    path = rendering.write_gif(frames, tmp_path / "film.gif", fps=4)
    with Image.open(path) as film:
        assert film.n_frames == 4
        assert film.size == (800, 512)
        assert film.info["duration"] == 250
        assert film.info["loop"] == 0
        film.seek(2)
        shown = np.asarray(film.convert("RGB"), int)
    assert np.abs(shown - frames[2]).mean() < 4  # 128 colours


@pytest.mark.parametrize(
    ("frames", "fps", "said"),
    [
        ([], 2, "`frames` must hold at least one frame"),
        ([np.zeros((4, 4, 3))], 2, "frame 0 is float64 of shape (4, 4, 3)"),
        ([np.zeros((4, 4), np.uint8)], 2, "frame 0 is uint8 of shape (4, 4)"),
        ([np.zeros((4, 4, 3), np.uint8), np.zeros((4, 8, 3), np.uint8)], 2, "frame 1 is uint8 of shape (4, 8, 3)"),
        (["text"], 2, "frame 0 is str"),
        ([np.zeros((4, 4, 3), np.uint8)], 0, "`fps` must lie in (0, 100], got 0."),
    ],
)
def test_what_is_no_film_is_refused(frames, fps, said, tmp_path):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is looked at
        rendering.write_gif(frames, tmp_path / "film.gif", fps=fps)
    assert said in str(caught.value)
    assert not (tmp_path / "film.gif").exists()


def test_another_kind_of_film_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`path` must end in \.gif or \.mp4, got 'film\.avi'"):
        rendering.write_video([np.zeros((4, 4, 3), np.uint8)], "film.avi")


def test_a_missing_moviepy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "moviepy.video.io.ImageSequenceClip", None)
    with pytest.raises(ImportError, match=r"pip install 'habitus\[video\]'"):
        rendering.write_video([np.zeros((4, 4, 3), np.uint8)], "film.mp4")


@pytest.mark.slow
def test_gymnasium_records_an_episode(tmp_path):
    env = GameNPCEnv(render_mode="rgb_array", horizon=5)
    recorded = gymnasium.wrappers.RecordVideo(env, str(tmp_path / "films"), episode_trigger=lambda _: True)
    recorded.reset(seed=0)
    for _ in range(5):
        recorded.step(1)
    recorded.close()
    (film,) = tmp_path.glob("films/*.mp4")
    assert film.stat().st_size > 5000


@pytest.mark.slow
def test_an_mp4_is_written(tmp_path):
    frames = [rendering.picture(scenes.played(scenes.GAME, n, seed=3)) for n in range(4)]
    assert rendering.write_video(frames, tmp_path / "film.mp4", fps=4).stat().st_size > 5000


def test_pillow_has_the_letters():
    assert isinstance(ImageFont.load_default(12), ImageFont.FreeTypeFont)


@pytest.mark.parametrize("world_id", habitus.WORLD_IDS)
def test_every_registered_world_has_a_painter_and_a_card(world_id):
    arguments = {"text": None} if "CustomerService" in world_id else {}
    env = gymnasium.make(world_id, render_mode="rgb_array", horizon=30, disable_env_checker=True, **arguments)
    env.action_space.seed(0)
    env.reset(seed=0)
    frames = [env.render()]
    for _ in range(30):
        env.step(env.action_space.sample())
        frames.append(env.render())
    assert env.unwrapped.schema.world in painters.PAINTERS
    assert {frame.shape for frame in frames} == {(512, 800, 3)}
    assert len({frame.tobytes() for frame in frames}) == 31  # the number of the decision changes at least
    told = gymnasium.make(world_id, render_mode="ansi", horizon=30, disable_env_checker=True, **arguments)
    told.reset(seed=0)
    assert "decision 1 of 30" in told.render()
