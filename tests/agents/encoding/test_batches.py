"""A batch is told from a single observation in every space, and divided into single ones."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from habitus.agents.encoding import singles

SPACES = [
    spaces.Discrete(5),
    spaces.MultiDiscrete([[2, 3], [4, 5]]),
    spaces.MultiBinary(3),
    spaces.Box(-1.0, 1.0, (2,)),
    spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(-1.0, 1.0, (1,))}),
    spaces.Tuple((spaces.Discrete(32), spaces.Discrete(11), spaces.Discrete(2))),
    spaces.Dict({"t": spaces.Tuple((spaces.Discrete(2), spaces.Box(-1.0, 1.0, (2, 2)))), "d": spaces.Discrete(2)}),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("size", [1, 3])
def test_batches_are_divided_and_single_observations_are_not(space, size):
    space.seed(0)
    expected = [space.sample() for _ in range(size)]
    batch = gymnasium.vector.utils.create_empty_array(space, size)
    gymnasium.vector.utils.concatenate(space, expected, batch)
    found = singles(space, batch)
    assert len(found) == size
    for one, other in zip(found, expected, strict=True):
        assert space.contains(one) or isinstance(space, spaces.Discrete)
        assert repr(np.asarray(one, object).tolist()) == repr(np.asarray(other, object).tolist())
        assert singles(space, other) is None
