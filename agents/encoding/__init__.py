"""Parts of the feature encoder: the values of an observation space, and the nodes that codes and numbers switch on.

`habitus.agents.features.FeatureEncoder` puts them together and is what agents use.
"""

from .batches import singles
from .bins import UNIFORM_BINS, Rank
from .grids import Grids, random_grids, tile_coding
from .intervals import UNBOUNDED_SCALE, Intervals
from .layout import BoxCode, Layout, Options, VectorCodes, lay_out
from .values import at, number_of, read_space

__all__ = [
    "UNBOUNDED_SCALE",
    "UNIFORM_BINS",
    "BoxCode",
    "Grids",
    "Intervals",
    "Layout",
    "Options",
    "Rank",
    "VectorCodes",
    "at",
    "lay_out",
    "number_of",
    "random_grids",
    "read_space",
    "singles",
    "tile_coding",
]
