"""Small worlds for tests of what every world has in common: numbers, noise, delayed outcomes, and an end."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from habitus.envs import draws, regimes
from habitus.envs.arithmetic import ARRAYS, INTEGERS, below, happens
from habitus.envs.contract import NO_DECISION, Field, Outcome, Schema, Signal

MOODS, WEATHERS, ACTIONS = ("calm", "cross", "angry"), ("none", "rain"), ("wait", "ask", "leave")


class Params(NamedTuple):
    regime_steps: jax.Array
    regime_levels: jax.Array
    ends: jax.Array  # [] i32, threshold of the end of an episode
    pays: jax.Array  # [3] i32, in hundredths


class State(NamedTuple):
    step: jax.Array
    mood: jax.Array
    size: jax.Array
    owed: jax.Array  # [2] i32: whether there is an outcome to come, and its value in hundredths


@dataclasses.dataclass(frozen=True)
class Toy:
    """Written in integers; each outcome is listed one step later."""

    draws_apart: bool = True
    schema: Schema = dataclasses.field(compare=False, repr=False, default=None)
    params: Params = dataclasses.field(compare=False, repr=False, default=None)

    n_step_halves = 4
    n_observe_halves = 2

    def initial(self, key, params):
        half = draws.halves(key, (2,)).astype(jnp.int32)
        zero = jnp.zeros((), jnp.int32)
        return State(zero, below(half[0], 3), below(half[1], 1000), jnp.zeros(2, jnp.int32))

    def advance(self, state, action, halves, params, arithmetic):
        level = arithmetic.take(params.regime_levels, arithmetic.entry_at(params.regime_steps, state.step))
        pay = arithmetic.take(params.pays, action) * (state.mood + 1) - 10 * level
        later = below(halves[0], 100)
        is_owed = action == 1
        old = arithmetic.take(state.owed, 0) > 0
        feedback_id = arithmetic.where(old, state.step - 1, NO_DECISION)
        value = arithmetic.money(arithmetic.take(state.owed, 1), 100)
        owed = arithmetic.put_if(state.owed, 0, arithmetic.integer(is_owed), True)
        owed = arithmetic.put_if(owed, 1, arithmetic.where(is_owed, later, 0), True)
        rains = happens(halves[1], 20_000)
        terminated = happens(halves[2], params.ends)
        following = State(state.step + 1, below(halves[3], 3), (state.size * 7 + action) & 1023, owed)
        if arithmetic is not INTEGERS:
            terminated = jnp.asarray(terminated, jnp.bool_)
        return following, Outcome(
            reward=arithmetic.money(pay + later * arithmetic.integer(is_owed), 100),
            terminated=terminated,
            boundary=action == 2,
            decision_id=arithmetic.where(is_owed, state.step, NO_DECISION),
            feedback_id=arithmetic.stack([feedback_id]),
            feedback_value=[value] if arithmetic is INTEGERS else jnp.stack([value]),
            signals={"weather": arithmetic.integer(rains)},
        )

    def show(self, state, halves, params, arithmetic):
        mood = arithmetic.where(happens(halves[0], 10_000), below(halves[1], 3), state.mood)
        return {"mood": mood, "size": arithmetic.money(state.size, 100)}

    def mask(self, state, params, arithmetic):
        return [True, state.mood < 2, True]

    def step(self, state, action, key, params):
        return self.advance(state, action, draws.halves(key, (self.n_step_halves,)).astype(jnp.int32), params, ARRAYS)

    def observe(self, state, key, params):
        shown = self.show(state, draws.halves(key, (2,)).astype(jnp.int32), params, ARRAYS)
        return shown | {"size": shown["size"][None]}

    def action_mask(self, state, params):
        return jnp.stack([jnp.asarray(allowed) for allowed in self.mask(state, params, ARRAYS)])

    def expected_rewards(self, state, params, solution):
        return (params.pays * (state.mood + 1)).astype(jnp.float32) / jnp.float32(128)

    def action_values(self, state, params, solution):
        return self.expected_rewards(state, params, solution)

    def regime(self, state, params):
        return regimes.fraction(regimes.level_at(params.regime_steps, params.regime_levels, state.step))

    def audit(self, state, params):
        return {"mood": state.mood}

    def solve(self, params):
        return None

    def filter(self, solution, *, forgets=False):
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Plain:
    """A world without what is written for integers: it has to be compiled."""

    world: object

    def __getattr__(self, name):
        if name in ("world", "__setstate__", "advance", "show", "mask", "n_step_halves", "n_observe_halves"):
            raise AttributeError(name)
        return getattr(self.world, name)


def toy(*, regime="drift", horizon=100, ends=0.02, draws_apart=True):
    """A toy world whose episodes end by chance after 1 / ends steps on average; `Plain` draws as with `draws_apart`."""
    schedule = regimes.schedule(regime, horizon)
    schema = Schema(
        world="Toy",
        version=0,
        fields=(Field("mood", MOODS), Field("size", low=0, high=10.24, unit="m")),
        actions=ACTIONS,
        entity_field=None,
        stake_field=None,
        boundary="visit",
        deliberation=(),
        scaled_actions=(),
        review=None,
        signals=(Signal("weather", WEATHERS),),
        sensitive=(),
        proxies=(),
        reward_bound=5.0,
        feedback="attributed",
        score_per="step",
    )
    params = Params(
        regime_steps=jnp.asarray(schedule.steps),
        regime_levels=jnp.asarray(schedule.levels),
        ends=jnp.asarray(draws.threshold(ends), jnp.int32),
        pays=jnp.asarray([10, -5, 30], jnp.int32),
    )
    return Toy(draws_apart, schema, params)
