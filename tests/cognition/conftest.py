"""A memory small enough to work out by hand, random lives in it, and the same learner again in slow float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition

# actions: 0 and 1 have edges of their own, 2 pays .5 of what 1 pays, 3 deliberates
COLUMNS, FACTORS, DELIBERATION = (0, 1, 1, 2), (1.0, 1.0, 0.5, 1.0), (False, False, False, True)


BEGIN = jax.jit(cognition.begin, static_argnums=3)


def small_structure(**changes: Any) -> cognition.Structure:
    settings: dict[str, Any] = dict(
        n_nodes=12, n_paths=4, columns=COLUMNS, factors=FACTORS, deliberation=DELIBERATION, ledger_capacity=16
    )
    return cognition.Structure(**{**settings, **changes})


def random_experiences(structure: cognition.Structure, n_steps: int, seed: int) -> list[cognition.Experience]:
    """A life in which anything happens: outcomes late, out of order or never, opinions, paths switched off."""
    rng = np.random.default_rng(seed)
    waiting: list[int] = []
    life = []
    for t in range(n_steps):
        arrived = []
        for _ in range(structure.feedback_slots):
            if waiting and rng.random() < 0.15:
                arrived.append(waiting.pop(int(rng.integers(len(waiting)))))
        ids = np.full(structure.feedback_slots, -1, np.int32)
        ids[: len(arrived)] = arrived
        is_pending = rng.random() < 0.4
        if is_pending:
            waiting.append(t)
        life.append(
            cognition.Experience(
                action=np.int32(rng.integers(structure.n_actions)),
                reward=np.float32(rng.uniform(-1, 1)),
                is_boundary=np.bool_(rng.random() < 0.6),
                decision_id=np.int32(t if is_pending else -1),
                feedback_id=ids,
                feedback_value=np.where(ids >= 0, rng.uniform(-1, 1, len(ids)), 0).astype(np.float32),
                opinion_action=np.int32(rng.choice([-1, 1])),
                opinion=np.float32(rng.uniform(-1.2, 1.2)),
                next_paths=random_paths(structure, rng),
            )
        )
    return life


def random_paths(structure: cognition.Structure, rng: np.random.Generator) -> cognition.Paths:
    others = rng.choice(np.arange(1, structure.n_nodes), structure.n_paths - 1, replace=False)
    activation = rng.choice([0.0, 1.0, 0.5, -0.7], structure.n_paths)
    activation[0] = 1.0
    index = np.concatenate([[0], others]).astype(np.int32)
    return cognition.Paths(index, activation.astype(np.float32), np.float32(rng.uniform(0.2, 3.0)))


class Reference:
    """The learner written for reading: float64, dictionaries and loops. Its state is compared, not its code."""

    def __init__(self, structure: cognition.Structure, config: cognition.Config, style: cognition.Style) -> None:
        self.s, self.c, self.style = structure, config, style
        shape = (structure.n_nodes, structure.n_columns)
        self.gain, self.loss = np.zeros(shape), np.zeros(shape)
        self.variance = np.full(shape, float(np.float32(config.variance)))
        self.uses, self.last = np.zeros(shape, int), np.full(shape, -1)
        self.waiting: dict[int, Any] = {}
        self.paths: Any = None
        self.t = self.version = self.overwritten = self.unmatched = 0

    def evaluate(self, paths: Any) -> tuple[np.ndarray, ...]:
        gain, loss, sd = np.zeros(self.s.n_actions), np.zeros(self.s.n_actions), np.zeros(self.s.n_actions)
        for a, (column, factor) in enumerate(zip(self.s.columns, self.s.factors, strict=True)):
            for k, x in zip(paths.nodes, paths.activation, strict=True):
                gain[a] += paths.stake * factor * x * self.gain[k, column]
                loss[a] += paths.stake * factor * x * self.loss[k, column]
                sd[a] += x * x * self.variance[k, column]
            sd[a] = paths.stake * factor * np.sqrt(sd[a])
        score = gain - (1 + self.style.risk) * loss
        bonus = self.style.curiosity * sd + self.style.caution * sd[score.argmax()] * np.array(self.s.deliberation)
        return gain, loss, score, sd, score + bonus

    def learn(self, paths: Any, action: int, gain: float, loss: float, noise: float) -> None:
        self.version += 1
        column, x = self.s.columns[action], np.asarray(paths.activation, float)
        k = np.asarray(paths.nodes)
        if self.s.rule == "kalman":
            weighted = self.variance[k, column] * x
            step = weighted / (noise + (weighted * x).sum())
            self.variance[k, column] -= step * weighted
        else:
            step = self.c.learning_rate * x / (x * x).sum()
        for table, target in ((self.gain, gain), (self.loss, loss)):
            error = target - (x * table[k, column]).sum()
            table[k, column] = np.clip(table[k, column] + step * error, -1, 1)

    def outcome(self, paths: Any, action: int, value: float, follow: tuple[float, float] = (0, 0)) -> None:
        scale = float(paths.stake) * self.s.factors[action]
        gain, loss = (max(value, 0) + follow[0]) / scale, (max(-value, 0) + follow[1]) / scale
        self.learn(paths, action, gain, loss, self.c.noise)

    def step(self, e: cognition.Experience) -> None:
        action, follow = int(e.action), (0.0, 0.0)
        if not e.is_boundary:
            gain, loss, score, _, _ = self.evaluate(e.next_paths)
            follow = (self.c.gamma * gain[score.argmax()], self.c.gamma * loss[score.argmax()])
        if e.opinion_action >= 0:
            y = float(e.opinion)
            self.learn(self.paths, int(e.opinion_action), max(y, 0), max(-y, 0), self.c.noise * self.c.opinion_noise)
        if e.decision_id < 0:
            self.outcome(self.paths, action, float(e.reward), follow)
        for arrived, value in zip(e.feedback_id, e.feedback_value, strict=True):
            slot = int(arrived) % self.s.ledger_capacity
            if arrived >= 0 and slot in self.waiting and self.waiting[slot][0] == arrived:
                _, paths, past, reward = self.waiting.pop(slot)
                self.outcome(paths, past, reward + float(value))
            elif arrived >= 0:
                self.unmatched += 1
        if e.decision_id >= 0:
            slot = int(e.decision_id) % self.s.ledger_capacity
            self.overwritten += slot in self.waiting
            self.waiting[slot] = (int(e.decision_id), self.paths, action, float(e.reward))
        for k, x in zip(self.paths.nodes, self.paths.activation, strict=True):
            if x != 0:
                self.uses[k, self.s.columns[action]] += 1
                self.last[k, self.s.columns[action]] = self.t
        self.paths = e.next_paths
        self.t += 1


def start(structure: cognition.Structure, config: cognition.Config, paths: Any) -> cognition.State:
    """A new learner that attends to `paths`."""
    variances = np.full(structure.n_nodes, config.variance, np.float32)
    state = cognition.initial_state(cognition.initial_edges(structure, variances), structure)
    noise = jnp.array([2**32 - 1, 0], jnp.uint32)  # never explores
    return BEGIN(state, paths, noise, structure, cognition.params_of(config, cognition.Style()))


@pytest.fixture
def structure() -> Callable[..., cognition.Structure]:
    return small_structure


@pytest.fixture
def experiences() -> Callable[..., list[cognition.Experience]]:
    return random_experiences


@pytest.fixture
def paths() -> Callable[..., cognition.Paths]:
    return random_paths


@pytest.fixture
def reference() -> type[Reference]:
    return Reference


@pytest.fixture
def begun() -> Callable[..., cognition.State]:
    return start
