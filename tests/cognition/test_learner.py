"""The whole step: equal to slow float64 NumPy, and equal to itself under jit, vmap and scan."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import stepping

STYLE = cognition.Style(risk=0.3, curiosity=0.1, caution=0.05)
NEVER_EXPLORES = np.array([2**32 - 1, 0], np.uint32)


def stacked(items):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *items)


@pytest.mark.parametrize("rule", ["kalman", "nlms"])
@pytest.mark.parametrize("capacity", [16, 256])
def test_hundreds_of_steps_agree_with_a_float64_reference(
    rule, capacity, structure, experiences, paths, reference, begun
):
    shape = structure(rule=rule, ledger_capacity=capacity)
    # large variances and steps, so that strengths reach their bounds
    config = cognition.Config(rule=rule, variance=0.3, noise=0.2, learning_rate=0.4)
    params = cognition.params_of(config, STYLE)
    first = paths(shape, np.random.default_rng(9))
    state, slow = begun(shape, config, first), reference(shape, config, STYLE)
    slow.paths = first
    advance = jax.jit(functools.partial(cognition.step, structure=shape, params=params))
    evaluate = jax.jit(functools.partial(cognition.evaluate, structure=shape, params=params))
    largest = 0.0
    for experience in experiences(shape, 400, seed=5):
        state = advance(state, experience, NEVER_EXPLORES)
        slow.step(experience)
        largest = max(largest, np.abs(slow.gain).max(), np.abs(slow.loss).max())
        expected = slow.evaluate(experience.next_paths)
        found = evaluate(state.edges, experience.next_paths)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=5e-5)
        assert int(state.action) == int(np.argmax(found.urge))
    net = np.asarray(state.edges.net).reshape(shape.n_nodes, 2, shape.n_columns)
    np.testing.assert_allclose(net[:, 0], slow.gain, atol=2e-5)
    np.testing.assert_allclose(net[:, 1], slow.loss, atol=2e-5)
    np.testing.assert_allclose(state.edges.variance, slow.variance.reshape(-1), rtol=2e-3)
    activity = np.asarray(state.edges.activity).reshape(shape.n_nodes, 2, shape.n_columns)
    np.testing.assert_array_equal(activity[:, 1], slow.uses)
    np.testing.assert_array_equal(activity[:, 0], slow.last)
    assert (int(state.step), int(state.version)) == (slow.t, slow.version)
    assert (int(state.ledger.overwritten), int(state.ledger.unmatched)) == (slow.overwritten, slow.unmatched)
    assert (slow.overwritten > 0) == (capacity == 16)  # the case that loses decisions is among those compared
    assert largest == 1.0  # and so is the bound of strengths


def lives(shape, experiences, paths, begun, n_agents, n_steps):
    config = cognition.Config(variance=0.2)
    states = [begun(shape, config, paths(shape, np.random.default_rng(seed))) for seed in range(n_agents)]
    told = [experiences(shape, n_steps, seed=seed) for seed in range(n_agents)]
    noise = np.random.default_rng(1).integers(0, 2**32, (n_agents, n_steps, 2), np.uint32)
    params = [cognition.params_of(config, cognition.Style(risk=0.1 * seed)) for seed in range(n_agents)]
    return states, told, noise, params


def test_vmap_over_agents_and_scan_over_steps_equal_single_steps(structure, experiences, paths, begun):
    shape = structure()
    states, told, noise, params = lives(shape, experiences, paths, begun, n_agents=4, n_steps=120)
    single = jax.jit(functools.partial(cognition.step, structure=shape))
    apart, actions = [], []
    for state, life, words, param in zip(states, told, noise, params, strict=True):
        for experience, word in zip(life, words, strict=True):
            state = single(state, experience, word, params=param)
            actions.append(int(state.action))
        apart.append(state)

    def scanned(state, life, words, param):
        def body(state, given):
            state = cognition.step(state, *given, shape, param)
            return state, state.action

        return jax.lax.scan(body, state, (life, words))

    batch = jax.jit(jax.vmap(scanned))
    together, batch_actions = batch(stacked(states), stacked([stacked(life) for life in told]), noise, stacked(params))
    assert np.asarray(batch_actions).reshape(-1).tolist() == actions
    # sums are ordered differently in a batch
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), together, stacked(apart))


def test_large_arrays_are_written_in_place(structure, experiences, paths, begun):
    """No copy of the edges or the ledger in the compiled step, alone or in a scan over a batch of agents."""
    shape = structure(n_nodes=300, ledger_capacity=256)
    states, told, noise, params = lives(shape, experiences, paths, begun, n_agents=3, n_steps=4)
    sizes = [300 * 6, 300 * 3, 256 * 13]

    def big_copies(text):
        found = []
        for line in text.splitlines():
            if " copy(" in line:
                dimensions = line.split("[", 1)[1].split("]", 1)[0]
                found += [line] * (np.prod([int(n) for n in dimensions.split(",") if n] or [1]) in sizes)
        return found

    row = stepping.paths_row(NEVER_EXPLORES, np.zeros(4, np.int32), np.ones(4, np.float32), 1.0)
    row = stepping.experience_row(shape, row, action=0, reward=0.0, is_boundary=True)
    buffers = stepping.pack(states[0])
    assert len(buffers) == 5  # net, variance, activity, entries, and one vector of everything small
    alone = stepping.stepper(shape).step.lower(buffers, stepping.pack_params(params[0]), row).compile().as_text()
    assert big_copies(alone) == []

    def scanned(states, lives, words):
        def body(states, given):
            return jax.vmap(lambda s, e, w: cognition.step(s, e, w, shape, params[0]))(states, *given), None

        return jax.lax.scan(body, states, (lives, words))[0]

    lives_by_step = jax.tree.map(lambda leaf: np.swapaxes(leaf, 0, 1), stacked([stacked(life) for life in told]))
    lowered = jax.jit(scanned, donate_argnums=0).lower(stacked(states), lives_by_step, np.swapaxes(noise, 0, 1))
    text = lowered.compile().as_text()
    sizes = [3 * size for size in sizes]
    assert big_copies(text[: text.index("ENTRY")]) == []


def test_buffers_and_rows_carry_every_value(structure, experiences, paths, begun):
    shape = structure()
    config, rng = cognition.Config(variance=0.2), np.random.default_rng(4)
    params = cognition.params_of(config, STYLE)
    state = begun(shape, config, paths(shape, rng))
    buffers, kernel = stepping.pack(state), stepping.stepper(shape)
    advance = jax.jit(functools.partial(cognition.step, structure=shape, params=params))
    for e in experiences(shape, 60, seed=2):
        noise = rng.integers(0, 2**32, 2, np.uint32)
        feedback = [(int(i), float(v)) for i, v in zip(e.feedback_id, e.feedback_value, strict=True) if i >= 0]
        row = stepping.experience_row(
            shape,
            stepping.paths_row(noise, e.next_paths.nodes, e.next_paths.activation, float(e.next_paths.stake)),
            action=int(e.action),
            reward=float(e.reward),
            is_boundary=bool(e.is_boundary),
            decision_id=int(e.decision_id),
            feedback=feedback,
            opinion=(int(e.opinion_action), float(e.opinion)) if e.opinion_action >= 0 else None,
        )
        state = advance(state, e, noise)
        buffers, action = kernel.step(buffers, stepping.pack_params(params), row)
        assert int(action) == int(state.action)
    unpacked = stepping.unpack(buffers, shape)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), unpacked, state)
    assert jax.tree.map(lambda leaf: leaf.dtype, unpacked) == jax.tree.map(lambda leaf: leaf.dtype, state)


def test_an_outcome_outside_of_a_step_teaches_the_same(structure, experiences, paths, begun):
    shape, config = structure(feedback_slots=1), cognition.Config()
    params, rng = cognition.params_of(config, STYLE), np.random.default_rng(3)
    state = begun(shape, config, paths(shape, rng))
    quiet = experiences(shape, 1, seed=0)[0]._replace(opinion_action=np.int32(-1), feedback_id=np.array([-1], np.int32))
    state = cognition.step(state, quiet._replace(decision_id=np.int32(0)), NEVER_EXPLORES, shape, params)
    pending = quiet._replace(decision_id=np.int32(1), is_boundary=np.bool_(True))
    given = pending._replace(feedback_id=np.array([0], np.int32), feedback_value=np.array([0.5], np.float32))
    within = cognition.step(state, given, NEVER_EXPLORES, shape, params)
    before = cognition.credit(state, jnp.int32(0), jnp.float32(0.5), shape, params)
    before = cognition.step(before, pending, NEVER_EXPLORES, shape, params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), within, before)


def test_a_boundary_stops_what_follows_from_flowing_back(structure, experiences, paths, begun):
    shape, config = structure(), cognition.Config(gamma=0.9)
    params, rng = cognition.params_of(config, cognition.Style()), np.random.default_rng(6)
    here, there = paths(shape, rng), paths(shape, rng)
    state = begun(shape, config, here)
    net = jnp.full_like(state.edges.net, 0.3)
    state = cognition.State(
        cognition.Edges(net, *jax.tree.leaves(state.edges)[1:]), state.ledger, here, *jax.tree.leaves(state)[-3:]
    )
    quiet = experiences(shape, 1, seed=0)[0]._replace(
        opinion_action=np.int32(-1),
        feedback_id=np.full(shape.feedback_slots, -1, np.int32),
        decision_id=np.int32(-1),
        reward=np.float32(0.0),
        next_paths=there,
    )

    def changes(is_boundary, next_paths):
        told = quiet._replace(is_boundary=np.bool_(is_boundary), next_paths=next_paths)
        return np.asarray(cognition.step(state, told, NEVER_EXPLORES, shape, params).edges.net)

    np.testing.assert_array_equal(changes(True, there), changes(True, here))
    assert np.abs(changes(False, there) - changes(True, there)).max() > 1e-4


@pytest.mark.slow
def test_everything_holds_with_64_bit_numbers_switched_on():
    """The same tests again, in a process in which untyped integers and floats would be 64 bits wide."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/cognition", "-m", "not slow"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env={**os.environ, "JAX_ENABLE_X64": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3_000:]
