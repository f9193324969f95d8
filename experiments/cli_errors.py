"""What the commands of `habitus` share: how a mistake of the user is said, how a list of names is read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import typer

from .errors import ExperimentError

WRONG_USE = 2


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """A mistake of the user ends in one clear message and exit code 2, without a traceback."""
    try:
        yield
    except ExperimentError as error:
        typer.secho(f"error: {error}", fg="red", err=True)
        raise typer.Exit(WRONG_USE) from None
    except BrokenPipeError:  # no mistake: `cli.main` ends quietly
        raise
    except OSError as error:  # an unwritable folder, a full disk
        place = f"{error.filename}: " if error.filename else ""
        typer.secho(f"error: {place}{error.strerror or error}", fg="red", err=True)
        raise typer.Exit(WRONG_USE) from None


def split(text: str) -> list[str]:
    """The names of a list separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
