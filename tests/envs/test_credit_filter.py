"""The filtering oracle of CreditReview against brute-force enumeration, and what memory is worth to it."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import envs
from habitus.envs import contract, rollout
from habitus.envs.arithmetic import ARRAYS, INTEGERS
from habitus.envs.credit_review import filtering, loans
from habitus.envs.credit_review import synthetic_applicants as people
from habitus.envs.credit_review.terms import APPROVE, APPROVE_REDUCED, MANUAL_REVIEW, REJECT, REQUEST_DOCUMENT
from scipy import stats

N_ACTIONS = 5
RETURNING_VALUES = people.EFFECTS.list[4096:]  # equally likely
RIGHT, WRONG = loans.RIGHT_REVIEW / 65536, loans.WRONG_DOCUMENTS / 65536


@functools.cache
def env(**arguments):
    return envs.CreditReviewEnv(**arguments)


def chance_of_default(observation, level, effect, is_good):
    hidden = {"group": 0, "effect": effect, "has_good_documents": is_good, "applicant": 0}
    case = people.Application(**({name: int(code) for name, code in observation.items()} | hidden))
    return people.chance_of_default(case, level, INTEGERS) / 32768


def weight_of_documents(shown, is_good):
    if shown == people.NOT_REQUESTED:
        return 0.5
    return 1 - WRONG if is_good == (shown == people.GOOD_DOCUMENTS) else WRONG


def chance_of_history(history, effect):
    """Chance of all that is known of an applicant of this effect: the definition, nothing simplified."""
    total = 1.0
    for observation, level, verdict, is_bad in history:
        summed = 0.0
        for is_good in (False, True):
            bad = chance_of_default(observation, level, effect, is_good)
            amount, debt = int(observation["amount"]), int(observation["debt"])
            gain, loss, fine = 0.6 + 0.3 * amount, 1.6 + 0.9 * amount, 0.1 * level * (debt >= 3)
            worth = gain * (1 - bad) - loss * bad - fine > 0
            told = 1.0 if verdict == "none" else RIGHT if worth == (verdict == "good") else 1 - RIGHT
            came = 1.0 if is_bad is None else bad if is_bad else 1 - bad
            summed += weight_of_documents(observation["documents"], is_good) * told * came
        total *= summed
    return total


def played(n_steps, spacing, seed=2, **arguments):
    """An episode of random decisions: the filter's belief, and by applicant what became known of each."""
    episode = envs.CreditReviewEnv(difficulty="easy", horizon=n_steps, **arguments)
    inferring = filtering.CreditFilter(30, True, True, spacing)
    update = jax.jit(inferring.update)
    rng = np.random.default_rng(seed)
    observation, _ = episode.reset(seed=seed)
    belief = inferring.initial(observation, episode.params)
    made, known = {}, {}
    for step in range(n_steps):
        action = int(rng.choice([APPROVE, MANUAL_REVIEW, REQUEST_DOCUMENT, APPROVE_REDUCED, REJECT]))
        level = round(10 * episode.regime_level())
        following, reward, *_, info = episode.step(action)
        if info["verdict"] != "none":
            fact = [observation, level, info["verdict"], None]
            known.setdefault(int(observation["applicant"]), []).append(fact)
        else:
            fact = [observation, level, "none", None]
        if info["decision_id"] >= 0:
            made[info["decision_id"]] = fact
        for decision, value in info["feedback"]:
            fact = made.pop(decision)
            fact[3] = value < -0.5
            if fact[2] == "none":
                known.setdefault(int(fact[0]["applicant"]), []).append(fact)
        ids = [decision for decision, _ in info["feedback"]]
        padded = ids + [contract.NO_DECISION] * (4 - len(ids))
        values = [value for _, value in info["feedback"]] + [0.0] * (4 - len(ids))
        outcome = contract.Outcome(
            jnp.float32(reward),
            jnp.asarray(False),
            jnp.asarray(info["boundary"]),
            jnp.int32(info["decision_id"]),
            jnp.asarray(padded, jnp.int32),
            jnp.asarray(values, jnp.float32),
            {"verdict": jnp.int32(("none", "good", "bad").index(info["verdict"]))},
        )
        seen = contract.Seen(
            *(_codes(observation), jnp.int32(action), outcome, _codes(following), jnp.int32(step), jnp.int32(level)),
            mask=jnp.asarray(info["action_mask"], bool),
        )
        belief = update(belief, seen, episode.params)
        observation = following
    return inferring, belief, known, observation, episode


def _codes(observation):
    return {name: jnp.int32(code) for name, code in observation.items()}


@pytest.mark.parametrize("regime", ["none", [(0, 0.0), (60, 0.7)]])
def test_the_belief_is_that_of_enumeration(regime):
    inferring, belief, known, observation, episode = played(150, filtering.EVERY_VALUE, regime=regime)
    points = filtering.grid(filtering.EVERY_VALUE).points
    applicants = [applicant for applicant, facts in known.items() if applicant > 0 and len(facts) >= 2]
    assert len(applicants) >= 10
    for applicant in sorted(applicants)[:6]:
        likelihood = np.array([chance_of_history(known[applicant], effect) for effect in np.unique(RETURNING_VALUES)])
        values, counts = np.unique(RETURNING_VALUES, return_counts=True)
        expected = np.zeros(len(points))
        expected[np.searchsorted(points, values)] = counts * likelihood
        expected /= expected.sum()
        named = {**_codes(observation), "applicant": jnp.int32(applicant)}
        found = np.asarray(inferring.effects(belief, named, episode.params))
        np.testing.assert_allclose(found, expected, atol=2e-7, rtol=2e-3)
        prior = np.asarray(inferring.effects(inferring.initial(named, episode.params), named, episode.params))
        assert np.abs(found - prior).sum() > 0.05  # otherwise there was nothing to get wrong


@pytest.mark.parametrize("spacing", [filtering.SPACING, 50])
def test_the_grid_errs_by_less_than_half_its_spacing(spacing):
    # A verdict is a step function of the effect, and a step falls between two points.
    exact, exact_belief, known, observation, episode = played(150, filtering.EVERY_VALUE)
    coarse, coarse_belief, *_ = played(150, spacing)
    for applicant in known:
        named = {**_codes(observation), "applicant": jnp.int32(applicant)}
        exact_mean, coarse_mean = (
            float(np.asarray(one.effects(belief, named, episode.params)) @ filtering.grid(one.spacing).points)
            for one, belief in ((exact, exact_belief), (coarse, coarse_belief))
        )
        assert abs(exact_mean - coarse_mean) < spacing / 2


def test_values_are_expected_rewards_averaged_over_all_that_is_hidden():
    # A new applicant without documents: 4096 equally likely effects, two qualities.
    episode = envs.CreditReviewEnv(regime=[(0, 0.5)])
    world, inferring = episode.world, filtering.CreditFilter(80, True, True, filtering.EVERY_VALUE)
    state = jax.jit(world.initial)(jax.random.key(3), episode.params)
    case = state.application._replace(applicant=jnp.int32(people.NEW_APPLICANT))

    def expected(effect, is_good):
        hidden = case._replace(effect=effect, has_good_documents=is_good)
        return world.expected_rewards(state._replace(application=hidden), episode.params)

    values, counts = np.unique(people.EFFECTS.list[:4096], return_counts=True)
    rewards = jax.jit(jax.vmap(jax.vmap(expected, (None, 0)), (0, None)))(
        jnp.asarray(values, jnp.int32), jnp.array([False, True])
    )
    mean = (np.asarray(rewards, np.float64) * counts[:, None, None] / 4096 / 2).sum(axis=(0, 1))
    observation = world.show(state._replace(application=case), (), episode.params, ARRAYS)
    belief = inferring.initial(observation, episode.params)
    values_of = jax.jit(lambda shown: inferring.values(belief, shown, jnp.int32(5), episode.params))
    found = np.asarray(values_of(observation))
    for action in (APPROVE, REJECT, MANUAL_REVIEW, APPROVE_REDUCED):
        assert found[action] == pytest.approx(mean[action], abs=1e-4)
    shown = {**observation, "documents": jnp.int32(people.GOOD_DOCUMENTS)}
    good = np.asarray(values_of(shown))
    poor_shown = {**observation, "documents": jnp.int32(people.POOR_DOCUMENTS)}
    poor = np.asarray(values_of(poor_shown))
    assert good[APPROVE] > found[APPROVE] > poor[APPROVE]
    assert (good[APPROVE] + poor[APPROVE]) / 2 == pytest.approx(found[APPROVE], abs=1e-5)
    loss_of_time = np.interp(0.5, [0, 1], filtering.STEP_VALUE)
    best = (good[np.arange(5) != REQUEST_DOCUMENT].max() + poor[np.arange(5) != REQUEST_DOCUMENT].max()) / 2
    assert found[REQUEST_DOCUMENT] == pytest.approx(0.95 * (best - loss_of_time) - 0.06, abs=1e-4)


def test_every_outcome_shows_whether_the_loan_was_repaid():
    for amount in range(4):
        for debt in range(5):
            for level in range(11):
                terms = loans.loan_terms(amount, debt, level, INTEGERS)
                good = terms.gain - terms.fine, terms.reduced_gain - terms.reduced_fine
                bad = -terms.loss - terms.fine, -terms.reduced_loss - terms.reduced_fine
                assert min(good) / loans.MONEY > filtering.BAD_BELOW > max(bad) / loans.MONEY


def test_an_effect_drifts_as_in_the_world_between_applications():
    # The mean of a belief shrinks by sqrt(1 - .03), its variance becomes (1 - .03) v + .03 x 2000^2.
    episode = env(difficulty="hard")
    inferring = filtering.CreditFilter(240, True, True)
    points = filtering.grid(filtering.SPACING).points.astype(float)
    transition = np.asarray(inferring._transition(episode.params), np.float64)
    for mean, deviation in ((0, 2000), (1500, 600), (-2500, 800)):
        before = np.exp(-0.5 * ((points - mean) / deviation) ** 2)
        before /= before.sum()
        after = before @ transition
        start, spread = before @ points, before @ points**2 - (before @ points) ** 2
        assert after @ points == pytest.approx(np.sqrt(0.97) * start, abs=6)
        assert after @ points**2 - (after @ points) ** 2 == pytest.approx(0.97 * spread + 0.03 * 2000**2, rel=0.01)


def test_a_filter_that_forgets_keeps_nothing():
    world, params = env().world, env().params
    forgetful = world.filter(None, forgets=True)
    observation = _codes(envs.CreditReviewEnv().reset(seed=0)[0])
    assert jax.tree.leaves(forgetful.initial(observation, params)) == []
    assert world.filter(None) == world.filter(None) != forgetful


def test_without_names_nothing_is_remembered_and_everybody_is_a_mixture():
    episode = env(observe_entity=False)
    inferring = episode.world.filter(None)
    observation = _codes(envs.CreditReviewEnv(observe_entity=False).reset(seed=0)[0])
    effects = np.asarray(inferring.effects((), observation, episode.params), np.float64)
    points = filtering.grid(filtering.SPACING).points
    assert effects @ points**2 == pytest.approx(0.8 * 2000**2 + 0.2 * 700**2, rel=0.01)
    values = jax.jit(lambda shown: inferring.values((), shown, jnp.int32(0), episode.params))(observation)
    assert np.isfinite(values).all()


N_BINS = 10
KNOWN_BIN = N_BINS  # of what concerns returning applicants of any belief


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Acts at random, and compares what the filter believes of the effect of a returning applicant with the truth.

    Its carry beside the belief is [N_BINS + 1, 3] f32, by the believed chance that the effect is positive, then of all:
    decisions; the sum of (1 if the effect is positive, else 0) less that chance; the sum of how much less than believed
    the mean errs: 1 less squared error over believed variance.
    """

    inferring: filtering.CreditFilter
    params: Any = None

    def told(self, world, params):
        return dataclasses.replace(self, params=params)

    def initial(self, observation, key):
        return self.inferring.initial(observation, self.params), jnp.zeros((N_BINS + 1, 3), jnp.float32)

    def act(self, carry, turn):
        belief, sums = carry
        points = jnp.asarray(filtering.grid(self.inferring.spacing).points, jnp.float32)
        chances = self.inferring.effects(belief, turn.observation, self.params)
        positive = chances @ ((jnp.sign(points) + 1) / 2)  # half of the point at 0 lies above it
        mean = chances @ points
        truth = turn.state.application.effect.astype(jnp.float32)
        error = 1 - (truth - mean) ** 2 / (chances @ (points - mean) ** 2)
        note = jnp.stack([jnp.float32(1), (truth > 0) - positive, error])
        note = jnp.where(turn.observation["applicant"] == people.NEW_APPLICANT, 0, note)
        tenth = jnp.clip(positive * N_BINS, 0, N_BINS - 1).astype(jnp.int32)
        action, _ = rollout.RandomPlayer(N_ACTIONS).act((), turn)
        return action, (belief, sums.at[tenth].add(note).at[KNOWN_BIN].add(note))

    def learn(self, carry, seen):
        return self.inferring.update(carry[0], seen, self.params), carry[1]


@pytest.mark.slow
@pytest.mark.parametrize(("difficulty", "feedback"), [("easy", "attributed"), ("hard", "stream")])
def test_the_belief_is_calibrated(difficulty, feedback):
    # Of decisions with a believed chance of p that the effect is positive, a share of p is so, in every tenth of p.
    # Decisions of one episode depend on each other, episodes do not: their means give the standard error.
    n_episodes = 64
    world = env(difficulty=difficulty, feedback=feedback, regime=((0, 0.3),)).world
    player = Calibration(world.filter(None))
    key_data = rollout.seeds_to_key_data(range(n_episodes))
    sums = rollout.rollout(world, player, key_data, n_steps=600, scores=False).carry[1]
    counts, *errors = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
    bound = stats.t.isf(1e-4 / (2 * (N_BINS + 2)), n_episodes - 1)  # 12 comparisons: false alarm 1e-4
    assert (counts.sum(axis=0) > 400).all()
    for error in (errors[0], errors[1][:, KNOWN_BIN:]):
        standard_error = error.std(axis=0, ddof=1) / np.sqrt(n_episodes)
        assert (np.abs(error.mean(axis=0)) < bound * standard_error).all()
        assert (bound * standard_error / counts[:, -error.shape[1] :].mean(axis=0) < 0.25).all()


PLAYERS = ("random", "forgetful", "filter", "oracle")


def scores(n_seeds, n_steps, names=PLAYERS, **arguments):
    """[n_seeds] mean expected reward of each player on the same episodes."""
    world, params = env(**arguments).world, env(**arguments).params
    players = {
        "random": rollout.RandomPlayer(N_ACTIONS),
        "oracle": rollout.OraclePlayer(None),
        "filter": rollout.FilterPlayer(world.filter(None)),
        "forgetful": rollout.FilterPlayer(world.filter(None, forgets=True)),
    }
    key_data = rollout.seeds_to_key_data(range(n_seeds))
    return {
        name: np.asarray(rollout.rollout(world, players[name], key_data, n_steps=n_steps, params=params).expected).mean(
            axis=1
        )
        for name in names
    }


@pytest.mark.slow
def test_memory_pays_from_the_first_episode_on():
    # differences by seed are about .08 with a deviation of about .03
    found = scores(6, 1500, ("forgetful", "filter"))
    assert (found["filter"] - found["forgetful"]).mean() > 0.03


@pytest.mark.slow
def test_memory_is_worth_a_fifth_of_the_range_to_a_perfect_reasoner():
    found = scores(20, 20_000)
    span = found["oracle"] - found["random"]
    worth = (found["filter"] - found["forgetful"]) / span
    error = worth.std(ddof=1) / np.sqrt(len(worth))
    assert worth.mean() - 2.1 * error >= 0.20  # lower end of the 95 % interval, 19 degrees of freedom
    ladder = np.stack([found[name] for name in PLAYERS])
    assert (np.diff(ladder, axis=0) > 0).all()  # in each of the 20 episodes


@pytest.mark.slow
def test_harder_presets_leave_the_filter_further_behind():
    share = []
    for difficulty in ("easy", "medium", "hard"):
        found = scores(20, 10_000, difficulty=difficulty)
        share.append(((found["filter"] - found["random"]) / (found["oracle"] - found["random"])).mean())
    assert share[0] > share[1] + 0.01 > share[2] + 0.02
