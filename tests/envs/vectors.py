"""A vector environment beside scalar ones, compared bit by bit."""

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

N = 3


def pairs(shown):
    """`feedback` of scalar environments from the arrays of a vector one."""
    lists = np.full(len(shown["feedback_id"]), None, object)
    for i, (ids, values) in enumerate(zip(shown["feedback_id"], shown["feedback_value"], strict=True)):
        lists[i] = [(int(one), float(value)) for one, value in zip(ids, values, strict=True) if one >= 0]
    return lists


def in_lists(infos):
    """Infos of a vector environment with `feedback` as the scalar environments have it."""
    found = {name: value for name, value in infos.items() if "feedback_" not in name}
    if "final_info" in infos:
        found["final_info"] = in_lists(infos["final_info"])
    if "feedback_id" in infos:
        shown = infos["_feedback_id"]
        found["feedback"] = np.where(shown, pairs(infos), None)
        found["_feedback"] = shown
    return found


def assert_same(one, other, where=""):
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name in one:
            assert_same(one[name], other[name], f"{where}[{name!r}]")
    elif isinstance(one, tuple):
        for number, (part, its) in enumerate(zip(one, other, strict=True)):
            assert_same(part, its, f"{where}[{number}]")
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        if one.dtype == object:
            for number, (part, its) in enumerate(zip(one, other, strict=True)):
                assert_same(part, its, f"{where}[{number}]")
        else:
            assert one.tobytes() == other.tobytes(), where
    else:
        assert one == other, where


def compare(make_scalar, make_vector, n_steps, mode, seed=5):
    """Step a vector environment and scalar ones side by side with random actions; resets happen on the way."""
    scalar = SyncVectorEnv([make_scalar] * N, autoreset_mode=mode)
    vector = make_vector(N, mode)
    rng = np.random.default_rng(seed)
    shown = scalar.reset(seed=seed), vector.reset(seed=seed)
    assert_same(shown[0], (shown[1][0], in_lists(shown[1][1])), "reset")
    n_resets = 0
    for number in range(n_steps):
        actions = rng.integers(vector.single_action_space.n, size=N)
        expected, found = scalar.step(actions), vector.step(actions)
        assert_same(expected, (*found[:4], in_lists(found[4])), f"step {number}")
        ended = expected[2] | expected[3]
        n_resets += ended.any()
        if mode is AutoresetMode.DISABLED and ended.any():
            expected = scalar.reset(options={"reset_mask": ended.copy()})
            found = vector.reset(options={"reset_mask": ended.copy()})
            assert_same(expected, (found[0], in_lists(found[1])), f"reset after step {number}")
    assert n_resets >= 3
    return vector
