"""Seconds of gymnax's CartPole under jit + scan, for `habitus bench worlds --gymnax PYTHON`.

A program of its own that imports nothing of habitus: gymnax pins its own versions, so it runs in a virtual environment
of its own,

    python -m venv gymnax-venv && gymnax-venv/bin/pip install gymnax six
    habitus bench worlds --gymnax gymnax-venv/bin/python

and prints one line of JSON: processor seconds to compile, and those of each repetition.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def main(n_envs: int, n_steps: int, repetitions: int, core: int) -> None:
    """Time a random policy in `n_envs` environments for `n_steps` steps each, on one core (-1: wherever)."""
    if core >= 0:
        os.sched_setaffinity(0, {core})  # before JAX starts its threads, which inherit it
    import gymnax  # type: ignore[import-not-found, unused-ignore]
    import jax
    import jax.numpy as jnp

    env, params = gymnax.make("CartPole-v1")

    def run(key: Any) -> Any:
        reset_key, run_key = jax.random.split(key)
        _, state = jax.vmap(env.reset, in_axes=(0, None))(jax.random.split(reset_key, n_envs), params)

        def advance(carry: Any, key: Any) -> Any:
            state, checksum = carry
            action_key, step_key = jax.random.split(key)
            action = jax.random.randint(action_key, (n_envs,), 0, 2)
            step_keys = jax.random.split(step_key, n_envs)
            observation, state, reward, *_ = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
                step_keys, state, action, params
            )
            return (state, checksum + reward + observation.sum(axis=1)), None

        (_, checksum), _ = jax.lax.scan(advance, (state, jnp.zeros(n_envs)), jax.random.split(run_key, n_steps))
        return checksum

    key = jax.random.key(0)
    began = time.process_time()
    compiled = jax.jit(run).lower(key).compile()
    compile_s = time.process_time() - began
    compiled(key).block_until_ready()
    seconds = []
    for repetition in range(repetitions):
        key = jax.random.key(repetition)
        began = time.process_time()
        compiled(key).block_until_ready()
        seconds.append(time.process_time() - began)
    print(json.dumps({"compile_s": compile_s, "seconds": seconds, "jax": jax.__version__}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]))
