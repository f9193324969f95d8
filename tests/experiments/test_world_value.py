"""What memory is worth in each world without any learner: the filter minus the same filter that forgets everybody."""

import jax.numpy as jnp
import numpy as np
import pytest
from habitus import WORLD_IDS
from habitus.envs import rollout
from habitus.experiments import world_runs, world_scores
from habitus.experiments.world_runs import Setting

BOUNDS = {"habitus/CreditReview-v0": 0.20, "habitus/CustomerService-v0": 0.30, "habitus/GameNPC-v0": 0.10}
REFERENCES = ("random", "forgetful filter", "filter", "oracle")


def test_every_world_has_its_bound():
    assert set(BOUNDS) == set(WORLD_IDS)


@pytest.mark.slow
def test_memory_pays_where_customers_return():
    # A small version of the tests below: 8 episodes, raw rewards. Published: .36 a step; standard error here .01.
    setting, seeds = Setting("habitus/CustomerService-v0", horizon=2_000), range(2000, 2008)
    players = [world_runs.player_of(policy, setting, ()) for policy in ("filter", "forgetful filter")]
    remembers, forgets = (world_runs.run(setting, player, seeds).score[:, 500:].mean(axis=1) for player in players)
    gain = remembers - forgets
    assert gain.mean() - 4 * gain.std(ddof=1) / np.sqrt(len(gain)) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("world_id", WORLD_IDS)
def test_memory_is_worth_its_bound(world_id):
    # Seeds that no published number has seen; the lower end of the 95 % interval must pass the bound.
    line = world_scores.line(Setting(world_id), "first", range(2000, 2020), REFERENCES)
    assert line.difference("filter", "forgetful filter").low >= BOUNDS[world_id]
    assert world_scores.failures([line]) == []


@pytest.mark.slow
def test_memory_is_worth_nothing_where_everybody_changes_at_every_visit():
    # Negative control of the test above: the types of players are drawn anew at each arrival.
    setting, seeds = Setting("habitus/GameNPC-v0", horizon=10_000), range(2000, 2020)
    made = world_runs.built(setting)
    params = made.params._replace(arrivals=made.params.arrivals._replace(drift=jnp.int32(1 << 16)))
    scores = {}
    for policy in ("random", "filter", "forgetful filter", "oracle"):
        player = world_runs.player_of(policy, setting, ())
        trace = rollout.rollout(
            made.world,
            player,
            rollout.seeds_to_key_data(seeds),
            n_steps=setting.horizon,
            params=params,
            solution=made.solution,
        )
        scores[policy] = np.asarray(trace.expected).mean(axis=1, dtype=np.float64)
    gain = world_scores.Line("GameNPC", 0, "medium", "first", "", scores).difference("filter", "forgetful filter")
    assert gain.low < 0.03
    assert abs(gain.point) < 0.05
    assert gain.high < BOUNDS["habitus/GameNPC-v0"]


@pytest.mark.slow
@pytest.mark.parametrize("world_id", WORLD_IDS)
def test_harder_presets_are_harder_to_remember(world_id):
    # The filter falls from easy to hard: it knows all there is to know, so what falls is what can be remembered.
    easy, hard = (
        world_scores.line(Setting(world_id, difficulty), "first", range(2000, 2020), REFERENCES)
        for difficulty in ("easy", "hard")
    )
    assert hard.difference("oracle", "filter").low > easy.difference("oracle", "filter").high


def test_scores_are_those_of_the_rewards():
    # The expected reward of what was done has the mean of the rewards that are paid, 8 x 2,000 steps: standard error
    # of the difference below .01.
    setting = Setting("habitus/CustomerService-v0", horizon=2_000)
    run = world_runs.run(setting, world_runs.player_of("filter", setting, ()), range(2000, 2008))
    difference = (run.reward - run.score).mean(axis=1)
    assert abs(difference.mean()) < 4 * difference.std(ddof=1) / np.sqrt(len(difference)) + 0.01
