"""Tabular Q: the update by hand, the key, and what it learns."""

import copy

import gymnasium
import numpy as np
import pytest
from habitus.agents.base import Transition
from habitus.agents.tabular import TabularQ
from habitus.envs import contract


def seen(colour, shade=0.1, guest=0):
    return {"colour": np.int64(colour), "shade": np.array([shade], np.float32), "guest": np.int64(guest)}


def step(before, action, reward, after, **info):
    return Transition(before, action, reward, after, False, False, {"decision_id": -1, "feedback": [], **info})


class SpacesOnly:
    """Not an environment to act in: a bet of a known size on one of two horses."""

    def __init__(self, schema):
        self.schema = schema
        self.action_space = gymnasium.spaces.Discrete(3)
        self.observation_space = gymnasium.spaces.Dict(
            {"bet": gymnasium.spaces.Box(0.2, 3.0, (1,), np.float32), "horse": gymnasium.spaces.Discrete(2)}
        )


def bet(size):
    return {"bet": np.array([size], np.float32), "horse": np.int64(0)}


def test_updates_by_hand(lanterns):
    agent = TabularQ(lanterns(), fields=["colour"], alpha=0.4, gamma=0.5)
    # the first two step sizes are 1 and 1/2, the third would be 1/3 and is held at the floor .4
    agent.observe(step(seen(0), 1, 1.0, seen(1), boundary=True))
    assert agent.values(seen(0)).tolist() == [0, 1, 0]
    agent.observe(step(seen(0), 1, 0.5, seen(1), boundary=True))
    assert agent.values(seen(0)).tolist() == [0, 0.75, 0]
    agent.observe(step(seen(0), 1, 0.0, seen(1), boundary=True))
    np.testing.assert_allclose(agent.values(seen(0)), [0, 0.75 - 0.4 * 0.75, 0], atol=1e-15)
    # within an encounter: y = -.1 + .5 * max Q(colour 0) = -.1 + .5 * .45
    agent.observe(step(seen(2), 0, -0.1, seen(0), boundary=False))
    np.testing.assert_allclose(agent.values(seen(2)), [0.125, 0, 0], atol=1e-15)


def test_rewards_are_learnt_per_stake(schema):
    fields = (contract.Field("bet", low=0.2, high=3.0), contract.Field("horse", labels=("bay", "grey")))
    env = SpacesOnly(schema(fields=fields, stake_field="bet", entity_field=None))
    agent, raw = TabularQ(env), TabularQ(env, use_stake=False)
    for one in (agent, raw):
        one.observe(step(bet(2.0), 0, 1.0, bet(1.0), boundary=True))  # .5 per stake
        one.observe(step(bet(0.5), 0, 0.5, bet(1.0), boundary=True))  # 1 per stake
    assert agent.values(bet(2.0))[0] == 2.0 * 0.75
    assert raw.values(bet(2.0))[0] == 0.75


def test_nothing_is_bootstrapped_over_a_terminal_step_but_over_a_truncated_one(lanterns):
    for terminated, expected in ((True, 0.0), (False, 0.5)):
        agent = TabularQ(lanterns(), fields=["colour"], gamma=0.5)
        agent.observe(step(seen(1), 0, 1.0, seen(1), boundary=True))
        agent.observe(Transition(seen(0), 0, 0.0, seen(1), terminated, True, {}))
        assert agent.values(seen(0))[0] == expected


def test_a_pending_decision_is_not_learnt_before_its_outcome_and_then_at_its_own_key(lanterns):
    agent = TabularQ(lanterns(delay=2), fields=["colour"])
    agent.observe(step(seen(0), 2, 1.0, seen(1), decision_id=0, boundary=True))
    assert agent.values(seen(0)).tolist() == [0, 0, 0]
    agent.observe(step(seen(1), 1, 0.0, seen(2), decision_id=1, boundary=True, feedback=[(0, 1.0)]))
    assert agent.values(seen(0)).tolist() == [0, 0, 1]
    assert agent.values(seen(1)).tolist() == [0, 0, 0]


def test_an_outcome_of_the_episode_before_is_not_credited_to_a_decision_of_this_one(lanterns):
    agent = TabularQ(lanterns(delay=2))
    agent.observe(step(seen(0), 2, 1.0, seen(1), decision_id=0, boundary=True))
    agent.begin(seen(1), {})
    agent.observe(step(seen(1), 1, 0.0, seen(2), decision_id=1, boundary=True, feedback=[(0, 1.0)]))
    assert agent.values(seen(0)).tolist() == [0, 0, 0]


def test_stream_learns_the_reward_as_it_comes_at_the_key_of_the_step(lanterns):
    agent = TabularQ(lanterns(delay=2, feedback="stream"), credit="stream", fields=["colour"])
    agent.observe(step(seen(0), 2, 0.0, seen(1), decision_id=0, boundary=True))
    agent.observe(step(seen(1), 1, 1.0, seen(2), decision_id=1, boundary=True, feedback=[(0, 1.0)]))
    assert agent.values(seen(0)).tolist() == [0, 0, 0]
    assert agent.values(seen(1)).tolist() == [0, 1, 0]


def test_the_key_takes_leading_fields_within_the_bound_and_passes_over_what_does_not_fit(lanterns):
    # cells: colour 3, shade 4 bins, guest 3 (an entity: only on request)
    assert TabularQ(lanterns(), max_states=12).fields == ("colour", "shade")
    assert TabularQ(lanterns(), max_states=11).fields == ("colour",)
    assert TabularQ(lanterns(), max_states=2).fields == ()  # one cell: a plain bandit
    assert TabularQ(lanterns(), max_states=3, entity=True).fields == ("colour", "guest")
    assert TabularQ(lanterns(), fields=["shade"]).fields == ("shade",)


def test_the_key_tells_apart_bins_and_nothing_else(lanterns):
    agent = TabularQ(lanterns(), fields=["shade"])
    agent.observe(step(seen(0, 0.3), 1, 1.0, seen(1), boundary=True))
    assert agent.values(seen(2, 0.49, guest=2))[1] == 1
    assert agent.values(seen(0, 0.51))[1] == 0


def test_a_single_state_field_is_always_the_key():
    agent = TabularQ(gymnasium.make("CliffWalking-v1"), max_states=10)
    assert agent.fields == ("state",)


def test_optimism_tries_every_action_of_a_cell_before_any_twice(lanterns):
    agent = TabularQ(lanterns(), fields=["colour"], optimism=1.0, epsilon=0.0, epsilon_floor=0.0)
    tried = []
    for _ in range(3):
        action = agent.act(seen(0))
        tried.append(action)
        agent.observe(step(seen(0), action, 0.0, seen(0), boundary=True))
    assert sorted(tried) == [0, 1, 2]


def test_exploration_halves_and_stops_at_its_floor(lanterns):
    agent = TabularQ(lanterns(), fields=["colour"], epsilon=1.0, epsilon_steps=10, epsilon_floor=0.0)
    agent.observe(step(seen(0), 2, 1.0, seen(0), boundary=True))
    acts = [agent.act(seen(0)) for _ in range(10_000)]
    # sum of 10 / (10 + t) over 10,000 steps is 10 * ln(1001) = 69, two thirds of them visible; sd below 7
    assert 20 < sum(action != 2 for action in acts) < 75


@pytest.mark.parametrize("delay", [0, 7])
def test_learns_the_levers(lanterns, score, delay):
    assert score(TabularQ(lanterns(delay), fields=["colour"], epsilon=0.1, epsilon_steps=200), 1_500) > 0.9


def test_a_delayed_stream_teaches_nothing(lanterns, score):
    scores = [
        score(TabularQ(lanterns(7, "stream"), seed=seed, credit="stream", fields=["colour"], epsilon=0.1), 1_000)
        for seed in range(8)
    ]
    # three colours, each stuck with any lever: sd <= .41 a seed, .145 for the mean of eight; .5 is 3.4 of them
    assert abs(np.mean(scores)) < 0.5


def test_predict_neither_explores_nor_writes(lanterns):
    env = lanterns()
    agent = TabularQ(env, fields=["colour"], seed=1)
    agent.learn(200)
    before = copy.deepcopy((agent._rows, agent._values.tolist(), agent._counts.tolist()))
    single = agent.predict(seen(1))[0]
    batch = {"colour": np.array([1, 1]), "shade": np.full((2, 1), 0.1, np.float32), "guest": np.array([0, 1])}
    assert agent.predict(batch)[0].tolist() == [int(single)] * 2
    assert (agent._rows, agent._values.tolist(), agent._counts.tolist()) == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fields": ["color"]}, "did you mean 'colour'"),
        ({"alpha": 0.0}, r"`alpha` must lie in \(0, 1\], got 0.0"),
        ({"epsilon": 1.5}, r"`epsilon` must lie in \[0, 1\], got 1.5"),
        ({"epsilon_steps": 0}, "must be positive"),
    ],
)
def test_bad_settings_are_refused_by_name(lanterns, settings, message):
    with pytest.raises(ValueError, match=message):
        TabularQ(lanterns(), **settings)


def test_an_entity_key_needs_a_declared_entity():
    with pytest.raises(ValueError, match="declares no entity field"):
        TabularQ(gymnasium.make("CliffWalking-v1"), entity=True)
