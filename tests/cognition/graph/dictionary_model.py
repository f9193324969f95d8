"""A memory graph as a dictionary, written for reading: what `MemoryGraph` is compared with after every operation."""

import numpy as np
from habitus.cognition.graph import EdgeList
from habitus.cognition.graph.edge_list import SMALLEST

F32 = np.float32


class DictionaryModel:
    """Edges as {(source, target, relation): strength}, all arithmetic in f32 and in the order of the operations."""

    def __init__(self):
        self.edges, self.nodes, self.free, self.n_nodes = {}, {}, [], 0

    def add_nodes(self, n, base, need):
        for _ in range(n):
            if self.free:
                node = min(self.free)
                self.free.remove(node)
            else:
                node, self.n_nodes = self.n_nodes, self.n_nodes + 1
            self.nodes[node] = (base, need)

    def write(self, mode, source, target, strength, relation):
        for a, b, v, r in zip(source.tolist(), target.tolist(), strength.astype(F32), relation.tolist(), strict=True):
            old = self.edges.get((a, b, r), F32(0))
            new = min(max(old + v, F32(-1)), F32(1)) if mode == "add" else v if mode == "set" else F32(0)
            if abs(new) < SMALLEST:
                self.edges.pop((a, b, r), None)
            else:
                self.edges[a, b, r] = new

    def delete_nodes(self, nodes):
        gone = set(nodes)
        self.edges = {key: v for key, v in self.edges.items() if key[0] not in gone and key[1] not in gone}
        for node in gone:
            del self.nodes[node]
            self.free.append(node)

    def decay(self, factors, floor):
        decayed = {key: v * F32(factors[key[2]]) for key, v in self.edges.items()}
        least = max(F32(floor), F32(SMALLEST))
        self.edges = {key: v for key, v in decayed.items() if abs(v) >= least}

    def edge_list(self, relations):
        columns = np.array(list(self.edges), np.int64).reshape(-1, 3)
        base, need = np.zeros(self.n_nodes), np.zeros(self.n_nodes, np.int32)
        for node, (level, needed) in self.nodes.items():
            base[node], need[node] = level, needed
        strengths = np.array(list(self.edges.values()), np.float64)
        return EdgeList(
            self.n_nodes, columns[:, 0], columns[:, 1], strengths, columns[:, 2], base, need, relations=relations
        )


def assert_sound(graph):
    """What `layout` and `GraphArrays` promise, looked up in the arrays."""
    arrays, edges, width = graph.arrays, graph.edges(), graph.arrays.width
    rows, pool, spill = (np.asarray(a) for a in (arrays.rows, arrays.pool, arrays.spill))
    degree = np.asarray(arrays.out_degree)
    empty = 2**31 - 1
    assert (degree[: edges.n_nodes] == edges.out_degree()).all()
    assert degree[edges.n_nodes :].sum() == 0
    filled = np.arange(width) < np.minimum(degree, width)[:, None]
    assert ((rows[:, :width] != empty) == filled).all()  # no holes, nothing left behind
    assert (rows[:, width:][~filled] == 0).all()
    total = np.bincount(edges.source, np.abs(edges.strength), len(degree))
    np.testing.assert_allclose(np.asarray(arrays.out_strength), total, rtol=1e-5, atol=0)
    owned = np.zeros(len(pool), bool)
    for node in np.flatnonzero(degree > width):
        n_rows = -(-(degree[node] - width) // width)
        begin = spill[node]
        assert 0 < begin
        assert begin + n_rows <= int(arrays.n_pool)
        assert not owned[begin : begin + n_rows].any()  # no two nodes share a row
        owned[begin : begin + n_rows] = True
        lines = pool[begin : begin + n_rows]
        keys, sizes = lines[:, :width].ravel(), np.abs(np.ascontiguousarray(lines[:, width:]).view(F32)).ravel()
        assert ((keys != empty) == (np.arange(len(keys)) < degree[node] - width)).all()
        row = np.abs(np.ascontiguousarray(rows[node, width:]).view(F32))
        assert row.min() >= sizes.max()  # the row holds the strongest
    assert (spill[degree <= width] == 0).all()
    assert (pool[~owned][:, :width] == empty).all()  # what was left is empty
    assert graph.n_edges == edges.n_edges
    assert graph.has_spilled == bool((degree > width).any())
