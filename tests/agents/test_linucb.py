"""LinUCB: its algebra against an explicit ridge regression, what the schema is used for, and what it learns."""

import dataclasses

import gymnasium
import numpy as np
import pytest
from habitus.agents.base import Transition
from habitus.agents.features import Features
from habitus.agents.linucb import LinUCB, RidgeModels
from habitus.envs import contract

SHARED = {  # pull green pays half of what pull red pays; pulling blue asks somebody about red
    "scaled_actions": (contract.ScaledAction("pull green", "pull red", 0.5),),
    "review": contract.Review("pull blue", "pull red", "verdict", "good", "bad", reliability=0.9, gain=0.5, loss=1.0),
    "signals": (contract.Signal("verdict", ("none", "good", "bad")),),
}


def seen(colour, shade=0.1, guest=0):
    return {"colour": np.int64(colour), "shade": np.array([shade], np.float32), "guest": np.int64(guest)}


def step(before, action, reward, after, **info):
    return Transition(before, action, reward, after, False, False, {"decision_id": -1, "feedback": [], **info})


def dense(features, n):
    vector = np.zeros(n)
    np.add.at(vector, features.nodes, features.activation.astype(float))
    return vector


def draw(rng, n=9, active=4):
    index = rng.integers(n, size=active).astype(np.int32)  # a node may come twice
    return Features(index, rng.normal(size=active).astype(np.float32), 1.0)


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_recursive_solution_equals_ridge_regression(forgetting):
    n, ridge, block = 9, 0.7, 5
    rng = np.random.default_rng(3)
    models = RidgeModels(2, n, ridge, forgetting, block)
    precision, moment = np.zeros((2, n, n)), np.zeros((2, n))
    for t in range(1, 64):
        model, features, target, weight = int(rng.integers(2)), draw(rng), rng.normal(), rng.uniform(0.2, 3.0)
        x = dense(features, n)
        models.update(model, features, target, weight)
        models.tick()
        precision[model] += weight * np.outer(x, x)
        moment[model] += weight * target * x
        if t % block == 0:  # the past fades, the ridge does not
            precision *= forgetting**block
            moment *= forgetting**block
        inverse = np.linalg.inv(precision + ridge * np.eye(n))
        probe = draw(rng)
        p = dense(probe, n)
        solution = np.einsum("mij,mj->mi", inverse, moment)
        np.testing.assert_allclose(models.weights, solution, atol=1e-8)
        np.testing.assert_allclose(models.mean(probe), solution @ p, atol=1e-8)
        np.testing.assert_allclose(models.variance(probe), np.einsum("i,mij,j->m", p, inverse, p), atol=1e-8)


def test_one_update_by_hand():
    models = RidgeModels(1, 3, ridge=2.0)
    x = Features(np.array([0, 2], np.int32), np.array([1.0, 0.5], np.float32), 1.0)
    models.update(0, x, target=3.0)
    # P = 2 I + x x', x.x = 1.25; w = 3 x / (2 + 1.25); x' P^-1 x = 1.25 / 3.25
    np.testing.assert_allclose(models.weights[0], [3 / 3.25, 0, 1.5 / 3.25], atol=1e-12)
    np.testing.assert_allclose(models.variance(x), 1.25 / 3.25, atol=1e-12)


def test_forgetting_gives_back_the_uncertainty_of_what_is_not_tried():
    models = RidgeModels(1, 3, ridge=1.0, forgetting=0.9, block=10)
    x = Features(np.array([0], np.int32), np.ones(1, np.float32), 1.0)
    for _ in range(20):
        models.update(0, x, 1.0)
    certain = models.variance(x)[0]
    for _ in range(1_000):
        models.tick()
    assert certain < 0.05
    np.testing.assert_allclose(models.variance(x), 1.0, atol=1e-8)  # 1 / ridge: as at the start
    np.testing.assert_allclose(models.mean(x), 0.0, atol=1e-8)


def test_chooses_the_highest_upper_bound(lanterns):
    agent = LinUCB(lanterns(), alpha=1.0, ridge=1.0)
    for action, reward in ((0, 0.3), (1, 0.4)):
        for _ in range(4):
            agent.observe(step(seen(0), action, reward, seen(0), boundary=True))
    assert agent.act(seen(0)) == 2  # never tried: bound sqrt(3), nodes bias, colour and shade, and the rank
    agent.alpha = 0.0
    assert agent.act(seen(0)) == 1


def test_within_an_encounter_the_value_of_what_follows_is_added(lanterns):
    agent = LinUCB(lanterns(), gamma=0.5, ridge=1e-9)
    agent.observe(step(seen(1), 0, 1.0, seen(1), boundary=True))
    agent.observe(step(seen(0), 2, -0.1, seen(1), boundary=False))
    np.testing.assert_allclose(agent.values(seen(0))[2], -0.1 + 0.5 * 1.0, atol=1e-6)
    agent.observe(step(seen(2), 2, -0.1, seen(1), boundary=True))
    closed = LinUCB(lanterns(), gamma=0.5, ridge=1e-9)
    closed.observe(step(seen(1), 0, 1.0, seen(1), boundary=True))
    closed.observe(step(seen(0), 2, -0.1, seen(1), boundary=True))
    np.testing.assert_allclose(closed.values(seen(0))[2], -0.1, atol=1e-6)


def test_a_pending_decision_is_learnt_when_its_outcome_is_listed(lanterns):
    agent = LinUCB(lanterns(delay=2), ridge=1e-9)
    agent.observe(step(seen(0), 2, 1.0, seen(1), decision_id=0, boundary=True))
    assert not agent.models.weights.any()
    agent.observe(step(seen(1), 1, 0.0, seen(2), decision_id=1, boundary=True, feedback=[(0, 1.0)]))
    np.testing.assert_allclose(agent.values(seen(0)), [0, 0, 1], atol=1e-6)


def test_an_outcome_of_the_episode_before_is_not_credited_to_a_decision_of_this_one(lanterns):
    agent = LinUCB(lanterns(delay=2))
    agent.observe(step(seen(0), 2, 1.0, seen(1), decision_id=0, boundary=True))
    agent.begin(seen(1), {})
    agent.observe(step(seen(1), 1, 0.0, seen(2), decision_id=1, boundary=True, feedback=[(0, 1.0)]))
    assert agent.values(seen(0)).tolist() == [0, 0, 0]


def world(lanterns, **declared):
    env = lanterns()
    env.schema = dataclasses.replace(env.schema, **declared)
    return env


def test_scaled_actions_train_one_model(lanterns):
    agent = LinUCB(world(lanterns, **SHARED), ridge=1e-9)
    agent.observe(step(seen(0), 1, 0.2, seen(0), boundary=True))  # half of .4
    np.testing.assert_allclose(agent.values(seen(0)), [0.4, 0.2, 0], atol=1e-6)
    apart = LinUCB(world(lanterns, **SHARED), ridge=1e-9, share_scaled=False)
    apart.observe(step(seen(0), 1, 0.2, seen(0), boundary=True))
    np.testing.assert_allclose(apart.values(seen(0)), [0, 0.2, 0], atol=1e-6)


@pytest.mark.parametrize(("verdict", "label"), [("good", 0.6875), ("bad", -1.1875), ("none", 0.0)])
def test_a_verdict_is_a_label_for_the_action_it_is_about(lanterns, verdict, label):
    # g - (g + l) (v - .1) / .8 with g = .5, l = 1: v = 0 gives .5 + .1875, v = 1 gives .5 - 1.6875
    agent = LinUCB(world(lanterns, **SHARED), ridge=1e-9)
    agent.observe(step(seen(0), 2, -0.1, seen(0), boundary=True, verdict=verdict))
    np.testing.assert_allclose(agent.values(seen(0)), [label, label / 2, -0.1], atol=1e-6)
    deaf = LinUCB(world(lanterns, **SHARED), ridge=1e-9, use_review=False)
    deaf.observe(step(seen(0), 2, -0.1, seen(0), boundary=True, verdict=verdict))
    np.testing.assert_allclose(deaf.values(seen(0)), [0, 0, -0.1], atol=1e-6)


class Stakes(gymnasium.Env):
    """Only spaces and a schema: a bet of a known size on one of two horses."""

    def __init__(self, schema):
        self.schema = schema
        self.observation_space = gymnasium.spaces.Dict({"bet": gymnasium.spaces.Box(0.2, 3.0, (1,), np.float32)})
        self.action_space = gymnasium.spaces.Discrete(2)


def bet(size):
    return {"bet": np.array([size], np.float32)}


def test_rewards_are_learnt_per_stake_and_count_by_the_stake(schema):
    fields = (contract.Field("bet", low=0.2, high=3.0),)
    env = Stakes(schema(fields=fields, stake_field="bet", entity_field=None, actions=("left", "right")))
    agent = LinUCB(env, ridge=1.0)
    cases = [(0.5, 1.0), (2.0, -1.0), (1.0, 0.3)]  # size, reward
    for size, reward in cases:
        agent.observe(step(bet(size), 0, reward, bet(1.0), boundary=True))
    x = np.array([[1.0, 1.0 / size] for size, _ in cases])  # bias and 1 / stake
    y, c = np.array([r / s for s, r in cases]), np.array([s for s, _ in cases])
    w = np.linalg.solve(np.eye(2) + (x.T * c) @ x, (x.T * c) @ y)
    np.testing.assert_allclose(agent.values(bet(2.0))[0], 2.0 * (w @ [1.0, 0.5]), atol=1e-8)
    raw = LinUCB(env, ridge=1.0, use_stake=False)
    for size, reward in cases:
        raw.observe(step(bet(size), 0, reward, bet(1.0), boundary=True))
    w = np.linalg.solve(np.eye(2) + x.T @ x, x.T @ np.array([r for _, r in cases]))
    np.testing.assert_allclose(raw.values(bet(2.0))[0], w @ [1.0, 0.5], atol=1e-8)


@pytest.mark.parametrize("delay", [0, 7])
@pytest.mark.parametrize("forgetting", [1.0, 0.999])
def test_learns_the_levers(lanterns, score, delay, forgetting):
    assert score(LinUCB(lanterns(delay), alpha=0.5, ridge=1.0, forgetting=forgetting), 1_500) > 0.9


def test_a_delayed_stream_teaches_nothing(lanterns, score):
    scores = [score(LinUCB(lanterns(7, "stream"), seed=seed, credit="stream", alpha=0.3), 1_000) for seed in range(8)]
    assert abs(np.mean(scores)) < 0.5  # as in test_tabular.py


def test_masked_fields_are_not_seen(lanterns):
    agent = LinUCB(lanterns(), masked=["colour"])
    agent.observe(step(seen(0), 1, 1.0, seen(1), boundary=True))
    assert agent.values(seen(0)).tolist() == agent.values(seen(2)).tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ridge": 0.0}, "`ridge` > 0"),
        ({"alpha": -1.0}, "`alpha` must be >= 0"),
        ({"forgetting": 0.0}, r"`forgetting` must lie in \(0, 1\]"),
        ({"credit": "later"}, "`credit` must be one of"),
        ({"masked": ["color"]}, "`masked` must name observed fields"),
    ],
)
def test_bad_settings_are_refused_by_name(lanterns, settings, message):
    with pytest.raises(ValueError, match=message):
        LinUCB(lanterns(), **settings)
