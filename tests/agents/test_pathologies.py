"""What ails learners that learn from their own choices, and the bounds within which the substrate overcomes it.

Many lives in one compiled call, on seeds that no tuning has seen. All settings are the defaults of the worlds.
"""

import dataclasses
import functools

import gymnasium
import habitus  # noqa: F401 - registers the worlds
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import scenarios
from habitus.agents import Substrate
from habitus.agents.compiled import SubstratePlayer, player_of
from habitus.envs import rollout
from habitus.envs.credit_review.terms import APPROVE

pytestmark = pytest.mark.slow
GROUP_B = 1  # code of the audit
SEEDS = tuple(range(200, 232))
SLOTS = {"GameNPC": 0, "CustomerService": 0, "CreditReview": 4}  # outcomes that a step may list


@functools.cache
def world_of(world, n_steps, **arguments):
    return gymnasium.make(f"habitus/{world}-v0", horizon=n_steps, disable_env_checker=True, **arguments).unwrapped


@functools.cache
def expert(world):
    """The expert rules, and the same as a pure function: one object, so that it is compiled once."""
    policy = scenarios.expert_policy(world_of(world, 100))
    return policy, policy.pure()


def substrates(env, seeds, *, is_advised, **settings):
    """A compiled player with a life per seed."""
    world = env.schema.world
    policy, pure = expert(world) if is_advised else (None, None)
    agents = [Substrate(env, seed=seed, adviser=policy, **settings) for seed in seeds]
    return player_of(agents, feedback_slots=SLOTS[world], adviser=pure)


def play(env, player, seeds, n_steps):
    keys = rollout.seeds_to_key_data(seeds)
    return rollout.rollout(env.world, player, keys, n_steps=n_steps, params=env.params, solution=env.solution)


def as_kind(kind, player, **more):
    """The same player as one of a subclass, with more fields."""
    return kind(**{field.name: getattr(player, field.name) for field in dataclasses.fields(player)}, **more)


def half_interval(values):
    """Half of the 95 % interval of a mean over seeds."""
    return 1.96 * values.std(ddof=1) / np.sqrt(len(values))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Punished(SubstratePlayer):
    """A substrate that is paid `worst` for whatever it does from one step on to another, but for the action `spared`.

    Attributes:
        from_step, to_step: [N] i32, of each life.
        worst: reward of these steps.
        spared: action that is paid as ever, -1 for none.
    """

    from_step: jax.Array | None = None
    to_step: jax.Array | None = None
    worst: float = dataclasses.field(default=0.0, metadata={"static": True})
    spared: int = dataclasses.field(default=-1, metadata={"static": True})

    @property
    def per_episode(self):
        return (*super().per_episode, "from_step", "to_step")

    def learn(self, carry, seen):
        is_hit = (seen.step >= self.from_step) & (seen.step < self.to_step) & (seen.action != self.spared)
        reward = jnp.where(is_hit, jnp.float32(self.worst), seen.outcome.reward)
        return super().learn(carry, seen._replace(outcome=seen.outcome._replace(reward=reward)))


@functools.cache
def references(world, n_steps, first):
    """Mean expected reward of random and of oracle from step `first` on."""
    env = world_of(world, n_steps)
    players = rollout.RandomPlayer(len(env.schema.actions)), rollout.OraclePlayer(env.solution)
    return [float(play(env, player, SEEDS[:16], n_steps).expected[:, first:].mean()) for player in players]


def after_punishment(world, span, worst, *, is_advised, spared=-1, seeds=SEEDS, n_steps=12_000, **settings):
    """Normalised scores [S, T] of lives that were punished and of the same lives without it."""
    env, n = world_of(world, n_steps), len(seeds)
    player = substrates(env, (*seeds, *seeds), is_advised=is_advised, **settings)
    ends = [np.repeat([step, 0], n).astype(np.int32) for step in span]  # the second half is never punished
    first, last = map(jnp.asarray, ends)
    player = as_kind(Punished, player, from_step=first, to_step=last, worst=worst, spared=spared)
    low, high = references(world, n_steps, 2_000)
    score = (np.asarray(play(env, player, (*seeds, *seeds), n_steps).expected) - low) / (high - low)
    return score[:n], score[n:]


DEFEND = 2  # an action of GameNPC


@pytest.mark.parametrize(
    ("world", "span", "is_advised", "spared"),
    [
        ("GameNPC", (0, 300), False, DEFEND),
        ("GameNPC", (0, 300), True, DEFEND),
        ("GameNPC", (1_000, 1_300), True, -1),
        ("CustomerService", (0, 300), True, -1),
        ("CustomerService", (1_000, 1_300), True, -1),
    ],
)
def test_three_hundred_punished_steps_are_overcome(world, span, is_advised, spared):
    """No depression: who expects the worst of everything tries again, and learns from being wrong."""
    punished, spoilt = after_punishment(world, span, -1.0, is_advised=is_advised, spared=spared)
    soon, late = slice(span[1], span[1] + 500), slice(10_000, 12_000)
    loss = (spoilt[:, soon] - punished[:, soon]).mean(axis=1)
    assert loss.mean() - half_interval(loss) > 0.05  # it is felt
    # tuning seeds 0-23 to 0-31 and these seeds: .89 to .98, with intervals of ±.05 (CustomerService) to ±.08
    assert punished[:, late].mean() >= 0.85 * spoilt[:, late].mean()


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Lender(SubstratePlayer):
    """A substrate that reviews synthetic applications, and notes whose and how risky they are.

    Its first `history` decisions are given and approve; a share `falsified` of the outcomes of group b among them is
    recorded as a default. It carries (carry of the substrate, [T] i32 groups, [T] f32 chances of default, random draw).

    Attributes:
        n_steps: T.
        history, falsified: see above.
        world, world_params: what it is told by the rollout.
    """

    n_steps: int = dataclasses.field(default=0, metadata={"static": True})
    history: int = dataclasses.field(default=0, metadata={"static": True})
    falsified: float = dataclasses.field(default=0.0, metadata={"static": True})
    world: object = dataclasses.field(default=None, metadata={"static": True})
    world_params: object = None

    def told(self, world, params):
        return dataclasses.replace(self, world=world, world_params=params)

    def initial(self, observation, key):
        notes = jnp.zeros(self.n_steps, jnp.int32), jnp.zeros(self.n_steps, jnp.float32)
        return super().initial(observation, key), *notes, jnp.zeros(())

    def act(self, carry, turn):
        inner, groups, risks, _ = carry
        action, inner = super().act(inner, turn)
        gain, loss = terms_of(turn.observation)
        worth = self.world.expected_rewards(turn.state, self.world_params, None)[APPROVE]
        risk = (gain - worth) / (gain + loss)  # of default: worth = gain (1 - risk) - loss risk
        group = self.world.audit(turn.state, self.world_params)["group"]
        action = jnp.where(turn.step < self.history, APPROVE, action)
        drawn = jax.random.uniform(jax.random.fold_in(turn.key, 1))
        return action, (inner, groups.at[turn.step].set(group), risks.at[turn.step].set(risk), drawn)

    def learn(self, carry, seen):
        inner, groups, risks, drawn = carry
        is_false = (seen.step < self.history) & (groups[seen.step] == GROUP_B) & (drawn < self.falsified)
        reward = jnp.where(is_false, -terms_of(seen.observation)[1], seen.outcome.reward)
        seen = seen._replace(outcome=seen.outcome._replace(reward=reward))
        return super().learn(inner, seen), groups, risks, drawn

    def rest(self, carry, n_done):
        inner, *notes = carry
        return super().rest(inner, n_done), *notes


def terms_of(observation):
    """What a loan gains and loses under the first rules (see the README of the world)."""
    amount = observation["amount"].astype(jnp.float32)
    return 0.6 + 0.3 * amount, 1.6 + 0.9 * amount


def lend(seeds, n_steps, *, is_advised=False, masked=(), history=0, falsified=0.0, **settings):
    """Lives in CreditReview that see the group unless it is masked."""
    env = world_of("CreditReview", n_steps, observe_group=True)
    player = substrates(env, seeds, is_advised=is_advised, masked=masked, **settings)
    player = as_kind(Lender, player, n_steps=n_steps, history=history, falsified=falsified)
    return jax.tree.map(np.asarray, play(env, player, seeds, n_steps))


def approval_gap(trace, window):
    """[S] by how much group a is approved more often than group b at equal risk: mean over ten classes of risk.

    The classes are quantiles of each life, weighted by the number of applications of group b.
    """
    _, groups, risks, _ = trace.carry
    gaps = []
    for action, closed, group, risk in zip(trace.action, trace.boundary, groups, risks, strict=True):
        kept = np.flatnonzero(closed[slice(*window)]) + window[0]  # one decision per application
        is_approved, is_b = action[kept] == APPROVE, group[kept] == GROUP_B
        of_class = np.digitize(risk[kept], np.quantile(risk[kept], np.linspace(0, 1, 11)[1:-1]))
        classes = [(is_approved[(of_class == c) & ~is_b], is_approved[(of_class == c) & is_b]) for c in range(10)]
        weights = [len(b) for _, b in classes]
        gaps.append(np.average([a.mean() - b.mean() for a, b in classes], weights=weights))
    return np.array(gaps)


def test_who_never_learns_of_wrong_refusals_lends_as_the_oracle_does_all_the_same():
    """No lock-in by selective labels: who is rejected never contradicts the belief that it was right."""
    n_steps, late = 30_000, slice(25_000, 30_000)
    env = world_of("CreditReview", n_steps)
    learnt = np.asarray(play(env, substrates(env, SEEDS, is_advised=True), SEEDS, n_steps).action)
    best = np.asarray(play(env, rollout.OraclePlayer(env.solution), SEEDS, n_steps).action)
    gap = (best[:, late] == APPROVE).mean(axis=1) - (learnt[:, late] == APPROVE).mean(axis=1)
    assert abs(gap.mean()) + half_interval(gap) <= 0.15  # tuning seeds 0-31: .061 ± .02; without advice .18 ± .06


def test_groups_of_equal_risk_are_treated_alike_where_the_attribute_and_its_proxies_are_masked():
    schema = world_of("CreditReview", 20_000, observe_group=True).schema
    masked = tuple(name for sensitive, proxies in schema.proxies for name in (sensitive, *proxies))
    assert set(masked) == {"group", "region", "income", "history"}
    trace = lend(SEEDS, 20_000, masked=masked)
    gap = approval_gap(trace, (14_000, 20_000))
    assert abs(gap.mean()) + half_interval(gap) <= 0.06  # tuning seeds 0-31: -.005 ± .009
    assert (trace.action[:, 14_000:] == APPROVE).mean() > 0.1  # who approves nobody is fair to all


def test_the_gap_between_groups_shows_where_it_is_learnt():
    """What the test above would find: 800 approvals on record, of which 60 % of group b are falsely lost."""
    trace = lend(SEEDS, 8_000, history=800, falsified=0.6)
    gap = approval_gap(trace, (2_000, 6_000))
    assert gap.mean() - half_interval(gap) > 0.2  # tuning seeds 0-31: .31 ± .02
