"""The cognitive substrate as a learner: the memory of `habitus.cognition` in an environment."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, get_args

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .. import __version__
from ..cognition import config as configs
from ..cognition import decision as decisions
from ..cognition import edges as edge_tables
from ..cognition import learner, memory, persistence, stepping
from ..cognition.config import Config, Rule, Structure
from ..cognition.decision import Decision
from ..cognition.errors import MismatchError
from ..cognition.memory import Memory
from ..cognition.style import Style, style_of
from . import arguments, defaults, saved
from .base import Transition
from .credit import Credit
from .declared import DeclaredSchema, schema_of, verdict_value
from .features import FeatureEncoder, Features, Rank
from .online import OnlineAgent, later_seed


class _Attended(NamedTuple):
    """The observation that the learner's state is about, and what it chose for it.

    The choice stays on the device until `act` asks for it, so that learning goes on while the caller does other things.
    """

    observation: Any
    features: Features
    action: jax.Array


class Substrate(OnlineAgent):
    """Learns which observed facts speak for and against each action, and decides by that evidence.

    Each value of each observed field is a node; its edges to the actions carry expected gain and expected loss. The
    score of an action is the sum over the nodes that are on, so that `decide` can say exactly what a decision is made
    of. An outcome changes only the edges that led to its decision, also when it arrives much later.

    What a world declares in its schema is used, and nothing else is known of it: a stake (outcomes are learnt per unit
    of it), scaled actions (they share edges), a review (its verdict teaches the action it is about), deliberation
    actions.

    Args:
        env: environment with a Discrete action space that starts at 0.
        style: a preset ("balanced", "cautious", "exploratory", "risk_averse", "risk_seeking"), a mapping of parameters,
            or a `Style`.
        seed: seed of the agent's own choices and of the environment's first reset in `learn`.
        rule: "kalman" or "nlms".
        credit: "attributed" (a delayed outcome is credited to its decision) or "stream" (every step learns from the
            reward it brings).
        rank: form of the rank nodes of numbers.
        masked: fields that the agent must not see.
        use_stake: learn outcomes per unit of the declared stake.
        share_scaled: let declared scaled actions share edges.
        use_review: learn from declared verdicts.
        **settings: fields of `habitus.cognition.Config`; their defaults depend on whether the world declares economics.
            Where an environment declares no schema, `reward_bound` is to be set; a larger reward warns once.

    Raises:
        TypeError: an action or observation space that cannot be used, an unknown setting, or one of another type.
        ValueError: a setting out of its range.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        style: str | Mapping[str, float] | Style = "balanced",
        seed: int = 0,
        rule: Rule = "kalman",
        credit: Credit = "attributed",
        rank: Rank = "signed",
        masked: Sequence[str] = (),
        use_stake: bool = True,
        share_scaled: bool = True,
        use_review: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(env, seed=seed)
        if credit not in get_args(Credit):
            raise ValueError(f"`credit` must be one of {list(get_args(Credit))}, got {credit!r}.")
        arguments.switches(use_stake=use_stake, share_scaled=share_scaled, use_review=use_review)
        schema = schema_of(env)
        self.credit: Credit = credit
        self.style = style_of(style)
        self._encoder = FeatureEncoder(env.observation_space, schema, rank=rank, masked=masked)
        self._options = {
            "rank": rank,
            "masked": list(masked),
            "use_stake": use_stake,
            "share_scaled": share_scaled,
            "use_review": use_review,
        }
        self._use_stake = use_stake
        self._actions = tuple(schema.actions) if schema else tuple(str(a) for a in range(self.n_actions))
        self._review = schema.review if schema and use_review else None
        self._about = self._actions.index(self._review.about) if self._review else configs.NO_ACTION
        self._pays_on_arrival = schema is not None and schema.feedback == "stream"
        self.config = defaults.config_of(schema, rule, settings)
        self._structure = _structure(schema, self.config, self._encoder, self.n_actions, share_scaled=share_scaled)
        self._stepper = stepping.stepper(self._structure)
        self._params = stepping.pack_params(configs.params_of(self.config, self.style))
        edges = edge_tables.initial_edges(
            self._structure, configs.node_variances(self.config, self._encoder.kinds), self._bias_gain()
        )
        self._buffers = stepping.pack(learner.initial_state(edges, self._structure))
        self._is_scale_known = schema is not None
        self._choices = 0  # made so far; numbers the random words
        self._noise: npt.NDArray[np.uint32] | None = None
        self._attended: _Attended | None = None

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """A new episode starts; outcomes that were still to come are forgotten with the old one."""
        features = self._encode(observation)
        self._buffers, action = self._stepper.begin(self._buffers, self._params, self._row(features))
        self._attended = _Attended(observation, features, action)

    def act(self, observation: Any) -> int:
        """Choose an action, at times a random one (`Config.eps0`)."""
        return int(self._attend(observation).action)

    def observe(self, transition: Transition) -> None:
        """Learn from one step and choose the next action, in one compiled call."""
        self._check_outcomes(transition)
        self._check_scale(transition.reward)
        info = transition.info
        self._attend(transition.observation)
        features = self._encode(transition.next_observation)
        bound, n_slots = self.config.reward_bound, self._structure.feedback_slots
        reward, decision_id = transition.reward, configs.NO_DECISION
        arrived: list[tuple[int, float]] = []
        if self.credit == "attributed":
            decision_id = int(info.get("decision_id", configs.NO_DECISION))
            for arrived_id, value in info.get("feedback", ()):
                # a reward that was paid on arrival belongs to its decision, not to this one
                late = float(value) if self._pays_on_arrival else 0.0
                reward -= late
                arrived.append((int(arrived_id), late / bound))
        n_early = max(0, len(arrived) - n_slots)
        for outcome in arrived[:n_early]:
            self._buffers = self._stepper.credit(self._buffers, self._params, stepping.outcome_row(*outcome))
        opinion = None
        if self._review is not None:
            value_of_about = verdict_value(self._review, info.get(self._review.signal, ""))
            if value_of_about is not None:
                opinion = (self._about, value_of_about / bound)
        row = stepping.experience_row(
            self._structure,
            self._row(features),
            action=transition.action,
            reward=reward / bound,
            is_boundary=bool(transition.terminated or info.get("boundary", False)),
            decision_id=decision_id,
            feedback=arrived[n_early:],
            opinion=opinion,
        )
        self._buffers, action = self._stepper.step(self._buffers, self._params, row)
        self._attended = _Attended(transition.next_observation, features, action)

    def decide(self, observation: Any) -> Decision:
        """The greedy decision for an observation, with all its evidence. Learns nothing, writes nothing."""
        features = self._encode(observation)
        return decisions.decide(
            self._read(features),
            features.nodes,
            features.activation,
            features.stake,
            structure=self._structure,
            style=self.style,
            labels=self._encoder.labels,
            actions=self._actions,
        )

    @property
    def memory(self) -> Memory:
        """What has been learnt, as a snapshot that can be read."""
        state = self._state()
        return memory.memory_of(
            state.edges,
            self._structure,
            labels=self._encoder.labels,
            kinds=self._encoder.kinds,
            decisions=self._column_labels(),
            step=int(state.step),
            version=int(state.version),
        )

    @property
    def lost_feedback(self) -> dict[str, int]:
        """Decisions whose outcome can no longer be credited, counted by cause.

        "overwritten": more decisions waited than `ledger_capacity`; "unmatched": an outcome of a decision that was not
        waiting. Both are 0 in a world that keeps its contract.
        """
        ledger = self._state().ledger
        return {"overwritten": int(ledger.overwritten), "unmatched": int(ledger.unmatched)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the agent to a zip file (`.zip` is added where the path has no suffix). Returns the file written.

        Raises:
            FileNotFoundError: the folder does not exist.
            IsADirectoryError: the path is a folder.
        """
        leaves, _ = jax.tree.flatten_with_path(self._state())
        arrays = {saved.leaf_name(where): memory.host_copy(leaf) for where, leaf in leaves}
        header = {
            "format": saved.FILE_FORMAT,
            "habitus": __version__,
            **self._identity(),
            "settings": {"rule": self.config.rule, "credit": self.credit, **self._options, **saved.plain(self.config)},
            "style": dataclasses.asdict(self.style),
            "seed": self.seed,
            "choices": self._choices,
            "num_timesteps": self.num_timesteps,
        }
        return persistence.write(saved.target_of(path), header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], env: gymnasium.Env[Any, Any]) -> Self:
        """Read an agent that `save` wrote.

        What it has learnt, its style, settings, step counts and random choices go on as if it had never stopped. The
        episode does not: an environment is no part of the file. `learn` begins a new one, seeded from `seed` and the
        choices made so far, so that it brings fresh experience and the same each time; outcomes that the unfinished
        episode still owed are dropped. They are kept only where the caller drives the environment on in the same
        episode, with `act` and `observe`.

        Args:
            path: the file; `.zip` may be left out, as in `save`.
            env: an environment with the same observations and actions.

        Raises:
            FileNotFoundError: no such file.
            DamagedFileError, NewerFileError: the file cannot be read, and why.
            MismatchError: the file is of another agent than `env` asks for; says what differs.
        """
        path = saved.source_of(path)
        header, arrays = persistence.read(path)
        if header.get("format") != saved.FILE_FORMAT:
            raise MismatchError(f"{path} holds {header.get('format')!r}, expected {saved.FILE_FORMAT!r}.")
        saved.check_header(path, header)
        seen, expected_space = header["observation_space"], str(env.observation_space)
        if seen != expected_space:  # before settings that make sense for the other space only are refused
            raise MismatchError(saved.difference(path, "observation_space", seen, expected_space))
        agent = cls(env, style=header["style"], seed=header["seed"], **header["settings"])
        for name, expected in agent._identity().items():
            if header[name] != expected:
                raise MismatchError(saved.difference(path, name, header[name], expected))
        agent._buffers = stepping.pack(saved.filled(path, agent._state(), arrays))
        agent._choices, agent.num_timesteps = header["choices"], header["num_timesteps"]
        if agent._choices > 0:
            agent._first_seed = later_seed(agent.seed, agent._choices)
        return agent

    def _greedy(self, observation: Any) -> int:
        return int(np.argmax(np.asarray(self._read(self._encode(observation)).evidence.urge)))

    def _check_scale(self, reward: float) -> None:
        """Warn once where no schema says how large rewards are and they are larger than was assumed."""
        if self._is_scale_known or abs(reward) <= self.config.reward_bound:
            return
        self._is_scale_known = True
        warnings.warn(
            f"the reward {reward:g} exceeds `reward_bound` = {self.config.reward_bound:g}; noise, initial variance "
            "and optimism assume rewards within it. Set `reward_bound` to the largest reward of the environment in "
            "absolute value.",
            stacklevel=3,
        )

    def _attend(self, observation: Any) -> _Attended:
        """Make sure that the learner's state is about `observation`."""
        attended = self._attended
        if attended is not None and attended.observation is observation:
            return attended
        features = self._encode(observation)
        if attended is None:
            attended = self._restored(features, observation)
        if attended is None or not _equal(attended.features, features):
            self._buffers, action = self._stepper.attend(self._buffers, self._params, self._row(features))
            attended = _Attended(observation, features, action)
        self._attended = attended
        return attended

    def _restored(self, features: Features, observation: Any) -> _Attended | None:
        """The choice that a loaded state holds, if it is about `features`."""
        state = self._state()
        stored = Features(np.asarray(state.paths.nodes), np.asarray(state.paths.activation), float(state.paths.stake))
        return _Attended(observation, features, state.action) if _equal(stored, features) else None

    def _read(self, features: Features) -> stepping.Reading:
        quiet = np.zeros(2, np.uint32)
        row = stepping.paths_row(quiet, features.nodes, features.activation, features.stake)
        return self._stepper.read(self._buffers, self._params, row)

    def _row(self, features: Features) -> stepping.Row:
        """Paths of an observation with the random words of the next choice."""
        block, position = divmod(self._choices, stepping.NOISE_BLOCK)
        if self._noise is None or position == 0:
            words = stepping.noise_block(jnp.uint32(self.seed & 0xFFFFFFFF), jnp.uint32(block))
            self._noise = np.asarray(words)
        self._choices += 1
        return stepping.paths_row(self._noise[position], features.nodes, features.activation, features.stake)

    def _encode(self, observation: Any) -> Features:
        features = self._encoder.encode(observation)
        return features if self._use_stake else features._replace(stake=1.0)

    def _state(self) -> learner.State:
        return stepping.unpack(self._buffers, self._structure)

    def _bias_gain(self) -> npt.NDArray[np.float32]:
        """[C] f32: evidence of gain that every action starts with."""
        gain = np.full(self._structure.n_columns, self.config.optimism, np.float32)
        if self._review is not None:
            column = self._structure.columns[self._actions.index(self._review.action)]
            gain[column] += self.config.opinion_prior * self._review.gain / self.config.reward_bound
        return gain

    def _column_labels(self) -> list[str]:
        columns, factors = self._structure.columns, self._structure.factors
        owners = {c: label for c, f, label in zip(columns, factors, self._actions, strict=True) if f == 1.0}
        return [owners[column] for column in range(self._structure.n_columns)]

    def _identity(self) -> dict[str, Any]:
        """What an environment must have in common with a saved agent."""
        return {
            "observation_space": str(self._observation_space),
            "actions": list(self._actions),
            "nodes": list(self._encoder.labels),
            "columns": list(self._structure.columns),
            "factors": list(self._structure.factors),
        }


def _structure(
    schema: DeclaredSchema | None, config: Config, encoder: FeatureEncoder, n_actions: int, *, share_scaled: bool
) -> Structure:
    owner, factor = list(range(n_actions)), [1.0] * n_actions
    deliberation = [False] * n_actions
    if schema is not None:
        labels = list(schema.actions)
        deliberation = [label in schema.deliberation for label in labels]
        for scaled in schema.scaled_actions if share_scaled else ():
            action = labels.index(scaled.action)
            owner[action], factor[action] = labels.index(scaled.of), float(scaled.factor)
    column_of = {action: column for column, action in enumerate(sorted(set(owner)))}
    return Structure(
        n_nodes=encoder.n_nodes,
        n_paths=encoder.n_active,
        columns=tuple(column_of[action] for action in owner),
        factors=tuple(factor),
        deliberation=tuple(deliberation),
        ledger_capacity=config.ledger_capacity,
        feedback_slots=config.feedback_slots,
        rule=config.rule,
    )


def _equal(a: Features, b: Features) -> bool:
    same = np.array_equal(a.nodes, b.nodes) and np.array_equal(a.activation, b.activation)
    return same and np.float32(a.stake) == np.float32(b.stake)
