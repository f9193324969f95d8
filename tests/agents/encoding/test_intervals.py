"""Positions of numbers in their intervals: by hand, monotone, the same in NumPy and in XLA."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.agents.encoding import UNBOUNDED_SCALE, Intervals
from habitus.agents.encoding.intervals import interval

INF = math.inf


def test_steps_by_hand():
    # 8 steps within each interval, 4 beyond an open end
    numbers = Intervals(["bounded", "open"], [0.0, -INF], [16.0, INF], 8, 4, {"open": 2.0})
    assert numbers.n_positions.tolist() == [8, 4 + 8 + 4]
    assert numbers.steps(np.array([0.0, -2.0], np.float32)).tolist() == [0, 4]  # low ends
    assert numbers.steps(np.array([5.9, 0.6], np.float32)).tolist() == [2, 4 + 5]  # 5.9 / 2; (.6 + 2) / .5 = 5.2
    assert numbers.steps(np.array([16.0, 1.99], np.float32)).tolist() == [7, 4 + 7]  # a bound is in the last step
    # 6 beyond 2, the interval is 4 wide: 4 * 6 / (6 + 4) = 2.4 further steps; below: 4 * 4 / (4 + 4) = 2 before
    assert numbers.steps(np.array([20.0, 8.0], np.float32)).tolist() == [7, 12 + 2]
    assert numbers.steps(np.array([-9.0, -6.0], np.float32)).tolist() == [0, 4 - 2]
    assert numbers.steps(np.array([0.0, 1e38], np.float32)).tolist() == [0, 15]
    assert numbers.steps(np.array([0.0, -1e38], np.float32)).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("low", "high", "scale", "expected"),
    [
        (-INF, INF, None, (-UNBOUNDED_SCALE, UNBOUNDED_SCALE)),
        (-3.4e38, 3.4e38, 5.0, (-5.0, 5.0)),  # CartPole's way to say that there is no bound
        (1.0, INF, 2.0, (1.0, 5.0)),
        (-INF, 1.0, 2.0, (-3.0, 1.0)),
        (-4.8, 4.8, None, (-4.8, 4.8)),
        (-4.8, 4.8, 2.4, (-2.4, 2.4)),
        (0.0, 4.8, 2.4, (0.0, 2.4)),
        (0.0, 4.8, 9.0, (0.0, 4.8)),
        (2.0, 2.0, None, (2.0, 3.0)),
    ],
)
def test_intervals_of_bounds_and_scales(low, high, scale, expected):
    assert interval("x", low, high, scale) == expected


def test_a_scale_beside_the_bounds_is_refused():
    with pytest.raises(ValueError, match=r"`scales\['x'\]` must let \[-scale, scale\] meet the bounds \[5, 9\], got 2"):
        interval("x", 5.0, 9.0, 2.0)


def test_positions_rise_with_the_number_and_xla_agrees():
    names, low, high = list("abcd"), [-INF, 0.0, -INF, -1.0], [INF, INF, 5.0, 2.0]
    numbers = Intervals(names, low, high, 1024, 128, {"a": 0.7})
    rng = np.random.default_rng(0)
    drawn = np.concatenate([rng.normal(size=5_000), rng.standard_cauchy(5_000) * 100, [1e38, -1e38]])
    line = np.sort(drawn).astype(np.float32)
    steps = np.stack([numbers.steps(np.repeat(x, 4)) for x in line])
    assert (np.diff(steps, axis=0) >= 0).all()
    assert (steps >= 0).all()
    assert (steps < numbers.n_positions).all()
    assert len(set(steps[:, 0])) > 1_000  # beyond the interval too
    found = jax.jit(jax.vmap(lambda x: numbers.steps(x, jnp)))(np.repeat(line[:, None], 4, axis=1))
    np.testing.assert_array_equal(found, steps)


def test_number_at_is_where_a_step_begins():
    numbers = Intervals(["a", "b"], [-INF, -1.0], [INF, 2.0], 64, 8, {})
    for d, n in enumerate(numbers.n_positions):
        starts = [numbers.number_at(d, step) for step in range(n)]
        assert starts == sorted(starts)
        for step, start in enumerate(starts[1:], 1):
            for number, expected in ((start + 1e-3, step), (start - 1e-3, step - 1)):
                assert numbers.steps(np.full(2, number, np.float32))[d] == expected
    assert (numbers.number_at(0, 0), numbers.number_at(0, 80)) == (-INF, INF)
