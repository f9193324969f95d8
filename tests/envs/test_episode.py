"""The order of draws: what a call draws comes from blocks of its key, each of which serves once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from habitus import envs
from habitus.envs import episode, rollout

SIZES = [(4, 2), (18, 0), (20, 2), (21, 1), (2, 0), (3, 4), (0, 2)]


class Sized:
    """As much of a world as `draw` asks for."""

    def __init__(self, n_step_halves, n_observe_halves, draws_apart=False):
        self.n_step_halves, self.n_observe_halves, self.draws_apart = n_step_halves, n_observe_halves, draws_apart


def blocks_of(key, n):
    """[1 + n / 4, 2]: words of the blocks of a key, the first for the next call."""
    return np.asarray(jax.random.key_data(jax.random.split(key, 1 + -(-n // 4))))


@pytest.mark.parametrize(("n_step", "n_observe"), SIZES)
def test_halves_are_those_of_the_blocks_after_that_of_the_next_key(n_step, n_observe):
    n = n_step + n_observe
    for seed in range(20):
        key = jax.random.key(seed, impl="threefry2x32")
        drawn = episode.draw(Sized(n_step, n_observe), key)
        first, *others = blocks_of(key, n).tolist()
        assert jax.random.key_data(drawn.next_key).tolist() == first
        assert first not in others
        words = [word for block in others for word in block]
        halves = [word >> 16 for word in words] + [word & 0xFFFF for word in words]
        assert drawn.step.tolist() == halves[:n_step]
        assert drawn.observe.tolist() == halves[n_step:n]


def test_calls_of_an_episode_never_draw_a_word_twice():
    key, drawn_words = jax.random.key(1, impl="threefry2x32"), []
    for _ in range(200):
        drawn_words += blocks_of(key, 20)[1:].ravel().tolist()
        drawn_words += jax.random.key_data(key).tolist()
        key = episode.draw(Sized(18, 2), key).next_key
    assert len(drawn_words) == 200 * 12
    assert len(set(drawn_words)) >= len(drawn_words) - 3  # of 2400 words of 32 bits, a thousandth of a pair is alike


def test_a_world_that_draws_apart_has_three_keys():
    key = jax.random.key(3, impl="threefry2x32")
    drawn = episode.draw(Sized(4, 2, draws_apart=True), key)
    keys = jax.random.split(key, 3)
    np.testing.assert_array_equal(jax.random.key_data(drawn.next_key), jax.random.key_data(keys[0]))
    for its, halves in ((keys[1], drawn.step), (keys[2], drawn.observe)):
        words = np.asarray(jax.random.bits(its, (len(halves) // 2,), jnp.uint32))
        np.testing.assert_array_equal(halves, np.concatenate([words >> 16, words & 0xFFFF]))


@pytest.mark.parametrize("kind", ["integers", "one draw", "compiled"])
def test_episodes_are_the_same_whatever_generator_jax_is_set_to(toys, kind):
    made = toys.toy(ends=0.0, draws_apart=kind != "one draw")

    def shown():
        kind_of_its_own = type("Toy", (toys.Toy,), {})  # so that nothing of it has been compiled before
        world = kind_of_its_own(made.draws_apart, made.schema, made.params)
        world = toys.Plain(world) if kind == "compiled" else world
        one, many = envs.WorldEnv(world, horizon=300), envs.WorldVectorEnv(world, 2)
        seen = [one.reset(seed=1), many.reset(seed=1)]
        for number in range(280):  # beyond one chunk of the scalar executor
            seen.append(one.step(number % 3))
        seen += [many.step([0, 1]), many.step([1, 2])]
        trace = rollout.rollout(world, rollout.RandomPlayer(3), rollout.seeds_to_key_data([1, 2]), n_steps=10)
        return repr(seen) + repr(jax.tree.map(np.asarray, trace))

    before = shown()
    with jax.default_prng_impl("rbg"):
        assert jax.random.key_data(jax.random.key(0)).shape == (4,)
        assert shown() == before
