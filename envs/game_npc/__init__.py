"""GameNPC: encounters with returning players, whose hidden style decides what works against them."""

from .env import GameNPCEnv

__all__ = ["GameNPCEnv"]
