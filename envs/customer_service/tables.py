"""The rules as the dynamics read them: few tables, each read once a step.

A category is drawn by the alias method (Walker 1977): a half picks one of four columns of a row with its upper two
bits, and one of two categories of the column with the rest. Every category keeps its chance exactly, in 1/65536.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import draws
from ..arithmetic import Arithmetic, Table, Value
from . import rules

COLUMN_BITS = 14
N_COLUMNS = 1 << (draws.HALF_BITS - COLUMN_BITS)
COLUMN = 1 << COLUMN_BITS
SPLIT_BITS, CATEGORY_BITS = COLUMN_BITS + 1, 4  # of a packed column: split, category below it, category from it on
CHANCE_BITS = draws.HALF_BITS + 1  # a threshold lies in [0, 65536]
CHANCE_MASK = (1 << CHANCE_BITS) - 1
PAYS_OFFSET = 4096  # makes the pay of an end positive, so that it can be packed


class Tables(NamedTuple):
    """Tables for `Arithmetic.take`, flat; `drawn` reads those of columns."""

    trust: Table  # [level, persona, action, stage, column]: trust after the action
    solved: Table  # [level, issue, cause, action, trust]: threshold, and the price of the action above it
    mood: Table  # [action, trust, progress, mood, column]: mood after the action
    seen_mood: Table  # [mood, column]: mood as it looks
    reply: Table  # [persona, solved, trust, column]
    event: Table  # [persona, turn, is_close, solved, trust, mood]: threshold, and the pay of an end above it
    survey: Table  # [solved, trust, column]


@functools.cache
def tables() -> Tables:
    """The tables; made once."""
    price = np.broadcast_to(rules.COST[:, None, None, :, None], rules.SOLVED.shape)
    pays = np.broadcast_to(rules.END_PAYS, rules.EVENT.shape) + PAYS_OFFSET
    moods = rules.CLIPPED_MOOD[np.arange(rules.N_MOODS)[:, None] + np.arange(3)]
    return Tables(
        trust=_columns(rules.TRUST, np.arange(rules.N_TRUST)),
        solved=Table(rules.SOLVED | price << CHANCE_BITS),
        mood=_columns(rules.MOOD[..., None, :], moods),
        seen_mood=_columns(np.array([rules.SEEN_WORSE, rules.SEEN_BETTER]), moods),
        reply=_columns(rules.REPLY, rules.REPLY_OF_SLOT),
        event=Table(rules.EVENT | pays << CHANCE_BITS),
        survey=_columns(rules.SURVEY, np.arange(len(rules.SURVEYS))),
    )


def drawn(half: Value, table: Table, row: Value, arithmetic: Arithmetic) -> Value:
    """Category that `half` draws from a row of columns."""
    column = arithmetic.take(table, row * N_COLUMNS + (half >> COLUMN_BITS))
    below, above = column >> SPLIT_BITS & ((1 << CATEGORY_BITS) - 1), column >> (SPLIT_BITS + CATEGORY_BITS)
    return arithmetic.where((half & (COLUMN - 1)) < (column & ((1 << SPLIT_BITS) - 1)), below, above)


def _columns(cumulative: NDArray[np.int64], names: NDArray[Any]) -> Table:
    """Columns of [..., n - 1] cumulative thresholds; `names` are the categories, [..., n], both broadcast."""
    edges = np.pad(cumulative, [(0, 0)] * (cumulative.ndim - 1) + [(1, 1)])
    edges[..., -1] = draws.HALF_ONE
    counts = np.diff(edges, axis=-1)
    shape = np.broadcast_shapes(counts.shape, names.shape)
    rows = zip(*(np.broadcast_to(part, shape).reshape(-1, shape[-1]).tolist() for part in (counts, names)), strict=True)
    return Table([_row(*row) for row in rows])


def _row(counts: list[int], names: list[int]) -> list[int]:
    """N_COLUMNS packed columns in which the i-th name has counts[i] of the 65536 halves; there are at most as many."""
    left = dict(enumerate(counts))
    columns = []
    for _ in range(N_COLUMNS):
        poor = min((i for i in left if left[i] > 0), key=lambda i: left[i])
        split = min(left[poor], COLUMN)
        left[poor] -= split
        rich = max(left, key=lambda i: left[i])
        left[rich] -= COLUMN - split
        columns.append(split | names[poor] << SPLIT_BITS | names[rich] << (SPLIT_BITS + CATEGORY_BITS))
    return columns
