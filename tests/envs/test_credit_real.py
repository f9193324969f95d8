import numpy as np
import pytest
from habitus import envs
from habitus.envs.credit_review.terms import APPROVE, APPROVE_REDUCED, MANUAL_REVIEW, REJECT, REQUEST_DOCUMENT

HIDDEN_CODE, HIDDEN_STATUS = 3, 2


def four_rows(**changes):
    """Stakes .5, .5, 1, 2 (mean 1); the first and the last loan are bad."""
    parts = {
        "name": "four",
        "fields": (envs.Field("row", ("a", "b", "c", "d")),),
        "categories": np.arange(4)[:, None],
        "numbers": np.zeros((4, 0)),
        "missing": np.zeros((4, 0)),
        "bad": [True, False, False, True],
        "stake": [0.5, 0.5, 1.0, 2.0],
        "has_amount": True,
    }
    return envs.ApplicantTable(**(parts | changes))


def expected_by_row(env, n_steps=4):
    """Row -> expected rewards, by rejecting everybody."""
    env.reset(seed=0)
    found = {}
    for _ in range(n_steps):
        found[env.audit()["row"]] = env.expected_rewards()
        env.step(REJECT)
    return [found[row] for row in sorted(found)]


def test_rewards_by_hand():
    # gain: bad stakes 2.5 over good stakes 1.5 = 1.6667; P = 1.6667 x 1.5 / 4 = .625; review .375, document .0625.
    # Review: right with .9, so a good loan is paid out with .9, a bad one with .1.
    gain = 2.5 / 1.5
    rows = expected_by_row(envs.CreditReviewEnv(four_rows()))
    stakes, outcomes = [0.5, 0.5, 1.0, 2.0], [-1.0, gain, gain, -1.0]
    for found, stake, outcome in zip(rows, stakes, outcomes, strict=True):
        paid = stake * outcome
        passed = 0.9 if outcome > 0 else 0.1
        np.testing.assert_allclose(found, [paid, 0, passed * paid - 0.375, -0.0625, 0.55 * paid], atol=2e-4)


def test_economics_can_be_set():
    env = envs.CreditReviewEnv(
        four_rows(), loss=2.0, gain=0.5, review_reliability=0.8, review_fee=1.0, document_fee=0.2, reduced=0.25
    )
    # P = .5 x 1.5 / 4 = .1875
    rows = expected_by_row(env)
    np.testing.assert_allclose(rows[2], [0.5, 0, 0.8 * 0.5 - 0.1875, -0.0375, 0.125], atol=1e-4)
    np.testing.assert_allclose(rows[3], [-4.0, 0, 0.2 * -4.0 - 0.1875, -0.0375, -1.0], atol=1e-4)
    assert env.schema.review == envs.Review("manual_review", "approve", "verdict", "good", "bad", 0.8, 0.5, 2.0)
    assert env.schema.scaled_actions == (envs.ScaledAction("approve_reduced", "approve", 0.25),)
    assert env.schema.reward_bound >= 2.0 + 0.1875 / 0.5


def test_second_rules_cap_the_gain_and_charge_large_loans():
    # gain .6 of it; stakes of 1.25 and more are charged .8 of the first gain per unit
    rows = expected_by_row(envs.CreditReviewEnv(four_rows(), regime=[(0, 1.0)]))
    gain = 2.5 / 1.5
    paid = [-0.5, 0.5 * 0.6 * gain, 0.6 * gain, 2.0 * (-1.0 - 0.8 * gain)]
    np.testing.assert_allclose([row[APPROVE] for row in rows], paid, atol=3e-4)
    np.testing.assert_allclose([row[APPROVE_REDUCED] for row in rows], np.multiply(0.55, paid), atol=3e-4)
    half = expected_by_row(envs.CreditReviewEnv(four_rows(), regime=[(0, 0.5)]))
    np.testing.assert_allclose(half[2][APPROVE], 0.8 * gain, atol=3e-4)


def test_approving_everybody_breaks_even_by_default(toy_table):
    env = envs.CreditReviewEnv(toy_table())
    total = sum(row[APPROVE] for row in expected_by_row(env, 60))
    assert abs(total) < 60 * 1e-4  # the gain is rounded to 1/10000


def test_without_amounts_all_loans_are_equal_and_no_stake_is_observed():
    env = envs.CreditReviewEnv(four_rows(stake=np.ones(4), has_amount=False))
    assert "stake" not in env.observation_space.spaces
    assert env.schema.stake_field is None
    np.testing.assert_allclose([abs(row[APPROVE]) for row in expected_by_row(env)], 1.0, atol=1e-6)


def test_each_row_comes_once_in_an_epoch_and_epochs_differ(toy_table):
    env = envs.CreditReviewEnv(toy_table(), horizon=500)
    env.reset(seed=3)
    rows = []
    for _ in range(180):
        rows.append(env.audit()["row"])
        assert env.audit()["epoch"] == (len(rows) - 1) // 60
        env.step(REJECT)
    epochs = np.reshape(rows, (3, 60))
    np.testing.assert_array_equal(np.sort(epochs, axis=1), np.tile(np.arange(60), (3, 1)))
    assert (epochs[0] != epochs[1]).any()
    assert (epochs[1] != epochs[2]).any()


def test_the_order_of_rows_depends_on_the_seed_and_not_on_the_actions(toy_table):
    def rows(seed, action):
        env = envs.CreditReviewEnv(toy_table())
        env.reset(seed=seed)
        found = []
        for _ in range(40):
            found.append(env.audit()["row"])
            env.step(action)
        return found

    assert rows(0, REJECT) == rows(0, APPROVE)
    assert rows(0, REJECT) != rows(1, REJECT)


def test_what_is_observed_is_what_the_table_holds(toy_table):
    table = toy_table()
    env = envs.CreditReviewEnv(table, observe_group=True, hide_probability=0.0)
    observation, _ = env.reset(seed=1)
    for _ in range(60):
        row = env.audit()["row"]
        assert observation["job"] == table.categories[row, 0]
        assert observation["home"] == table.categories[row, 1]
        assert observation["income"].item() == pytest.approx(table.numbers[row, 0])
        assert observation["income_status"] == (1 if table.missing[row, 0] else 0)
        assert observation["age"].item() == table.numbers[row, 1]
        assert observation["sex"] == env.audit()["group"] == table.group[row]
        assert observation["stake"].item() == pytest.approx(table.stake[row], abs=5e-4)
        assert observation["documents"] == 1
        observation, *_ = env.step(REJECT)


def test_withheld_fields_are_hidden_until_documents_are_requested(toy_table):
    table = toy_table()
    env = envs.CreditReviewEnv(table, horizon=2000)
    observation, _ = env.reset(seed=2)
    n_withheld, n_steps = 0, 600
    for _ in range(n_steps):
        row = env.audit()["row"]
        if observation["documents"] == 0:
            n_withheld += 1
            assert (observation["job"], observation["income_status"]) == (HIDDEN_CODE, HIDDEN_STATUS)
            assert observation["income"].item() == 5.0
            assert observation["home"] == table.categories[row, 1]
            shown, reward, *_, info = env.step(REQUEST_DOCUMENT)
            assert not info["boundary"]
            assert info["decision_id"] == -1
            assert reward < 0
            assert env.audit()["row"] == row
            assert shown["documents"] == 1
            assert shown["job"] == table.categories[row, 0]
            assert {**shown, "home": 0}.keys() == observation.keys()
        observation, *_, info = env.step(REJECT)
        assert info["boundary"]
    assert abs(n_withheld / n_steps - 0.4) < 4.5 * np.sqrt(0.24 / n_steps)  # false alarm 7e-6


def test_a_table_without_documents_has_none_to_withhold(toy_table):
    env = envs.CreditReviewEnv(toy_table(hidden_fields=()))
    assert "documents" not in env.observation_space.spaces
    env.reset(seed=0)
    row = env.audit()["row"]
    assert env.step(REQUEST_DOCUMENT)[1] < 0
    assert env.audit()["row"] == row


def test_realised_rewards_follow_the_recorded_outcome(toy_table):
    env = envs.CreditReviewEnv(toy_table(), horizon=1000)
    env.reset(seed=4)
    right = []
    for step in range(400):
        expected, is_bad = env.expected_rewards(), env.audit()["bad"]
        action = (APPROVE, APPROVE_REDUCED, MANUAL_REVIEW)[step % 3]
        _, reward, *_, info = env.step(action)
        if action == MANUAL_REVIEW:
            assert info["verdict"] in ("good", "bad")
            right.append((info["verdict"] == "bad") == bool(is_bad))
            fee = reward if info["verdict"] == "bad" else reward - expected[APPROVE]
            assert fee == pytest.approx(int(env.params.review_fee) / -1e7, abs=1e-6)
            assert (info["decision_id"] >= 0) == (info["verdict"] == "good")
        else:
            assert reward == pytest.approx(expected[action], abs=1e-6)
            assert info["verdict"] == "none"
    assert abs(np.mean(right) - 0.9) < 4.5 * np.sqrt(0.09 / len(right))


def test_the_oracle_decides_by_the_recorded_outcome(toy_table):
    env = envs.CreditReviewEnv(toy_table())
    env.reset(seed=0)
    for _ in range(60):
        assert env.oracle_action() == int(np.argmax(env.expected_rewards()))
        assert env.oracle_action() == (REJECT if env.audit()["bad"] else APPROVE)
        env.step(REJECT)


def test_the_declared_estimate_of_a_review_is_unbiased(toy_table):
    # E[gain - (gain + loss) (v - (1 - r)) / (2 r - 1)] with v = 1 for "bad": v has mean r if bad, 1 - r if good.
    review = envs.CreditReviewEnv(toy_table()).schema.review
    for is_bad, pays in ((True, -review.loss), (False, review.gain)):
        mean_verdict = review.reliability if is_bad else 1 - review.reliability
        slope = (review.gain + review.loss) / (2 * review.reliability - 1)
        assert review.gain - slope * (mean_verdict - (1 - review.reliability)) == pytest.approx(pays)


def test_the_group_is_masked_unless_asked_for(toy_table):
    env = envs.CreditReviewEnv(toy_table())
    assert "sex" not in env.reset(seed=0)[0]
    assert env.audit()["group"] in (0, 1)
    assert env.schema.sensitive == ("sex",)
    assert env.schema.proxies == (("sex", ("income",)),)
    seen = envs.CreditReviewEnv(toy_table(), observe_group=True).schema
    assert [field.name for field in seen.fields if field.sensitive] == ["sex"]
    env = envs.CreditReviewEnv(toy_table(group=None, group_labels=(), proxies=()))
    env.reset(seed=0)
    assert env.audit()["group"] == -1
    assert env.schema.sensitive == ()


def test_a_group_that_is_not_recorded_cannot_be_observed():
    with pytest.raises(
        ValueError, match="`observe_group` must be False for table 'four', got True; it records no group"
    ):
        envs.CreditReviewEnv(four_rows(), observe_group=True)


@pytest.mark.parametrize("economics", [{"gain": 15.0}, {"loss": 20.0}, {"review_fee": 20.0, "gain": 9.0, "loss": 9.0}])
def test_money_beyond_the_range_of_integers_is_refused(economics):
    stakes = np.array([0.05, 0.05, 0.1, 3.8])
    with pytest.raises(ValueError, match="table 'four': `gain` and `loss` must make every loan pay between"):
        envs.CreditReviewEnv(four_rows(stake=stakes), **economics)


def test_every_stake_lies_in_its_space():
    # seen before: 1.3330001 above a bound of 1.333, because compiled code divides by multiplying
    for seed in range(12):
        amounts = np.random.default_rng(seed).lognormal(size=4)
        env = envs.CreditReviewEnv(four_rows(stake=envs.stake_of_amounts(amounts)))
        observation, _ = env.reset(seed=0)
        for _ in range(4):
            assert observation in env.observation_space
            observation, *_ = env.step(REJECT)
