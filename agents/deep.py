"""Deep baselines: one thin adapter around stable-baselines3.

The adapter gives its algorithms what every other agent of this folder gets, no more: the nodes of `FeatureEncoder` as
one vector, the reward, and the same loop seen from outside (`learn` with a callback per step, `predict`). The only file
of this package that imports PyTorch.
"""

from __future__ import annotations

import contextlib
import copy
import difflib
import importlib
import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback

from .base import Transition
from .credit import Credit, Ledger
from .declared import schema_of
from .features import FeatureEncoder, Rank
from .online import Callback, OnlineAgent, calls_of

FloatArray = npt.NDArray[np.float32]


class _Algorithm(NamedTuple):
    """Where an algorithm lives, and settings for budgets of 2,000 to 30,000 steps (chosen as the README says)."""

    package: str
    policy: str
    defaults: Mapping[str, Any]


_NET: Mapping[str, Any] = {"policy_kwargs": {"net_arch": [64, 64]}}
_Q_LEARNING: Mapping[str, Any] = {
    **_NET,
    "learning_rate": 5e-4,
    "learning_starts": 100,
    "target_update_interval": 500,
    "train_freq": 4,
    "exploration_fraction": 0.05,
    "exploration_final_eps": 0.01,
    "buffer_size": 50_000,
    "batch_size": 64,
}
_ROLLOUT: Mapping[str, Any] = {"learning_rate": 1e-3, "n_steps": 64, "batch_size": 64, "ent_coef": 0.01}
ALGORITHMS: Mapping[str, _Algorithm] = {
    "DQN": _Algorithm("stable_baselines3", "MlpPolicy", _Q_LEARNING),
    "PPO": _Algorithm("stable_baselines3", "MlpPolicy", {**_NET, **_ROLLOUT}),
    "A2C": _Algorithm(
        "stable_baselines3", "MlpPolicy", {**_NET, "learning_rate": 2e-3, "n_steps": 16, "ent_coef": 0.01}
    ),
    "QRDQN": _Algorithm("sb3_contrib", "MlpPolicy", _Q_LEARNING),
    "TRPO": _Algorithm("sb3_contrib", "MlpPolicy", {**_NET, "n_steps": 256, "batch_size": 64}),
    "RecurrentPPO": _Algorithm(
        "sb3_contrib",
        "MlpLstmPolicy",
        {"policy_kwargs": {"net_arch": [64], "lstm_hidden_size": 64}, **_ROLLOUT, "n_steps": 128, "n_epochs": 4},
    ),
}
# Where a world pays the outcome at its decision, and what follows an encounter owes nothing to it, decisions are close
# to a bandit and one step of foresight is enough. An outcome that comes 20 to 100 steps late needs one that reaches it.
GAMMA_NEAR, GAMMA_FAR = 0.5, 0.99
# settings of stable-baselines3 that this adapter decides itself
_OWN = ("self", "env", "seed", "_init_setup_model")


class DeepAgent(OnlineAgent):
    """An algorithm of stable-baselines3 or sb3-contrib that lives in the same loop as the other agents.

    It learns from the reward of each step; it cannot credit a late outcome to its decision. In the *attributed* variant
    the world therefore pays the realised outcome at the decision, which is earlier than any other agent learns it.

    Two calls of `learn` continue one episode, unless anybody else has reset or stepped the environment in between; an
    on-policy algorithm loses the unfinished rollout of the first.

    Args:
        env: environment with a Discrete action space.
        algorithm: one of `ALGORITHMS`.
        seed: seed of the algorithm and of the environment's first reset.
        credit: the variant that the world plays; the default of `gamma` is .99 for "stream" and where the
            environment declares no schema, .5 otherwise.
        boundary_terminates: show the end of an encounter as the end of an episode, so that nothing is bootstrapped
            over it; the environment itself goes on.
        previous: add the previous action (one-hot) and reward to the observation.
        rank: form of the rank nodes of numbers.
        masked: fields that the agent must not see.
        **hyperparameters: those of the algorithm's constructor, over the defaults of `ALGORITHMS`.

    Attributes:
        model: the algorithm itself.

    Raises:
        ValueError: no such algorithm, or a world whose feedback does not fit `credit`.
        TypeError: no such hyperparameter.
        ModuleNotFoundError: the algorithm's package is not installed.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        algorithm: str = "DQN",
        *,
        seed: int = 0,
        credit: Credit = "attributed",
        boundary_terminates: bool = False,
        previous: bool = False,
        rank: Rank = "signed",
        masked: Sequence[str] = (),
        **hyperparameters: Any,
    ) -> None:
        if not isinstance(env.action_space, gymnasium.spaces.Discrete):
            raise TypeError(f"`env.action_space` must be Discrete for a deep learner here, got {env.action_space}.")
        super().__init__(env, seed=seed)
        schema = schema_of(env)
        Ledger(credit, schema)  # refuses an unknown `credit`
        if credit == "attributed" and schema is not None and schema.feedback == "stream":
            raise ValueError(
                "`credit` must be 'stream' in a world with feedback='stream', got 'attributed'; a deep learner cannot "
                "credit a late outcome to its decision. Build the world with feedback='attributed' to let it pay there."
            )
        encoder = FeatureEncoder(env.observation_space, schema, rank=rank, masked=masked, box="uniform", joint=False)
        self._view = _VectorView(env, encoder, boundary_terminates, previous)
        self._globals = _OwnGlobals()
        self._n_known_calls = 0
        self.algorithm = algorithm
        constructor, settings = _resolve(algorithm, hyperparameters)
        settings = copy.deepcopy(settings)  # A2C writes its optimizer into `policy_kwargs`, which defaults share
        settings.setdefault("gamma", GAMMA_FAR if schema is None or credit == "stream" else GAMMA_NEAR)
        with self._globals.swapped_in():
            self.model: BaseAlgorithm = constructor(env=self._view, seed=self.seed, **settings)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[npt.NDArray[np.int64], Any]:
        """Action for one observation or a batch, in stable-baselines3's signature. Learns nothing.

        With `previous`, the previous action and reward are those of the last step that was learnt from.

        Args:
            observation: one observation of the environment, or a batch of them.
            state: memory of a recurrent algorithm, as the last call returned it; None at the start.
            episode_start: [B] bool, where the state is to be forgotten.
            deterministic: take the most probable action instead of a sample.

        Returns:
            ([] or [B] i64 actions, state).
        """
        batch = self._unbatch(observation)
        vectors = (
            self._view.vector(observation) if batch is None else np.stack([self._view.vector(one) for one in batch])
        )
        with self._globals.swapped_in():
            action, state = self.model.predict(vectors, state, episode_start, deterministic)
        return np.asarray(action, np.int64), state

    def act(self, observation: Any) -> int:
        """Not available: stable-baselines3 owns the loop."""
        raise NotImplementedError(
            f"{self.algorithm} runs its own loop: call `learn(n, callback=...)` to let it live and learn, or "
            "`predict` for its action."
        )

    def observe(self, transition: Transition) -> None:
        """Not available: stable-baselines3 owns the loop."""
        raise NotImplementedError(f"{self.algorithm} runs its own loop: call `learn(n, callback=...)`.")

    def _greedy(self, observation: Any) -> int:
        return int(self.predict(observation)[0])

    def _live(self, env: gymnasium.Env[Any, Any], total_timesteps: int, on_transition: Callback) -> None:
        steps = _EveryStep(self, self._view, total_timesteps, on_transition)
        calls = calls_of(self._view)
        if calls.n != self._n_known_calls:  # not the agent's episode any more
            self.model._last_obs = None
            self._view.leave()
        with self._globals.swapped_in():
            # The first call resets the environment; later ones go on in its episode.
            self.model.learn(total_timesteps, callback=steps, reset_num_timesteps=self.model.num_timesteps == 0)
        if steps.was_stopped:
            # stable-baselines3 leaves its loop before it notes the last observation, and would act on an old one.
            self.model._last_obs = steps.locals["new_obs"]
            self.model._last_episode_starts = steps.locals["dones"]
        self._n_known_calls = calls.n


class _VectorView(gymnasium.Wrapper[FloatArray, Any, Any, Any]):
    """The environment as a network sees it: observations as vectors, encounters as episodes if wished."""

    def __init__(self, env: gymnasium.Env[Any, Any], encoder: FeatureEncoder, terminates: bool, previous: bool) -> None:
        super().__init__(env)
        self._encoder, self._terminates = encoder, terminates
        self._previous: FloatArray | None = None
        space: gymnasium.spaces.Box[Any] = encoder.dense_space()
        if previous:
            assert isinstance(env.action_space, gymnasium.spaces.Discrete)
            n_actions = int(env.action_space.n)
            self._previous = np.zeros(n_actions + 1, np.float32)
            space = gymnasium.spaces.Box(
                np.concatenate([space.low, np.zeros(n_actions), [-np.inf]]).astype(np.float32),
                np.concatenate([space.high, np.ones(n_actions), [np.inf]]).astype(np.float32),
            )
        self.observation_space = space
        self.transition: Transition | None = None
        self._observation: Any = None
        self._is_at_boundary = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[FloatArray, Any]:
        """A new episode, unless only an encounter has ended: then the next one is already there."""
        if self._is_at_boundary and seed is None and self.transition is not None:
            self._is_at_boundary = False
            return self.vector(self._observation), dict(self.transition.info)
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._is_at_boundary = False
        if self._previous is not None:
            self._previous[:] = 0.0
        return self.vector(self._observation), info

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One step; the transition is kept as the environment gave it."""
        before, number = self._observation, int(action)
        self._observation, reward, terminated, truncated, info = self.env.step(number)
        # a copy, for stable-baselines3 writes into the dict
        self.transition = Transition(
            before, number, float(reward), self._observation, bool(terminated), bool(truncated), dict(info)
        )
        if self._previous is not None:
            self._previous[:] = 0.0
            self._previous[number], self._previous[-1] = 1.0, reward
        is_over = bool(terminated or truncated)
        self._is_at_boundary = self._terminates and not is_over and bool(info.get("boundary", False))
        return self.vector(self._observation), float(reward), bool(terminated) or self._is_at_boundary, truncated, info

    def leave(self) -> None:
        """Forget the episode at hand, so that the next reset is one of the environment."""
        self._is_at_boundary = False

    def vector(self, observation: Any) -> FloatArray:
        """[D] f32: one observation as the network sees it."""
        dense = self._encoder.dense(observation)
        return dense if self._previous is None else np.concatenate([dense, self._previous])


class _EveryStep(BaseCallback):
    """Hands every transition on, and stops after exactly the number of steps that was asked for."""

    def __init__(self, agent: DeepAgent, view: _VectorView, n_steps: int, on_transition: Callback) -> None:
        super().__init__()
        self._agent, self._view, self._left, self._on_transition = agent, view, n_steps, on_transition
        self.was_stopped = False

    def _on_step(self) -> bool:
        assert self._view.transition is not None
        self._left -= 1
        if self._on_transition(self._agent, self._view.transition) is False:
            self.was_stopped = True
        elif self._left <= 0:
            # the algorithm ends by itself after a full rollout, and still learns from it
            rollout = getattr(self.model, "rollout_buffer", None)
            self.was_stopped = rollout is None or rollout.pos + 1 < rollout.buffer_size
        return not self.was_stopped


class _OwnGlobals:
    """Random states of an agent whose library draws from the global generators, and PyTorch's number of threads.

    While swapped in, the library finds the agent's own states; afterwards the process has its own back. Two agents in
    one process thus do not disturb each other, and a run does not depend on what ran before it.
    """

    def __init__(self) -> None:
        self._own: tuple[Any, Any, torch.Tensor] | None = None

    @contextlib.contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Exchange the states for the duration of the block."""
        outside, threads = self._read(), torch.get_num_threads()
        if self._own is not None:
            self._write(self._own)
        torch.set_num_threads(1)  # small networks: more threads cost time, and runs share the machine
        try:
            yield
        finally:
            self._own = self._read()
            self._write(outside)
            torch.set_num_threads(threads)

    @staticmethod
    def _read() -> tuple[Any, Any, torch.Tensor]:
        return random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002 - what the library draws from

    @staticmethod
    def _write(states: tuple[Any, Any, torch.Tensor]) -> None:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        torch.set_rng_state(states[2])


def _resolve(algorithm: str, hyperparameters: Mapping[str, Any]) -> tuple[Callable[..., BaseAlgorithm], dict[str, Any]]:
    """Constructor of an algorithm and its settings: the defaults, the given ones over them."""
    if algorithm not in ALGORITHMS:
        by_lower = {name.lower(): name for name in ALGORITHMS}
        near = difflib.get_close_matches(str(algorithm).lower(), by_lower, 1)
        hint = f"; did you mean {by_lower[near[0]]!r}?" if near else "."
        raise ValueError(f"`algorithm` must be one of {list(ALGORITHMS)}, got {algorithm!r}{hint}")
    package, policy, defaults = ALGORITHMS[algorithm]
    try:
        constructor = getattr(importlib.import_module(package), algorithm)
    except ModuleNotFoundError as error:
        name = package.replace("_", "-")
        raise ModuleNotFoundError(
            f"`algorithm` {algorithm!r} needs {name}; install it with `pip install {name}`.", name=package
        ) from error
    known = [name for name in inspect.signature(constructor.__init__).parameters if name not in _OWN]
    for name in hyperparameters:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, "boundary_terminates", "previous", "rank", "masked"], 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it takes {known}."
            raise TypeError(f"{name!r} is not a setting of {algorithm}{hint}")
    return constructor, {"policy": policy, "device": "cpu", **defaults, **hyperparameters}
