"""Cases of the bench that change a large graph: insertion, strengthening, and a whole online step."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..cognition.activation import SpreadRule, frontier, online, recall
from ..cognition.graph import EdgeList, MemoryGraph, edits
from ..cognition.graph.layout import packed_keys
from .kernel_bench import Bench

BATCH = 1_024
N_BATCHES = 1_000  # of edges that are new; each is used once, or a timing would strengthen what it has inserted
GOAL_SIZE = 1_000_000
RATE = 1e-4
STEP = 1e-6  # too small to reach the bound of a strength while it is timed


def add_edits(bench: Bench, edges: EdgeList, place: str) -> None:
    """Insertion in batches and one by one, and strengthening in place and with a copy."""
    is_goal = edges.n_nodes == GOAL_SIZE
    graph = MemoryGraph.from_edges(edges)
    several, single = new_edges(edges.n_nodes, BATCH), new_edges(edges.n_nodes, 1)
    batch = bench.time(
        f"insertion, {place}, batches of {BATCH:,}", lambda: insert(graph, next(several)), units=BATCH, unit="edge"
    )
    one = bench.time(f"insertion, {place}, single", lambda: insert(graph, next(single)), unit="edge")
    bench.claim(f"edge insertion, {place}, batches of {BATCH:,}", "microseconds", batch, goal=0.5 if is_goal else None)
    bench.claim(f"edge insertion, {place}, single", "microseconds", one, goal=50.0 if is_goal else None)
    strengthened = Strengthening(edges)
    donated = bench.time(f"strengthening, {place}, in place", strengthened.in_place, units=BATCH, unit="edge")
    copied = bench.time(f"strengthening, {place}, with a copy", strengthened.copied, units=BATCH, unit="edge")
    name = f"strengthening {BATCH:,} edges in place, {place}, against a copy"
    bench.claim(name, "times faster", donated, copied, 100.0 if is_goal else None)


def add_online(bench: Bench, edges: EdgeList, place: str, queries: Any) -> None:
    """Recall, decide, and strengthen what led to the decision, one step after the other or many in one scan."""
    is_goal = edges.n_nodes == GOAL_SIZE
    for hubs in (False, True):
        online = Online(edges, recall(), n_sources=queries.shape[1], hubs=hubs)
        name = f"online step, {place}, {'hubs exact' if hubs else 'rows only'}"

        def steps(online: Online = online) -> None:
            for query in queries:
                online.step(query)

        one = bench.time(name, steps, units=len(queries), unit="step")
        bench.claim(f"{name}: recall, decide, learn", "microseconds", one, goal=150.0 if is_goal else None)
        if not hubs:
            many = functools.partial(online.steps, queries)
            scan = bench.time(f"{name}, {len(queries)} in one scan", many, units=len(queries), unit="step")
            bench.claim(f"{name}, {len(queries)} in one scan", "microseconds", scan)


class Online:
    """A graph that learns from each of its decisions, the most active node that is no source; reward 1."""

    def __init__(self, edges: EdgeList, rule: SpreadRule, *, n_sources: int, hubs: bool) -> None:
        graph = MemoryGraph.from_edges(edges)
        limits = frontier.Limits()
        arrays = graph.arrays
        self.changing, self.rest = online.parted(arrays, hubs=hubs)
        self.scratch = frontier.new_scratch(arrays.capacity)
        self._numbers = jax.device_put((rule.params(graph.relations), np.ones(n_sources, np.float32), np.float32(RATE)))

        def decide(arrays: Any, scratch: Any, nodes: Any, numbers: Any) -> Any:
            params, values, _ = numbers
            return online.decide(arrays, scratch, nodes, values, None, rule.code, params, limits, hubs=hubs)

        nobody = np.full(n_sources, -1, np.int32)  # whose trace is of nothing
        _, self.trace, self.scratch = jax.jit(decide, donate_argnums=1)(arrays, self.scratch, nobody, self._numbers)

        def step(changing: Any, scratch: Any, trace: Any, rest: Any, nodes: Any, numbers: Any) -> Any:
            params, values, rate = numbers
            arrays, reward = online.joined(changing, rest), jnp.float32(1.0)
            arrays, *others = online.online_step(
                arrays, scratch, trace, reward, rate, nodes, values, None, rule.code, params, limits, hubs=hubs
            )
            return online.parted(arrays, hubs=hubs)[0], *others

        def steps(changing: Any, scratch: Any, trace: Any, rest: Any, nodes: Any, numbers: Any) -> Any:
            def one(carry: Any, nodes: Any) -> Any:
                changing, scratch, trace = carry
                *following, decision = step(changing, scratch, trace, rest, nodes, numbers)
                return tuple(following), decision

            carry, decisions = jax.lax.scan(one, (changing, scratch, trace), nodes)
            return *carry, decisions

        self._step = jax.jit(step, donate_argnums=(0, 1, 2))
        self._steps = jax.jit(steps, donate_argnums=(0, 1, 2))

    @property
    def arrays(self) -> Any:
        """The graph as it is."""
        return online.joined(self.changing, self.rest)

    def step(self, nodes: Any) -> Any:
        """Learn from the last decision and make the next, from sources [S] i32."""
        return self._made(self._step, nodes)

    def steps(self, nodes: Any) -> Any:
        """As many steps as there are rows of sources, [B, S] i32."""
        return self._made(self._steps, nodes)

    def _made(self, call: Any, nodes: Any) -> Any:
        made = call(self.changing, self.scratch, self.trace, self.rest, nodes, self._numbers)
        self.changing, self.scratch, self.trace, decision = made
        np.asarray(decision.choice)
        return decision


def new_edges(n_nodes: int, size: int, seed: int = 3) -> Iterator[tuple[Any, Any, Any]]:
    """Batches of random edges, drawn beforehand; they repeat after N_BATCHES."""
    rng = np.random.default_rng(seed)
    shape = (N_BATCHES, size)
    source = rng.integers(0, n_nodes, shape, dtype=np.int32)
    target = (source + rng.integers(1, n_nodes, shape, dtype=np.int32)) % n_nodes
    strength = rng.uniform(0.1, 1, shape).astype(np.float32)
    return itertools.cycle(zip(source, target, strength, strict=True))


def insert(graph: MemoryGraph, columns: tuple[Any, Any, Any]) -> None:
    """Insert a batch and wait until it is there."""
    graph.add_edges(*columns)
    graph.arrays.n_pool.block_until_ready()


def some_edges(edges: EdgeList, size: int, seed: int) -> Any:
    """[size] numbers of edges, of nodes that are drawn as often whatever their degree."""
    rng = np.random.default_rng(seed)
    order = np.argsort(edges.source, kind="stable")
    degree = edges.out_degree()
    nodes = rng.choice(np.flatnonzero(degree), size)
    start = np.cumsum(degree, dtype=np.int64) - degree
    return order[start[nodes] + (rng.random(size) * degree[nodes]).astype(np.int64)]


class Strengthening:
    """The same edges of a graph over and over, by the compiled edit alone, donated and not."""

    def __init__(self, edges: EdgeList, size: int = BATCH, seed: int = 4) -> None:
        self.arrays = MemoryGraph.from_edges(edges).arrays
        rows = some_edges(edges, size, seed)
        key: Any = packed_keys(jnp.asarray(edges.target[rows]), jnp.asarray(edges.relation[rows], jnp.int32))
        source, strength = jnp.asarray(edges.source[rows]), jnp.full(size, STEP, jnp.float32)
        self.batch = edits.EdgeBatch(source, key, strength, jnp.int32(size))
        self._copying = jax.jit(inspect.unwrap(edits.write_edges), static_argnames="mode")

    def in_place(self) -> None:
        """Donates the arrays and keeps what comes back."""
        self.arrays, written = edits.write_edges(self.arrays, self.batch, mode="add")
        written.counts.block_until_ready()

    def copied(self) -> Any:
        """Leaves the arrays as they are."""
        arrays, written = self._copying(self.arrays, self.batch, mode="add")
        written.counts.block_until_ready()
        return arrays
