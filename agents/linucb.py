"""LinUCB: a ridge regression of each action's reward on the active nodes, and optimism about what it does not know.

Source: Li et al. (2010), "A contextual-bandit approach to personalized news article recommendation", disjoint models:
choose argmax_a x.w_a + alpha sqrt(x' P_a^-1 x), P_a = ridge I + sum x x', w_a = P_a^-1 sum r x.
Differs: 1. the sums may be discounted over time (Russac et al. 2019, "Weighted linear bandits for non-stationary
environments"), in blocks of steps, the ridge is not;  2. a step that ends no encounter adds the discounted value of
what follows to its reward;  3. what the world declares about stakes, scaled actions and reviews is used, as the
substrate uses it; each of the three can be switched off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt

from . import arguments
from .base import Transition
from .credit import Credit, Ledger
from .declared import schema_of, verdict_value
from .features import FeatureEncoder, Features, Rank
from .online import OnlineAgent, generator

FloatArray = npt.NDArray[np.float64]

VERDICT_NOISE = 1.5  # variance of a verdict as a label, over that of an outcome (measured: real-credit table, R2)
FADE_BLOCK = 500  # steps between two discounts; one costs an inversion of each model's matrix


class RidgeModels:
    """M weighted ridge regressions on D shared features, solved recursively.

    After any sequence of updates, with discount g = forgetting per step applied at the end of each block of steps,
    weights = (ridge I + sum_i g^age_i c_i x_i x_i')^-1 sum_i g^age_i c_i y_i x_i.

    Args:
        n_models: M.
        n_features: D.
        ridge: penalty, > 0; the number of observations that the value 0 is worth to each feature.
        forgetting: discount per step, in (0, 1]; 1 never forgets.
        block: steps between discounts.
    """

    def __init__(
        self, n_models: int, n_features: int, ridge: float, forgetting: float = 1.0, block: int = FADE_BLOCK
    ) -> None:
        self.ridge, self.forgetting, self.block = ridge, forgetting, block
        self.weights: FloatArray = np.zeros((n_models, n_features))
        self.inverse: FloatArray = np.tile(np.eye(n_features) / ridge, (n_models, 1, 1))
        self._precision: FloatArray = np.zeros((n_models, n_features, n_features))  # without the ridge
        self._moment: FloatArray = np.zeros((n_models, n_features))
        self._buffer: FloatArray = np.empty((n_features, n_features))
        self._age = 0

    def mean(self, features: Features) -> FloatArray:
        """[M] predictions x.w."""
        return np.asarray(self.weights[:, features.nodes] @ features.activation.astype(np.float64))

    def variance(self, features: Features) -> FloatArray:
        """[M] uncertainties x' P^-1 x, in units of the variance of an observation."""
        index, value = features.nodes, features.activation.astype(np.float64)
        block = self.inverse[:, index[:, None], index[None, :]]
        return np.maximum(np.asarray((block @ value) @ value), 0.0)

    def update(self, model: int, features: Features, target: float, weight: float = 1.0) -> None:
        """Add one observation with its weight (Sherman-Morrison: the inverse of P + weight x x')."""
        index, value = features.nodes, features.activation.astype(np.float64)
        inverse, weights = self.inverse[model], self.weights[model]
        direction = value @ inverse[index]  # P^-1 x; the inverse is symmetric
        scale = weight / (1.0 + weight * float(direction[index] @ value))
        weights += direction * (scale * (target - float(weights[index] @ value)))
        np.multiply(direction[:, None], scale * direction, out=self._buffer)
        inverse -= self._buffer
        if self.forgetting < 1.0:  # a node may be listed twice, hence `add.at`
            np.add.at(self._moment[model], index, weight * target * value)
            np.add.at(self._precision[model], (index[:, None], index[None, :]), weight * np.outer(value, value))

    def tick(self) -> None:
        """One step has passed; discount everything when a block is full."""
        if self.forgetting == 1.0:
            return
        self._age += 1
        if self._age < self.block:
            return
        self._age, discount = 0, self.forgetting**self.block
        self._precision *= discount
        self._moment *= discount
        inverse = np.linalg.inv(self._precision + self.ridge * np.eye(self.inverse.shape[-1]))
        # rounding must not break the symmetry that `update` relies on
        self.inverse = np.asarray((inverse + inverse.transpose(0, 2, 1)) / 2, np.float64)
        self.weights = np.einsum("mij,mj->mi", self.inverse, self._moment)


class _Case(NamedTuple):
    """A decision that is to be learnt."""

    features: Features
    action: int


class LinUCB(OnlineAgent):
    """Ridge regression with upper confidence bounds on the nodes of `FeatureEncoder`.

    Where the world declares them, it uses (a) the stake: targets are rewards per unit of stake and count by the stake;
    (b) scaled actions: both learn one model, `factor` apart; (c) the review: a verdict is a label, at once, for the
    action it is about.

    Args:
        env: environment with a Discrete action space.
        seed: seed of ties and of the environment's first reset in `learn`.
        credit: how delayed outcomes are credited, "attributed" or "stream".
        alpha: width of the confidence bound, >= 0, in units of reward per stake; 0 is greedy.
        ridge: penalty of the regression, > 0.
        forgetting: discount of the past per step, in (0, 1]; 1 never forgets.
        gamma: discount per step within an encounter, in [0, 1].
        use_stake: divide rewards by the declared stake.
        share_scaled: share one model between declared scaled actions.
        use_review: learn from declared verdicts.
        rank: form of the rank nodes of numbers.
        masked: fields that the agent must not see.

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
        alpha: float = 0.1,
        ridge: float = 30.0,
        forgetting: float = 0.9999,
        gamma: float = 0.9,
        use_stake: bool = True,
        share_scaled: bool = True,
        use_review: bool = True,
        rank: Rank = "signed",
        masked: Sequence[str] = (),
    ) -> None:
        super().__init__(env, seed=seed)
        arguments.switches(use_stake=use_stake, share_scaled=share_scaled, use_review=use_review)
        if alpha < 0 or ridge <= 0:
            raise ValueError(f"`alpha` must be >= 0 and `ridge` > 0, got {alpha} and {ridge}.")
        if not (0 < forgetting <= 1 and 0 <= gamma <= 1):
            raise ValueError(f"`forgetting` must lie in (0, 1] and `gamma` in [0, 1], got {forgetting} and {gamma}.")
        schema = schema_of(env)
        self._encoder = FeatureEncoder(
            env.observation_space, schema, rank=rank, masked=masked, box="uniform", joint=False
        )
        self._ledger: Ledger[_Case] = Ledger(credit, schema)
        owner = np.arange(self.n_actions)
        self._factor = np.ones(self.n_actions)
        labels = list(schema.actions) if schema else []
        for scaled in schema.scaled_actions if schema and share_scaled else ():
            action = labels.index(scaled.action)
            owner[action], self._factor[action] = owner[labels.index(scaled.of)], scaled.factor
        owners, self._model_of = np.unique(owner, return_inverse=True)
        self._review = schema.review if schema and use_review else None
        self._about = labels.index(self._review.about) if self._review else 0
        self._use_stake = use_stake
        self.alpha, self.gamma = alpha, gamma
        self.models = RidgeModels(len(owners), self._encoder.n_nodes, ridge, forgetting)
        self._rng = generator(self.seed)
        self._acted_on: tuple[Any, Features] | None = None

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Outcomes that were still to come are lost with their episode."""
        self._ledger.clear()

    def act(self, observation: Any) -> int:
        """The action with the highest upper confidence bound, ties at random."""
        features = self._encode(observation)
        self._acted_on = (observation, features)
        bonus = self.alpha * np.sqrt(self.models.variance(features))
        bound = (self.models.mean(features) + bonus)[self._model_of] * self._factor
        best = np.flatnonzero(bound >= bound.max() - 1e-12)
        return int(best[0] if len(best) == 1 else self._rng.choice(best))

    def observe(self, transition: Transition) -> None:
        """Learn what this step completes: its own reward, earlier outcomes that arrived, a verdict."""
        self._check_outcomes(transition)
        is_known = self._acted_on is not None and self._acted_on[0] is transition.observation
        features = self._acted_on[1] if is_known and self._acted_on else self._encode(transition.observation)
        case = _Case(features, transition.action)
        settled = self._ledger.settle(case, transition)
        if settled.now is not None:
            ends = transition.terminated or transition.info.get("boundary", False)
            self._learn(case, settled.now + (0.0 if ends else self.gamma * self._value(transition.next_observation)))
        for earlier, reward in settled.late:
            self._learn(earlier, reward)
        if self._review is not None:
            label = verdict_value(self._review, transition.info.get(self._review.signal, ""))
            if label is not None:
                weight = case.features.stake / VERDICT_NOISE
                self.models.update(self._model_of[self._about], case.features, label, weight)
        self.models.tick()

    def values(self, observation: Any) -> FloatArray:
        """[A] f64: predicted reward of each action, without the bonus."""
        features = self._encode(observation)
        return np.asarray(self.models.mean(features)[self._model_of] * self._factor * features.stake)

    def _greedy(self, observation: Any) -> int:
        return int(np.argmax(self.values(observation)))

    def _value(self, observation: Any) -> float:
        return float(self.values(observation).max())

    def _learn(self, case: _Case, reward: float) -> None:
        """One complete reward, per unit of stake and factor; a large stake counts for more."""
        stake = case.features.stake
        target = reward / (stake * float(self._factor[case.action]))
        self.models.update(self._model_of[case.action], case.features, target, stake)

    def _encode(self, observation: Any) -> Features:
        features = self._encoder.encode(observation)
        return features if self._use_stake else features._replace(stake=1.0)
