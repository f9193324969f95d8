"""A learner that measures worlds: how far one gets with the hidden type given, with the identity alone, with neither.

Linear action values over one-hot fields, and over field and type (or identity) together, learnt by average-reward
Q(lambda) with the step sizes of a Kalman filter whose state does not move.

Sources: Peng & Williams (1996), "Incremental multi-step Q-learning"; Geist & Pietquin (2010), "Kalman temporal
differences"; Mahadevan (1996), "Average reward reinforcement learning".
Differs: variances are kept per weight, without covariances; when the reward falls, by a test of a fast against a slow
average, they start anew and so does exploration; traces are cut after N_TRACES decisions; the average reward is
subtracted while it is positive.

It is an instrument, not an agent of the benchmark: it may be told what no agent sees, and is the same in every world.
An outcome that comes late is learnt at its decision, as the "attributed" variant pays it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from ..envs.contract import Seen, World
from ..envs.rollout import Turn

Array = jax.Array
Knows = Literal["nothing", "entity", "type"]
KNOWS: tuple[Knows, ...] = ("nothing", "entity", "type")

NEVER = 2**30
N_TRACES = 4  # (gamma lambda)^4 = .04
FAST_STEPS, SLOW_STEPS = 300.0, 3000.0  # of the two averages; the variance of the fast one is about that of 500 steps
FAST_SAMPLE = 500.0
ALARM = 3.5  # standard deviations by which the reward must have fallen
CALM_STEPS = 1500  # between alarms


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rates:
    """Constants, the same in every world; chosen on seeds 0 to 19.

    Attributes:
        gamma: discount of the value of the next decision in the same encounter.
        decay: lambda of the traces.
        noise: variance of an observed return.
        prior: variance of a weight before the first decision.
        crossed_prior: the same, of a weight of a field and a type (or identity) together.
        reward_scale: factor of rewards, so that returns stay in [-1, 1].
        explore, explore_steps, explore_least: chance of a random action, explore n / (n + step), at least the last.
        average_steps: steps over which the average reward is taken.
    """

    gamma: float = 0.9
    decay: float = 0.5
    noise: float = 0.3
    prior: float = 0.015
    crossed_prior: float = 0.008
    reward_scale: float = 0.2
    explore: float = 0.1
    explore_steps: float = 500.0
    explore_least: float = 0.01
    average_steps: float = 2000.0


class Memory(NamedTuple):
    """What the learner carries from step to step; K rows of features, A actions, P active rows at a time."""

    weights: Array  # [K * A] f32
    variances: Array  # [K * A] f32, valid where `learnt_in` is the present generation
    learnt_in: Array  # [K * A] i32, generation of the variance
    generation: Array  # [] i32, alarms so far
    trace_indices: Array  # [N_TRACES, P] i32, into weights, latest decision first
    trace_gains: Array  # [N_TRACES, P] f32, decayed
    rows: Array  # [P] i32, active at the last decision
    action: Array  # [] i32, the last one
    reward: Array  # [] f32, scaled, of the last decision
    boundary: Array  # [] bool, the last decision ended an encounter
    average: Array  # [] f32, scaled reward per step
    fast: Array  # [] f32, its average of late
    slow: Array  # [] f32
    spread: Array  # [] f32, variance of the scaled reward
    n_steps: Array  # [] i32, decisions made
    since: Array  # [] i32, decisions since the last alarm


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ReferenceLearner:
    """Player of `habitus.envs.rollout`; pure, for one environment. `reference_learner` builds and checks it.

    The learning from a step needs the features of the next, which only `act` sees: it comes first there.

    Attributes:
        freeze_at: [] i32, step from which it learns no more and explores at the least rate.
        world: whose fields it sees.
        knows: see `reference_learner`.
        rates: constants.
        params: of the world, once they have been told.
    """

    freeze_at: Array
    world: World = dataclasses.field(metadata={"static": True})
    knows: Knows = dataclasses.field(metadata={"static": True})
    rates: Rates
    params: Any = None

    def told(self, world: World, params: Any) -> ReferenceLearner:
        """The same learner, which can ask the world for the type at hand."""
        return dataclasses.replace(self, params=params)

    def initial(self, observation: dict[str, Array], key: Array) -> Memory:
        """Memory that has learnt nothing; `key` is not used."""
        n_weights = self._n_rows * self._n_actions
        n_active = self._n_active
        return Memory(
            weights=jnp.zeros(n_weights, jnp.float32),
            variances=jnp.zeros(n_weights, jnp.float32),
            learnt_in=jnp.full(n_weights, -1, jnp.int32),
            generation=jnp.zeros((), jnp.int32),
            trace_indices=jnp.zeros((N_TRACES, n_active), jnp.int32),
            trace_gains=jnp.zeros((N_TRACES, n_active), jnp.float32),
            rows=jnp.zeros(n_active, jnp.int32),
            action=jnp.zeros((), jnp.int32),
            reward=jnp.zeros((), jnp.float32),
            boundary=jnp.ones((), jnp.bool_),
            average=jnp.zeros((), jnp.float32),
            fast=jnp.zeros((), jnp.float32),
            slow=jnp.zeros((), jnp.float32),
            spread=jnp.zeros((), jnp.float32),
            n_steps=jnp.zeros((), jnp.int32),
            since=jnp.zeros((), jnp.int32),
        )

    def act(self, memory: Memory, turn: Turn) -> tuple[Array, Memory]:
        """Learn from the last step, then choose: mostly the action of greatest value."""
        rows = self._rows(turn)
        columns = jnp.arange(self._n_actions, dtype=jnp.int32)
        values = memory.weights[rows[:, None] * self._n_actions + columns].sum(axis=0)
        values = jnp.where(turn.mask, values, -jnp.inf)
        memory = self._learnt(memory, values.max(), memory.n_steps <= self.freeze_at)

        rates = self.rates
        explore_key, action_key = jax.random.split(turn.key)
        chance = rates.explore * rates.explore_steps / (rates.explore_steps + memory.since)
        chance = jnp.where(
            memory.n_steps < self.freeze_at, jnp.maximum(chance, rates.explore_least), rates.explore_least
        )
        anything = jnp.argmax(jnp.where(turn.mask, jax.random.gumbel(action_key, turn.mask.shape), -jnp.inf))
        action = jnp.where(jax.random.uniform(explore_key) < chance, anything, jnp.argmax(values)).astype(jnp.int32)
        return action, memory._replace(rows=rows, action=action)

    def learn(self, memory: Memory, seen: Seen) -> Memory:
        """Keep what the step brought; `act` learns from it."""
        reward = seen.outcome.reward * self.rates.reward_scale

        def moved(average: Array, value: Array, n_steps: float) -> Array:
            return average + jnp.maximum(1 / (memory.n_steps + 20), 1 / n_steps) * (value - average)

        fast, slow = moved(memory.fast, reward, FAST_STEPS), moved(memory.slow, reward, SLOW_STEPS)
        spread = moved(memory.spread, jnp.square(reward - slow), SLOW_STEPS)
        fallen = slow - fast > ALARM * jnp.sqrt(spread / FAST_SAMPLE)
        alarm = fallen & (memory.since > CALM_STEPS)
        return memory._replace(
            generation=memory.generation + alarm.astype(jnp.int32),
            reward=reward,
            boundary=seen.outcome.boundary,
            average=moved(memory.average, reward, self.rates.average_steps),
            fast=fast,
            slow=jnp.where(alarm, fast, slow),
            spread=spread,
            n_steps=memory.n_steps + 1,
            since=jnp.where(alarm, 0, memory.since + 1),
        )

    def _learnt(self, memory: Memory, best_next: Array, learns: Array) -> Memory:
        """Memory after learning from its last decision, if there is one and it learns at all."""
        rates = self.rates
        active = learns & (memory.n_steps > 0)
        indices = memory.rows * self._n_actions + memory.action
        is_known = memory.learnt_in[indices] == memory.generation
        variances = jnp.where(is_known, memory.variances[indices], self._priors())
        gains = variances / (rates.noise + variances.sum())
        cost_of_time = jnp.maximum(memory.average, 0.0)
        target = memory.reward - cost_of_time + jnp.where(memory.boundary, 0.0, rates.gamma * best_next)
        error = jnp.where(active, target - memory.weights[indices].sum(), 0.0)
        trace_indices = jnp.concatenate([indices[None], memory.trace_indices[:-1]])
        trace_gains = jnp.concatenate([gains[None], rates.gamma * rates.decay * memory.trace_gains[:-1]])
        return memory._replace(
            weights=memory.weights.at[trace_indices.ravel()].add(error * trace_gains.ravel()),
            variances=memory.variances.at[indices].set(jnp.where(active, variances * (1 - gains), variances)),
            learnt_in=memory.learnt_in.at[indices].set(memory.generation),
            trace_indices=trace_indices,
            trace_gains=jnp.where(memory.boundary, 0.0, trace_gains),
        )

    @property
    def _fields(self) -> list[Any]:
        schema = self.world.schema
        return [field for field in schema.fields if field.name != schema.entity_field]

    @property
    def _n_actions(self) -> int:
        return len(self.world.schema.actions)

    @property
    def _n_contexts(self) -> int:
        """Rows of one label: plain, and with each type or identity."""
        schema = self.world.schema
        if self.knows == "type":
            return 1 + HIDDEN_TYPES[schema.world].n
        if self.knows == "entity":
            return 1 + next(len(field.labels) for field in schema.fields if field.name == schema.entity_field)
        return 1

    @property
    def _n_rows(self) -> int:
        return (1 + sum(len(field.labels) for field in self._fields)) * self._n_contexts

    def _priors(self) -> Array:
        """[P] f32: variances before the first decision; a type or identity alone counts as a field."""
        n_plain = len(self._fields) + 1
        is_crossed = jnp.arange(self._n_active, dtype=jnp.int32) > n_plain
        return jnp.where(is_crossed, self.rates.crossed_prior, self.rates.prior).astype(jnp.float32)

    @property
    def _n_active(self) -> int:
        return (len(self._fields) + 1) * (1 if self.knows == "nothing" else 2)

    def _rows(self, turn: Turn) -> Array:
        """[P] i32: active rows; the first label is one that is always there."""
        first, labels = 1, [jnp.zeros((), jnp.int32)]
        for field in self._fields:
            labels.append(first + turn.observation[field.name].astype(jnp.int32))
            first += len(field.labels)
        plain = jnp.stack(labels) * self._n_contexts
        if self.knows == "nothing":
            return plain
        if self.knows == "type":
            code = HIDDEN_TYPES[self.world.schema.world].code(self.world.audit(turn.state, self.params))
        else:
            code = turn.observation[str(self.world.schema.entity_field)]
        return jnp.concatenate([plain, plain + 1 + code.astype(jnp.int32)])


def reference_learner(
    world: World, knows: Knows = "nothing", *, freeze_at: int = NEVER, rates: Rates | None = None
) -> ReferenceLearner:
    """A reference learner.

    Args:
        world: whose fields it sees, all of them categories.
        knows: "nothing" = neither type nor identity; "entity" = the identity, as the world observes it; "type" = the
            hidden type.
        freeze_at: step from which it learns no more.
        rates: constants, by default those of the published numbers.

    Raises:
        ValueError: no such `knows`; the world observes numbers, has no entity field (for "entity") or no known types
            (for "type").
    """
    schema = world.schema
    if knows not in KNOWS:
        raise ValueError(f"`knows` must be one of {', '.join(KNOWS)}, got {knows!r}.")
    if numbers := [field.name for field in schema.fields if not field.is_category]:
        raise ValueError(f"`world` must observe categories only, got the numbers {', '.join(numbers)}.")
    if knows == "entity" and schema.entity_field is None:
        raise ValueError("`knows` must not be 'entity' where the world hides it; build it with observe_entity=True.")
    if knows == "type" and schema.world not in HIDDEN_TYPES:
        raise ValueError(f"`world` must be one of {', '.join(HIDDEN_TYPES)}, got {schema.world}.")
    return ReferenceLearner(jnp.asarray(freeze_at, jnp.int32), world, knows, rates or Rates())


class HiddenTypes(NamedTuple):
    """What "the hidden type" is in a world, as a code in [0, n)."""

    n: int
    code: Callable[[dict[str, Array]], Array]  # of the world's `audit`


# Quintiles of an applicant's own effect, which is normal with this deviation, in 1/1000 log odds.
EFFECT_DEVIATION = 2000
QUINTILES = tuple(round(EFFECT_DEVIATION * deviate) for deviate in (-0.8416, -0.2533, 0.2533, 0.8416))


def _effect_code(audit: dict[str, Array]) -> Array:
    """0 for a new applicant, else 1 + quintile of the effect."""
    quintile = jnp.sum(audit["effect"] > jnp.asarray(QUINTILES, jnp.int32), dtype=jnp.int32)
    return jnp.where(audit["applicant"] == 0, 0, 1 + quintile)


HIDDEN_TYPES = {
    "CreditReview": HiddenTypes(6, _effect_code),
    "CustomerService": HiddenTypes(5, lambda audit: audit["type"]),
    "GameNPC": HiddenTypes(5, lambda audit: audit["type"]),
}
