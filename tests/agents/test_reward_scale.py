"""The bound of rewards that nobody declares: by hand, on known environments, and what becomes of weights."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.agents import reward_scale

GAMMA = 0.99


def follow(rewards, ends):
    """States and factors, one per step."""
    scale, states, factors = reward_scale.initial(), [], []
    for reward, is_end in zip(rewards, ends, strict=True):
        scale, factor = reward_scale.update(scale, reward, is_end=is_end, gamma=GAMMA)
        states.append(scale)
        factors.append(float(factor))
    return states, factors


def lived(name, n, choose=None):
    """Rewards and ends of `n` steps of an environment, by default under random actions."""
    env = gymnasium.make(name, max_episode_steps=500)
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    rewards, ends = [], []
    for _ in range(n):
        action = env.action_space.sample() if choose is None else choose(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        rewards.append(float(reward))
        ends.append(terminated or truncated)
        if ends[-1]:
            observation, _ = env.reset()
    return rewards, ends


def test_the_bound_by_hand():
    # traces 0, 3, 2.97 - 9 = -6.03, 0 (a new episode), 1
    states, factors = follow([0.0, 3.0, -9.0, 0.0, 1.0], [False, False, True, False, False])
    assert [float(one.bound) for one in states] == [1.0, 4.0, 16.0, 16.0, 16.0]  # 9 alone is larger than |-6.03|
    assert factors == [1.0, 1.0, 0.25, 1.0, 1.0]  # nothing was learnt in the first unit
    assert float(states[2].trace) == 0.0
    np.testing.assert_allclose(float(states[1].trace), 3.0)


def test_a_power_of_two_is_its_own_bound():
    for reward in (0.25, 1.0, 4.0):
        assert float(follow([reward], [True])[0][0].bound) == reward
    assert float(follow([4.001], [True])[0][0].bound) == 8.0


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("FrozenLake-v1", 1.0, 1.0),  # one reward of 1 at the end
        ("Blackjack-v1", 1.0, 1.0),
        ("CliffWalking-v1", 128.0, 16_384.0),  # falls of -100, several within the horizon of a beginner
        ("Taxi-v4", 128.0, 1_024.0),  # at most -10 / (1 - gamma) = -1,000
        ("CartPole-v1", 32.0, 128.0),  # at most 1 / (1 - gamma) = 100
    ],
)
def test_returns_of_known_environments_lie_within_the_bound(name, least, most):
    rewards, ends = lived(name, 4_000)
    states, factors = follow(rewards, ends)
    bounds = np.array([float(one.bound) for one in states])
    assert least <= bounds[-1] <= most
    assert (np.abs(rewards) <= bounds).all()
    assert all(abs(float(one.trace)) <= float(one.bound) for one in states)
    assert (np.log2(bounds) % 1 == 0).all()
    moves = np.flatnonzero(np.array(factors) != 1)
    np.testing.assert_array_equal(np.array(factors)[moves], bounds[moves - 1] / bounds[moves])
    assert len(moves) <= 14
    assert np.prod(factors) == bounds[np.flatnonzero(np.array(rewards))[0]] / bounds[-1]


def test_disasters_of_a_beginner_fade():
    falls, falls_end = lived("CliffWalking-v1", 3_000)
    way = iter([0, *[1] * 11, 2] * 2_000)  # up, eleven times right, down: the best way, 13 steps
    walks, walks_end = lived("CliffWalking-v1", 22_000, lambda _: next(way))
    assert min(walks) == -1
    states, factors = follow(falls + walks, falls_end + walks_end)
    first, last = float(states[2_999].bound), float(states[-1].bound)
    assert first >= 1_024
    assert 16 <= last <= 128  # the best return is about -12, and the bound is lowered in steps of 8 and more
    assert max(factors) >= 8


def compiled(rewards, ends):
    """States and factors of the pure function, in one scan."""

    def step(scale, seen):
        scale, factor = reward_scale.pure_update(scale, seen[0], is_end=seen[1], gamma=GAMMA)
        return scale, (scale, factor)

    start = jax.tree.map(jnp.float32, reward_scale.initial())
    seen = (jnp.asarray(rewards, jnp.float32), jnp.asarray(ends))
    return jax.jit(lambda seen: jax.lax.scan(step, start, seen)[1])(seen)


@pytest.mark.parametrize("name", ["Taxi-v4", "CartPole-v1", "CliffWalking-v1"])
def test_the_pure_function_finds_the_same_bounds(name):
    rewards, ends = lived(name, 1_000)
    found, factors = compiled(rewards, ends)
    states, expected = follow(rewards, ends)
    np.testing.assert_array_equal(factors, expected)
    np.testing.assert_array_equal(found.bound, [one.bound for one in states])
    np.testing.assert_allclose(found.peak, [one.peak for one in states], rtol=1e-4)
    np.testing.assert_allclose(found.trace, [one.trace for one in states], rtol=1e-4, atol=1e-4)
    assert {leaf.dtype for leaf in found} == {np.dtype(np.float32)}


def test_tiny_and_huge_rewards_stay_finite():
    rewards, ends = [0.0, 1e-38, 3e38, -3e38, 0.0], [True] * 5
    states, factors = follow(rewards, ends)
    for found, factor in ((np.array(states).T, factors), compiled(rewards, ends)):
        assert np.isfinite(np.asarray(found)).all()
        assert np.isfinite(factor).all()
        assert found[0][1] == 1
        assert (found[0][2:] == reward_scale.MOST).all()


def test_rescaled_keeps_what_was_learnt_and_what_was_never_tried():
    optimism, half = 0.5, 0.25
    weights = np.array([0.5, 0.2, 0.6])
    share = np.array([1.0, 0.0, 0.5])  # never tried; prior forgotten; half and half
    # the third: 0.25 of prior stays, 0.35 was learnt and becomes a quarter of it
    expected = [0.5, 0.05, 0.25 + 0.35 / 4]
    np.testing.assert_allclose(reward_scale.rescaled(weights, half, optimism, share), expected)


def test_a_learner_that_rescales_ends_where_one_that_knew_the_bound_ends():
    # one weight, Kalman rule with noise s2 in the final unit: w' = w + v (y - w) / (s2 + v), v' = v s2 / (s2 + v)
    def learn(targets, bounds, optimism=0.5, noise=0.1):
        w, v, bound = optimism, 1.0, bounds[0]
        for y, new in zip(targets, bounds, strict=True):
            w, bound = reward_scale.rescaled(w, bound / new, optimism, v), new
            w, v = w + v * (y / bound - w) / (noise + v), v * noise / (noise + v)
        return w

    targets = [1.0, 2.0, 3.5, 3.0]
    np.testing.assert_allclose(learn(targets, [1.0, 2.0, 4.0, 4.0]), learn(targets, [4.0] * 4), rtol=1e-12)
    negative_control = learn(targets, [1.0, 2.0, 4.0, 4.0], optimism=0.0)
    assert abs(negative_control - learn(targets, [4.0] * 4)) > 1e-3
