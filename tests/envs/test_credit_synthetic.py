import functools
import itertools

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import envs
from habitus.envs import contract
from habitus.envs.arithmetic import ARRAYS, INTEGERS
from habitus.envs.credit_review import synthetic_applicants as people
from habitus.envs.credit_review.terms import APPROVE, APPROVE_REDUCED, MANUAL_REVIEW, REJECT, REQUEST_DOCUMENT

N_ACTIONS = 5


@functools.cache
def world(**arguments):
    return envs.CreditReviewEnv(**arguments).world


@functools.cache
def mean_scores(n_steps, n_episodes):
    """Compiled: parameters, whether the oracle plays or chance -> mean expected reward of each episode."""
    dynamics = world()

    def episode(key, params, is_oracle):
        initial_key, steps_key = jax.random.split(key)

        def step(state, key):
            action_key, step_key = jax.random.split(key)
            random = jax.random.randint(action_key, (), 0, N_ACTIONS, jnp.int32)
            action = jnp.where(is_oracle, contract.oracle(dynamics, state, params, None), random)
            score = dynamics.expected_rewards(state, params)[action]
            return dynamics.step(state, action, step_key, params)[0], score

        keys = jax.random.split(steps_key, n_steps)
        return jax.lax.scan(step, dynamics.initial(initial_key, params), keys)[1].mean()

    keys = jax.random.split(jax.random.key(11), n_episodes)
    return jax.jit(lambda params, is_oracle: jax.vmap(episode, in_axes=(0, None, None))(keys, params, is_oracle))


# Mean and standard error of 200 runs of 10,000 steps of the C prototype in which the dynamics were designed.
@pytest.mark.parametrize(
    ("level", "is_oracle", "prototype", "prototype_error"),
    [
        (0.0, False, -0.1741, 0.0022),
        (0.0, True, 0.3377, 0.0018),
        (1.0, False, -0.3524, 0.0022),
        (1.0, True, 0.2128, 0.0012),
    ],
)
def test_raw_scores_are_those_of_the_measured_prototype(level, is_oracle, prototype, prototype_error):
    scores = np.asarray(mean_scores(1000, 100)(world(regime=((0, level),)).params, is_oracle))
    error = np.hypot(scores.std(ddof=1) / np.sqrt(scores.size), prototype_error)
    assert error < 0.006
    assert abs(scores.mean() - prototype) < 4 * error  # false alarm 6e-5
    assert abs(scores.mean() - prototype - 0.05) > 4 * error  # a world that pays .05 more would be noticed


def cases(n_cases):
    """Different applications after some steps, as one batched state, under second rules."""
    dynamics = world(regime=((0, 0.7),))

    def case(key):
        keys = jax.random.split(key, 4)
        state = dynamics.initial(keys[0], dynamics.params)
        for action, step_key in zip((APPROVE, REQUEST_DOCUMENT, MANUAL_REVIEW), keys[1:], strict=True):
            state = dynamics.step(state, jnp.int32(action), step_key, dynamics.params)[0]
        return state

    return dynamics, jax.jit(jax.vmap(case))(jax.random.split(jax.random.key(2), n_cases))


def test_expected_rewards_are_the_means_of_realised_rewards():
    n_cases, n_draws = 4, 12_000
    dynamics, states = cases(n_cases)

    def realised(state, action, key):
        return dynamics.step(state, action, key, dynamics.params)[1].reward

    def moments(state, key):
        actions = jnp.arange(N_ACTIONS, dtype=jnp.int32)
        keys = jax.random.split(key, n_draws)
        rewards = jax.vmap(lambda action: jax.vmap(lambda key: realised(state, action, key))(keys))(actions)
        return rewards.mean(axis=1), rewards.std(axis=1)

    keys = jax.random.split(jax.random.key(3), n_cases)
    mean, deviation = jax.tree.map(np.asarray, jax.jit(jax.vmap(moments))(states, keys))
    expected = np.asarray(jax.vmap(lambda state: dynamics.expected_rewards(state, dynamics.params))(states))
    # 20 comparisons at 5 standard errors: false alarm 1e-5; 1e-4 for the resolution of rewards
    bound = 5 * deviation / np.sqrt(n_draws) + 1e-4
    assert bound.max() < 0.1
    np.testing.assert_array_less(np.abs(mean - expected), bound)
    assert (np.abs(mean - expected - 0.1) > bound).all()


def test_the_oracle_takes_the_greatest_expected_reward():
    env = envs.CreditReviewEnv(horizon=400)
    env.reset(seed=1)
    for _ in range(300):
        assert env.oracle_action() == int(np.argmax(env.expected_rewards()))
        env.step(env.oracle_action())


def application(*, effect=0, has_good_documents=True, **codes):
    named = {field.name: 0 for field in people.FIELDS} | {"income": 2, "debt": 2} | codes
    return people.Application(**named, applicant=0, documents=0, effect=effect, has_good_documents=has_good_documents)


def chance(case, level):
    """Probability of default, the same under both executors."""
    by_arrays = people.chance_of_default(jax.tree.map(jnp.asarray, case), jnp.int32(level), ARRAYS)
    by_integers = people.chance_of_default(case, level, INTEGERS)
    assert int(by_arrays) == by_integers
    return by_integers / 32768


@pytest.mark.parametrize(
    ("codes", "level", "log_odds"),
    [
        # intercept -1.6, seasonal .7, history none -.3 (0 - 1.5) = .45, amount .2 (0 - 1.5) = -.3, household 0,
        # no history and no default .5, good documents -.9
        ({}, 0, -1.6 + 0.7 + 0.45 - 0.3 + 0.5 - 0.9),
        # second rules: seasonal -.5, household .9
        ({}, 10, -1.6 - 0.5 + 0.45 - 0.3 + 0.9 + 0.5 - 0.9),
        # half of the way: seasonal .1, household .45
        ({}, 5, -1.6 + 0.1 + 0.45 - 0.3 + 0.45 + 0.5 - 0.9),
        # rich and indebted: -.45 x 2 + .45 x 2 - 1; several defaults 1.8; long history -.45; permanent -.3
        (
            {"income": 4, "debt": 4, "past_default": 2, "history": 3, "employment": 2},
            0,
            -1.6 - 0.9 + 0.9 - 1.0 + 1.8 - 0.45 - 0.3 - 0.3 - 0.9,
        ),
        # seasonal and large: 1.2 more, amount .2 (2 - 1.5) = .1; short history .15
        ({"amount": 2, "history": 1}, 0, -1.6 + 0.7 + 0.15 + 0.1 + 1.2 - 0.9),
        # self-employed with a business: -1.2; purpose .5; self-employed -.5
        ({"purpose": 1, "employment": 3, "history": 1}, 0, -1.6 - 0.5 + 0.15 - 0.3 + 0.5 - 1.2 - 0.9),
    ],
)
def test_log_odds_by_hand(codes, level, log_odds):
    assert chance(application(**codes), level) == pytest.approx(1 / (1 + np.exp(-log_odds)), abs=6e-4)


def test_the_effect_of_the_person_and_poor_documents_raise_the_log_odds():
    found = chance(application(effect=1500, has_good_documents=False), 0)
    # the first case of the table above, 1.8 more for documents, 1.5 for the person
    assert found == pytest.approx(1 / (1 + np.exp(-(-1.15 + 1.8 + 1.5))), abs=6e-4)


@functools.cache
def applications(difficulty, n_steps=1500):
    """Every application of an episode without requests: observations and audits."""
    env = envs.CreditReviewEnv(difficulty=difficulty, observe_group=True, horizon=n_steps)
    seen = [(env.reset(seed=5)[0], env.audit())]
    for _ in range(n_steps - 1):
        seen.append((env.step(REJECT)[0], env.audit()))
    return seen


@pytest.mark.parametrize(
    ("difficulty", "n_applicants", "returning"), [("easy", 30, 0.9), ("medium", 80, 0.8), ("hard", 240, 0.8)]
)
def test_difficulty_sets_how_many_return_and_how_often(difficulty, n_applicants, returning):
    seen = applications(difficulty)
    codes = np.array([observation["applicant"] for observation, _ in seen])
    share = (codes > 0).mean()
    assert abs(share - returning) < 4.5 * np.sqrt(returning * (1 - returning) / len(codes))  # false alarm 7e-6
    assert codes.max() <= n_applicants
    assert len(np.unique(codes)) > 0.95 * n_applicants
    effects = {}
    for _, audit in seen:
        effects.setdefault(audit["applicant"], set()).add(audit["effect"])
    drifting = [len(found) > 1 for applicant, found in effects.items() if applicant > 0]
    assert np.mean(drifting) > 0.9 if difficulty == "hard" else not any(drifting)


def test_returning_applicants_keep_who_they_are_and_change_half_of_the_rest():
    by_person = {}
    for observation, _ in applications("easy"):
        by_person.setdefault(int(observation["applicant"]), []).append(observation)
    del by_person[0]
    for visits in by_person.values():
        for name in ("group", "region", "age"):
            assert len({int(visit[name]) for visit in visits}) == 1
    # A field equals its base value with probability 1/2 + 1/2 x 1/n, so two visits agree with
    # (1/2 + 1/2n)^2 + (n - 1) (1/2n)^2 = .4 for n = 5; about 1,300 dependent pairs, a bound for 300 independent ones.
    agree = [one["debt"] == two["debt"] for visits in by_person.values() for one, two in itertools.pairwise(visits)]
    assert abs(np.mean(agree) - 0.4) < 4.5 * np.sqrt(0.24 / 300)


def test_effects_of_returning_and_new_applicants_have_their_spread():
    effects = {audit["applicant"]: audit["effect"] for _, audit in applications("hard")}
    returning = np.array([effect for applicant, effect in effects.items() if applicant > 0])
    assert abs(returning.std() - 2000) < 4.5 * 2000 / np.sqrt(2 * returning.size)
    new = np.array([audit["effect"] for _, audit in applications("medium") if audit["applicant"] == 0])
    assert abs(new.std() - 700) < 4.5 * 700 / np.sqrt(2 * new.size)


def test_an_episode_draws_its_own_applicants():
    env = envs.CreditReviewEnv()
    env.reset(seed=0)
    first = np.asarray(env.state.known.people)
    env.reset(seed=1)
    assert (np.asarray(env.state.known.people) != first).mean() > 0.3


def test_the_group_lives_in_the_south_and_has_lower_income():
    observations = [observation for observation, _ in applications("hard")]
    group = np.array([observation["group"] for observation in observations])
    south = np.array([observation["region"] == 3 for observation in observations])
    income = np.array([observation["income"] for observation in observations])
    assert south[group == 1].mean() > 0.5 > 0.2 > south[group == 0].mean()
    assert income[group == 1].mean() < income[group == 0].mean()


def test_a_request_shows_documents_of_the_same_applicant_and_a_second_one_costs_more():
    env = envs.CreditReviewEnv(horizon=2000)
    before, _ = env.reset(seed=2)
    right, requests, withdrawals = 0, 0, 0
    for _ in range(600):
        fresh = before["documents"] == 0
        truth = env.audit()["has_good_documents"]
        after, reward, *_, info = env.step(REQUEST_DOCUMENT)
        assert reward == pytest.approx(-0.06 if fresh else -0.2)
        assert info["decision_id"] == -1
        withdrawals += info["boundary"]
        if not info["boundary"]:
            assert {**after, "documents": 0} == {**before, "documents": 0}
            assert after["documents"] != 0 if fresh else after["documents"] == before["documents"]
            if fresh:
                requests += 1
                right += (after["documents"] == 1) == bool(truth)
        before = after if info["boundary"] else env.step(REJECT)[0] if not fresh else after
    assert abs(withdrawals / 600 - 0.05) < 4.5 * np.sqrt(0.05 * 0.95 / 600)
    assert abs(right / requests - 0.9) < 4.5 * np.sqrt(0.9 * 0.1 / requests)


def test_a_review_decides_at_once_and_waits_only_for_what_it_approved():
    env = envs.CreditReviewEnv(horizon=2000, feedback="stream")
    env.reset(seed=4)
    right = []
    for _ in range(500):
        is_worth_it = env.expected_rewards()[APPROVE] > 0
        *_, info = env.step(MANUAL_REVIEW)
        assert info["verdict"] in ("good", "bad")
        assert (info["decision_id"] >= 0) == (info["verdict"] == "good")
        right.append((info["verdict"] == "good") == is_worth_it)
        assert info["boundary"]
    assert abs(np.mean(right) - 0.9) < 4.5 * np.sqrt(0.09 / 500)


@pytest.mark.parametrize("action", [APPROVE, APPROVE_REDUCED])
def test_a_loan_pays_by_its_amount_and_a_fine_by_its_debt(action):
    env = envs.CreditReviewEnv(horizon=1000, regime=((0, 1.0),))
    observation, _ = env.reset(seed=6)
    paid = set()
    for _ in range(200):
        amount, is_fined = int(observation["amount"]), bool(observation["debt"] >= 3)
        gain, loss, fine = 0.6 + 0.3 * amount, 1.6 + 0.9 * amount, 1.0 * is_fined
        outcomes = (
            (gain - fine, -loss - fine)
            if action == APPROVE
            else (0.55 * 0.8 * gain - fine / 2, -0.55 * 0.75 * loss - fine / 2)
        )
        observation, reward, *_ = env.step(action)
        assert min(abs(reward - outcome) for outcome in outcomes) < 1e-4
        paid.add(round(reward, 3))
    assert len(paid) > 8


def test_the_applicant_is_hidden_without_observe_entity():
    env = envs.CreditReviewEnv(observe_entity=False)
    observation, _ = env.reset(seed=0)
    assert "applicant" not in observation
    assert env.schema.entity_field is None
    assert "applicant" in env.audit()


def test_the_group_is_masked_unless_asked_for():
    assert "group" not in envs.CreditReviewEnv().observation_space.spaces
    assert "group" in envs.CreditReviewEnv(observe_group=True).observation_space.spaces
    env = envs.CreditReviewEnv()
    env.reset(seed=0)
    assert env.audit()["group"] in (0, 1)
    assert env.schema.sensitive == ("group",)
    assert env.schema.proxies == (("group", ("region", "income", "history")),)


def test_the_schema_says_what_the_world_is():
    schema = envs.CreditReviewEnv(feedback="stream").schema
    assert schema.actions == ("approve", "reject", "manual_review", "request_document", "approve_reduced")
    assert (schema.entity_field, schema.stake_field, schema.review, schema.scaled_actions) == (
        "applicant",
        None,
        None,
        (),
    )
    assert (schema.score_per, schema.boundary, schema.feedback) == ("step", "application", "stream")
    assert schema.reward_bound == pytest.approx(1.6 + 0.9 * 3 + 1.0 + 0.3)
    assert [field.name for field in schema.fields] == list(envs.CreditReviewEnv().observation_space)


def test_it_is_registered():
    env = gymnasium.make("habitus/CreditReview-v0", difficulty="easy", horizon=3)
    env.reset(seed=0)
    assert [env.step(REJECT)[3] for _ in range(3)] == [False, False, True]
    assert len(env.unwrapped.schema.fields[-1].labels) == 31
