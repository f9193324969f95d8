"""Nodes that an observation switches on: by hand, for every supported space, and what is refused."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from habitus.agents.features import FeatureEncoder
from habitus.envs import contract

FIELDS = (
    contract.Field("home", labels=("owner", "rent", "missing")),
    contract.Field("income", low=0.0, high=100.0, edges=(10.0, 20.0, 60.0), status="income_status"),
    contract.Field("income_status", labels=contract.STATUS_LABELS),
    contract.Field("who", labels=("new", "ada")),
    contract.Field("amount", low=0.2, high=3.0),
)
SPACE = gymnasium.spaces.Dict(
    {
        "home": gymnasium.spaces.Discrete(3),
        "income": gymnasium.spaces.Box(0.0, 100.0, (1,), np.float32),
        "income_status": gymnasium.spaces.Discrete(3),
        "who": gymnasium.spaces.Discrete(2),
        "amount": gymnasium.spaces.Box(0.2, 3.0, (1,), np.float32),
    }
)


@pytest.fixture
def encoder(schema):
    return FeatureEncoder(SPACE, schema(fields=FIELDS, entity_field="who", stake_field="amount"))


def case(home=0, income=15.0, status=0, who=0, amount=2.0):
    return {
        "home": np.int64(home),
        "income": np.array([income], np.float32),
        "income_status": np.int64(status),
        "who": np.int64(who),
        "amount": np.array([amount], np.float32),
    }


def active(encoder, observation):
    features = encoder.encode(observation)
    assert len(features.nodes) == encoder.n_active
    return {
        encoder.labels[i]: round(float(x), 6)
        for i, x in zip(features.nodes, features.activation, strict=True)
        if x != 0
    }


def test_nodes_by_hand(encoder):
    # 15 lies halfway in the second of four bins: rank (1 + .5) / 4, signed 2 * .375 - 1
    assert active(encoder, case()) == {
        "bias": 1, "home = owner": 1, "10 <= income < 20": 1, "income: rank": -0.25, "1 / stake": 0.5,
    }  # fmt: skip
    assert active(encoder, case(home=1, income=100.0, who=1)) == {
        "bias": 1, "home = rent": 1, "income >= 60": 1, "income: rank": 1, "who = ada": 1, "1 / stake": 0.5,
    }  # fmt: skip


@pytest.mark.parametrize(("status", "label"), [(1, "missing"), (2, "hidden")])
def test_an_unknown_number_switches_on_its_status_and_nothing_else(encoder, status, label):
    names = active(encoder, case(status=status))
    assert names == {"bias": 1, "home = owner": 1, f"income_status = {label}": 1, "1 / stake": 0.5}
    assert active(encoder, case(status=status, income=90.0)) == names  # the number shown carries no information


def test_kinds_cells_and_stake(encoder):
    kinds = dict(zip(encoder.labels, encoder.kinds, strict=True))
    assert [kinds[name] for name in ("bias", "home = rent", "income: rank", "who = new", "1 / stake")] == [
        "bias", "context", "rank", "entity", "inverse_stake"
    ]  # fmt: skip
    assert encoder.cells == {"home": 3, "income": 4, "income_status": 3, "who": 2}
    assert encoder.encode(case(amount=0.5)).stake == 0.5
    assert [encoder.entity(case(who=who)) for who in (0, 1)] == [0, 1]
    assert len(set(encoder.labels)) == encoder.n_nodes == len(encoder.kinds)


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        ("signed", {"income: rank": -0.25}),
        ("poles", {"income: low": 0.25}),
        ("none", {}),
    ],
)
def test_forms_of_rank(schema, rank, expected):
    encoder = FeatureEncoder(SPACE, schema(fields=FIELDS), rank=rank)
    found = {name: x for name, x in active(encoder, case()).items() if name.startswith("income:")}
    assert found == expected


def test_the_rank_rises_with_the_number_and_meets_at_the_edges(encoder):
    ranks = [active(encoder, case(income=x)).get("income: rank", 0.0) for x in np.linspace(0, 100, 401)]
    assert ranks[0] == -1
    assert ranks[-1] == 1
    steps = np.diff(ranks)
    assert (steps > 0).all()
    assert steps.max() <= 2 * 0.25 / 4 / 10 + 1e-5  # the steepest bin is 10 wide, and there are no jumps


def test_dense_carries_the_same_with_the_stake_itself(encoder):
    observation = case(home=2, who=1, amount=3.0)
    features, dense = encoder.encode(observation), encoder.dense(observation)
    expected = np.zeros(encoder.n_nodes, np.float32)
    expected[features.nodes] = features.activation
    expected[-1] = 3.0
    np.testing.assert_array_equal(dense, expected[1:])
    assert encoder.dense_space().contains(dense)


def test_masking_a_number_masks_its_status(schema):
    encoder = FeatureEncoder(SPACE, schema(fields=FIELDS), masked=["income", "who"])
    assert not any(name.startswith(("income", "who")) for name in encoder.labels)
    assert encoder.entity(case(who=1)) == 0
    assert active(encoder, case(income=1.0, who=1)) == active(encoder, case(income=99.0, status=2))


@pytest.mark.parametrize(
    ("space", "n_nodes", "n_active"),
    [
        (spaces.Discrete(4), 1 + 4, 2),
        (spaces.Discrete(4, start=-1), 1 + 4, 2),
        (spaces.MultiDiscrete([2, 3]), 1 + 5 + 2 * 3, 1 + 2 + 1),  # values and their combinations
        (spaces.MultiDiscrete([[2, 3], [2, 2]], start=[[1, 0], [-1, 5]]), 1 + 9 + 24, 1 + 4 + 1),
        (spaces.MultiBinary(3), 1 + 6 + 8, 1 + 3 + 1),
        (spaces.MultiBinary([2, 8]), 1 + 32, 1 + 16),  # too many combinations
        # two numbers by eight displaced grids of 8 tiles and one more where the displacement cuts one off
        (spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 5.0]), dtype=np.float64), 1 + 64 + 7 * 81, 1 + 8),
        (spaces.Dict({"a": spaces.Discrete(2)}), 1 + 2, 2),
        (spaces.Tuple((spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2))), 1 + 45 + 704, 1 + 3 + 1),
        (spaces.Box(0, 255, (2, 3, 3), np.uint8), 1 + 6 * (11 + 6 + 4), 1 + 18),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_supported_space_is_encoded_without_a_schema(space, n_nodes, n_active):
    encoder = FeatureEncoder(space)
    assert (encoder.n_nodes, encoder.n_active) == (n_nodes, n_active)
    assert len(set(encoder.labels)) == n_nodes == len(encoder.kinds)
    space.seed(0)
    seen = set()
    for _ in range(50):
        observation = np.minimum(space.sample(), 3) if space.dtype == np.uint8 else space.sample()
        features = encoder.encode(observation)
        assert len(features.nodes) == len(set(features.nodes.tolist())) == n_active
        assert features.nodes[0] == 0
        assert (features.activation == 1).all()
        assert features.stake == 1
        assert encoder.entity(observation) == 0
        assert encoder.dense_space().contains(encoder.dense(observation))
        seen.add(tuple(features.nodes))
    assert len(seen) > 1


def test_nodes_of_a_nested_space_by_hand():
    space = spaces.Dict(
        {
            "self": spaces.Dict({"mood": spaces.Discrete(2, start=5), "at": spaces.Box(-1.0, 1.0, (2,))}),
            "others": spaces.Tuple((spaces.Discrete(3), spaces.MultiBinary(2))),
        }
    )
    encoder = FeatureEncoder(space, box="uniform", rank="none", n_bins=2)
    observation = {"self": {"mood": 6, "at": np.array([-0.5, 0.5])}, "others": (2, np.array([0, 1]))}
    combination = "others.x0 = 2 & others.x1.x0 = 0 & others.x1.x1 = 1 & self.mood = 6"
    codes = {"self.mood = 6", "others.x0 = 2", "others.x1.x0 = 0", "others.x1.x1 = 1", combination}
    assert set(active(encoder, observation)) == {"bias", *codes, "self.at.x0 < 0", "self.at.x1 >= 0"}
    assert encoder.cells == {
        "self.mood": 2, "self.at.x0": 2, "self.at.x1": 2, "others.x0": 3, "others.x1.x0": 2, "others.x1.x1": 2
    }  # fmt: skip


def test_combinations_by_hand_and_on_demand(schema):
    space = spaces.MultiDiscrete([2, 3], start=[0, 1])
    encoder = FeatureEncoder(space)
    assert active(encoder, np.array([1, 3])) == {"bias": 1, "x0 = 1": 1, "x1 = 3": 1, "x0 = 1 & x1 = 3": 1}
    assert encoder.kinds[-6:] == ("joint",) * 6
    assert FeatureEncoder(space, joint=False).n_nodes == 1 + 5
    declared = schema(fields=FIELDS, entity_field="who")
    assert "joint" not in FeatureEncoder(SPACE, declared).kinds
    assert FeatureEncoder(SPACE, declared, joint=True).kinds.count("joint") == 3 * 3 * 2
    with pytest.raises(ValueError, match="`joint` needs codes with at most 20000 combinations, got 65536 of 16 codes"):
        FeatureEncoder(spaces.MultiBinary(16), joint=True)


def test_a_symbolic_grid_is_told_by_kind_colour_and_state():
    encoder = FeatureEncoder(spaces.Box(0, 255, (1, 2, 3), np.uint8))
    seen = np.array([[[8, 1, 0], [4, 4, 2]]], np.uint8)
    assert active(encoder, seen) == {
        "bias": 1, "(0, 0) object = 8": 1, "(0, 0) colour = 1": 1, "(0, 0) state = 0": 1,
        "(0, 1) object = 4": 1, "(0, 1) colour = 4": 1, "(0, 1) state = 2": 1,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"`\(0, 1\) object` must lie in \[0, 11\), got 200.*pixels.*TransformObs"):
        encoder.encode(np.array([[[8, 1, 0], [200, 4, 2]]], np.uint8))


def test_auto_takes_bins_where_a_schema_is_declared_tiles_for_few_numbers_and_random_grids_for_many(schema):
    assert "tile" not in FeatureEncoder(SPACE, schema(fields=FIELDS)).kinds
    few, many = spaces.Box(-1.0, 1.0, (6,)), spaces.Box(-1.0, 1.0, (7,))
    assert FeatureEncoder(few).labels == FeatureEncoder(few, box="tiles").labels
    assert FeatureEncoder(many).labels == FeatureEncoder(many, box="random").labels
    assert FeatureEncoder(many).labels != FeatureEncoder(many, seed=1).labels
    mixed = FeatureEncoder(SPACE, schema(fields=FIELDS, stake_field=None), box="tiles")  # edges are kept
    assert mixed.cells == {"home": 3, "income": 4, "income_status": 3, "who": 2, "amount": 9}


def test_numbers_of_several_entries_share_grids():
    one = spaces.Dict({"at": spaces.Box(-1.0, 1.0, (1,)), "speed": spaces.Box(-1.0, 1.0, (1,))})
    encoder = FeatureEncoder(one)
    assert encoder.n_active == 1 + 8
    assert encoder.labels[1] == "#0: at < -0.75 & speed < -0.75"


def test_a_number_without_bounds_is_told_apart_best_within_its_scale():
    env = gymnasium.make("CartPole-v1")
    standing = env.reset(seed=0)[0]

    def told_apart(encoder, speeds):
        seen = [standing + np.array([0, speed, 0, 0], np.float32) for speed in speeds]
        return len({tuple(encoder.encode(one).nodes) for one in seen})

    near, far = np.linspace(-2.9, 2.9, 200), np.linspace(40, 50, 200)
    for box in ("uniform", "tiles", "random"):
        default = FeatureEncoder(env.observation_space, box=box)
        wide = FeatureEncoder(env.observation_space, box=box, scales={"x1": 60.0})
        assert told_apart(default, near) >= 8
        assert told_apart(default, near) > told_apart(wide, near)
        assert told_apart(wide, far) > told_apart(default, far)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"box": "tile"}, ValueError, r"`box` must be one of \['auto', 'uniform', 'tiles', 'random'\], got 'tile'"),
        ({"joint": 1}, TypeError, "`joint` must be True or False, got 1"),
        ({"scales": {"x9": 1.0}}, ValueError, r"`scales` must name observed numbers, got \['x9'\]; they are"),
        ({"scales": {"x1": 0.0}}, ValueError, r"`scales\['x1'\]` must be a finite number > 0, got 0.0"),
        ({"n_bins": 1}, ValueError, "`n_bins` must be at least 2, got 1"),
        ({"seed": None}, TypeError, "`seed` must be a whole number of at least 0"),
        (
            {"masked": ["x9"]},
            ValueError,
            r"`masked` must name observed fields, got \['x9'\]; observed are \['x0', 'x1'",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        FeatureEncoder(gymnasium.make("CartPole-v1").observation_space, **arguments)


@pytest.mark.parametrize(
    ("space", "error", "message"),
    [
        (spaces.Box(0, 255, (64, 64, 3), np.uint8), TypeError, "an image of 12288 entries.*ResizeObservation"),
        (spaces.Text(4), TypeError, "`observation_space` must be Discrete, .*TransformObservation"),
        (spaces.Dict({"said": spaces.Text(4)}), TypeError, r"`said` must be .* leave it out: masked=\['said'\]"),
        (spaces.Sequence(spaces.Discrete(2)), TypeError, "must be Discrete, .* got Sequence"),
        (spaces.Graph(spaces.Discrete(2), None), TypeError, "must be Discrete, .* got Graph"),
        (spaces.Dict({}), TypeError, "at least one entry"),
        (
            spaces.Dict({"a.b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})}),
            ValueError,
            "two values one name",
        ),
    ],
    ids=["image", "text", "text in a dict", "sequence", "graph", "empty", "names"],
)
def test_a_space_that_cannot_be_encoded_is_refused_with_a_way_out(space, error, message):
    with pytest.raises(error, match=message):
        FeatureEncoder(space)


def test_the_ways_out_lead_out():
    said = spaces.Dict({"said": spaces.Text(4), "a": spaces.Discrete(2), "b": spaces.Box(0.0, 1.0, (2,))})
    encoder = FeatureEncoder(said, masked=["said", "b.x1"], box="uniform")
    assert list(encoder.cells) == ["a", "b.x0"]
    assert "b.x0 >= 0.875" in active(encoder, {"said": "hi", "a": 1, "b": np.array([1.0, 1.0])})
    shrunk = FeatureEncoder(spaces.Box(0, 255, (16, 16), np.uint8))
    assert shrunk.encode(np.full((16, 16), 7, np.uint8)).nodes.shape == (shrunk.n_active,)


def test_a_code_outside_the_space_is_refused(encoder):
    with pytest.raises(ValueError, match=r"must lie in \[0, 3\), got 3"):
        encoder.encode(case(home=3))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_refused_unless_its_status_says_so(encoder, number):
    with pytest.raises(ValueError, match=r"`income` must be a finite number, got .*TransformObservation"):
        encoder.encode(case(income=number))
    assert np.isfinite(encoder.encode(case(income=number, status=2)).activation).all()


@pytest.mark.parametrize("box", ["uniform", "tiles", "random"])
def test_a_number_of_an_array_that_is_none_is_refused_by_name(box):
    encoder = FeatureEncoder(spaces.Box(-np.inf, np.inf, (3,)), box=box)
    for number in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"`x1` must be a finite number, got (nan|inf); .*TransformObservation"):
            encoder.encode(np.array([0.0, number, 0.0], np.float32))
    assert len(encoder.encode(np.array([0.0, 3e38, -3e38], np.float32)).nodes) == encoder.n_active


@pytest.mark.parametrize("stake", [np.nan, np.inf, 0.0, -1.0])
def test_a_stake_that_cannot_be_divided_by_is_refused(encoder, stake):
    with pytest.raises(ValueError, match=r"the stake `amount` must be finite and positive"):
        encoder.encode(case(amount=stake))


def test_labels_must_fit_the_space(schema):
    with pytest.raises(ValueError, match="`a` has 3 codes but the schema declares 2 labels"):
        FeatureEncoder(
            gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(3)}),
            schema(fields=(contract.Field("a", labels=("x", "y")),), entity_field=None),
        )
