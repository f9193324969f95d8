import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus.envs import draws
from habitus.envs.arithmetic import INTEGERS, as_integers
from habitus.envs.customer_service import CustomerServiceEnv
from habitus.envs.customer_service.world import CustomerService

SCHEDULE = [(100, 0.3), (200, 1.0)]


def world(**changes) -> CustomerService:
    return CustomerServiceEnv(**({"regime": SCHEDULE, "difficulty": "easy"} | changes)).world


@pytest.mark.parametrize("changes", [{}, {"difficulty": "hard", "observe_entity": False}, {"redraw_personas": True}])
def test_python_integers_and_compiled_arrays_agree_bit_for_bit(changes):
    dynamics = world(**changes)
    params, n_steps = dynamics.params, 300
    keys = jax.random.split(jax.random.key(5), n_steps + 1)
    step = jax.jit(lambda state, action, key: dynamics.step(state, action, key, params))
    observe = jax.jit(lambda state, key: dynamics.observe(state, key, params))
    halves = jax.jit(lambda key: draws.halves(key, (dynamics.n_step_halves,)).astype(jnp.int32))
    noise = jax.jit(lambda key: draws.halves(key, (dynamics.n_observe_halves,)).astype(jnp.int32))
    state = jax.jit(dynamics.initial)(keys[0], params)
    number, plain = as_integers(state), as_integers(params)
    actions = np.random.default_rng(2).integers(9, size=n_steps)
    for action, key in zip(actions.tolist(), keys[1:], strict=True):
        state, outcome = step(state, jnp.int32(action), key)
        number, by_number = dynamics.advance(number, action, np.asarray(halves(key)).tolist(), plain, INTEGERS)
        assert as_integers(state) == number
        assert as_integers(outcome) == by_number
        shown = dynamics.show(number, np.asarray(noise(key)).tolist(), plain, INTEGERS)
        assert as_integers(observe(state, key)) == shown
    assert int(state.known.n_arrivals) > 20


def test_steps_of_many_params_at_once_equal_a_loop_over_them():
    worlds = [world(difficulty=name, capacity=400) for name in ("easy", "medium", "hard")]
    assert len(set(worlds)) == 1
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one.params for one in worlds))

    def run(params, key):
        begin, run = jax.random.split(key)

        def step(state, number_and_key):
            number, key = number_and_key
            return worlds[0].step(state, number - number // 9 * 9, key, params)

        numbers = jnp.arange(200, dtype=jnp.int32)
        return jax.lax.scan(step, worlds[0].initial(begin, params), (numbers, jax.random.split(run, 200)))

    keys = jax.random.split(jax.random.key(1), 3)
    together = jax.jit(jax.vmap(run))(stacked, keys)
    one_by_one = jax.jit(run)
    for index, dynamics in enumerate(worlds):
        alone = one_by_one(dynamics.params, keys[index])
        assert as_integers(jax.tree.map(lambda leaf, i=index: leaf[i], together)) == as_integers(alone)


def test_every_leaf_is_32_bits_wide_whatever_the_default():
    dynamics = world()
    with jax.enable_x64(True):
        params = dynamics.params
        state = dynamics.initial(jax.random.key(0), params)
        after, outcome = dynamics.step(state, jnp.int32(2), jax.random.key(1), params)
        shown = dynamics.observe(after, jax.random.key(2), params)
    wide = [leaf.dtype for leaf in jax.tree.leaves((state, after, outcome, shown)) if leaf.dtype.itemsize > 4]
    assert wide == []
