"""Both executors of CreditReview's dynamics, and worlds of one capacity that share compiled code."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import envs
from habitus.envs import contract, draws
from habitus.envs.arithmetic import ARRAYS, INTEGERS, as_integers
from habitus.envs.credit_review import loans, table_params
from habitus.envs.credit_review.terms import REJECT, REQUEST_DOCUMENT

N_STEPS, N_ACTIONS = 800, 5
SYNTHETIC = {
    "drifting rules": {"regime": "drift", "feedback": "stream"},
    "drifting effects": {"difficulty": "hard", "observe_group": True},
    "spare capacity": {"difficulty": "easy", "capacity": 50, "regime": "shift", "observe_entity": False},
}
TABLES = {
    "table under drifting rules": {"regime": "drift", "feedback": "stream", "observe_group": True},
    "table with odd rates": {"loss": 2.137, "reduced": 0.333, "review_reliability": 0.777, "hide_probability": 0.9},
}


def by_arrays(world, params, key_data, actions):
    """Everything of a run of compiled steps, [N_STEPS, ...] a leaf."""

    def run(key_data, actions, params):
        initial_key, steps_key = jax.random.split(jax.random.wrap_key_data(key_data))
        halves = draws.halves(steps_key, (N_STEPS, world.n_step_halves)).astype(jnp.int32)
        initial = world.initial(initial_key, params)

        def step(state, inputs):
            action, halves = inputs
            state, outcome = world.advance(state, action, halves, params, ARRAYS)
            return state, (outcome, world.show(state, (), params, ARRAYS), world.action_mask(state, params), state)

        return initial, halves, jax.lax.scan(step, initial, (actions, halves))[1]

    return jax.tree.map(np.asarray, jax.jit(run)(key_data, actions, params))


@pytest.mark.parametrize("name", [*SYNTHETIC, *TABLES])
def test_arrays_and_integers_agree_bit_by_bit(name, toy_table):
    applicants = toy_table() if name in TABLES else "synthetic"
    env = envs.CreditReviewEnv(applicants, horizon=N_STEPS, **(SYNTHETIC | TABLES)[name])
    world = env.world
    assert isinstance(world, contract.IntegerWorld)
    actions = np.random.default_rng(5).integers(N_ACTIONS, size=N_STEPS, dtype=np.int32)
    initial, halves, (outcomes, shown, masks, states) = by_arrays(world, env.params, np.uint32([1, 2]), actions)
    state, params = as_integers(initial), as_integers(env.params)
    n_feedback = 0
    for step, (action, chosen) in enumerate(zip(actions.tolist(), halves.tolist(), strict=True)):
        state, outcome = world.advance(state, action, chosen, params, INTEGERS)
        mask = world.mask(state, params, INTEGERS)
        now = outcome, world.show(state, (), params, INTEGERS), mask, state if step % 50 == 0 else None
        expected = outcomes, shown, masks, states if step % 50 == 0 else None
        assert now == jax.tree.map(lambda leaf, step=step: leaf[step].tolist(), expected)
        n_feedback += sum(decision != contract.NO_DECISION for decision in outcome.feedback_id)
        assert type(outcome.boundary) is bool
        assert type(outcome.reward) is float
    assert n_feedback > N_STEPS / 4
    assert len({value for code in shown.values() for value in code.tolist()}) > 3


def test_every_reward_keeps_the_bits_of_a_division():
    # what `money` pays must not differ from the compiled quotient with which results were published
    quotient = jax.jit(lambda money, unit: money.astype(jnp.float32) / jnp.float32(unit), static_argnums=1)
    largest = 4 * (loans.LARGEST_LOSS + loans.REVIEW_FEE)
    near = jnp.arange(-largest, largest + 1, dtype=jnp.int32)
    wide = jnp.asarray(np.random.default_rng(0).integers(-(2**31), 2**31, 4_000_000).astype(np.int32))
    for unit, money in ((loans.MONEY, near), (table_params.STAKE_UNIT, near), (table_params.MONEY, wide)):
        expected = np.asarray(quotient(money, unit))
        np.testing.assert_array_equal(np.asarray(ARRAYS.money(money, unit)).view(np.int32), expected.view(np.int32))
        some = np.random.default_rng(1).integers(len(money), size=2000)
        found = np.array([INTEGERS.money(int(money[i]), unit) for i in some], np.float32)
        np.testing.assert_array_equal(found.view(np.int32), expected[some].view(np.int32))
    assert (np.asarray(near) / np.float64(loans.MONEY) != np.asarray(quotient(near, loans.MONEY))).any()


@functools.cache
def common(difficulty):
    return envs.CreditReviewEnv(difficulty=difficulty, capacity=240)


def test_worlds_of_one_capacity_are_equal_and_the_preset_is_a_parameter():
    worlds = [common(difficulty).world for difficulty in ("easy", "medium", "hard")]
    assert len(set(worlds)) == 1
    assert envs.CreditReviewEnv().world == envs.CreditReviewEnv(capacity=80).world != worlds[0]
    assert [int(common(difficulty).params.n_applicants) for difficulty in ("easy", "medium", "hard")] == [30, 80, 240]


def test_a_sweep_over_difficulty_is_one_call_and_equals_a_loop():
    world, all_params = common("easy").world, [common(name).params for name in ("easy", "medium", "hard")]
    n_compiled = 0

    def run(key_data, params):
        nonlocal n_compiled
        n_compiled += 1
        initial_key, steps_key = jax.random.split(jax.random.wrap_key_data(key_data))

        def step(state, key):
            state, outcome = world.step(state, jnp.int32(0), key, params)
            return state, (outcome, state.application.applicant)

        return jax.lax.scan(step, world.initial(initial_key, params), jax.random.split(steps_key, 700))[1]

    key_data = np.uint32([7, 7])
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *all_params)
    together = jax.tree.map(np.asarray, jax.jit(jax.vmap(run, in_axes=(None, 0)))(key_data, stacked))
    assert n_compiled == 1
    alone = jax.jit(run)
    for number, params in enumerate(all_params):
        one = alone(key_data, params)
        jax.tree.map(
            lambda found, expected: np.testing.assert_array_equal(found[number], expected),  # noqa: B023
            together,
            one,
        )
    assert n_compiled == 2
    most = together[1].max(axis=1)
    assert (most <= [30, 80, 240]).all()
    assert (most > [20, 70, 200]).all()


def test_a_capacity_that_is_the_number_of_applicants_changes_nothing(rollouts):
    actions = np.random.default_rng(0).integers(N_ACTIONS, size=60)
    one, other = (envs.CreditReviewEnv(capacity=capacity, horizon=100) for capacity in (None, 80))
    assert rollouts.digest(rollouts.rollout(one, 3, actions)) == rollouts.digest(rollouts.rollout(other, 3, actions))
    assert len(envs.CreditReviewEnv(capacity=100).schema.fields[-1].labels) == 101


@pytest.mark.parametrize(
    ("capacity", "error", "message"),
    [
        (79, ValueError, r"`capacity` must lie in \[80, 32767\], got 79"),
        (2**15, ValueError, r"`capacity` must lie in \[80, 32767\]"),
        (90.0, TypeError, "`capacity` must be a whole number"),
    ],
)
def test_a_capacity_out_of_range_is_refused(capacity, error, message):
    with pytest.raises(error, match=message):
        envs.CreditReviewEnv(capacity=capacity)


def test_a_table_has_no_capacity_and_no_filter(toy_table):
    with pytest.raises(ValueError, match="`capacity` must be None for a table of applicants, got 90"):
        envs.CreditReviewEnv(toy_table(), capacity=90)
    with pytest.raises(ValueError, match="a table of applicants has neither"):
        envs.CreditReviewEnv(toy_table()).world.filter(None)


@pytest.mark.parametrize("applicants", ["synthetic", "table"])
def test_documents_can_be_requested_where_some_are_left_to_show(applicants, toy_table):
    env = envs.CreditReviewEnv(toy_table() if applicants == "table" else applicants)
    observation, info = env.reset(seed=0)
    seen = set()
    for step in range(200):
        is_left = observation["documents"] == 0  # "not requested", "withheld"
        np.testing.assert_array_equal(info["action_mask"], [True, True, True, is_left, True])
        seen.add(bool(is_left))
        observation, *_, info = env.step(REQUEST_DOCUMENT if step % 2 == 0 else REJECT)
    assert seen == {True, False}
