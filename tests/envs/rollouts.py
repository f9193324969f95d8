"""Rollouts for tests, also as a program: prints digests of episodes, to compare processes and number widths."""

import hashlib

import gymnasium
import habitus
import jax
import numpy as np
from habitus import envs

N_ROWS = 60


def toy_table(**changes):
    """Sixty applicants with every kind of column: hidden, missing, plain, a group and amounts."""
    rng = np.random.default_rng(7)
    missing = rng.random((N_ROWS, 2)) < (0.2, 0.0)
    income = np.where(missing[:, 0], 5.0, rng.uniform(0, 10, N_ROWS))
    parts = {
        "name": "toy",
        "fields": (
            envs.Field("job", ("fixed", "freelance", "missing", "hidden")),
            envs.Field("income", high=10, unit="k", edges=(1, 2, 3, 4, 5, 6, 7), fill=5.0, status="income_status"),
            envs.Field("age", low=18, high=90, unit="years"),
            envs.Field("home", ("rent", "own")),
        ),
        "categories": np.stack([rng.integers(0, 3, N_ROWS), rng.integers(0, 2, N_ROWS)], axis=1),
        "numbers": np.stack([income, rng.integers(18, 90, N_ROWS)], axis=1),
        "missing": missing,
        "bad": rng.random(N_ROWS) < 0.3,
        "stake": envs.stake_of_amounts(rng.lognormal(size=N_ROWS)),
        "has_amount": True,
        "hidden_fields": ("job", "income"),
        "group": rng.integers(0, 2, N_ROWS),
        "group_name": "sex",
        "group_labels": ("f", "m"),
        "proxies": ("income",),
    }
    return envs.ApplicantTable(**(parts | changes))


def rollout(env, seed, actions):
    """Everything an environment shows: one list per step of bytes-like or exact values."""
    shown = [*env.reset(seed=seed)]
    for action in actions:
        shown += [*env.step(int(action)), env.expected_rewards(), env.oracle_action(), env.audit()]
    return shown


def shown_rollout(env, seed, actions):
    """What an environment shows, masks and audits included, without the values that are worked out in floats."""
    observation, info = env.reset(seed=seed)
    shown = [observation, info, info["action_mask"].astype(np.bool_)]
    for action in actions:
        observation, reward, *ends, info = env.step(int(action))
        shown += [
            observation,
            reward,
            *ends,
            info,
            info["action_mask"].astype(np.bool_),
            env.state.step,
            env.regime_level(),
        ]
        shown += [np.asarray(leaf) for leaf in jax.tree.leaves(env.state)]
    return shown


def digest(shown):
    """Hash of a rollout, exact to the bit, without what infos did not hold when results were published."""
    return hashlib.sha256(repr([_exact(part) for part in shown]).encode()).hexdigest()


def _exact(part):
    if isinstance(part, dict):
        return {name: _exact(value) for name, value in part.items() if name != "action_mask"}
    if isinstance(part, np.ndarray):
        return part.dtype.str, [*map(_exact, part)] if part.dtype == object else part.tobytes()
    return repr(part)


def vector_rollout(vector, seed, n_steps):
    """Everything a vector environment shows, its state at the end included."""
    rng = np.random.default_rng(0)
    shown = [*vector.reset(seed=seed)]
    for _ in range(n_steps):
        shown += vector.step(rng.integers(vector.single_action_space.n, size=vector.num_envs))
    return [*shown, *map(np.asarray, jax.tree.leaves(vector.state))]


def worlds():
    """Name -> environment of everything registered, and of a table."""
    arguments = {"regime": "shift", "shift_at": 150, "horizon": 400}
    made = {world_id: gymnasium.make(world_id, **arguments).unwrapped for world_id in habitus.WORLD_IDS}
    return made | {"table": envs.CreditReviewEnv(toy_table(), **arguments)}


def main():
    """Print the digests of what was published, a synthetic and a real episode; then those of every world."""
    actions = np.random.default_rng(0).integers(5, size=300)
    for applicants in ("synthetic", toy_table()):
        env = envs.CreditReviewEnv(applicants, regime="drift", horizon=400, difficulty="medium")
        print(digest(rollout(env, 3, actions)))
    for name, env in worlds().items():
        vector = envs.WorldVectorEnv(env.world, 3, horizon=60, autoreset_mode="SameStep")
        print(name, digest(rollout(env, 3, actions)), digest(vector_rollout(vector, 3, 150)))


if __name__ == "__main__":
    main()
