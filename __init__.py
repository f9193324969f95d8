"""habitus: a reinforcement-learning benchmark of memory.

Importing the package registers its worlds with Gymnasium, so that `gymnasium.make("habitus/CreditReview-v0")` and
`make_vec` work afterwards; without an import, `gymnasium.make("habitus:habitus/CreditReview-v0")` does both. Nothing
heavy is imported here: JAX comes with `habitus.envs`, PyTorch only with a deep baseline, matplotlib only with a plot.
"""

import gymnasium

__version__ = "0.1.0"
__all__ = ["WORLD_IDS", "__version__"]

# id -> entry point; the vector entry point has the same name with "_vector". Strings, so that an EnvSpec stays JSON and
# the import stays light.
_ENTRY_POINTS = {
    "habitus/CreditReview-v0": "habitus.scenarios:credit_review",
    "habitus/CustomerService-v0": "habitus.scenarios:customer_service",
    "habitus/GameNPC-v0": "habitus.scenarios:game_npc",
}
WORLD_IDS = tuple(sorted(_ENTRY_POINTS))

for _id, _entry_point in _ENTRY_POINTS.items():
    if _id not in gymnasium.registry:  # a reloaded module must not warn
        gymnasium.register(_id, entry_point=_entry_point, vector_entry_point=f"{_entry_point}_vector")
