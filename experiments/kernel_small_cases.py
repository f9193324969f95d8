"""Cases of the bench on small graphs: many decisions on graphs of their own or on one, a single one, gradients."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from ..cognition.activation import Sources, Spreader, recall
from ..cognition.activation.pull.dense import dense_spread
from ..cognition.activation.pull.ell import ell_spread
from ..cognition.activation.pull.forms import dense_form, ell_form, ell_shape
from ..cognition.graph import EdgeList
from . import kernel_baselines as baselines
from . import kernel_graphs as graphs
from .kernel_bench import Bench

FloatArray = npt.NDArray[np.float32]

OWN_SIZES = (64, 128, 256, 512)
OWN_GOALS = {256: 4.0}
BATCH, QUICK_BATCH = 1_024, 64
DIFFERENT = 64  # graphs, repeated to fill a batch
SHARED_SIZE = 256
DECISION_SIZE = 64
N_SOURCES = 6
TOP = 1  # what NumPy's argmax gives


def small_graph(size: int, seed: int) -> EdgeList:
    """A graph of `size` nodes and mean degree 10; its hubs are mild, as in a sample."""
    return graphs.clustered_graph(size, inside=0.0, seed=seed)


def add(bench: Bench) -> None:
    """Add all cases."""
    batch = QUICK_BATCH if bench.is_quick else BATCH
    for size in OWN_SIZES[:2] if bench.is_quick else OWN_SIZES:
        bench.said(f"graphs of {size} nodes")
        add_own(bench, size, batch)
    add_shared(bench, SHARED_SIZE, batch)
    add_decision(bench)
    add_gradients(bench)


def sources_of(size: int, batch: int) -> tuple[Sources, FloatArray]:
    """Sources of value 1 for each of a batch, as such and as [batch, size] f32."""
    rng = np.random.default_rng(size)
    nodes = np.stack([rng.choice(size, N_SOURCES, replace=False) for _ in range(batch)]).astype(np.int32)
    dense = np.zeros((batch, size), np.float32)
    dense[np.arange(batch)[:, None], nodes] = 1
    return Sources(nodes, np.ones(nodes.shape), np.zeros(nodes.shape, np.int32)), dense


def add_own(bench: Bench, size: int, batch: int) -> None:
    """Every agent has a graph of its own."""
    from ..cognition.activation import EachSpreader

    different = [small_graph(size, seed) for seed in range(min(DIFFERENT, batch))]
    owned = [different[number % len(different)] for number in range(batch)]
    sources, dense = sources_of(size, batch)
    rule = recall()
    weights = np.concatenate([baselines.dense_weights(different, rule)] * (batch // len(different)))
    spreader = EachSpreader(owned, rule, top=TOP)
    place = f"{batch:,} graphs of {size} nodes"
    ours = bench.time(f"own: {place}", lambda: spreader(sources), units=batch, unit="decision")
    theirs = bench.time(
        f"own: {place}, NumPy matmul",
        lambda: baselines.numpy_batch(weights, dense, rule).argmax(axis=1),
        units=batch,
        unit="decision",
    )
    goal = OWN_GOALS.get(size) if batch == BATCH else None
    bench.claim(f"{place} against NumPy batched matmul", "times faster", ours, theirs, goal)


def add_shared(bench: Bench, size: int, batch: int) -> None:
    """Many sources on one graph."""
    edges, rule = small_graph(size, 0), recall()
    sources, dense = sources_of(size, batch)
    weights = np.ascontiguousarray(baselines.dense_weights([edges], rule)[0].T)
    spreader = Spreader(edges, rule, top=TOP)
    place = f"one graph of {size} nodes, {batch:,} sources"
    ours = bench.time(f"shared: {place}", lambda: spreader.many(sources), units=batch, unit="decision")
    theirs = bench.time(
        f"shared: {place}, NumPy x @ W",
        lambda: baselines.numpy_shared(weights, dense, rule).argmax(axis=1),
        units=batch,
        unit="decision",
    )
    bench.claim(f"{place} against NumPy x @ W", "times faster", ours, theirs, 2.0 if batch == BATCH else None)


def add_decision(bench: Bench) -> None:
    """One decision on one graph, from Python to Python."""
    edges, rule = small_graph(DECISION_SIZE, 0), recall()
    sources = Sources(*(part[0] for part in sources_of(DECISION_SIZE, 1)[0]))
    nodes = sources.nodes.tolist()
    weights = baselines.dense_weights([edges], rule)[0]
    spreader = Spreader(edges, rule, top=TOP)
    frontier = baselines.PythonFrontier(edges, rule)

    def numpy_decision() -> int:
        start = np.zeros(DECISION_SIZE, np.float32)
        start[sources.nodes] = 1
        return int(baselines.numpy_single(weights, start, rule).argmax())

    place = f"one decision, {DECISION_SIZE} nodes"
    ours = bench.time(f"single: {place}", lambda: int(spreader(sources).nodes[0]), unit="decision")
    by_numpy = bench.time(f"single: {place}, NumPy", numpy_decision, unit="decision")
    by_python = bench.time(f"single: {place}, plain Python", lambda: frontier.recall(nodes, 1)[0], unit="decision")
    bench.claim(f"{place}, from Python to Python", "microseconds", ours, goal=15.0)
    bench.claim(f"{place}, against NumPy", "times faster", ours, by_numpy, 1.0)
    bench.claim(f"{place}, against plain Python", "times faster", ours, by_python)


def add_gradients(bench: Bench) -> None:
    """The gradient with respect to all weights beside the forward pass."""
    rule = recall(softness=0.02)
    for size in (64, 256):
        edges = small_graph(size, 0)
        start = np.asarray(sources_of(size, 1)[1][0])
        forward, gradient, weights = gradients(edges, start, rule, by_matrix=size <= 64)
        kernel = "dense" if size <= 64 else "ELL"
        place = f"{kernel} kernel, {size} nodes"
        once = bench.time(f"gradient: {place}, forward", functools.partial(_waited, forward, weights))
        both = bench.time(f"gradient: {place}, gradient", functools.partial(_waited, gradient, weights))
        bench.claim(f"gradient against forward pass, {place}", "times the cost", both, once)


def _waited(compiled: Any, weights: Any) -> Any:
    return np.asarray(compiled(weights))


def gradients(edges: EdgeList, start: Any, rule: Any, *, by_matrix: bool) -> tuple[Any, Any, Any]:
    """(sum of all activation, its gradient, weights) of the dense or the ELL kernel, compiled."""
    base = rule.bases(edges).astype(np.float32)
    if by_matrix:
        weights = dense_form(edges, rule, edges.n_nodes, counts=False).weights

        def total(weights: Any) -> Any:
            return dense_spread(weights, start, rule, base=base).sum()
    else:
        source, weights, owner = ell_form(edges, rule, edges.n_nodes, ell_shape([edges], edges.n_nodes))
        source, owner = jax.device_put((source, owner))

        def total(weights: Any) -> Any:
            return ell_spread(source, weights, start, rule, owner=owner, base=base).sum()

    return jax.jit(total), jax.jit(jax.grad(total)), jax.device_put(weights)
