"""The cognitive substrate as a learner: the memory of `habitus.cognition` in an environment."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
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
from ..cognition.config import Rule
from ..cognition.decision import Decision
from ..cognition.errors import MismatchError
from ..cognition.evidence import exploration_rate
from ..cognition.learning.resting import REST
from ..cognition.memory import Memory
from ..cognition.params import params_of
from ..cognition.style import Style, style_of
from . import arguments, defaults, reward_scale, saved
from .base import Transition
from .compiled import Anatomy, Senses
from .credit import Credit
from .declared import schema_of, verdict_value
from .encoding import BoxCode
from .features import FeatureEncoder, Features, Rank
from .online import OnlineAgent, later_seed
from .structures import BehaviourReader, node_words, structure_of

Adviser = Callable[[Any], int]
"""Names an action for an observation."""


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
        use_mask: keep away from actions that `info["action_mask"]` says are impossible.
        adviser: names an action for an observation, such as expert rules (`habitus.scenarios.expert_policy(env)`); its
            word is a node like any other, with an edge of gain `advice` to begin with. Not saved with the agent.
        box, joint, scales, n_bins: how observations are encoded, see `FeatureEncoder`.
        **settings: fields of `habitus.cognition.Config`; their defaults depend on what the world declares. Where an
            environment declares no schema and no `reward_bound` is given, the scale of rewards is learnt.

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
        use_mask: bool = True,
        adviser: Adviser | None = None,
        box: BoxCode = "auto",
        joint: bool | None = None,
        scales: Mapping[str, float] | None = None,
        n_bins: int = 8,
        **settings: Any,
    ) -> None:
        super().__init__(env, seed=seed)
        if adviser is not None and not callable(adviser):
            raise TypeError(f"`adviser` must be a function of an observation, got {adviser!r}.")
        if credit not in get_args(Credit):
            raise ValueError(f"`credit` must be one of {list(get_args(Credit))}, got {credit!r}.")
        arguments.switches(use_stake=use_stake, share_scaled=share_scaled, use_review=use_review, use_mask=use_mask)
        schema = schema_of(env)
        self.credit: Credit = credit
        self.style = style_of(style)
        encoding: dict[str, Any] = {"box": box, "joint": joint, "scales": dict(scales or {}), "n_bins": n_bins}
        self._encoder = FeatureEncoder(env.observation_space, schema, rank=rank, masked=masked, **encoding)
        self._options = {
            "rank": rank,
            "masked": list(masked),
            "use_stake": use_stake,
            "share_scaled": share_scaled,
            "use_review": use_review,
            "use_mask": use_mask,
            **encoding,
        }
        self._use_stake, self._use_mask, self._adviser = use_stake, use_mask, adviser
        self._actions = tuple(schema.actions) if schema else tuple(str(a) for a in range(self.n_actions))
        self._review = schema.review if schema and use_review else None
        self._about = self._actions.index(self._review.about) if self._review else configs.NO_ACTION
        self._pays_on_arrival = schema is not None and schema.feedback == "stream"
        self.config = defaults.config_of(schema, rule, settings, n_paths=self._encoder.n_active)
        self._structure = structure_of(
            schema,
            self.config,
            self._encoder,
            self.n_actions,
            share_scaled=share_scaled,
            has_adviser=adviser is not None,
        )
        self._behaviours = BehaviourReader(schema, self._structure)
        self._stepper = stepping.stepper(self._structure)
        self._params = stepping.pack_params(params_of(self.config, self.style))
        _, kinds = node_words(self._structure, self._encoder, self._actions)
        edges = edge_tables.initial_edges(
            self._structure,
            configs.node_variances(self.config, kinds),
            self._bias_gain(),
            advice=self.config.advice,
            optimism=self.config.optimism,
        )
        self._schema, self._initial_edges = schema, edges
        self._buffers = stepping.pack(learner.initial_state(edges, self._structure))
        self._scale = reward_scale.initial(self.config.reward_bound)
        self._learns_scale = schema is None and "reward_bound" not in settings
        self._is_scale_known = schema is not None or self._learns_scale
        self._n_steps = 0
        self._choices = 0  # made so far; numbers the random words
        self._noise: npt.NDArray[np.uint32] | None = None
        self._attended: _Attended | None = None
        self._mask: npt.NDArray[np.bool_] | None = None

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """A new episode starts; outcomes that were still to come are forgotten with the old one."""
        features = self._encode(observation)
        self._mask = self._mask_of(info)
        row = self._row(observation, features, self._mask)
        self._buffers, action = self._stepper.begin(self._buffers, self._params, row)
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
        is_end = bool(transition.terminated or info.get("boundary", False))
        bound = self._bound_after(transition.reward, is_end=is_end or transition.truncated)
        n_slots = self._structure.feedback_slots
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
        self._mask = self._mask_of(info)
        row = stepping.experience_row(
            self._structure,
            self._row(transition.next_observation, features, self._mask),
            action=transition.action,
            reward=reward / bound,
            is_boundary=is_end,
            decision_id=decision_id,
            feedback=arrived[n_early:],
            opinion=opinion,
            seen=self._behaviours.cells(info),
        )
        self._n_steps += 1
        if self._n_steps % REST == 0:
            self._buffers = self._stepper.learn(self._buffers, self._params, row)
            self._buffers = self._stepper.rest(self._buffers, self._params, np.uint32(self.seed & 0xFFFFFFFF))
            self._buffers, action = self._stepper.attend(self._buffers, self._params, row)
        else:
            self._buffers, action = self._stepper.step(self._buffers, self._params, row)
        self._attended = _Attended(transition.next_observation, features, action)

    def decide(self, observation: Any) -> Decision:
        """The greedy decision for an observation, with all its evidence. Learns nothing, writes nothing."""
        reading = self._read(observation, self._encode(observation))
        return decisions.decide(
            reading, structure=self._structure, style=self.style, labels=self._words()[0], actions=self._actions
        )

    @property
    def memory(self) -> Memory:
        """What has been learnt, as a snapshot that can be read."""
        state = self._state()
        labels, kinds = self._words()
        return memory.memory_of(
            state.edges,
            self._structure,
            labels=labels,
            kinds=kinds,
            decisions=self._column_labels(),
            step=int(state.step),
            version=int(state.version),
        )

    @property
    def lessons(self) -> int:
        """Lessons learnt so far."""
        return int(self._state().version)

    @property
    def n_steps(self) -> int:
        """Steps learnt so far, of all runs."""
        return self._n_steps

    @property
    def anatomy(self) -> Anatomy:
        """What it was built of, before it learnt anything; for compiled loops."""
        senses = Senses(
            encode=self._encoder.pure(),
            entity=self._encoder.pure_entity(),
            adviser=None,
            schema=self._schema,
            structure=self._structure,
            reward_bound=self.config.reward_bound,
            is_attributed=self.credit == "attributed",
            use_stake=self._use_stake,
            use_mask=self._use_mask,
            use_review=self._review is not None,
        )
        return Anatomy(self._structure, senses, self._initial_edges)

    @property
    def exploration_rate(self) -> float:
        """Chance that the next action is a random one."""
        params = params_of(self.config, self.style)
        return float(exploration_rate(self._state().rewards.since, params))

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
            "reward_scale": list(self._scale),
            "learns_scale": self._learns_scale,
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
        agent._n_steps = int(agent._state().step)
        agent._scale = reward_scale.RewardScale(*header["reward_scale"])
        agent._learns_scale = agent._learns_scale or header["learns_scale"]
        if agent._choices > 0:
            agent._first_seed = later_seed(agent.seed, agent._choices)
        return agent

    def _greedy(self, observation: Any) -> int:
        return int(np.argmax(np.asarray(self._read(observation, self._encode(observation)).evidence.urge)))

    def _bound_after(self, reward: float, *, is_end: bool) -> float:
        """What a reward is divided by; where it is learnt, what is known is brought to the new scale first."""
        if not self._learns_scale:
            return self.config.reward_bound
        self._scale, factor = reward_scale.update(self._scale, reward, is_end=is_end, gamma=self.config.gamma)
        if factor != 1.0:
            self._buffers = self._stepper.rescale(self._buffers, self._initial_edges.net, np.float32(factor))
        return float(self._scale.bound)

    def _mask_of(self, info: Mapping[str, Any]) -> npt.NDArray[np.bool_] | None:
        mask = info.get("action_mask") if self._use_mask else None
        return None if mask is None else np.asarray(mask, np.bool_)

    def _words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        known = self._state().known if self._structure.conjunctions else None
        return node_words(self._structure, self._encoder, self._actions, known)

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
            row = self._row(observation, features, self._mask)
            self._buffers, action = self._stepper.attend(self._buffers, self._params, row)
            attended = _Attended(observation, features, action)
        self._attended = attended
        return attended

    def _restored(self, features: Features, observation: Any) -> _Attended | None:
        """The choice that a loaded state holds, if it is about `features`."""
        state = self._state()
        there = state.situation
        stored = Features(np.asarray(there.nodes), np.asarray(there.activation), float(there.stake))
        return _Attended(observation, features, state.action) if _equal(stored, features) else None

    def _read(self, observation: Any, features: Features) -> stepping.Reading:
        return self._stepper.read(
            self._buffers, self._params, self._situation(np.zeros(2, np.uint32), observation, features)
        )

    def _row(self, observation: Any, features: Features, mask: npt.NDArray[np.bool_] | None) -> stepping.Row:
        """A situation with the random words of the next choice."""
        block, position = divmod(self._choices, stepping.NOISE_BLOCK)
        if self._noise is None or position == 0:
            words = stepping.noise_block(jnp.uint32(self.seed & 0xFFFFFFFF), jnp.int32(block))
            self._noise = np.asarray(words)
        self._choices += 1
        return self._situation(self._noise[position], observation, features, mask)

    def _situation(
        self,
        noise: npt.NDArray[np.uint32],
        observation: Any,
        features: Features,
        mask: npt.NDArray[np.bool_] | None = None,
    ) -> stepping.Row:
        return stepping.situation_row(
            noise,
            features.nodes,
            features.activation,
            features.stake,
            entity=self._encoder.entity(observation),
            advice=configs.NO_ACTION if self._adviser is None else int(self._adviser(observation)),
            mask=mask,
            n_actions=self.n_actions,
        )

    def _encode(self, observation: Any) -> Features:
        features = self._encoder.encode(observation)
        return features if self._use_stake else features._replace(stake=1.0)

    def _state(self) -> learner.State:
        return stepping.unpack(self._buffers, self._structure)

    def _bias_gain(self) -> npt.NDArray[np.float32]:
        """[C] f32: evidence of gain that the bias starts with."""
        gain = np.zeros(self._structure.n_columns, np.float32)
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


def _equal(a: Features, b: Features) -> bool:
    same = np.array_equal(a.nodes, b.nodes) and np.array_equal(a.activation, b.activation)
    return same and np.float32(a.stake) == np.float32(b.stake)
