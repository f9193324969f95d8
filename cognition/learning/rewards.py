"""What rewards are usual, and whether they have turned: the cost of time, and the alarm that rules have changed.

    mean  <- mean + max(1 / (n + 20), 1 / MEAN_STEPS) (r - mean),        time costs max(0, mean) a step
    alarm    |slow - fast| > detector sqrt(spread / FAST_SAMPLE)         of averages over FAST_STEPS and SLOW_STEPS

The mean is charged only while it is positive: a beginner's losses would otherwise be a reward for losing time.

Sources: Mahadevan (1996), "Average reward reinforcement learning", for the first; Page (1954), "Continuous inspection
schemes", for the idea of the second. Constants: measured ranges in `cognition/README.md`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array

MEAN_STEPS, FAST_STEPS, SLOW_STEPS = 2000.0, 300.0, 3000.0
FIRST_STEPS = 20.0
FAST_SAMPLE = 500.0
"""Independent rewards that make up the fast average, about."""
LEAST_DEVIATION = 1e-6
"""Keeps constant rewards from dividing by 0."""
CALM_STEPS = 1500
"""Steps after a start or an alarm in which there is no other."""


class Rewards(NamedTuple):
    """Statistics of rewards, in units of the reward bound; [] f32 each, but for the numbers of steps, [] i32.

    Attributes:
        mean: average over MEAN_STEPS.
        fast, slow: averages over FAST_STEPS and SLOW_STEPS.
        spread: variance of single rewards around the slow average.
        n: steps that the averages have seen, counted anew after an alarm.
        since: steps since learning began or began anew.
    """

    mean: Array
    fast: Array
    slow: Array
    spread: Array
    n: Array
    since: Array


def initial_rewards() -> Rewards:
    """Nothing was paid yet."""
    zero, none = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)
    return Rewards(zero, zero, zero, zero, none, none)


def after(rewards: Rewards, reward: Array) -> Rewards:
    """Statistics after one more reward, [] f32."""

    def moved(average: Array, value: Array, n_steps: float) -> Array:
        rate = jnp.maximum(1.0 / (rewards.n.astype(jnp.float32) + FIRST_STEPS), 1.0 / n_steps)
        return average + rate * (value - average)

    slow = moved(rewards.slow, reward, SLOW_STEPS)
    return Rewards(
        mean=moved(rewards.mean, reward, MEAN_STEPS),
        fast=moved(rewards.fast, reward, FAST_STEPS),
        slow=slow,
        spread=moved(rewards.spread, jnp.square(reward - slow), SLOW_STEPS),
        n=rewards.n + 1,
        since=rewards.since + 1,
    )


def cost_of_time(rewards: Rewards) -> Array:
    """[] f32: what a step costs because it takes the place of an average one."""
    return jnp.maximum(rewards.mean, 0.0)


def fall(rewards: Rewards) -> Array:
    """[] f32: by how many standard deviations rewards are lower than they were."""
    deviation = jnp.sqrt(rewards.spread / FAST_SAMPLE)
    return (rewards.slow - rewards.fast) / jnp.maximum(deviation, LEAST_DEVIATION)


def has_turned(rewards: Rewards, detector: Array) -> Array:
    """[] bool: whether rewards are lower or higher than they were, by `detector` standard deviations.

    What was learnt in bad times has to be doubted when they are over.
    """
    return (jnp.abs(fall(rewards)) > detector) & (rewards.since > CALM_STEPS)


def started_anew(rewards: Rewards, changed: Array) -> Rewards:
    """Statistics after an alarm ([] bool): exploration starts anew, and the averages find the new level as at first.

    At the alarm rewards are still falling: averages that kept their pace would raise the next one on the way down.
    """
    return rewards._replace(
        slow=jnp.where(changed, rewards.fast, rewards.slow),
        n=jnp.where(changed, 0, rewards.n),
        since=jnp.where(changed, 0, rewards.since),
    )
