import numpy as np
import pytest
from habitus import envs


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"horizon": 0}, ValueError, r"`horizon` must lie in \[1, 1000000\], got 0"),
        ({"horizon": 10**7}, ValueError, r"`horizon` must lie in \[1, 1000000\], got 10000000"),
        ({"horizon": 10.0}, TypeError, "`horizon` must be a whole number, got 10.0 of type float"),
        ({"horizon": "long"}, TypeError, "`horizon` must be a whole number, got 'long' of type str"),
        ({"horizon": None}, TypeError, "`horizon` must be a whole number, got None"),
        (
            {"difficulty": "nightmare"},
            ValueError,
            r"`difficulty` must be one of \('easy', 'medium', 'hard'\), got 'nightmare'",
        ),
        ({"difficulty": 1}, TypeError, "`difficulty` must be one of .*, got 1 of type int"),
        ({"feedback": "late"}, ValueError, r"`feedback` must be one of \('attributed', 'stream'\), got 'late'"),
        ({"observe_entity": 1}, TypeError, "`observe_entity` must be True or False, got 1 of type int"),
        ({"observe_group": "no"}, TypeError, "`observe_group` must be True or False, got 'no'"),
        ({"regime": "chaos"}, ValueError, "`regime` must be one of .*got 'chaos'"),
        ({"regime": "shift", "shift_at": 2000}, ValueError, r"`shift_at` must lie in \[0, 1999\], got 2000"),
        ({"shift_at": 5}, ValueError, "`shift_at` must be None when `regime` is 'none', got 5"),
        ({"render_mode": "vr"}, ValueError, r"`render_mode` must be one of \('human', 'ansi', 'rgb_array'\), got 'vr'"),
        ({"applicants": "spanish"}, ValueError, "`applicants` must be 'synthetic' or an ApplicantTable, got 'spanish'"),
        ({"applicants": None}, TypeError, "`applicants` must be 'synthetic' or an ApplicantTable, got NoneType"),
        ({"loss": 2.0}, ValueError, "`loss` must be 1.0 for synthetic applicants, got 2.0; it belongs to tables"),
        ({"hide_probability": 0.1}, ValueError, "`hide_probability` must be 0.4 for synthetic applicants, got 0.1"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        envs.CreditReviewEnv(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"difficulty": "hard"}, ValueError, "`difficulty` must be 'medium' for a table of applicants, got 'hard'"),
        ({"loss": 0.0}, ValueError, r"`loss` must lie in \[0.01, 20\], got 0"),
        ({"loss": "1"}, TypeError, "`loss` must be a number, got '1' of type str"),
        ({"gain": -0.5}, ValueError, r"`gain` must lie in \[0.001, 20\], got -0.5"),
        ({"gain": np.nan}, ValueError, r"`gain` must lie in \[0.001, 20\], got nan"),
        ({"review_reliability": 0.5}, ValueError, r"`review_reliability` must lie in \[0.51, 1\], got 0.5"),
        ({"review_reliability": 1.2}, ValueError, r"`review_reliability` must lie in \[0.51, 1\], got 1.2"),
        ({"review_fee": -1}, ValueError, r"`review_fee` must lie in \[0, 20\], got -1"),
        ({"document_fee": True}, TypeError, "`document_fee` must be a number, got True of type bool"),
        ({"reduced": 0}, ValueError, r"`reduced` must lie in \[0.01, 1\], got 0"),
        ({"hide_probability": 1.5}, ValueError, r"`hide_probability` must lie in \[0, 1\], got 1.5"),
    ],
)
def test_a_wrong_argument_of_a_table_is_refused_by_name(toy_table, arguments, error, message):
    with pytest.raises(error, match=message):
        envs.CreditReviewEnv(toy_table(), **arguments)


@pytest.mark.parametrize("arguments", [{"horizon": 1}, {"horizon": np.int64(10**6)}])
def test_the_ends_of_a_range_are_accepted(arguments):
    assert envs.CreditReviewEnv(**arguments).horizon == arguments["horizon"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"hide_probability": 0.0},
        {"hide_probability": 1},
        {"review_reliability": 1.0, "review_fee": 0, "document_fee": 0, "reduced": 1.0},
        {"gain": 0.001},
    ],
)
def test_the_ends_of_the_ranges_of_a_table_are_accepted(toy_table, arguments):
    envs.CreditReviewEnv(toy_table(), **arguments)


def test_a_numpy_bool_is_a_switch():
    env = envs.GameNPCEnv(observe_entity=np.False_)
    assert "player" not in env.observation_space.spaces
