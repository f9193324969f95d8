"""The substrate inside a compiled loop: the same pure functions that it runs step by step, for thousands at once.

`player_of(agent, ...)` makes a player for `habitus.envs.rollout` of an agent that has not learnt yet. Each episode has
its own learner; seeds and numbers may differ between episodes, so that a whole study of seeds x styles x parameters is
one call. For the same seed actions are those of the agent in the scalar environment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ..cognition import learner, stepping
from ..cognition import ledger as ledgers
from ..cognition.config import NO_ACTION, NO_DECISION, NOTHING_SEEN
from ..cognition.edges import Edges
from ..cognition.learner import Experience, State
from ..cognition.learning import prototypes, resting
from ..cognition.params import Params, params_of
from ..cognition.situation import Situation
from ..cognition.structure import Structure
from . import arguments
from .declared import DeclaredSchema, verdict_value

if TYPE_CHECKING:
    from .substrate import Substrate

Array = jax.Array
BLOCK = 64
"""Learners that are stepped together: so many fit the cache, and no more share the cost of a kernel."""
PureAdviser = Callable[[Any], Array]
"""Names an action for an observation of arrays, within compiled code."""


class Carry(NamedTuple):
    """What an episode carries: the learner, and what it draws.

    Attributes:
        state: the learner, facing the observation at hand.
        choice: [] i32, number of its next choice.
        noise: [REST, 2] u32, random words of the choices between two rests.
    """

    state: State
    choice: Array
    noise: Array


@dataclasses.dataclass(frozen=True, eq=False)
class Senses:
    """How a world's steps become experience: constants of compiled code. One object is compiled once."""

    encode: Callable[[Any], Any]
    entity: Callable[[Any], Array]
    adviser: PureAdviser | None
    schema: DeclaredSchema | None
    structure: Structure
    reward_bound: float
    is_attributed: bool
    use_stake: bool
    use_mask: bool
    use_review: bool

    def situation(self, observation: Any, mask: Array) -> Situation:
        """What an observation shows."""
        features = self.encode(observation)
        advice = jnp.full((), NO_ACTION, jnp.int32) if self.adviser is None else self.adviser(observation)
        return Situation(
            features.nodes,
            features.activation,
            features.stake if self.use_stake else jnp.ones((), jnp.float32),
            self.entity(observation),
            advice.astype(jnp.int32),
            mask if self.use_mask else jnp.ones_like(mask),
        )

    def experience(self, seen: Any) -> Experience:
        """What a step brought; `seen` as in `habitus.envs.contract.Seen`."""
        outcome = seen.outcome
        reward, late = outcome.reward.astype(jnp.float32), jnp.zeros_like(outcome.feedback_value)
        decision_id, arrived = outcome.decision_id, outcome.feedback_id
        if not self.is_attributed:
            decision_id, arrived = jnp.full_like(decision_id, NO_DECISION), jnp.full_like(arrived, NO_DECISION)
        elif self.schema is not None and self.schema.feedback == "stream":
            late = jnp.where(arrived == NO_DECISION, 0.0, outcome.feedback_value)
            reward = reward - jnp.sum(late)
        about, opinion = self._opinion(outcome.signals)
        return Experience(
            action=seen.action.astype(jnp.int32),
            reward=reward / self.reward_bound,
            is_boundary=outcome.terminated | outcome.boundary,
            decision_id=decision_id,
            feedback_id=arrived,
            feedback_value=late / self.reward_bound,
            opinion_action=about,
            opinion=opinion / self.reward_bound,
            seen=self._behaviour(outcome.signals),
            following=self.situation(seen.following, seen.mask),
        )

    def _behaviour(self, signals: dict[str, Array]) -> Array:
        """[S] i32 cells of what the entity did."""
        firsts = prototypes.first_cells(self.structure)
        found = []
        tables = self.schema.behaviours if self.schema is not None and self.structure.behaviours else ()
        for one, table, first in zip(tables, self.structure.behaviours, firsts, strict=True):
            symbol, context = signals[one.symbol], signals[one.context]
            found.append(jnp.where(symbol > 0, first + context * table.n_symbols + symbol, NOTHING_SEEN))
        return jnp.stack(found).astype(jnp.int32) if found else jnp.zeros((0,), jnp.int32)

    def _opinion(self, signals: dict[str, Array]) -> tuple[Array, Array]:
        """[] i32 action that a verdict is about, [] f32 what it says that the action would pay."""
        none = jnp.full((), NO_ACTION, jnp.int32), jnp.zeros((), jnp.float32)
        review = self.schema.review if self.schema is not None and self.use_review else None
        if review is None or self.schema is None:
            return none
        labels = next(signal.labels for signal in self.schema.signals if signal.name == review.signal)
        values = [verdict_value(review, label) for label in labels]
        code = signals[review.signal]
        is_given = jnp.asarray([value is not None for value in values])[code]
        value = jnp.asarray([0.0 if value is None else value for value in values], jnp.float32)[code]
        about = list(self.schema.actions).index(review.about)
        return jnp.where(is_given, about, NO_ACTION).astype(jnp.int32), value


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SubstratePlayer:
    """A substrate as a pure player; `player_of` makes it.

    Attributes:
        seed: [N] u32, of each episode's agent.
        params: [N] each, numbers of each episode's agent.
        edges: before any lesson, the same for all.
        senses: how steps become experience.
        structure: shapes and code.
    """

    seed: Array
    params: Params
    edges: Edges
    senses: Senses = dataclasses.field(metadata={"static": True})
    structure: Structure = dataclasses.field(metadata={"static": True})

    @property
    def per_episode(self) -> tuple[str, ...]:
        """Fields with one entry per episode."""
        return ("seed", "params")

    @property
    def rest_every(self) -> int:
        """Steps between two rests."""
        return resting.REST

    @property
    def block(self) -> int:
        """Episodes that run together."""
        return BLOCK

    def initial(self, observation: Any, key: Array) -> Carry:
        """A learner that has seen nothing; it draws from its own seed and not from `key`."""
        everything = jnp.ones(self.structure.n_actions, jnp.bool_)  # what is possible `act` is told
        state = learner.initial_state(self.edges, self.structure)
        state = learner.face(state, self.senses.situation(observation, everything), self.structure)
        return Carry(state, jnp.zeros((), jnp.int32), self._noise(jnp.zeros((), jnp.int32)))

    def act(self, carry: Carry, turn: Any) -> tuple[Array, Carry]:
        """Choose for the observation that the learner faces."""
        state = carry.state
        if self.senses.use_mask:
            state = dataclasses.replace(state, situation=state.situation._replace(mask=turn.mask))
        noise = carry.noise[carry.choice % resting.REST]
        state = learner.decide(state, noise, self.structure, self.params)
        return state.action, carry._replace(state=state, choice=carry.choice + 1)

    def learn(self, carry: Carry, seen: Any) -> Carry:
        """Learn from the step, and turn to what follows."""
        experience = self.senses.experience(seen)
        return carry._replace(state=learner.follow(carry.state, experience, self.structure, self.params))

    def rest(self, carry: Carry, n_done: Array) -> Carry:
        """What is rare; then the observation at hand is looked at anew."""
        key = resting.key_of(self.seed, n_done)
        state = resting.rest(carry.state, n_done, key, self.structure, self.params)
        return Carry(learner.face(state, state.situation, self.structure), carry.choice, self._noise(carry.choice))

    def _noise(self, first: Array) -> Array:
        """[REST, 2] u32: random words of the choices from `first` on."""
        return jax.vmap(stepping.noise_of, in_axes=(None, 0))(
            self.seed, first + jnp.arange(resting.REST, dtype=jnp.int32)
        )


def player_of(
    agents: Substrate | Sequence[Substrate], *, feedback_slots: int, adviser: PureAdviser | None = None
) -> SubstratePlayer:
    """A player in which episode i has the seed, style and numbers of agent i.

    Args:
        agents: substrates that have not learnt yet, in environments of one world, alike but for seed, style and
            numbers.
        feedback_slots: outcomes that the world lists in a step; 0 where it never delays one, which saves the ledger.
        adviser: the agents' adviser as a pure function; needed if they have one.

    Raises:
        ValueError: there is no agent, one has learnt, or they differ in what is compiled.
        TypeError: agents have an adviser that was not given as a pure function, or the other way round.
    """
    one = list(agents) if isinstance(agents, Sequence) else [agents]
    if not one:
        raise ValueError("`agents` must be at least one Substrate, got none.")
    first = one[0].anatomy
    for i, agent in enumerate(one):
        if agent.lessons or agent.n_steps:
            raise ValueError(f"`agents[{i}]` has learnt already; compiled agents start blank, build a new one.")
        if agent.anatomy.structure != first.structure or not _alike(agent.anatomy.edges, first.edges):
            raise ValueError(
                f"`agents[{i}]` is built differently from `agents[0]`; compile them in a call of their own."
            )
    if first.structure.advice != (adviser is not None):
        raise TypeError(
            "`adviser` must be given as a pure function where the agents have one, and only there; "
            f"they have {'one' if first.structure.advice else 'none'}."
        )
    arguments.whole_number("feedback_slots", feedback_slots, 0)
    structure = dataclasses.replace(
        first.structure,
        feedback_slots=feedback_slots,
        ledger_capacity=first.structure.ledger_capacity if feedback_slots else 1,
    )
    senses = dataclasses.replace(first.senses, adviser=adviser, structure=structure)
    params = [params_of(agent.config, agent.style) for agent in one]
    seeds: npt.NDArray[np.uint32] = np.array([agent.seed & 0xFFFFFFFF for agent in one], np.uint32)
    return SubstratePlayer(
        seed=jnp.asarray(seeds),
        params=jax.tree.map(lambda *leaves: jnp.stack(leaves), *params),
        edges=first.edges,
        senses=senses,
        structure=structure,
    )


def lived(agent: Substrate, carry: Carry, episode: int) -> Substrate:
    """`agent`, knowing what its episode of a compiled run has taught it, to be asked and to decide.

    Outcomes that were still to come have gone with the episode.

    Args:
        agent: number `episode` of those that the player was made of.
        carry: of the players after the run, [N, ...] each.
        episode: its place.
    """
    state: State = jax.tree.map(lambda leaf: jnp.asarray(leaf[episode]), carry.state)
    blank = ledgers.initial_ledger(agent.anatomy.structure)  # its size is another in the compiled run
    agent._buffers = stepping.pack(dataclasses.replace(state, ledger=blank))
    return agent


class Anatomy(NamedTuple):
    """What a substrate is built of before it learns anything."""

    structure: Structure
    senses: Senses
    edges: Edges


def _alike(edges: Edges, other: Edges) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(edges), jax.tree.leaves(other), strict=True))
