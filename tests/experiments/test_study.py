"""A study is validated whole, and every complaint says where, what was expected and what was received."""

import pytest
from habitus.experiments import plan, seeds, study
from habitus.experiments.errors import StudyError

WORLD = "    id: habitus/CreditReview-v0"
VALID = """\
name: mine
question: Does it work?
steps: 100
seeds: {start: 3, count: 2}
worlds:
  - label: synthetic
    id: habitus/CreditReview-v0
agents:
  - kind: linucb
  - label: always reject
    kind: best_fixed
    settings: {action: reject}
"""


@pytest.fixture
def complaint(tmp_path):
    """Writes a study and returns what is said about it, without the path."""

    def of(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(StudyError) as error:
            study.load(path)
        return str(error.value).replace(str(path), "mine.yaml")

    return of


def load(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return study.load(path)


def test_a_valid_study_is_read_and_gets_its_references(tmp_path):
    loaded = load(tmp_path, VALID)
    assert loaded.seeds == (3, 4)
    assert [agent.label for agent in loaded.agents] == ["linucb", "always reject", "random", "oracle"]
    assert loaded.feedback == ("attributed",)


def test_references_that_are_there_are_not_added_again(tmp_path):
    text = VALID + "  - {kind: oracle}\n  - {label: dice, kind: random}\n"
    assert [agent.label for agent in load(tmp_path, text).agents] == ["linucb", "always reject", "oracle", "dice"]


def test_a_reference_whose_name_is_taken_gets_another(tmp_path):
    text = VALID + "  - {label: random, kind: tabular_q}\n"
    assert load(tmp_path, text).agents[-2].label == "reference random"


def test_a_study_reads_back_from_its_own_yaml(tmp_path):
    loaded = load(tmp_path, VALID)
    assert load(tmp_path, loaded.to_yaml()) == loaded


def test_every_named_study_is_valid():
    assert {"quickstart", "credit-real", "credit-synthetic"} <= set(study.named_studies())
    for name in study.named_studies():
        loaded = study.load(name)
        assert loaded.name == name
        assert {"random", "oracle"} <= {agent.kind for agent in loaded.agents}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("question:", "qestion:"), "mine.yaml:2: `qestion`: unknown key, expected one of name, question, steps"),
        (("question:", "qestion:"), "did you mean `question`?"),
        (("question:", "qestion:"), "mine.yaml:1: `question`: missing"),
        (
            ("kind: linucb", "kind: linucv"),
            "mine.yaml:9: `agents[0].kind`: unknown agent 'linucv', expected `module:Class`",
        ),
        (("kind: linucb", "kind: linucv"), "did you mean `linucb`?"),
        (
            ("settings: {", "seting: {"),
            "mine.yaml:12: `agents[1].seting`: unknown key, expected one of kind, label, settings",
        ),
        (("{action: reject}", "{seed: 1}"), "mine.yaml:12: `agents[1].settings`: `seed` is set by the study, got 1"),
        (("steps: 100", "steps: many"), "mine.yaml:3: `steps`: expected a valid integer, got 'many'."),
        (("steps: 100", "steps: 0"), "mine.yaml:3: `steps`: expected greater than or equal to 1, got 0."),
        (("steps: 100", "steps: 1e3"), "mine.yaml:3: `steps`: expected a valid integer, got '1e3'."),
        (("{start: 3, count: 2}", "{start: -3, count: 2}"), "mine.yaml:4: `seeds`: expected whole numbers, start >= 0"),
        (
            ("{start: 3, count: 2}", "{strat: 3, count: 2}"),
            "unknown key `strat`, expected start and count; did you mean `start`?",
        ),
        (
            ("{start: 3, count: 2}", "[1, -1]"),
            "mine.yaml:4: `seeds`: expected whole numbers from 0 to 2147483647, got -1.",
        ),
        (("start: 3,", "start: 2147483647,"), "mine.yaml:4: `seeds`: expected seeds up to 2147483647, got"),
        (("count: 2", "count: 1000000000000"), "mine.yaml:4: `seeds`: expected a count of at most 100000"),
        (("{start: 3, count: 2}", "[1, 1]"), "a seed stands twice"),
        (("{start: 3, count: 2}", "5"), "expected {start: 0, count: 10} or a list of seeds, got 5."),
        (("CreditReview-v0", "CreditRevew-v0"), "mine.yaml:7: `worlds[0].id`: unknown world 'habitus/CreditRevew-v0'"),
        (("habitus/CreditReview-v0", "CartPole-v9"), "no world of this id is registered, got 'CartPole-v9'"),
        (("label: always reject", "label: linucb"), "mine.yaml:8: `agents`: the label 'linucb' stands twice"),
        (("label: always reject", "label: a/b"), "mine.yaml:10: `agents[1].label`: a label names files, too"),
        (
            ("steps: 100", "steps: 100\nfeedback: [streem]"),
            "`feedback[0]`: expected 'attributed' or 'stream', got 'streem'.",
        ),
        (("steps: 100", "steps: 100\nfeedback: []"), "`feedback`: expected one or both of attributed, stream"),
        (("steps: 100", "steps: 100\nfeedback: stream"), "`feedback`: expected a valid list, got 'stream'."),
        (("steps: 100", "steps: 100\nwindows: [[50, 20]]"), "`windows[0]`: expected [from, to] with 0 <= from < to"),
        (("steps: 100", "steps: 100\nwindows: [[200, 300]]"), "[200, 300] begins after the last of 100 steps"),
        (("steps: 100", "steps: 100\nsteps: 200"), "mine.yaml:4: `steps`: written twice, first on line 3; keep one."),
        (("question:", "\tquestion:"), "mine.yaml:2: not valid YAML"),
        (("question:", "\tquestion:"), "indent with spaces, YAML allows no tabs"),
        ((f"- label: synthetic\n{WORLD}", ""), "mine.yaml:5: `worlds`: expected a valid list, got None."),
        ((WORLD, f"{WORLD}\n    kwargs: {{feedback: stream}}"), "`feedback` is set by the study's own key"),
        (
            (WORLD, f"{WORLD}\n    windows: [[0, 50], [50, 101]]"),
            "mine.yaml:8: `worlds[0].windows[1]`: expected a window within the 100 steps of this world, got [50, 101].",
        ),
        ((WORLD, f"{WORLD}\n    steps: 40\n    windows: [[0, 50]]"), "within the 40 steps of this world, got [0, 50]."),
        ((WORLD, f"{WORLD}\n    seeds: 7"), "mine.yaml:8: `worlds[0].seeds`: expected"),
    ],
)
def test_a_mistake_is_named_with_line_key_expected_and_received(complaint, change, said):
    assert change[0] in VALID
    assert said in complaint(VALID.replace(*change))


def test_every_mistake_is_named_at_once(complaint):
    text = complaint(VALID.replace("steps: 100", "steps: no").replace("kind: linucb", "kind: linucv"))
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            ".nan",
            "`agents[1].settings.action`: expected a text, a finite number, true, false, null, a list or a mapping",
        ),
        (".inf", "got inf;"),
        ("[.nan]", "`agents[1].settings.action[0]`"),
        ("2026-01-01", "got the date datetime.date(2026, 1, 1); put a text in quotes."),
        ("!!set {a, b}", "got the set"),
        ("!!binary aGk=", "got the bytes"),
        ("{1: 2}", "`agents[1].settings.action`: expected a text as key, got 1; put it in quotes."),
    ],
)
def test_a_value_that_json_lacks_is_named_with_its_line(complaint, value, said):
    text = complaint(VALID.replace("{action: reject}", f"{{action: {value}}}"))
    assert text.startswith("mine.yaml:12: ")
    assert said in text


def test_a_date_that_is_none_and_a_value_that_holds_itself_are_refused(complaint):
    assert "month must be in 1..12" in complaint(VALID.replace("{action: reject}", "{action: 2026-13-01}"))
    assert "one that holds itself" in complaint(VALID.replace("{action: reject}", "{action: &a [*a]}"))


def test_a_mistake_inside_the_only_entry_of_a_list_is_told_once(complaint):
    only = VALID[: VALID.index("  - label: always")]
    assert len(complaint(only.replace("kind: linucb", "kind: linucv")).splitlines()) == 1
    assert len(complaint(only.replace("label: synthetic", "label: a/b")).splitlines()) == 1
    assert "at least 1 item" in complaint(only.replace("agents:\n  - kind: linucb", "agents: []"))


@pytest.mark.parametrize(("text", "got"), [("", "an empty file"), ("- a\n- b\n", "a sequence"), ("word", "a scalar")])
def test_a_file_that_is_no_mapping_is_refused(complaint, text, got):
    assert f"expected a mapping with the keys of a study (name, question, ...), got {got}." in complaint(text)


def test_a_file_in_another_encoding_is_refused(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes("name: caf\xe9".encode("latin-1"))
    with pytest.raises(StudyError, match="expected a text file in UTF-8, got other bytes at position 9"):
        study.load(path)


def test_an_unknown_name_suggests_the_nearest_study():
    with pytest.raises(StudyError, match=r"there is neither; did you mean `quickstart`\?"):
        study.load("quickstrat")


def test_a_table_is_found_beside_the_study_file(tmp_path, monkeypatch):
    (tmp_path / "loans.csv").write_text("a\n1\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    text = VALID.replace("CreditReview-v0\n", "CreditReview-v0\n    kwargs: {applicants: loans.csv}\n")
    assert load(tmp_path, text).worlds[0].kwargs["applicants"] == str(tmp_path / "loans.csv")


def test_a_table_that_is_not_there_is_named(complaint):
    text = VALID.replace("CreditReview-v0\n", "CreditReview-v0\n    kwargs: {applicants: lones.csv}\n")
    assert "world `synthetic`: `applicants`: expected an existing table, got 'lones.csv'" in complaint(text)


def test_windows_are_cut_to_the_steps_and_have_a_default(make_study):
    small = make_study(windows=[[0, 10], [50, 100], [40, 60]], steps=60)
    assert small.windows_of(small.worlds[0]) == ((0, 10), (50, 60), (40, 60))
    shorter = small.restricted(steps=8)
    assert shorter.windows_of(shorter.worlds[0]) == ((0, 8),)
    assert make_study(steps=40).windows_of(small.worlds[0]) == ((0, 10), (30, 40), (0, 40))


def test_overrides_reach_worlds_that_have_their_own_values(make_study, fake):
    small = make_study(
        worlds=[{"label": "a", "id": fake.ID, "steps": 30, "seeds": [5]}, {"label": "b", "id": fake.ID}], steps=60
    )
    changed = small.restricted(n_seeds=4, steps=50)
    assert [changed.steps_of(world) for world in changed.worlds] == [50, 50]
    assert [changed.seeds_of(world) for world in changed.worlds] == [(5, 6, 7, 8), (0, 1, 2, 3)]


def test_windows_that_fewer_steps_do_not_reach_are_dropped(make_study, tmp_path):
    shorter = make_study(windows=[[0, 10], [50, 60]]).restricted(steps=40)
    assert shorter.windows == ((0, 10),)
    assert load(tmp_path, shorter.to_yaml()) == shorter


def test_windows_of_a_world_are_cut_only_where_fewer_steps_are_asked_for(make_study, fake, tmp_path):
    world = {"label": "fake", "id": fake.ID, "windows": [[0, 30], [20, 60], [50, 60]]}
    shorter = make_study(worlds=[world]).restricted(steps=40)
    assert shorter.worlds[0].windows == ((0, 30), (20, 40))
    (tmp_path / "done.yaml").write_text(shorter.to_yaml().replace("[20, 40]", "[20, 60]"))
    assert study.load(tmp_path / "done.yaml", is_to_run=False).windows_of(shorter.worlds[0]) == ((0, 30), (20, 40))
    assert load(tmp_path, shorter.to_yaml()) == shorter


def test_a_choice_of_agents_keeps_the_references(make_study):
    small = make_study(agents=[{"kind": "linucb"}, {"kind": "dqn"}, {"kind": "rules"}])
    chosen = small.restricted(agents=["rules", "linucb"])
    assert [agent.label for agent in chosen.agents] == ["linucb", "rules", "random", "oracle"]
    with pytest.raises(
        StudyError, match=r"`--agents`: expected one of linucb, dqn, .* got 'dqm'; did you mean `dqn`\?"
    ):
        small.restricted(agents=["dqm"])
    with pytest.raises(StudyError, match="`--seeds` must be at least 1, got 0"):
        small.restricted(n_seeds=0)


def test_more_seeds_than_there_are_cannot_be_asked_for(make_study):
    with pytest.raises(StudyError, match="`--seeds` must be at most 100000"):
        make_study().restricted(n_seeds=10**12)
    with pytest.raises(StudyError, match="expected seeds up to 2147483647, but 2 of them go up to 2147483648"):
        make_study(seeds=[seeds.MAX_SEED]).restricted(n_seeds=2)


def test_what_does_not_learn_is_run_in_one_variant(make_study):
    small = make_study(feedback=["attributed", "stream"], agents=[{"kind": "linucb"}, {"kind": "rules"}])
    variants = {agent.label: small.feedback_of(small.worlds[0], agent) for agent in small.agents}
    assert variants["linucb"] == ("attributed", "stream")
    assert variants["rules"] == variants["random"] == variants["oracle"] == ("attributed",)


def test_an_agent_can_be_run_in_some_worlds_only(tmp_path):
    second = VALID.replace("agents:\n", "  - {label: other, id: habitus/GameNPC-v0}\nagents:\n")
    loaded = load(tmp_path, second + "  - {kind: filter, worlds: [other]}\n")
    groups = {run.group[:2] for run in plan.runs_of(loaded)}
    assert ("other", "filter") in groups
    assert ("synthetic", "filter") not in groups
    assert ("synthetic", "linucb") in groups
    without = loaded.restricted(worlds=["synthetic"])
    assert "filter" not in [agent.label for agent in without.agents]


def test_a_world_that_no_one_has_is_named(complaint):
    text = VALID + "  - {kind: filter, worlds: [synthetik]}\n"
    assert "mine.yaml:13: `agents[2].worlds`" in complaint(text)
    assert "expected the label of a world, one of synthetic, got 'synthetik'; did you mean `synthetic`?" in complaint(
        text
    )


def test_what_a_fresh_world_is_compared_with_must_be_run(tmp_path, complaint):
    def fresh(of):
        return VALID.replace("agents:\n", f"  - {{label: new, id: habitus/CreditReview-v0, fresh_of: {of}}}\nagents:\n")

    assert "got 'old'" in complaint(fresh("{world: old, at: 50}"))
    assert "`at` must lie within the 100 steps of 'synthetic', got 100" in complaint(
        fresh("{world: synthetic, at: 100}")
    )
    loaded = load(tmp_path, fresh("{world: synthetic, at: 50}"))
    assert study.Study.model_validate_json(loaded.model_dump_json()) == loaded
    assert loaded.restricted(worlds=["new"]).worlds[0].fresh_of is None
    assert loaded.restricted(agents=["linucb"]).worlds[1].fresh_of == study.FreshOf(world="synthetic", at=50)


def test_seeds_can_start_elsewhere(tmp_path):
    loaded = load(tmp_path, VALID)
    assert loaded.restricted(first_seed=100).seeds == (100, 101)
    assert loaded.restricted(first_seed=100, n_seeds=3).seeds == (100, 101, 102)
    with pytest.raises(StudyError, match="`--first-seed` must be at least 0, got -1"):
        loaded.restricted(first_seed=-1)


@pytest.mark.parametrize("name", ["learning", "ablations", "adaptation"])
def test_studies_that_are_published_keep_off_the_seeds_that_settings_were_tuned_on(name):
    runs = plan.runs_of(study.load(name))
    assert min(run.seed for run in runs) >= 1000
    assert len({run.hash for run in runs}) == len(runs)  # no two agents are the same under two names
