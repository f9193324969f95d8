"""kNN episodic control: an action is worth what it brought in the most similar situations that are remembered.

Source: Pritzel et al. (2017), "Neural episodic control": a memory of (key, return) for each action, read by
Q(s,a) = sum_i w_i Q_i / sum_i w_i over the k nearest keys, w_i = 1 / (d_i^2 + delta); written with N-step returns
sum_j gamma^j r_j + gamma^N max_b Q(s_N,b), where a key that is already there moves its value, Q_i += a (y - Q_i).
Differs: 1. a key is the observation's nodes and not an embedding that is learnt, so that distances count the fields
that differ;  2. all that is as near as the k-th takes part, for distances of categories tie;  3. an imagined neighbour
stands at a fixed distance, so that what is known only from afar says little;  4. the step size is 1/n until it reaches
a floor;  5. the oldest key is overwritten, not the least recently used;  6. nothing is bootstrapped over a boundary,
and a decision with a delayed outcome is written when the outcome is known, with its own complete reward.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from . import arguments
from .base import Transition
from .credit import Credit, Ledger
from .declared import schema_of
from .features import FeatureEncoder, Rank
from .online import OnlineAgent, generator

FloatArray = npt.NDArray[np.float64]

TIE = 1e-4  # of squared distances: far above their rounding in float32, far below what a field is worth
# a category that differs changes two nodes, hence a half of its weight on each; what is always on tells nothing apart,
# and the inverse of a stake has no bounded scale
NODE_WEIGHTS: Mapping[str, float] = {"bias": 0.0, "inverse_stake": 0.0}
USUAL_WEIGHT = 0.5


class Situation(NamedTuple):
    """What a memory compares.

    Attributes:
        nodes: [P] i32, distinct nodes that are on.
        activation: [P] f32, not 0.
        stake: what outcomes are proportional to.
    """

    nodes: npt.NDArray[np.int32]
    activation: npt.NDArray[np.float32]
    stake: float


class EpisodicMemory:
    """For each of A actions, up to C situations over D nodes, each with an estimate of what the action brought there.

    The squared distance of two situations is sum_d weight_d (x_d - y_d)^2.

    Args:
        n_actions: A.
        weights: [D] f32, >= 0, of each node in distances.
        capacity: C; when an action has as many, a new situation replaces the oldest.
        k: neighbours that are asked, from 1 to C.
        bandwidth: delta of the kernel, > 0, in units of a squared distance.
        novelty: squared distance of the imagined neighbour, >= 0; infinity: there is none.
        optimism: its value, and that of an action without memories.
        step: floor of the step size, in (0, 1], with which a known situation takes in another return.
    """

    def __init__(
        self,
        n_actions: int,
        weights: npt.NDArray[np.float32],
        *,
        capacity: int,
        k: int,
        bandwidth: float,
        novelty: float,
        optimism: float,
        step: float,
    ) -> None:
        self.capacity, self.k, self.bandwidth, self.optimism, self.step = capacity, k, bandwidth, optimism, step
        self._weights, self._prior = weights, 1.0 / (novelty + bandwidth)
        # a row per node: a query reads the few rows that are on, for all actions at once
        self._keys = np.zeros((len(weights), n_actions * capacity), np.float32)
        self._norms = np.full((n_actions, capacity), np.inf, np.float32)  # empty slots are infinitely far away
        self._returns = np.zeros((n_actions, capacity), np.float32)
        self._counts = np.zeros((n_actions, capacity), np.int64)
        self._next = [0] * n_actions
        self._slot_of: list[dict[bytes, int]] = [{} for _ in range(n_actions)]
        self._name_at: list[dict[int, bytes]] = [{} for _ in range(n_actions)]

    def sizes(self) -> list[int]:
        """[A] situations remembered for each action."""
        return [len(slots) for slots in self._slot_of]

    def values(self, situation: Situation) -> FloatArray:
        """[A] f64: estimate of each action, `optimism` where nothing is remembered."""
        nodes, activation = situation.nodes, situation.activation
        query = activation * self._weights[nodes]
        distance = self._norms - 2.0 * (query @ self._keys[nodes]).reshape(self._norms.shape)
        distance += query @ activation
        np.maximum(distance, 0.0, out=distance)
        last = np.partition(distance, self.k - 1, axis=1)[:, self.k - 1, None]
        kernel = np.where(distance <= last + TIE, 1.0 / (distance + self.bandwidth), 0.0)
        total = kernel.sum(axis=1, dtype=np.float64) + self._prior
        said = np.einsum("ac,ac->a", kernel, self._returns, dtype=np.float64) + self._prior * self.optimism
        values: FloatArray = np.full(len(total), self.optimism)
        np.divide(said, total, out=values, where=total > 0)
        return values

    def write(self, action: int, situation: Situation, target: float) -> None:
        """Remember what an action brought in a situation; a known one moves its estimate."""
        nodes, activation = situation.nodes, situation.activation
        slots, names = self._slot_of[action], self._name_at[action]
        name = nodes.tobytes() + activation.tobytes()
        slot = slots.get(name)
        if slot is None:
            slot = self._next[action]
            self._next[action] = (slot + 1) % self.capacity
            if slot in names:
                del slots[names[slot]]
            slots[name], names[slot] = slot, name
            column = self._keys[:, action * self.capacity + slot]
            column[:] = 0.0
            column[nodes] = activation
            self._norms[action, slot] = np.sum(self._weights[nodes] * activation**2)
            self._counts[action, slot] = 0
            self._returns[action, slot] = 0.0
        self._counts[action, slot] += 1
        rate = max(1.0 / self._counts[action, slot], self.step)
        self._returns[action, slot] += rate * (target - self._returns[action, slot])


class _Case(NamedTuple):
    """A decision that is to be learnt."""

    situation: Situation
    action: int


class _Step(NamedTuple):
    """A step of the encounter at hand.

    Attributes:
        case: its decision.
        reward: what it brought, None while its outcome is still to come.
        best: what the best action was thought to be worth there; what the outcome counts as for the steps before.
    """

    case: _Case
    reward: float | None
    best: float


class EpisodicControl(OnlineAgent):
    """kNN episodic control on the nodes of `FeatureEncoder`.

    Squared distances count fields: 1 for a category that differs, half the squared difference of ranks in [-1, 1],
    `entity_weight` for another entity (half of it where one is unknown).

    Args:
        env: environment with a Discrete or MultiDiscrete action space.
        seed: seed of exploration, ties and the environment's first reset in `learn`.
        credit: how delayed outcomes are credited, "attributed" or "stream".
        k: neighbours that are asked for each action, and all as near as the k-th.
        bandwidth: delta of the kernel 1 / (d^2 + delta), > 0; a small one asks the nearest only.
        entity: tell situations apart by the declared entity.
        entity_weight: squared distance between two entities, >= 0.
        novelty: squared distance of an imagined neighbour with the value `optimism`, >= 0; infinity: there is none.
        optimism: value of an action that was never tried near by, in units of reward per stake.
        step: floor of the step size, in (0, 1], with which a situation that is remembered takes in another return.
        n_steps: steps of an encounter whose rewards make a return, at least 1; a longer encounter is bootstrapped.
        gamma: discount per step within an encounter, in [0, 1].
        epsilon: probability of a uniform action at the start.
        epsilon_floor: least probability of a uniform action.
        epsilon_steps: steps after which the probability has halved.
        capacity: situations remembered for each action, at least `k`; the oldest is overwritten.
        use_stake: learn rewards per unit of the declared stake.
        use_mask: keep away from actions that `info["action_mask"]` says are impossible.
        rank: form of the rank nodes of numbers.
        masked: fields that the agent must not see.

    Attributes:
        memory: what is remembered, in units of reward per stake.

    Raises:
        TypeError: a setting of another type.
        ValueError: a setting out of range, with what was expected.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        seed: int = 0,
        credit: Credit = "attributed",
        k: int = 10,
        bandwidth: float = 0.5,
        entity: bool = True,
        entity_weight: float = 2.0,
        novelty: float = 4.0,
        optimism: float = 0.0,
        step: float = 0.1,
        n_steps: int = 3,
        gamma: float = 0.9,
        epsilon: float = 0.1,
        epsilon_floor: float = 0.02,
        epsilon_steps: float = 500.0,
        capacity: int = 2_000,
        use_stake: bool = True,
        use_mask: bool = True,
        rank: Rank = "signed",
        masked: Sequence[str] = (),
    ) -> None:
        super().__init__(env, seed=seed)
        arguments.switches(entity=entity, use_stake=use_stake, use_mask=use_mask)
        k, capacity = arguments.whole_number("k", k, 1), arguments.whole_number("capacity", capacity, 1)
        self.n_steps = arguments.whole_number("n_steps", n_steps, 1)
        if capacity < k:
            raise ValueError(f"`capacity` must be at least `k` = {k}, got {capacity}; ask fewer neighbours.")
        _check_shares(gamma=gamma, epsilon=epsilon, epsilon_floor=epsilon_floor)
        _check_sizes(entity_weight=entity_weight, novelty=novelty)
        if not (bandwidth > 0 and epsilon_steps > 0):
            raise ValueError(f"`bandwidth` and `epsilon_steps` must be positive, got {bandwidth} and {epsilon_steps}.")
        if not 0 < step <= 1:
            raise ValueError(f"`step` must lie in (0, 1], got {step}; 1 keeps only the last return of a situation.")
        if not math.isfinite(optimism):
            raise ValueError(f"`optimism` must be finite, got {optimism}.")
        schema = schema_of(env)
        hidden = arguments.names("masked", masked)
        if not entity and schema is not None and schema.entity_field is not None:
            hidden = [*dict.fromkeys([*hidden, schema.entity_field])]
        self._encoder = FeatureEncoder(
            env.observation_space, schema, rank=rank, masked=hidden, box="uniform", joint=False
        )
        weight_of = {**NODE_WEIGHTS, "entity": USUAL_WEIGHT * entity_weight}
        self._weights = np.array([weight_of.get(kind, USUAL_WEIGHT) for kind in self._encoder.kinds], np.float32)
        self.memory = EpisodicMemory(
            self.n_actions,
            self._weights,
            capacity=capacity,
            k=k,
            bandwidth=bandwidth,
            novelty=novelty,
            optimism=optimism,
            step=step,
        )
        self._ledger: Ledger[_Case] = Ledger(credit, schema)
        self.gamma, self._use_stake, self._use_mask = gamma, use_stake, use_mask
        self._epsilon = (epsilon, epsilon_floor, epsilon_steps)
        self._rng = generator(self.seed)
        self._n_acts = 0
        self._encounter: deque[_Step] = deque()
        self._possible: npt.NDArray[np.bool_] | None = None
        # what was acted on, as it was then: an environment may write the next observation into the same array
        self._acted_on: tuple[Any, Situation, float] | None = None

    @property
    def exploration_rate(self) -> float:
        """Probability that the next action is a uniform one."""
        start, floor, steps = self._epsilon
        return max(floor, start * steps / (steps + self._n_acts))

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Outcomes that were still to come are lost with their episode."""
        self._ledger.clear()
        self._encounter.clear()
        self._heed(info)

    def act(self, observation: Any) -> int:
        """The best possible action, ties at random; a uniform one with the probability of the schedule."""
        situation = self._situation(observation)
        values = self._possible_values(situation)
        best = float(values.max())
        self._acted_on = (observation, situation, best)
        epsilon = self.exploration_rate
        self._n_acts += 1
        is_random = self._rng.random() < epsilon
        chosen = np.flatnonzero(values > -np.inf) if is_random else np.flatnonzero(values == best)
        return int(chosen[0] if len(chosen) == 1 else self._rng.choice(chosen))

    def observe(self, transition: Transition) -> None:
        """Remember the returns that this step completes: of the encounter, or of earlier decisions."""
        self._check_outcomes(transition)
        acted_on, self._acted_on = self._acted_on, None
        if acted_on is None or acted_on[0] is not transition.observation:
            situation = self._situation(transition.observation)
            acted_on = (transition.observation, situation, float(self._possible_values(situation).max()))
        case = _Case(acted_on[1], transition.action)
        settled = self._ledger.settle(case, transition)
        self._encounter.append(_Step(case, settled.now, acted_on[2]))
        self._heed(transition.info)
        if transition.terminated or transition.info.get("boundary", False):
            self._remember(0.0, len(self._encounter))
        elif transition.truncated:
            self._remember(self._best(transition.next_observation), len(self._encounter))
        elif len(self._encounter) >= self.n_steps:
            self._remember(self._best(transition.next_observation), 1)
        for earlier, reward in settled.late:
            self._write(earlier, reward)

    def values(self, observation: Any) -> FloatArray:
        """[A] f64: current estimates, in units of reward."""
        situation = self._situation(observation)
        return situation.stake * self.memory.values(situation)

    def _greedy(self, observation: Any) -> int:
        return int(np.argmax(self.values(observation)))

    def _remember(self, follow: float, n: int) -> None:
        """Write the returns of the first `n` steps of the encounter at hand, of which `follow` is still to come."""
        returns: list[float | None] = []
        for step in reversed(self._encounter):
            returns.append(None if step.reward is None else step.reward + self.gamma * follow)
            follow = step.best if step.reward is None else step.reward + self.gamma * follow
        for value in returns[: -n - 1 : -1]:
            case = self._encounter.popleft().case
            if value is not None:
                self._write(case, value)

    def _write(self, case: _Case, value: float) -> None:
        self.memory.write(case.action, case.situation, value / case.situation.stake)

    def _best(self, observation: Any) -> float:
        """Value of the best action that is possible now, in units of reward."""
        return float(self._possible_values(self._situation(observation)).max())

    def _possible_values(self, situation: Situation) -> FloatArray:
        """[A] f64 in units of reward; -inf for what the last `info` says is impossible."""
        values = situation.stake * self.memory.values(situation)
        return values if self._possible is None else np.where(self._possible, values, -np.inf)

    def _heed(self, info: Mapping[str, Any]) -> None:
        """Take note of which actions are possible; a mask that allows none is no help."""
        mask = info.get("action_mask") if self._use_mask else None
        possible = None if mask is None else np.asarray(mask, bool)
        self._possible = possible if possible is not None and possible.any() and not possible.all() else None

    def _situation(self, observation: Any) -> Situation:
        features = self._encoder.encode(observation)
        counts = (self._weights[features.nodes] > 0) & (features.activation != 0)
        stake = features.stake if self._use_stake else 1.0
        return Situation(features.nodes[counts], features.activation[counts], stake)


def _check_shares(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise ValueError(f"`{name}` must lie in [0, 1], got {value}.")


def _check_sizes(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"`{name}` must be at least 0, got {value}.")
