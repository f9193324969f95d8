"""Cases of the bench that change a large graph: insertion, strengthening, and a whole online step."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..cognition.graph import EdgeList, MemoryGraph, edits
from ..cognition.graph.layout import packed_keys
from .kernel_bench import Bench

BATCH = 1_024
N_BATCHES = 1_000  # of edges that are new; each is used once, or a timing would strengthen what it has inserted
GOAL_SIZE = 1_000_000
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


class Strengthening:
    """The same edges of a graph over and over, by the compiled edit alone, donated and not."""

    def __init__(self, edges: EdgeList, size: int = BATCH, seed: int = 4) -> None:
        self.arrays = MemoryGraph.from_edges(edges).arrays
        rows = np.random.default_rng(seed).choice(edges.n_edges, size, replace=False)
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
