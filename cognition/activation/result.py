"""What spreading activation returns."""

from __future__ import annotations

from typing import Any, NamedTuple

NOBODY = -1
"""Node number of an empty place."""


class Dropped(NamedTuple):
    """What did not fit into the bounded structures of a kernel; all [] i32, all 0 for a complete result.

    Attributes:
        active: active nodes that transmitted nothing in some round, because more were active than could be expanded.
        touched: nodes that were reached and not followed, because more were reached than could be held.
        edges: edges of active nodes that were left out, because they lie beyond a node's row.
        flows: edges with a flow that were not listed, because more had one than were asked for.
    """

    active: Any
    touched: Any
    edges: Any
    flows: Any


class Flows(NamedTuple):
    """The edges that carried most, strongest first by the size of their total; M places, NOBODY where there is none.

    Attributes:
        source, target: [M] i32 nodes.
        relation: [M] i32, number of the relation, NOBODY in an empty place.
        amount: [M] f32, x_i m_ij C_j summed over all rounds; negative for inhibition.
        by_round: [M, rounds] f32, the same for each round; 0 after the last.
    """

    source: Any
    target: Any
    relation: Any
    amount: Any
    by_round: Any


class Activation(NamedTuple):
    """What a graph does with its sources. A batch of B has a leading axis [B] in every array.

    Attributes:
        nodes: [top] i32, the most active nodes by (raw downwards, number upwards); NOBODY where fewer are active.
        values: [top] f32, their activation; 0 in empty places.
        raw: [top] f32, the same before the cap, by which they are ordered.
        n_active: [] i32, nodes whose activation is above 0 and at least the threshold.
        rounds: [] i32, rounds that were made.
        change: [] f32, largest change of an activation in the last round; 0 without a round.
        dropped: what is missing from a complete result.
        everything: [N] f32, activation of every node, where it was asked for; else None.
        flows: what the edges carried, where it was asked for; else None.
        history: [rounds + 1, top] f32, activation of `nodes` after each round, where flows were asked for; else None.
            Rows after the last round repeat it.
    """

    nodes: Any
    values: Any
    raw: Any
    n_active: Any
    rounds: Any
    change: Any
    dropped: Dropped
    everything: Any = None
    flows: Flows | None = None
    history: Any = None
