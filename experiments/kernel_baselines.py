"""What a researcher would use instead of the kernels, each in its best honest form and by the same rule.

All of them follow a rule with cap, held sources, a hard gate and no conjunctions that wait, in float32; the test beside
them holds their values against the reference. Base levels and normalisation are folded into the weights beforehand.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse  # type: ignore[import-untyped]
from scipy.sparse import _sparsetools  # type: ignore[import-untyped]

from ..cognition.activation import SpreadRule
from ..cognition.graph import EdgeList

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]

SURFER = "sknetwork"
HAS_SURFER = importlib.util.find_spec(SURFER) is not None


class Numbers(NamedTuple):
    """What of a rule the baselines follow."""

    retention: np.float32
    threshold: np.float32
    cap: np.float32
    rounds: int

    @classmethod
    def of(cls, rule: SpreadRule) -> Numbers:
        """Of a rule.

        Raises:
            ValueError: the rule has a part that the baselines leave out.
        """
        left_out = {
            "cap": rule.cap is None,
            "sources": rule.sources != "held",
            "below": rule.below != "gate",
            "softness": rule.softness > 0,
            "leak": rule.leak > 0,
            "restart": rule.restart > 0,
            "dangling": rule.dangling,
            "spends": rule.spends,
            "retention": np.ndim(rule.retention) > 0,
            "tolerance": rule.tolerance > 0,
        }
        for name, is_left_out in left_out.items():
            if is_left_out:
                raise ValueError(
                    f"`rule.{name}` must be as in recall() for a baseline to follow it, got {getattr(rule, name)!r}."
                )
        return cls(np.float32(rule.retention), np.float32(rule.threshold), np.float32(rule.cap), rule.rounds)


def folded(edges: EdgeList, rule: SpreadRule) -> FloatArray:
    """[E] f32: m_ij C_j of every edge."""
    return (rule.weights(edges) * rule.bases(edges)[edges.target]).astype(np.float32)


def pull_matrix(edges: EdgeList, rule: SpreadRule) -> Any:
    """SciPy CSR in f32, rows are targets, with i32 indices."""
    shape = (edges.n_nodes, edges.n_nodes)
    matrix = sparse.csr_matrix((folded(edges, rule), (edges.target, edges.source)), shape)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix


class ScipySweep:
    """Full sweeps with a SciPy CSR matrix and buffers that are kept: nothing is allocated between rounds."""

    def __init__(self, edges: EdgeList, rule: SpreadRule) -> None:
        self.numbers = Numbers.of(rule)
        self.matrix = pull_matrix(edges, rule)
        self.inhibits = bool((self.matrix.data < 0).any())
        n = edges.n_nodes
        self.activation, self.following, self.transmitted = (np.zeros(n, np.float32) for _ in range(3))
        self.is_active = np.zeros(n, bool)

    def multiply(self, x: FloatArray) -> FloatArray:
        """One product with the matrix, into a kept buffer."""
        self.following.fill(0)
        self._add_product(x)
        return self.following

    def spread(self, nodes: IntArray) -> FloatArray:
        """[N] f32 raw activation after all rounds; sources have value 1. A view of a buffer."""
        numbers, activation, following = self.numbers, self.activation, self.following
        activation.fill(0)
        activation[nodes] = 1
        np.minimum(activation, numbers.cap, out=activation)
        for number in range(numbers.rounds):
            np.greater_equal(activation, numbers.threshold, out=self.is_active)
            np.multiply(activation, self.is_active, out=self.transmitted)
            np.multiply(activation, numbers.retention, out=following)
            self._add_product(self.transmitted)
            if self.inhibits:
                np.maximum(following, 0, out=following)
            following[nodes] = np.maximum(following[nodes], 1)
            if number + 1 < numbers.rounds:
                np.minimum(following, numbers.cap, out=activation)
        return following

    def recall(self, nodes: IntArray, top: int = 32) -> IntArray:
        """[top] i32, the most active nodes."""
        return best(self.spread(nodes), top, self.numbers.threshold)

    def _add_product(self, x: FloatArray) -> None:
        # `matrix @ x` does the same into a new array; at 1e6 nodes its pages alone cost a tenth
        matrix = self.matrix
        n = len(x)
        _sparsetools.csr_matvec(n, n, matrix.indptr, matrix.indices, matrix.data, x, self.following)


def best(raw: FloatArray, top: int, threshold: np.float32) -> IntArray:
    """The `top` most active nodes by (raw downwards, number upwards); looks at the active ones only if they suffice."""
    candidates = np.flatnonzero(raw >= threshold)
    if len(candidates) < top:
        candidates = np.flatnonzero(raw > 0)
    order = np.lexsort((candidates, -raw[candidates]))[:top]
    return candidates[order].astype(np.int32)


class PythonFrontier:
    """Only active nodes, in dictionaries of plain Python; exact, hubs included.

    No edge may inhibit. The out-edges of a node become a list of (target, weight) when it is first needed and are kept.
    """

    def __init__(self, edges: EdgeList, rule: SpreadRule) -> None:
        self.numbers = Numbers.of(rule)
        inhibiting = np.flatnonzero(edges.strength < 0)
        if inhibiting.size:
            raise ValueError(f"`edges` must not inhibit, got strength {edges.strength[inhibiting[0]]}.")
        order = np.argsort(edges.source, kind="stable")
        self.targets, self.weights = edges.target[order], folded(edges, rule)[order]
        self.starts = np.concatenate([[0], np.cumsum(edges.out_degree(), dtype=np.int64)])
        self.out_edges: dict[int, list[tuple[int, float]]] = {}

    def spread(self, nodes: Sequence[int]) -> dict[int, float]:
        """Raw activation after all rounds by node; sources have value 1."""
        retention, threshold, cap, rounds = (number.item() for number in map(np.asarray, self.numbers))
        known = self.out_edges
        raw = dict.fromkeys(nodes, 1.0)
        for _ in range(rounds):
            following: dict[int, float] = {}
            for node, value in raw.items():
                activation = value if value < cap else cap
                following[node] = following.get(node, 0.0) + retention * activation
                if activation < threshold:
                    continue
                out = known.get(node)
                if out is None:
                    out = self._learn(node)
                for target, weight in out:
                    following[target] = following.get(target, 0.0) + activation * weight
            for node in nodes:
                following[node] = max(1.0, following[node])
            raw = following
        return {node: value for node, value in raw.items() if value > 0}

    def recall(self, nodes: Sequence[int], top: int = 32) -> list[int]:
        """The most active nodes."""
        return [node for node, _ in sorted(self.spread(nodes).items(), key=lambda entry: (-entry[1], entry[0]))[:top]]

    def _learn(self, node: int) -> list[tuple[int, float]]:
        first, last = self.starts[node], self.starts[node + 1]
        pairs = list(zip(self.targets[first:last].tolist(), self.weights[first:last].tolist(), strict=True))
        self.out_edges[node] = pairs
        return pairs


def dense_weights(graphs: Sequence[EdgeList], rule: SpreadRule) -> FloatArray:
    """[B, S, S] f32, target by source, of graphs of one size."""
    size = graphs[0].n_nodes
    weights = np.zeros((len(graphs), size, size), np.float32)
    for number, edges in enumerate(graphs):
        np.add.at(weights[number], (edges.target, edges.source), folded(edges, rule))
    return weights


def numpy_batch(weights: FloatArray, sources: FloatArray, rule: SpreadRule) -> FloatArray:
    """Each source on its own graph, by a batched NumPy product: [B, S, S], [B, S] -> raw [B, S]."""
    return _rounds(lambda x: np.matmul(weights, x[..., None])[..., 0], sources, rule)


def numpy_single(weights: FloatArray, sources: FloatArray, rule: SpreadRule) -> FloatArray:
    """One source on one graph: [S, S] target by source, [S] -> raw [S]."""
    return _rounds(lambda x: weights @ x, sources, rule)


def numpy_shared(weights: FloatArray, sources: FloatArray, rule: SpreadRule) -> FloatArray:
    """Many sources on one graph, by one NumPy product: [S, S] source by target, [B, S] -> raw [B, S]."""
    return _rounds(lambda x: x @ weights, sources, rule)


def _rounds(product: Callable[[FloatArray], FloatArray], sources: FloatArray, rule: SpreadRule) -> FloatArray:
    numbers = Numbers.of(rule)
    raw = sources
    for _ in range(numbers.rounds):
        activation = np.minimum(raw, numbers.cap)
        raw = product(activation * (activation >= numbers.threshold))
        raw += numbers.retention * activation
        np.maximum(raw, sources, out=raw)  # sources are at least 0, so this is the floor too
    return raw


class Surfer:
    """Personalised PageRank of scikit-network, power iteration; needs the package (extra `bench`)."""

    def __init__(self, edges: EdgeList, alpha: float, n_iterations: int) -> None:
        from sknetwork.ranking import PageRank  # type: ignore[import-untyped]

        shape = (edges.n_nodes, edges.n_nodes)
        self.adjacency = sparse.csr_matrix((np.abs(edges.strength), (edges.source, edges.target)), shape)
        self.ranking = PageRank(damping_factor=alpha, n_iter=n_iterations, tol=0.0)

    def rank(self, nodes: Sequence[int]) -> npt.NDArray[np.float64]:
        """[N] f64 scores that sum to 1, for restarts at these nodes."""
        scores: npt.NDArray[np.float64] = self.ranking.fit_predict(self.adjacency, weights=dict.fromkeys(nodes, 1.0))
        return scores


class Bandwidth:
    """What one core gets out of the memory of the machine.

    Attributes:
        n: f32 numbers in the arrays that are copied and gathered from.
    """

    def __init__(self, n: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.n = n
        self.values = rng.random(n, dtype=np.float32)
        self.places = rng.permutation(n).astype(np.intp)
        self.copied = np.empty_like(self.values)

    def copy(self) -> None:
        """Read n numbers in order and write them: 8n bytes."""
        np.copyto(self.copied, self.values)

    def gather(self) -> None:
        """Read n numbers at random places and write them in order."""
        np.take(self.values, self.places, out=self.copied, mode="clip")
