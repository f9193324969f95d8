"""How large rewards are where nobody declares it: the unit in which a learner sees them.

What a learner holds in its edges are returns, and initial optimism is a claim about returns, so the unit has to be one
of them: about what twenty usual rewards come to, or the best that twenty steps have brought where that is more. A rare
disaster does not count: measured in its unit (CliffWalking's -100 among -1) every step costs next to nothing, and an
optimist never comes home. Gains therefore stay within 1 or little above; losses may lie below -1, where they are as bad
as a learner can hold.

The bound is a power of two and moves only when what it stands for leaves (bound / 2.5, bound]; all weights have then to
be multiplied by one factor, which happens rarely, and a power of two rounds none of them.

Source: ours. The need is that of Pop-Art (van Hasselt et al. 2016, "Learning values across many orders of magnitude"):
when the scale of targets moves, what was learnt must keep its meaning.
Differs from it: a bound instead of mean and deviation, since gains and losses are apart and a return of 0 has to stay
0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

REACH = 0.95  # discount per step of what is counted together: 20 steps
USUAL_STEP, FIRST_STEP, FIRST = 1.02, 1.5, 16.0  # factor by which one reward can move what is usual; the first few
SHRINK = 2.5  # the bound is lowered when what it stands for is this part of it
HALF_LIFE_STEPS = 10_000.0  # after which the best return has faded to half, unless it is met again
LEAST, MOST = 2.0**-60, 2.0**60  # bounds stay far from the ends of float32


class RewardScale(NamedTuple):
    """State of the scale between two steps: floats, or [] f32 within compiled code; small enough to save and to carry.

    Attributes:
        bound: what a reward is divided by before it is learnt, a power of two.
        usual: size of a usual reward that is not 0: it follows |reward|, by a bounded factor at a time, and so stays
            near the median; 0 until the first such reward.
        seen: rewards that are not 0 so far, up to `FIRST`.
        number: discounted number of rewards that are not 0, of the episode so far.
        most: largest such number met.
        gain: discounted sum of the rewards of the episode so far.
        best: largest such sum met, faded.
    """

    bound: Any
    usual: Any
    seen: Any
    number: Any
    most: Any
    gain: Any
    best: Any


def initial(bound: float = 1.0) -> RewardScale:
    """Nothing is known; `bound` is only what rewards of 0 are divided by."""
    return RewardScale(bound, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def update(
    scale: RewardScale, reward: float, *, is_end: bool, gamma: float, half_life: float = HALF_LIFE_STEPS
) -> tuple[RewardScale, float]:
    """Take in the reward of one step, before it is learnt.

    Divide the reward by `bound` of the state that is returned, after `rescaled` has multiplied the weights.

    Args:
        scale: state so far.
        reward: in the environment's unit, finite.
        is_end: the encounter or the episode ended with this step: what follows has no part in its return.
        gamma: discount per step of the learner, in [0, 1]; below `REACH` it takes its place.
        half_life: steps after which the best return has faded to half, > 0.

    Returns:
        (state, old bound / new bound). The factor is 1 unless the bound has moved, and also at the first reward that is
        not 0: no weight has learnt from a reward before, and initial optimism is meant in units of the bound.
    """
    discount, size = min(gamma, REACH), min(abs(reward), MOST)
    number = discount * scale.number + (size >= LEAST)
    gain = min(max(discount * scale.gain + reward, -MOST), MOST)
    usual, seen, most = scale.usual, scale.seen, max(scale.most, number)
    best = max(scale.best * 0.5 ** (1.0 / half_life), gain)
    if size >= LEAST:
        step = USUAL_STEP if seen >= FIRST else FIRST_STEP
        usual, seen = min(max(size, usual / step), usual * step) if usual > 0 else size, min(seen + 1.0, FIRST)
    bound, target = scale.bound, max(usual * most, best)
    if target >= LEAST and not (scale.usual > 0 and bound / SHRINK < target <= bound):
        mantissa, exponent = math.frexp(target)  # target = mantissa 2^exponent, mantissa in [.5, 1)
        bound = math.ldexp(mantissa if mantissa == 0.5 else 1.0, exponent)
    factor = scale.bound / bound if scale.usual > 0 else 1.0
    if is_end:
        number, gain = 0.0, 0.0
    return RewardScale(bound, usual, seen, number, most, gain, best), factor


def pure_update(
    scale: RewardScale, reward: Any, *, is_end: Any, gamma: Any, half_life: float = HALF_LIFE_STEPS
) -> tuple[RewardScale, Any]:
    """`update` as a pure function of JAX arrays, all [] f32 (`is_end` bool).

    It agrees with `update` to the rounding of float32; a learner that has to agree with itself byte for byte, step by
    step and in a scan, uses this one for both.
    """
    import jax.numpy as jnp

    discount = jnp.minimum(jnp.asarray(gamma, jnp.float32), np.float32(REACH))
    size = jnp.minimum(jnp.abs(jnp.asarray(reward, jnp.float32)), np.float32(MOST))
    is_reward, is_first = size >= np.float32(LEAST), scale.usual == 0
    number = discount * scale.number + is_reward
    gain = jnp.clip(discount * scale.gain + reward, np.float32(-MOST), np.float32(MOST))
    most = jnp.maximum(scale.most, number)
    best = jnp.maximum(scale.best * np.float32(0.5 ** (1.0 / half_life)), gain)
    step = jnp.where(scale.seen >= FIRST, np.float32(USUAL_STEP), np.float32(FIRST_STEP))
    seen = jnp.minimum(scale.seen + is_reward, np.float32(FIRST))
    moved = jnp.clip(size, scale.usual / step, scale.usual * step)
    usual = jnp.where(is_reward, jnp.where(is_first, size, moved), scale.usual)
    target = jnp.maximum(usual * most, best)
    is_kept = (target <= scale.bound) & (target > scale.bound * np.float32(1 / SHRINK)) & ~is_first
    mantissa, exponent = jnp.frexp(target)
    least_above = jnp.ldexp(jnp.where(mantissa == 0.5, np.float32(0.5), np.float32(1)), exponent)
    bound = jnp.where(is_kept | (target < np.float32(LEAST)), scale.bound, least_above)
    factor = jnp.where(is_first, np.float32(1), scale.bound / bound)
    zero = np.float32(0)
    number, gain = jnp.where(is_end, zero, number), jnp.where(is_end, zero, gain)
    return RewardScale(bound, usual, seen, number, most, gain, best), factor


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
