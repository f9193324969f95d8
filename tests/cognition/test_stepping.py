"""The packed step is the step: nothing is lost in rows and buffers, nothing is copied, nothing is compiled twice."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import learner, stepping
from habitus.cognition.learning import resting

CONFIG = cognition.Config(variance=0.2, ledger_capacity=16, prototypes=3)
STYLE = cognition.Style(risk=0.3, curiosity=0.1, caution=0.05)
PARAMS = cognition.params_of(CONFIG, STYLE)
VECTOR = stepping.pack_params(PARAMS)


def situation_row(noise, seen):
    given = dict(entity=int(seen.entity), advice=int(seen.advice), mask=np.asarray(seen.mask))
    return stepping.situation_row(noise, seen.nodes, seen.activation, float(seen.stake), **given)


def experience_row(shape, noise, e):
    return stepping.experience_row(
        shape,
        situation_row(noise, e.following),
        action=int(e.action),
        reward=float(e.reward),
        is_boundary=bool(e.is_boundary),
        decision_id=int(e.decision_id),
        feedback=[(int(i), float(v)) for i, v in zip(e.feedback_id, e.feedback_value, strict=True) if i >= 0],
        opinion=(int(e.opinion_action), float(e.opinion)) if e.opinion_action >= 0 else None,
        seen=e.seen.tolist(),
    )


def packed(state):
    """Buffers of a copy: what is passed to a kernel is gone."""
    return stepping.pack(jax.tree.map(jnp.copy, state))


def assert_same(one, other, atol=0.0):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=atol, rtol=10 * atol), one, other)
    assert jax.tree.map(lambda leaf: leaf.dtype, one) == jax.tree.map(lambda leaf: leaf.dtype, other)


@pytest.fixture
def fresh(structure, situation, begun):
    """(a new learner, structure)."""
    shape = structure(CONFIG)
    return begun(shape, CONFIG, situation(shape, np.random.default_rng(4)), **dataclasses.asdict(STYLE)), shape


def test_a_state_comes_out_of_its_buffers_as_it_went_in(kept_life):
    state, shape = kept_life
    assert_same(stepping.unpack(packed(state), shape), state)


@pytest.mark.parametrize("n_actions", [1, 4, 31, 32, 33, 64, 100])
def test_a_row_carries_every_value_of_a_situation_and_masks_of_any_width(n_actions, situation, structure):
    shape = structure(
        columns=tuple(range(n_actions)), factors=(1.0,) * n_actions, deliberation=(False,) * n_actions, prototypes=0,
        crossed=(), crossed_nodes=(), behaviours=(),
    )  # fmt: skip
    rng = np.random.default_rng(n_actions)
    for _ in range(4):
        seen = situation(shape, rng)
        assert len(seen.mask) == n_actions
        words = rng.integers(0, 2**32, 2, np.uint32)
        row = situation_row(words, seen)
        np.testing.assert_array_equal(stepping._unpack_noise(row), words)
        assert_same(stepping._unpack_situation(row[2:], shape), jax.tree.map(jnp.asarray, seen))
    open_row = stepping.situation_row(words, seen.nodes, seen.activation, 1.0, n_actions=n_actions)
    assert np.asarray(stepping._unpack_situation(open_row[2:], shape).mask).all()
    assert len(open_row) == len(row)


def test_a_row_carries_every_value_of_an_experience(structure, experiences):
    shape = structure(CONFIG)
    for e in experiences(shape, 12, seed=3):
        if e.opinion_action < 0:
            e = e._replace(opinion=np.float32(0))
        row = experience_row(shape, np.array([1, 2], np.uint32), e)
        assert_same(stepping._unpack_experience(row, shape), jax.tree.map(jnp.asarray, e))


def test_packed_steps_are_steps_and_no_step_is_compiled_twice(fresh, experiences, compiled):
    (state, shape), rng = fresh, np.random.default_rng(4)
    buffers, kernel = packed(state), stepping.stepper(shape)
    for e in experiences(shape, 120, seed=2):
        noise = rng.integers(0, 2**32, 2, np.uint32)
        state = compiled.step(state, e, noise, shape, PARAMS)
        buffers, action = kernel.step(buffers, VECTOR, experience_row(shape, noise, e))
        assert int(action) == int(state.action)
    assert_same(stepping.unpack(buffers, shape), state, atol=1e-5)
    assert kernel.step._cache_size() == 1


def test_a_step_is_learning_and_then_attending(kept_life, experiences):
    (state, shape), rng = kept_life, np.random.default_rng(5)
    together, apart, kernel = packed(state), packed(state), stepping.stepper(shape)
    for e in experiences(shape, 20, seed=6):
        row = experience_row(shape, rng.integers(0, 2**32, 2, np.uint32), e)
        together, action = kernel.step(together, VECTOR, row)
        apart = kernel.learn(apart, VECTOR, row)
        assert int(stepping.unpack(apart, shape).step) == int(stepping.unpack(together, shape).step)
        apart, other = kernel.attend(apart, VECTOR, row)
        assert int(action) == int(other)
    assert_same(stepping.unpack(together, shape), stepping.unpack(apart, shape), atol=1e-5)


def test_a_complete_step_is_the_same_without_what_waits(kept_life, experiences):
    (state, shape), kernel = kept_life, stepping.stepper(kept_life[1])
    nothing = dict(decision_id=np.int32(-1), opinion_action=np.int32(-1), feedback_id=np.full(4, -1, np.int32))
    whole, (entries, *rest) = packed(state), packed(state)
    for e in experiences(shape, 20, seed=7):
        row = experience_row(shape, np.array([2**32 - 1, 0], np.uint32), e._replace(**nothing))
        whole, action = kernel.step(whole, VECTOR, row)
        rest, other = kernel.prompt(tuple(rest), VECTOR, row)
        assert int(action) == int(other)
    assert_same(stepping.unpack((entries, *rest), shape), stepping.unpack(whole, shape), atol=1e-5)


@pytest.mark.slow
def test_outcomes_and_rests_from_python_are_those_of_the_learner(kept_life, compiled):
    (state, shape), kernel = kept_life, stepping.stepper(kept_life[1])
    waiting = int(np.asarray(state.ledger.entries[:, 0]).max())
    assert waiting >= 0
    credited = kernel.credit(packed(state), VECTOR, stepping.outcome_row(waiting, 0.7))
    expected = learner.credit(state, jnp.int32(waiting), jnp.float32(0.7), shape, PARAMS)
    assert_same(stepping.unpack(credited, shape), expected, atol=1e-6)
    assert int(expected.version) == int(state.version) + 1
    rested = kernel.rest(packed(state), VECTOR, jnp.uint32(9))
    key = resting.key_of(jnp.uint32(9), state.step)
    assert_same(stepping.unpack(rested, shape), compiled.rest(state, state.step, key, shape, PARAMS), atol=1e-5)


def test_reading_tells_what_a_choice_would_be_made_of_and_writes_nothing(kept_life, situation, compiled):
    (state, shape), rng = kept_life, np.random.default_rng(8)
    buffers, kernel = packed(state), stepping.stepper(shape)
    for _ in range(5):
        seen = situation(shape, rng)
        reading = kernel.read(buffers, VECTOR, situation_row(np.zeros(2, np.uint32), seen))
        paths = compiled.recall(state.known, seen, shape)
        np.testing.assert_array_equal(reading.paths.nodes, paths.nodes)
        expected = compiled.evaluate(state.edges, paths, shape, PARAMS)
        np.testing.assert_allclose(reading.evidence.urge, expected.urge, atol=1e-5)
        net = np.asarray(state.edges.net).reshape(shape.n_nodes, -1)
        np.testing.assert_array_equal(reading.net, net[np.asarray(paths.nodes)])
        assert (int(reading.step), int(reading.version)) == (int(state.step), int(state.version))
    assert_same(stepping.unpack(buffers, shape), state)


def test_random_words_drawn_in_bulk_are_those_drawn_one_by_one():
    for seed in (0, 7, 2**32 - 1):
        for block in (0, 3):
            bulk = np.asarray(stepping.noise_block(jnp.uint32(seed), jnp.int32(block), n=16))
            choices = [stepping.noise_of(jnp.uint32(seed), jnp.int32(16 * block + i)) for i in range(16)]
            np.testing.assert_array_equal(bulk, choices)
    words = np.asarray(stepping.noise_block(jnp.uint32(1), jnp.int32(0))).reshape(-1)
    assert len(np.unique(words)) == len(words) == 2 * stepping.NOISE_BLOCK


def wide(structure):
    """Arrays large enough to be told from everything small by their size, and those sizes."""
    context = (*range(7), *range(300, 310))
    shape = structure(CONFIG, n_context=300, crossed_nodes=context, ledger_capacity=256)
    n, width = shape.n_nodes, shape.width
    return shape, [n * 2 * width, n * width, n * 2 * shape.n_columns, 256 * (2 * shape.n_paths + 5), 4096]


def big_copies(text, sizes):
    found = []
    for line in text.splitlines():
        if " copy(" in line:
            dimensions = line.split("[", 1)[1].split("]", 1)[0]
            found += [line] * (int(np.prod([int(n) for n in dimensions.split(",") if n] or [1])) in sizes)
    return found


def test_large_arrays_are_written_in_place(structure, situation, begun, experiences):
    """No copy of the edges, the ledger or the ring of events in the compiled step."""
    shape, sizes = wide(structure)
    state = begun(shape, CONFIG, situation(shape, np.random.default_rng(0)))
    assert {leaf.size for leaf in jax.tree.leaves(state) if leaf.size > 1000} == set(sizes)
    row = experience_row(shape, np.zeros(2, np.uint32), experiences(shape, 1, seed=0)[0])
    text = stepping.stepper(shape).step.lower(packed(state), VECTOR, row).compile().as_text()
    assert big_copies(text, sizes) == []
    copied = jax.jit(lambda x: (x, x + 1)).lower(jnp.zeros(sizes[0])).compile().as_text()
    assert big_copies(copied, sizes)  # the check finds a copy where there is one


@pytest.mark.slow
def test_large_arrays_of_a_batch_in_a_scan_are_written_in_place(structure, situation, begun, experiences):
    shape, sizes = wide(structure)
    state = begun(shape, CONFIG, situation(shape, np.random.default_rng(0)))
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), state)
    life = jax.tree.map(lambda *leaves: np.stack(leaves), *experiences(shape, 4, seed=0))
    lives = jax.tree.map(lambda leaf: np.stack([leaf] * 3, axis=1), life)
    words = np.random.default_rng(1).integers(0, 2**32, (4, 3, 2), np.uint32)

    def scanned(states, lives, words):
        def body(states, given):
            return jax.vmap(lambda s, e, w: cognition.step(s, e, w, shape, PARAMS))(states, *given), None

        return jax.lax.scan(body, states, (lives, words))[0]

    text = jax.jit(scanned, donate_argnums=0).lower(states, lives, words).compile().as_text()
    assert big_copies(text[: text.index("ENTRY")], [3 * size for size in sizes]) == []
