"""What the file of a substrate must hold, and in which words another one is refused."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp

from ..cognition import learner, persistence
from ..cognition.config import Config
from ..cognition.errors import DamagedFileError, MismatchError
from . import reward_scale
from .perception import Unit

FILE_FORMAT = "habitus.substrate"
HEADER_TYPES: Mapping[str, type] = {
    "observation_space": str,
    "actions": list,
    "nodes": list,
    "columns": list,
    "factors": list,
    "settings": dict,
    "style": dict,
    "seed": int,
    "choices": int,
    "num_timesteps": int,
    "reward_scale": list,
    "learns_scale": bool,
    "has_adviser": bool,
    "shapes": list,
}


def target_of(path: str | os.PathLike[str]) -> Path:
    """File to write: the path, with `.zip` where it has no suffix. A folder is refused."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"`path` must name a file, got the folder {target}; add a file name.")
    return target if target.suffix else target.with_suffix(".zip")


def source_of(path: str | os.PathLike[str]) -> Path:
    """File to read: the path as it stands, or the one that `target_of` makes of it."""
    source = Path(path)
    return source if source.suffix or source.is_file() else source.with_suffix(".zip")


def opened(
    path: str | os.PathLike[str], env: gymnasium.Env[Any, Any], *, has_adviser: bool
) -> tuple[Path, dict[str, Any], persistence.Arrays]:
    """The file that `path` means, its header and its arrays, of an agent that can live in `env`.

    Raises:
        as `Substrate.load` documents it.
    """
    path = source_of(path)
    header, arrays = persistence.read(path)
    if header.get("format") != FILE_FORMAT:
        raise MismatchError(f"{path} holds {header.get('format')!r}, expected {FILE_FORMAT!r}.")
    check_header(path, header)
    stored, here = header["observation_space"], str(env.observation_space)
    if stored != here:  # before settings that make sense for the other space only are refused
        raise MismatchError(difference(path, "observation_space", stored, here))
    if header["has_adviser"] != has_adviser:
        had, way_out = ("one", "give it to `load`") if header["has_adviser"] else ("none", "leave it out")
        raise TypeError(f"`adviser` must be as it was when {path} was saved: the agent had {had}; {way_out}.")
    return path, header, arrays


def check_identity(path: Path, header: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Refuse the file of an agent that is built differently from the one of this identity."""
    for name, expected in identity.items():
        if header[name] != expected:
            raise MismatchError(difference(path, name, header[name], expected))


def unit_of(header: Mapping[str, Any], config: Config) -> Unit:
    """The unit of rewards as it was."""
    unit = Unit(config.reward_bound, is_learnt=header["learns_scale"], is_declared=True, gamma=config.gamma)
    if unit.is_learnt:
        unit.scale = reward_scale.RewardScale(*header["reward_scale"])
        unit.bound = float(unit.scale.bound)
    return unit


def plain(config: Config) -> dict[str, Any]:
    """Settings as JSON values."""
    return {**dataclasses.asdict(config), "kind_variance": dict(config.kind_variance)}


def check_header(path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
    """Refuse a header that lacks what an agent is built from."""
    for name, kind in HEADER_TYPES.items():
        if name not in header:
            raise DamagedFileError(f"the header of {path} lacks {name!r}; the file is damaged.")
        if type(header[name]) is not kind or (kind is int and header[name] < 0):
            raise DamagedFileError(
                f"the header of {path} is damaged: {name!r} must be of type {kind.__name__}"
                f"{' and at least 0' if kind is int else ''}, got {header[name]!r:.60}."
            )


def filled(path: str | os.PathLike[str], state: learner.State, arrays: persistence.Arrays) -> learner.State:
    """The state with the arrays of a file in the place of its own."""
    leaves, tree = jax.tree.flatten_with_path(state)
    found = []
    for where, leaf in leaves:
        name = leaf_name(where)
        if name not in arrays:
            raise DamagedFileError(f"{path} lacks the array {name!r}; the file is damaged.")
        array = arrays[name]
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise DamagedFileError(
                f"the array {name!r} of {path} must be {leaf.dtype} of shape {leaf.shape}, "
                f"got {array.dtype} of shape {array.shape}; the file is damaged."
            )
        found.append(jnp.asarray(array))
    state = jax.tree.unflatten(tree, found)
    return state


def leaf_name(where: Any) -> str:
    """Name of a leaf of the state in a file."""
    return jax.tree_util.keystr(where).strip(".")


def difference(path: str | os.PathLike[str], name: str, stored: Any, expected: Any) -> str:
    """What differs between a saved agent and an environment, in one sentence."""
    if isinstance(stored, list) and isinstance(expected, list):
        pairs = enumerate(zip(stored, expected, strict=False))
        at = next((i for i, (a, b) in pairs if a != b), min(len(stored), len(expected)))
        there = repr(stored[at]) if at < len(stored) else "nothing"
        here = repr(expected[at]) if at < len(expected) else "nothing"
        detail = f"entry {at} of {len(stored)} is {there}, the environment's {len(expected)} have {here} there"
    else:
        detail = f"it is {stored}, the environment has {expected}"
    return f"{path} was saved with other `{name}`: {detail}. Load it with the environment that it was trained in."
