"""Scores of windows, their normalisation, and how sure one can be of them.

Interquartile mean and stratified bootstrap after Agarwal et al. (2021), "Deep reinforcement learning at the edge of the
statistical precipice". Differs: all randomness comes from a passed generator, so that a report is the same twice.
Throughout, S is a number of seeds, T of steps, W of windows or bins.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Per = Literal["step", "boundary"]
Statistic = Callable[[Floats], Floats]
"""Reduces the last axis."""

REPETITIONS = 2000
LEVEL = 0.95
LEAST_SPAN = 1e-9  # between random and oracle; below it a normalised score has no meaning


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number from n seeds with its interval at `LEVEL`; the bounds are NaN for fewer than two seeds."""

    point: float
    low: float
    high: float
    n: int


def window_scores(
    score: npt.NDArray[np.floating], boundary: npt.NDArray[np.bool_], windows: Sequence[tuple[int, int]], per: Per
) -> Floats:
    """Mean score in each window, per step or per closed encounter.

    Args:
        score: [S, T].
        boundary: [S, T], where an encounter ended.
        windows: W pairs (from, to), 0 <= from < to <= T.
        per: what the mean is taken over.

    Returns:
        [S, W]; NaN where a window saw no encounter end.

    Raises:
        ValueError: a window outside the steps.
    """
    n_steps = score.shape[1]
    if wrong := [window for window in windows if not 0 <= window[0] < window[1] <= n_steps]:
        raise ValueError(f"`windows` must lie in [0, {n_steps}], got {wrong[0]}.")
    sums = np.stack([score[:, a:b].sum(axis=1, dtype=np.float64) for a, b in windows], axis=1)
    if per == "step":
        lengths = np.array([b - a for a, b in windows], np.float64)
        return np.asarray(sums / lengths, np.float64)
    closed = np.stack([boundary[:, a:b].sum(axis=1) for a, b in windows], axis=1).astype(np.float64)
    return np.asarray(np.divide(sums, closed, out=np.full_like(sums, np.nan), where=closed > 0), np.float64)


def normalise(values: Floats, random: Floats, oracle: Floats) -> Floats:
    """(value - random) / (oracle - random), with the means of the references over their seeds.

    Args:
        values: [S, W].
        random: [S', W] scores of the random agent in the same world and windows.
        oracle: [S', W] those of the oracle.

    Returns:
        [S, W]; NaN where the references coincide.
    """
    low, high = _known_mean(random), _known_mean(oracle)
    span = high - low
    scaled = (values - low) / np.where(span == 0, 1.0, span)
    return np.asarray(np.where(np.abs(span) > LEAST_SPAN, scaled, np.nan), np.float64)


def _known_mean(values: Floats) -> Floats:
    """[W] mean over the seeds that saw an encounter end; NaN where none did."""
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    nothing = np.full(values.shape[1], np.nan)
    return np.asarray(np.divide(sums, counts, out=nothing, where=counts > 0), np.float64)


def mean(values: Floats) -> Floats:
    """Mean over the last axis."""
    return np.asarray(np.mean(values, axis=-1), np.float64)


def iqm(values: Floats) -> Floats:
    """Interquartile mean over the last axis: the mean without the lowest and highest quarter, each rounded down.

    Equals `scipy.stats.trim_mean(values, 0.25, axis=-1)`.
    """
    n = values.shape[-1]
    cut = n // 4
    return np.asarray(np.sort(values, axis=-1)[..., cut : n - cut].mean(axis=-1), np.float64)


def estimate(
    strata: Sequence[npt.ArrayLike],
    rng: np.random.Generator,
    *,
    statistic: Statistic = iqm,
    repetitions: int = REPETITIONS,
    level: float = LEVEL,
) -> Estimate:
    """A statistic of all values and its percentile bootstrap interval, resampled within each stratum.

    Args:
        strata: one [S_i] array per world; a single one gives the ordinary bootstrap over seeds.
        rng: source of the resampling.
        statistic: what is estimated.
        repetitions: resamples.
        level: coverage of the interval.

    Raises:
        ValueError: no value at all, or a NaN; leave out the seeds that have no value.
    """
    arrays = [np.asarray(stratum, np.float64) for stratum in strata]
    everything = np.concatenate(arrays) if arrays else np.empty(0)
    if everything.size == 0 or not np.isfinite(everything).all():
        raise ValueError(f"`strata` must hold finite values, at least one, got {everything.tolist()}.")
    point = float(statistic(everything))
    if all(len(array) < 2 for array in arrays):
        return Estimate(point, np.nan, np.nan, everything.size)
    resampled = [array[rng.integers(len(array), size=(repetitions, len(array)))] for array in arrays]
    draws = statistic(np.concatenate(resampled, axis=1))
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(point, float(low), float(high), everything.size)


def paired_difference(
    ours: Mapping[int, float], theirs: Mapping[int, float], rng: np.random.Generator, *, statistic: Statistic = mean
) -> Estimate:
    """Difference ours - theirs on the seeds that both have; what a seed makes easy or hard for both drops out.

    Args:
        ours: value per seed.
        theirs: value per seed.
        rng: source of the resampling.
        statistic: of the differences.

    Raises:
        ValueError: no common seed.
    """
    common = sorted(set(ours) & set(theirs))
    if not common:
        raise ValueError(f"`ours` and `theirs` must share seeds, got {sorted(ours)} and {sorted(theirs)}.")
    return estimate([[ours[seed] - theirs[seed] for seed in common]], rng, statistic=statistic)


def curve_interval(
    values: Floats, rng: np.random.Generator, *, statistic: Statistic = mean, repetitions: int = REPETITIONS
) -> tuple[Floats, Floats, Floats]:
    """A learning curve and its pointwise interval over seeds.

    Args:
        values: [S, W] score of each seed in each bin.
        rng: source of the resampling; a resample takes whole curves.
        statistic: over the seeds.
        repetitions: resamples.

    Returns:
        ([W] point, [W] low, [W] high); the bounds equal the point for a single seed.
    """
    point = statistic(values.T)
    n = len(values)
    if n < 2:
        return point, point, point
    draws = statistic(np.moveaxis(values[rng.integers(n, size=(repetitions, n))], 1, -1))  # [R, W]
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return point, low, high


def bins(n_steps: int, n_bins: int) -> list[tuple[int, int]]:
    """Contiguous windows of nearly equal length that cover all steps; at most one per step."""
    edges = np.unique(np.linspace(0, n_steps, min(n_bins, n_steps) + 1).round().astype(int))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
