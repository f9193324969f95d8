"""A decision is its evidence, and says so in words."""

import dataclasses
import json
import math

import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import stepping

LABELS = ("bias", *(f"fact {k}" for k in range(1, 12)))
ACTIONS = ("approve", "approve half", "approve a quarter", "review")


@pytest.fixture
def decided(structure, experiences, paths, begun):
    """Decisions of a learner that has lived a while, with what they were made of."""

    def make(n=1, seed=0, **style):
        shape, config = structure(), cognition.Config(variance=0.05)
        rng, style = np.random.default_rng(seed), cognition.Style(**style)
        params = cognition.params_of(config, style)
        state, kernel = begun(shape, config, paths(shape, rng)), stepping.stepper(shape)
        buffers, vector = stepping.pack(state), stepping.pack_params(params)
        quiet = np.zeros(2, np.uint32)
        for e in experiences(shape, 150, seed=seed):
            row = stepping.paths_row(quiet, e.next_paths.nodes, e.next_paths.activation, float(e.next_paths.stake))
            told = dict(action=int(e.action), reward=float(e.reward), is_boundary=True)
            buffers, _ = kernel.step(buffers, vector, stepping.experience_row(shape, row, **told))
        made = []
        for _ in range(n):
            seen = paths(shape, rng)
            index, activation, stake = seen.nodes, seen.activation, float(seen.stake)
            reading = kernel.read(buffers, vector, stepping.paths_row(quiet, index, activation, stake))
            arguments = dict(structure=shape, style=style, labels=LABELS, actions=ACTIONS)
            made.append((cognition.decide(reading, index, activation, stake, **arguments), reading, seen))
        return made

    return make


@pytest.mark.parametrize("style", [{}, {"risk": 0.7}, {"curiosity": 0.3, "caution": 0.1}])
def test_contributions_sum_to_the_score_that_decided(decided, style):
    for decision, reading, _ in decided(200, **style):
        assert abs(math.fsum(path.contribution for path in decision.evidence) - decision.score) <= 1e-6
        urge = np.asarray(reading.evidence.urge)
        assert decision.action == int(urge.argmax())
        assert decision.choice == ACTIONS[decision.action]
        assert abs(decision.score - float(reading.evidence.score[decision.action])) <= 1e-6 * decision.stake * 3
        assert abs(decision.score + decision.bonus - float(urge.max())) <= 1e-5
        scores = {option.action: option.score for option in decision.alternatives}
        for action, score in scores.items():
            assert abs(score - float(reading.evidence.score[action])) <= 1e-5


def test_a_contribution_is_its_strengths_times_its_activation(decided):
    for decision, _, seen in decided(50, risk=0.4):
        factor = {0: 1.0, 1: 1.0, 2: 0.5, 3: 1.0}[decision.action]
        assert len(decision.evidence) == np.count_nonzero(seen.activation)
        for path in decision.evidence:
            for strength in (path.gain_exc, path.gain_inh, path.loss_exc, path.loss_inh):
                assert 0.0 <= strength <= 1.0
            assert path.gain_exc * path.gain_inh == 0.0 == path.loss_exc * path.loss_inh
            value = path.gain_exc - path.gain_inh - 1.4 * (path.loss_exc - path.loss_inh)
            assert path.contribution == pytest.approx(float(seen.stake) * factor * path.activation * value, abs=1e-9)


def test_shares_are_of_one_whole_and_the_choice_has_the_largest(decided):
    for decision, _, _ in decided(100, curiosity=0.2):
        shares = [option.share for option in decision.alternatives]
        assert sum(shares) + decision.share == pytest.approx(1.0)
        assert decision.share >= max(shares)
        assert min(shares) >= 0.0
        assert sorted(shares, reverse=True) == shares
        assert all(option.share >= 0.15 for option in decision.hedges)


def test_the_share_of_two_is_the_probability_that_the_choice_is_better():
    # equal deviations .1, scores .05 apart: Phi(.05 / (.1 sqrt 2)) = Phi(.35355) = .6382; the softmax is within .01
    shape = cognition.Structure(1, 1, (0, 1), (1.0, 1.0), (False, False), ledger_capacity=1)
    evidence = cognition.Evidence(
        *(np.array(x, np.float32) for x in ([0.3, 0.25], [0, 0], [0.3, 0.25], [0.1, 0.1])), None
    )
    evidence = evidence._replace(urge=evidence.score)
    net = np.array([[0.3, 0.25, 0.0, 0.0]], np.float32)
    reading = stepping.Reading(evidence, net, np.full((1, 2), 0.01), np.zeros((1, 2)), 0, 0)
    arguments = dict(structure=shape, style=cognition.Style(), labels=["bias"], actions=["a", "b"])
    decision = cognition.decide(reading, np.zeros(1, np.int32), np.ones(1, np.float32), 1.0, **arguments)
    assert decision.share == pytest.approx(0.6382, abs=0.01)


def test_an_action_with_certain_evidence_of_loss_is_avoided_and_an_unknown_one_is_not():
    shape = cognition.Structure(1, 1, (0, 1, 2), (1.0,) * 3, (False,) * 3, ledger_capacity=1)
    score = np.array([0.1, -0.2, 0.0], np.float32)
    evidence = cognition.Evidence(
        np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.2, 0.0]), score, np.array([0.1, 0.1, 0.5]), score
    )
    net = np.array([[0.1, 0.0, 0.0, 0.0, 0.2, 0.0]], np.float32)
    reading = stepping.Reading(evidence, net, np.full((1, 3), 0.01), np.zeros((1, 3)), 3, 2)
    arguments = dict(structure=shape, style=cognition.Style(), labels=["bias"], actions=["good", "bad", "unknown"])
    decision = cognition.decide(reading, np.zeros(1, np.int32), np.ones(1, np.float32), 1.0, **arguments)
    assert [one.label for one in decision.avoid] == ["bad"]
    assert decision.avoid[0].confidence == pytest.approx(0.97725, abs=1e-4)  # Phi(2)
    assert decision.avoid[0].expected_loss == pytest.approx(0.2)
    assert decision.reads == cognition.Reads(3, 2)


def test_the_text_names_the_decision_its_reasons_and_what_spoke_against_it(decided):
    for decision, _, _ in decided(40, seed=3):
        text = decision.explain()
        assert text.startswith(f"{decision.choice}: score {decision.score:+.4f}")
        for path in decision.evidence:
            if path.contribution != 0:
                assert path.node in text
        assert ("Against it:" in text) == bool(decision.against)
        assert f"Sum: {decision.score:+.4f} = score" in text
        for option in decision.alternatives:
            assert option.label in text
    assert any(decision.against for decision, _, _ in decided(40, seed=3))


def test_a_short_text_sums_up_the_rest(decided):
    decision = max((d for d, _, _ in decided(40, seed=3)), key=lambda d: len(d.evidence))
    strongest = max(decision.evidence, key=lambda path: abs(path.contribution))
    rest = decision.score - strongest.contribution
    text = decision.explain(n=1)
    assert strongest.node in text
    assert f"Other considerations: {rest:+.4f} ({len(decision.evidence) - 1} more paths)" in text
    assert sum(path.node in text for path in decision.evidence) == 1
    with pytest.raises(ValueError, match="`n` must be at least 0, got -1"):
        decision.explain(n=-1)


def test_a_decision_is_plain_json(decided):
    decision, _, _ = decided(1)[0]
    plain = json.loads(json.dumps(decision.to_dict(), allow_nan=False))
    assert plain["choice"] == decision.choice
    assert math.fsum(path["contribution"] for path in plain["evidence"]) == pytest.approx(decision.score, abs=1e-9)
    assert [path["node"] for path in plain["against"]] == [path.node for path in decision.against]
    assert [option["label"] for option in plain["hedges"]] == [option.label for option in decision.hedges]


def test_a_choice_without_evidence_says_what_it_was_chosen_over(decided):
    (decision, _, _), *_ = decided(1)
    strongest = max(decision.alternatives, key=lambda option: abs(option.score))
    assert {path.decision for path in decision.rival} == {strongest.label}
    assert math.fsum(path.contribution for path in decision.rival) == pytest.approx(strongest.score, abs=1e-9)
    silent = tuple(dataclasses.replace(path, contribution=0.0) for path in decision.evidence)
    text = dataclasses.replace(decision, evidence=silent, score=0.0).explain(n=2)
    assert f"What it was chosen over, {strongest.label} ({strongest.score:+.4f}):" in text
    assert text.count("seen") == 2
    assert "chosen over" not in decision.explain()
