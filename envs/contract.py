"""What a world is: pure functions over pytrees, and a schema that tells an agent all it may know in advance.

The vocabulary is that of Gymnasium's `FuncEnv` (`initial`, `observe`, `step`); unlike there, parameters are an argument
of every function, so that they can be vmapped, and a state may be any pytree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from .arithmetic import Arithmetic

Array = jax.Array
FeedbackMode = Literal["attributed", "stream"]

NO_DECISION = -1
"""Decision id of a step whose consequences are complete with its reward, and id of an empty feedback slot."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One observed field.

    A category field is observed as an int code into `labels`. A number field is observed as one float32; where its
    value can be unknown, the field named by `status` says so and the observed number is then the field's `fill`, which
    carries no information.

    Attributes:
        name: key in the observation.
        labels: one label per code of a category field; empty for a number.
        low, high: bounds of a number, in `unit`.
        unit: unit of a number ("" = none).
        edges: inner quantile edges of a number, ascending, taken from the covariates alone, never from outcomes.
        fill: number observed where the value is unknown.
        status: name of the category field ("known", "missing", "hidden") that belongs to this number, or None.
        sensitive: whether a decision should not depend on it.
    """

    name: str
    labels: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    unit: str = ""
    edges: tuple[float, ...] = ()
    fill: float = 0.0
    status: str | None = None
    sensitive: bool = False

    @property
    def is_category(self) -> bool:
        """Whether the field is observed as a code into `labels`."""
        return bool(self.labels)


STATUS_LABELS = ("known", "missing", "hidden")


@dataclasses.dataclass(frozen=True)
class ScaledAction:
    """Declares that the outcome of `action` is `factor` times the outcome of `of`, whatever the case."""

    action: str
    of: str
    factor: float


@dataclasses.dataclass(frozen=True)
class Signal:
    """A fact published in `info[name]` after a step, as one of `labels`; code 0 means there is none."""

    name: str
    labels: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Review:
    """Declares that `action` buys a second opinion about `about`, published as signal `signal`.

    The opinion is `good` or `bad` and right with probability `reliability`, independently of everything observed. A
    good case pays `gain`, a bad one costs `loss`, per unit of stake, so that
    gain - (gain + loss) * ([bad] - (1 - reliability)) / (2 reliability - 1)
    is an unbiased estimate of what `about` pays.
    """

    action: str
    about: str
    signal: str
    good: str
    bad: str
    reliability: float
    gain: float
    loss: float


@dataclasses.dataclass(frozen=True)
class Behaviour:
    """Declares that an entity's type shows in what it does: signal `symbol`, in the situation of signal `context`.

    Code 0 of `symbol` means that nothing was seen in this step.
    """

    symbol: str
    context: str


@dataclasses.dataclass(frozen=True)
class Schema:
    """All that a world declares to an agent in advance. Everything else has to be learnt.

    Attributes:
        world: name without version, e.g. "CreditReview".
        version: version of the dynamics.
        fields: observed fields, in the order of the observation's keys.
        actions: label of each action.
        entity_field: category field that names a returning entity (code 0 = unknown), or None.
        stake_field: number field to which outcomes are proportional (mean about 1), or None.
        boundary: what ends at a step with `info["boundary"]`, e.g. "application".
        deliberation: actions that buy information or a safer decision instead of deciding at once.
        scaled_actions: actions whose outcome is a multiple of another's.
        review: second opinion, or None.
        signals: facts published in `info`.
        behaviours: signals in which the type of the entity shows, see `Behaviour`.
        sensitive: fields on which a decision should not depend, observed or not.
        proxies: per sensitive field, observed fields that carry information on it.
        reward_bound: no decision's total reward exceeds this in absolute value, per unit of stake.
        feedback: "attributed": a delayed outcome is part of its decision's reward; "stream": of the reward of the step
            on which it arrives. In both it is listed in `info["feedback"]` on arrival.
        score_per: what a mean score is taken over: every "step", or every closed "boundary".
    """

    world: str
    version: int
    fields: tuple[Field, ...]
    actions: tuple[str, ...]
    entity_field: str | None
    stake_field: str | None
    boundary: str
    deliberation: tuple[str, ...]
    scaled_actions: tuple[ScaledAction, ...]
    review: Review | None
    signals: tuple[Signal, ...]
    sensitive: tuple[str, ...]
    proxies: tuple[tuple[str, tuple[str, ...]], ...]
    reward_bound: float
    feedback: FeedbackMode
    score_per: Literal["step", "boundary"]
    behaviours: tuple[Behaviour, ...] = ()


class Outcome(NamedTuple):
    """What one step brought. Shapes are fixed; M is the world's number of feedback slots.

    Attributes:
        reward: [] f32.
        terminated: [] bool; the long-running worlds never terminate, they are truncated by the horizon.
        boundary: [] bool, an encounter (an application, a ticket) ended with this step.
        decision_id: [] i32, id under which a later outcome of this decision will arrive, or NO_DECISION.
        feedback_id: [M] i32, decisions whose outcome arrived in this step, oldest first; NO_DECISION in empty slots.
        feedback_value: [M] f32, the outcomes, without the reward already paid at the decision in "stream" mode.
        signals: name -> [] i32 code into the declared labels.
    """

    reward: Array
    terminated: Array
    boundary: Array
    decision_id: Array
    feedback_id: Array
    feedback_value: Array
    signals: dict[str, Array]


class Solution(NamedTuple):
    """Exact values of a world whose hidden state is known, per regime level; [L] of the levels that were solved.

    Rewards are long-run averages: `values` are differential (relative) values, those of the start of an encounter
    average 0. A world whose decisions have no consequences beyond their own reward has no need of one.
    """

    levels: Array  # [L] i32, ascending
    average: Array  # [L] f32, reward per step of the best policy
    rewards: Array  # [L, S, A] f32, expected reward of an action in a state
    values: Array  # [L, S, A] f32, differential value of an action in a state
    residual: Array  # [L] f32, largest |best value - average - V| of the optimality equation, in float64


class Seen(NamedTuple):
    """One step as an agent sees it: what a filter may learn from."""

    observation: dict[str, Array]  # before the decision
    action: Array  # [] i32
    outcome: Outcome
    following: dict[str, Array]  # observation after it
    step: Array  # [] i32, number of the decision, from 0
    level: Array  # [] i32, regime level in which it was made
    mask: Array  # [n_actions] bool, False where an action is impossible after it


class Filter(Protocol):
    """Infers what is hidden by Bayes, from what an agent sees, knowing the dynamics: the honest upper bound.

    Acts by Q-MDP (Littman, Cassandra & Kaelbling 1995): the action with the best value on average over the belief.
    Every method is pure and can be jitted, vmapped and scanned. `forgets` makes it the best reasoner without memory of
    entities: the same filter that starts anew with every encounter.
    """

    def initial(self, observation: dict[str, Array], params: Any) -> Any:
        """Belief at the first observation of an episode."""

    def update(self, belief: Any, seen: Seen, params: Any) -> Any:
        """Belief after a step."""

    def values(self, belief: Any, observation: dict[str, Array], level: Array, params: Any) -> Array:
        """[n_actions] f32: value of each action, averaged over the belief, under the regime `level` at hand."""


class World(Protocol):
    """Pure dynamics. Every method can be jitted, vmapped over state, key and params, and scanned.

    A function that takes a key consumes it. Random decisions compare integer words with integer thresholds and rewards
    are integers divided once, so that single, vmapped and x64 runs agree bit for bit. Equal worlds trace to the same
    code: what differs between them is in `params`, so that they can share compiled functions, and so that the params of
    equal worlds can be stacked and vmapped over. A world may refuse params by their values, see `ChecksParams`.
    """

    def __hash__(self) -> int:
        """Agrees with equality, so that compiled functions can be kept per world."""

    @property
    def schema(self) -> Schema:
        """What agents may know in advance."""

    @property
    def params(self) -> Any:
        """Default parameters, a pytree of arrays."""

    def initial(self, key: Array, params: Any) -> Any:
        """State before the first decision of an episode."""

    def observe(self, state: Any, key: Array, params: Any) -> dict[str, Array]:
        """Observation: field name -> [] i32 code of a category, or [1] f32 number."""

    def step(self, state: Any, action: Array, key: Array, params: Any) -> tuple[Any, Outcome]:
        """One decision. `action` is [] i32 in [0, n_actions)."""

    def action_mask(self, state: Any, params: Any) -> Array:
        """[n_actions] bool: False where an action is impossible now; taken anyway, it costs its price for nothing."""

    def expected_rewards(self, state: Any, params: Any, solution: Solution | None) -> Array:
        """[n_actions] f32: expected reward of each action itself, its delayed outcome included, all hidden known."""

    def action_values(self, state: Any, params: Any, solution: Solution | None) -> Array:
        """[n_actions] f32: value of each action, later consequences included, all hidden known."""

    def regime(self, state: Any, params: Any) -> Array:
        """[] f32 in [0, 1]: 0 = the first set of rules, 1 = the second, between = a mixture."""

    def audit(self, state: Any, params: Any) -> dict[str, Array]:
        """Facts for measurement, never for agents: [] i32 each, e.g. the sensitive group of the applicant at hand."""

    def solve(self, params: Any) -> Solution | None:
        """Exact values for the levels of the schedule; None where the expected reward is all there is. Not traced.

        The same params give the same solution, which is kept: only the first call takes its time (seconds).
        """

    def filter(self, solution: Solution | None, *, forgets: bool = False) -> Filter:
        """The filtering oracle."""


@runtime_checkable
class IntegerWorld(Protocol):
    """A world whose dynamics are written once for arrays and for Python integers (`habitus.envs.arithmetic`).

    `step(state, action, key, params)` is `advance` under `ARRAYS` with `n_step_halves` of `draws.halves(key, ...)` as
    int32, and `observe` is `show` likewise; `tests/envs` hold both executors equal. Under `INTEGERS`, states and params
    are the same pytrees with Python integers, bools and lists, and `advance` may reuse the lists of the given state.
    The state has `step`, the params `regime_steps` and `regime_levels` (`regimes.Schedule`). A world that lacks any of
    this runs by its compiled functions.
    """

    @property
    def n_step_halves(self) -> int:
        """Random halves of a step, an even number; 0 for none."""

    @property
    def n_observe_halves(self) -> int:
        """Random halves of an observation, an even number; 0 for none."""

    @property
    def draws_apart(self) -> bool:
        """Whether its episodes draw as those of other worlds do, see `episode.draw`; published ones must stay so."""

    def advance(
        self, state: Any, action: Any, halves: Sequence[Any], params: Any, arithmetic: Arithmetic
    ) -> tuple[Any, Outcome]:
        """One decision; under `INTEGERS` the outcome has Python numbers, and lists for its feedback."""

    def show(self, state: Any, halves: Sequence[Any], params: Any, arithmetic: Arithmetic) -> dict[str, Any]:
        """Observation."""

    def mask(self, state: Any, params: Any, arithmetic: Arithmetic) -> list[Any]:
        """`action_mask` as a list, one condition per action; True where it does not depend on the state."""


@runtime_checkable
class ChecksParams(Protocol):
    """A world that knows which params it can run; environments and `rollout` ask it once, at construction.

    Compiled code cannot refuse anything: an index that is out of range reads something else, and a sum that leaves
    int32 goes round. Without `check` only structure, types, shapes and finiteness are looked at.
    """

    def check(self, params: Any) -> None:
        """Refuse params that cannot be run. Not traced.

        Args:
            params: of the structure, types and shapes of `World.params`; all leaves may have one more leading axis.

        Raises:
            ValueError: the message names the leaf, what was expected and what came.
        """


def oracle(world: World, state: Any, params: Any, solution: Solution | None) -> Array:
    """[] i32: the best action when the hidden variables are known, the first of equals."""
    return jnp.argmax(world.action_values(state, params, solution)).astype(jnp.int32)
