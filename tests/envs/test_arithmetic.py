import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs.arithmetic import ARRAYS, INTEGERS, Table, as_integers, below
from hypothesis import given
from hypothesis import strategies as st

VALUES = [3, -1, 7, 7, 2**31 - 1, -(2**31)]
TABLE = Table(VALUES)
STEPS = [0, 5, 9, 2**30]
THRESHOLDS = Table([[100, 200, 65536], [0, 65536, 65536]])


def both(operation, *arguments):
    """The results of both executors, as plain Python."""
    arrays = [jnp.asarray(a, jnp.int32) if isinstance(a, int) and not isinstance(a, bool) else a for a in arguments]
    return as_integers(operation(ARRAYS, *arrays)), operation(INTEGERS, *arguments)


@given(st.integers(0, 5))
def test_take_reads_tables_and_arrays_alike(index):
    array, integer = both(lambda arithmetic, i: arithmetic.take(TABLE, i), index)
    assert array == integer == VALUES[index]
    assert as_integers(ARRAYS.take(jnp.asarray(VALUES), index)) == INTEGERS.take(VALUES, index)


@given(st.integers(0, 65535), st.integers(0, 1))
def test_a_category_is_the_number_of_thresholds_not_above_the_half(half, row):
    array, integer = both(lambda arithmetic, h, r: arithmetic.category(h, THRESHOLDS, r, 4), half, row)
    assert array == integer == int(np.sum(half >= THRESHOLDS.array.reshape(2, 3)[row]))


@given(st.integers(0, 2**30 - 1))
def test_entry_is_that_of_the_last_step_not_after(step):
    array = int(ARRAYS.entry_at(jnp.asarray(STEPS, jnp.int32), jnp.int32(step)))
    assert array == INTEGERS.entry_at(STEPS, step) == max(i for i, first in enumerate(STEPS) if first <= step)


@given(st.integers(-(2**31) + 1, 2**31 - 1), st.integers(1, 1000))
def test_division_rounds_towards_zero(value, by):
    array, integer = both(lambda arithmetic, v: arithmetic.divide(v, by), value)
    assert array == integer == int(np.fix(np.float64(value) / by))


@given(st.integers(-(2**24), 2**24), st.sampled_from([100, 10_000, 10_000_000]))
def test_money_is_the_same_float32(value, unit):
    array, integer = both(lambda arithmetic, v: arithmetic.money(v, unit), value)
    assert array == integer == pytest.approx(value / unit, rel=3e-7)


@given(st.booleans(), st.booleans())
def test_conditions_and_choices_agree(first, second):
    def operation(arithmetic, one, other):
        chosen = arithmetic.choose(one, lambda: (1, 2), lambda: (3, 4))
        return chosen, arithmetic.where(other, 5, 6), arithmetic.either(one, other), arithmetic.integer(one)

    array, integer = both(operation, jnp.asarray(first), jnp.asarray(second)), operation(INTEGERS, first, second)
    assert array[0] == integer


@pytest.mark.parametrize("condition", [True, False])
def test_put_if_writes_only_where_the_condition_holds(condition):
    expected = [1, 9 if condition else 2, 3]
    assert as_integers(ARRAYS.put_if(jnp.asarray([1, 2, 3]), 1, 9, condition)) == expected
    assert INTEGERS.put_if([1, 2, 3], 1, 9, condition) == expected


def test_integers_compute_only_the_branch_that_is_chosen():
    assert INTEGERS.choose(True, lambda: 1, lambda: pytest.fail("not chosen")) == 1


@pytest.mark.parametrize("values", [[1.5], [2**31], [], ["a"]])
def test_a_table_of_anything_but_whole_numbers_is_refused(values):
    with pytest.raises(ValueError, match="a `Table` must hold whole numbers inside int32"):
        Table(values)


def test_below_spreads_halves_evenly():
    counts = np.bincount(below(np.arange(2**16), 12))
    assert len(counts) == 12
    assert counts.max() - counts.min() <= 1
