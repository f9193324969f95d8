"""What there is to show: the case at hand and what happened so far in an episode."""

from __future__ import annotations

import array
import collections
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..contract import NO_DECISION, STATUS_LABELS, Field, Schema

N_EVENTS = 40  # latest steps that are kept
KNOWN = STATUS_LABELS[0]
NONE = "none"  # label of a signal that says nothing


class Arrival(NamedTuple):
    """A delayed outcome that arrived."""

    decision: int  # number of the decision, from 0
    action: str  # its label, "?" where the decision is not known
    value: float


class Event(NamedTuple):
    """One step as it is shown.

    Attributes:
        step: number of the decision, from 0.
        action: label.
        reward: of the step.
        boundary: whether an encounter (a ticket, an application) ended.
        signals: name -> label, those that say something.
        text: what `info["text"]` holds, empty where the environment does not narrate.
        observation: after the step.
        arrived: delayed outcomes.
    """

    step: int
    action: str
    reward: float
    boundary: bool
    signals: Mapping[str, str]
    text: Mapping[str, str]
    observation: Any
    arrived: tuple[Arrival, ...]


class History:
    """What happened so far in an episode, as far as it is shown. Call `begin` at a reset, `add` after every step."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self.first_text: Mapping[str, str] = {}
        self.first_observation: Any = None
        self.observation: Any = None  # of the case at hand
        self.info: Mapping[str, Any] = {}  # that came with it
        self.events: collections.deque[Event] = collections.deque(maxlen=N_EVENTS)  # newest last
        self.arrivals: collections.deque[Arrival] = collections.deque(maxlen=N_EVENTS)  # newest last
        self.returns = array.array("d")  # sum of rewards after each step
        self._waiting: dict[int, str] = {}  # decision id -> action

    @property
    def n_made(self) -> int:
        """Decisions made."""
        return len(self.returns)

    @property
    def n_waiting(self) -> int:
        """Decisions whose outcome has not arrived."""
        return len(self._waiting)

    @property
    def total(self) -> float:
        """Sum of rewards."""
        return self.returns[-1] if self.returns else 0.0

    def begin(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Note the reset of an episode."""
        self._forget()
        self.observation, self.info = observation, dict(info)
        self.first_observation, self.first_text = observation, _text_of(info)

    def add(self, action: str, reward: float, info: Mapping[str, Any], observation: Any) -> None:
        """Note one step: the label of its action and what the environment returned."""
        decision_id = int(info.get("decision_id", NO_DECISION))
        if decision_id != NO_DECISION:
            self._waiting[decision_id] = action
        arrived = tuple(
            Arrival(int(decision), self._waiting.pop(decision, "?"), float(value))
            for decision, value in info.get("feedback", ())
        )
        signals = {name: value for name, value in info.items() if isinstance(value, str) and value != NONE}
        boundary = bool(info.get("boundary", False))
        self.events.append(
            Event(self.n_made, action, float(reward), boundary, signals, _text_of(info), observation, arrived)
        )
        self.arrivals.extend(arrived)
        self.returns.append(self.total + float(reward))
        self.observation, self.info = observation, dict(info)


class Scene(NamedTuple):
    """All that a rendering shows."""

    schema: Schema
    history: History
    horizon: int

    @property
    def decision(self) -> int:
        """Number of the decision at hand, from 1; at the end of the episode the last one."""
        return min(self.history.n_made + 1, self.horizon)

    @property
    def regime(self) -> float | None:
        """Regime that `info` tells, None where it tells none."""
        regime = self.history.info.get("regime")
        return None if regime is None else float(regime)

    @property
    def last(self) -> Event | None:
        """The last step."""
        return self.history.events[-1] if self.history.events else None

    def field(self, name: str | None) -> Field | None:
        """A field by its name; None where it is not observed."""
        return next((field for field in self.schema.fields if field.name == name), None)

    def label(self, name: str | None, observation: Any = None) -> str:
        """Label of a category field in an observation, by default that at hand; "" where it is not observed."""
        field = self.field(name)
        if field is None or not field.is_category:
            return ""
        seen = self.history.observation if observation is None else observation
        return field.labels[int(seen[field.name])]

    def rows(self) -> list[tuple[str, str]]:
        """Every field of the case at hand with its value in words; a status stands in the row of its number."""
        statuses = {field.status for field in self.schema.fields}
        return [(words(field.name), self.value(field)) for field in self.schema.fields if field.name not in statuses]

    def value(self, field: Field) -> str:
        """Value of a field in words."""
        if field.is_category:
            return words(self.label(field.name))
        if field.status is not None and (status := self.label(field.status)) != KNOWN:
            return status
        number = float(np.ravel(self.history.observation[field.name])[0])
        return f"{f'{number:,.0f}' if abs(number) >= 1000 else f'{number:.4g}'} {field.unit}".rstrip()

    def is_possible(self, action: int) -> bool:
        """Whether `info["action_mask"]` allows an action; True where there is no mask."""
        mask = self.history.info.get("action_mask")
        return mask is None or bool(mask[action])


def words(name: str) -> str:
    """A name as a person writes it."""
    return name.replace("_", " ")


def signed(value: float) -> str:
    """A reward to two places with its sign; what rounds to nothing is +0.00."""
    return f"{round(value, 2) + 0.0:+.2f}"


def _text_of(info: Mapping[str, Any]) -> Mapping[str, str]:
    text = info.get("text")
    return dict(text) if isinstance(text, Mapping) else {}
