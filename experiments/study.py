"""A study as data: which question, which worlds, which agents, how many steps, which seeds.

A study is a YAML file; the named ones lie in `studies/`. It is validated whole before anything runs, and what is wrong
is said with file, line and key.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import gymnasium
import pydantic
import yaml

from .. import WORLD_IDS
from ..agents import AGENTS
from . import restriction, study_file
from . import seeds as seeds_module
from .errors import StudyError
from .restriction import REFERENCES as REFERENCES  # part of this module's face, too

Feedback = Literal["attributed", "stream"]

LENT_WORLDS = ("oracle", "filter")
"""Kinds that are lent a world of ours, which agents may not see; an environment of another kind cannot be lent."""

KINDS = (*AGENTS, *(kind for kind in LENT_WORLDS if kind not in AGENTS))
"""Kinds of agents that a study can name, beside "module:Class"."""

NO_LEARNERS = ("random", "best_fixed", "rules", "oracle", "filter")
"""Kinds that learn nothing: what they do is the same in both variants, and they are run once."""

STUDIES = Path(__file__).parent / "studies"


def _check_window(window: tuple[int, int]) -> tuple[int, int]:
    if not 0 <= window[0] < window[1]:
        raise ValueError(f"expected [from, to] with 0 <= from < to, in steps, got {list(window)}.")
    return window


def _check_label(label: str) -> str:
    if not label or label != label.strip() or any(not (c.isalnum() or c in "_-+. ") for c in label) or label[0] == ".":
        raise ValueError(
            f"a label names files, too: expected letters, digits, spaces and _ - + . (not first), got {label!r}."
        )
    return label


Seeds = Annotated[tuple[int, ...], pydantic.BeforeValidator(seeds_module.expand)]
Window = Annotated[tuple[int, int], pydantic.AfterValidator(_check_window)]
Label = Annotated[str, pydantic.AfterValidator(_check_label)]
Steps = Annotated[int, pydantic.Field(ge=1, strict=True)]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class FreshOf(_Strict):
    """What a world is compared with.

    Attributes:
        world: label of another world.
        at: step of that world which is this one's first.
    """

    world: str
    at: Steps


class StudyWorld(_Strict):
    """One world of a study.

    Attributes:
        label: short name in tables.
        id: Gymnasium id; "package:id" imports the package that registers it.
        kwargs: arguments of the world.
        steps, seeds: instead of the study's.
        windows: instead of the study's; all within the steps of this world.
        fresh_of: where this world shows from its first step on what another one shows from some step on, so that
            whoever comes there fresh can be compared with whoever goes on.
    """

    label: Label
    id: str
    kwargs: dict[str, Any] = {}
    steps: Steps | None = None
    seeds: Seeds | None = None
    windows: tuple[Window, ...] | None = None
    fresh_of: FreshOf | None = None

    @property
    def is_ours(self) -> bool:
        """Whether the world takes the arguments that are common to the worlds of this package."""
        return self.id.split(":")[-1].startswith("habitus/")

    @pydantic.field_validator("id")
    @classmethod
    def _known_id(cls, value: str) -> str:
        if value.split(":")[-1].startswith("habitus/") and value.split(":")[-1] not in WORLD_IDS:
            raise ValueError(
                f"unknown world {value!r}, expected one of {_listed(WORLD_IDS)}{study_file.nearest(value, WORLD_IDS)}"
            )
        if ":" not in value and value not in gymnasium.registry:
            hint = study_file.nearest(value, [*WORLD_IDS, *gymnasium.registry])
            raise ValueError(
                f"no world of this id is registered, got {value!r}; say which package does it as `package:id`{hint}"
            )
        return value

    @pydantic.field_validator("kwargs")
    @classmethod
    def _no_reserved(cls, value: dict[str, Any]) -> dict[str, Any]:
        if "feedback" in value:
            raise ValueError("`feedback` is set by the study's own key `feedback`; remove it here.")
        return value


class StudyAgent(_Strict):
    """One agent of a study.

    Attributes:
        kind: name of a built-in agent, or "module:Class" of one's own.
        label: short name in tables; the kind where it is not given.
        settings: keyword arguments of the agent.
        feedback: instead of the study's.
        worlds: labels of the worlds in which it is run; all by default.
    """

    kind: str
    label: Label = ""
    settings: dict[str, Any] = {}
    feedback: tuple[Feedback, ...] | None = None
    worlds: tuple[str, ...] = ()

    @pydantic.model_validator(mode="before")
    @classmethod
    def _default_label(cls, value: Any) -> Any:
        if isinstance(value, dict) and "label" not in value and isinstance(value.get("kind"), str):
            return {**value, "label": value["kind"].split(":")[-1]}
        return value

    @pydantic.field_validator("kind")
    @classmethod
    def _known_kind(cls, value: str) -> str:
        if ":" not in value and value not in KINDS:
            hint = study_file.nearest(value, KINDS)
            raise ValueError(f"unknown agent {value!r}, expected `module:Class` or one of {_listed(KINDS)}{hint}")
        return value

    @pydantic.field_validator("settings")
    @classmethod
    def _no_reserved(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, way_out in (
            ("seed", "it is that of the run; see the study's key `seeds`"),
            ("env", "the world is it"),
        ):
            if name in value:
                raise ValueError(f"`{name}` is set by the study, got {value[name]!r}: {way_out}. Remove it here.")
        return value

    @pydantic.field_validator("feedback")
    @classmethod
    def _some(cls, value: tuple[Feedback, ...] | None) -> tuple[Feedback, ...] | None:
        return _distinct(value) if value is not None else None


class Study(_Strict):
    """A question and the runs that answer it.

    Attributes:
        name: of the study and of its results.
        question: one sentence.
        steps: of every run.
        seeds: of the worlds and the agents; every agent meets every seed.
        worlds: where.
        agents: who; the first is the one that the others are compared with. `random` and `oracle` are added.
        feedback: variants: "attributed" pays a delayed outcome at its decision, "stream" when it arrives.
        windows: [from, to] in steps, over which scores are taken.
        horizon: length of an episode; `steps` where it is not given.
    """

    name: Label
    question: Annotated[str, pydantic.Field(min_length=1)]
    steps: Steps
    seeds: Seeds
    worlds: Annotated[tuple[StudyWorld, ...], pydantic.Field(min_length=1)]
    agents: Annotated[tuple[StudyAgent, ...], pydantic.Field(min_length=1)]
    feedback: tuple[Feedback, ...] = ("attributed",)
    windows: tuple[Window, ...] = ()
    horizon: Steps | None = None

    @pydantic.field_validator("feedback")
    @classmethod
    def _some(cls, value: tuple[Feedback, ...]) -> tuple[Feedback, ...]:
        return _distinct(value)

    @pydantic.field_validator("worlds", "agents")
    @classmethod
    def _distinct_labels(cls, entries: tuple[Any, ...]) -> tuple[Any, ...]:
        labels = [entry.label for entry in entries]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            raise ValueError(f"the label {twice[0]!r} stands twice; give each its own `label`.")
        return entries

    @pydantic.model_validator(mode="after")
    def _windows_fit(self, info: pydantic.ValidationInfo) -> Study:
        longest = max(world.steps or self.steps for world in self.worlds)
        for start, stop in self.windows:
            if start >= longest:
                raise ValueError(f"`windows`: [{start}, {stop}] begins after the last of {longest} steps.")
        self._check_references()
        is_to_run = (info.context or {}).get("is_to_run", True)  # results of an earlier version stay readable
        for number, world in enumerate(self.worlds if is_to_run else ()):
            steps = self.steps_of(world)
            for at, (start, stop) in enumerate(world.windows or ()):
                if stop > steps:
                    raise study_file.MistakeAt(
                        ("worlds", number, "windows", at),
                        f"expected a window within the {steps} steps of this world, got {[start, stop]}.",
                    )
        return self

    def _check_references(self) -> None:
        """Refuse labels that stand for no world, and comparisons with steps that are not run."""
        labels = {world.label: world for world in self.worlds}
        named = [(("agents", i, "worlds"), label) for i, agent in enumerate(self.agents) for label in agent.worlds]
        pairs = [(("worlds", i, "fresh_of"), world.fresh_of) for i, world in enumerate(self.worlds) if world.fresh_of]
        for place, label in [*named, *((place, pair.world) for place, pair in pairs)]:
            if label not in labels:
                hint = study_file.nearest(label, list(labels))
                raise study_file.MistakeAt(
                    place, f"expected the label of a world, one of {_listed(labels)}, got {label!r}{hint}"
                )
        for place, pair in pairs:
            if pair.at >= (n_steps := self.steps_of(labels[pair.world])):
                raise study_file.MistakeAt(
                    place, f"`at` must lie within the {n_steps} steps of {pair.world!r}, got {pair.at}."
                )

    def with_references(self) -> Study:
        """The same study with the `random` and `oracle` references at its end, where they are not there already."""
        present = {agent.kind for agent in self.agents}
        taken = {agent.label for agent in self.agents}
        added = tuple(
            StudyAgent(kind=kind, label=f"reference {kind}" if kind in taken else kind)
            for kind in REFERENCES
            if kind not in present
        )
        return self.model_copy(update={"agents": self.agents + added})

    def windows_of(self, world: StudyWorld) -> tuple[tuple[int, int], ...]:
        """Windows of one world, cut to its steps; where none is given or left, first and last quarter and whole."""
        steps = self.steps_of(world)
        windows = world.windows if world.windows is not None else self.windows
        fitting = tuple((start, min(stop, steps)) for start, stop in windows if start < steps)
        quarter = max(1, steps // 4)
        return fitting or tuple(dict.fromkeys(((0, quarter), (steps - quarter, steps), (0, steps))))

    def steps_of(self, world: StudyWorld) -> int:
        """Steps of the runs of one world."""
        return world.steps or self.steps

    def seeds_of(self, world: StudyWorld) -> tuple[int, ...]:
        """Seeds of the runs of one world."""
        return world.seeds or self.seeds

    def feedback_of(self, world: StudyWorld, agent: StudyAgent) -> tuple[Feedback, ...]:
        """Variants in which one agent is run: one where it learns nothing, or where the world has none."""
        if agent.kind in NO_LEARNERS or not world.is_ours:
            return ("attributed",)
        return agent.feedback or self.feedback

    def restricted(
        self,
        *,
        n_seeds: int | None = None,
        first_seed: int | None = None,
        steps: int | None = None,
        worlds: Sequence[str] = (),
        agents: Sequence[str] = (),
    ) -> Study:
        """The same study with fewer or more seeds and steps, or a choice of its worlds and agents.

        Raises:
            StudyError: a number below 1, or a label that the study does not have.
        """
        change = restriction.of(self, n_seeds=n_seeds, first_seed=first_seed, steps=steps, worlds=worlds, agents=agents)
        return self.model_copy(update=change)

    def to_yaml(self) -> str:
        """The study as a YAML file that reads back as the same study."""
        data = self.model_dump(mode="json", exclude_defaults=True)
        return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)


def load(name_or_path: str | Path, *, is_to_run: bool = True) -> Study:
    """A study, by the name of one that comes with the package or by the path of a file, with its references.

    Args:
        name_or_path: which.
        is_to_run: whether its tables must be there and its worlds' windows must fit; what was run is reported as it is.

    Raises:
        StudyError: no such study, or one that is not valid; the text has one line per mistake.
    """
    path = _locate(name_or_path)
    data, lines = study_file.read(path)
    shown = str(path) if path.parent != STUDIES else path.name
    try:
        study = Study.model_validate(data, context={"is_to_run": is_to_run})
    except pydantic.ValidationError as error:
        raise StudyError(study_file.complaint(shown, error, lines, _valid_keys())) from error
    return _resolve_files(study, path.parent, is_to_run=is_to_run).with_references()


def folder_of(name_or_path: str | Path) -> Path:
    """The folder in which the file of a study lies, and where its own modules are looked for.

    Raises:
        StudyError: no such study.
    """
    return _locate(name_or_path).parent


@functools.cache
def named_studies() -> tuple[str, ...]:
    """Names of the studies that come with the package."""
    return tuple(sorted(path.stem for path in STUDIES.glob("*.yaml")))


def _locate(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    if text in named_studies():
        return STUDIES / f"{text}.yaml"
    path = Path(text)
    if path.is_file():
        return path
    hint = study_file.nearest(text, named_studies())
    raise StudyError(
        f"`{text}`: expected the path of a study file or one of {_listed(named_studies())}; there is neither{hint}"
    )


def _resolve_files(study: Study, folder: Path, *, is_to_run: bool) -> Study:
    """Tables that a world names by path are looked for from the current folder, then beside the study file."""
    worlds = tuple(_resolve_world(world, folder, is_to_run=is_to_run) for world in study.worlds)
    return study.model_copy(update={"worlds": worlds})


def _resolve_world(world: StudyWorld, folder: Path, *, is_to_run: bool) -> StudyWorld:
    kwargs = dict(world.kwargs)
    for key, value in kwargs.items():
        if not is_table(value):
            continue
        found = next((base / value for base in (Path.cwd(), folder) if (base / value).is_file()), None)
        if found is None and not is_to_run:
            continue
        if found is None:
            raise StudyError(
                f"world `{world.label}`: `{key}`: expected an existing table, got {value!r}; "
                f"looked from {Path.cwd()} and from {folder.resolve()}."
            )
        kwargs[key] = str(found.resolve())
    return world.model_copy(update={"kwargs": kwargs})


def is_table(value: Any) -> bool:
    """Whether a world's argument is the path of a table."""
    return isinstance(value, str) and value.lower().endswith(".csv")


def _distinct(values: tuple[Feedback, ...]) -> tuple[Feedback, ...]:
    if not values or len(set(values)) < len(values):
        raise ValueError(f"expected one or both of attributed, stream, each once, got {list(values)}.")
    return values


def _valid_keys() -> dict[str, list[str]]:
    return {
        "": list(Study.model_fields),
        "worlds": list(StudyWorld.model_fields),
        "agents": list(StudyAgent.model_fields),
    }


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
