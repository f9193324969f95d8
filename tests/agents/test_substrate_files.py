"""Saving and loading: the same agent goes on, and files of other agents are refused."""

import gymnasium
import numpy as np
import pytest
from habitus import cognition
from habitus.agents import Substrate, Transition
from habitus.cognition import persistence


def alive(env, agent, n_steps, observation=None):
    """Drive an agent by hand from where it is; returns its actions and the last observation."""
    actions = []
    if observation is None:
        observation, info = env.reset(seed=11)
        agent.begin(observation, info)
    for _ in range(n_steps):
        action = agent.act(observation)
        following, reward, terminated, truncated, info = env.step(action)
        agent.observe(Transition(observation, action, reward, following, terminated, truncated, info))
        observation = following
        actions.append(action)
    return actions, observation


@pytest.mark.parametrize("rule", ["kalman", "nlms"])
def test_a_loaded_agent_goes_on_as_if_it_had_never_stopped(lanterns, tmp_path, rule):
    settings = {"rule": rule, "eps0": 0.5, "eps_steps": 1e4}  # explores much, so that random choices would differ
    whole_env, env = lanterns(delay=20, horizon=10**6), lanterns(delay=20, horizon=10**6)
    whole = Substrate(whole_env, seed=2, **settings)
    expected, _ = alive(whole_env, whole, 2_400)
    first = Substrate(env, seed=2, **settings)
    before, observation = alive(env, first, 1_300)
    # outcomes are on their way and an action is chosen at this moment; an equal copy of the observation must do
    loaded = Substrate.load(first.save(tmp_path / "agent"), env)
    copied = {name: np.copy(value) for name, value in observation.items()}
    after, _ = alive(env, loaded, 1_100, copied)
    assert before + after == expected
    np.testing.assert_array_equal(loaded.memory.gain, whole.memory.gain)
    np.testing.assert_array_equal(loaded.memory.last_activated, whole.memory.last_activated)
    assert loaded.lost_feedback == whole.lost_feedback == {"overwritten": 0, "unmatched": 0}


def test_learn_goes_on_after_loading(lanterns, tmp_path):
    agent = Substrate(lanterns(horizon=500), seed=1, style="exploratory").learn(500)
    path = agent.save(tmp_path / "agent.zip")
    loaded = Substrate.load(path, lanterns(horizon=500))
    assert loaded.num_timesteps == 500
    assert loaded.style == cognition.STYLES["exploratory"]
    loaded.learn(500, reset_num_timesteps=False)
    assert loaded.num_timesteps == 1_000
    assert loaded.memory.step == 1_000


def test_a_loaded_agent_learns_from_fresh_experience_and_the_same_each_time(lanterns, tmp_path):
    def life(agent, n_steps):
        seen = []
        agent.learn(n_steps, callback=lambda _, t: seen.append((int(t.observation["colour"]), t.action, t.reward)))
        return seen

    agent = Substrate(lanterns(), seed=1)
    first = life(agent, 60)
    path = agent.save(tmp_path / "agent")
    lives = [life(Substrate.load(path, lanterns()), 60) for _ in range(2)]
    assert lives[0] == lives[1]
    assert [colour for colour, _, _ in lives[0]] != [colour for colour, _, _ in first]
    unborn = Substrate(lanterns(), seed=1).save(tmp_path / "unborn")
    assert life(Substrate.load(unborn, lanterns()), 60) == first


def test_learn_after_loading_drops_what_the_unfinished_episode_owed(lanterns, tmp_path):
    agent = Substrate(lanterns(delay=20)).learn(30)
    loaded = Substrate.load(agent.save(tmp_path / "agent"), lanterns(delay=20)).learn(20)
    assert loaded.memory.version == agent.memory.version  # 10 were credited; of the new episode none has come yet
    assert loaded.lost_feedback == {"overwritten": 0, "unmatched": 0}


def test_everything_about_an_agent_is_kept(lanterns, tmp_path):
    env = lanterns()
    settings = {"masked": ["guest"], "rank": "poles", "credit": "stream", "kind_variance": {"rank": 0.5}, "noise": 0.4}
    agent = Substrate(env, seed=3, style={"risk": 0.25}, **settings).learn(60)
    loaded = Substrate.load(agent.save(tmp_path / "a.zip"), env)
    assert loaded.config == agent.config
    assert (loaded.style, loaded.credit, loaded.seed) == (agent.style, "stream", 3)
    assert loaded.memory.labels == agent.memory.labels
    observation, _ = env.reset(seed=0)
    assert loaded.decide(observation) == agent.decide(observation)
    assert loaded.save(tmp_path / "b.zip").read_bytes() == (tmp_path / "a.zip").read_bytes()


def test_a_suffix_is_added_where_there_is_none(lanterns, tmp_path):
    agent = Substrate(lanterns())
    assert agent.save(tmp_path / "agent") == tmp_path / "agent.zip"
    assert agent.save(str(tmp_path / "agent.memory")) == tmp_path / "agent.memory"


def test_the_path_of_save_is_one_of_load(lanterns, tmp_path):
    env = lanterns()
    agent = Substrate(env, seed=4)
    (tmp_path / "plain").write_bytes(agent.save(tmp_path / "noext").read_bytes())
    for name in ("noext", "noext.zip", "plain"):
        assert Substrate.load(tmp_path / name, env).seed == 4
    with pytest.raises(FileNotFoundError):
        Substrate.load(tmp_path / "none", env)


def test_a_folder_is_no_file_to_save_to(lanterns, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"got the folder .*folder; add a file name"):
        Substrate(lanterns()).save(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match=r"the folder .*none does not exist"):
        Substrate(lanterns()).save(tmp_path / "none" / "agent")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("damage", ["flip", "cut", "text"])
def test_a_damaged_file_is_refused(lanterns, tmp_path, damage):
    env = lanterns()
    path = Substrate(env).learn(30).save(tmp_path / "agent.zip")
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    path.write_bytes({"flip": content, "cut": content[:5_000], "text": b"agent"}[damage])
    with pytest.raises(cognition.DamagedFileError, match=rf"{path.name}"):
        Substrate.load(path, env)


def edited(path, change):
    """The file with its header and arrays changed by `change`, and every digest in order."""
    header, arrays = persistence.read(path)
    change(header, arrays)
    persistence.write(path, header, arrays)


def test_a_newer_file_is_refused(lanterns, tmp_path, monkeypatch):
    monkeypatch.setattr(persistence, "SCHEMA", 2)
    path = Substrate(lanterns()).save(tmp_path / "agent.zip")
    monkeypatch.undo()
    with pytest.raises(cognition.NewerFileError, match="schema 2"):
        Substrate.load(path, lanterns())


def test_a_file_of_something_else_is_refused(lanterns, tmp_path):
    path = Substrate(lanterns()).save(tmp_path / "agent.zip")
    edited(path, lambda header, arrays: header.update(format="cookbook"))
    with pytest.raises(cognition.MismatchError, match=r"holds 'cookbook', expected 'habitus.substrate'"):
        Substrate.load(path, lanterns())


@pytest.mark.parametrize(
    "name", ["observation_space", "nodes", "settings", "style", "seed", "choices", "shapes", "reward_scale"]
)
def test_a_header_that_lacks_something_is_damaged(lanterns, tmp_path, name):
    path = Substrate(lanterns()).save(tmp_path / "agent.zip")
    edited(path, lambda header, arrays: header.pop(name))
    with pytest.raises(cognition.DamagedFileError, match=f"lacks '{name}'"):
        Substrate.load(path, lanterns())
    edited(path, lambda header, arrays: header.update({name: None}))
    with pytest.raises(cognition.DamagedFileError, match=f"'{name}' must be of type"):
        Substrate.load(path, lanterns())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays, name: arrays.pop(name), "lacks the array"),
        (lambda arrays, name: arrays.update({name: arrays[name][1:]}), "must be .* of shape"),
        (lambda arrays, name: arrays.update({name: arrays[name].astype(np.float64)}), "got float64"),
    ],
    ids=["missing", "shape", "dtype"],
)
def test_an_array_that_does_not_fit_is_damaged(lanterns, tmp_path, change, message):
    path = Substrate(lanterns()).save(tmp_path / "agent.zip")
    edited(path, lambda header, arrays: change(arrays, next(name for name in arrays if name.startswith("edges."))))
    with pytest.raises(cognition.DamagedFileError, match=message):
        Substrate.load(path, lanterns())


def test_an_environment_with_other_observations_or_actions_is_refused(lanterns, schema, tmp_path):
    path = Substrate(lanterns(), masked=["shade"]).save(tmp_path / "agent.zip")
    with pytest.raises(cognition.MismatchError, match=r"other `observation_space`: it is Dict\(.*has Discrete\(16\)"):
        Substrate.load(path, gymnasium.make("FrozenLake-v1"))
    renamed = lanterns()
    renamed.schema = schema(actions=("pull red", "push green", "pull blue"))
    with pytest.raises(cognition.MismatchError, match=r"`actions`: entry 1 of 3 is 'pull green', .*have 'push green'"):
        Substrate.load(path, renamed)


def test_an_environment_with_other_nodes_is_refused(lanterns, schema, tmp_path):
    path = Substrate(lanterns()).save(tmp_path / "agent.zip")
    other = lanterns()
    fields = schema().fields
    other.schema = schema(fields=(type(fields[0])("colour", labels=("red", "green", "violet")), *fields[1:]))
    with pytest.raises(cognition.MismatchError, match=r"`nodes`: entry 3 of .* 'colour = blue', .* 'colour = violet'"):
        Substrate.load(path, other)


def test_an_agent_that_is_built_differently_is_refused(lanterns, tmp_path):
    path = Substrate(lanterns(), encounter=False).save(tmp_path / "agent.zip")
    edited(path, lambda header, arrays: header["settings"].update(encounter=True))
    with pytest.raises(cognition.MismatchError, match="other `shapes`"):
        Substrate.load(path, lanterns())


def test_an_adviser_is_given_again_and_never_forgotten(lanterns, tmp_path):
    def adviser(observation):
        return int(observation["colour"])

    env = lanterns()
    advised, plain = Substrate(env, adviser=adviser, seed=2).learn(150), Substrate(env).save(tmp_path / "plain")
    path = advised.save(tmp_path / "advised")
    loaded = Substrate.load(path, env, adviser=adviser)
    observation, _ = env.reset(seed=0)
    assert loaded.decide(observation) == advised.decide(observation)
    with pytest.raises(TypeError, match="the agent had one; give it to `load`"):
        Substrate.load(path, env)
    with pytest.raises(TypeError, match="the agent had none; leave it out"):
        Substrate.load(plain, env, adviser=adviser)


def test_a_learnt_scale_of_rewards_is_kept(tmp_path):
    """The first rewards of CliffWalking set a bound, the fall of -100 among them moves it; both lives go on equally."""

    def alive_on(agent, start, n_steps):
        actions, here = [], start
        for t in range(n_steps):
            actions.append(agent.act(here))
            there, reward = (7 * here + t) % 48, -100.0 if t % 40 == 7 else -1.0
            agent.observe(Transition(here, actions[-1], reward, there, False, False, {}))
            here = there
        return actions, here

    env = gymnasium.make("CliffWalking-v1")
    agent = Substrate(env, seed=3)
    agent.begin(36, {})
    _, here = alive_on(agent, 36, 130)
    loaded = Substrate.load(agent.save(tmp_path / "agent"), env)
    again = Substrate.load(agent.save(tmp_path / "again"), env)
    assert loaded._unit.scale == agent._unit.scale
    assert loaded._unit.bound not in (0.0, 1.0)
    for one in (loaded, again):
        assert alive_on(one, here, 60) == alive_on(Substrate.load(tmp_path / "agent.zip", env), here, 60)
    np.testing.assert_array_equal(loaded.memory.gain, again.memory.gain)
    assert alive_on(agent, here, 60) == alive_on(Substrate.load(tmp_path / "agent.zip", env), here, 60)


@pytest.mark.parametrize("settings", [{"regimes": 2}, {"conjunctions": 64, "conjunction_after": 2}, {"cases": 8}])
def test_every_kind_of_knowledge_is_kept(lanterns, tmp_path, settings):
    env = lanterns()
    agent = Substrate(env, **settings).learn(120)
    loaded = Substrate.load(agent.save(tmp_path / "agent"), env)
    assert loaded.memory.labels == agent.memory.labels
    for one, other in zip(agent._buffers, loaded._buffers, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_missing_file_is_missing(lanterns, tmp_path):
    with pytest.raises(FileNotFoundError):
        Substrate.load(tmp_path / "none.zip", lanterns())
