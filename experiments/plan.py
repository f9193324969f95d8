"""From a study to its runs, each with an identity that depends on nothing but what is run.

A run is one agent in one world with one seed. Its hash is that of the canonical JSON of its specification: keys sorted,
no spaces, labels and paths left out, so that renaming an agent or moving a table does not run anything again, while a
changed setting, a changed table, a changed module of the user or another version of the package does.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from . import own_code
from .study import LENT_WORLDS, Feedback, Study, StudyAgent, StudyWorld, is_table

HASH_DIGITS = 16
PURE = ("substrate", "random", "best_fixed", "rules", "oracle", "filter")
"""Kinds of agents that are pure functions, too."""
LEAST_COMPILED = 100_000
"""Steps of all seeds together from which one compiled call is faster, its compilation included (10 to 30 s)."""
MAX_BLOCK = 64  # episodes in one compiled call; more gain no speed and need more memory


@dataclasses.dataclass(frozen=True)
class Run:
    """One agent in one world with one seed.

    Attributes:
        world, agent: labels in the study.
        world_id: Gymnasium id.
        world_kwargs: all arguments of the world.
        kind: built-in agent or "module:Class".
        settings: arguments of the agent.
        feedback: variant.
        steps: number of steps.
        seed: of the world and of the agent.
        digests: path of a table, or module of the user -> SHA-256, where they are known; else they are read.
    """

    world: str
    agent: str
    world_id: str
    world_kwargs: Mapping[str, Any]
    kind: str
    settings: Mapping[str, Any]
    feedback: Feedback
    steps: int
    seed: int
    digests: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def group(self) -> tuple[str, str, str]:
        """World, agent and variant: what differs from the other runs of the group is the seed alone."""
        return (self.world, self.agent, self.feedback)

    @property
    def may_be_compiled(self) -> bool:
        """Whether it may go through one compiled call with other seeds, by what is known before anything is built."""
        is_ours = self.world_id.split(":")[-1].startswith("habitus/")
        horizon = self.world_kwargs.get("horizon")
        return self.kind in PURE and is_ours and isinstance(horizon, int) and self.steps <= horizon

    def spec(self) -> dict[str, Any]:
        """What is run, as JSON. A table is named by its content; modules of the user add the digest of their source."""
        kwargs = {key: self._table(value) if is_table(value) else value for key, value in self.world_kwargs.items()}
        return {
            "world": {"id": self.world_id, "kwargs": kwargs, **self._code(self.world_id)},
            "agent": {"kind": self.kind, "settings": dict(self.settings), **self._code(self.kind)},
            "feedback": self.feedback,
            "steps": self.steps,
            "seed": self.seed,
            "habitus": __version__,
        }

    @functools.cached_property
    def hash(self) -> str:
        """Identity of the run, 16 hexadecimal digits."""
        return spec_hash(self.spec())

    def _table(self, path: str) -> dict[str, str]:
        return {"table": Path(path).name, "sha256": self.digests.get(path) or _table_digest(path)}

    def _code(self, name: str) -> dict[str, str]:
        module = own_code.module_of(name)
        digest = (self.digests.get(module) or _module_digest(module)) if module else None
        return {"code": digest} if digest else {}


def is_compiled(runs: Sequence[Run]) -> bool:
    """Whether runs of one group go through one compiled call."""
    return runs[0].may_be_compiled and sum(run.steps for run in runs) >= LEAST_COMPILED


def canonical(value: Any) -> str:
    """JSON with one spelling: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def spec_hash(spec: Mapping[str, Any]) -> str:
    """First 16 hexadecimal digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(spec).encode()).hexdigest()[:HASH_DIGITS]


def digests_of(study: Study) -> dict[str, str]:
    """What stands now in the tables and in the user's own modules of a study: path or module -> SHA-256."""
    tables = [value for world in study.worlds for value in world.kwargs.values() if is_table(value)]
    names = [world.id for world in study.worlds] + [agent.kind for agent in study.agents]
    modules = {module: _module_digest(module) for module in map(own_code.module_of, names) if module}
    found = {path: _table_digest(path) for path in tables if Path(path).is_file()}
    return found | {module: digest for module, digest in modules.items() if digest}


def runs_of(study: Study, known: Mapping[str, str] | None = None) -> tuple[Run, ...]:
    """All runs of a study, by world, agent, variant and seed in the study's order.

    Args:
        study: what to run.
        known: digests that count in place of what lies there now, as when a report is made from records alone.
    """
    digests = digests_of(study) | dict(known or {})
    return tuple(
        Run(
            world=world.label,
            agent=agent.label,
            world_id=world.id,
            world_kwargs=_arguments(study, world, feedback),
            kind=agent.kind,
            settings=agent.settings,
            feedback=feedback,
            steps=study.steps_of(world),
            seed=seed,
            digests=digests,
        )
        for world in study.worlds
        for agent in _fitting(study, world)
        for feedback in study.feedback_of(world, agent)
        for seed in study.seeds_of(world)
    )


def _fitting(study: Study, world: StudyWorld) -> tuple[StudyAgent, ...]:
    """Agents of one world; a foreign environment offers no oracle and no filter."""
    return tuple(
        agent
        for agent in study.agents
        if (world.is_ours or agent.kind not in LENT_WORLDS) and (not agent.worlds or world.label in agent.worlds)
    )


def _arguments(study: Study, world: StudyWorld, feedback: Feedback) -> dict[str, Any]:
    if not world.is_ours:
        return dict(world.kwargs)
    return {"horizon": study.horizon or study.steps_of(world), **world.kwargs, "feedback": feedback}


def _table_digest(path: str) -> str:
    """Digest of a table and of the description beside it."""
    return _digest_now(Path(path), Path(path).with_suffix(".yaml"))


def _module_digest(module: str) -> str | None:
    source = own_code.source_of(module)
    return _digest_now(source) if source else None


def _digest_now(*paths: Path) -> str:
    return _digest(tuple((path, path.stat().st_mtime_ns) for path in paths if path.is_file()))


@functools.lru_cache(maxsize=32)
def _digest(files: tuple[tuple[Path, int], ...]) -> str:
    """SHA-256 of the files' bytes; the modification times only make a changed file a new question to the cache."""
    digest = hashlib.sha256()
    for file, _ in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()
