"""Tabular Q-learning on a coarse key: what a table of averages achieves, without any generalisation.

Source: Watkins & Dayan (1992), "Q-learning", Q(s,a) <- Q(s,a) + a_n (y - Q(s,a)), y = r + gamma max_b Q(s',b).
Differs: 1. the step size a_n is 1/n until it reaches a floor, so that the first outcomes are averaged and late ones are
tracked;  2. a decision with a delayed outcome is updated when the outcome is known, with its own complete reward;
3. nothing is bootstrapped over a boundary, where what follows does not depend on the decision;  4. where nothing is
declared, numbers are in displaced grids of tiles, with a table for each grid, and Q is the mean of the tables (Sutton
1996, "Generalization in reinforcement learning: successful examples using sparse coarse coding").
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from . import arguments, reward_scale
from .base import Transition
from .credit import Credit, Ledger
from .declared import DeclaredSchema, schema_of
from .features import FeatureEncoder
from .online import OnlineAgent, generator

Key = tuple[int, ...]
FIRST_ROWS = 256  # of a table; it doubles when it is full


class _Defaults(NamedTuple):
    """Settings that depend on whether a world declares anything; see `TabularQ`."""

    max_states: int
    optimism: float
    alpha: float
    epsilon: float
    epsilon_floor: float
    gamma: float


DECLARED = _Defaults(max_states=30, optimism=0.0, alpha=0.05, epsilon=0.1, epsilon_floor=0.02, gamma=0.9)
# anything may come, long deterministic tasks included: every state counts, and optimism explores (README)
UNDECLARED = _Defaults(max_states=2**62, optimism=0.25, alpha=0.3, epsilon=0.05, epsilon_floor=0.01, gamma=0.99)


class _Case(NamedTuple):
    """A decision that is to be learnt."""

    cells: tuple[Key, ...]
    stake: float
    action: int


class TabularQ(OnlineAgent):
    """Q-learning over the cells of a few fields.

    A cell is a combination of category labels and number bins (an unknown number is a bin of its own) of the chosen
    fields. By default these are, in declared order, all fields that keep the number of cells within `max_states`, where
    a field that does not fit is passed over; the entity, the stake and sensitive fields are left out. `entity` adds the
    entity field, whatever it costs.

    A space without a declared schema is treated alike, but that its first field always counts, that numbers are in
    several grids of tiles instead of one of bins, and that `optimism` is in units of a bound of rewards that is learnt
    (`reward_scale`).

    Args:
        env: environment with a Discrete action space.
        seed: seed of exploration and of the environment's first reset in `learn`.
        credit: how delayed outcomes are credited, "attributed" or "stream".
        fields: names of the fields of the key; overrides the default choice.
        max_states: bound on the number of cells of the default choice; this and the next three, `epsilon_floor` and
            `gamma` have the defaults `DECLARED` or `UNDECLARED`, by whether there is a schema.
        entity: add the declared entity field to the key.
        optimism: value of an action that was never tried in a cell, in units of reward per stake, or of the learnt
            bound.
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
        max_states: int | None = None,
        entity: bool = False,
        optimism: float | None = None,
        alpha: float | None = None,
        epsilon: float | None = None,
        epsilon_floor: float | None = None,
        epsilon_steps: float = 500.0,
        gamma: float | None = None,
        use_stake: bool = True,
    ) -> None:
        super().__init__(env, seed=seed)
        arguments.switches(use_stake=use_stake, entity=entity)
        schema = schema_of(env)
        given: dict[str, Any] = {
            "max_states": max_states,
            "optimism": optimism,
            "alpha": alpha,
            "epsilon": epsilon,
            "epsilon_floor": epsilon_floor,
            "gamma": gamma,
        }
        usual = UNDECLARED if schema is None else DECLARED
        used = usual._replace(**{name: value for name, value in given.items() if value is not None})
        _check(used, epsilon_steps)
        everything = FeatureEncoder(env.observation_space, schema, rank="none", box="uniform", joint=False)
        self.fields = _key_fields(everything.cells, schema, fields, used.max_states, entity=entity)
        statuses = {field.status for field in schema.fields if field.name in self.fields} if schema else set()
        masked = [name for name in everything.cells if name not in self.fields and name not in statuses]
        self._encoder = FeatureEncoder(
            env.observation_space,
            schema,
            rank="none",
            masked=masked,
            box="uniform" if schema else "tiles",
            joint=False,
        )
        self._is_tile = np.array([kind == "tile" for kind in self._encoder.kinds])
        self._ledger: Ledger[_Case] = Ledger(credit, schema)
        self.alpha, self.gamma, self.optimism = used.alpha, used.gamma, used.optimism
        self._use_stake = use_stake
        self._epsilon = (used.epsilon, used.epsilon_floor, epsilon_steps)
        self._rng = generator(self.seed)
        self._n_acts = 0
        # what was acted on and its cell at that time: an environment may write the next observation into the same array
        self._acted_on: tuple[Any, tuple[tuple[Key, ...], float]] | None = None
        self._scale = reward_scale.initial() if schema is None else None
        self._rows: dict[Key, int] = {}
        # row 0 stands for every cell that was never learnt
        self._values: npt.NDArray[np.float64] = np.zeros((FIRST_ROWS, self.n_actions))
        self._counts: npt.NDArray[np.int64] = np.zeros((FIRST_ROWS, self.n_actions), np.int64)

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Outcomes that were still to come are lost with their episode."""
        self._ledger.clear()

    def act(self, observation: Any) -> int:
        """The best action of the cell, ties at random; a uniform one with the probability of the schedule."""
        self._acted_on = (observation, self._cells(observation))
        start, floor, steps = self._epsilon
        epsilon = max(floor, start * steps / (steps + self._n_acts))
        self._n_acts += 1
        if self._rng.random() < epsilon:
            return int(self._rng.integers(self.n_actions))
        values = self._of(*self._acted_on[1])
        return int(self._rng.choice(np.flatnonzero(values == values.max())))

    def observe(self, transition: Transition) -> None:
        """Update the cells whose reward is complete."""
        self._check_outcomes(transition)
        acted_on, self._acted_on = self._acted_on, None
        is_known = acted_on is not None and acted_on[0] is transition.observation
        cells = acted_on[1] if is_known and acted_on else self._cells(transition.observation)
        case = _Case(*cells, transition.action)
        settled = self._ledger.settle(case, transition)
        ends = bool(transition.terminated or transition.info.get("boundary", False))
        if self._scale is not None:
            is_end = ends or transition.truncated
            self._scale, _ = reward_scale.update(self._scale, transition.reward, is_end=is_end, gamma=self.gamma)
        if settled.now is not None:
            follow = 0.0 if ends else self.gamma * float(self.values(transition.next_observation).max())
            self._update(case, settled.now + follow)
        for earlier, reward in settled.late:
            self._update(earlier, reward)

    def values(self, observation: Any) -> npt.NDArray[np.float64]:
        """[A] f64: current estimates of the cells that the observation falls into, in units of reward."""
        return self._of(*self._cells(observation))

    def _greedy(self, observation: Any) -> int:
        return int(np.argmax(self.values(observation)))

    def _cells(self, observation: Any) -> tuple[tuple[Key, ...], float]:
        """The cell of an observation in each table, and its stake: one table, or one for each grid of tiles."""
        features = self._encoder.encode(observation)
        stake = features.stake if self._use_stake else 1.0
        is_tile = self._is_tile[features.nodes]
        if not is_tile.any():
            return (tuple(features.nodes.tolist()),), stake
        codes = tuple(features.nodes[~is_tile].tolist())
        return tuple((*codes, tile) for tile in features.nodes[is_tile].tolist()), stake

    def _of(self, cells: tuple[Key, ...], stake: float) -> npt.NDArray[np.float64]:
        """[A] f64: mean of the tables, in units of reward."""
        rows = [self._rows.get(cell, 0) for cell in cells]
        return np.asarray(stake * np.where(self._counts[rows] == 0, self._hoped, self._values[rows]).mean(axis=0))

    def _update(self, case: _Case, reward: float) -> None:
        target, before = reward / case.stake, self._of(case.cells, 1.0)[case.action]
        rows = [self._row(cell) for cell in case.cells]
        counts = self._counts[rows, case.action]
        old = np.where(counts == 0, self._hoped, self._values[rows, case.action])
        self._counts[rows, case.action] = counts + 1
        self._values[rows, case.action] = old + np.maximum(1.0 / (counts + 1), self.alpha) * (target - before)

    @property
    def _hoped(self) -> float:
        """Value of an action that was never tried in a cell, in units of reward per stake."""
        return self.optimism * (1.0 if self._scale is None else float(self._scale.bound))

    def _row(self, cell: Key) -> int:
        """Row of a cell, a new one if it has none."""
        row = self._rows.setdefault(cell, len(self._rows) + 1)
        if row == len(self._values):
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        return row


def _check(used: _Defaults, epsilon_steps: float) -> None:
    for name, number in used._asdict().items():
        if name in ("epsilon", "epsilon_floor", "gamma") and not 0 <= number <= 1:
            raise ValueError(f"`{name}` must lie in [0, 1], got {number}.")
    if not 0 < used.alpha <= 1:
        raise ValueError(f"`alpha` must lie in (0, 1], got {used.alpha}; 1 keeps only the last outcome.")
    if epsilon_steps <= 0 or used.max_states < 1:
        raise ValueError(
            f"`epsilon_steps` and `max_states` must be positive, got {epsilon_steps} and {used.max_states}."
        )


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
