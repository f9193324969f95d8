"""Parameters and state of CustomerService, pytrees of arrays or, under `INTEGERS`, of Python integers."""

from __future__ import annotations

from typing import NamedTuple

import jax

from .. import visitors
from ..arithmetic import Value

Array = jax.Array


class ServiceParams(NamedTuple):
    """What may differ between runs of one compiled step."""

    regime_steps: Array  # [K] i32, see `regimes.Schedule`
    regime_levels: Array  # [K] i32
    redraws: Array  # [] i32, 1 if a change of the rules redraws the personas of those who were away, else 0
    arrivals: visitors.Arrivals


class Ticket(NamedTuple):
    """The ticket at hand; codes of the labels in `rules`, [] i32 each."""

    customer: Value  # index, from 0
    issue: Value
    cause: Value  # hidden until clarified
    channel: Value
    mood: Value  # hidden, see `seen mood` in `show`
    trust: Value  # hidden
    is_solved: Value  # hidden, 0 or 1
    is_clarified: Value  # 0 or 1
    turn: Value  # from 0
    reply: Value
    opening: Value  # 1 + the first action; 0 before it


class ServiceState(NamedTuple):
    """Everything that changes in an episode."""

    step: Array  # [] i32, decisions made so far
    known: visitors.Visitors  # their types are the personas
    ticket: Ticket
