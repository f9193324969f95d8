"""The cognitive substrate as a learner: the memory of `habitus.cognition` in an environment."""

from __future__ import annotations

import dataclasses
import os
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
from ..cognition.config import Rule
from ..cognition.decision import Decision
from ..cognition.learning.resting import REST
from ..cognition.memory import Memory
from ..cognition.params import params_of, rate_of
from ..cognition.style import Style, style_of
from . import arguments, defaults, saved
from .actions import column_labels
from .base import Transition
from .compiled import Anatomy, Senses
from .credit import Credit
from .declared import schema_of
from .encoding import BoxCode
from .features import FeatureEncoder, Rank
from .online import OnlineAgent, later_seed
from .perception import Adviser, OutcomeReader, Perception, Unit
from .structures import BehaviourReader, node_words, structure_of


class _Attended(NamedTuple):
    """The observation that the learner's state is about, and what it chose for it.

    The choice stays on the device until `act` asks for it, so that learning goes on while the caller does other things.
    """

    observation: Any
    shown: stepping.Row
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
        env: environment with a Discrete action space that starts at 0, or a MultiDiscrete one (see `OnlineAgent`).
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
            word is a node, with an edge of gain `advice` to begin with. Not saved with the agent, `load` takes it.
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
        self._perception = Perception(
            self._encoder,
            seed=self.seed,
            n_actions=self.n_actions,
            use_stake=use_stake,
            use_mask=use_mask,
            adviser=adviser,
        )
        self._actions = tuple(schema.actions) if schema else self._numbers.labels
        self._review = schema.review if schema and use_review else None
        self._outcomes = OutcomeReader(schema, credit, use_review=use_review)
        self.config = defaults.config_of(schema, rule, settings, n_paths=self._encoder.n_active)
        config, has_adviser = self.config, adviser is not None
        self._structure = structure_of(
            schema, config, self._encoder, self.n_actions, share_scaled=share_scaled, has_adviser=has_adviser
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
        # a copy: buffers are given away with the first step, and what it began with is needed later
        self._buffers = stepping.pack(jax.tree.map(jnp.copy, learner.initial_state(edges, self._structure)))
        self._unit = Unit(
            self.config.reward_bound,
            is_learnt=schema is None and "reward_bound" not in settings,
            is_declared=schema is not None,
            gamma=self.config.gamma,
        )
        self._seed_word = np.uint32(self.seed & 0xFFFFFFFF)
        self._n_steps = 0
        self._counted: int | None = None  # step at which exploration began or began anew
        self._attended: _Attended | None = None

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """A new episode starts; outcomes that were still to come are forgotten with the old one."""
        self._perception.heed(info)
        shown = self._perception.look(observation)
        self._buffers, action = self._stepper.begin(self._buffers, self._params, self._perception.drawn(shown))
        self._attended = _Attended(observation, shown, action)

    def act(self, observation: Any) -> int:
        """Choose an action, at times a random one (`Config.eps0`)."""
        return int(np.asarray(self._attend(observation).action))  # int() of a device array takes 10 us more

    def observe(self, transition: Transition) -> None:
        """Learn from one step and choose the next action, in one compiled call."""
        self._check_outcomes(transition)
        info = transition.info
        self._attend(transition.observation)
        is_end = bool(transition.terminated or info.get("boundary", False))
        factor = self._unit.after(transition.reward, is_end=is_end or transition.truncated)
        if factor != 1.0:  # what is known is brought to the new unit
            self._buffers = self._stepper.rescale(self._buffers, self._initial_edges.net, np.float32(factor))
        outcome = self._outcomes.read(transition, self._unit.bound)
        n_early = max(0, len(outcome.arrived) - self._structure.feedback_slots)
        for one in outcome.arrived[:n_early]:
            self._buffers = self._stepper.credit(self._buffers, self._params, stepping.outcome_row(*one))
        self._perception.heed(info)
        shown = self._perception.look(transition.next_observation)
        row = stepping.experience_row(
            self._structure,
            self._perception.drawn(shown),
            action=transition.action,
            reward=outcome.reward,
            is_boundary=is_end,
            decision_id=outcome.decision_id,
            feedback=outcome.arrived[n_early:],
            opinion=outcome.opinion,
            seen=self._behaviours.cells(info),
        )
        if outcome.is_complete:
            others, action = self._stepper.prompt(self._buffers[1:], self._params, row)
            self._buffers = (self._buffers[0], *others)
        else:
            self._buffers, action = self._stepper.step(self._buffers, self._params, row)
        self._n_steps += 1
        if self._n_steps % REST == 0:  # and choose again, with the same random words, for what it changes
            self._buffers = self._stepper.rest(self._buffers, self._params, self._seed_word)
            self._counted = None
            self._buffers, action = self._stepper.attend(self._buffers, self._params, row)
        self._attended = _Attended(transition.next_observation, shown, action)

    def decide(self, observation: Any) -> Decision:
        """The greedy decision for an observation, with all its evidence. Learns nothing, writes nothing."""
        labels, reading = self._words()[0], self._read(observation)
        return decisions.decide(
            reading, structure=self._structure, style=self.style, labels=labels, actions=self._actions
        )

    @property
    def memory(self) -> Memory:
        """What has been learnt, as a snapshot that can be read."""
        state, (labels, kinds) = self._state(), self._words()
        return memory.memory_of(
            state.edges,
            self._structure,
            labels=labels,
            kinds=kinds,
            decisions=column_labels(self._structure.columns, self._structure.factors, self._actions),
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
            use_stake=self._perception.use_stake,
            use_mask=self._perception.use_mask,
            use_review=self._review is not None,
        )
        return Anatomy(self._structure, senses, self._initial_edges)

    @property
    def exploration_rate(self) -> float:
        """Chance that the next action is a random one."""
        if self._counted is None:  # known until the next rest, for who asks at every step
            self._counted = self._n_steps - int(self._stepper.since(self._buffers))
        return rate_of(self.config, self.style, self._n_steps - self._counted)

    @property
    def lost_feedback(self) -> dict[str, int]:
        """Decisions whose outcome can no longer be credited, by cause; 0 in a world that keeps its contract.

        "overwritten": more waited than `ledger_capacity`; "unmatched": an outcome of one that was not waiting.
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
            "choices": self._perception.choices,
            "num_timesteps": self.num_timesteps,
            "reward_scale": list(self._unit.scale),
            "learns_scale": self._unit.is_learnt,
        }
        return persistence.write(saved.target_of(path), header, arrays)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], env: gymnasium.Env[Any, Any], *, adviser: Adviser | None = None
    ) -> Self:
        """Read an agent that `save` wrote.

        What it has learnt, its style, settings, step counts and random choices go on as if it had never stopped. The
        episode does not: an environment is no part of the file. `learn` begins a new one, seeded from `seed` and the
        choices made so far, so that it brings fresh experience and the same each time; outcomes that the unfinished
        episode still owed are dropped. They are kept only where the caller drives the environment on in the same
        episode, with `act` and `observe`.

        Args:
            path: the file; `.zip` may be left out, as in `save`.
            env: an environment with the same observations and actions.
            adviser: that of the agent, which is no part of the file; needed if it had one.

        Raises:
            TypeError: the agent had an adviser that is not given, or the other way round.
            FileNotFoundError: no such file.
            DamagedFileError, NewerFileError: the file cannot be read, and why.
            MismatchError: the file is of another agent than `env` asks for; says what differs.
        """
        path, header, arrays = saved.opened(path, env, has_adviser=adviser is not None)
        agent = cls(env, style=header["style"], seed=header["seed"], adviser=adviser, **header["settings"])
        saved.check_identity(path, header, agent._identity())
        state = saved.filled(path, agent._state(), arrays)
        agent._buffers, agent._n_steps = stepping.pack(state), int(state.step)
        agent._perception.choices, agent.num_timesteps = header["choices"], header["num_timesteps"]
        agent._unit = saved.unit_of(header, agent.config)
        if header["choices"] > 0:
            agent._first_seed = later_seed(agent.seed, header["choices"])
            agent._attended = agent._restored(state)
        return agent

    def _greedy(self, observation: Any) -> int:
        return int(np.argmax(np.asarray(self._read(observation).evidence.urge)))

    def _words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        known = self._state().known if self._structure.conjunctions else None
        return node_words(self._structure, self._encoder, self._actions, known)

    def _attend(self, observation: Any) -> _Attended:
        """Make sure that the learner's state is about `observation`."""
        attended = self._attended
        if attended is not None and attended.observation is observation:
            return attended
        shown = self._perception.look(observation)
        if attended is None or not np.array_equal(attended.shown, shown):
            row = self._perception.drawn(shown)
            self._buffers, action = self._stepper.attend(self._buffers, self._params, row)
            attended = _Attended(observation, shown, action)
        self._attended = attended._replace(observation=observation)
        return self._attended

    def _restored(self, state: learner.State) -> _Attended:
        """The choice that a loaded state holds, for a copy of the observation that it was made for."""
        there = state.situation
        self._perception.mask = np.asarray(there.mask)
        shown = stepping.situation_row(
            np.zeros(2, np.uint32),
            np.asarray(there.nodes),
            np.asarray(there.activation),
            float(there.stake),
            entity=int(there.entity),
            advice=int(there.advice),
            mask=self._perception.mask,
        )
        return _Attended(object(), shown, state.action)

    def _read(self, observation: Any) -> stepping.Reading:
        return self._stepper.read(self._buffers, self._params, self._perception.look(observation))

    def _state(self) -> learner.State:
        return stepping.unpack(self._buffers, self._structure)

    def _bias_gain(self) -> npt.NDArray[np.float32]:
        """[C] f32: evidence of gain that the bias starts with."""
        gain = np.zeros(self._structure.n_columns, np.float32)
        if self._review is not None:
            column = self._structure.columns[self._actions.index(self._review.action)]
            gain[column] += self.config.opinion_prior * self._review.gain / self.config.reward_bound
        return gain

    def _identity(self) -> dict[str, Any]:
        """What an environment must have in common with a saved agent."""
        return {
            "observation_space": str(self._observation_space),
            "actions": list(self._actions),
            "nodes": list(self._encoder.labels),
            "columns": list(self._structure.columns),
            "factors": list(self._structure.factors),
            "shapes": [self._structure.n_nodes, self._structure.n_paths, self._structure.n_entities],
            "has_adviser": self._structure.advice,
        }
