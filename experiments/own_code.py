"""The user's own modules, agents and worlds: where they are looked for, and by what they are known."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = __name__.partition(".")[0]


@contextlib.contextmanager
def importable(*folders: Path) -> Iterator[None]:
    """For the duration of the block, modules in `folders` and in the current folder can be imported.

    They come after the standard library, so that a `random.py` that happens to lie there changes nothing, and before
    installed packages, so that `bandit.py` is the user's and not a tool of that name. Worker processes that are
    started within the block get the path of this process from `multiprocessing`.
    """
    before = list(sys.path)
    own = [str(folder) for folder in dict.fromkeys(folder.resolve() for folder in (*folders, Path.cwd()))]
    installed = (at for at, entry in enumerate(before) if Path(entry).name in ("site-packages", "dist-packages"))
    first = next(installed, len(before))
    sys.path[first:first] = [folder for folder in own if folder not in before]
    importlib.invalidate_caches()  # a module written a moment ago is found
    try:
        yield
    finally:
        sys.path[:] = before


def module_of(name: str) -> str | None:
    """The module of the user that "module:Class" or "module:World-v0" names; None for what this package has."""
    module, colon, _ = name.partition(":")
    return module if colon and module.partition(".")[0] != _PACKAGE else None


def source_of(module: str) -> Path | None:
    """The source file of a module; None where there is none or it cannot be found."""
    try:
        found = importlib.util.find_spec(module)
    except Exception:  # a package around it that fails; its error is for whoever builds the agent
        return None
    if found is None or found.origin is None:
        return None
    path = Path(found.origin)
    return path if path.is_file() else None
