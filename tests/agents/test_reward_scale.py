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
    states, factors = follow([0.0, 3.0, -9.0, 0.0, 12.0], [False, False, True, False, False])
    usual = [0.0, 3.0, 4.5, 4.5, 6.75]  # up by half at most while there are few
    most = [0.0, 1.0, 1.95, 1.95, 1.95]  # 1, .95 + 1, then a new episode
    gain = [0.0, 3.0, 0.0, 0.0, 12.0]  # the episode that ends had .95 * 3 - 9
    np.testing.assert_allclose([one.usual for one in states], usual)
    np.testing.assert_allclose([one.most for one in states], most)
    np.testing.assert_allclose([one.gain for one in states], gain)
    # 1 without rewards; 3; 4.5 * 1.95 = 8.775; the same; 6.75 * 1.95 = 13.2
    assert [one.bound for one in states] == [1.0, 4.0, 16.0, 16.0, 16.0]
    assert factors == [1.0, 1.0, 0.25, 1.0, 1.0]  # nothing was learnt in the first unit


def test_a_power_of_two_is_its_own_bound():
    for reward in (0.25, 1.0, 4.0):
        assert follow([reward], [True])[0][0].bound == reward
    assert follow([4.001], [True])[0][0].bound == 8.0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("FrozenLake-v1", 1.0),  # one reward of 1 at the end
        ("Blackjack-v1", 1.0),
        ("CliffWalking-v1", 32.0),  # 20 steps of -1; falls of -100 are rare
        ("CartPole-v1", 32.0),  # 20 steps of 1
        ("Taxi-v4", 32.0),  # -1, at random a third of the steps -10
    ],
)
def test_bounds_of_known_environments(name, expected):
    rewards, ends = lived(name, 4_000)
    states, factors = follow(rewards, ends)
    bounds = np.array([one.bound for one in states])
    assert (bounds[2_000:] == expected).all()
    assert (rewards <= bounds).all()
    assert all(one.gain <= one.bound for one in states)
    assert (np.log2(bounds) % 1 == 0).all()
    moves = np.flatnonzero(np.array(factors) != 1)
    np.testing.assert_array_equal(np.array(factors)[moves], bounds[moves - 1] / bounds[moves])
    assert len(moves) <= 12
    assert np.prod(factors) == bounds[np.flatnonzero(np.array(rewards))[0]] / bounds[-1]


def test_the_bound_follows_rewards_that_change_their_size():
    small, large = [1.0] * 2_000, [100.0] * 2_000
    ends = [False] * 2_000
    assert follow(small, ends)[0][-1].bound == 32.0
    assert follow(small + large, ends * 2)[0][-1].bound == 2_048.0
    back = follow(large + small * 40, ends * 41)
    assert back[0][-1].bound == 32.0
    assert max(back[1]) >= 2


def test_a_rare_gain_counts_and_a_rare_loss_does_not():
    ends = [False] * 1_000
    for rare, expected in ((1_000.0, 1_024.0), (-1_000.0, 32.0)):
        assert follow([-1.0] * 500 + [rare] + [-1.0] * 499, ends)[0][-1].bound == expected


def test_an_unusual_first_reward_is_soon_forgotten():
    states, _ = follow([-100.0] + [-1.0] * 100, [False] * 101)
    assert states[1].bound >= 128.0
    assert all(one.bound == 32.0 for one in states[60:])
    settled = [-1.0] * 100
    assert follow([*settled, *[-100.0] * 5], [False] * 105)[0][-1].bound == 32.0  # later it takes many


def test_a_short_sight_counts_fewer_steps():
    scale = reward_scale.initial()
    for _ in range(500):
        scale, _ = reward_scale.update(scale, 1.0, is_end=False, gamma=0.5)
    assert scale.bound == 2.0  # 1 / (1 - .5)


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
    for name, values in found._asdict().items():
        np.testing.assert_allclose(values, [getattr(one, name) for one in states], rtol=1e-4, atol=1e-4)
    assert {leaf.dtype for leaf in found} == {np.dtype(np.float32)}


def test_tiny_and_huge_rewards_stay_finite():
    rewards, ends = [0.0, 1e-38, 3e38, -3e38, 0.0], [True, True, False, True, True]
    states, factors = follow(rewards, ends)
    for found, factor in ((np.array(states).T, factors), compiled(rewards, ends)):
        assert np.isfinite(np.asarray(found)).all()
        assert np.isfinite(factor).all()
        assert found[0][1] == 1
        assert (reward_scale.MOST <= found[0][2:]).all()
        assert (found[0][2:] <= 2 * reward_scale.MOST).all()


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
