"""A few hundred nodes of a large graph around some sources, cut out once and spread on many times.

Worth it where one context meets many decisions, or where something is learnt within it; for a single recall the
frontier kernel costs less. What is near is gathered hop by hop, strongest first; nodes outside that strong activation
would flow to can be pulled in later, in the place of members that stay idle.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from ..graph.edge_list import MAX_NODES, EdgeList
from ..graph.memory_graph import MemoryGraph
from .derived import living
from .named import recall
from .prepared import Spreader
from .result import Activation, Dropped
from .rule import SpreadRule
from .sampling import Local, gather, relevant, replace_idle, unused_places
from .sources import Sources

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
AnySources = Sources | Mapping[int, float] | Sequence[Any]

MAX_SIZE = 1_024
MAX_HOPS = 16
FEWEST_PLACES = 32
NOTHING = 1e-300
"""Strength that becomes 0 in f32."""

# node -> place in a sample, [N + 1] i32, -1 everywhere between calls: too large to be made anew for each
_places: weakref.WeakKeyDictionary[MemoryGraph, jax.Array] = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Members of a graph and the edges between them; S members, E edges.

    Attributes:
        nodes: [S] i32, node numbers of the graph, ascending. Member i is node i of `edges`.
        edges: the edges between members, with the strengths W of the graph, and base levels and needs of the members.
        share: [E] f64, what an edge lets through per unit of its strength: decay and normalisation, by the degrees that
            members have in the whole graph.
        retention: [S] f64.
        sources: what it was gathered around, by node numbers of the graph.
        rule: the rule.
        size: largest number of members.
        dropped: `touched` nodes were reached while gathering and found no place, `edges` of members were not read.
        pulled: nodes that have been pulled in so far.
    """

    nodes: IntArray
    edges: EdgeList
    share: FloatArray
    retention: FloatArray
    sources: Sources
    rule: SpreadRule
    size: int
    dropped: Dropped
    pulled: int = 0

    def spread(self, sources: AnySources | None = None, **options: Any) -> Activation:
        """Spread within the sample, in one compiled call.

        Args:
            sources: by node numbers of the graph, all of them members; None = those it was gathered around.
            options: `top`, `kernel`, `evidence` and `everything` of `spread`.

        Returns:
            As `spread`, with node numbers of the graph; `everything` is [S], in the order of `nodes`.

        Raises:
            ValueError: a source is no member.
        """
        return self._outside(self._spreader(options)(self._within(sources)))

    def spread_many(self, sources: Sequence[AnySources], **options: Any) -> Activation:
        """The same for B sets of sources in one compiled call; results have a leading axis [B]."""
        return self._outside(self._spreader(options).many([self._within(each) for each in sources]))

    def pull(self, graph: MemoryGraph, sources: AnySources | None = None, *, least: float | None = None) -> Sample:
        """The sample after nodes outside have taken the places of idle members.

        Outside nodes into which active members together send at least `least` come in, strongest first. They take free
        places, then those of members below the threshold, weakest first, as long as they bring more than is there.

        Args:
            graph: that it was taken from.
            sources: what is spread first; by default those it was gathered around. None of them is replaced.
            least: flow per round; by default the threshold of the rule, which makes the node active at once.

        Returns:
            A new sample; the same one where nothing is to be pulled in.
        """
        self.rule.check_size(graph.n_nodes)
        kept = self._sources(sources)
        active = self.spread(kept, everything=True).everything
        is_source = np.isin(self.nodes, np.concatenate([kept.nodes, self.sources.nodes]))
        least = self.rule.threshold if least is None else least
        if least < 0:
            raise ValueError(f"`least` must be at least 0, got {least}.")
        n_places = _bucket(self.size)
        members = np.full(n_places, graph.arrays.capacity, np.int32)
        members[: len(self.nodes)] = self.nodes
        activation = np.zeros(n_places, np.float32)
        activation[: len(self.nodes)] = active
        fixed = np.zeros(n_places, bool)
        fixed[: len(self.nodes)] = is_source
        local, place = replace_idle(
            graph.arrays,
            _place_of(graph),
            members,
            activation,
            fixed,
            np.int32(self.size),
            np.float32(least),
            relevant(self.rule.code),
            self.rule.params(graph.relations),
        )
        _places[graph] = place
        pulled = int(local.n_new)
        if pulled == 0:
            return self
        dropped = self.dropped._replace(edges=np.int32(local.n_unread))
        return _sample_of(local, graph, self.sources, self.rule, self.size, dropped, self.pulled + pulled)

    def with_strengths(self, strengths: npt.ArrayLike) -> Sample:
        """The same with other strengths W of its edges, [E] in [-1, 1] and not 0; the graph keeps its own."""
        return dataclasses.replace(self, edges=dataclasses.replace(self.edges, strength=np.asarray(strengths)))

    def write_back(self, graph: MemoryGraph, strengths: npt.ArrayLike | None = None) -> int:
        """Store strengths of its edges in the graph.

        Args:
            graph: that it was taken from.
            strengths: [E], see `with_strengths`; None = its own. Edges that have the strength already are left alone;
                edges that the graph has deleted meanwhile come back where theirs has changed.

        Returns:
            How many edges were written.
        """
        edges = self.edges if strengths is None else self.with_strengths(strengths).edges
        changed = np.arange(edges.n_edges)
        if strengths is not None:
            changed = np.flatnonzero(edges.strength != self.edges.strength)
        if len(changed):
            source, target = self.nodes[edges.source[changed]], self.nodes[edges.target[changed]]
            graph.set_edges(source, target, edges.strength[changed], edges.relation[changed])
        return len(changed)

    def _spreader(self, options: dict[str, Any]) -> Spreader:
        key = tuple(sorted(options.items()))
        if key not in self._spreaders:
            self._spreaders[key] = Spreader(self._folded, self._folded_rule, **options)
        return self._spreaders[key]

    @functools.cached_property
    def _spreaders(self) -> dict[tuple[Any, ...], Spreader]:
        """What is ready, by its options."""
        return {}

    @functools.cached_property
    def _folded(self) -> EdgeList:
        """The edges with what they let through as strengths, in units of the largest share."""
        through = self.edges.strength * self.share / self._largest_share
        # an edge that lets nothing through still tells a conjunction that its source transmits
        through = np.where(through == 0, np.copysign(NOTHING, self.edges.strength), through)
        through.flags.writeable = False
        folded = copy.copy(self.edges)  # an edge list of a graph has no edges as weak as these
        object.__setattr__(folded, "strength", through)
        return folded

    @functools.cached_property
    def _folded_rule(self) -> SpreadRule:
        return dataclasses.replace(
            self.rule, normalisation="none", decay=self._largest_share, spends=False, retention=self.retention
        )

    @property
    def _largest_share(self) -> float:
        return float(self.share.max(initial=0.0)) or 1.0

    def _sources(self, sources: AnySources | None) -> Sources:
        if sources is None:
            return self.sources
        return Sources.of(sources, MAX_NODES, rounds=self.rule.rounds)

    def _within(self, sources: AnySources | None) -> Sources:
        """Sources by number of member."""
        given = self._sources(sources)
        number = np.minimum(np.searchsorted(self.nodes, given.nodes), len(self.nodes) - 1)
        strangers = np.flatnonzero(self.nodes[number] != given.nodes)
        if strangers.size:
            raise ValueError(
                f"`sources` must be members of the sample, got node {given.nodes[strangers[0]]}; sample around it."
            )
        return Sources(number.astype(np.int32), given.values, given.rounds)

    def _outside(self, found: Activation) -> Activation:
        """A result by node numbers of the graph."""
        flows = found.flows
        if flows is not None:
            flows = flows._replace(source=self._named(flows.source), target=self._named(flows.target))
        return found._replace(nodes=self._named(found.nodes), flows=flows)

    def _named(self, members: Any) -> IntArray:
        named: IntArray = np.where(np.asarray(members) < 0, members, self.nodes[members]).astype(np.int32)
        return named


def sample(
    graph: MemoryGraph,
    sources: AnySources,
    size: int = 128,
    hops: int = 2,
    rule: SpreadRule | None = None,
    *,
    pulls: int = 0,
) -> Sample:
    """Gather the members that sources reach most strongly.

    In each hop all members that are new send what has reached them along their edges; of the nodes that this reaches,
    those with the largest sum join, as long as there is room.

    Args:
        graph: a graph.
        sources: see `Sources.of`; they are members, whatever their round.
        size: largest number of members, at most MAX_SIZE.
        hops: how far from the sources members may be, at most MAX_HOPS.
        rule: recall() by default. Normalisation "symmetric" and `dangling` need more than a node knows and are refused.
        pulls: how often `Sample.pull` follows at once; fewer times when nothing is left to pull.

    Raises:
        TypeError, ValueError: a value outside its range, by name.
    """
    if not isinstance(graph, MemoryGraph):
        raise TypeError(
            f"`graph` must be a MemoryGraph, got {type(graph).__name__}; `MemoryGraph.from_edges` makes one."
        )
    rule = recall() if rule is None else rule
    _check_range("size", size, 1, MAX_SIZE)
    _check_range("hops", hops, 0, MAX_HOPS)
    _check_range("pulls", pulls, 0, MAX_SIZE)
    if rule.normalisation == "symmetric" or rule.dangling:
        which = "`rule.dangling` must be False" if rule.dangling else '`rule.normalisation` must not be "symmetric"'
        raise ValueError(f"{which} for a sample, which does not see the whole graph; spread on the graph itself.")
    rule.check_size(graph.n_nodes)
    given = Sources.of(sources, graph.n_nodes, rounds=rule.rounds, is_node=living(graph))
    nodes, inverse = np.unique(given.nodes, return_inverse=True)
    if len(nodes) > size:
        raise ValueError(f"`size` must be at least {len(nodes)}, the number of sources, got {size}.")
    n_places = _bucket(size)
    members = np.full(n_places, graph.arrays.capacity, np.int32)
    members[: len(nodes)] = nodes
    score = np.zeros(n_places, np.float32)
    score[: len(nodes)] = np.bincount(inverse, given.values)
    local, place = gather(
        graph.arrays,
        _place_of(graph),
        members,
        score,
        np.int32(size),
        np.int32(hops),
        relevant(rule.code),
        rule.params(graph.relations),
    )
    _places[graph] = place
    none = np.int32(0)
    dropped = Dropped(active=none, touched=np.int32(local.n_refused), edges=np.int32(local.n_unread), flows=none)
    taken = _sample_of(local, graph, given, rule, size, dropped, 0)
    for _ in range(pulls):
        before, taken = taken, taken.pull(graph)
        if taken is before:
            break
    return taken


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"`{name}` must be a whole number, got {value!r}.")
    if not low <= value <= high:
        raise ValueError(f"`{name}` must be in [{low}, {high}], got {value}.")


def _bucket(size: int) -> int:
    """Places that are compiled for: the power of two that holds `size`."""
    return max(FEWEST_PLACES, 1 << (size - 1).bit_length())


def _place_of(graph: MemoryGraph) -> jax.Array:
    """The scratch of a graph, which the call takes over; who comes meanwhile makes another."""
    place = _places.pop(graph, None)
    capacity = graph.arrays.capacity
    return unused_places(capacity) if place is None or place.shape != (capacity + 1,) else place


def _sample_of(
    local: Local, graph: MemoryGraph, sources: Sources, rule: SpreadRule, size: int, dropped: Dropped, pulled: int
) -> Sample:
    local = jax.device_get(local)
    is_member = local.members < graph.arrays.capacity
    order = np.flatnonzero(is_member)[np.argsort(local.members[is_member], kind="stable")]
    number = np.full(len(local.members), -1, np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    inside = np.flatnonzero(local.target >= 0)
    edges = EdgeList(
        n_nodes=len(order),
        source=number[local.source[inside]],
        target=number[local.target[inside]],
        strength=local.strength[inside].astype(np.float64),
        relation=local.relation[inside].astype(np.uint8),
        base=local.base[order].astype(np.float64),
        need=local.need[order],
        relations=graph.relations,
    )
    return Sample(
        nodes=local.members[order],
        edges=edges,
        share=local.share[inside].astype(np.float64),
        retention=local.retention[order].astype(np.float64),
        sources=sources,
        rule=rule,
        size=size,
        dropped=dropped,
        pulled=pulled,
    )
