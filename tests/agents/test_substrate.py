"""The substrate as an agent: it learns, explains, keeps its word in `predict`, and uses what a world declares."""

import itertools
import json
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from habitus import cognition
from habitus.agents import Substrate, Transition
from habitus.cognition import stepping
from habitus.envs import contract


def arrays(agent):
    return [np.array(buffer) for buffer in agent._buffers]


def test_it_learns_the_lever_of_the_colour(lanterns, score):
    assert score(Substrate(lanterns(), seed=0), 1_500) > 0.9


@pytest.mark.parametrize("feedback", ["attributed", "stream"])
def test_it_learns_from_outcomes_that_arrive_late(lanterns, score, feedback):
    agent = Substrate(lanterns(delay=20, feedback=feedback), seed=0)
    assert score(agent, 1_500) > 0.9
    assert agent.lost_feedback == {"overwritten": 0, "unmatched": 0}


def test_reward_as_it_arrives_teaches_nothing_when_it_arrives_late(lanterns, score):
    """The negative control: only the outcome's way to its decision differs."""
    assert score(Substrate(lanterns(delay=20, feedback="stream"), seed=0, credit="stream"), 1_500) < 0.5


def test_predict_is_greedy_and_writes_nothing(lanterns):
    agent = Substrate(lanterns(), seed=0).learn(400)
    before, rng = arrays(agent), np.random.default_rng(0)
    batch = {
        "colour": np.arange(3),
        "shade": rng.random((3, 1), np.float32),
        "guest": np.zeros(3, np.int64),
    }
    actions, state = agent.predict(batch)
    assert state is None
    for i in range(3):
        single = {name: values[i] for name, values in batch.items()}
        action, _ = agent.predict(single, deterministic=True)
        assert action.shape == ()
        assert action == actions[i] == agent.decide(single).action
    for a, b in zip(before, arrays(agent), strict=True):
        np.testing.assert_array_equal(a, b)


def test_looking_does_not_change_what_is_done(lanterns):
    def life(looks):
        agent, actions = Substrate(lanterns(), seed=5), []

        def callback(_, transition):
            actions.append(transition.action)
            if looks:
                agent.predict(transition.observation)
                agent.decide(transition.next_observation)
                agent.memory.strongest("pull red")

        agent.learn(300, callback=callback)
        return actions

    assert life(looks=True) == life(looks=False)


def test_a_decision_is_made_of_the_paths_that_it_lists(lanterns):
    env = lanterns()
    agent = Substrate(env, seed=0).learn(1_000)
    observation, _ = env.reset(seed=7)
    decision = agent.decide(observation)
    assert abs(sum(path.contribution for path in decision.evidence) - decision.score) <= 1e-6
    colour = ("red", "green", "blue")[int(observation["colour"])]
    assert decision.choice == f"pull {colour}"
    assert decision.evidence[0].node == f"colour = {colour}"
    assert f"colour = {colour}" in decision.explain()
    edge = agent.memory.edge(f"colour = {colour}", decision.choice)
    assert (edge.gain_exc, edge.loss_exc) == (decision.evidence[0].gain_exc, decision.evidence[0].loss_exc)
    assert decision.reads.step == 1_000


def test_the_memory_lists_every_node_and_decision(lanterns):
    memory = Substrate(lanterns(), seed=0).learn(200).memory
    assert memory.decisions == ("pull red", "pull green", "pull blue", "any action")
    assert memory.labels[0] == "bias"
    assert memory.gain.shape == (len(memory.labels), 4)
    assert memory.uses[0, :3].sum() == memory.uses[0, 3] == 200  # the bias is on every path
    assert {"own last action = none", "own first action = pull blue"} <= set(memory.labels)
    assert memory.step == memory.version == 200
    assert not memory.uses[memory.labels.index("guest = new")].any()  # code 0 of an entity is nobody


def test_the_step_is_compiled_once(lanterns):
    agent = Substrate(lanterns(delay=3), seed=0, feedback_slots=3).learn(50)
    compiled = stepping.stepper(agent._structure).step
    before = compiled._cache_size()
    agent.learn(1_200)  # over the end of an episode
    Substrate(lanterns(delay=3), seed=1, feedback_slots=3, style="risk_averse", eps0=0.5).learn(20)
    assert compiled._cache_size() == before == 1


def test_more_outcomes_at_once_than_slots_are_all_credited(lanterns):
    def life(slots):
        agent = Substrate(lanterns(), seed=0, feedback_slots=slots)
        observation, info = agent.env.reset(seed=0)
        agent.begin(observation, info)
        for t in range(12):
            action = agent.act(observation)
            arrived = [(i, 0.0) for i in range(t)] if t == 11 else []
            told = {"decision_id": t, "feedback": arrived, "boundary": True}
            following = agent.env.step(action)[0]
            agent.observe(Transition(observation, action, 0.3, following, False, False, told))
            observation = following
        return agent.memory

    one, many = life(1), life(16)
    assert one.version == many.version == 11
    np.testing.assert_allclose(one.gain, many.gain, atol=1e-6)


def test_what_others_did_is_learnt_as_what_was_done(lanterns):
    """An agent that watches a policy learns about the policy's actions, not about those that it would have chosen."""
    env, agent = lanterns(), Substrate(lanterns(), seed=0)
    observation, _ = env.reset(seed=0)
    for _ in range(60):
        following, reward, _, _, info = env.step(2)
        agent.observe(Transition(observation, 2, reward, following, False, False, info))
        observation = following
    assert agent.memory.uses.sum(axis=0).tolist()[:2] == [0, 0]
    assert agent.memory.uses[0, 2] == 60


@pytest.fixture
def loans(schema):
    """One transition of a world that declares a stake, a scaled action and a review."""
    declared = schema(
        fields=(contract.Field("sex", labels=("f", "m")), contract.Field("stake", low=0.2, high=3.0)),
        actions=("approve", "reject", "review", "half"),
        entity_field=None,
        stake_field="stake",
        scaled_actions=(contract.ScaledAction("half", "approve", 0.5),),
        review=contract.Review("review", "approve", "verdict", "good", "bad", 0.9, 0.25, 1.0),
        deliberation=("review",),
        reward_bound=2.0,
    )
    env = gymnasium.make("FrozenLake-v1").unwrapped
    env.schema = declared
    env.observation_space = gymnasium.spaces.Dict(
        {"sex": gymnasium.spaces.Discrete(2), "stake": gymnasium.spaces.Box(0.2, 3.0, (1,), np.float32)}
    )
    env.action_space = gymnasium.spaces.Discrete(4)
    here = {"sex": np.int64(1), "stake": np.array([1.5], np.float32)}

    def learnt(action, reward, verdict="none", **settings):
        agent = Substrate(env, optimism=0.0, opinion_prior=0.0, **settings)
        told = {"decision_id": -1, "feedback": [], "boundary": True, "verdict": verdict}
        agent.begin(here, {})
        agent.observe(Transition(here, action, reward, here, False, False, told))
        return agent, here

    return learnt


def test_a_scaled_action_and_its_base_share_what_they_learn(loans):
    full, here = loans(action=0, reward=-0.8)
    half, _ = loans(action=3, reward=-0.4)  # half of it
    np.testing.assert_allclose(full.memory.loss, half.memory.loss, atol=1e-7)
    assert full.memory.loss.max() > 0
    assert full.memory.decisions == ("approve", "reject", "review")
    scores = {option.label: option.score for option in full.decide(here).alternatives}
    assert scores["half"] == pytest.approx(0.5 * scores["approve"])
    apart, _ = loans(action=3, reward=-0.4, share_scaled=False)
    assert apart.memory.decisions == ("approve", "reject", "review", "half")
    assert not apart.memory.loss[:, 0].any()


def test_outcomes_are_learnt_per_unit_of_stake(loans):
    agent, here = loans(action=0, reward=0.6, variance=50.0)
    # the update all but closes the error: the outcome .6 of bound 2 is what is then expected at this stake
    assert agent.decide(here).score == pytest.approx(0.3, abs=0.01)
    twice = {**here, "stake": np.array([3.0], np.float32)}
    assert agent.decide(twice).score > 1.5 * agent.decide(here).score
    flat, _ = loans(action=0, reward=0.6, variance=50.0, use_stake=False)
    assert flat.decide(twice).stake == 1.0


def test_a_verdict_teaches_the_action_that_it_is_about(loans):
    # good: .25 - 1.25 (0 - .1) / .8 = .40625; bad: .25 - 1.25 (1 - .1) / .8 = -1.15625, both over the bound of 2
    for verdict, gain, loss in (("good", 0.203125, 0.0), ("bad", 0.0, 0.578125)):
        agent, here = loans(action=2, reward=-0.1, verdict=verdict, noise=0.01, variance=50.0)
        reading = agent._read(here)
        assert float(reading.evidence.gain[0]) == pytest.approx(1.5 * gain, rel=0.01)
        assert float(reading.evidence.loss[0]) == pytest.approx(1.5 * loss, rel=0.01)
    for silent in (loans(2, -0.1, "none"), loans(2, -0.1, "bad", use_review=False)):
        assert not silent[0].memory.loss[:, 0].any()


def test_priors_are_ordinary_evidence(loans):
    agent, here = loans(action=1, reward=0.0)
    env = agent.env
    hopeful = Substrate(env, optimism=0.1, opinion_prior=0.4)
    gain = hopeful.memory.gain
    # .4 of the review's gain of .25, over the bound of 2; optimism on the two paths beside the bias: sex and 1 / stake
    np.testing.assert_allclose(gain[0], [0.0, 0.0, 0.05], atol=1e-7)
    np.testing.assert_allclose(gain[1:], 0.05, atol=1e-7)
    assert hopeful.decide(here).choice == "review"


def test_a_world_with_economics_has_its_own_defaults(loans, lanterns):
    agent, _ = loans(action=0, reward=0.0)
    assert agent.config.reward_bound == 2.0
    assert agent.config.noise == pytest.approx(0.25 * 1.0 / 2.0**2)  # gain x loss, in units of the bound
    assert agent.config.variance == pytest.approx(0.025 * 0.2 * 0.8 * 0.0625)  # break-even at .25 / 1.25
    assert not agent.config.encounter
    assert Substrate(lanterns()).config == cognition.Config(reward_bound=1.0)


def test_caution_prefers_deliberation_and_risk_aversion_avoids_loss(loans):
    agent, here = loans(action=0, reward=-0.3)
    careful = Substrate(agent.env, style="cautious", optimism=0.0, opinion_prior=0.0)
    assert careful.decide(here).choice == "review"
    assert careful.decide(here).bonus > 0

    def score(risk):
        shy = Substrate(agent.env, style={"risk": risk}, optimism=0.0, opinion_prior=0.0)
        shy.begin(here, {})
        told = {"decision_id": -1, "boundary": True, "verdict": "none"}
        shy.observe(Transition(here, 0, -0.3, here, False, False, told))
        return float(shy._read(here).evidence.score[0])

    scores = [score(risk) for risk in (-0.5, 0.0, 0.5, 1.0)]
    assert all(b < a for a, b in itertools.pairwise(scores))


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (gymnasium.spaces.Box(-1, 1, (2,)), "`env.action_space` must be Discrete and start at 0, or .*, got Box"),
        (gymnasium.spaces.MultiDiscrete([[2, 3]]), r"or MultiDiscrete of one axis, got MultiDiscrete\(\[\[2 3\]\]\)"),
        (gymnasium.spaces.Discrete(3, start=1), r"must be Discrete and start at 0, .*, got Discrete\(3, start=1\)"),
    ],
)
def test_an_action_space_that_it_cannot_use_is_refused(lanterns, space, message):
    env = lanterns()
    env.action_space = space
    with pytest.raises(TypeError, match=message):
        Substrate(env)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"varience": 1}, TypeError, "'varience' is not a setting of the substrate; did you mean 'variance'?"),
        ({"gamma": 2}, ValueError, r"`gamma` must be a finite number in \[0, 1\], got 2"),
        ({"style": "bold"}, ValueError, "`style` must be one of"),
        ({"credit": "later"}, ValueError, "`credit` must be one of"),
        ({"rule": "hebbian"}, ValueError, "`rule` must be one of"),
        ({"adviser": 3}, TypeError, "`adviser` must be a function of an observation, got 3"),
        ({"use_mask": 1}, TypeError, "`use_mask` must be True or False, got 1"),
        ({"masked": ["age"]}, ValueError, "`masked` must name observed fields"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(lanterns, settings, error, message):
    with pytest.raises(error, match=message):
        Substrate(lanterns(), **settings)


def test_a_reward_beyond_the_bound_is_said_once_where_nothing_declares_it(lanterns):
    env = gymnasium.make("CliffWalking-v1")
    far = Transition(0, 1, -100.0, 0, False, False, {})
    agent = Substrate(env, reward_bound=1.0)
    with pytest.warns(UserWarning, match=r"reward -100 exceeds `reward_bound` = 1; .* Set `reward_bound`") as caught:
        agent.observe(far)
    assert len(caught) == 1
    agent.observe(far)  # a warning would be an error from here on
    Substrate(env, reward_bound=100).observe(far)
    Substrate(env).observe(far)  # its scale is learnt
    declared, start = Substrate(lanterns()), lanterns().reset(seed=0)[0]
    declared.observe(Transition(start, 1, -100.0, start, False, False, {}))


def test_a_masked_field_is_no_part_of_the_memory(lanterns):
    agent = Substrate(lanterns(), masked=["guest"])
    assert not [label for label in agent.memory.labels if label.startswith("guest")]


LIFE = """
import hashlib, gymnasium, json, sys, tempfile
from habitus.agents import Substrate
agent = Substrate(gymnasium.make("FrozenLake-v1"), seed=int(sys.argv[1]))
actions = []
agent.learn(1500, callback=lambda _, t: actions.append(t.action))
with tempfile.TemporaryDirectory() as folder:
    file = agent.save(f"{folder}/agent.zip").read_bytes()
print(json.dumps([actions, hashlib.sha256(file).hexdigest()]))
"""


def test_a_seed_gives_the_same_life_and_the_same_file_in_a_new_process():
    def life(seed):
        done = subprocess.run([sys.executable, "-c", LIFE, str(seed)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    first = life(3)
    assert life(3) == first
    assert life(4)[0] != first[0]


def test_an_advisers_word_counts_from_the_first_step_on_and_is_part_of_the_evidence(lanterns):
    env = lanterns()
    observation, _ = env.reset(seed=1)
    for advised in range(3):
        agent = Substrate(env, adviser=lambda _, advised=advised: advised)
        decision = agent.decide(observation)
        assert decision.action == advised
        (only,) = [path for path in decision.evidence if path.contribution != 0]
        assert only.node == f"adviser says {env.schema.actions[advised]}"
        assert only.contribution == pytest.approx(agent.config.advice)


def test_an_adviser_that_is_always_wrong_is_found_out(lanterns, score):
    assert score(Substrate(lanterns(), adviser=lambda seen: (int(seen["colour"]) + 1) % 3), 1_500) > 0.9


def test_impossible_actions_are_left_alone_unless_the_mask_is_ignored(lanterns):
    def chosen(**settings):
        env = lanterns()
        agent, actions = Substrate(env, eps0=1.0, eps_floor=1.0, **settings), set()
        observation, info = env.reset(seed=0)
        told = {**info, "boundary": True, "action_mask": np.array([1, 0, 1], np.int8)}
        agent.begin(observation, told)
        for _ in range(60):
            actions.add(agent.act(observation))
            agent.observe(Transition(observation, 0, 0.0, observation, False, False, told))
        return actions

    assert chosen() == {0, 2}
    assert chosen(use_mask=False) == {0, 1, 2}


def test_two_agents_do_not_share_a_memory(lanterns):
    first, second = Substrate(lanterns(), seed=0), Substrate(lanterns(), seed=0)
    first.learn(50)
    assert not second.memory.uses.any()
    assert cognition.STYLES["balanced"] == first.style


def test_entities_can_be_without_edges_of_their_own():
    env = gymnasium.make("habitus/CreditReview-v0", horizon=100)
    agent = Substrate(env, seed=0, entity=False).learn(60)
    memory = agent.memory
    of_entities = np.array([kind == "entity" for kind in memory.kinds])
    assert memory.uses[of_entities].sum() == 0
    assert memory.uses[~of_entities].sum() > 0
    observation, _ = env.reset(seed=1)
    assert not any("applicant" in path.node for path in agent.decide(observation).evidence)


def test_the_exploration_rate_is_that_of_the_learner():
    agent = Substrate(gymnasium.make("habitus/GameNPC-v0", horizon=1000), seed=0, style="exploratory")
    for n in (1, 98, 1, 1, 57):
        agent.learn(n, reset_num_timesteps=False)
        since = agent._state().rewards.since
        expected = cognition.evidence.exploration_rate(since, cognition.params_of(agent.config, agent.style))
        assert agent.exploration_rate == pytest.approx(float(expected), rel=1e-6)
