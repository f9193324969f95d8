"""From what an environment shows to the rows that the compiled learner takes: situations, and what a step brought."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..cognition import config as configs
from ..cognition import stepping
from . import reward_scale
from .base import Transition
from .credit import Credit
from .declared import DeclaredSchema, verdict_value
from .features import FeatureEncoder

Adviser = Callable[[Any], int]
"""Names an action for an observation."""


class Perception:
    """What an agent sees, and the random words of its choices.

    Args:
        encoder: observation -> nodes.
        seed: of the agent's choices.
        n_actions: number of actions.
        use_stake: whether a declared stake is one.
        use_mask: whether `info["action_mask"]` is heeded.
        adviser: names an action, or None.

    Attributes:
        choices: made so far; numbers the random words.
        mask: [A] what is possible now, 0 where it is not; None where everything is.
    """

    def __init__(
        self,
        encoder: FeatureEncoder,
        *,
        seed: int,
        n_actions: int,
        use_stake: bool,
        use_mask: bool,
        adviser: Adviser | None,
    ) -> None:
        self.encoder, self.adviser = encoder, adviser
        self.use_stake, self.use_mask = use_stake, use_mask
        self.choices = 0
        self.mask: npt.NDArray[Any] | None = None
        self._seed, self._n_actions = np.uint32(seed & 0xFFFFFFFF), n_actions
        self._noise: npt.NDArray[np.uint32] | None = None

    def heed(self, info: Mapping[str, Any]) -> None:
        """Take note of which actions are possible."""
        mask = info.get("action_mask") if self.use_mask else None
        self.mask = None if mask is None else np.asarray(mask)

    def look(self, observation: Any) -> stepping.Row:
        """The row of a situation, without random words."""
        features = self.encoder.encode(observation)
        return stepping.situation_row(
            _NO_WORDS,
            features.nodes,
            features.activation,
            features.stake if self.use_stake else 1.0,
            entity=self.encoder.entity(observation),
            advice=configs.NO_ACTION if self.adviser is None else int(self.adviser(observation)),
            mask=self.mask,
            n_actions=self._n_actions,
        )

    def drawn(self, shown: stepping.Row) -> stepping.Row:
        """The row of a situation with the random words of the next choice."""
        block, position = divmod(self.choices, stepping.NOISE_BLOCK)
        if self._noise is None or position == 0:
            self._noise = np.asarray(stepping.noise_block(self._seed, np.int32(block)))
        self.choices += 1
        row = shown.copy()
        row[:2] = self._noise[position].view(np.int32)
        return row


_NO_WORDS: npt.NDArray[np.uint32] = np.zeros(2, np.uint32)


class Outcome(NamedTuple):
    """What a step brought, rewards in units of the bound.

    Attributes:
        reward: paid for the decision of this step.
        decision_id: under which its outcome will arrive, NO_DECISION if the reward is complete.
        arrived: (decision id, value) of outcomes that arrived, the part that was not in the reward of their step.
        opinion: (action, what it would pay) of a second opinion, or None.
    """

    reward: float
    decision_id: int
    arrived: list[tuple[int, float]]
    opinion: tuple[int, float] | None

    @property
    def is_complete(self) -> bool:
        """Whether the step brought its reward and nothing else, now or later."""
        return self.decision_id == configs.NO_DECISION and not self.arrived and self.opinion is None


class OutcomeReader:
    """Reads what a step brought, as a world declares it.

    Args:
        schema: what it declares, or None.
        credit: how outcomes are credited.
        use_review: whether a declared verdict is a second opinion.
    """

    def __init__(self, schema: DeclaredSchema | None, credit: Credit, *, use_review: bool) -> None:
        self._is_attributed = credit == "attributed"
        self._pays_on_arrival = schema is not None and schema.feedback == "stream"
        self._review = schema.review if schema is not None and use_review else None
        self._about = list(schema.actions).index(self._review.about) if schema and self._review else configs.NO_ACTION

    def read(self, transition: Transition, bound: float) -> Outcome:
        """What a step brought; rewards are divided by `bound`."""
        info, reward, decision_id = transition.info, transition.reward, configs.NO_DECISION
        arrived: list[tuple[int, float]] = []
        if self._is_attributed:
            decision_id = int(info.get("decision_id", configs.NO_DECISION))
            for arrived_id, value in info.get("feedback", ()):
                # a reward that was paid on arrival belongs to its decision, not to this one
                late = float(value) if self._pays_on_arrival else 0.0
                reward -= late
                arrived.append((int(arrived_id), late / bound))
        opinion = None
        if self._review is not None:
            value_of_about = verdict_value(self._review, info.get(self._review.signal, ""))
            if value_of_about is not None:
                opinion = (self._about, value_of_about / bound)
        return Outcome(reward / bound, decision_id, arrived, opinion)


class Unit:
    """The reward that counts as 1: declared, given, or learnt where neither is.

    Args:
        bound: declared or given; ignored where it is learnt.
        is_learnt: whether it follows from rewards.
        is_declared: whether a world says it; a given one that rewards exceed is warned of, once.
        gamma: discount of the learner.

    Attributes:
        scale: what is known of rewards, where it is learnt.
    """

    def __init__(self, bound: float, *, is_learnt: bool, is_declared: bool, gamma: float) -> None:
        self.bound, self.is_learnt = bound, is_learnt
        self.scale = reward_scale.initial(bound)
        self._gamma, self._is_certain = gamma, is_declared or is_learnt

    def after(self, reward: float, *, is_end: bool) -> float:
        """Take in a reward. Returns old bound over new one, 1 where it has not moved."""
        if self.is_learnt:
            self.scale, factor = reward_scale.update(self.scale, reward, is_end=is_end, gamma=self._gamma)
            self.bound = float(self.scale.bound)
            return float(factor)
        if not self._is_certain and abs(reward) > self.bound:
            self._is_certain = True
            warnings.warn(
                f"the reward {reward:g} exceeds `reward_bound` = {self.bound:g}; noise, initial variance and optimism "
                "assume rewards within it. Set `reward_bound` to the largest reward of the environment in absolute "
                "value, or leave it out: it is learnt then.",
                stacklevel=4,
            )
        return 1.0
