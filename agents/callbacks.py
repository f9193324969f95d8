"""What a run can be told to do after every step, and how the kinds of callbacks are told apart.

Nothing here imports stable-baselines3: who uses none of its callbacks does not pay for it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .base import Transition

Callback = Callable[[Any, Transition], bool | None]
"""Called after every step with (agent, transition); returning False ends the run."""

_OF_STABLE_BASELINES3 = ("locals", "globals")  # parameters of its function callbacks, whatever underscores are added


def listed(callback: Any) -> list[Any]:
    """The callbacks of a run, one after the other.

    Args:
        callback: None; a function of (agent, transition); one of stable-baselines3, a `BaseCallback` or a function of
            (locals, globals); or a list of them, in which kinds may be mixed.

    Raises:
        TypeError: something that cannot be called after a step.
    """
    if callback is None:
        return []
    found = list(callback) if isinstance(callback, Sequence) and not isinstance(callback, str) else [callback]
    for one in found:
        _check(one)
    return found


def is_of_stable_baselines3(callback: Any) -> bool:
    """Whether a callback follows stable-baselines3: an object of its class, or a function of (locals, globals).

    Functions are told apart by the names of their two parameters, for nothing else differs: underscores aside, they are
    `locals` and `globals` in stable-baselines3. `ConvertCallback(function)` says it whatever the names.
    """
    if _is_base_callback(callback):
        return True
    parameters = _parameters(callback)
    if parameters is None:
        return False
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return tuple(name.strip("_") for name in positional[:2]) == _OF_STABLE_BASELINES3


def joined(callbacks: Sequence[Callback]) -> Callback | None:
    """Functions of (agent, transition) as one: all are called, and one False ends the run."""
    if len(callbacks) < 2:
        return callbacks[0] if callbacks else None

    def call_all(agent: Any, transition: Transition) -> bool:
        returned = [callback(agent, transition) for callback in callbacks]
        return not any(one is False for one in returned)

    return call_all


def _is_base_callback(callback: Any) -> bool:
    module = sys.modules.get("stable_baselines3.common.callbacks")  # not imported: then it cannot be one
    return module is not None and isinstance(callback, module.BaseCallback)


def _check(callback: Any) -> None:
    expected = (
        "a function of (agent, transition), a callback of stable-baselines3 (an object of its `BaseCallback`, or a "
        "function of (locals, globals)), or a list of them"
    )
    if isinstance(callback, type):
        raise TypeError(
            f"`callback` must be {expected}, got the class {callback.__name__}; pass an object of it, "
            f"{callback.__name__}(...)."
        )
    if _is_base_callback(callback):
        return
    if not callable(callback):
        raise TypeError(f"`callback` must be {expected}, got {callback!r}.")
    try:
        inspect.signature(callback).bind(None, None)
    except ValueError:
        return  # compiled functions do not say what they take
    except TypeError as error:
        raise TypeError(
            f"`callback` must be {expected}, got {callback!r}, which cannot be called with two arguments: {error}."
        ) from error


def _parameters(function: Any) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # compiled functions do not say what they take
        return None
