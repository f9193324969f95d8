"""A situation unlike all cases becomes one; a case speaks in situations like it."""

import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition.learning import cases


def situation(*nodes, activation=None):
    on = np.ones(10, np.float32) if activation is None else np.array(activation, np.float32)
    one = np.int32(0)
    return cognition.Situation(np.array(nodes, np.int32), on, np.float32(1), one, np.int32(-1), np.ones(4, bool))


@pytest.fixture
def shape(structure):
    """Ten observed nodes, three cases."""
    return structure(n_context=40, n_base=10, cases=3, encounter=False, common=(), crossed=(), prototypes=0)


BASE = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)


def like(n, other=20):
    """A situation that has `n` of ten nodes in common with BASE."""
    return situation(*BASE[:n], *range(other, other + 10 - n))


def kept(shape, *situations):
    known, slots = cases.initial_cases(shape), []
    for one in situations:
        known, slot = cases.meet(known, one, shape)
        slots.append(int(slot))
    return known, slots


def test_only_what_is_novel_becomes_a_case(shape):
    # a case needs a similarity below .9 to all others; 3 is the mark for none
    known, slots = kept(shape, situation(*BASE), situation(*BASE), like(9), like(8), like(8))
    assert slots == [0, 3, 3, 1, 3]
    assert int(known.n_kept) == 2


def test_the_oldest_case_gives_way(shape):
    situations = [situation(*range(first, first + 10)) for first in (0, 10, 20, 30)]
    known, slots = kept(shape, *situations, situations[3], situations[0])
    assert slots == [0, 1, 2, 0, 3, 1]
    assert np.asarray(known.nodes)[:, 0].tolist() == [30, 0, 20]


@pytest.mark.parametrize(("common", "expected"), [(10, 1.0), (9, 0.9), (7, 0.7), (6, 0.0), (0, 0.0)])
def test_a_case_is_on_as_far_as_it_is_similar_enough(shape, common, expected):
    known, _ = kept(shape, situation(*BASE))
    found, on = cases.recall(known, like(common), shape)
    assert float(on[list(found.tolist()).index(0)]) == pytest.approx(expected)
    assert np.count_nonzero(on) == (expected > 0)


def test_the_most_similar_case_comes_first(shape):
    known, _ = kept(shape, like(7), like(8, other=30), situation(*range(20, 30)))
    found, on = cases.recall(known, situation(*BASE), shape)
    assert found.tolist()[:2] == [1, 0]
    np.testing.assert_allclose(on, [0.8, 0.7, 0.0], atol=1e-6)


def test_what_is_switched_off_is_no_part_of_a_case(shape):
    half = [1.0] * 5 + [0.0] * 5
    known, _ = kept(shape, situation(*BASE, activation=half))
    # five of five that are on are in common, of ten that are on only five
    assert float(cases.similarity(known, situation(*BASE, activation=half))[0]) == 1.0
    assert float(cases.similarity(known, situation(*BASE))[0]) == 0.5


def test_an_empty_place_is_like_nothing(shape):
    known = cases.initial_cases(shape)
    np.testing.assert_array_equal(cases.similarity(known, situation(*BASE)), jnp.zeros(3))
    assert float(cases.recall(known, situation(*BASE), shape)[1].max()) == 0.0
