"""A memory small enough to work out by hand, random lives in it, and the same learner again in slow float64 NumPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import structure as structures
from habitus.cognition.learning import recall as recalling
from habitus.cognition.learning import resting

# actions: 0 and 1 have edges of their own, 2 pays .5 of what 1 pays, 3 deliberates
COLUMNS, FACTORS, DELIBERATION = (0, 1, 1, 2), (1.0, 1.0, 0.5, 1.0), (False, False, False, True)
# positions: bias, two fields of three values each, the entity (0 = unknown); then the last and the first own action
FIELDS = ((0, 1), (1, 3), (4, 3), (7, 5))  # first node and values of each
CODED = (0, 1, 2, 4, 5)
NEVER_EXPLORES = np.array([2**32 - 1, 0], np.uint32)

COMPILED = SimpleNamespace(  # one function of each kind for all tests, so that equal structures are compiled once
    step=jax.jit(cognition.step, static_argnums=3),
    observe=jax.jit(cognition.observe, static_argnums=2),
    attend=jax.jit(cognition.attend, static_argnums=3),
    begin=jax.jit(cognition.begin, static_argnums=3),
    evaluate=jax.jit(cognition.evaluate, static_argnums=2),
    recall=jax.jit(recalling.recall, static_argnums=2),
    rest=jax.jit(resting.rest, static_argnums=3),
)


def small_structure(config: cognition.Config | None = None, **changes: Any) -> cognition.Structure:
    """Everything that a configuration asks for, on twelve nodes of context."""
    config = config or cognition.Config(ledger_capacity=16, prototypes=3)
    context = tuple(range(7)) + tuple(range(12, 22))
    settings: dict[str, Any] = dict(
        n_context=12,
        n_base=4,
        columns=COLUMNS,
        factors=FACTORS,
        deliberation=DELIBERATION,
        common=CODED if config.common and config.bootstraps else (),
        encounter=True,
        advice=True,
        prototypes=config.prototypes,
        crossed=CODED if config.prototypes else (),
        crossed_nodes=context if config.prototypes else (),
        n_entities=5,
        behaviours=(cognition.Behaviour(2, 3), cognition.Behaviour(1, 4)) if config.prototypes else (),
        paired=CODED[1:],
        **structures.switches(config),
    )
    return cognition.Structure(**{**settings, **changes})


def random_situation(structure: cognition.Structure, rng: np.random.Generator) -> cognition.Situation:
    """Anything that an encoder, an adviser and a world with masks could show."""
    codes = [int(rng.integers(n)) for _, n in FIELDS]
    activation = rng.choice([0.0, 1.0, 1.0, 0.5, -0.7], len(FIELDS))
    activation[0] = 1.0
    mask = rng.random(structure.n_actions) < 0.8
    mask[rng.integers(structure.n_actions)] = True
    return cognition.Situation(
        np.array([first + code for (first, _), code in zip(FIELDS, codes, strict=True)], np.int32),
        activation.astype(np.float32),
        np.float32(rng.uniform(0.2, 3.0)),
        np.int32(codes[-1]),
        np.int32(rng.integers(-1, structure.n_actions)),
        mask,
    )


def random_experiences(structure: cognition.Structure, n_steps: int, seed: int) -> list[cognition.Experience]:
    """A life in which anything happens: outcomes late, out of order or never, opinions, behaviour, paths off."""
    rng = np.random.default_rng(seed)
    waiting: list[int] = []
    life, first = [], 0
    firsts = [first := first + n for n in (0, *(t.n_contexts * t.n_symbols for t in structure.behaviours[:-1]))]
    for t in range(n_steps):
        arrived = []
        for _ in range(structure.feedback_slots):
            if waiting and rng.random() < 0.1:
                arrived.append(waiting.pop(int(rng.integers(len(waiting)))))
        ids = np.full(structure.feedback_slots, -1, np.int32)
        ids[: len(arrived)] = arrived
        is_pending = rng.random() < 0.45
        if is_pending:
            waiting.append(t)
        seen = [
            first + int(rng.integers(table.n_contexts)) * table.n_symbols + int(rng.integers(1, table.n_symbols))
            for first, table in zip(firsts, structure.behaviours, strict=False)
        ]
        life.append(
            cognition.Experience(
                action=np.int32(rng.integers(structure.n_actions)),
                reward=np.float32(rng.uniform(-1, 1.2)),
                is_boundary=np.bool_(rng.random() < 0.3),
                decision_id=np.int32(t if is_pending else -1),
                feedback_id=ids,
                feedback_value=np.where(ids >= 0, rng.uniform(-1, 1, len(ids)), 0).astype(np.float32),
                opinion_action=np.int32(rng.choice([-1, 1, 2])),
                opinion=np.float32(rng.uniform(-1.2, 1.2)),
                seen=np.where(rng.random(len(seen)) < 0.7, np.array(seen, np.int32), -1).astype(np.int32),
                following=random_situation(structure, rng),
            )
        )
    return life


class Reference:
    """The learner written for reading: float64, loops, edges looked up one by one. Its state is compared, not its code.

    What it is given is the opinion about entities (which prototype each is of); what it leaves out are conjunctions,
    cases and regimes, which are tested on their own.
    """

    def __init__(self, structure: cognition.Structure, config: cognition.Config, style: cognition.Style) -> None:
        self.s, self.c, self.style = structure, config, style
        shape = (structure.n_nodes, structure.width)
        self.gain, self.loss = np.zeros(shape), np.zeros(shape)
        self.variance = np.full(shape, float(np.float32(config.variance)))
        self.uses, self.last = (np.full((structure.n_nodes, structure.n_columns), n) for n in (0, -1))
        self.waiting: dict[int, Any] = {}
        self.own = (0, 0)  # last and first own action, plus 1
        self.trace: list[list[tuple[int, int, float]]] = []  # newest first: node, column, step
        self.mean, self.greedy, self.paths = 0.0, 0, cognition.Paths(np.zeros(0, int), np.zeros(0), 1.0)
        self.t = self.version = self.overwritten = self.unmatched = 0

    def recall(self, seen: cognition.Situation, opinion: np.ndarray) -> cognition.Paths:
        s, n_own = self.s, self.s.n_actions + 1
        nodes = [*seen.nodes, s.n_context + self.own[0], s.n_context + n_own + self.own[1]]
        on = [*seen.activation, 1.0, 1.0]
        observed = list(zip(nodes, on, strict=True))
        nodes.append(s.n_context + 2 * n_own + max(int(seen.advice), 0))
        c, is_new = self.c, self.c.trust_steps / (self.c.trust_steps + self.t)
        on.append((c.trust_floor + (1 - c.trust_floor) * is_new) * (seen.advice >= 0))
        first = s.n_context + 2 * n_own + s.n_actions
        likely = sorted(range(s.prototypes), key=lambda z: -np.round(opinion[seen.entity, z] * 1024))[:2]
        for z in likely:
            belief = float(opinion[seen.entity, z])
            belief = belief if belief >= 0.15 and seen.entity > 0 else 0.0
            for position in s.crossed:
                node, x = observed[position]
                nodes.append(first + s.crossed_nodes.index(node) * s.prototypes + z)
                on.append((min(x, belief) if belief else 0.0) if s.gate else 0.5 * (x + belief))
        return cognition.Paths(np.array(nodes), np.array(on, float), float(seen.stake))

    def terms(self, paths: cognition.Paths, action: int) -> list[tuple[int, int, float]]:
        """Node, column and activation of all edges from paths to an action."""
        k, x = paths.nodes, paths.activation
        own = [(int(k[i]), self.s.columns[action], float(x[i])) for i in range(len(k))]
        return own + [(int(k[i]), self.s.n_columns, float(x[i])) for i in self.s.common]

    def evaluate(self, paths: cognition.Paths) -> tuple[np.ndarray, ...]:
        gain, loss, sd = (np.zeros(self.s.n_actions) for _ in range(3))
        for a in range(self.s.n_actions):
            terms, n_own = self.terms(paths, a), len(paths.nodes)
            weights = [x for _, _, x in terms]
            if self.s.rule == "beta":
                precise = [abs(x) / self.variance[k, c] for k, c, x in terms[:n_own]]
                weights[:n_own] = [p / sum(precise) for p in precise]
            for (k, c, _), weight in zip(terms, weights, strict=True):
                gain[a] += weight * self.gain[k, c]
                loss[a] += weight * self.loss[k, c]
            sd[a] = np.sqrt(sum(x * x * self.variance[k, c] for k, c, x in terms[:n_own]))
        scale = paths.stake * np.array(self.s.factors)
        gain, loss, sd = scale * gain, scale * loss, scale * sd
        score = gain - (1 + self.style.risk) * loss
        curiosity = self.c.curiosity + self.style.curiosity
        bonus = curiosity * sd + self.style.caution * sd[score.argmax()] * np.array(self.s.deliberation)
        return gain, loss, score, sd, score + bonus

    def changes(self, terms: list[tuple[int, int, float]], gain: float, loss: float, noise: float) -> list[Any]:
        """Per edge: share of the error, changes of gain, loss and variance."""
        total = sum(x * x for _, _, x in terms)
        uncertain = sum(x * x * self.variance[k, c] for k, c, x in terms)
        errors = [y - sum(x * w[k, c] for k, c, x in terms) for y, w in ((gain, self.gain), (loss, self.loss))]
        found = []
        for k, c, x in terms:
            v, old = self.variance[k, c], (self.gain[k, c], self.loss[k, c])
            step, new_v = 0.0, v
            if self.s.rule in ("hebb", "hebb_advantage"):
                rate = self.c.learning_rate * abs(x)
                new = [
                    w + rate * (y * (1 - w) - z * w) for w, y, z in zip(old, (gain, loss), (loss, gain), strict=True)
                ]
            elif self.s.rule == "beta":
                new_v = 1 / (1 / v + abs(x))
                new = [w + new_v * abs(x) * (y - w) for w, y in zip(old, (gain, loss), strict=True)]
            else:
                if self.s.rule == "kalman":
                    step = v * x / (noise + uncertain)
                    new_v = v * (1 - step * x)
                elif self.s.rule == "count":
                    step = v * x / max(1.0, uncertain)
                    new_v = 1 / (1 / v + x * x)
                else:
                    step = self.c.learning_rate * x / total
                new = [w + step * error for w, error in zip(old, errors, strict=True)]
            if self.s.rule != "beta":
                new = np.clip(new, -1 if self.s.signed else 0, 1)
            found.append((step, new[0] - old[0], new[1] - old[1], new_v - v))
        return [errors, found]

    def add(self, terms: list[tuple[int, int, float]], found: list[Any]) -> None:
        for (k, c, _), (_, gain, loss, variance) in zip(terms, found, strict=True):
            self.gain[k, c] += gain
            self.loss[k, c] += loss
            self.variance[k, c] += variance

    def targets(self, outcome: float, paths: cognition.Paths, action: int, follow: Any = (0, 0)) -> tuple[float, float]:
        outcome -= self.mean * (self.s.rule == "hebb_advantage")
        cost = max(self.mean, 0.0) * self.s.average_reward
        scale = paths.stake * self.s.factors[action]
        return (max(outcome, 0) + follow[0]) / scale, (max(-outcome, 0) + cost + follow[1]) / scale

    def learn(self, paths: cognition.Paths, action: int, gain: float, loss: float, noise: float) -> None:
        self.version += 1
        terms = self.terms(paths, action)
        self.add(terms, self.changes(terms, gain, loss, noise)[1])

    def own_lesson(self, e: cognition.Experience, follow: tuple[float, float]) -> None:
        decay = self.c.gamma * self.c.trace_decay * (not self.s.cuts or int(e.action) == self.greedy)
        self.trace = [[(k, c, share * decay) for k, c, share in row] for row in self.trace]
        terms, newest = self.terms(self.paths, int(e.action)), []
        if e.decision_id < 0:
            self.version += 1
            gain, loss = self.targets(float(e.reward), self.paths, int(e.action), follow)
            (of_gain, of_loss), found = self.changes(terms, gain, loss, self.c.noise)
            newest = [(k, c, changed[0]) for (k, c, _), changed in zip(terms, found, strict=True)]
            self.add(terms, found)
            for k, c, share in (edge for row in self.trace for edge in row):
                self.gain[k, c] += share * of_gain
                self.loss[k, c] += share * of_loss
        self.trace = [] if e.is_boundary else [newest, *self.trace][: self.s.traces - 1]

    def step(self, e: cognition.Experience, opinion: np.ndarray) -> None:
        """One step; `opinion` [E, Z] as it is after what the entity did."""
        action, first = int(e.action), self.own[1] or int(e.action) + 1
        self.own = (0, 0) if e.is_boundary else (action + 1, first)
        self.t += 1
        following, follow = self.recall(e.following, opinion), (0.0, 0.0)
        if self.s.bootstraps and not e.is_boundary:
            gain, loss, score, _, _ = self.evaluate(following)
            best = np.where(e.following.mask, score, -np.inf).argmax()
            follow = (self.c.gamma * gain[best], self.c.gamma * loss[best])
        self.own_lesson(e, follow)
        if e.opinion_action >= 0:
            y, noise = float(e.opinion) / self.s.factors[e.opinion_action], self.c.noise * self.c.opinion_noise
            self.learn(self.paths, int(e.opinion_action), max(y, 0), max(-y, 0), noise)
        paid = float(e.reward) * (e.decision_id < 0)
        for arrived, value in zip(e.feedback_id, e.feedback_value, strict=True):
            slot = int(arrived) % self.s.ledger_capacity
            if arrived >= 0 and slot in self.waiting and self.waiting[slot][0] == arrived:
                _, paths, past, reward = self.waiting.pop(slot)
                self.learn(paths, past, *self.targets(reward + float(value), paths, past), self.c.noise)
                paid += reward + float(value)
            elif arrived >= 0:
                self.unmatched += 1
        if e.decision_id >= 0:
            slot = int(e.decision_id) % self.s.ledger_capacity
            self.overwritten += slot in self.waiting
            self.waiting[slot] = (int(e.decision_id), self.paths, action, float(e.reward))
        for k, x in zip(self.paths.nodes, self.paths.activation, strict=True):
            if x != 0:
                self.uses[k, self.s.columns[action]] += 1
                self.last[k, self.s.columns[action]] = self.t - 1
        self.mean += max(1 / (self.t + 19), 1 / 2000) * (paid - self.mean)
        self.paths = following
        self.greedy = int(np.where(e.following.mask, self.evaluate(following)[4], -np.inf).argmax())


def start(
    structure: cognition.Structure, config: cognition.Config, seen: cognition.Situation, **style: float
) -> cognition.State:
    """A new learner that attends to what is `seen`."""
    variances = np.full(structure.n_nodes, config.variance, np.float32)
    state = cognition.initial_state(cognition.initial_edges(structure, variances), structure)
    params = cognition.params_of(config, cognition.Style(**style))
    return cognition.begin(state, seen, jnp.asarray(NEVER_EXPLORES), structure, params)


def with_random_edges(state: cognition.State, rng: np.random.Generator) -> cognition.State:
    """The same learner with strengths as after a long life."""
    net = jnp.asarray(rng.uniform(-0.5, 0.5, state.edges.net.shape), jnp.float32)
    variance = jnp.asarray(rng.uniform(0.01, 0.1, state.edges.variance.shape), jnp.float32)
    return dataclasses.replace(state, edges=dataclasses.replace(state.edges, net=net, variance=variance))


@pytest.fixture(scope="session")
def kept_life() -> tuple[cognition.State, cognition.Structure]:
    """A learner after 80 steps in which anything happened, and its structure."""
    config = cognition.Config(variance=0.2, ledger_capacity=16, prototypes=3)
    shape = small_structure(config)
    params = cognition.params_of(config, cognition.Style())
    state = start(shape, config, random_situation(shape, np.random.default_rng(3)))
    for experience in random_experiences(shape, 80, seed=0):
        state = COMPILED.step(state, experience, NEVER_EXPLORES, shape, params)
    return state, shape


@pytest.fixture
def compiled() -> SimpleNamespace:
    return COMPILED


@pytest.fixture
def structure() -> Callable[..., cognition.Structure]:
    return small_structure


@pytest.fixture
def experiences() -> Callable[..., list[cognition.Experience]]:
    return random_experiences


@pytest.fixture
def situation() -> Callable[..., cognition.Situation]:
    return random_situation


@pytest.fixture
def reference() -> type[Reference]:
    return Reference


@pytest.fixture
def begun() -> Callable[..., cognition.State]:
    return start


@pytest.fixture
def randomised() -> Callable[..., cognition.State]:
    return with_random_edges
