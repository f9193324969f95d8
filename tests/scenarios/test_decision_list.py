"""Decision lists: decisions worked out by hand, and mistakes in rules."""

import itertools

import numpy as np
import pytest
from habitus.envs.contract import Field, Schema
from habitus.scenarios import RulesError, TableError, decision_list, expert_policy, experts
from habitus.scenarios.decision_list import DecisionListPolicy

LIGHT = Field("light", ("red", "amber", "green"))
ROAD = Field("road", ("clear", "blocked"))
SPEED = Field("speed", low=0.0, high=200.0, unit="km/h")
RULES = """
about: how to pass a crossing
decide:
  - {where: {road: blocked, light: [amber, green]}, action: wait}
  - {where: {light: red}, action: stop}
  - {action: go}
"""


def schema_of(*fields, world="Crossing", actions=("go", "wait", "stop")):
    return Schema(
        world=world,
        version=0,
        fields=fields,
        actions=actions,
        entity_field=None,
        stake_field=None,
        boundary="crossing",
        deliberation=(),
        scaled_actions=(),
        review=None,
        signals=(),
        sensitive=(),
        proxies=(),
        reward_bound=1.0,
        feedback="attributed",
        score_per="step",
    )


SCHEMA = schema_of(LIGHT, ROAD, SPEED)


def policy(text=RULES, schema=SCHEMA):
    return DecisionListPolicy(decision_list.parse(text, "crossing.yaml"), schema, "crossing.yaml")


@pytest.mark.parametrize(
    ("light", "road", "clause", "action"),
    [
        ("red", "clear", 1, "stop"),
        ("red", "blocked", 1, "stop"),  # every condition of the first clause must hold
        ("amber", "blocked", 0, "wait"),
        ("green", "blocked", 0, "wait"),
        ("amber", "clear", 2, "go"),
    ],
)
def test_the_first_clause_that_holds_decides(light, road, clause, action):
    observation = {"light": np.int64(LIGHT.labels.index(light)), "road": np.int64(ROAD.labels.index(road))}
    assert policy().clause_of(observation) == clause
    assert SCHEMA.actions[policy()(observation)] == action


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (
            "decide: [{where: {lihgt: red}, action: go}, {action: go}]",
            "decide[0]",
            "got `lihgt` (did you mean `light`?)",
        ),
        (
            "decide: [{where: {light: gren}, action: go}, {action: go}]",
            "decide[0]",
            "`light` has no label `gren` (did you mean `green`?); its labels are red, amber, green.",
        ),
        (
            "decide: [{where: {light: red}, action: stop}, {action: og}]",
            "decide[1]",
            "expected an action of go, wait, stop",
        ),
        ("decide: [{action: stpo}]", "decide[0]", "got `stpo` (did you mean `stop`?)."),
        ("decide: [{where: {speed: '10'}, action: go}, {action: go}]", "decide[0]", "`speed` is a number"),
        ("decide: [{where: {light: red}, action: go}]", "decide[0]", "expected a last clause without conditions"),
        ("decide: [{action: go}, {where: {light: red}, action: stop}]", "decide[0]", "are never asked; move it last"),
        ("decide: [{action: go}, {action: stop}]", "decide[0]", "are never asked; move it last"),
        ("decide: []", "decide", "got nothing; rules look like this"),
        ("decide: [{where: {light: []}, action: go}, {action: go}]", "decide[0].where.light", "got nothing"),
        ("decide: [{when: {light: red}, action: go}]", "decide[0].when", "no such key (did you mean `where`?)"),
        ("decied: [{action: go}]", "decied", "(did you mean `decide`?)"),
        ("about: nothing", "decide", "this key is required"),
        ("decide: [{where: {light: red}}]", "decide[0].action", "this key is required"),
        ("decide: go", "decide", "got the text `go`"),
    ],
)
def test_a_mistake_names_its_place_and_the_way_out(text, place, said):
    with pytest.raises(RulesError) as caught:
        policy(text)
    assert str(caught.value).startswith(f"crossing.yaml, key `{place}`: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(("text", "said"), [("[a]", "got a list"), ("", "got nothing"), ("go", "got the text `go`")])
def test_what_is_no_mapping_is_refused(text, said):
    with pytest.raises(RulesError, match=said):
        decision_list.parse(text, "crossing.yaml")


def test_a_key_that_stands_twice_is_refused():
    with pytest.raises(TableError, match="the key `action` stands here and in line 1"):
        decision_list.parse("decide: [{action: go, action: stop}]", "crossing.yaml")


def test_the_rules_of_an_unknown_world_are_none():
    class Env:
        schema = SCHEMA
        unwrapped = property(lambda self: self)

    assert expert_policy(Env()) is None


GAME = schema_of(
    Field("terrain", ("plain", "forest", "ruins", "hills")),
    Field("distance", ("close", "near", "far")),
    Field("npc_health", ("1", "2", "3", "4", "5")),
    Field("player_health", ("1", "2", "3", "4", "5")),
    Field("last_move", ("none", "strike", "shoot", "hide", "advance", "back_off", "guard")),
    Field("last_seen", ("never", "under 30 steps ago", "under 150 steps ago", "longer ago")),
    Field("player_hidden", ("no", "yes")),
    world="GameNPC",
    actions=("attack", "shoot", "defend", "scout", "retreat", "ambush", "heal", "negotiate"),
)


def by_labels(schema, **labels):
    codes = {field.name: 0 for field in schema.fields}
    fields = {field.name: field for field in schema.fields}
    return codes | {name: fields[name].labels.index(label) for name, label in labels.items()}


@pytest.mark.parametrize(
    ("labels", "action"),
    [
        ({"player_hidden": "yes", "npc_health": "1"}, "scout"),
        ({"npc_health": "1", "distance": "far"}, "retreat"),
        ({"npc_health": "1", "distance": "close"}, "heal"),
        ({"npc_health": "4", "distance": "near", "last_move": "guard"}, "negotiate"),
        ({"npc_health": "4", "distance": "close", "last_move": "strike"}, "defend"),
        ({"npc_health": "4", "distance": "close", "last_move": "shoot"}, "attack"),
        ({"npc_health": "4", "distance": "far", "last_move": "advance"}, "ambush"),
        ({"npc_health": "4", "distance": "far", "last_move": "strike"}, "shoot"),
    ],
)
def test_the_fighter_acts_as_his_rules_say(labels, action):
    rules = DecisionListPolicy(experts._decision_list("game-npc.yaml"), GAME, "game-npc.yaml")
    assert GAME.actions[rules(by_labels(GAME, **labels))] == action


def test_every_clause_of_the_fighter_decides_some_case():
    rules = DecisionListPolicy(experts._decision_list("game-npc.yaml"), GAME, "game-npc.yaml")
    cases = itertools.product(*(range(len(field.labels)) for field in GAME.fields))
    names = [field.name for field in GAME.fields]
    deciding = {rules.clause_of(dict(zip(names, case, strict=True))) for case in cases}
    assert deciding == set(range(len(rules.rules.decide)))
