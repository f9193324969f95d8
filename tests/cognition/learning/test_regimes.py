"""Rules that come back are recalled, and what was known of them is as it was."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import structure as structures
from habitus.cognition.learning import regimes, resting, rewards

N_STEPS, REST = 1_500, resting.REST  # of each phase
PAYS = ((0.6, -0.4), (-0.4, 0.6))  # of two actions under rules A and B: what was right becomes wrong


def shape_of(n_regimes):
    """One node, the bias; two actions; nothing follows."""
    config = cognition.Config(gamma=0.0, average_reward=False, prototypes=0, regimes=n_regimes, ledger_capacity=1)
    return config, cognition.Structure(
        1, 1, (0, 1), (1.0, 1.0), (False, False), **{**structures.switches(config), "feedback_slots": 1}
    )


def life(n_regimes, order=(0, 0, 1, 1, 0), seed=0):
    """Per rest: State of a learner that acts greedily under the rules in `order`, stacked; [rests, ...]."""
    config, shape = shape_of(n_regimes)
    params = cognition.params_of(config, cognition.Style())
    start = cognition.initial_state(cognition.initial_edges(shape, np.full(1, 0.05, np.float32)), shape)
    nothing, none = jnp.full(1, -1, jnp.int32), jnp.int32(-1)
    seen = start.situation._replace(activation=jnp.ones(1, jnp.float32))

    def step(state, given):
        rules, luck, words = given
        reward = jnp.asarray(PAYS, jnp.float32)[rules, state.action] + luck
        told = cognition.Experience(
            state.action, reward, jnp.asarray(True), none, nothing, jnp.zeros(1, jnp.float32), none, jnp.float32(0),
            jnp.zeros(0, jnp.int32), seen,
        )  # fmt: skip
        return cognition.step(state, told, words, shape, params), None

    def block(state, given):
        state, _ = jax.lax.scan(step, state, given)
        rested = resting.rest(state, state.step, jax.random.key(0), shape, params)
        return rested, rested

    rng, n = np.random.default_rng(seed), len(order) * N_STEPS
    rules = np.repeat(np.array(order, np.int32), N_STEPS)
    luck = rng.normal(0, 0.2, n).astype(np.float32)
    words = rng.integers(0, 2**32, (n, 2), np.uint32)
    blocks = jax.tree.map(lambda x: x.reshape(-1, REST, *x.shape[1:]), (rules, luck, words))
    state = cognition.begin(start, seen, jnp.asarray(words[0]), shape, params)
    return jax.jit(lambda state, blocks: jax.lax.scan(block, state, blocks))(state, blocks)[1]


@pytest.fixture(scope="module")
def lived():
    return life(3)


B, AGAIN = 2 * N_STEPS // REST, 4 * N_STEPS // REST  # rests before the rules change, and change back


def test_new_rules_open_a_regime_of_their_own(lived):
    active = np.asarray(lived.regimes.active)
    assert (active[:B] == 0).all()
    assert (active[B + 6 : AGAIN] == 1).all()
    assert lived.regimes.is_met[-1].tolist() == [True, True, False]


def test_rules_that_come_back_are_recalled_within_a_few_hundred_steps(lived):
    active, net = np.asarray(lived.regimes.active), np.asarray(lived.edges.net)
    assert (active[AGAIN + 4 :] == 0).all()
    # gain of actions 0 and 1, then loss of both: as they were learnt under A
    values = net[:, :2] - net[:, 2:]
    assert abs(values[AGAIN + 4, 0] - PAYS[0][0]) < 0.1


def test_what_is_kept_of_a_regime_is_untouched_while_another_is_on(lived):
    kept, active = np.asarray(lived.regimes.net)[:, 0], np.asarray(lived.regimes.active)
    others = active == 1
    assert others.sum() > 10
    assert (kept[others] == kept[others][0]).all()
    values = kept[others][0][:2] - kept[others][0][2:]
    assert abs(values[0] - PAYS[0][0]) < 0.1  # of its last calm time: the first steps under B have not spoilt it
    assert np.abs(np.diff(kept[:B], axis=0)).max() > 0  # and while it was on it was learnt


def test_with_one_regime_what_was_known_is_learnt_anew():
    """The control: without regimes what was known of A is gone when its rules come back."""
    alone = life(1)
    assert alone.regimes.net.shape[1] == 0
    net, variance = np.asarray(alone.edges.net), np.asarray(alone.edges.variance)
    values = net[:, :2] - net[:, 2:]
    assert values[B - 1, 0] > 0.5
    assert values[AGAIN - 1, 0] < 0.0
    assert variance[AGAIN : AGAIN + 6].max() == pytest.approx(0.05)  # re-opened


EDGES = cognition.initial_edges(shape_of(3)[1], np.ones(1, np.float32))
FALLEN = rewards.initial_rewards()._replace(slow=jnp.float32(0.5), spread=jnp.float32(0.1))  # and fast 0
NOW = 9_000


def turned(fall=True, **what):
    """(regimes, edges, rewards) after a rest at step NOW; all three met and the first on, unless said otherwise."""
    config, shape = shape_of(3)
    known = regimes.initial_regimes(EDGES, shape)._replace(
        net=jnp.arange(12, dtype=jnp.float32).reshape(3, 4) / 12,
        level=jnp.array([0.5, 0.3, 0.2], jnp.float32),
        is_met=jnp.ones(3, bool),
        last_on=jnp.array([8_900, 3_000, 6_000], jnp.int32),
    )
    paid = FALLEN if fall else FALLEN._replace(slow=jnp.float32(0.0))
    params = cognition.params_of(config, cognition.Style())
    edges = dataclasses.replace(EDGES, net=jnp.full(4, 0.9, jnp.float32), variance=EDGES.variance * 0.1)
    return regimes.turned(known._replace(**what), edges, paid, jnp.int32(NOW), EDGES.variance, params)


def test_at_an_alarm_the_one_that_was_on_most_lately_is_recalled_with_its_level():
    kept, edges, paid = turned()
    assert int(kept.active) == 2
    np.testing.assert_array_equal(edges.net, kept.net[2])
    assert float(paid.slow) == float(paid.fast) == pytest.approx(0.2)
    assert int(kept.calm_until) == NOW + regimes.TRIAL


def test_one_that_was_tried_in_vain_gives_way_to_the_next_and_at_last_to_a_new_one():
    trying = dict(active=jnp.int32(2), settles_at=jnp.int32(NOW + 500), last_on=jnp.array([8_700, 3_000, 8_900]))
    kept, _, _ = turned(is_tried=jnp.array([True, False, True]), **trying)
    assert int(kept.active) == 1
    kept, edges, _ = turned(is_tried=jnp.array([True, True, True]), **trying)
    assert int(kept.active) == 1  # longest not on: a new one in its place,
    np.testing.assert_allclose(edges.net, 0.9)  # with what is known now
    np.testing.assert_allclose(kept.net[1], 0.9)
    np.testing.assert_allclose(edges.variance, EDGES.variance)  # and re-opened


def test_a_new_regime_takes_an_empty_place_first():
    kept, _, paid = turned(is_met=jnp.array([True, False, False]), last_on=jnp.array([8_900, 0, 0]))
    assert int(kept.active) == 1
    assert kept.is_met.tolist() == [True, True, False]
    assert int(paid.since) == 0  # exploration starts anew


def test_without_an_alarm_or_within_its_pause_nothing_turns():
    for what in (dict(fall=False), dict(calm_until=jnp.int32(NOW + 1))):
        kept, edges, _ = turned(**what)
        assert int(kept.active) == 0
        np.testing.assert_allclose(edges.net, 0.9)


def test_the_regime_at_hand_is_kept_in_calm_times_only():
    calm, _, _ = turned(fall=False)
    np.testing.assert_allclose(calm.net[0], 0.9)
    for what in (dict(fall=True, calm_until=jnp.int32(NOW + 1)), dict(fall=False, settles_at=jnp.int32(NOW + 1))):
        kept, _, _ = turned(**what)
        np.testing.assert_allclose(kept.net[0], np.arange(4) / 12)
