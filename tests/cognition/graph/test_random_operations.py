import importlib.util
from pathlib import Path

import numpy as np
import pytest
from habitus.cognition.activation.named import recall
from habitus.cognition.activation.reference import spread_reference
from habitus.cognition.activation.spreading import spread
from habitus.cognition.graph import RELATIONS, MemoryGraph

_SPEC = importlib.util.spec_from_file_location("dictionary_model", Path(__file__).with_name("dictionary_model.py"))
dictionary_model = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(dictionary_model)

N_RELATIONS = 3


def same_edges(found, expected):
    order = np.lexsort((expected.relation, expected.target, expected.source))
    for name in ("source", "target", "relation", "strength"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name)[order], name)
    np.testing.assert_array_equal(found.base.astype(np.float32), expected.base.astype(np.float32))
    np.testing.assert_array_equal(found.need, expected.need)


def same_spread(graph, model, rng):
    living = np.array(sorted(model.nodes))
    sources = {int(node): 1.0 for node in rng.choice(living, min(4, len(living)), replace=False)}
    expected = spread_reference(model.edge_list(RELATIONS), sources, recall())
    found = spread_reference(graph.edges(), sources, recall())
    np.testing.assert_allclose(found.activation, expected.activation, atol=1e-12)


def same_spread_by_every_kernel(graph, model, rng):
    rule = recall()
    living = np.array(sorted(model.nodes))
    for _ in range(20):
        sources = {int(node): 1.0 for node in rng.choice(living, 4, replace=False)}
        expected = spread_reference(model.edge_list(RELATIONS), sources, rule).activation
        if np.abs(expected - rule.threshold).min() > 1e-5:  # else rounding may decide who transmits
            break
    for kernel in ("sweep", "frontier"):
        found = spread(graph, sources, rule, kernel=kernel, top=8)
        assert not any(np.asarray(found.dropped))
        at = np.asarray(found.nodes)
        at = at[at >= 0]
        np.testing.assert_allclose(found.values[: len(at)], expected[-1][at], atol=1e-5)
        assert found.n_active == ((expected[-1] > 0) & (expected[-1] >= rule.threshold)).sum()


def random_operations(n_operations, *, batch, n_start, n_most, check_every, seed, pool, grow):
    """Random operations on both; every edge that is written, every node that comes or goes, counts as one."""
    rng = np.random.default_rng(seed)
    graph = MemoryGraph(n_start, row=4, pool=pool)
    model = dictionary_model.DictionaryModel()
    done = step = 0
    while done < n_operations:
        step += 1
        living = np.array(sorted(model.nodes), np.int64)
        kind = rng.choice(["add", "set", "delete", "decay", "grow", "shrink"], p=[0.55, 0.1, 0.2, 0.04, 0.07, 0.04])
        if len(living) < 8 or (kind == "grow" and len(living) < n_most):
            n = int(rng.integers(1, max(2, n_start // grow)))
            base, need = float(np.float32(rng.uniform(0.2, 1))), int(rng.integers(0, 3))
            graph.add_nodes(n, base, need)
            model.add_nodes(n, base, need)
        elif kind == "shrink":
            n = int(rng.integers(1, max(2, len(living) // 12)))
            gone = rng.choice(living, n, replace=False)
            graph.delete_nodes(gone)
            model.delete_nodes(gone.tolist())
        elif kind == "decay":
            n = 1
            factors = rng.uniform(0.7, 1, N_RELATIONS).astype(np.float32)
            floor = float(np.float32(rng.choice([0, 0.05])))
            if rng.random() < 0.5:
                factors[:] = factors[0]
                graph.decay(float(factors[0]), floor)
            else:
                graph.decay({RELATIONS[r]: float(factor) for r, factor in enumerate(factors)}, floor)
            model.decay(factors, floor)
        else:
            kind = "add" if kind == "grow" else kind
            n = int(rng.integers(1, batch + 1))
            # a few nodes have most of the edges, so that the pool is in use
            place = (rng.random(n) ** rng.choice([1, 3]) * len(living)).astype(int)
            source, target = living[place], rng.choice(living, n)
            relation = rng.integers(0, N_RELATIONS, n)
            strength = np.where(rng.random(n) < 0.5, rng.integers(-4, 5, n) / 4, rng.uniform(-1, 1, n))
            if kind == "delete" and model.edges:
                keys = list(model.edges)
                chosen = np.array([keys[at] for at in rng.integers(0, len(keys), n // 2)]).reshape(-1, 3)
                source[: n // 2], target[: n // 2], relation[: n // 2] = chosen.T
            if kind == "delete":
                before = len(model.edges)
                model.write(kind, source, target, strength, relation)
                assert graph.delete_edges(source, target, relation) == before - len(model.edges)
            else:
                getattr(graph, f"{kind}_edges")(source, target, strength, relation)
                model.write(kind, source, target, strength, relation)
        done += n
        if step % check_every == 0 or done >= n_operations:
            same_edges(graph.edges(), model.edge_list(RELATIONS))
            dictionary_model.assert_sound(graph)
            if model.nodes:
                same_spread(graph, model, rng)
    return graph, model, rng


@pytest.mark.slow
def test_random_operations_leave_what_a_dictionary_holds():
    sizes = dict(n_start=40, n_most=48, pool=640)  # which double once each: every size compiles anew
    graph, _, _ = random_operations(10_000, batch=200, check_every=5, seed=0, grow=4, **sizes)
    assert graph.arrays.capacity == 80
    assert graph.arrays.pool.shape[0] == 1_280


@pytest.mark.slow
def test_a_million_random_operations_leave_what_a_dictionary_holds():
    graph, model, rng = random_operations(
        1_000_000, batch=8_000, n_start=400, n_most=3_000, check_every=20, seed=1, pool=8_192, grow=4
    )
    assert graph.arrays.capacity > 416  # it grew
    assert graph.arrays.pool.shape[0] > 8_192
    same_spread_by_every_kernel(graph, model, rng)
