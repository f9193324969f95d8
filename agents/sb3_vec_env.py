"""A Gymnasium vector environment where stable-baselines3 expects its own `VecEnv`.

The two differ in how an episode ends: stable-baselines3 always shows the first observation of the next episode and
hands over the last one in `info`. A Gymnasium environment in SAME_STEP mode can be shown so, another cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

Infos = list[dict[str, Any]]


class GymnasiumVecEnv(VecEnv):
    """`VecEnv` over any `gymnasium.vector.VectorEnv` in SAME_STEP mode.

    Wrap it in `VecMonitor` for episode statistics: a vector environment has no `Monitor` inside. Example:
    `PPO("MultiInputPolicy", VecMonitor(GymnasiumVecEnv(gymnasium.make_vec(id, 64, autoreset_mode="SameStep"))))`.

    Where an episode ended, `infos[i]` is the info of its last step with `terminal_observation` and
    `TimeLimit.truncated`; the info of the reset is in `reset_infos[i]`.

    Args:
        venv: the vector environment; its actions are numpy arrays.

    Raises:
        TypeError: `venv` is no vector environment.
        ValueError: it resets in another mode.
    """

    def __init__(self, venv: VectorEnv[Any, Any, Any]) -> None:
        if not isinstance(venv, VectorEnv):
            raise TypeError(f"`venv` must be a gymnasium.vector.VectorEnv, got {type(venv).__name__}.")
        mode = venv.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(
                f"`venv` must reset in AutoresetMode.SAME_STEP, got {mode}; worlds of habitus take "
                'autoreset_mode="SameStep", SyncVectorEnv the same argument.'
            )
        self.venv = venv
        self._actions: Any = None
        super().__init__(venv.num_envs, venv.single_observation_space, venv.single_action_space)

    def reset(self) -> Any:
        """First observations; seeds and options that were set are used once."""
        if any(options != self._options[0] for options in self._options):
            raise ValueError(
                f"`options` must be the same for all sub-environments of a vector environment, got {self._options}."
            )
        seed = None if self._seeds[0] is None else int(self._seeds[0])  # sub-environment i gets seed + i
        observations, infos = self.venv.reset(seed=seed, options=self._options[0] or None)
        self.reset_infos = rows(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take note of actions."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], Infos]:
        """Step with the actions of `step_async`."""
        observations, rewards, terminated, truncated, together = self.venv.step(self._actions)
        ended = terminated | truncated
        infos = rows({name: value for name, value in together.items() if "final_" not in name[:7]}, self.num_envs)
        limited = (truncated & ~terminated).tolist()
        if ended.any():
            last, last_observations = rows(together["final_info"], self.num_envs), together["final_obs"]
            for i in np.flatnonzero(ended).tolist():
                self.reset_infos[i] = infos[i]
                infos[i] = last[i] | {"terminal_observation": last_observations[i]}
        for info, flag in zip(infos, limited, strict=True):
            info["TimeLimit.truncated"] = flag
        return observations, np.asarray(rewards, np.float32), ended, infos

    def close(self) -> None:
        """Close the vector environment."""
        self.venv.close()

    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Pictures of the sub-environments."""
        frames: Any = self.venv.render()
        return [None] * self.num_envs if frames is None else list(frames)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of sub-environments; one of the vector environment itself counts for each of them."""
        if hasattr(self.venv, "get_attr"):
            found = self.venv.get_attr(attr_name)
        else:
            name = f"single_{attr_name}" if attr_name in ("action_space", "observation_space") else attr_name
            found = (getattr(self.venv, name),) * self.num_envs
        return [found[i] for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of sub-environments.

        Raises:
            AttributeError: the vector environment keeps its sub-environments to itself.
        """
        if not hasattr(self.venv, "set_attr"):
            raise AttributeError(f"`{attr_name}` cannot be set: {self.venv} has no sub-environments of its own.")
        values = [value] * self.num_envs
        if indices is not None:
            chosen = set(self._get_indices(indices))
            before = self.get_attr(attr_name)
            values = [value if i in chosen else before[i] for i in range(self.num_envs)]
        self.venv.set_attr(attr_name, values)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """What a method returns for sub-environments; it is called for all of them.

        Raises:
            AttributeError: the vector environment has no `call` for it.
        """
        if not hasattr(self.venv, "call"):
            raise AttributeError(f"`{method_name}` cannot be called: {self.venv} has no `call`.")
        found = self.venv.call(method_name, *method_args, **method_kwargs)
        return [found[i] for i in self._get_indices(indices)]

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Any = None
    ) -> list[bool]:
        """Whether sub-environments are wrapped; those of a fused vector environment are not."""
        envs = getattr(self.venv.unwrapped, "envs", None)
        return [envs is not None and is_wrapped(envs[i], wrapper_class) for i in self._get_indices(indices)]


def rows(infos: Mapping[str, Any], n: int) -> Infos:
    """Infos of a vector environment as one dict per sub-environment, with what its masks let through."""
    found: Infos = [{} for _ in range(n)]
    for name, values in infos.items():
        if name.startswith("_"):
            continue
        if isinstance(values, Mapping):
            listed: Sequence[Any] = rows(values, n)
        else:
            listed = values.tolist() if values.ndim == 1 else list(values)
        mask = infos.get(f"_{name}")
        if mask is None or mask.all():
            for info, value in zip(found, listed, strict=True):
                info[name] = value
        else:
            for i in np.flatnonzero(mask).tolist():
                found[i][name] = listed[i]
    return found
