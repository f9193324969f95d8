"""Cases of the bench on large graphs: recall, full sweeps, the limits of the machine, edits, an online step, memory."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..cognition.activation import Sources, Spreader, SpreadRule, pagerank, recall
from ..cognition.activation import frontier as frontiers
from ..cognition.activation.frontier.kernel import FrontierKernel
from ..cognition.activation.pull.compiled import Plan, pull_of
from ..cognition.activation.pull.sweep_form import sweep_form
from ..cognition.graph import EdgeList, MemoryGraph
from . import kernel_baselines as baselines
from . import kernel_edit_cases
from . import kernel_graphs as graphs
from .kernel_bench import Bench

N_QUERIES = 64
N_SOURCES = 8
WIDE = 16.0  # degree from which the wide rule divides: more stays active, and a frontier has more to do
BEST = 20  # compared with the exact result
LOCAL = 0.7
FAMILIES = {"random": 0.0, "local": LOCAL}
FRONTIER_FROM = 20_000  # nodes; below, a full sweep is faster
LARGE = 2_000_000  # nodes; above, only what the goals ask for is measured, which takes 16 GB for 1e7 as it is
SURFED = 100_000
N_ITERATIONS = 10
MEGA = 1e6

GOALS_RECALL = {1_000_000: 200.0}
GOALS_SCALING = {1_000_000: 1.3, 10_000_000: 1.5}
GOALS_SWEEP = {100_000: 1.3, 1_000_000: 1.0}
GOALS_BYTES = {1_000_000: 200.0, 10_000_000: 2_000.0}  # MB
OVERLAP = 0.99
COPY = "memory: copy in order"
STREAMED = 2**25  # f32 numbers


def add(bench: Bench, sizes: Sequence[int]) -> None:
    """Add all cases for graphs of these sizes."""
    stream = baselines.Bandwidth(STREAMED // (64 if bench.is_quick else 1))
    bench.time(COPY, stream.copy, units=8 * stream.n / 1e9, unit="GB read and written")
    recalled: dict[tuple[str, int], str] = {}
    edited = max([size for size in sizes if size <= LARGE], default=0)
    for size in sizes:
        for family, local in FAMILIES.items():
            if size > LARGE and family != "random":
                continue
            bench.said(f"a {family} graph of {size:,} nodes")
            edges = graphs.random_graph(size, local=local)
            place = f"{family}, {size:,} nodes"
            sweep = baselines.ScipySweep(edges, recall())
            if size <= LARGE:
                add_sweep(bench, edges, sweep, place)
            if size >= FRONTIER_FROM or bench.is_quick:
                recalled[family, size] = add_recall(bench, edges, sweep, place)
            if size == edited and family == "random":
                kernel_edit_cases.add_edits(bench, edges, place)
                sources = graphs.queries(edges, N_QUERIES, N_SOURCES)
                kernel_edit_cases.add_online(bench, edges, place, sources)
    for family in FAMILIES:
        add_scaling(bench, family, recalled)
    add_memory(bench, sizes)


def add_scaling(bench: Bench, family: str, recalled: dict[tuple[str, int], str]) -> None:
    """Recall on larger graphs beside that on 1e5 nodes."""
    small = recalled.get((family, SURFED))
    for (of, size), case in recalled.items():
        if of == family and small is not None and size > SURFED:
            name = f"recall, {family}, {size:,} nodes beside {SURFED:,}"
            bench.claim(name, "times the cost", case, small, GOALS_SCALING.get(size))


class Frontier:
    """The frontier kernel with its scratch, compiled for one query and for many in one scan."""

    def __init__(self, graph: MemoryGraph, rule: SpreadRule, *, hubs: bool, top: int = 32) -> None:
        self.graph = graph
        self.scratch = frontiers.new_scratch(graph.arrays.capacity)
        self.params = jax.device_put(rule.params(graph.relations))
        self.values = jnp.ones(N_SOURCES, jnp.float32)

        def call(spread: Any, arrays: Any, scratch: Any, nodes: Any, values: Any, params: Any) -> Any:
            return spread(arrays, scratch, nodes, values, None, rule.code, params, top=top, hubs=hubs)

        self._one = jax.jit(functools.partial(call, frontiers.frontier_spread), donate_argnums=1)
        self._many = jax.jit(functools.partial(call, frontiers.frontier_many), donate_argnums=1)

    def recall(self, nodes: Any) -> Any:
        """One query, [S] i32."""
        found, self.scratch = self._one(self.graph.arrays, self.scratch, nodes, self.values, self.params)
        np.asarray(found.nodes)
        return found

    def recall_many(self, nodes: Any) -> Any:
        """Queries one after the other in one call, [B, S] i32."""
        values = np.ones(nodes.shape, np.float32)
        found, self.scratch = self._many(self.graph.arrays, self.scratch, nodes, values, self.params)
        np.asarray(found.nodes)
        return found


def cycled(call: Callable[[Any], object], items: Iterable[Any]) -> Callable[[], None]:
    """A call that takes all items in turn, so that no query is timed more often than others."""

    def all_of_them() -> None:
        for item in items:
            call(item)

    return all_of_them


def add_recall(bench: Bench, edges: EdgeList, sweep: baselines.ScipySweep, place: str) -> str:
    """Recall by the frontier beside full sweeps, dictionaries and PageRank; returns the name of its case."""
    rule, size = recall(), edges.n_nodes
    graph = MemoryGraph.from_edges(edges)
    queries = graphs.queries(edges, N_QUERIES, N_SOURCES)
    ours, scipy = add_frontier(bench, graph, edges, sweep, queries, rule, f"recall, {place}", GOALS_RECALL.get(size))
    exact = Frontier(graph, rule, hubs=True)
    hubs = bench.time(f"recall, {place}, hubs exact", cycled(exact.recall, queries), units=N_QUERIES, unit="query")
    bench.claim(f"recall, {place}, hubs exact, against SciPy CSR", "times faster", hubs, scipy)
    bench.claim(f"recall, {place}, hubs exact beside rows only", "times the cost", hubs, ours, 2.0)
    add_overlap(bench, exact, sweep, queries, f"recall, {place}, hubs exact")
    kernel = FrontierKernel()
    given = [Sources(query, np.ones(N_SOURCES), np.zeros(N_SOURCES, np.int32)) for query in queries]
    host = bench.time(
        f"recall, {place}, exact, from Python to Python",
        cycled(lambda sources: kernel.spread(graph, sources, rule), given),
        units=N_QUERIES,
        unit="query",
    )
    bench.claim(f"recall, {place}, exact, from Python to Python, against SciPy CSR", "times faster", host, scipy)
    if size <= LARGE:
        wide = recall(degree_cap=WIDE)
        wider = baselines.ScipySweep(edges, wide)
        add_frontier(bench, graph, edges, wider, queries, wide, f"wide recall, {place}", None)
    if baselines.HAS_SURFER and size == SURFED:
        add_surfer(bench, edges, place, ours)
    return ours


def add_frontier(
    bench: Bench,
    graph: MemoryGraph,
    edges: EdgeList,
    sweep: baselines.ScipySweep,
    queries: Any,
    rule: SpreadRule,
    place: str,
    goal: float | None,
) -> tuple[str, str]:
    """Single queries and many in one scan, over rows only, beside SciPy and Python; names of the first and SciPy's."""
    kernel = Frontier(graph, rule, hubs=False)
    ours = bench.time(place, cycled(kernel.recall, queries), units=N_QUERIES, unit="query")
    batch = bench.time(
        f"{place}, {N_QUERIES} in one scan", lambda: kernel.recall_many(queries), units=N_QUERIES, unit="query"
    )
    scipy = bench.time(f"{place}, SciPy CSR", lambda: sweep.recall(queries[0]), unit="query")
    bench.claim(f"{place}, against SciPy CSR", "times faster", ours, scipy, goal)
    bench.claim(f"{place}, {N_QUERIES} in one scan, against SciPy CSR", "times faster", batch, scipy)
    if edges.n_nodes <= LARGE:
        python = baselines.PythonFrontier(edges, rule)
        asked = cycled(python.recall, queries.tolist())
        plain = bench.time(f"{place}, plain Python", asked, units=N_QUERIES, unit="query")
        bench.claim(f"{place}, against plain Python", "times faster", ours, plain)
        bench.claim(f"{place}, {N_QUERIES} in one scan, against plain Python", "times faster", batch, plain)
    add_overlap(bench, kernel, sweep, queries, f"{place}, rows only")
    return ours, scipy


def add_overlap(bench: Bench, kernel: Frontier, sweep: baselines.ScipySweep, queries: Any, place: str) -> None:
    """How much of the exact result is found, how many nodes are active, what is left out."""
    share, n_active, dropped = overlap(kernel, sweep, queries)
    bench.fact(f"{place}: best {BEST} found", share, "of the exact ones", OVERLAP)
    bench.fact(f"{place}: active nodes", n_active, "per query")
    bench.fact(f"{place}: active nodes and edges left out", dropped, "per query")


def overlap(kernel: Frontier, sweep: baselines.ScipySweep, queries: Any) -> tuple[float, float, float]:
    """(share of the exact best that the kernel returns, active nodes, what it left out), means over queries.

    Nodes whose raw activation equals that of the last of the best count as well as that one.
    """
    found_of = []
    for query in queries:
        raw = sweep.spread(query)
        best = baselines.best(raw, BEST, sweep.numbers.threshold)
        found = kernel.recall(query)
        nodes = np.asarray(found.nodes)[:BEST]
        nodes = nodes[nodes >= 0]
        n_there = min(len(best), int((raw >= sweep.numbers.threshold).sum()))  # only active nodes are returned
        share = (raw[nodes] >= raw[best[n_there - 1]] - 1e-5).sum() / n_there
        found_of.append((share, int(found.n_active), sum(int(part) for part in found.dropped)))
    share, n_active, dropped = np.mean(found_of, axis=0).tolist()
    return share, n_active, dropped


def add_surfer(bench: Bench, edges: EdgeList, place: str, recalled: str) -> None:
    """Personalised PageRank of scikit-network beside ours, which folds its matrix once."""
    rule = pagerank(rounds=N_ITERATIONS, tolerance=0.0)
    nodes = graphs.queries(edges, 1)[0]
    spreader = Spreader(edges, rule, kernel="sweep")
    sources = Sources(nodes, np.full(len(nodes), 1 / len(nodes)), np.zeros(len(nodes), np.int32))
    surfer = baselines.Surfer(edges, 0.85, N_ITERATIONS)
    quick = baselines.Surfer(edges, 0.85, recall().rounds)
    ours = bench.time(f"PageRank, {place}", lambda: spreader(sources), unit="query")
    theirs = bench.time(f"PageRank, {place}, scikit-network", lambda: surfer.rank(nodes.tolist()), unit="query")
    short = bench.time(
        f"PageRank, {place}, scikit-network, {recall().rounds} iterations",
        lambda: quick.rank(nodes.tolist()),
        unit="query",
    )
    bench.claim(f"PageRank of {N_ITERATIONS} iterations, {place}, against scikit-network", "times faster", ours, theirs)
    name = f"recall, {place}, against {recall().rounds} iterations of scikit-network (another quantity)"
    bench.claim(name, "times faster", recalled, short)


def product_of(edges: EdgeList, rule: SpreadRule) -> Callable[[Any], Any]:
    """One product with the weights of a graph by the sweep kernel, compiled: x [N] f32 -> what arrives."""
    form, _ = sweep_form(edges, rule, edges.n_nodes)
    plan = Plan(kernel="sweep", code=rule.code, waits=False, is_timed=False, top=1, everything=False, evidence=0)
    held = jax.device_put(form)
    compiled = jax.jit(lambda form, x: pull_of(plan, form)(x)[0])
    return lambda x: compiled(held, x).block_until_ready()


def add_sweep(bench: Bench, edges: EdgeList, sweep: baselines.ScipySweep, place: str) -> None:
    """One product and three whole rounds of a full sweep beside SciPy, and beside what the memory can do."""
    rule, n, n_edges = recall(), edges.n_nodes, edges.n_edges
    x = np.random.default_rng(0).random(n, dtype=np.float32)
    product, held = product_of(edges, rule), jax.device_put(x)
    ours = bench.time(f"product, {place}", lambda: product(held), unit="product")
    theirs = bench.time(f"product, {place}, SciPy CSR", lambda: sweep.multiply(x), unit="product")
    spreader = Spreader(edges, rule, kernel="sweep")
    nodes = graphs.queries(edges, 1)[0]
    sources = Sources(nodes, np.ones(len(nodes)), np.zeros(len(nodes), np.int32))
    rounds = bench.time(f"sweep, {place}", lambda: spreader(sources), unit="query")
    by_scipy = bench.time(f"sweep, {place}, SciPy CSR", lambda: sweep.recall(nodes), unit="query")
    goal = GOALS_SWEEP.get(n) if place.startswith("random") else None
    bench.claim(f"one product, {place}, against SciPy CSR", "times faster", ours, theirs, goal)
    bench.claim(f"{rule.rounds} rounds of a sweep, {place}, against SciPy CSR", "times faster", rounds, by_scipy)
    gathers = baselines.Bandwidth(n)
    gather = bench.time(f"memory: gathers, {place}", gathers.gather, units=n / MEGA, unit="million gathers")
    bytes_ = 8 * n_edges + 12 * n
    name = f"one product, {place}, of the limit by copying in order"
    bench.claim(name, "share", ours, COPY, scale=bytes_ / 1e9)
    bench.claim(f"one product, {place}, of the limit by random gathers", "share", ours, gather, scale=n_edges / MEGA)


def add_memory(bench: Bench, sizes: Sequence[int]) -> None:
    """Bytes of a graph, and the most that a process of its own holds while it builds one and recalls."""
    for size in sizes:
        bench.said(f"memory of {size:,} nodes")
        done = subprocess.run([sys.executable, "-c", PEAK, str(size)], capture_output=True, text=True, check=True)
        arrays, columns, before, peak = (float(word) / MEGA for word in done.stdout.split())
        place = f"{size:,} nodes"
        bench.fact(f"graph, {place}: arrays", arrays, "MB", GOALS_BYTES.get(size), at_most=True)
        bench.fact(f"graph, {place}: edge list it is built from", columns, "MB")
        if peak:  # Linux tells
            bench.fact(f"graph, {place}: peak of the process while it is built, and a recall", peak, "MB")
            bench.fact(f"graph, {place}: the same before, edge list included", before, "MB")


PEAK = """
import pathlib, sys
import jax
from habitus.cognition.activation import spread
from habitus.cognition.graph import MemoryGraph
from habitus.experiments import kernel_graphs
def memory(kind):
    try:
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(kind))
edges = kernel_graphs.random_graph(int(sys.argv[1]))
jax.numpy.zeros(1).block_until_ready()
before = memory("VmRSS")
if before:
    pathlib.Path("/proc/self/clear_refs").write_text("5")
graph = MemoryGraph.from_edges(edges)
spread(graph, [0, 1, 2])
arrays = sum(leaf.nbytes for leaf in jax.tree.leaves(graph.arrays))
columns = (edges.source, edges.target, edges.strength, edges.relation, edges.base, edges.need)
print(arrays, sum(column.nbytes for column in columns), before, memory("VmHWM"))
"""
