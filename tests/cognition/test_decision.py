"""A decision is its evidence, and says so in words."""

import dataclasses
import json
import math

import numpy as np
import pytest
from habitus import cognition
from habitus.cognition import stepping
from habitus.cognition.edges import rows

ACTIONS = ("approve", "approve half", "approve a quarter", "review")
QUIET = np.array([2**32 - 1, 0], np.uint32)
FACTOR = {0: 1.0, 1: 1.0, 2: 0.5, 3: 1.0}


def labels_of(shape):
    return ("bias", *(f"fact {k}" for k in range(1, shape.n_nodes)))


def read(buffers, vector, shape, seen):
    """What the memory says about a situation."""
    given = dict(entity=int(seen.entity), advice=int(seen.advice), mask=np.asarray(seen.mask))
    row = stepping.situation_row(QUIET, seen.nodes, seen.activation, float(seen.stake), **given)
    return stepping.stepper(shape).read(buffers, vector, row)


@pytest.fixture
def decided(kept_life, situation):
    """Decisions of a learner that has lived a while, with what they were made of."""

    def make(n=1, seed=0, **style):
        (state, shape), rng, style = kept_life, np.random.default_rng(seed), cognition.Style(**style)
        buffers = stepping.pack(state)
        vector = stepping.pack_params(cognition.params_of(cognition.Config(curiosity=0.0), style))
        made = []
        for _ in range(n):
            seen = situation(shape, rng)
            reading = read(buffers, vector, shape, seen)
            arguments = dict(structure=shape, style=style, labels=labels_of(shape), actions=ACTIONS, mask=seen.mask)
            made.append((cognition.decide(reading, **arguments), reading, seen))
        return made

    return make


def hand_made(score, loss, deviation, net, stake=1.0):
    """A reading of one node, the bias, and the structure that it is of."""
    n = len(score)
    shape = cognition.Structure(1, 1, tuple(range(n)), (1.0,) * n, (False,) * n, ledger_capacity=1)
    arrays = [np.array(x, np.float32) for x in (score, loss, score, deviation, score)]
    paths = cognition.Paths(np.zeros(1, np.int32), np.ones(1, np.float32), np.float32(stake))
    variance, uses = np.full((1, n), 0.01), np.zeros((1, n))
    evidence, strengths = cognition.Evidence(*arrays), np.array([net], np.float32)
    return stepping.Reading(evidence, paths, strengths, variance, uses, 3, 2), shape


@pytest.mark.parametrize("style", [{}, {"risk": 0.7}, {"curiosity": 0.3, "caution": 0.1}])
def test_contributions_sum_to_the_score_that_decided(decided, style):
    for decision, reading, seen in decided(100, **style):
        assert abs(math.fsum(path.contribution for path in decision.evidence) - decision.score) <= 1e-6
        urge = np.where(seen.mask, reading.evidence.urge, -np.inf)
        assert decision.action == int(urge.argmax())
        assert decision.choice == ACTIONS[decision.action]
        assert abs(decision.score - float(reading.evidence.score[decision.action])) <= 4e-6
        assert abs(decision.score + decision.bonus - float(urge.max())) <= 1e-5
        scores = {option.action: option.score for option in decision.alternatives}
        for action, score in scores.items():
            assert abs(score - float(reading.evidence.score[action])) <= 1e-5


def test_a_contribution_is_its_strengths_times_its_activation(decided):
    for decision, reading, seen in decided(50, risk=0.4):
        factor, on = FACTOR[decision.action], np.asarray(reading.paths.activation)
        # every path that is on, and for coded positions the edge to any action besides
        assert len(decision.evidence) == np.count_nonzero(on) + np.count_nonzero(on[[0, 1, 2, 4, 5]])
        assert {path.decision for path in decision.evidence} == {decision.choice, "any action"}
        for path in decision.evidence:
            for strength in (path.gain_exc, path.gain_inh, path.loss_exc, path.loss_inh):
                assert 0.0 <= strength <= 1.0
            assert path.gain_exc * path.gain_inh == 0.0 == path.loss_exc * path.loss_inh
            value = path.gain_exc - path.gain_inh - 1.4 * (path.loss_exc - path.loss_inh)
            assert path.contribution == pytest.approx(float(seen.stake) * factor * path.activation * value, abs=1e-9)


def test_shares_are_of_one_whole_and_the_choice_has_the_largest(decided):
    for decision, _, _ in decided(60, curiosity=0.2):
        shares = [option.share for option in decision.alternatives]
        assert sum(shares) + decision.share == pytest.approx(1.0)
        assert decision.share >= max(shares, default=0.0)
        assert min(shares, default=0.0) >= 0.0
        assert sorted(shares, reverse=True) == shares
        assert all(option.share >= 0.15 for option in decision.hedges)


def test_the_share_of_two_is_the_probability_that_the_choice_is_better():
    # equal deviations .1, scores .05 apart: Phi(.05 / (.1 sqrt 2)) = Phi(.35355) = .6382; the softmax is within .01
    reading, shape = hand_made([0.3, 0.25], [0, 0], [0.1, 0.1], [0.3, 0.25, 0.0, 0.0])
    arguments = dict(structure=shape, style=cognition.Style(), labels=["bias"], actions=["a", "b"])
    decision = cognition.decide(reading, **arguments)
    assert decision.share == pytest.approx(0.6382, abs=0.01)


def test_an_action_with_certain_evidence_of_loss_is_avoided_and_an_unknown_one_is_not():
    reading, shape = hand_made([0.1, -0.2, 0.0], [0, 0.2, 0], [0.1, 0.1, 0.5], [0.1, 0.0, 0.0, 0.0, 0.2, 0.0])
    arguments = dict(structure=shape, style=cognition.Style(), labels=["bias"], actions=["good", "bad", "unknown"])
    decision = cognition.decide(reading, **arguments)
    assert [one.label for one in decision.avoid] == ["bad"]
    assert decision.avoid[0].confidence == pytest.approx(0.97725, abs=1e-4)  # Phi(2)
    assert decision.avoid[0].expected_loss == pytest.approx(0.2)
    assert decision.reads == cognition.Reads(3, 2)


def test_an_impossible_action_is_neither_chosen_nor_an_alternative(decided):
    for decision, _, seen in decided(40, seed=2):
        possible = np.flatnonzero(seen.mask).tolist()
        assert sorted([decision.action, *(o.action for o in decision.alternatives)]) == possible
        assert all(one.action in possible for one in decision.avoid)


def test_another_action_can_be_explained_instead(decided, kept_life):
    (_, shape), ((decision, reading, seen), *_) = kept_life, decided(1)
    other = decision.alternatives[0]
    arguments = dict(structure=shape, style=cognition.Style(), labels=labels_of(shape), actions=ACTIONS, mask=seen.mask)
    explained = cognition.decide(reading, **arguments, action=other.action)
    assert (explained.choice, explained.score) == (other.label, other.score)
    assert decision.action in [option.action for option in explained.alternatives]


RULES = [
    dict(rule="nlms"),
    dict(rule="count", conjunctions=5, conjunction_after=1, cases=3),
    dict(rule="beta"),
    dict(rule="beta", common=(0, 1)),
    dict(rule="hebb", gate=False),
    dict(rule="hebb_advantage", advice=False),
    dict(rule="kalman", conjunctions=5, conjunction_after=1, cases=3, gate=False),
    dict(rule="kalman", prototypes=0, crossed=(), crossed_nodes=(), behaviours=(), encounter=False, common=(0, 1)),
]


@pytest.mark.parametrize("changes", RULES)
def test_under_every_rule_and_structure_a_score_is_its_contributions_and_loses_what_a_path_adds(
    changes, structure, situation, randomised, compiled
):
    """Removing a path that is on changes the score by exactly its contribution, but for means (beta)."""
    paired = (1, 2) if changes.get("encounter") is False else (1, 2, 4, 5)
    common = () if changes["rule"] in ("beta", "hebb", "hebb_advantage") else (0, 1, 2)
    shape = structure(**{"common": common, "paired": paired, **changes})
    rng, style = np.random.default_rng(7), cognition.Style(risk=0.3)
    edges = cognition.initial_edges(shape, np.ones(shape.n_nodes, np.float32))
    state = randomised(cognition.initial_state(edges, shape), rng)
    params = cognition.params_of(cognition.Config(), style)
    for _ in range(4):
        on = rng.choice([0.0, 1.0, 0.5], shape.n_paths).astype(np.float32)
        nodes = rng.choice(shape.n_nodes, shape.n_paths, replace=False).astype(np.int32)
        paths = cognition.Paths(nodes, on, np.float32(rng.uniform(0.2, 3)))

        def reading(paths):
            net, variance = rows(state.edges, paths, shape)
            uses = np.zeros((shape.n_paths, shape.n_columns), int)
            evidence = compiled.evaluate(state.edges, paths, shape, params)
            return stepping.Reading(evidence, paths, net, variance, uses, 0, 0)

        whole = reading(paths)
        arguments = dict(structure=shape, style=style, labels=[str(k) for k in range(shape.n_nodes)], actions=ACTIONS)
        decision = cognition.decide(whole, **arguments)
        assert abs(math.fsum(path.contribution for path in decision.evidence) - decision.score) <= 1e-6
        for action in range(shape.n_actions):
            score = cognition.decide(whole, **arguments, action=action).score
            assert abs(score - float(whole.evidence.score[action])) <= 5e-6
        if shape.rule == "beta":
            continue
        for i in np.flatnonzero(on)[:5]:
            without = on.copy()
            without[i] = 0.0
            rest = reading(paths._replace(activation=without)).evidence.score[decision.action]
            added = math.fsum(path.contribution for path in decision.evidence if path.node == str(nodes[i]))
            assert abs(decision.score - float(rest) - added) <= 5e-6


def test_the_text_names_the_decision_its_reasons_and_what_spoke_against_it(decided):
    for decision, _, _ in decided(40, seed=3):
        text = decision.explain(n=100)
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
    assert text.count("seen") == 1
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
    assert {path.decision for path in decision.rival} == {strongest.label, "any action"}
    assert math.fsum(path.contribution for path in decision.rival) == pytest.approx(strongest.score, abs=1e-9)
    silent = tuple(dataclasses.replace(path, contribution=0.0) for path in decision.evidence)
    text = dataclasses.replace(decision, evidence=silent, score=0.0).explain(n=2)
    assert f"What it was chosen over, {strongest.label} ({strongest.score:+.4f}):" in text
    assert text.count("seen") == 2
    assert "chosen over" not in decision.explain()
