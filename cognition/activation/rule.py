"""The one rule of spreading activation, its named settings, and when it cannot converge.

One round, for every node j at once. With a = A(t - 1), T the threshold, rho retention, D the decay of a relation, n the
normalisation, C the base level, s the sources, r the restart probability:

    x_i    = a_i if a_i >= T else 0                             what a node transmits; a_i under "zero", see below
    m_ij   = W_ij D_ij n_ij (1 - rho_i if `spends` else 1)      what an edge lets through
    I_j    = sum_i x_i m_ij,  0 for a conjunction of which too few exciting in-edges transmit
    raw_j  = max(0, (1 - r) (1 - leak) (rho_j a_j + C_j I_j) + r s_j)
    raw_j  = 0 where raw_j < T, under "zero"
    raw_j  = max(raw_j, s_j) where sources are held;  + what is injected after round t
    A_j(t) = min(raw_j, cap)

with n_ij by `normalisation`, where d_i is the number of edges that leave i, S_i the sum of their |W| and R_j the sum of
the |W| that reach j:

    none  1 | sqrt  1 / sqrt(d_i) | capped_sqrt  min(1, sqrt(degree_cap / d_i)) | fan  1 / d_i | row  1 / S_i
    symmetric  1 / sqrt(S_i R_j)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, get_args

import jax
import numpy as np
import numpy.typing as npt

from ..graph.edge_list import EdgeList
from ..graph.relations import MAX_RELATIONS

Below = Literal["gate", "zero"]
Hold = Literal["once", "held"]
Normalisation = Literal["none", "sqrt", "capped_sqrt", "fan", "row", "symmetric"]

OTHERS = "default"
"""Key of `decay` for relations that it does not name."""
MAX_ROUNDS = 10_000
SATURATION = 1e30
"""Activation at which rules without a cap stop growing: sums of as much over every edge still fit into f32."""


class GrowthWarning(UserWarning):
    """A rule without cap makes activation grow for ever on a graph; see `SpreadRule.growth`."""


class HasEdges(Protocol):
    """A graph that can be written as an edge list, as a `MemoryGraph` can."""

    @property
    def n_edges(self) -> int:
        """Number of its edges now."""

    def edges(self) -> EdgeList:
        """Its edges now."""


class RuleCode(NamedTuple):
    """What of a rule is compiled in; rules of equal code share one compiled call."""

    below: Below
    sources: Hold
    normalisation: Normalisation
    spends: bool
    uses_base: bool
    conjunctions: bool
    dangling: bool
    restarts: bool
    is_capped: bool
    is_soft: bool
    rounds: int
    stops: bool  # before the last round, at `tolerance`


class RuleParams(NamedTuple):
    """What of a rule is an input of a compiled call.

    Attributes:
        retention: [] or [N] f32.
        threshold, cap, leak, restart, softness, tolerance, degree_cap: [] f32; cap is infinite where there is none.
        decay: [MAX_RELATIONS] f32, by number of the relation.
    """

    retention: Any
    threshold: Any
    cap: Any
    leak: Any
    restart: Any
    softness: Any
    tolerance: Any
    degree_cap: Any
    decay: Any


@dataclasses.dataclass(frozen=True, eq=False)
class SpreadRule:
    """How activation spreads. The formulas stand at the head of this module.

    Attributes:
        retention: rho in [0, 1], share of its activation that a node keeps; a number, or [N], one per node.
        threshold: T >= 0; a node whose activation equals it transmits.
        below: what becomes of a node under the threshold: "gate" keeps its activation, "zero" loses it at the end of
            a round. What is injected then is not lost and is transmitted in the next round, whatever there is of it.
        decay: D >= 0 by name of the relation; "default" for all others. A number counts for all.
        normalisation: how the edges that leave a node share what it transmits.
        degree_cap: edges from which "capped_sqrt" divides, > 0.
        spends: whether a node transmits only the share 1 - rho that it does not keep, so that nothing is made; a node
            without out-edges keeps all.
        use_base: whether the base level C of the target scales what arrives; else C = 1.
        cap: activation that no node exceeds, > 0; None = none but `SATURATION`, 1e30, where numbers end.
        leak: share of all activation that is lost in a round, in [0, 1].
        restart: r in [0, 1), share of activation that returns to the sources in each round.
        dangling: whether what reaches a node without out-edges returns to the sources (random surfer) or stays lost.
        sources: "once" injects; "held" also keeps a source from falling below what was injected.
        conjunctions: whether nodes that need several in-edges wait for them (AND gate).
        rounds: largest number of rounds, 0 to MAX_ROUNDS.
        tolerance: stop once no activation changed by as much in a round; 0 = make all rounds.
        softness: width of a soft threshold x = a sigmoid((a - T) / softness), for gradients; 0 = hard.

    Raises:
        TypeError, ValueError: a value outside its range, by name.
    """

    retention: float | npt.NDArray[np.float64] = 0.5
    threshold: float = 0.0
    below: Below = "gate"
    decay: float | Mapping[str, float] = 1.0
    normalisation: Normalisation = "none"
    degree_cap: float = 16.0
    spends: bool = False
    use_base: bool = True
    cap: float | None = None
    leak: float = 0.0
    restart: float = 0.0
    dangling: bool = False
    sources: Hold = "once"
    conjunctions: bool = False
    rounds: int = 3
    tolerance: float = 0.0
    softness: float = 0.0
    _hash: int = dataclasses.field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, known in (("below", Below), ("normalisation", Normalisation), ("sources", Hold)):
            if getattr(self, name) not in get_args(known):
                raise ValueError(f"`{name}` must be one of {list(get_args(known))}, got {getattr(self, name)!r}.")
        for name in ("spends", "use_base", "dangling", "conjunctions"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"`{name}` must be True or False, got {getattr(self, name)!r}.")
        _number("threshold", self.threshold, 0, math.inf)
        _number("degree_cap", self.degree_cap, 0, math.inf, low_is_open=True)
        _number("leak", self.leak, 0, 1)
        _number("restart", self.restart, 0, 1, high_is_open=True)
        _number("tolerance", self.tolerance, 0, math.inf)
        _number("softness", self.softness, 0, math.inf)
        if self.cap is not None:
            _number("cap", self.cap, 0, math.inf, low_is_open=True)
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int | np.integer):
            raise TypeError(f"`rounds` must be a whole number, got {self.rounds!r}.")
        object.__setattr__(self, "rounds", int(self.rounds))
        if not 0 <= self.rounds <= MAX_ROUNDS:
            raise ValueError(f"`rounds` must be in [0, {MAX_ROUNDS}], got {self.rounds}.")
        if self.dangling and not self.restart:
            raise ValueError("`dangling` returns activation to the sources and needs `restart` > 0, got restart=0.")
        if self.softness and self.below == "zero":
            raise ValueError('`softness` makes a gradual gate and cannot go with below="zero"; use below="gate".')
        self._check_retention()
        self._check_decay()
        object.__setattr__(self, "_hash", hash(self._settings()))  # asked for at every query

    def __eq__(self, other: object) -> bool:
        """Whether the other rule has the same settings."""
        return isinstance(other, SpreadRule) and self._settings() == other._settings()

    def __hash__(self) -> int:
        return self._hash

    def _settings(self) -> tuple[Any, ...]:
        assert isinstance(self.decay, Mapping)  # __post_init__
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init}
        retention = values.pop("retention")
        decay = tuple(sorted(values.pop("decay").items()))
        return (retention.tobytes() if isinstance(retention, np.ndarray) else retention, decay, *values.values())

    def _check_retention(self) -> None:
        if isinstance(self.retention, jax.core.Tracer):
            raise TypeError(
                "`retention` must be a number or one per node, got a traced array; a rule is made outside of compiled "
                "code, `dense_spread` and `ell_spread` take a traced `retention` of their own."
            )
        if isinstance(self.retention, int | float | np.number) and not isinstance(self.retention, bool):
            _number("retention", self.retention, 0, 1)
            return
        values = np.asarray(self.retention)
        if values.ndim != 1 or values.dtype.kind not in "iuf":
            raise TypeError(f"`retention` must be a number or one per node, got {self.retention!r}.")
        wrong = np.flatnonzero(~((values >= 0) & (values <= 1)))
        if wrong.size:
            raise ValueError(f"`retention` must be in [0, 1], got {values[wrong[0]]} for node {wrong[0]}.")
        copied = values.astype(np.float64)
        copied.flags.writeable = False
        object.__setattr__(self, "retention", copied)

    def _check_decay(self) -> None:
        decay = {OTHERS: self.decay} if not isinstance(self.decay, Mapping) else self.decay
        for name, value in decay.items():
            if not isinstance(name, str):
                raise TypeError(f"`decay` must be by name of relation, got {name!r}.")
            _number(f"decay[{name!r}]", value, 0, math.inf)
        object.__setattr__(self, "decay", dict(decay))

    @property
    def code(self) -> RuleCode:
        """What is compiled in."""
        return RuleCode(
            below=self.below,
            sources=self.sources,
            normalisation=self.normalisation,
            spends=self.spends,
            uses_base=self.use_base,
            conjunctions=self.conjunctions,
            dangling=self.dangling,
            restarts=self.restart > 0,
            is_capped=self.cap is not None,
            is_soft=self.softness > 0,
            rounds=self.rounds,
            stops=self.tolerance > 0,
        )

    def params(self, relations: tuple[str, ...]) -> RuleParams:
        """The numbers as f32, for a graph of these relations.

        Raises:
            ValueError: `decay` names a relation that the graph does not have.
        """
        return RuleParams(
            retention=np.asarray(self.retention, np.float32),
            threshold=np.float32(self.threshold),
            cap=np.float32(math.inf if self.cap is None else self.cap),
            leak=np.float32(self.leak),
            restart=np.float32(self.restart),
            softness=np.float32(self.softness),
            tolerance=np.float32(self.tolerance),
            degree_cap=np.float32(self.degree_cap),
            decay=self.decays(relations).astype(np.float32),
        )

    def decays(self, relations: tuple[str, ...]) -> npt.NDArray[np.float64]:
        """[MAX_RELATIONS] f64: D by number of the relation, 1 where there is none.

        Raises:
            ValueError: `decay` names a relation that the graph does not have.
        """
        assert isinstance(self.decay, Mapping)  # __post_init__
        unknown = [name for name in self.decay if name != OTHERS and name not in relations]
        if unknown:
            raise ValueError(f"`decay` must name relations of the graph, {list(relations)}, got {unknown[0]!r}.")
        table = np.ones(MAX_RELATIONS)
        for number, name in enumerate(relations):
            table[number] = self.decay.get(name, self.decay.get(OTHERS, 1.0))
        return table

    def retentions(self, edges: EdgeList) -> npt.NDArray[np.float64]:
        """[N] f64: rho of every node; with `spends` 1 for nodes without out-edges, which can spend nothing.

        Raises:
            ValueError: `retention` has another number of nodes.
        """
        self.check_size(edges.n_nodes)
        values = np.broadcast_to(np.asarray(self.retention, np.float64), (edges.n_nodes,))
        return np.where(edges.out_degree() == 0, 1.0, values) if self.spends else values

    def check_size(self, n_nodes: int) -> None:
        """Refuse a `retention` per node of another number of nodes by a ValueError."""
        if isinstance(self.retention, np.ndarray) and len(self.retention) != n_nodes:
            raise ValueError(f"`retention` must be a number or one per node, {n_nodes}, got {len(self.retention)}.")

    def weights(self, edges: EdgeList) -> npt.NDArray[np.float64]:
        """[E] f64: m, what each edge lets through, base level of the target apart."""
        source, strength = edges.source, edges.strength
        magnitude = np.abs(strength)
        decayed = strength * self.decays(edges.relations)[edges.relation]
        if self.spends:
            decayed = decayed * (1.0 - self.retentions(edges))[source]
        return decayed * self._scale(edges, magnitude)

    def _scale(self, edges: EdgeList, magnitude: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | float:
        degree = edges.out_degree()[edges.source].astype(np.float64)
        match self.normalisation:
            case "none":
                return 1.0
            case "sqrt":
                return 1.0 / np.sqrt(degree)
            case "capped_sqrt":
                return np.minimum(1.0, np.sqrt(self.degree_cap / degree))
            case "fan":
                return 1.0 / degree
        leaving = np.bincount(edges.source, magnitude, edges.n_nodes)[edges.source]
        if self.normalisation == "row":
            return np.asarray(1.0 / leaving)
        arriving = np.bincount(edges.target, magnitude, edges.n_nodes)[edges.target]
        return np.asarray(1.0 / np.sqrt(leaving * arriving))

    def bases(self, edges: EdgeList) -> npt.NDArray[np.float64]:
        """[N] f64: C of every node, 1 without `use_base`."""
        return edges.base if self.use_base else np.ones(edges.n_nodes)

    def growth(self, graph: EdgeList | HasEdges) -> float:
        """Bound on the factor by which activation grows in a round once it has spread, whatever the sources.

        It is the spectral radius of the update A -> (1 - r) (1 - leak) (rho A + C M^T A), |m| for m, no threshold:
        above 1 a rule without cap diverges on this graph, below 1 it converges. Cap, threshold, conjunctions and
        inhibition only lower what really happens. Where nodes without out-edges return their activation to the
        sources (`dangling`), it is the largest share of its activation that a node passes on or keeps.

        Args:
            graph: an `EdgeList`, or a graph with `edges()`.

        Raises:
            TypeError: `graph` is neither.
            ValueError: `retention` or `decay` do not fit the graph.
        """
        from .spectrum import spectral_radius  # scipy costs 100 ms, and most rules need no bound

        edges = edges_of(graph)
        kept = (1.0 - self.restart) * (1.0 - self.leak)
        stays = kept * self.retentions(edges)
        through = kept * self.bases(edges)[edges.target] * np.abs(self.weights(edges))
        is_dangling = edges.out_degree() == 0
        if self.dangling and is_dangling.any():
            leaves = np.bincount(edges.source, through, edges.n_nodes)
            return float((stays + leaves + kept * is_dangling).max(initial=0.0))
        return spectral_radius(edges.n_nodes, edges.source, edges.target, through, stays)


def edges_of(graph: Any) -> EdgeList:
    """The edges of an `EdgeList` or of what has `edges()`.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(graph, EdgeList):
        return graph
    found = graph.edges() if callable(getattr(graph, "edges", None)) else None
    if not isinstance(found, EdgeList):
        raise TypeError(f"`graph` must be an EdgeList or a MemoryGraph, got {type(graph).__name__}.")
    return found


def _number(
    name: str, value: Any, low: float, high: float, *, low_is_open: bool = False, high_is_open: bool = False
) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"`{name}` must be a number, got {value!r}.")
    inside = (low < value if low_is_open else low <= value) and (value < high if high_is_open else value <= high)
    if not inside or not math.isfinite(value):
        left, right = "(" if low_is_open else "[", ")" if high_is_open or high == math.inf else "]"
        raise ValueError(f"`{name}` must be in {left}{low:g}, {high:g}{right}, got {value}.")
