"""What an agent is built with: what is taken, and in which words the rest is refused."""

import numpy as np
import pytest
from habitus.agents import LinUCB, RandomAgent, Substrate, TabularQ
from habitus.agents.deep import DeepAgent
from habitus.agents.features import FeatureEncoder

LEARNERS = [Substrate, LinUCB, TabularQ]


@pytest.mark.parametrize("kind", [*LEARNERS, RandomAgent, DeepAgent])
def test_a_seed_is_a_whole_number_of_any_library(lanterns, kind):
    agent = kind(lanterns(), seed=np.int64(3))
    assert type(agent.seed) is int
    for seed in (None, 1.0, True, "1"):
        with pytest.raises(TypeError, match=f"`seed` must be a whole number of at least 0, got {seed!r}"):
            kind(lanterns(), seed=seed)
    with pytest.raises(ValueError, match="`seed` must be at least 0, got -1"):
        kind(lanterns(), seed=-1)


def test_a_seed_of_numpy_acts_like_the_number_and_can_be_saved(lanterns, tmp_path):
    def life(seed):
        actions = []
        agent = Substrate(lanterns(), seed=seed)
        agent.learn(50, callback=lambda _, t: actions.append(t.action))
        return actions, agent.save(tmp_path / "agent").read_bytes()

    assert life(np.int32(5)) == life(5)


@pytest.mark.parametrize("kind", [RandomAgent, DeepAgent])
def test_steps_are_a_whole_number(lanterns, kind):
    for steps in (None, 2.0, True, "2"):
        with pytest.raises(TypeError, match=f"`total_timesteps` must be a whole number of at least 1, got {steps!r}"):
            kind(lanterns()).learn(steps)
    assert kind(lanterns()).learn(np.int64(2)).num_timesteps == 2


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, name) for kind in (Substrate, LinUCB) for name in ("use_stake", "share_scaled", "use_review")),
        (TabularQ, "use_stake"),
        (TabularQ, "entity"),
    ],
)
@pytest.mark.parametrize("value", ["no", 0, None])
def test_a_switch_is_true_or_false(lanterns, kind, name, value):
    with pytest.raises(TypeError, match=f"`{name}` must be True or False, got {value!r}"):
        kind(lanterns(), **{name: value})


@pytest.mark.parametrize("kind", [Substrate, LinUCB])
def test_masked_is_a_sequence_of_names(lanterns, kind):
    with pytest.raises(TypeError, match=r"`masked` must be .*, got the string 'guest'; write \['guest'\]"):
        kind(lanterns(), masked="guest")
    for masked in (None, [1], 3):
        with pytest.raises(TypeError, match="`masked` must be a sequence of names, got "):
            kind(lanterns(), masked=masked)


@pytest.mark.parametrize("rank", ["sign", None, 1])
def test_an_unknown_rank_is_refused(lanterns, rank):
    for build in (Substrate, LinUCB, lambda env, rank: FeatureEncoder(env.observation_space, rank=rank)):
        with pytest.raises(ValueError, match=r"`rank` must be one of \['signed', 'poles', 'none'\]"):
            build(lanterns(), rank=rank)


@pytest.mark.parametrize("style", [None, 3, ["cautious"]])
def test_a_style_that_is_none_is_refused(lanterns, style):
    with pytest.raises(TypeError, match=r"`style` must be one of .*, a mapping or a Style, got"):
        Substrate(lanterns(), style=style)
