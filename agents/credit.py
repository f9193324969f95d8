"""Which decisions may be learnt from a step, and with what reward: the two declared ways to credit outcomes.

"attributed" waits: a decision whose outcome is still to come (`info["decision_id"] >= 0`) is kept until
`info["feedback"]` lists it, and is then learnt with its own reward. "stream" does not: whatever reward a step brings is
taken as that of its action, so that a delayed outcome is credited to whoever happens to act when it arrives.
"""

from __future__ import annotations

from typing import Generic, Literal, NamedTuple, TypeVar, get_args

from .base import Transition
from .declared import DeclaredSchema

Credit = Literal["attributed", "stream"]
Case = TypeVar("Case")


class Settled(NamedTuple, Generic[Case]):
    """What one step lets an agent learn.

    Attributes:
        now: reward of the decision just made, or None while its outcome is still to come.
        late: earlier cases whose outcome arrived, each with the complete reward of its decision.
    """

    now: float | None
    late: list[tuple[Case, float]]


class Ledger(Generic[Case]):
    """Decisions that wait for their outcome.

    Args:
        credit: how outcomes are credited.
        schema: what the world declares; without one, a decision's reward is taken to include its delayed outcome.

    Raises:
        ValueError: `credit` is unknown.
    """

    def __init__(self, credit: Credit, schema: DeclaredSchema | None) -> None:
        if credit not in get_args(Credit):
            raise ValueError(f"`credit` must be one of {list(get_args(Credit))}, got {credit!r}.")
        self.credit: Credit = credit
        self._pays_on_arrival = schema is not None and schema.feedback == "stream"
        self._pending: dict[int, tuple[Case, float]] = {}

    def __len__(self) -> int:
        """Number of decisions that wait."""
        return len(self._pending)

    def clear(self) -> None:
        """Forget what waits: a new episode starts and numbers its decisions anew."""
        self._pending.clear()

    def settle(self, case: Case, transition: Transition) -> Settled[Case]:
        """Take note of one step.

        Args:
            case: what the agent wants back when the outcome of this step's decision is complete.
            transition: the step. Outcomes of decisions that the ledger does not know are ignored.
        """
        if self.credit == "stream":
            return Settled(transition.reward, [])
        arrived = transition.info.get("feedback", ())
        paid = transition.reward
        if self._pays_on_arrival:  # what was paid for others is not this decision's
            paid -= sum(value for _, value in arrived)
        decision_id = int(transition.info.get("decision_id", -1))
        if decision_id >= 0:
            self._pending[decision_id] = (case, paid)
        late = []
        for arrived_id, value in arrived:
            if (entry := self._pending.pop(int(arrived_id), None)) is not None:
                late.append((entry[0], entry[1] + (value if self._pays_on_arrival else 0.0)))
        return Settled(paid if decision_id < 0 else None, late)
