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
    def name(self) -> str: ...  # noqa: D102 - documented in habitus.envs.contract.Field
    @property
    def labels(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def low(self) -> float: ...  # noqa: D102
    @property
    def high(self) -> float: ...  # noqa: D102
    @property
    def edges(self) -> Sequence[float]: ...  # noqa: D102
    @property
    def status(self) -> str | None: ...  # noqa: D102
    @property
    def sensitive(self) -> bool: ...  # noqa: D102


class DeclaredScaledAction(Protocol):
    """The outcome of `action` is `factor` times that of `of`."""

    @property
    def action(self) -> str: ...  # noqa: D102
    @property
    def of(self) -> str: ...  # noqa: D102
    @property
    def factor(self) -> float: ...  # noqa: D102


class DeclaredReview(Protocol):
    """`action` buys a verdict about `about`, right with probability `reliability`."""

    @property
    def action(self) -> str: ...  # noqa: D102
    @property
    def about(self) -> str: ...  # noqa: D102
    @property
    def signal(self) -> str: ...  # noqa: D102
    @property
    def good(self) -> str: ...  # noqa: D102
    @property
    def bad(self) -> str: ...  # noqa: D102
    @property
    def reliability(self) -> float: ...  # noqa: D102
    @property
    def gain(self) -> float: ...  # noqa: D102
    @property
    def loss(self) -> float: ...  # noqa: D102


class DeclaredSchema(Protocol):
    """The declared facts of a world."""

    @property
    def world(self) -> str: ...  # noqa: D102
    @property
    def fields(self) -> Sequence[DeclaredField]: ...  # noqa: D102
    @property
    def actions(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def entity_field(self) -> str | None: ...  # noqa: D102
    @property
    def stake_field(self) -> str | None: ...  # noqa: D102
    @property
    def deliberation(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def scaled_actions(self) -> Sequence[DeclaredScaledAction]: ...  # noqa: D102
    @property
    def review(self) -> DeclaredReview | None: ...  # noqa: D102
    @property
    def sensitive(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def reward_bound(self) -> float: ...  # noqa: D102
    @property
    def feedback(self) -> str: ...  # noqa: D102


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
