"""What `habitus play` is about: the world by its name, the actions, the agent at one's side, the references."""

from __future__ import annotations

import csv
import difflib
import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

from .. import WORLD_IDS, agents
from ..agents import Substrate
from ..envs.rendering import recording
from . import execution
from .errors import ExperimentError
from .plan import Run

HORIZON = 200  # decisions of a played episode in a world of this package; few people go on for 2,000
RGB = "rgb_array"
TEXT_WORLD = "CustomerService"
SCORES = Path(__file__).parent / "published" / "worlds.csv"
REFERENCES = ("random", "rules", "filter", "oracle")
_REGIME_NAMES = {"none": "first"}  # of the schedule -> in the table of scores


class Game(NamedTuple):
    """An environment to play in.

    Attributes:
        env: the environment.
        world_id: registered id.
        kwargs: arguments with which it was made.
        schema: what the world declares, None for a foreign environment.
        actions: label of each action, its number for a foreign environment.
        first: number of the first action in the action space.
        horizon: steps of an episode, None where nobody says.
    """

    env: gymnasium.Env[Any, Any]
    world_id: str
    kwargs: Mapping[str, Any]
    schema: Any
    actions: tuple[str, ...]
    first: int
    horizon: int | None


def world_id_of(name: str) -> str:
    """Registered id of "GameNPC", "habitus/GameNPC-v0", or of any other environment.

    Raises:
        ExperimentError: no such id; near ones are named.
    """
    short = {_short(world_id).lower(): world_id for world_id in WORLD_IDS}
    short |= {world_id.removeprefix("habitus/").lower(): world_id for world_id in WORLD_IDS}
    plain = name.strip().removeprefix("habitus:")
    if plain.lower() in short:
        return short[plain.lower()]
    module, colon, registered = plain.rpartition(":")
    if colon:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ExperimentError(f"WORLD: the module of {name!r} cannot be imported: {error}.") from error
    if registered in gymnasium.registry:
        return plain
    ours = [_short(world_id) for world_id in WORLD_IDS]
    by_lower = {candidate.lower(): candidate for candidate in (*ours, *WORLD_IDS, *gymnasium.registry)}
    near = difflib.get_close_matches(registered.lower(), by_lower, 3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(f'`{by_lower[match]}`' for match in near)}?" if near else "."
    raise ExperimentError(
        f"WORLD must be one of {', '.join(ours)} or the id of an environment that Gymnasium knows, got {name!r}{hint}"
    )


def make(world_id: str, options: Mapping[str, Any], *, record: str | None) -> Game:
    """Build the environment.

    Args:
        world_id: registered id.
        options: `difficulty`, `regime`, `text` and `horizon`, each None where it was not given.
        record: file of a recording, None for none.

    Raises:
        ExperimentError: an option does not fit the world, or the environment cannot be played or recorded.
    """
    given = {name: value for name, value in options.items() if value is not None}
    is_ours = world_id in WORLD_IDS
    if is_ours:
        kwargs = {"horizon": HORIZON, **given}
        if "text" in given and _short(world_id) != TEXT_WORLD:
            raise ExperimentError(f"`--text`: only {TEXT_WORLD} tells what is said in words; leave the option out.")
    else:
        if wrong := sorted(set(given) - {"horizon"}):
            raise ExperimentError(f"`--{wrong[0]}`: only the worlds of habitus have it; {world_id} is another's.")
        kwargs = {"max_episode_steps": given["horizon"]} if "horizon" in given else {}
    env = _made(world_id, kwargs)
    if record is not None:
        if RGB not in env.metadata.get("render_modes", ()):
            raise ExperimentError(f"`--record`: {world_id} draws no pictures (render mode {RGB!r}); leave it out.")
        env = _made(world_id, {**kwargs, "render_mode": RGB})
    if not isinstance(env.action_space, gymnasium.spaces.Discrete):
        raise ExperimentError(
            f"{world_id} has the actions {env.action_space}; only numbered ones (Discrete) can be typed."
        )
    schema = getattr(env.unwrapped, "schema", None)
    first, n = int(env.action_space.start), int(env.action_space.n)
    labels = tuple(schema.actions) if schema is not None else tuple(str(first + number) for number in range(n))
    horizon = getattr(env.unwrapped, "horizon", None) or (env.spec.max_episode_steps if env.spec else None)
    return Game(env, world_id, kwargs, schema, labels, first, horizon)


def _made(world_id: str, kwargs: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    try:
        return gymnasium.make(world_id, disable_env_checker=True, **kwargs)
    except (TypeError, ValueError, ImportError, gymnasium.error.Error) as error:
        said = str(error).split(" was raised from the environment creator")[0]
        raise ExperimentError(f"{world_id} cannot be made: {said}") from error


def agent_of(game: Game, agent: str, seed: int) -> Any:
    """The agent at one's side: a kind, "module:Class", or the file of a saved substrate.

    Raises:
        ExperimentError: there is none such, or it cannot live in this environment step by step.
    """
    if agent in agents.PRESETS:
        raise ExperimentError(
            f"`--agent`: {agent} runs a loop of its own and cannot watch step by step; take one of "
            f"{', '.join(kind for kind in agents.AGENTS if kind not in agents.PRESETS)}, or a saved substrate."
        )
    if agent == "oracle" and not hasattr(game.env.unwrapped, "oracle_action"):
        raise ExperimentError(f"`--agent`: {game.world_id} has no oracle.")
    is_file = agent not in agents.AGENTS and ":" not in agent and (agent.endswith(".zip") or Path(agent).is_file())
    try:
        if is_file:
            return Substrate.load(agent, game.env)
        run = Run(
            world=game.world_id,
            agent=agent,
            world_id=game.world_id,
            world_kwargs=game.kwargs,
            kind=agent,
            settings={},
            feedback="attributed",
            steps=game.horizon or HORIZON,
            seed=seed,
        )
        return execution.make_agent(run, game.env)
    except FileNotFoundError as error:
        raise ExperimentError(f"`--agent`: there is no file {agent!r}.") from error
    except (TypeError, ValueError, ImportError) as error:  # whatever it says about its world is for the user
        raise ExperimentError(f"`--agent`: {error}") from error


def check_recording(record: str) -> None:
    """Refuse a recording that could not be written, before anybody plays.

    Raises:
        ExperimentError: another kind of file, no folder for it, or an MP4 without moviepy.
    """
    path = Path(record)
    if path.suffix.lower() not in recording.SUFFIXES:
        raise ExperimentError(f"`--record` must end in {' or '.join(recording.SUFFIXES)}, got {record!r}.")
    if not path.parent.is_dir():
        raise ExperimentError(f"`--record`: the folder {str(path.parent)!r} does not exist; create it.")
    if path.suffix.lower() == ".mp4" and importlib.util.find_spec("moviepy") is None:
        raise ExperimentError("`--record`: an MP4 needs moviepy: `pip install 'habitus[video]'`, or record a .gif.")


def references(schema: Any, options: Mapping[str, Any], table: str | None = None) -> list[tuple[str, float]]:
    """Published mean rewards of a step, of random, rules, filter and oracle; empty where none fit.

    Args:
        schema: of the world.
        options: those of `make`.
        table: text of worlds.csv, by default that of the package, where it has one.
    """
    if schema is None:
        return []
    if table is None:
        if not SCORES.is_file():
            return []
        table = SCORES.read_text(encoding="utf-8")
    regime = options.get("regime") or "none"
    wanted = (
        schema.world,
        str(schema.version),
        options.get("difficulty") or "medium",
        _REGIME_NAMES.get(regime, regime),
    )
    found = {
        row["policy"]: float(row["reward_per_step"])
        for row in csv.DictReader(io.StringIO(table))
        if (row["world"], row["version"], row["difficulty"], row["regime"]) == wanted
    }
    return [(policy, found[policy]) for policy in REFERENCES if policy in found]


def matches(typed: str, labels: Sequence[str]) -> list[int]:
    """Actions that a typed number, name or beginning of a name means, by position."""
    wanted = _plain(typed)
    plain = [_plain(label) for label in labels]
    if wanted in plain:
        return [plain.index(wanted)]
    if wanted.isdecimal():
        are_names = not any(label.isdecimal() for label in labels)  # else a number is the name of an action, or none
        return [int(wanted)] if are_names and int(wanted) < len(labels) else []
    return [number for number, label in enumerate(plain) if label.startswith(wanted)]


def _plain(text: str) -> str:
    return text.strip().lower().replace("_", " ").replace("-", " ")


def _short(world_id: str) -> str:
    return world_id.removeprefix("habitus/").rpartition("-v")[0]
