"""The report is one file that needs no network and can be read."""

import html.parser
import itertools
import json
import re

import pytest
from habitus.experiments import plots, report, results, summary


class Loads(html.parser.HTMLParser):
    """Everything in an HTML text that a browser would fetch, and its visible text."""

    def __init__(self):
        super().__init__()
        self.fetched, self.text, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "srcset", "data", "poster", "action") and value:
                self.fetched.append(value)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def loaded(rich_folder):
    return results.load(rich_folder)


@pytest.fixture
def page(loaded):
    return report.write(loaded).read_text(encoding="utf-8")


def test_it_loads_nothing(page):
    parsed = Loads()
    parsed.feed(page)
    assert [value for value in parsed.fetched if not value.startswith(("#", "data:"))] == []
    assert not {"link", "iframe", "img", "object"} & set(parsed.tags)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", page)


def test_it_says_question_command_verdict_numbers_and_versions(page, loaded):
    parsed = Loads()
    parsed.feed(page)
    text = " ".join(" ".join(parsed.text).split())
    assert loaded.study.question in text
    assert loaded.command in text
    for sentence in summary.verdicts(loaded):
        assert sentence in text
    assert {"numpy", "jax", "gymnasium"} <= set(text.split())
    assert "4 runs failed and are left out: Crasher in one, Crasher in two + three" in text
    assert "2 seeds in the smallest group" in text
    assert text.count("bandit against each other agent") == 2
    assert "Interquartile mean of the normalised score over worlds" in text


def test_downloads_are_the_tables(page, loaded):
    parsed = Loads()
    parsed.feed(page)
    uris = [value for value in parsed.fetched if value.startswith("data:text/csv;base64,")]
    assert len(uris) == 2
    for name in (report.CSV, report.SEEDS_CSV, report.MARKDOWN):
        assert (loaded.folder / name).read_text()


def test_the_explained_decision_is_that_of_the_focus_agent(page):
    assert "One decision, explained" in page
    assert "case = " in page
    assert "habitus explain" in page


def test_text_from_the_user_is_escaped(make_study, record_study, tmp_path):
    loaded = results.load(record_study(make_study(question="Is <b>bold</b> & bright?"), tmp_path))
    assert "Is &lt;b&gt;bold&lt;/b&gt; &amp; bright?" in report.html(loaded)


def test_a_world_without_oracle_is_reported_in_rewards(make_study, record_study, tmp_path):
    agents = [{"kind": "fake_world:OwnsLoop"}]
    loaded = results.load(
        record_study(make_study(worlds=[{"label": "pole", "id": "CartPole-v1"}], agents=agents), tmp_path)
    )
    page = report.html(loaded)
    assert "Mean reward per step" in page
    assert "Some scores are raw rewards" in page
    assert "normalised score while" not in page.lower()


def test_one_seed_shows_no_interval(make_study, record_study, tmp_path):
    loaded = results.load(record_study(make_study(seeds=[0]), tmp_path))
    page = report.html(loaded)
    assert "nan" not in page[: page.index("<script>")].lower()
    assert "1 seed in the smallest group" in summary.warnings(loaded)[0]


def test_a_record_of_a_version_before_decisions_is_reported_without_one(make_study, record_study, tmp_path):
    loaded = results.load(record_study(make_study(agents=[{"kind": "fake_world:OwnsLoop"}]), tmp_path))
    assert "One decision, explained" not in report.html(loaded)


def test_colours_are_apart_and_the_focus_has_its_own():
    agents = [(f"agent {n}", "linucb") for n in range(8)] + [("random", "random"), ("oracle", "oracle")]
    colours = plots.colours_of(agents)
    assert len(set(colours.values())) == len(agents)
    assert colours["agent 0"] == plots.FOCUS


def test_figures_are_the_same_twice_and_their_text_is_text(loaded):
    panel = [("attributed", [curve for curve in loaded.curves if curve.world == "one"])]
    colours = plots.colours_of([(agent.label, agent.kind) for agent in loaded.study.agents])
    first, second = (plots.learning_curves(panel, colours) for _ in range(2))
    assert first == second
    assert first.startswith("<svg")
    assert ">bandit<" in first


def test_the_provenance_is_kept(loaded):
    (loaded.folder / results.PROVENANCE).write_text(json.dumps({"command": "habitus run x --seeds 3"}))
    assert results.load(loaded.folder).command == "habitus run x --seeds 3"


@pytest.mark.parametrize("wanted", [[0.5], [0.1, 0.1, 0.1], [0.0, 0.0, 0.5, 1.0, 1.0], [0.2, 0.21, 0.9]])
def test_labels_stay_in_order_apart_and_near_their_lines(wanted):
    places = plots._apart(wanted)
    assert all(b - a >= plots.LEAST_GAP - 1e-9 for a, b in itertools.pairwise(places))
    assert min(places) >= 0
    assert max(places) <= 1
    if min(b - a for a, b in itertools.pairwise([*wanted, 2.0])) >= plots.LEAST_GAP:
        assert places == pytest.approx(wanted)


def test_the_explained_decision_is_the_most_contested_one():
    def decision(*contributions):
        return {"score": sum(contributions), "paths": [{"contribution": x} for x in contributions]}

    clear, contested, silent = decision(0.9, 0.8), decision(0.3, -0.2), decision(0.0)
    assert max((clear, contested, silent), key=report._contest) is contested
    assert max((clear, silent), key=report._contest) is clear
