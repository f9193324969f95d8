import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import pending
from habitus.envs.arithmetic import INTEGERS, as_integers
from habitus.envs.contract import NO_DECISION

N_STEPS = 600


def book(delays, is_pending, values, is_stream):
    """Outcomes of a whole run, one decision a step."""

    def step(waiting, decision):
        number, delay, is_on, value = decision
        return pending.settle(
            waiting,
            pending.Decision(number, jnp.int32(-1), jnp.where(is_on, value, 0), is_on, delay),
            is_stream=jnp.asarray(is_stream),
            unit=10,
            boundary=jnp.asarray(True),
            signals={},
        )

    numbers = jnp.arange(len(delays), dtype=jnp.int32)
    run = jax.jit(lambda *decisions: jax.lax.scan(step, pending.nothing_pending(), decisions)[1])
    return jax.tree.map(np.asarray, run(numbers, jnp.asarray(delays), jnp.asarray(is_pending), jnp.asarray(values)))


def arrivals(outcome):
    """(step, decision, value) of every listed outcome."""
    step, slot = np.nonzero(outcome.feedback_id != NO_DECISION)
    return list(zip(step, outcome.feedback_id[step, slot], outcome.feedback_value[step, slot], strict=True))


def reference(delays, is_pending):
    """The same queue with Python lists."""
    waiting, listed = [], []
    for step, (delay, is_on) in enumerate(zip(delays, is_pending, strict=True)):
        now = [decision for due, decision in sorted(waiting, key=lambda pair: pair[1]) if due <= step]
        now = now[: pending.FEEDBACK_SLOTS]
        listed += [(step, decision) for decision in now]
        waiting = [pair for pair in waiting if pair[1] not in now]
        if is_on:
            waiting.append((step + delay, step))
    return listed


def test_the_queue_equals_a_slow_one_in_python():
    rng = np.random.default_rng(0)
    delays = rng.integers(pending.MIN_DELAY, pending.MAX_DELAY + 1, N_STEPS).astype(np.int32)
    is_pending, values = rng.random(N_STEPS) < 0.7, rng.integers(-9, 9, N_STEPS).astype(np.int32)
    found = arrivals(book(delays, is_pending, values, is_stream=False))
    assert [(step, decision) for step, decision, _ in found] == reference(delays, is_pending)
    np.testing.assert_allclose([value for *_, value in found], [values[decision] / 10 for _, decision, _ in found])


def test_no_outcome_is_late_even_when_all_fall_due_together():
    # Decisions 0..80 all want to arrive at step 100: the worst that delays of 20 to 100 allow.
    delays = np.full(N_STEPS, pending.MAX_DELAY, np.int32)
    delays[:81] = pending.MAX_DELAY - np.arange(81)
    found = arrivals(book(delays, np.ones(N_STEPS, bool), np.ones(N_STEPS, np.int32), is_stream=False))
    assert [decision for _, decision, _ in found] == list(range(N_STEPS - pending.MAX_DELAY))
    assert max(step - decision for step, decision, _ in found) == pending.MAX_DELAY


def test_attributed_pays_at_the_decision_and_stream_on_arrival():
    delays = np.full(N_STEPS, 30, np.int32)
    is_pending = np.arange(N_STEPS) == 5
    values = np.full(N_STEPS, 70, np.int32)
    attributed = book(delays, is_pending, values, is_stream=False)
    stream = book(delays, is_pending, values, is_stream=True)
    expected = np.full(N_STEPS, -0.1, np.float32)
    np.testing.assert_allclose(attributed.reward, expected + 7.0 * is_pending, rtol=1e-6)
    np.testing.assert_allclose(stream.reward, expected + 7.0 * (np.arange(N_STEPS) == 35), rtol=1e-6)
    assert arrivals(attributed) == arrivals(stream) == [(35, 5, 7.0)]
    np.testing.assert_array_equal(attributed.decision_id, np.where(is_pending, 5, NO_DECISION))


def random_decisions(seed):
    rng = np.random.default_rng(seed)
    delays = rng.integers(pending.MIN_DELAY, pending.MAX_DELAY + 1, N_STEPS).astype(np.int32)
    return delays, rng.random(N_STEPS) < rng.random()


def all_due_together():
    delays = np.full(N_STEPS, pending.MAX_DELAY, np.int32)
    delays[:81] = pending.MAX_DELAY - np.arange(81)
    return delays, np.ones(N_STEPS, bool)


def waves():
    """Every 40 steps, 40 decisions fall due at once: never less than four at a time wait."""
    steps = np.arange(N_STEPS)
    return ((steps // 40 + 1) * 40 + pending.MIN_DELAY - steps).astype(np.int32), np.ones(N_STEPS, bool)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    "decisions", [random_decisions(0), random_decisions(1), random_decisions(2), all_due_together(), waves()]
)
def test_integers_settle_as_arrays_do(decisions, is_stream):
    delays, is_pending = decisions
    values = np.random.default_rng(9).integers(-(10**6), 10**6, N_STEPS).astype(np.int32)
    expected = book(delays, is_pending, values, is_stream)
    waiting = as_integers(pending.nothing_pending())
    at_most = 0
    for step in range(N_STEPS):
        is_on = bool(is_pending[step])
        value = int(values[step]) if is_on else 0
        waiting, outcome = pending.settle(
            waiting,
            pending.Decision(step, -1, value, is_on, int(delays[step])),
            is_stream=is_stream,
            unit=10,
            boundary=True,
            signals={},
            arithmetic=INTEGERS,
        )
        assert outcome == jax.tree.map(lambda leaf, step=step: leaf[step].tolist(), expected)
        at_most = max(at_most, sum(decision != NO_DECISION for decision in outcome.feedback_id))
    assert at_most == pending.FEEDBACK_SLOTS or is_pending.mean() < 0.5


def settle_all(waiting, decisions):
    """One step of every run."""
    return jax.vmap(
        lambda waiting, decision: pending.settle(
            waiting,
            decision,
            is_stream=jnp.asarray(True),
            unit=10,
            boundary=jnp.asarray(True),
            signals={},
        )
    )(waiting, decisions)


def test_no_step_copies_the_arrays_of_all_runs():
    n_steps, n_runs = 8, 64
    waiting = jax.tree.map(lambda leaf: jnp.stack([leaf] * n_runs), pending.nothing_pending())
    shape = n_steps, n_runs
    integers, delays = jnp.ones(shape, jnp.int32), jnp.full(shape, pending.MIN_DELAY, jnp.int32)
    decisions = pending.Decision(
        step=jnp.broadcast_to(jnp.arange(n_steps, dtype=jnp.int32)[:, None], shape),
        immediate=integers,
        delayed=integers,
        is_pending=jnp.ones(shape, bool),
        delay=delays,
    )
    run = jax.jit(lambda waiting, decisions: jax.lax.scan(settle_all, waiting, decisions))
    text = run.lower(waiting, decisions).compile().as_text()
    parts = {part.split(" ", 1)[0]: part for part in re.split(r"\n\n", text)}
    bodies = [parts[name] for name in re.findall(r"body=(%[\w.-]+)", text)]
    rows = f"s32[{n_runs},{pending.N_ROWS}]"
    assert any(rows in body for body in bodies)  # the loop is found
    assert not any(re.search(re.escape(rows) + r"\S* copy\(", body) for body in bodies)
