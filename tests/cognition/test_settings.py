"""Settings that make no sense are refused by name; those at the ends of their range are not."""

from typing import get_args

import pytest
from habitus import cognition
from habitus.cognition.config import KIND_VARIANCE


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("rule", "hope"),
        ("gamma", 1.01),
        ("gamma", -0.1),
        ("noise", 0.0),
        ("variance", -1.0),
        ("variance", float("nan")),
        ("learning_rate", 0.0),
        ("learning_rate", 1.5),
        ("eps0", 1.5),
        ("eps_steps", 0),
        ("eps_floor", -0.01),
        ("optimism", 2.0),
        ("opinion_prior", float("inf")),
        ("opinion_noise", 0.0),
        ("reward_bound", 0.0),
        ("reward_bound", "much"),
        ("ledger_capacity", 100),
        ("ledger_capacity", 0),
        ("feedback_slots", 0),
        ("kind_variance", {"rank": 0.0}),
        ("rule", "hebbian"),
        ("trace_decay", 1.1),
        ("variance_floor", -0.1),
        ("recovery", -1e-6),
        ("drift", 1.0),
        ("detector", -1.0),
        ("curiosity", float("nan")),
        ("advice", 1.5),
        ("prototypes", -1),
        ("prototypes", 2.0),
        ("prototypes", True),
        ("conjunctions", -1),
        ("conjunction_after", 0),
        ("cases", -1),
        ("regimes", 0),
    ],
)
def test_a_setting_out_of_its_range_is_refused(setting, value):
    with pytest.raises(ValueError, match=rf"`{setting}.*got"):
        cognition.Config(**{setting: value})


def test_the_ends_of_the_ranges_are_accepted():
    for gamma, eps, rate in ((0, 0, 1e-6), (1, 1, 1)):
        cognition.Config(gamma=gamma, eps0=eps, eps_floor=eps, learning_rate=rate, ledger_capacity=1, feedback_slots=1)

    cognition.Config(prototypes=0, conjunctions=0, conjunction_after=1, cases=0, regimes=1, detector=0, drift=0)
    cognition.Config(trace_decay=1, variance_floor=1, recovery=0, curiosity=0, advice=-1)


@pytest.mark.parametrize("switch", ["cut_traces", "common", "average_reward", "encounter", "entity", "gate", "signed"])
def test_a_switch_is_true_or_false(switch):
    with pytest.raises(TypeError, match=f"`{switch}` must be True or False, got 1"):
        cognition.Config(**{switch: 1})


def test_only_rules_with_an_error_bootstrap():
    found = {rule for rule in get_args(cognition.Rule) if cognition.Config(rule=rule).bootstraps}
    assert found == {"kalman", "nlms", "count"}
    assert not cognition.Config(gamma=0.0).bootstraps


def test_parameters_are_those_of_configuration_and_style():
    config = cognition.Config(curiosity=0.1, eps0=0.4, eps_floor=0.02, gamma=0.7)
    params = cognition.params_of(config, cognition.Style(risk=0.5, curiosity=0.2, exploration=3.0))
    assert float(params.curiosity) == pytest.approx(0.3)
    assert float(params.eps0) == 1.0  # never above certainty
    assert (float(params.risk), float(params.gamma)) == pytest.approx((0.5, 0.7))
    assert float(cognition.params_of(config, cognition.Style(exploration=0.0)).eps_floor) == 0.0
    assert float(cognition.params_of(cognition.Config(rule="hebb"), cognition.Style()).gamma) == 0.0


def test_variances_follow_the_kind_of_a_node():
    config = cognition.Config(variance=0.01, kind_variance={"rank": 0.5})
    found = cognition.node_variances(config, ("bias", "rank", "context"))
    assert found == pytest.approx([0.01, 0.005, 0.01])
    usual = cognition.node_variances(
        cognition.Config(variance=0.01, kind_variance={"entity": 2.0}), ("entity", "advice")
    )
    assert usual == pytest.approx([0.02, 0.01 * KIND_VARIANCE["advice"]])
    with pytest.raises(ValueError, match=r"names \['rank'\]; the kinds of nodes here are \['bias'\]"):
        cognition.node_variances(config, ("bias",))


def test_every_preset_is_a_style_of_its_own():
    assert set(cognition.STYLES) == {"balanced", "cautious", "exploratory", "risk_averse", "risk_seeking"}
    assert len(set(cognition.STYLES.values())) == len(cognition.STYLES)
    for name, style in cognition.STYLES.items():
        assert cognition.style_of(name) is style
    assert cognition.style_of({"risk": 0.5}) == cognition.STYLES["risk_averse"]
    assert cognition.style_of(cognition.Style(risk=-1.0)).risk == -1.0


@pytest.mark.parametrize(
    ("style", "message"),
    [
        ("reckless", r"`style` must be one of \['balanced'.*got 'reckless'"),
        ({"risk": -2}, "style `risk` must be a finite number of at least -1, got -2"),
        ({"curiosity": -0.1}, "style `curiosity` must be a finite number of at least 0"),
        ({"caution": float("nan")}, "style `caution` must be"),
        ({"boldness": 1}, r"has the parameters \['risk', .*got \['boldness'\]"),
    ],
)
def test_an_impossible_style_is_refused(style, message):
    with pytest.raises(ValueError, match=message):
        cognition.style_of(style)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"factors": (1.0,)}, "one entry per action, got lengths 4, 1 and 4"),
        ({"columns": (0, 2, 2, 3)}, "must use every column from 0 on"),
        ({"factors": (1.0, 1.0, -0.5, 1.0)}, "`factors` must be positive"),
    ],
)
def test_an_impossible_structure_is_refused(structure, changes, message):
    with pytest.raises(ValueError, match=message):
        structure(**changes)
