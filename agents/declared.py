"""What an agent may read of a world in advance, as it sees it.

Agents do not import worlds. A world's schema reaches them as an attribute of the environment, and these protocols name
the part of it that they use; `habitus.envs.contract` documents the meaning of every attribute. Any environment may
declare such a schema; without one, an agent falls back on the spaces alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, cast


class DeclaredField(Protocol):
    """One observed field: a category with `labels`, or a number with bounds and quantile `edges`."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Sequence[str]: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def edges(self) -> Sequence[float]: ...
    @property
    def status(self) -> str | None: ...
    @property
    def sensitive(self) -> bool: ...


class DeclaredScaledAction(Protocol):
    """The outcome of `action` is `factor` times that of `of`."""

    @property
    def action(self) -> str: ...
    @property
    def of(self) -> str: ...
    @property
    def factor(self) -> float: ...


class DeclaredReview(Protocol):
    """`action` buys a verdict about `about`, right with probability `reliability`."""

    @property
    def action(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def signal(self) -> str: ...
    @property
    def good(self) -> str: ...
    @property
    def bad(self) -> str: ...
    @property
    def reliability(self) -> float: ...
    @property
    def gain(self) -> float: ...
    @property
    def loss(self) -> float: ...


class DeclaredSignal(Protocol):
    """A fact published in `info[name]`, as one of `labels`; the first means that there is none."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Sequence[str]: ...


class DeclaredBehaviour(Protocol):
    """The type of an entity shows in signal `symbol`, in the situation of signal `context`."""

    @property
    def symbol(self) -> str: ...
    @property
    def context(self) -> str: ...


class DeclaredSchema(Protocol):
    """The declared facts of a world."""

    @property
    def world(self) -> str: ...
    @property
    def fields(self) -> Sequence[DeclaredField]: ...
    @property
    def actions(self) -> Sequence[str]: ...
    @property
    def entity_field(self) -> str | None: ...
    @property
    def stake_field(self) -> str | None: ...
    @property
    def deliberation(self) -> Sequence[str]: ...
    @property
    def scaled_actions(self) -> Sequence[DeclaredScaledAction]: ...
    @property
    def review(self) -> DeclaredReview | None: ...
    @property
    def signals(self) -> Sequence[DeclaredSignal]: ...
    @property
    def behaviours(self) -> Sequence[DeclaredBehaviour]: ...
    @property
    def sensitive(self) -> Sequence[str]: ...
    @property
    def reward_bound(self) -> float: ...
    @property
    def feedback(self) -> str: ...


def schema_of(env: Any) -> DeclaredSchema | None:
    """The schema that an environment declares, through any wrappers; None where it declares none."""
    return cast("DeclaredSchema | None", getattr(getattr(env, "unwrapped", env), "schema", None))


def verdict_value(review: DeclaredReview, verdict: str) -> float | None:
    """Unbiased estimate of what `review.about` would have paid, per unit of stake, from a reviewer's verdict.

    With v = 1 for a bad verdict and r the reliability, E[(v - (1 - r)) / (2 r - 1)] is 1 for a bad and 0 for a good
    case, so that gain - (gain + loss) times it has the right mean for both.

    Returns:
        The estimate, or None when there was no verdict.
    """
    if verdict not in (review.good, review.bad):
        return None
    error = 1.0 - review.reliability
    badness = (float(verdict == review.bad) - error) / (1.0 - 2.0 * error)
    return review.gain - (review.gain + review.loss) * badness
