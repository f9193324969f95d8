"""The learner that measures worlds: its rule by hand, what it may know, and that freezing stops it."""

import gymnasium
import habitus  # noqa: F401 - registers the worlds
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import contract, rollout
from habitus.experiments.reference_learner import HIDDEN_TYPES, reference_learner


@pytest.fixture(scope="module")
def credit():
    return gymnasium.make("habitus/CreditReview-v0", horizon=1000).unwrapped


def seen_of(world, observation, action, reward, boundary):
    outcome = contract.Outcome(
        reward=jnp.float32(reward),
        terminated=jnp.bool_(False),
        boundary=jnp.bool_(boundary),
        decision_id=jnp.int32(contract.NO_DECISION),
        feedback_id=jnp.zeros(0, jnp.int32),
        feedback_value=jnp.zeros(0, jnp.float32),
        signals={},
    )
    return contract.Seen(
        observation, jnp.int32(action), outcome, observation, jnp.int32(0), jnp.int32(0), jnp.ones(5, bool)
    )


def test_the_first_lesson_by_hand(credit):
    world, params = credit.world, credit.params
    learner = reference_learner(world).told(world, params)
    key = jax.random.key(0)
    state = world.initial(key, params)
    observation = world.observe(state, key, params)
    turn = rollout.Turn(observation, jnp.ones(5, bool), jnp.int32(0), jnp.int32(0), key, state)
    action, memory = learner.act(learner.initial(observation, key), turn)
    assert float(jnp.abs(memory.weights).max()) == 0  # nothing to learn from yet
    memory = learner.learn(memory, seen_of(world, observation, int(action), 1.5, True))
    _, memory = learner.act(memory, turn)
    # reward .2 x 1.5 = .3; average .3 / 20 = .015, the cost of time; an encounter ended, so no next value: error .285.
    # P fields and the label that is always there, each of variance .015: gain .015 / (.3 + (P + 1) .015).
    n_active = len(world.schema.fields)  # one of them, the applicant, is not seen, and one label is always there
    gain = 0.015 / (0.3 + n_active * 0.015)
    learnt = np.asarray(memory.weights[memory.weights != 0])
    assert learnt == pytest.approx(np.full(n_active, gain * 0.285), rel=1e-5)
    surer = np.asarray(memory.variances)[np.asarray(memory.weights) != 0]
    assert surer == pytest.approx(np.full(n_active, 0.015 * (1 - gain)), rel=1e-5)


def test_a_next_value_counts_within_an_encounter_only(credit):
    world, params = credit.world, credit.params
    learner = reference_learner(world).told(world, params)
    key = jax.random.key(0)
    state = world.initial(key, params)
    observation = world.observe(state, key, params)
    turn = rollout.Turn(observation, jnp.ones(5, bool), jnp.int32(0), jnp.int32(0), key, state)
    _, memory = learner.act(learner.initial(observation, key), turn)
    memory = memory._replace(weights=jnp.full_like(memory.weights, 0.1))
    value = 0.1 * len(world.schema.fields)
    within, closed = (
        learner.act(learner.learn(memory, seen_of(world, observation, 0, 0.0, boundary)), turn)[1].weights
        for boundary in (False, True)
    )
    gain = 0.015 / (0.3 + len(world.schema.fields) * 0.015)
    assert float(within.max() - 0.1) <= 1e-6
    assert float((within - 0.1).min()) == pytest.approx(gain * (0.9 * value - value), rel=1e-4)
    assert float((closed - 0.1).min()) == pytest.approx(gain * (0.0 - value), rel=1e-4)


@pytest.mark.slow
def test_a_frozen_learner_keeps_the_weights_of_that_step(credit):
    key_data = rollout.seeds_to_key_data([3, 4])
    run = {
        n_steps: rollout.rollout(
            credit.world, reference_learner(credit.world, "type", freeze_at=freeze_at), key_data, n_steps=n_steps
        )
        for n_steps, freeze_at in ((201, 200), (400, 200))
    }
    frozen, whole = run[400].carry, run[201].carry
    assert np.array_equal(frozen.weights, whole.weights)
    assert float(jnp.abs(frozen.weights).max()) > 0
    goes_on = rollout.rollout(credit.world, reference_learner(credit.world, "type"), key_data, n_steps=400).carry
    assert not np.array_equal(goes_on.weights, frozen.weights)


def test_the_type_of_an_applicant_is_a_quintile(credit):
    code = HIDDEN_TYPES["CreditReview"].code
    effects = [-5000, -1683, -1000, 0, 600, 9000]
    codes = [int(code({"applicant": jnp.int32(1), "effect": jnp.int32(effect)})) for effect in effects]
    assert codes == [1, 1, 2, 3, 4, 5]
    assert int(code({"applicant": jnp.int32(0), "effect": jnp.int32(9000)})) == 0  # a new one: nobody knows


def test_it_says_what_it_cannot_know(credit):
    with pytest.raises(ValueError, match="`knows` must be one of nothing, entity, type, got 'everything'"):
        reference_learner(credit.world, "everything")
    hidden = gymnasium.make("habitus/CreditReview-v0", observe_entity=False).unwrapped.world
    with pytest.raises(ValueError, match="hides it"):
        reference_learner(hidden, "entity")
