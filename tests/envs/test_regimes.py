import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import regimes


def levels(regime, horizon, shift_at=None):
    """Level at each step of an episode."""
    plan = regimes.schedule(regime, horizon, shift_at)
    return [int(regimes.level_at(jnp.asarray(plan.steps), jnp.asarray(plan.levels), step)) for step in range(horizon)]


def test_without_a_regime_the_first_rules_hold_throughout():
    assert levels("none", 7) == [0] * 7


def test_a_shift_comes_by_default_at_half_of_the_horizon():
    assert levels("shift", 10) == [0] * 5 + [10] * 5
    assert levels("regulation", 10) == levels("shift", 10)


def test_shift_at_is_the_first_step_under_the_second_rules():
    assert levels("shift", 6, 2) == [0, 0, 10, 10, 10, 10]
    assert levels("shift", 3, 0) == [10, 10, 10]


def test_periodic_rules_take_turns():
    assert levels("periodic", 10, 3) == [0, 0, 0, 10, 10, 10, 0, 0, 0, 10]
    assert levels("periodic", 10) == [0, 0, 10, 10, 0, 0, 10, 10, 0, 0]
    assert levels("periodic", 3) == [0, 10, 0]  # a fifth of 3 is less than a step


def test_drift_rises_in_ten_equal_parts_and_stays():
    # start 10, ramp 3/4 of 40 = 30 steps, so one tenth every 3 steps
    assert levels("drift", 50)[10:41] == [tenth for tenth in range(10) for _ in range(3)] + [10]
    assert set(levels("drift", 50)[40:]) == {10}


def test_a_listed_schedule_holds_each_level_until_the_next_entry():
    assert levels([(2, 0.5), (4, "base"), (5, "regulation")], 7) == [0, 0, 5, 5, 0, 10, 10]
    assert levels([[0, 1.0]], 2) == [10, 10]


def test_schedules_of_common_regimes_have_one_shape():
    assert len({regimes.schedule(regime, 2000).steps.shape for regime in regimes.REGIMES}) == 1


def test_long_schedules_are_padded_to_a_power_of_two():
    assert regimes.schedule("periodic", 1000, 10).steps.shape == (128,)


@pytest.mark.parametrize("level", range(regimes.LEVELS + 1))
def test_interpolation_is_exact_at_both_ends_and_monotone_between(level):
    base, other = jnp.array([700, -500, 3]), jnp.array([-500, 900, 3])
    value = np.asarray(regimes.interpolated(base, other, jnp.int32(level)))
    exact = np.asarray(base) + (np.asarray(other) - np.asarray(base)) * level / 10
    np.testing.assert_allclose(value, exact, atol=1)
    if level in (0, 10):
        np.testing.assert_array_equal(value, exact)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("never", 10), r"`regime` must be one of .*got 'never'"),
        ((None, 10), r"`regime` must be one of .* or a list of \(step, level\), got None"),
        (([], 10), r"`regime` must be one of .* or a list"),
        (([(0, 1.0), 5], 10), r"`regime\[1\]` must be a pair"),
        (([(3, 1.0), (3, 0.0)], 10), r"`regime\[1\] step` must be greater than the one before, 3, got 3"),
        (([(-1, 1.0)], 10), r"`regime\[0\] step` must lie in \[0, .*got -1"),
        (([(1.5, 1.0)], 10), r"`regime\[0\] step` must be a whole number, got 1.5 of type float"),
        (([(0, 0.25)], 10), r"`regime\[0\] level` must be a multiple of 0.1, got 0.25"),
        (([(0, 1.1)], 10), r"`regime\[0\] level` must lie in \[0, 1\], got 1.1"),
        (([(0, "law")], 10), r"`regime\[0\] level` must be one of \('base', 'regulation'\), got 'law'"),
        (("none", 10, 3), r"`shift_at` must be None when `regime` is 'none', got 3"),
        (([(0, 1.0)], 10, 3), r"`shift_at` must be None when `regime` is a list, got 3"),
        (("shift", 10, 10), r"`shift_at` must lie in \[0, 9\], got 10"),
        (("shift", 10, -1), r"`shift_at` must lie in \[0, 9\], got -1"),
        (("periodic", 10, 0), r"`shift_at` must lie in \[1, 9\], got 0"),
        (("shift", 10, 2.0), r"`shift_at` must be a whole number, got 2.0 of type float"),
        (("shift", 10, True), r"`shift_at` must be a whole number, got True of type bool"),
    ],
)
def test_a_wrong_schedule_is_refused_by_name(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        regimes.schedule(*arguments)


@pytest.mark.parametrize("regime", ["shift", "periodic", "drift"])
@pytest.mark.parametrize("horizon", [np.uint8(200), np.int16(30_000)])
def test_a_horizon_of_few_bits_gives_the_same_schedule(regime, horizon):
    plan, same = regimes.schedule(regime, horizon), regimes.schedule(regime, int(horizon))
    assert plan.steps.tolist() == same.steps.tolist()
    assert plan.levels.tolist() == same.levels.tolist()
