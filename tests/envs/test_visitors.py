import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import draws, visitors
from habitus.envs.arithmetic import ARRAYS, INTEGERS, as_integers

N_TYPES = 5


def meet(known, how, halves, step, redraws_before, arithmetic):
    """One arrival that ends at once: who came, their type, and the visitors after it."""
    visitor = visitors.next_visitor(known, how, halves[:-2], arithmetic)
    known = visitors.arrive(
        known,
        how,
        visitor,
        halves[-2:],
        redraws_before=redraws_before,
        n_types=N_TYPES,
        condition=True,
        arithmetic=arithmetic,
    )
    kind = arithmetic.take(known.types, visitor)
    return visitor, kind, visitors.leave(known, visitor, step, True, arithmetic)


@functools.partial(jax.jit, static_argnames="n")
def history(key, how, n, redraws_before=0):
    """[n] visitors and [n] types of n arrivals, one a step."""

    def one(known, now):
        key, step = now
        halves = draws.halves(key, (visitors.N_HALVES,)).astype(jnp.int32)
        visitor, kind, known = meet(
            known, how, halves, step, jnp.where(step >= redraws_before, redraws_before, 0), ARRAYS
        )
        return known, (visitor, kind)

    first_key, key = jax.random.split(key)
    start = visitors.nobody_yet(first_key, how, N_TYPES)
    return jax.lax.scan(one, start, (jax.random.split(key, n), jnp.arange(n, dtype=jnp.int32)))[1]


def arrivals(capacity=None, **changes):
    preset = visitors.Preset(**({"n": 10, "drift": 0.0, "slope": 0.35, "hot": 0.0, "gap": 0} | changes))
    return visitors.arrivals(preset, capacity or preset.n)


def test_visitors_come_as_often_as_their_weights_say():
    came = np.asarray(history(jax.random.key(0), arrivals(), 40_000)[0])
    weight = 1 / (1 + 0.35 * np.arange(10))
    expected = weight / weight.sum()
    # Without a gap every candidate has been away long enough, so the first draw decides. Four standard errors.
    assert np.bincount(came) / 40_000 == pytest.approx(expected, abs=4 * np.sqrt(0.25 / 40_000))


def test_a_visitor_stays_away_for_the_gap():
    came = np.asarray(history(jax.random.key(1), arrivals(n=200, slope=0.01, gap=60), 5_000)[0])
    last, away = {}, []
    for number, visitor in enumerate(came.tolist()):
        if visitor in last:
            away.append(number - last[visitor])
        last[visitor] = number
    # All four candidates came lately with a chance of about .3^4; then the one longest away is taken.
    assert np.mean(np.array(away) < 60) < 0.03
    assert np.mean(np.array(away) < 60) < np.mean(_gaps_without()) / 5


def _gaps_without():
    came = np.asarray(history(jax.random.key(1), arrivals(n=200, slope=0.01), 5_000)[0]).tolist()
    last, away = {}, []
    for number, visitor in enumerate(came):
        if visitor in last:
            away.append(number - last[visitor] < 60)
        last[visitor] = number
    return away


def test_hot_visitors_are_among_the_last_five():
    came = np.asarray(history(jax.random.key(2), arrivals(n=100, slope=0.0, hot=0.3), 5_000)[0])
    share = np.mean([came[i] in came[i - 5 : i] for i in range(20, 5_000)])
    assert share == pytest.approx(0.3 + 0.7 * 0.045, abs=0.03)


def test_types_change_at_the_rate_of_the_drift():
    came, kinds = (np.asarray(part) for part in history(jax.random.key(3), arrivals(drift=0.1), 20_000))
    changed, n = 0, 0
    for visitor in range(10):
        own = kinds[came == visitor]
        changed, n = changed + int(np.sum(own[1:] != own[:-1])), n + len(own) - 1
    # A redraw keeps the type with a chance of 1/5.
    assert changed / n == pytest.approx(0.08, abs=4 * np.sqrt(0.08 / n))
    steady = np.asarray(history(jax.random.key(3), arrivals(), 2_000)[1])
    came = np.asarray(history(jax.random.key(3), arrivals(), 2_000)[0])
    assert all(len(set(steady[came == visitor])) == 1 for visitor in range(10))


def test_a_redraw_changes_each_type_once():
    came, kinds = (np.asarray(part) for part in history(jax.random.key(4), arrivals(), 2_000, redraws_before=1_000))
    before = {visitor: kinds[:1_000][came[:1_000] == visitor] for visitor in range(10)}
    after = {visitor: kinds[1_000:][came[1_000:] == visitor] for visitor in range(10)}
    assert all(len(set(part[visitor])) == 1 for part in (before, after) for visitor in range(10))
    assert sum(before[visitor][0] != after[visitor][0] for visitor in range(10)) >= 4


def test_both_executors_see_the_same_visitors():
    how = arrivals(n=30, capacity=40, drift=0.2, hot=0.3, gap=8)
    known = visitors.nobody_yet(jax.random.key(5), how, N_TYPES)
    plain, plain_how = as_integers(known), as_integers(how)
    step = jax.jit(functools.partial(meet, arithmetic=ARRAYS))
    for number in range(400):
        halves = draws.halves(jax.random.key(number), (visitors.N_HALVES,)).astype(jnp.int32)
        before = 200 if number >= 200 else 0
        visitor, kind, known = step(known, how, halves, number, before)
        mine = meet(plain, plain_how, halves.tolist(), number, before, INTEGERS)
        plain = mine[2]
        assert (int(visitor), int(kind)) == mine[:2]
    assert as_integers(known) == plain


def test_spare_capacity_is_never_used():
    came = np.asarray(history(jax.random.key(6), arrivals(n=7, capacity=64), 3_000)[0])
    assert set(came.tolist()) == set(range(7))


@pytest.mark.parametrize(("last", "step", "code"), [(None, 5, 0), (0, 29, 1), (0, 30, 2), (0, 149, 2), (0, 150, 3)])
def test_last_seen_tells_how_long_ago(last, step, code):
    known = as_integers(visitors.nobody_yet(jax.random.key(0), arrivals(), N_TYPES))
    if last is not None:
        known = visitors.leave(known, 3, last, True, INTEGERS)
    assert visitors.last_seen(known, 3, step, INTEGERS) == code
