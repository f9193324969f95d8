"""The mean is charged as the cost of time, and a fall of rewards is told from chance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition.learning import rewards
from habitus.cognition.learning.resting import REST

DETECTOR = cognition.Config().detector


@jax.jit
def alarms(paid):
    """[steps / REST] bool: whether a rest raises the alarm; it starts the statistics anew."""

    def rest(known, block):
        known = jax.lax.scan(lambda known, y: (rewards.after(known, y), None), known, block)[0]
        fallen = rewards.has_turned(known, jnp.float32(DETECTOR))
        return rewards.started_anew(known, fallen), fallen

    return jax.lax.scan(rest, rewards.initial_rewards(), paid.reshape(-1, REST))[1]


def paid(n_steps, n_seeds, fall=0.0, at=15_000):
    """[seeds, steps]: rewards with mean .3 and deviation .4, lower by `fall` deviations from step `at` on."""
    y = np.random.default_rng(0).normal(0.3, 0.4, (n_seeds, n_steps)).astype(np.float32)
    y[:, at:] -= 0.4 * fall
    return y


def test_the_mean_by_hand():
    known = rewards.initial_rewards()
    for y in (1.0, -0.5):
        known = rewards.after(known, jnp.float32(y))
    # rates 1 / 20 and 1 / 21: .05, then .05 + (-.5 - .05) / 21
    assert float(known.mean) == pytest.approx(0.05 - 0.55 / 21, abs=1e-6)
    assert (int(known.n), int(known.since)) == (2, 2)


def test_the_mean_becomes_that_of_the_latest_two_thousand_steps():
    y = jnp.concatenate([jnp.full(5_000, 1.0), jnp.full(2_000, 0.2)])
    known = jax.lax.scan(lambda known, y: (rewards.after(known, y), None), rewards.initial_rewards(), y)[0]
    assert float(known.mean) == pytest.approx(0.2 + 0.8 * np.exp(-1), abs=0.01)


@pytest.mark.parametrize(("mean", "expected"), [(0.4, 0.4), (0.0, 0.0), (-0.4, 0.0)])
def test_time_costs_what_is_usually_earned_and_never_pays(mean, expected):
    known = rewards.initial_rewards()._replace(mean=jnp.float32(mean))
    assert float(rewards.cost_of_time(known)) == pytest.approx(expected)


def test_a_fall_of_half_a_deviation_is_noticed_within_five_hundred_steps():
    found = np.asarray(jax.vmap(alarms)(paid(20_000, 64, fall=0.5)))
    before, soon = found[:, :150], found[:, 150:156]
    assert not before.any()
    assert soon.any(axis=1).all()
    assert (found[:, 150:165].sum(axis=1) == 1).all()  # one alarm, not one at every rest: calm follows


def test_a_fall_that_chance_could_bring_raises_no_alarm():
    """A tenth of a deviation moves the averages .07 deviations apart at most; the limit is 3.5 / sqrt(500) = .157."""
    assert np.asarray(jax.vmap(alarms)(paid(20_000, 16, fall=0.1))).mean() < 1e-3


def test_nothing_alarms_where_nothing_has_changed():
    """Independent rewards: the averages differ with a deviation of .035, the limit is 4.5 of it. With some 30,000 / 300
    independent looks a life has a false alarm with a probability below 1e-3: of 32 lives none."""
    assert not np.asarray(jax.vmap(alarms)(paid(30_000, 32))).any()


def test_there_is_no_alarm_in_the_first_steps_nor_soon_after_another():
    known = rewards.initial_rewards()._replace(slow=jnp.float32(1.0), spread=jnp.float32(0.1))
    for since, expected in ((rewards.CALM_STEPS, False), (rewards.CALM_STEPS + 1, True)):
        assert bool(rewards.has_turned(known._replace(since=jnp.int32(since)), jnp.float32(3.5))) is expected
    changed = rewards.started_anew(known._replace(since=jnp.int32(9_000)), jnp.asarray(True))
    assert int(changed.since) == 0
    assert float(changed.slow) == float(changed.fast) == 0.0
    same = rewards.started_anew(known, jnp.asarray(False))
    jax.tree.map(np.testing.assert_array_equal, same, known)
