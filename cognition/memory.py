"""The memory as a person reads it: which node speaks for or against which decision, how strongly, how surely, how
lately.

A read-only snapshot in NumPy; what happens to the learner afterwards does not change it. networkx is imported only
where a graph is asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from .edges import Edges
from .structure import Structure

if TYPE_CHECKING:
    import networkx

ANY_ACTION = "any action"
"""Label of what common edges lead to: all actions at once."""

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


class Edge(NamedTuple):
    """One edge from a node to a decision; `Memory` documents the entries."""

    node: str
    decision: str
    gain_exc: float
    gain_inh: float
    loss_exc: float
    loss_inh: float
    variance: float
    last_activated: int
    uses: int

    @property
    def balance(self) -> float:
        """Net gain minus net loss of the decision per unit of activation."""
        return self.gain_exc - self.gain_inh - self.loss_exc + self.loss_inh


@dataclasses.dataclass(frozen=True)
class Memory:
    """All nodes and all edges into decisions. N nodes, C decisions with edges of their own.

    Attributes:
        labels: [N] what each node stands for.
        kinds: [N] kind of each node.
        decisions: [C] label of each decision that has edges of its own.
        gain, loss: [N, C] f32 in [-1, 1], net strengths of the two channels.
        variance: [N, C] f32, uncertainty of both.
        last_activated: [N, C] i32, step of the last decision the edge took part in, -1 if never.
        uses: [N, C] i32, decisions the edge took part in.
        step: steps lived when the snapshot was taken.
        version: lessons learnt by then.
    """

    labels: tuple[str, ...]
    kinds: tuple[str, ...]
    decisions: tuple[str, ...]
    gain: FloatArray
    loss: FloatArray
    variance: FloatArray
    last_activated: IntArray
    uses: IntArray
    step: int
    version: int

    @property
    def gain_exc(self) -> FloatArray:
        """[N, C] excitatory strength of gain, in [0, 1]."""
        return np.maximum(self.gain, 0.0)

    @property
    def gain_inh(self) -> FloatArray:
        """[N, C] inhibitory strength of gain, in [0, 1]."""
        return np.maximum(-self.gain, 0.0)

    @property
    def loss_exc(self) -> FloatArray:
        """[N, C] excitatory strength of loss, in [0, 1]."""
        return np.maximum(self.loss, 0.0)

    @property
    def loss_inh(self) -> FloatArray:
        """[N, C] inhibitory strength of loss, in [0, 1]."""
        return np.maximum(-self.loss, 0.0)

    def edge(self, node: str, decision: str) -> Edge:
        """The edge between a node and a decision, by their labels.

        Raises:
            KeyError: no node or decision has that label.
        """
        for name, label, labels in (("node", node, self.labels), ("decision", decision, self.decisions)):
            if label not in labels:
                raise KeyError(f"no {name} is called {label!r}; there are {len(labels)}, e.g. {list(labels[:5])}.")
        return self._edge(self.labels.index(node), self.decisions.index(decision))

    def strongest(self, decision: str, n: int = 10) -> list[Edge]:
        """The `n` edges into a decision that move its balance most, used ones only, strongest first."""
        column = self.decisions.index(decision)
        balance = np.abs(self.gain[:, column] - self.loss[:, column])
        order = np.argsort(-balance, kind="stable")
        return [self._edge(int(k), column) for k in order if self.uses[k, column] > 0][:n]

    def to_networkx(self) -> networkx.DiGraph[str]:
        """The used part of the memory as a directed graph.

        Nodes carry `kind`; edges carry the fields of `Edge` and `type`, "supports" or "opposes" by their balance. A
        node and a decision of the same label are told apart by the prefix "decision: ".
        """
        import networkx  # costs 100 ms, and most runs draw no graph

        graph: networkx.DiGraph[str] = networkx.DiGraph()
        for decision in self.decisions:
            graph.add_node(f"decision: {decision}", kind="decision")
        for k, column in zip(*np.nonzero(self.uses), strict=True):
            edge = self._edge(int(k), int(column))
            graph.add_node(edge.node, kind=self.kinds[k])
            kind = "supports" if edge.balance >= 0 else "opposes"
            graph.add_edge(edge.node, f"decision: {edge.decision}", type=kind, **edge._asdict())
        return graph

    def _edge(self, k: int, column: int) -> Edge:
        gain, loss = float(self.gain[k, column]), float(self.loss[k, column])
        return Edge(
            node=self.labels[k],
            decision=self.decisions[column],
            gain_exc=max(gain, 0.0),
            gain_inh=max(-gain, 0.0),
            loss_exc=max(loss, 0.0),
            loss_inh=max(-loss, 0.0),
            variance=float(self.variance[k, column]),
            last_activated=int(self.last_activated[k, column]),
            uses=int(self.uses[k, column]),
        )


def memory_of(
    edges: Edges,
    structure: Structure,
    *,
    labels: Sequence[str],
    kinds: Sequence[str],
    decisions: Sequence[str],
    step: int,
    version: int,
) -> Memory:
    """Snapshot of a learner's edges; `decisions` names the columns, the common one apart."""
    n_nodes, n_columns = structure.n_nodes, structure.n_columns
    net = host_copy(edges.net).reshape(n_nodes, 2, structure.width)
    activity = host_copy(edges.activity).reshape(n_nodes, 2, n_columns)
    last, uses = activity[:, 0], activity[:, 1]
    if structure.common:  # part of every decision that a node took part in
        last = np.concatenate([last, last.max(axis=1, keepdims=True)], axis=1)
        uses = np.concatenate([uses, uses.sum(axis=1, keepdims=True)], axis=1)
    return Memory(
        labels=tuple(labels),
        kinds=tuple(kinds),
        decisions=(*decisions, ANY_ACTION) if structure.common else tuple(decisions),
        gain=net[:, 0],
        loss=net[:, 1],
        variance=host_copy(edges.variance).reshape(n_nodes, structure.width),
        last_activated=last,
        uses=uses,
        step=step,
        version=version,
    )


def host_copy(array: jax.Array) -> npt.NDArray[Any]:
    """A NumPy copy of a device array. Not a view: a donated buffer that is looked at would have to be copied anyway."""
    copied = np.asarray(jnp.copy(array))
    copied.flags.writeable = False
    return copied
