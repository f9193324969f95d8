"""Numbers worked out by hand, laws, and SciPy."""

import numpy as np
import pytest
import scipy.stats
from habitus.experiments import statistics


def test_a_window_score_is_the_sum_over_the_steps_or_over_what_ended():
    score = np.array([[1.0, 2.0, 3.0, 4.0]])
    boundary = np.array([[False, True, True, True]])
    windows = [(0, 2), (2, 4)]
    assert statistics.window_scores(score, boundary, windows, "step").tolist() == [[1.5, 3.5]]
    assert statistics.window_scores(score, boundary, windows, "boundary").tolist() == [[3.0, 3.5]]


def test_a_window_in_which_nothing_ended_has_no_score():
    found = statistics.window_scores(np.ones((1, 2)), np.zeros((1, 2), bool), [(0, 2)], "boundary")
    assert np.isnan(found).all()


def test_a_window_outside_the_steps_is_refused():
    with pytest.raises(ValueError, match=r"`windows` must lie in \[0, 4\], got \(2, 5\)"):
        statistics.window_scores(np.ones((1, 4)), np.ones((1, 4), bool), [(2, 5)], "step")


def test_normalised_random_is_zero_and_oracle_is_one():
    random, oracle = np.array([[1.0], [3.0]]), np.array([[9.0], [11.0]])  # means 2 and 10
    assert statistics.normalise(random, random, oracle).mean() == 0
    assert statistics.normalise(oracle, random, oracle).mean() == 1
    assert statistics.normalise(np.array([[4.0]]), random, oracle).tolist() == [[0.25]]


def test_equal_references_give_no_score():
    assert np.isnan(statistics.normalise(np.ones((2, 1)), np.ones((2, 1)), np.ones((2, 1)))).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 10, 20, 33])
def test_the_interquartile_mean_is_scipys_trimmed_mean(n):
    values = np.random.default_rng(n).normal(size=(3, n))
    np.testing.assert_allclose(statistics.iqm(values), scipy.stats.trim_mean(values, 0.25, axis=-1), rtol=1e-12)


def test_the_interquartile_mean_by_hand():
    # 8 values: the two lowest and the two highest go, (3 + 4 + 5 + 6) / 4 remains
    assert statistics.iqm(np.array([100.0, 3, 4, 5, 6, 1, 2, 7])) == 4.5


def test_an_interval_is_that_of_scipys_bootstrap():
    values = np.random.default_rng(0).normal(size=40)
    ours = statistics.estimate([values], np.random.default_rng(1), statistic=statistics.mean, repetitions=20_000)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(2)
    ).confidence_interval
    # Standard error of a 2.5 % quantile from 20,000 draws: sqrt(.025 * .975 / 20000) / .058 = .019 sd of the mean
    # (sd .15), that is .003; five of them
    assert ours.low == pytest.approx(theirs.low, abs=0.015)
    assert ours.high == pytest.approx(theirs.high, abs=0.015)
    assert ours.point == values.mean()


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    data = np.random.default_rng(3)
    hits = 0
    for trial in range(300):
        found = statistics.estimate(
            [data.normal(size=20)], np.random.default_rng(trial), statistic=statistics.mean, repetitions=400
        )
        hits += found.low <= 0 <= found.high
    # a percentile bootstrap of 20 covers some 93 %; sd of the share is 1.5 %, bounds at four of them
    assert 0.87 <= hits / 300 <= 0.99


def test_the_same_generator_gives_the_same_interval():
    values = np.arange(10.0)
    first, second = (statistics.estimate([values], np.random.default_rng(5)) for _ in range(2))
    assert first == second


def test_resampling_stays_within_its_stratum():
    # two worlds that differ by 100: an unstratified bootstrap of the mean would spread over tens
    strata = [[0.0, 0.1, 0.2, 0.3], [100.0, 100.1, 100.2, 100.3]]
    found = statistics.estimate(strata, np.random.default_rng(0), statistic=statistics.mean)
    assert found.high - found.low < 0.3
    everything = np.concatenate(strata)
    pooled = statistics.estimate([everything], np.random.default_rng(0), statistic=statistics.mean)
    assert pooled.high - pooled.low > 30


def test_one_seed_has_no_interval():
    found = statistics.estimate([[0.4]], np.random.default_rng(0))
    assert (found.point, found.n) == (0.4, 1)
    assert np.isnan([found.low, found.high]).all()


def test_nothing_and_nan_are_refused():
    for wrong in ([], [[]], [[1.0, np.nan]]):
        with pytest.raises(ValueError, match="`strata` must hold finite values, at least one"):
            statistics.estimate(wrong, np.random.default_rng(0))


def test_a_paired_difference_drops_what_is_common_to_a_seed():
    theirs = {seed: 10.0 * seed for seed in range(10)}
    ours = {seed: value + 1.0 for seed, value in theirs.items()} | {99: -1e6}
    found = statistics.paired_difference(ours, theirs, np.random.default_rng(0))
    assert (found.point, found.low, found.high, found.n) == (1.0, 1.0, 1.0, 10)


def test_pairs_need_a_common_seed():
    with pytest.raises(ValueError, match="must share seeds"):
        statistics.paired_difference({1: 0.0}, {2: 0.0}, np.random.default_rng(0))


def test_a_curve_has_its_mean_inside_its_interval():
    values = np.random.default_rng(0).normal(size=(6, 5))
    point, low, high = statistics.curve_interval(values, np.random.default_rng(1))
    np.testing.assert_allclose(point, values.mean(axis=0))
    assert ((low <= point) & (point <= high)).all()
    alone, below, above = statistics.curve_interval(values[:1], np.random.default_rng(1))
    assert (alone == below).all()
    assert (alone == above).all()


@pytest.mark.parametrize(("steps", "n"), [(10, 3), (5, 10), (100, 7), (1, 4)])
def test_bins_cover_every_step_once(steps, n):
    found = statistics.bins(steps, n)
    assert [step for a, b in found for step in range(a, b)] == list(range(steps))
    assert len(found) == min(steps, n)
