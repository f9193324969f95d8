"""The frontier kernel from Python: keeps what it needs between calls, and looks again where something did not fit."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from ...graph.layout import GraphArrays
from ...graph.memory_graph import MemoryGraph
from ..derived import living
from ..pull.packing import batch_of, bucket, packed_sources
from ..result import Activation, Dropped, Flows
from ..rule import RuleCode, RuleParams, SpreadRule
from ..sources import Sources
from .query import Limits, frontier_many, frontier_spread, supports
from .state import Scratch, new_scratch

Array = jax.Array
IntArray = npt.NDArray[np.int32]

GROWTH = 4
"""Factor on limits that were too small: each step compiles anew, so few and large ones."""
LARGEST = Limits(active=(1 << 14,), pool=(1 << 15,), touched=1 << 20)
"""Beyond these a query touches so much that a full sweep is faster."""


@functools.partial(
    jax.jit,
    static_argnames=("code", "limits", "top", "evidence", "hubs", "is_timed"),
    donate_argnames=("scratch",),
)
def _spread(
    arrays: GraphArrays, scratch: Scratch, sources: Array, params: RuleParams, *, code: RuleCode, limits: Limits,
    top: int, evidence: int, hubs: bool, is_timed: bool,
) -> tuple[Array, Scratch]:  # fmt: skip
    """One query of [3, S] or many of [B, 3, S]; the result is one i32 array: outputs are dear."""
    values = jax.lax.bitcast_convert_type(sources[..., 1, :], jnp.float32)
    entries = (sources[..., 0, :], values, sources[..., 2, :] if is_timed else None)
    call = frontier_spread if sources.ndim == 2 else frontier_many
    found, scratch = call(arrays, scratch, *entries, code, params, limits, top=top, evidence=evidence, hubs=hubs)
    shape = sources.shape[:-2]
    bits = [
        (jax.lax.bitcast_convert_type(leaf, jnp.int32) if leaf.dtype == jnp.float32 else leaf).reshape(*shape, -1)
        for leaf in jax.tree.leaves(found)
    ]
    return jnp.concatenate(bits, axis=-1), scratch


class FrontierKernel:
    """Spreads activation over one graph or several by their frontiers.

    It owns scratch of 4 bytes a node for each capacity that it has met, which calls use up and renew: not for several
    threads at once.
    """

    def __init__(self) -> None:
        self._scratch: dict[int, Scratch] = {}
        self._params: weakref.WeakKeyDictionary[SpreadRule, dict[tuple[str, ...], RuleParams]] = (
            weakref.WeakKeyDictionary()
        )

    def spread(
        self, graph: MemoryGraph, sources: Any, rule: SpreadRule, *, top: int = 32, evidence: int = 0,
        limits: Limits | None = None, exact: bool = True, hubs: bool = True,
    ) -> Activation:  # fmt: skip
        """The activation of one query, as NumPy arrays.

        Args:
            graph: the graph.
            sources: see `Sources.of`; `Sources` are taken as checked.
            rule: the rule.
            top: how many nodes to return.
            evidence: how many flows to return, with the history; 0 = neither.
            limits: what to start from; None = `Limits()`.
            exact: whether to look again, with limits 4 times as large, until nothing is dropped or `LARGEST` is
                reached; `dropped` says what is missing then.
            hubs: whether to follow edges beyond a node's row.

        Raises:
            TypeError, ValueError: the rule is one that a frontier cannot follow or does not fit the graph, or sources
                or limits are wrong; by name.
        """
        check_query(rule, graph.n_nodes, limits)
        checked = sources
        if not isinstance(checked, Sources):
            checked = Sources.of(checked, graph.n_nodes, rounds=rule.rounds, is_node=living(graph))
        packed = packed_sources(checked)
        hubs = hubs and graph.has_spilled
        limits = _fitted(limits or Limits(), graph.arrays.capacity)
        while True:
            found = self._run(graph, packed, rule, top, evidence, limits, hubs)
            if not exact or not any(found.dropped[:3]):
                return found
            following = _fitted(_larger(limits, found.dropped, hubs), graph.arrays.capacity)
            if following == limits:
                return found
            limits = following

    def spread_many(
        self, graph: MemoryGraph, sources: Sequence[Any] | Sources, rule: SpreadRule, *, top: int = 32,
        evidence: int = 0, limits: Limits | None = None, exact: bool = True, hubs: bool = True,
    ) -> Activation:  # fmt: skip
        """The activations of many queries, with a leading axis [B]; arguments as for `spread`."""
        check_query(rule, graph.n_nodes, limits)
        packed = packed_sources(batch_of(sources, [graph.n_nodes], rule.rounds, [living(graph)]))
        hubs = hubs and graph.has_spilled
        limits = _fitted(limits or Limits(), graph.arrays.capacity)
        n_queries = len(packed)
        padding = np.zeros((bucket(n_queries) - n_queries, *packed.shape[1:]), np.int32)
        padding[:, 0] = -1
        found = self._run(graph, np.concatenate([packed, padding]), rule, top, evidence, limits, hubs)
        found = jax.tree.map(lambda leaf: leaf[:n_queries], found)  # without what filled the batch
        while exact:
            missing = np.flatnonzero(
                found.dropped.active + found.dropped.touched + (found.dropped.edges if hubs else 0)
            )
            worst = Dropped(*(part.max(initial=0) for part in found.dropped))
            following = _fitted(_larger(limits, worst, hubs), graph.arrays.capacity)
            if following == limits:
                break
            limits = following
            found = jax.tree.map(np.array, found)  # a copy that can be written
            for number in missing:  # few: one by one
                again = self._run(graph, packed[number], rule, top, evidence, limits, hubs)
                for old, new in zip(jax.tree.leaves(found), jax.tree.leaves(again), strict=True):
                    old[number] = new
        return Activation(*found)

    def _run(
        self, graph: MemoryGraph, packed: IntArray, rule: SpreadRule, top: int, evidence: int, limits: Limits,
        hubs: bool,
    ) -> Activation:  # fmt: skip
        arrays, code = graph.arrays, rule.code
        scratch = self._scratch.pop(arrays.capacity, None)  # if the call fails it is used up
        if scratch is None:
            scratch = new_scratch(arrays.capacity)
        result, self._scratch[arrays.capacity] = _spread(
            arrays, scratch, packed, self._params_of(rule, graph.relations), code=code, limits=limits, top=top,
            evidence=evidence, hubs=hubs, is_timed=bool(packed[..., 2, :].any()),
        )  # fmt: skip
        return _unpacked(np.asarray(result), code.rounds, top, evidence)

    def _params_of(self, rule: SpreadRule, relations: tuple[str, ...]) -> RuleParams:
        known = self._params.setdefault(rule, {})
        if relations not in known:
            known[relations] = jax.device_put(rule.params(relations))
        return known[relations]


def check_query(rule: SpreadRule, n_nodes: int, limits: Any) -> None:
    """Refuse a rule that a frontier cannot follow or that does not fit the graph, and limits that are none.

    Raises:
        TypeError, ValueError: by name.
    """
    if (refused := supports(rule.code)) is not None:
        raise ValueError(f"`rule` must be one that a frontier can follow, but {refused}; use a full sweep.")
    rule.check_size(n_nodes)
    check_limits(limits)


def check_limits(limits: Any) -> None:
    """Refuse what is neither `Limits` that can be compiled for nor None.

    Raises:
        TypeError, ValueError: by name.
    """
    if limits is None:
        return
    if not isinstance(limits, Limits):
        raise TypeError(f"`limits` must be Limits, got {limits!r}; Limits(active=(8, 64)) makes some.")
    limits.check()


@functools.lru_cache(maxsize=256)
def _fitted(limits: Limits, capacity: int) -> Limits:
    """The limits, none beyond what the graph has or `LARGEST`."""
    size = bucket(capacity + 1)
    return Limits(
        tuple(min(n, size, LARGEST.active[0]) for n in limits.active),
        tuple(min(n, LARGEST.pool[0]) for n in limits.pool),
        min(limits.touched, 2 * size, LARGEST.touched),
    )


def _larger(limits: Limits, dropped: Dropped, hubs: bool) -> Limits:
    """Limits with those enlarged that were too small."""
    return Limits(
        tuple(n * GROWTH for n in limits.active) if dropped.active else limits.active,
        tuple(n * GROWTH for n in limits.pool) if dropped.edges and hubs else limits.pool,
        limits.touched * GROWTH if dropped.touched else limits.touched,
    )


def _unpacked(packed: IntArray, n_rounds: int, top: int, evidence: int) -> Activation:
    """The result as views of the one array, in the order of its leaves."""
    at = 0
    views = {np.int32: packed, np.float32: packed.view(np.float32)}

    def taken(kind: Any, *shape: int) -> Any:
        nonlocal at
        if not shape:
            at += 1
            return views[kind][..., at - 1]
        size = math.prod(shape)
        at += size
        part = views[kind][..., at - size : at]
        return part if len(shape) == 1 else part.reshape((*packed.shape[:-1], *shape))

    i32, f32 = np.int32, np.float32
    found = Activation(
        nodes=taken(i32, top),
        values=taken(f32, top),
        raw=taken(f32, top),
        n_active=taken(i32),
        rounds=taken(i32),
        change=taken(f32),
        dropped=Dropped(taken(i32), taken(i32), taken(i32), taken(i32)),
    )
    if not evidence:
        return found
    flows = Flows(
        source=taken(i32, evidence),
        target=taken(i32, evidence),
        relation=taken(i32, evidence),
        amount=taken(f32, evidence),
        by_round=taken(f32, evidence, n_rounds),
    )
    return found._replace(flows=flows, history=taken(f32, n_rounds + 1, top))
