"""One source, two executors: the operations in which the dynamics of a world are written.

Dynamics that go through an `Arithmetic` run as traced JAX code (`ARRAYS`: jitted, vmapped, scanned) and as plain Python
integers (`INTEGERS`: one environment, one step at a time, without the price of a compiled call). Both compute with the
same integers from the same tables and the same random halves, so that they agree bit for bit.

Rules for such dynamics: every number is an integer inside int32; operators are `+ - * >> << & | ^ < <= == !=`, never
`/`, `//`, `%` or `~` (their meaning differs between the executors); a condition is negated by `^ True`; products of a
random half (below 2^16) stay below 2^31.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

T = TypeVar("T")
Value = Any
"""[] i32 or bool array under `ARRAYS`; int or bool under `INTEGERS`."""


class Table:
    """Constants of a world, [N] i32, flat; `Arithmetic.take` reads them.

    Args:
        values: whole numbers inside int32, any shape; kept flat in C order.
    """

    def __init__(self, values: ArrayLike) -> None:
        flat = np.ravel(np.asarray(values))
        if flat.dtype.kind not in "iu" or flat.size == 0 or flat.max() >= 2**31 or flat.min() < -(2**31):
            raise ValueError(f"a `Table` must hold whole numbers inside int32, got {flat.dtype} {values!r}.")
        self.array = flat.astype(np.int32)
        self.list: list[int] = flat.tolist()


class Arithmetic(Protocol):
    """Operations whose form differs between arrays and integers."""

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        """`yes` if the condition holds, else `no`; both are computed."""

    def choose(self, condition: Value, yes: Callable[[], T], no: Callable[[], T]) -> T:
        """A pytree of [] values of one branch; integers compute only that one, arrays compute both."""

    def take(self, table: Any, index: Value) -> Value:
        """`table[index]` of a `Table`, or of an array of the state or params; `index` is in range."""

    def put_if(self, array: Any, index: Value, value: Value, condition: Value) -> Any:
        """`array` with `value` at `index` if the condition holds. Integers write in place: use what is returned."""

    def category(self, half: Value, table: Any, row: Value, n: int) -> Value:
        """Category drawn by `half` from the `row`-th n - 1 cumulative thresholds of a flat table, which must ascend."""

    def entry_at(self, steps: Any, step: Value) -> Value:
        """Index of the last of ascending `steps` that is not after `step`; `steps[0]` is 0."""

    def divide(self, value: Value, by: int) -> Value:
        """`value` / `by`, rounded towards 0."""

    def either(self, *conditions: Value) -> Value:
        """Whether any condition holds."""

    def integer(self, condition: Value) -> Value:
        """1 if the condition holds, else 0."""

    def money(self, value: Value, unit: int) -> Value:
        """Reward of `value` integer units, of which `unit` make 1: float32, by one multiplication with 1 / unit."""

    def stack(self, values: list[Value]) -> Any:
        """[len(values)] i32 array, or a list."""


class _Arrays:
    """`Arithmetic` of JAX."""

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        return jnp.where(condition, yes, no)

    def choose(self, condition: Value, yes: Callable[[], T], no: Callable[[], T]) -> T:
        chosen: T = jax.tree.map(lambda one, other: jnp.where(condition, one, other), yes(), no())
        return chosen

    def take(self, table: Any, index: Value) -> Value:
        array = jnp.asarray(table.array if isinstance(table, Table) else table)
        return array.at[index].get(mode="promise_in_bounds")

    def put_if(self, array: Any, index: Value, value: Value, condition: Value) -> Any:
        kept = array.at[index].get(mode="promise_in_bounds")
        return array.at[index].set(jnp.where(condition, value, kept), mode="promise_in_bounds")

    def category(self, half: Value, table: Any, row: Value, n: int) -> Value:
        first = row * (n - 1)
        return sum(((half >= self.take(table, first + i)).astype(jnp.int32) for i in range(n - 1)), jnp.int32(0))

    def entry_at(self, steps: Any, step: Value) -> Value:
        return jnp.sum(steps <= step, dtype=jnp.int32) - 1

    def divide(self, value: Value, by: int) -> Value:
        return jax.lax.div(value, jnp.int32(by))

    def either(self, *conditions: Value) -> Value:
        result = conditions[0]
        for condition in conditions[1:]:
            result = result | condition
        return result

    def integer(self, condition: Value) -> Value:
        return jnp.asarray(condition).astype(jnp.int32)

    def money(self, value: Value, unit: int) -> Value:
        return jnp.asarray(value).astype(jnp.float32) * jnp.float32(1 / unit)

    def stack(self, values: list[Value]) -> Any:
        return jnp.stack([jnp.asarray(value, jnp.int32) for value in values]) if values else jnp.zeros(0, jnp.int32)


class _Integers:
    """`Arithmetic` of Python."""

    def where(self, condition: Value, yes: Value, no: Value) -> Value:
        return yes if condition else no

    def choose(self, condition: Value, yes: Callable[[], T], no: Callable[[], T]) -> T:
        return yes() if condition else no()

    def take(self, table: Any, index: Value) -> Value:
        return table.list[index] if isinstance(table, Table) else table[index]

    def put_if(self, array: Any, index: Value, value: Value, condition: Value) -> Any:
        if condition:
            array[index] = value
        return array

    def category(self, half: Value, table: Any, row: Value, n: int) -> Value:
        values = table.list if isinstance(table, Table) else table
        first = row * (n - 1)
        return bisect.bisect_right(values, half, first, first + n - 1) - first

    def entry_at(self, steps: Any, step: Value) -> Value:
        return bisect.bisect_right(steps, step) - 1

    def divide(self, value: Value, by: int) -> Value:
        return value // by if value >= 0 else -(-value // by)

    def either(self, *conditions: Value) -> Value:
        return any(conditions)

    def integer(self, condition: Value) -> Value:
        return 1 if condition else 0

    def money(self, value: Value, unit: int) -> Value:
        return float(np.float32(value) * np.float32(1 / unit))

    def stack(self, values: list[Value]) -> Any:
        return values


ARRAYS: Arithmetic = _Arrays()
INTEGERS: Arithmetic = _Integers()


def happens(half: Value, threshold: Value) -> Value:
    """Whether an event of probability threshold / 65536 happens."""
    return half < threshold


def below(half: Value, n: Value) -> Value:
    """Uniform over [0, n) to within n / 65536 of each chance; n < 2^15."""
    return (half * n) >> 16


def as_integers(tree: Any) -> Any:
    """A pytree of arrays as the same tree of Python integers, bools and (nested) lists."""
    return jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), tree)
