"""What decides shapes and code of a compiled learner: static, hashable, equal structures share compiled functions.

Nodes are numbered in this order: those that an encoder knows (`n_context`, bias first); the agent's own last and first
action in the encounter at hand; what an adviser says; prototypes together with what is observed; conjunctions; cases.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

from .config import Config, Rule

SLOTS = 2
"""Prototypes that can be on at once."""
FADED, MAX_TRACES = 0.05, 32
"""Share of an error from which on decisions are reached no more, and decisions reached at most."""
MAX_ENTITIES, MAX_CELLS = 1 << 15, 1 << 16
"""Entities, and cells of behaviour, that an event of the prototypes' memory can name."""
SIMILAR = 4
"""Cases that can be on at once."""


class Behaviour(NamedTuple):
    """A table of what entities do: so many situations, so many symbols each, symbol 0 = nothing seen."""

    n_contexts: int
    n_symbols: int


@dataclasses.dataclass(frozen=True)
class Structure:
    """Shapes and code of a learner.

    An action whose outcome is a declared multiple of another's has no edges of its own: it reads and trains the column
    of that action, `factor` apart. Positions count the paths of an observation: first those of the encoder, then, with
    `encounter`, the last and the first own action.

    Attributes:
        n_context: nodes that the encoder numbers; node 0 is the bias.
        n_base: B, paths that it gives for every observation.
        columns: per action (A of them), the column of edges it reads, in [0, C).
        factors: per action, its outcome over that of its column.
        deliberation: per action, whether it deliberates.
        ledger_capacity: L, decisions that can wait, a power of two.
        feedback_slots: M, outcomes credited per step.
        rule: learning rule.
        traces: T, decisions that an error reaches, the present one included; 1 = no traces.
        bootstraps: whether what the next decision promises is part of a target.
        average_reward: whether time costs the mean reward.
        detects: whether a turn of the mean reward re-opens what is known.
        cuts: whether errors do not reach back beyond an action that was not the greedy one (Watkins).
        signed: whether net strengths may be negative.
        gate: whether conjunctions wait for both of their parts.
        muted: positions whose nodes have no edges to decisions: they only say whom a situation is about.
        common: positions whose nodes have an edge to all actions at once besides.
        encounter: whether own actions in the encounter are nodes.
        advice: whether an adviser's word is a node.
        prototypes: Z, prototypes that entities share; 0 = none.
        crossed: positions that are conjoined with prototypes.
        crossed_nodes: the nodes that stand at these positions.
        n_entities: entities, 0 = unknown included.
        behaviours: tables of what entities do.
        paired: positions that are conjoined with each other on demand.
        conjunctions: capacity of those, 0 = none.
        conjunction_after: times two nodes are seen together before.
        cases: capacity of exemplars, 0 = none.
        regimes: sets of rules that are remembered.

    Raises:
        ValueError: lengths that do not fit, columns with gaps, or a factor that is not positive.
    """

    n_context: int
    n_base: int
    columns: tuple[int, ...]
    factors: tuple[float, ...]
    deliberation: tuple[bool, ...]
    ledger_capacity: int = 256
    feedback_slots: int = 4
    rule: Rule = "kalman"
    traces: int = 1
    bootstraps: bool = True
    average_reward: bool = False
    detects: bool = False
    cuts: bool = False
    signed: bool = True
    gate: bool = True
    muted: tuple[int, ...] = ()
    common: tuple[int, ...] = ()
    encounter: bool = False
    advice: bool = False
    prototypes: int = 0
    crossed: tuple[int, ...] = ()
    crossed_nodes: tuple[int, ...] = ()
    n_entities: int = 1
    behaviours: tuple[Behaviour, ...] = ()
    paired: tuple[int, ...] = ()
    conjunctions: int = 0
    conjunction_after: int = 15
    cases: int = 0
    regimes: int = 1

    def __post_init__(self) -> None:
        if not len(self.columns) == len(self.factors) == len(self.deliberation):
            raise ValueError(
                "`columns`, `factors` and `deliberation` must have one entry per action, got lengths "
                f"{len(self.columns)}, {len(self.factors)} and {len(self.deliberation)}."
            )
        if set(self.columns) != set(range(self.n_columns)):
            raise ValueError(f"`columns` must use every column from 0 on, got {self.columns}.")
        if min(self.factors) <= 0:
            raise ValueError(f"`factors` must be positive, got {self.factors}; a loss cannot scale to a gain.")
        cells = sum(table.n_contexts * table.n_symbols for table in self.behaviours)
        for name, value, most in (("n_entities", self.n_entities, MAX_ENTITIES), ("behaviours", cells, MAX_CELLS)):
            if self.prototypes and value > most:
                raise ValueError(
                    f"`{name}` must make at most {most} entries with prototypes, got {value}; set prototypes=0."
                )

    @property
    def n_actions(self) -> int:
        """A, number of actions."""
        return len(self.columns)

    @property
    def n_columns(self) -> int:
        """C, number of actions that have edges of their own."""
        return max(self.columns) + 1

    @property
    def width(self) -> int:
        """C1, edges of a node on one channel: to each of the C columns and, with `common`, one to all of them."""
        return self.n_columns + bool(self.common)

    @property
    def first_own_action(self) -> int:
        """Node "last own action: none"; those of the actions follow, then the same for the first own action."""
        return self.n_context

    @property
    def first_advice(self) -> int:
        """Node "adviser says: action 0"; the others follow."""
        return self.first_own_action + 2 * (self.n_actions + 1) * self.encounter

    @property
    def first_prototype(self) -> int:
        """Node "prototype 0 and first of the crossed nodes"; the prototypes run fastest."""
        return self.first_advice + self.n_actions * self.advice

    @property
    def first_conjunction(self) -> int:
        """First node of the conjunctions made on demand."""
        return self.first_prototype + self.prototypes * len(self.crossed_nodes)

    @property
    def first_case(self) -> int:
        """First node of the exemplars."""
        return self.first_conjunction + self.conjunctions

    @property
    def n_nodes(self) -> int:
        """N, all nodes with edges to decisions."""
        return self.first_case + self.cases

    @property
    def n_positions(self) -> int:
        """Paths of what is observed and of own actions."""
        return self.n_base + 2 * self.encounter

    @property
    def n_pairs(self) -> int:
        """Conjunctions of two that an observation may switch on."""
        return len(self.paired) * (len(self.paired) - 1) // 2 if self.conjunctions else 0

    @property
    def n_paths(self) -> int:
        """P, paths of every observation."""
        of_prototypes = min(SLOTS, self.prototypes) * len(self.crossed)
        of_cases = min(SIMILAR, self.cases)
        return self.n_positions + self.advice + of_prototypes + self.n_pairs + of_cases


def n_traces(config: Config) -> int:
    """T: decisions until (gamma lambda)^T has faded, the present one included."""
    share = config.gamma * config.trace_decay if config.bootstraps else 0.0
    if share <= 0:
        return 1
    return MAX_TRACES if share >= 1 else min(MAX_TRACES, max(1, math.ceil(math.log(FADED) / math.log(share))))


def switches(config: Config) -> dict[str, object]:
    """The part of a `Structure` that follows from a configuration alone."""
    return {
        "ledger_capacity": config.ledger_capacity,
        "feedback_slots": config.feedback_slots,
        "rule": config.rule,
        "traces": n_traces(config),
        "bootstraps": config.bootstraps,
        "average_reward": config.average_reward,
        "cuts": config.cut_traces,
        "detects": config.detector > 0,
        "signed": config.signed,
        "gate": config.gate,
        "conjunctions": config.conjunctions,
        "conjunction_after": config.conjunction_after,
        "cases": config.cases,
        "regimes": config.regimes,
    }
