"""kNN episodic control: estimates by hand, the ring, returns of encounters, late outcomes, and what it learns."""

import copy

import gymnasium
import numpy as np
import pytest
from habitus.agents.base import Transition
from habitus.agents.episodic import EpisodicControl, EpisodicMemory, Situation
from habitus.envs import contract


def seen(colour, shade=0.1, guest=1):
    return {"colour": np.int64(colour), "shade": np.array([shade], np.float32), "guest": np.int64(guest)}


def step(before, action, reward, after, **info):
    return Transition(before, action, reward, after, False, False, {"decision_id": -1, "feedback": [], **info})


def on(*nodes):
    return Situation(np.array(nodes, np.int32), np.ones(len(nodes), np.float32), 1.0)


def memory(n_actions=1, n_nodes=6, **settings):
    usual = {"capacity": 8, "k": 3, "bandwidth": 1.0, "novelty": np.inf, "optimism": 0.0, "step": 0.5}
    return EpisodicMemory(n_actions, np.full(n_nodes, 0.5, np.float32), **{**usual, **settings})


def nearest(agent, **settings):
    """An agent that says what it wrote: one neighbour, a narrow kernel, nobody imagined."""
    usual = {"k": 1, "bandwidth": 1e-6, "novelty": np.inf, "gamma": 0.5, "optimism": 0.0, "n_steps": 20, "step": 0.1}
    return EpisodicControl(agent, **{**usual, **settings})


def test_the_value_is_the_mean_of_three_neighbours_by_their_distance():
    known = memory()
    known.write(0, on(0, 2, 4), 1.0)  # as asked: d^2 = 0, weight 1
    known.write(0, on(0, 2, 5), 4.0)  # one field differs: d^2 = 1, weight 1/2
    known.write(0, on(0, 3, 5), -6.0)  # two differ: d^2 = 2, weight 1/3
    known.write(0, on(1, 3, 5), 100.0)  # three differ, the fourth is not asked
    np.testing.assert_allclose(known.values(on(0, 2, 4)), [(1 + 4 / 2 - 6 / 3) / (1 + 1 / 2 + 1 / 3)], rtol=1e-6)


def test_all_that_is_as_near_as_the_last_neighbour_is_asked_in_any_order():
    cases = [(on(0, 2, 4), 1.0), (on(0, 2, 5), 4.0), (on(0, 3, 4), -6.0), (on(1, 2, 4), 3.0), (on(1, 3, 5), 50.0)]
    for order in (cases, cases[::-1]):
        known = memory(k=2)
        for situation, value in order:
            known.write(0, situation, value)
        np.testing.assert_allclose(known.values(on(0, 2, 4)), [(1 + (4 - 6 + 3) / 2) / (1 + 3 / 2)], rtol=1e-6)


def test_numbers_count_by_the_square_of_their_difference():
    known = memory(n_nodes=1, k=2)
    for rank, value in ((-1.0, 0.0), (0.5, 1.0)):
        known.write(0, Situation(np.array([0], np.int32), np.array([rank], np.float32), 1.0), value)
    # half of 1.5^2 is 1.125, half of 0 is 0
    asked = Situation(np.array([0], np.int32), np.array([0.5], np.float32), 1.0)
    np.testing.assert_allclose(known.values(asked), [1 / (1 + 1 / 2.125)], rtol=1e-6)


def test_estimates_equal_those_of_a_plain_search():
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.1, 2.0, 12).astype(np.float32)
    settings = {"capacity": 50, "k": 4, "bandwidth": 0.3, "novelty": 1.5, "optimism": 0.7, "step": 1.0}
    known = EpisodicMemory(2, weights, **settings)

    def draw():
        nodes = rng.choice(12, 4, replace=False).astype(np.int32)
        return Situation(nodes, rng.uniform(-1, 1, 4).astype(np.float32), 1.0)

    def dense(situation):
        vector = np.zeros(12)
        vector[situation.nodes] = situation.activation
        return vector

    written = [(int(rng.integers(2)), draw(), float(rng.normal())) for _ in range(60)]
    for action, situation, value in written:
        known.write(action, situation, value)
    for _ in range(20):
        asked, expected = draw(), []
        for action in (0, 1):
            pairs = sorted(
                (float(weights @ (dense(situation) - dense(asked)) ** 2), value)
                for chosen, situation, value in written
                if chosen == action
            )[:4]
            pairs.append((1.5, 0.7))
            kernel = [1 / (distance + 0.3) for distance, _ in pairs]
            expected.append(np.dot(kernel, [value for _, value in pairs]) / sum(kernel))
        np.testing.assert_allclose(known.values(asked), expected, rtol=1e-4, atol=1e-5)


def test_what_was_never_tried_is_worth_the_optimism_and_what_is_far_little_else():
    known = memory(2, k=1, bandwidth=0.5, novelty=1.5, optimism=1.0)
    assert known.values(on(0, 2, 4)).tolist() == [1, 1]
    known.write(0, on(0, 2, 4), 0.0)
    # the imagined neighbour weighs 1 / (1.5 + .5); the one known 1 / .5 where it was, 1 / 3.5 three fields away
    np.testing.assert_allclose(known.values(on(0, 2, 4)), [0.5 / (2 + 0.5), 1], rtol=1e-6)
    np.testing.assert_allclose(known.values(on(1, 3, 5)), [0.5 / (1 / 3.5 + 0.5), 1], rtol=1e-6)
    assert memory(novelty=np.inf, optimism=2.0).values(on(0)).tolist() == [2]


def test_a_known_situation_moves_its_value_by_one_over_n_down_to_the_floor():
    known = memory(k=1, step=0.4)
    for value, expected in ((1.0, 1.0), (0.0, 0.5), (0.5, 0.5), (1.0, 0.7)):  # rates 1, 1/2, .4, .4
        known.write(0, on(0, 2), value)
        np.testing.assert_allclose(known.values(on(0, 2)), [expected], rtol=1e-6)
    assert known.sizes() == [1]


def test_a_full_memory_overwrites_its_oldest_situation():
    known = memory(2, k=1, bandwidth=1e-6, capacity=3)
    for node in range(5):  # 3 and 4 take the places of 0 and 1
        known.write(0, on(node), float(node))
    assert known.sizes() == [3, 0]
    np.testing.assert_allclose([known.values(on(node))[0] for node in (2, 3, 4)], [2, 3, 4], atol=1e-4)
    np.testing.assert_allclose(known.values(on(0)), [3, 0], atol=1e-4)  # forgotten; the other three are equally far
    known.write(0, on(0), 9.0)  # as new, not as one that it knew
    np.testing.assert_allclose(known.values(on(0)), [9, 0], atol=1e-4)
    np.testing.assert_allclose(known.values(on(2))[0], (3 + 4 + 9) / 3, atol=1e-4)


def test_every_step_of_an_encounter_is_worth_what_followed_until_its_end(lanterns):
    agent = nearest(lanterns())
    agent.observe(step(seen(0), 0, 0.0, seen(1), boundary=False))
    agent.observe(step(seen(1), 1, -1.0, seen(2), boundary=False))
    assert agent.memory.sizes() == [0, 0, 0]
    agent.observe(step(seen(2), 2, 4.0, seen(0), boundary=True))
    # 4, then -1 + .5 * 4, then 0 + .5 * 1
    estimates = [agent.values(seen(colour))[colour] for colour in range(3)]
    np.testing.assert_allclose(estimates, [0.5, 1.0, 4.0], rtol=1e-5)


def test_a_longer_encounter_adds_what_is_expected_of_the_situation_it_has_come_to(lanterns):
    agent = nearest(lanterns(), n_steps=2)
    agent.observe(step(seen(2), 1, 8.0, seen(0), boundary=True))
    agent.observe(step(seen(0), 0, 1.0, seen(1), boundary=False))
    agent.observe(step(seen(1), 0, 2.0, seen(2), boundary=False))
    # the first step only: 1 + .5 * 2 + .25 * 8
    assert agent.memory.sizes() == [1, 1, 0]
    np.testing.assert_allclose(agent.values(seen(0))[0], 4.0, rtol=1e-5)


def test_nothing_is_expected_after_a_terminal_step_but_after_a_truncated_one(lanterns):
    for terminated, expected in ((True, 1.0), (False, 1.0 + 0.5 * 8.0)):
        agent = nearest(lanterns())
        agent.observe(step(seen(2), 1, 8.0, seen(0), boundary=True))
        agent.observe(Transition(seen(0), 0, 1.0, seen(2), terminated, True, {}))
        np.testing.assert_allclose(agent.values(seen(0))[0], expected, rtol=1e-5)


def test_a_pending_decision_is_written_when_its_outcome_is_listed_where_it_was_made(lanterns):
    agent = nearest(lanterns(delay=2))
    agent.observe(step(seen(0), 2, 1.0, seen(1), decision_id=0, boundary=True))
    assert agent.memory.sizes() == [0, 0, 0]
    agent.observe(step(seen(1), 1, 0.0, seen(2), decision_id=1, boundary=True, feedback=[(0, 1.0)]))
    assert agent.memory.sizes() == [0, 0, 1]
    np.testing.assert_allclose(agent.values(seen(0))[2], 1.0, rtol=1e-5)


def test_before_a_pending_decision_counts_what_it_was_thought_to_be_worth(lanterns):
    agent = nearest(lanterns(delay=2))
    agent.observe(step(seen(1), 1, 6.0, seen(0), boundary=True))
    agent.observe(step(seen(0), 0, -1.0, seen(1), boundary=False))
    agent.observe(step(seen(1), 1, 0.0, seen(2), decision_id=7, boundary=True))
    np.testing.assert_allclose(agent.values(seen(0))[0], -1.0 + 0.5 * 6.0, rtol=1e-5)


def test_an_outcome_of_the_episode_before_is_not_credited_to_a_decision_of_this_one(lanterns):
    agent = nearest(lanterns(delay=2))
    agent.observe(step(seen(0), 2, 1.0, seen(1), decision_id=0, boundary=True))
    agent.begin(seen(1), {})
    agent.observe(step(seen(1), 1, 0.0, seen(2), decision_id=1, boundary=True, feedback=[(0, 1.0)]))
    assert agent.memory.sizes() == [0, 0, 0]


def test_stream_writes_the_reward_as_it_comes_where_it_comes(lanterns):
    agent = nearest(lanterns(delay=2, feedback="stream"), credit="stream", entity=False)
    agent.observe(step(seen(0), 2, 0.0, seen(1), decision_id=0, boundary=True))
    agent.observe(step(seen(1), 1, 1.0, seen(2), decision_id=1, boundary=True, feedback=[(0, 1.0)]))
    assert agent.values(seen(0))[2] == 0
    np.testing.assert_allclose(agent.values(seen(1))[1], 1.0, rtol=1e-5)


def test_rewards_are_written_per_stake(schema):
    env = gymnasium.Env()
    env.action_space = gymnasium.spaces.Discrete(3)
    env.observation_space = gymnasium.spaces.Dict({"bet": gymnasium.spaces.Box(0.2, 3.0, (1,), np.float32)})
    fields = (contract.Field("bet", low=0.2, high=3.0),)
    env.schema = schema(fields=fields, stake_field="bet", entity_field=None)
    bet = {size: {"bet": np.array([size], np.float32)} for size in (1.0, 2.0)}
    for use_stake, expected in ((True, 0.5), (False, 1.0)):
        agent = nearest(env, use_stake=use_stake)
        agent.observe(step(bet[2.0], 0, 1.0, bet[1.0], boundary=True))
        np.testing.assert_allclose(agent.values(bet[1.0])[0], expected, rtol=1e-5)


def test_entities_are_as_far_apart_as_the_setting_says_and_can_be_left_out(lanterns):
    def read(guest, **settings):
        agent = nearest(lanterns(), k=2, bandwidth=1.0, **settings)
        agent.observe(step(seen(0, guest=1), 0, 1.0, seen(0), boundary=True))
        agent.observe(step(seen(0, guest=2), 0, 4.0, seen(0), boundary=True))
        return agent.values(seen(0, guest=guest))[0]

    np.testing.assert_allclose(read(1, entity_weight=3.0), (1 + 4 / 4) / (1 + 1 / 4), rtol=1e-5)
    np.testing.assert_allclose(read(0, entity_weight=3.0), 2.5, rtol=1e-5)  # unknown: equally far from both
    np.testing.assert_allclose(read(1, entity_weight=0.0), 2.5, rtol=1e-5)
    np.testing.assert_allclose(read(1, entity=False), 2.5, rtol=1e-5)


def test_impossible_actions_are_left_alone_unless_the_mask_is_ignored(lanterns):
    def chosen(**settings):
        env = lanterns()
        agent, actions = EpisodicControl(env, optimism=1.0, epsilon=0.5, epsilon_floor=0.5, **settings), set()
        observation, info = env.reset(seed=0)
        told = {**info, "boundary": True, "action_mask": np.array([1, 0, 1], np.int8)}
        agent.begin(observation, told)
        for _ in range(60):
            actions.add(action := agent.act(observation))
            agent.observe(Transition(observation, action, 0.0, observation, False, False, told))
        return actions

    assert chosen() == {0, 2}
    assert chosen(use_mask=False) == {0, 1, 2}


def test_an_impossible_action_is_not_what_is_expected_next(lanterns):
    agent = nearest(lanterns(), n_steps=1)
    agent.observe(step(seen(1), 2, 8.0, seen(0), boundary=True))
    agent.observe(step(seen(1), 1, 2.0, seen(0), boundary=True))
    told = {"boundary": False, "action_mask": np.array([1, 1, 0], np.int8)}
    agent.observe(step(seen(0), 0, 0.0, seen(1), **told))
    np.testing.assert_allclose(agent.values(seen(0))[0], 0.5 * 2.0, rtol=1e-5)


def test_an_observation_that_the_environment_overwrites_is_remembered_as_it_was(lanterns):
    agent = nearest(lanterns(), entity=False)
    shown = seen(0)
    agent.act(shown)
    shown["colour"] = np.int64(2)  # the next observation, in the same dictionary
    agent.observe(step(shown, 1, 1.0, shown, boundary=True))
    np.testing.assert_allclose(agent.values(seen(0))[1], 1.0, rtol=1e-5)
    agent.observe(step(seen(2), 1, -1.0, seen(0), boundary=True))
    np.testing.assert_allclose(agent.values(seen(0))[1], 1.0, rtol=1e-5)


def test_exploration_halves_and_stops_at_its_floor(lanterns):
    agent = EpisodicControl(lanterns(), epsilon=0.8, epsilon_steps=10, epsilon_floor=0.3)
    rates = []
    for _ in range(21):
        rates.append(agent.exploration_rate)
        agent.act(seen(0))
    np.testing.assert_allclose([rates[0], rates[10], rates[20]], [0.8, 0.4, 0.3])


def test_a_seed_gives_the_same_life_and_a_copy_goes_on_alike(lanterns):
    def life(agent, n):
        actions = []
        agent.learn(n, callback=lambda _, transition: actions.append(transition.action))
        return actions

    agent = EpisodicControl(lanterns(7), seed=3)
    first = life(agent, 300)
    assert first == life(EpisodicControl(lanterns(7), seed=3), 300)
    assert first != life(EpisodicControl(lanterns(7), seed=4), 300)
    twin = copy.deepcopy(agent)
    assert life(agent, 200) == life(twin, 200)


@pytest.mark.parametrize("delay", [0, 7])
def test_learns_the_levers(lanterns, score, delay):
    # without learning: mean 0, standard error .04 (750 choices, each right with probability 1/3, over 2/3)
    assert score(EpisodicControl(lanterns(delay), entity=False), 1_500) > 0.85


def test_a_delayed_stream_teaches_nothing(lanterns, score):
    scores = [
        score(EpisodicControl(lanterns(7, "stream"), seed=seed, credit="stream", entity=False), 600)
        for seed in range(8)
    ]
    assert abs(np.mean(scores)) < 0.5  # as in test_tabular.py


def test_a_full_memory_still_learns(lanterns, score):
    agent = EpisodicControl(lanterns(), entity=False, capacity=60)
    assert score(agent, 1_500) > 0.8
    assert max(agent.memory.sizes()) <= 60


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "`k` must be at least 1"),
        ({"k": 30, "capacity": 20}, "`capacity` must be at least `k` = 30, got 20"),
        ({"bandwidth": 0.0}, "`bandwidth` and `epsilon_steps` must be positive"),
        ({"entity_weight": -1.0}, "`entity_weight` must be at least 0, got -1.0"),
        ({"novelty": float("nan")}, "`novelty` must be at least 0, got nan"),
        ({"step": 0.0}, r"`step` must lie in \(0, 1\]"),
        ({"n_steps": 0}, "`n_steps` must be at least 1"),
        ({"gamma": 1.5}, r"`gamma` must lie in \[0, 1\], got 1.5"),
        ({"optimism": float("inf")}, "`optimism` must be finite"),
        ({"credit": "later"}, "`credit` must be one of"),
        ({"masked": ["color"]}, "`masked` must name observed fields"),
    ],
)
def test_bad_settings_are_refused_by_name(lanterns, settings, message):
    with pytest.raises(ValueError, match=message):
        EpisodicControl(lanterns(), **settings)


def test_a_switch_is_true_or_false(lanterns):
    for name in ("entity", "use_stake", "use_mask"):
        with pytest.raises(TypeError, match=f"`{name}` must be True or False, got 'no'"):
            EpisodicControl(lanterns(), **{name: "no"})
