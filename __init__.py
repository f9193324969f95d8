"""habitus: a reinforcement-learning benchmark of memory.

Importing the package registers its worlds with Gymnasium, so that `gymnasium.make("habitus/CreditReview-v0")` works
afterwards; without an import, `gymnasium.make("habitus:habitus/CreditReview-v0")` does both. Nothing heavy is imported
here: JAX comes with `habitus.envs`, PyTorch only with a deep baseline, matplotlib only with a plot.
"""

import gymnasium

__version__ = "0.1.0"
__all__ = ["WORLD_IDS", "__version__"]

# id -> entry point. Strings, so that an EnvSpec stays JSON and the import stays light.
_ENTRY_POINTS = {"habitus/CreditReview-v0": "habitus.scenarios:credit_review"}
WORLD_IDS = tuple(sorted(_ENTRY_POINTS))

for _id, _entry_point in _ENTRY_POINTS.items():
    if _id not in gymnasium.registry:  # a reloaded module must not warn
        gymnasium.register(_id, entry_point=_entry_point)
