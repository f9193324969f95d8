"""The whole step: equal to slow float64 NumPy, and equal to itself under jit, vmap and scan."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition

STYLE = dict(risk=0.3, curiosity=0.1, caution=0.05)
NEVER_EXPLORES = np.array([2**32 - 1, 0], np.uint32)
# variances and rates so large that strengths reach their bounds
HASTY = dict(variance=0.3, noise=0.2, learning_rate=0.4, ledger_capacity=16, prototypes=3)
SMALL = dict(variance=0.2, ledger_capacity=16, prototypes=3)


def stacked(items):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *items)


def agrees(config, capacity, structure, experiences, situation, reference, begun, compiled, n_steps=300):
    shape = structure(config, ledger_capacity=capacity)
    params = cognition.params_of(config, cognition.Style(**STYLE))
    first = situation(shape, np.random.default_rng(9))
    state, slow = begun(shape, config, first, **STYLE), reference(shape, config, cognition.Style(**STYLE))
    slow.paths = slow.recall(first, np.asarray(state.known.prototypes.opinion))
    slow.greedy = int(state.greedy)
    largest = 0.0
    for experience in experiences(shape, n_steps, seed=5):
        state = compiled.step(state, experience, NEVER_EXPLORES, shape, params)
        slow.step(experience, np.asarray(state.known.prototypes.opinion))
        largest = max(largest, np.abs(slow.gain).max(), np.abs(slow.loss).max())
        is_on = slow.paths.activation != 0
        np.testing.assert_allclose(state.paths.activation, slow.paths.activation, atol=1e-6)
        np.testing.assert_array_equal(np.asarray(state.paths.nodes)[is_on], slow.paths.nodes[is_on])
        assert int(state.action) == slow.greedy
    for found, expected in zip(
        cognition.evaluate(state.edges, state.paths, shape, params), slow.evaluate(slow.paths), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=2e-4)
    net = np.asarray(state.edges.net).reshape(shape.n_nodes, 2, shape.width)
    np.testing.assert_allclose(net[:, 0], slow.gain, atol=1e-4)
    np.testing.assert_allclose(net[:, 1], slow.loss, atol=1e-4)
    np.testing.assert_allclose(state.edges.variance, slow.variance.reshape(-1), rtol=2e-3)
    activity = np.asarray(state.edges.activity).reshape(shape.n_nodes, 2, shape.n_columns)
    np.testing.assert_array_equal(activity[:, 1], slow.uses)
    np.testing.assert_array_equal(activity[:, 0], slow.last)
    assert float(state.rewards.mean) == pytest.approx(slow.mean, abs=1e-5)
    assert (int(state.step), int(state.version)) == (slow.t, slow.version)
    assert (int(state.ledger.overwritten), int(state.ledger.unmatched)) == (slow.overwritten, slow.unmatched)
    assert (slow.overwritten > 0) == (capacity == 16)  # the case that loses decisions is among those compared
    assert largest > 0.999  # and so is the bound of strengths


FAST = [
    (dict(rule="kalman"), 16),
    (dict(rule="count", signed=False), 16),
    (dict(rule="beta", gate=False), 16),
    (dict(rule="hebb_advantage"), 16),
]
SLOW = [
    (dict(rule="nlms", cut_traces=True), 256),
    (dict(rule="hebb", average_reward=False), 256),
    (dict(rule="kalman", trace_decay=1.0, gamma=1.0, cut_traces=True), 256),
    (dict(rule="kalman", trace_decay=0.0), 16),
    (dict(rule="kalman", gamma=0.0), 16),
    (dict(rule="kalman", common=False, average_reward=False, gate=False), 16),
    (dict(rule="nlms", signed=False), 16),
    (dict(rule="count", cut_traces=True), 256),
    (dict(rule="beta", average_reward=False), 16),
]


@pytest.mark.parametrize(("changes", "capacity"), FAST)
def test_hundreds_of_steps_agree_with_a_float64_reference(
    changes, capacity, structure, experiences, situation, reference, begun, compiled
):
    config = cognition.Config(**{**HASTY, **changes})
    agrees(config, capacity, structure, experiences, situation, reference, begun, compiled)


@pytest.mark.slow
@pytest.mark.parametrize(("changes", "capacity"), SLOW)
def test_hundreds_of_steps_agree_with_a_float64_reference_under_other_settings(
    changes, capacity, structure, experiences, situation, reference, begun, compiled
):
    config = cognition.Config(**{**HASTY, **changes})
    agrees(config, capacity, structure, experiences, situation, reference, begun, compiled)


def test_vmap_over_agents_and_scan_over_steps_equal_single_steps(structure, experiences, situation, begun, compiled):
    config, n_agents, n_steps = cognition.Config(**SMALL), 4, 120
    shape = structure(config)
    states = [begun(shape, config, situation(shape, np.random.default_rng(seed))) for seed in range(n_agents)]
    told = [experiences(shape, n_steps, seed=seed) for seed in range(n_agents)]
    noise = np.random.default_rng(1).integers(0, 2**32, (n_agents, n_steps, 2), np.uint32)
    params = [cognition.params_of(config, cognition.Style(risk=0.1 * seed)) for seed in range(n_agents)]
    apart, actions = [], []
    for state, life, words, param in zip(states, told, noise, params, strict=True):
        for experience, word in zip(life, words, strict=True):
            state = compiled.step(state, experience, word, shape, param)
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
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-5), together, stacked(apart))


@pytest.fixture
def lived(structure, experiences, situation, begun, compiled):
    """(state after 30 steps, a step without late outcomes or opinions, structure, parameters)."""
    config = cognition.Config(**SMALL)
    shape, rng = structure(config), np.random.default_rng(3)
    params = cognition.params_of(config, cognition.Style())
    state = begun(shape, config, situation(shape, rng))
    for experience in experiences(shape, 30, seed=0):
        state = compiled.step(state, experience, NEVER_EXPLORES, shape, params)
    quiet = experiences(shape, 1, seed=0)[0]._replace(
        opinion_action=np.int32(-1),
        decision_id=np.int32(-1),
        feedback_id=np.full(shape.feedback_slots, -1, np.int32),
        seen=np.full(2, -1, np.int32),
    )
    return state, quiet, shape, params


def test_an_outcome_outside_of_a_step_teaches_the_same(lived, compiled):
    state, quiet, shape, params = lived
    state = compiled.step(state, quiet._replace(decision_id=np.int32(50)), NEVER_EXPLORES, shape, params)
    pending = quiet._replace(decision_id=np.int32(51), is_boundary=np.bool_(True))
    ids, values = pending.feedback_id.copy(), np.zeros(shape.feedback_slots, np.float32)
    ids[0], values[0] = 50, 0.5
    within = compiled.step(
        state, pending._replace(feedback_id=ids, feedback_value=values), NEVER_EXPLORES, shape, params
    )
    before = cognition.credit(state, jnp.int32(50), jnp.float32(0.5), shape, params)
    assert np.abs(before.edges.net - state.edges.net).max() > 1e-4
    before = compiled.step(before, pending, NEVER_EXPLORES, shape, params)
    for part in ("edges", "ledger", "known", "version"):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=1e-7), getattr(within, part), getattr(before, part)
        )


def test_a_boundary_stops_what_follows_from_flowing_back(lived, situation, compiled):
    state, quiet, shape, params = lived
    here, there = (situation(shape, np.random.default_rng(seed)) for seed in (1, 2))

    def net(is_boundary, following):
        told = quiet._replace(is_boundary=np.bool_(is_boundary), following=following)
        return np.asarray(compiled.step(state, told, NEVER_EXPLORES, shape, params).edges.net)

    np.testing.assert_array_equal(net(True, there), net(True, here))
    assert np.abs(net(False, there) - net(False, here)).max() > 1e-4


def test_an_error_reaches_the_decisions_before_it_in_the_encounter_and_none_beyond(lived, compiled):
    state, quiet, shape, params = lived
    paid = quiet._replace(reward=np.float32(1.0), is_boundary=np.bool_(True))

    def lives(first_ends):
        start = compiled.step(state, quiet._replace(is_boundary=np.bool_(True)), NEVER_EXPLORES, shape, params)
        nodes, on = np.asarray(start.paths.nodes), np.asarray(start.paths.activation) > 0
        first = quiet._replace(action=np.int32(0), is_boundary=np.bool_(first_ends), reward=np.float32(0.0))
        before = compiled.step(start, first, NEVER_EXPLORES, shape, params)
        told = paid._replace(action=np.int32(3))
        after = compiled.step(before, told, NEVER_EXPLORES, shape, params)
        cells = nodes[on] * 2 * shape.width  # gain of action 0, which the second decision did not take
        return np.asarray(after.edges.net - before.edges.net)[cells]

    assert (lives(first_ends=True) == 0).all()
    assert (lives(first_ends=False) > 1e-5).all()


def test_nothing_is_learnt_of_a_decision_whose_outcome_is_still_to_come(lived, compiled):
    state, quiet, shape, params = lived
    after = compiled.step(state, quiet._replace(decision_id=np.int32(60)), NEVER_EXPLORES, shape, params)
    np.testing.assert_array_equal(after.edges.net, state.edges.net)
    np.testing.assert_array_equal(after.edges.variance, state.edges.variance)
    assert int(after.version) == int(state.version)


def test_impossible_actions_are_never_chosen_even_when_exploring(lived, situation, compiled):
    state, quiet, shape, _ = lived
    params = cognition.params_of(cognition.Config(eps0=1.0), cognition.Style())
    rng, chosen = np.random.default_rng(0), set()
    seen = situation(shape, rng)._replace(mask=np.array([False, True, False, True]))
    for _ in range(40):
        words = rng.integers(0, 2**32, 2, np.uint32)
        chosen.add(int(compiled.step(state, quiet._replace(following=seen), words, shape, params).action))
    assert chosen == {1, 3}


def test_an_opinion_about_a_scaled_action_is_one_about_its_column(lived, compiled):
    """Action 2 pays half of what action 1 pays, so that .2 for it is .4 for action 1."""
    state, quiet, shape, params = lived
    about = [(1, 0.4), (2, 0.2)]
    nets = [
        compiled.step(
            state,
            quiet._replace(opinion_action=np.int32(a), opinion=np.float32(y)),
            NEVER_EXPLORES,
            shape,
            params,
        ).edges.net
        for a, y in about
    ]
    np.testing.assert_array_equal(*nets)


def test_a_new_episode_forgets_what_waits_and_starts_a_new_encounter(lived, situation, compiled):
    state, quiet, shape, params = lived
    open_one = quiet._replace(decision_id=np.int32(70), is_boundary=np.bool_(False))
    state = compiled.step(state, open_one, NEVER_EXPLORES, shape, params)
    assert not bool(state.known.encounter.is_new)
    assert float(jnp.abs(state.trace.steps).max()) > 0
    fresh = compiled.begin(state, situation(shape, np.random.default_rng(0)), NEVER_EXPLORES, shape, params)
    assert bool(fresh.known.encounter.is_new)
    assert int((fresh.ledger.entries[:, 0] != -1).sum()) == 0
    assert float(jnp.abs(fresh.trace.steps).max()) == 0
    np.testing.assert_array_equal(fresh.edges.net, state.edges.net)


@pytest.mark.slow
def test_everything_holds_with_64_bit_numbers_switched_on():
    """The same tests again, in a process in which untyped integers and floats would be 64 bits wide."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/cognition", "-m", "not slow"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env={**os.environ, "JAX_ENABLE_X64": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3_000:]
