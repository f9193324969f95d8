"""Nodes that an observation switches on: by hand, for every supported space, and what is refused."""

import gymnasium
import numpy as np
import pytest
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
    assert active(encoder, case(income=1.0, who=1)) == active(encoder, case(income=99.0, status=2))


@pytest.mark.parametrize(
    ("space", "n_nodes"),
    [
        (gymnasium.spaces.Discrete(4), 1 + 4),
        (gymnasium.spaces.MultiDiscrete([2, 3]), 1 + 5),
        (gymnasium.spaces.MultiBinary(3), 1 + 6),
        (gymnasium.spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 5.0]), dtype=np.float64), 1 + 2 * (8 + 1)),
        (gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2)}), 1 + 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_supported_space_is_encoded_without_a_schema(space, n_nodes):
    encoder = FeatureEncoder(space)
    assert encoder.n_nodes == n_nodes
    space.seed(0)
    seen = set()
    for _ in range(50):
        observation = space.sample()
        features = encoder.encode(observation)
        assert features.nodes[0] == 0
        assert features.activation[0] == 1
        assert features.stake == 1
        assert encoder.dense_space().contains(encoder.dense(observation))
        seen.add(tuple(features.nodes))
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("space", "error", "message"),
    [
        (gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8), TypeError, "FlattenObservation"),
        (gymnasium.spaces.Box(-np.inf, np.inf, (2,)), ValueError, "unbounded .* bound it with .*TransformObs.*clip"),
        (gymnasium.spaces.Text(4), TypeError, "`observation_space` must be"),
        (gymnasium.spaces.Dict({"a": gymnasium.spaces.Box(0, 1, (2,))}), TypeError, "`a` must be Discrete or a Box"),
        (gymnasium.spaces.Discrete(3, start=1), TypeError, "starts at 0"),
        (gymnasium.spaces.MultiDiscrete([3, 2], start=[0, 1]), TypeError, r"starts at 0, got start \[0 1\]"),
        (gymnasium.spaces.Dict({}), TypeError, "at least one entry"),
    ],
    ids=["image", "unbounded", "text", "nested", "start", "starts", "empty"],
)
def test_a_space_that_cannot_be_encoded_is_refused_with_a_way_out(space, error, message):
    with pytest.raises(error, match=message):
        FeatureEncoder(space)


def test_the_way_out_for_an_unbounded_space_is_one():
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(ValueError, match="unbounded") as refusal:
        FeatureEncoder(env.observation_space)
    assert "RescaleObservation" not in str(refusal.value)  # it refuses unbounded spaces itself
    limit = np.array([4.8, 5.0, 0.42, 5.0], np.float32)
    space = gymnasium.spaces.Box(-limit, limit)
    bounded = gymnasium.wrappers.TransformObservation(env, lambda seen: np.clip(seen, -limit, limit), space)
    assert np.isfinite(FeatureEncoder(space).encode(bounded.reset(seed=0)[0]).activation).all()


def test_a_code_outside_the_space_is_refused(encoder):
    with pytest.raises(ValueError, match=r"must lie in \[0, 3\), got 3"):
        encoder.encode(case(home=3))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_refused_unless_its_status_says_so(encoder, number):
    with pytest.raises(ValueError, match=r"`income` must be a finite number, got .*TransformObservation"):
        encoder.encode(case(income=number))
    assert np.isfinite(encoder.encode(case(income=number, status=2)).activation).all()


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
