"""How large rewards are where nobody declares it: a bound that is learnt from them, for a learner that wants returns
within [-1, 1].

What a learner holds in an edge is a discounted return, so it is that which has to be bounded, not the single reward. A
trace z <- gamma z + r of the rewards of an episode is as large as the returns that they make up. Its peak |z| (or that
of |r|) sets the bound, and fades slowly, so that the disasters of a beginner do not make everything after them small.

The bound is a power of two and moves only when the peak leaves (bound / 8, bound]; all weights have then to be
multiplied by one factor, which happens rarely, and a power of two rounds none of them.

Source: ours. The need is that of Pop-Art (van Hasselt et al. 2016, "Learning values across many orders of magnitude"):
when the scale of targets moves, what was learnt must keep its meaning.
Differs from it: a bound instead of mean and deviation, since returns of 0 must stay 0 where gains and losses are apart.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

SHRINK = 8.0  # the bound is lowered when the peak has faded to this part of it
HALF_LIFE_STEPS = 2_000.0  # after which a peak has faded to half, unless it is met again
LEAST, MOST = 2.0**-60, 2.0**60  # bounds stay far from the ends of float32


class RewardScale(NamedTuple):
    """State of the scale between two steps: floats, or [] f32 within compiled code; small enough to save and to carry.

    Attributes:
        bound: what a reward is divided by before it is learnt, a power of two.
        peak: largest |return| or |reward| met, faded; 0 until the first reward that is not 0.
        trace: discounted sum of the rewards of the episode so far.
    """

    bound: Any
    peak: Any
    trace: Any


def initial(bound: float = 1.0) -> RewardScale:
    """Nothing is known; `bound` is only what rewards of 0 are divided by."""
    return RewardScale(bound, 0.0, 0.0)


def update(
    scale: RewardScale, reward: float, *, is_end: bool, gamma: float, half_life: float = HALF_LIFE_STEPS
) -> tuple[RewardScale, float]:
    """Take in the reward of one step, before it is learnt.

    Divide the reward by `bound` of the state that is returned, after `rescaled` has multiplied the weights.

    Args:
        scale: state so far.
        reward: in the environment's unit, finite.
        is_end: the encounter or the episode ended with this step: what follows has no part in its return.
        gamma: discount per step of the learner, in [0, 1].
        half_life: steps after which a peak has faded to half, > 0.

    Returns:
        (state, old bound / new bound). The factor is 1 unless the bound has moved, and also at the first reward that is
        not 0: no weight has learnt from a reward before, and initial optimism is meant in units of the bound.
    """
    trace = gamma * scale.trace + reward
    peak = min(max(scale.peak * 0.5 ** (1.0 / half_life), abs(trace), abs(reward)), MOST)
    ended = 0.0 if is_end else trace
    if peak < LEAST or (scale.peak > 0 and scale.bound / SHRINK < peak <= scale.bound):
        return RewardScale(scale.bound, peak, ended), 1.0
    mantissa, exponent = math.frexp(peak)  # peak = mantissa 2^exponent, mantissa in [.5, 1)
    bound = math.ldexp(mantissa if mantissa == 0.5 else 1.0, exponent)
    return RewardScale(bound, peak, ended), scale.bound / bound if scale.peak > 0 else 1.0


def pure_update(
    scale: RewardScale, reward: Any, *, is_end: Any, gamma: Any, half_life: float = HALF_LIFE_STEPS
) -> tuple[RewardScale, Any]:
    """`update` as a pure function of JAX arrays, all [] f32 (`is_end` bool).

    It agrees with `update` to the rounding of float32; a learner that has to agree with itself byte for byte, step by
    step and in a scan, uses this one for both.
    """
    import jax.numpy as jnp

    trace = jnp.asarray(gamma, jnp.float32) * scale.trace + reward
    fading = np.float32(0.5 ** (1.0 / half_life))
    peak = jnp.maximum(scale.peak * fading, jnp.maximum(jnp.abs(trace), jnp.abs(reward)))
    peak = jnp.minimum(peak, np.float32(MOST))
    is_first = scale.peak == 0
    is_kept = (peak <= scale.bound) & (peak > scale.bound * np.float32(1 / SHRINK)) & ~is_first
    mantissa, exponent = jnp.frexp(peak)
    least_above = jnp.ldexp(jnp.where(mantissa == 0.5, np.float32(0.5), np.float32(1)), exponent)
    bound = jnp.where(is_kept | (peak < np.float32(LEAST)), scale.bound, least_above)
    factor = jnp.where(is_first, np.float32(1), scale.bound / bound)
    return RewardScale(bound, peak, jnp.where(is_end, np.float32(0), trace)), factor


def rescaled(weights: Any, factor: Any, initial_weights: Any, prior_share: Any) -> Any:
    """Weights in the new unit, for those in the old one.

    A weight is part prior and part learnt: the Kalman rule leaves of the initial weight the share variance / initial
    variance. What was learnt is in the environment's unit and is multiplied by the factor; the prior is in units of the
    bound, whatever that is, and stays, so that what has never been tried is as promising as before:

        w' = factor w + (1 - factor) prior_share w_0.

    Args:
        weights: learnt net strengths w, of any shape.
        factor: [] of `update`.
        initial_weights: w_0, e.g. optimism; broadcast to `weights`.
        prior_share: in [0, 1], 1 where nothing was learnt, 0 where the prior is forgotten; broadcast to `weights`.
    """
    return factor * weights + (1 - factor) * prior_share * initial_weights
