"""What is said in CustomerService: complete, deterministic, and no more than what is observed."""

import copy
import itertools
import re
from importlib import resources

import gymnasium
import numpy as np
import pytest
import yaml
from habitus.envs.customer_service import CustomerServiceEnv, rules
from habitus.scenarios import TableError, service_texts
from habitus.scenarios.errors import TextsError
from habitus.scenarios.service_texts import LABELS, LANGUAGES, narrator, parse_texts

SOURCE = (resources.files("habitus.scenarios") / "data" / service_texts.FILE).read_text(encoding="utf-8")
TEMPLATE, DETAILED, CLARIFY, CLOSE = (rules.ACTIONS.index(n) for n in ("template", "detailed", "clarify", "close"))


def observation(**labels):
    """An observation of codes from labels."""
    usual = {"issue": "setup", "detail": "unknown", "mood": "calm", "reply": "start", "channel": "chat", "tier": "gold"}
    usual |= {"last_seen": "never"} | labels
    customer = {"customer": usual.pop("customer")} if "customer" in usual else {}
    return {name: LABELS[name].index(label) for name, label in usual.items()} | customer | {"turn": 0}


def info(**changes):
    return {"boundary": False, "survey": "none", "answer": "none", "ending": "none"} | changes


def variants(language):
    """All texts, as data."""
    return parse_texts(SOURCE, service_texts.FILE)[language]


def rollout(language, seed=0, n_steps=300, **arguments):
    env = CustomerServiceEnv(narrate=narrator(language), **arguments)
    seen, first = env.reset(seed=seed)
    steps = [(seen, None, first)]
    for action in np.random.default_rng(seed).integers(9, size=n_steps):
        seen, _, _, _, told = env.step(int(action))
        steps.append((seen, int(action), told))
    return steps


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_episode_reads_the_same_twice_and_fills_every_place(language):
    steps, again = rollout(language), rollout(language)
    assert [told["text"] for _, _, told in steps] == [told["text"] for _, _, told in again]
    for _, action, told in steps:
        text = told["text"]
        assert set(text) == {"agent", "farewell", "customer"}
        assert all(isinstance(part, str) for part in text.values())
        assert "{" not in "".join(text.values())
        assert text["customer"]
        assert bool(text["agent"]) == (action is not None)
        if not told["boundary"]:
            assert text["farewell"] == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_names_what_is_observed(language):
    texts = variants(language)
    for seen, _, told in rollout(language):
        labels = {name: of_field[int(seen[name])] for name, of_field in LABELS.items()}
        said = told["text"]["customer"]
        assert any(part in said for part in texts.mood[labels["mood"]])
        if labels["reply"] == "start":
            assert any(part in said for part in texts.opening[labels["issue"]])
            assert any(part in said for part in texts.seen[labels["last_seen"]])
            assert texts.tier[labels["tier"]] in said
            assert f"#{int(seen['customer'])}" in said
        else:
            assert any(part in said for part in texts.reply[labels["reply"]])
        assert ("\n" in said) == (labels["channel"] == "mail")


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_can_be_told_apart_by_their_texts(language):
    texts = variants(language)
    for group in (texts.opening, texts.seen, texts.mood, texts.reply, texts.survey, texts.explanation):
        for one, other in itertools.combinations(group, 2):
            assert not set(group[one]) & set(group[other])
    for issue in texts.detail.values():
        assert not set(issue["cause a"]) & set(issue["cause b"])


def test_the_same_observations_read_the_same_whatever_is_hidden():
    """The narrator is given nothing but what an agent sees, so two customers who look alike sound alike."""
    tell = narrator("en")
    before, after = observation(), observation(reply="human", mood="angry")
    first = tell(before, DETAILED, info(answer="human"), after, 7)
    told = info(answer="human") | {"regime": 1.0, "persona": 3}
    assert tell(dict(before), DETAILED, told, dict(after), 7) == first


def test_texts_vary_with_the_step():
    tell = narrator("zh")
    said = [tell(observation(), DETAILED, info(), observation(reply="why"), step) for step in range(200)]
    texts = variants("zh")
    assert len({one["agent"] for one in said}) == len(texts.agent.detailed) * len(texts.explanation["setup"])
    assert len({one["customer"] for one in said}) == len(texts.reply["why"]) * len(texts.mood["calm"])


def test_a_cause_is_told_once_when_it_is_asked_for():
    tell, texts = narrator("en"), variants("en")
    asked, known = observation(reply="neutral", detail="cause b"), observation(reply="why", detail="cause b")
    causes = texts.detail["setup"]["cause b"]
    assert any(cause in tell(observation(), CLARIFY, info(), asked, 1)["customer"] for cause in causes)
    assert not any(cause in tell(asked, TEMPLATE, info(), known, 2)["customer"] for cause in causes)


def test_a_ticket_ends_with_its_last_words_and_the_next_begins():
    tell, texts = narrator("en"), variants("en")
    left = tell(
        observation(reply="human"),
        TEMPLATE,
        info(boundary=True, ending="left", answer="hurry", survey="low"),
        observation(issue="invoice", customer=7),
        5,
    )
    assert any(part in left["farewell"] for part in texts.reply["hurry"])
    assert any(left["farewell"].endswith(part) for part in texts.survey["low"])
    assert any(part in left["customer"] for part in texts.opening["invoice"])
    assert "#7" in left["customer"]
    assert texts.matter["setup"] in left["agent"].lower()
    closed = tell(observation(reply="thanks"), CLOSE, info(boundary=True, ending="closed"), observation(), 5)
    assert closed["farewell"] == ""


def test_customers_who_are_not_observed_have_no_number():
    said = narrator("en")(None, None, info(), observation(), 0)
    assert "a customer" in said["customer"]
    assert said["agent"] == said["farewell"] == ""
    steps = rollout("en", observe_entity=False, n_steps=20)
    assert not any(re.search(r"#\d", told["text"]["customer"]) for _, _, told in steps)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_made_environment_tells_on_request(language):
    env = gymnasium.make("habitus:habitus/CustomerService-v0", text=language)
    _, told = env.reset(seed=0)
    assert told["text"]["customer"]
    _, told = gymnasium.make("habitus:habitus/CustomerService-v0").reset(seed=0)
    assert "text" not in told


@pytest.mark.parametrize(("language", "error"), [("fr", ValueError), (1, TypeError), (True, TypeError)])
def test_an_unknown_language_is_refused_by_name(language, error):
    with pytest.raises(error, match="`text` must be None or one of"):
        narrator(language)


def changed(change):
    data = copy.deepcopy(yaml.safe_load(SOURCE))
    change(data["en"])
    return yaml.safe_dump(data, allow_unicode=True)


@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        (lambda en: en["mood"].pop("calm"), "en.mood", "angry"),
        (lambda en: en["opening"].update(returns=["x"]), "en.opening", "returns"),
        (lambda en: en["detail"]["setup"].pop("cause b"), "en.detail.setup", "cause b"),
        (lambda en: en["reply"].update(why=[]), "en.reply.why", "at least 1 item"),
        (lambda en: en["agent"].pop("refund"), "en.agent.refund", "required"),
        (lambda en: en["agent"].update(shout=["x"]), "en.agent.shout", "not permitted"),
        (lambda en: en["agent"].update(refund=["about {persona}"]), "en.agent.refund", "persona"),
        (lambda en: en["agent"].update(refund=["about {matter"]), "en.agent.refund", "only around a name"),
        (lambda en: en["frame"]["chat"].update(later=["nothing"]), "en.frame.chat", "`text` among them"),
    ],
)
def test_texts_that_do_not_fit_the_world_are_refused_by_key(change, key, problem):
    with pytest.raises(TextsError, match=problem) as caught:
        parse_texts(changed(change), "mine.yaml")
    assert caught.value.key == key
    assert "mine.yaml" in str(caught.value)


@pytest.mark.parametrize("text", ["", "- en", "en: [", "en: {mood: 1}"])
def test_what_holds_no_texts_is_refused(text):
    with pytest.raises(TableError, match=r"mine\.yaml"):
        parse_texts(text, "mine.yaml")
