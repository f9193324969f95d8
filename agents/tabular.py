"""Tabular Q-learning on a coarse key: what a table of averages achieves, without any generalisation.

Source: Watkins & Dayan (1992), "Q-learning", Q(s,a) <- Q(s,a) + a_n (y - Q(s,a)), y = r + gamma max_b Q(s',b).
Differs: 1. the step size a_n is 1/n until it reaches a floor, so that the first outcomes are averaged and late ones are
tracked;  2. a decision with a delayed outcome is updated when the outcome is known, with its own complete reward;
3. nothing is bootstrapped over a boundary, where what follows does not depend on the decision.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from . import arguments
from .base import Transition
from .credit import Credit, Ledger
from .declared import DeclaredSchema, schema_of
from .features import FeatureEncoder
from .online import OnlineAgent, generator

Key = tuple[int, ...]


class _Case(NamedTuple):
    """A decision that is to be learnt."""

    key: Key
    stake: float
    action: int


class TabularQ(OnlineAgent):
    """Q-learning over the cells of a few fields.

    A cell is a combination of category labels and number bins (an unknown number is a bin of its own) of the chosen
    fields. By default these are, in declared order, all fields that keep the number of cells within `max_states`, where
    a field that does not fit is passed over; the entity, the stake and sensitive fields are left out. `entity` adds the
    entity field, whatever it costs. A space without a declared schema is treated alike; its first field always counts.

    Args:
        env: environment with a Discrete action space.
        seed: seed of exploration and of the environment's first reset in `learn`.
        credit: how delayed outcomes are credited, "attributed" or "stream".
        fields: names of the fields of the key; overrides the default choice.
        max_states: bound on the number of cells of the default choice.
        entity: add the declared entity field to the key.
        optimism: initial value of every cell and action, in units of reward per stake.
        alpha: floor of the step size, in (0, 1].
        epsilon: probability of a uniform action at the start.
        epsilon_floor: least probability of a uniform action.
        epsilon_steps: steps after which the probability has halved.
        gamma: discount per step within an encounter, in [0, 1].
        use_stake: learn rewards per unit of the declared stake.

    Raises:
        TypeError: a setting of another type.
        ValueError: a field or setting that does not exist or fit, with what was expected.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        seed: int = 0,
        credit: Credit = "attributed",
        fields: Sequence[str] | None = None,
        max_states: int = 30,
        entity: bool = False,
        optimism: float = 0.0,
        alpha: float = 0.05,
        epsilon: float = 0.1,
        epsilon_floor: float = 0.02,
        epsilon_steps: float = 500.0,
        gamma: float = 0.9,
        use_stake: bool = True,
    ) -> None:
        super().__init__(env, seed=seed)
        arguments.switches(use_stake=use_stake, entity=entity)
        shares = {"epsilon": epsilon, "epsilon_floor": epsilon_floor, "gamma": gamma}
        for name, number in shares.items():
            if not 0 <= number <= 1:
                raise ValueError(f"`{name}` must lie in [0, 1], got {number}.")
        if not 0 < alpha <= 1:
            raise ValueError(f"`alpha` must lie in (0, 1], got {alpha}; 1 keeps only the last outcome.")
        if epsilon_steps <= 0 or max_states < 1:
            raise ValueError(
                f"`epsilon_steps` and `max_states` must be positive, got {epsilon_steps} and {max_states}."
            )
        schema = schema_of(env)
        everything = FeatureEncoder(env.observation_space, schema, rank="none", box="uniform", joint=False)
        self.fields = _key_fields(everything.cells, schema, fields, max_states, entity=entity)
        statuses = {field.status for field in schema.fields if field.name in self.fields} if schema else set()
        masked = [name for name in everything.cells if name not in self.fields and name not in statuses]
        self._encoder = FeatureEncoder(
            env.observation_space, schema, rank="none", masked=masked, box="uniform", joint=False
        )
        self._ledger: Ledger[_Case] = Ledger(credit, schema)
        self.alpha, self.gamma, self.optimism = alpha, gamma, optimism
        self._use_stake = use_stake
        self._epsilon = (epsilon, epsilon_floor, epsilon_steps)
        self._rng = generator(self.seed)
        self._n_acts = 0
        # what was acted on and its cell at that time: an environment may write the next observation into the same array
        self._acted_on: tuple[Any, tuple[Key, float]] | None = None
        self._values: dict[Key, npt.NDArray[np.float64]] = {}
        self._counts: dict[Key, npt.NDArray[np.int64]] = {}

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Outcomes that were still to come are lost with their episode."""
        self._ledger.clear()

    def act(self, observation: Any) -> int:
        """The best action of the cell, ties at random; a uniform one with the probability of the schedule."""
        self._acted_on = (observation, self._cell(observation))
        start, floor, steps = self._epsilon
        epsilon = max(floor, start * steps / (steps + self._n_acts))
        self._n_acts += 1
        if self._rng.random() < epsilon:
            return int(self._rng.integers(self.n_actions))
        values = self.values(observation)
        return int(self._rng.choice(np.flatnonzero(values == values.max())))

    def observe(self, transition: Transition) -> None:
        """Update the cells whose reward is complete."""
        self._check_outcomes(transition)
        acted_on, self._acted_on = self._acted_on, None
        is_known = acted_on is not None and acted_on[0] is transition.observation
        cell = acted_on[1] if is_known and acted_on else self._cell(transition.observation)
        case = _Case(*cell, transition.action)
        settled = self._ledger.settle(case, transition)
        if settled.now is not None:
            ends = transition.terminated or transition.info.get("boundary", False)
            follow = 0.0 if ends else self.gamma * float(self.values(transition.next_observation).max())
            self._update(case, settled.now + follow)
        for earlier, reward in settled.late:
            self._update(earlier, reward)

    def values(self, observation: Any) -> npt.NDArray[np.float64]:
        """[A] f64: current estimates of the cell that the observation falls into, in units of reward."""
        key, stake = self._cell(observation)
        known = self._values.get(key)
        return stake * (np.full(self.n_actions, self.optimism) if known is None else known)

    def _greedy(self, observation: Any) -> int:
        return int(np.argmax(self.values(observation)))

    def _cell(self, observation: Any) -> tuple[Key, float]:
        features = self._encoder.encode(observation)
        return tuple(features.nodes.tolist()), features.stake if self._use_stake else 1.0

    def _update(self, case: _Case, reward: float) -> None:
        values = self._values.setdefault(case.key, np.full(self.n_actions, self.optimism))
        counts = self._counts.setdefault(case.key, np.zeros(self.n_actions, np.int64))
        counts[case.action] += 1
        step_size = max(1.0 / counts[case.action], self.alpha)
        values[case.action] += step_size * (reward / case.stake - values[case.action])


def _key_fields(
    cells: Mapping[str, int],
    schema: DeclaredSchema | None,
    chosen: Sequence[str] | None,
    max_states: int,
    *,
    entity: bool,
) -> tuple[str, ...]:
    """Fields of the key, in the order of the observation."""
    entity_field = schema.entity_field if schema else None
    if entity and entity_field is None:
        raise ValueError("`entity` must be False here: the environment declares no entity field.")
    status_of = {field.name: field.status for field in schema.fields if field.status} if schema else {}
    candidates = [name for name in cells if name not in status_of.values()]
    if chosen is not None:
        for name in chosen:
            if name not in candidates:
                near = difflib.get_close_matches(name, candidates, 1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise ValueError(f"`fields` must name observed fields out of {candidates}, got {name!r}{hint}")
        kept = set(chosen)
    else:
        sensitive = set(schema.sensitive) if schema else set()
        kept, n_states = set(), 1
        for name in candidates:
            if name == entity_field or name in sensitive:
                continue
            # a number's status adds its labels except "known"
            n_cells = cells[name] + (cells[status_of[name]] - 1 if name in status_of else 0)
            if n_states * n_cells <= max_states or (schema is None and not kept):
                kept.add(name)
                n_states *= n_cells
    if entity and entity_field is not None:
        kept.add(entity_field)
    return tuple(name for name in candidates if name in kept)
