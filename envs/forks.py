"""JAX does not survive a fork: its threads stay behind in the parent, and the child waits for them for ever.

A process in which a world was made has JAX running. Where such a process forks, as `multiprocessing` does by default on
Linux, an environment in the child says so instead of hanging.
"""

from __future__ import annotations

import os

_made_in: set[int] = set()
"""Process in which the first world was made; a child that was forked after that inherits the entry."""


def note_world() -> None:
    """Note that this process makes a world."""
    if not _made_in:
        _made_in.add(os.getpid())


def refuse_forked() -> None:
    """Refuse to go on in a child that was forked from a process with worlds.

    Raises:
        RuntimeError: this is such a child.
    """
    if _made_in and os.getpid() not in _made_in:
        raise RuntimeError(
            "this process was forked from one in which a world was made, got a JAX that cannot answer here; start "
            'worker processes by spawn: make_vec(..., vectorization_mode="async", '
            'vector_kwargs={"context": "spawn"}), or SubprocVecEnv(..., start_method="spawn").'
        )
