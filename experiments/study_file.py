"""Reads a study's YAML so that every complaint can name the line it is about.

YAML is composed to nodes first: the nodes carry line numbers, and duplicate keys, which a plain load silently merges,
are still visible there.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic
import yaml

from .errors import StudyError

KeyPath = tuple[str | int, ...]


class MistakeAt(ValueError):  # noqa: N818 - pydantic makes the error of it
    """A mistake that shows only when the study is whole, with the key path at which it stands."""

    def __init__(self, location: KeyPath, text: str) -> None:
        super().__init__(text)
        self.location = location


def nearest(name: str, valid: Sequence[str]) -> str:
    """End of a message: a hint at the valid name nearest to `name`, a full stop where none is near."""
    near = difflib.get_close_matches(name, list(valid), 1, cutoff=0.5)
    return f"; did you mean `{near[0]}`?" if near else "."


def read(path: Path) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    """The mapping in a YAML file, and the line (from 1) on which each key path stands.

    Raises:
        StudyError: unreadable, not UTF-8, not YAML, a duplicate key, or not a mapping.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise StudyError(
            f"{path}: expected a text file in UTF-8, got other bytes at position {error.start}."
        ) from error
    except OSError as error:
        raise StudyError(f"{path}: expected a readable study file, got: {error.strerror}.") from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if not isinstance(node, yaml.MappingNode):
            got = "an empty file" if node is None else f"a {type(node).__name__.removesuffix('Node').lower()}"
            raise StudyError(f"{path}: expected a mapping with the keys of a study (name, question, ...), got {got}.")
        lines: dict[KeyPath, int] = {(): 1}
        _walk(node, (), lines, path)
        data = yaml.safe_load(text)
        _check_json(data, (), lines, path)
    except yaml.YAMLError as error:
        raise StudyError(_yaml_message(path, error)) from error
    except ValueError as error:  # a date that is none, such as 2026-13-01
        if isinstance(error, StudyError):
            raise
        raise StudyError(f"{path}: not a value of YAML: {error}; put a text in quotes.") from error
    except RecursionError as error:
        raise StudyError(f"{path}: expected values that end, got one that holds itself or is too deep.") from error
    return data, lines


def complaint(
    path: str, error: pydantic.ValidationError, lines: Mapping[KeyPath, int], valid_keys: Mapping[str, Sequence[str]]
) -> str:
    """All that is wrong with a study, one line each: file, line, key path, expected, received.

    Args:
        path: file as the user named it.
        error: what pydantic found.
        lines: line of each key path.
        valid_keys: keys of the root ("") and of the entries of each list ("worlds", "agents").
    """
    found = error.errors(include_url=False)
    inside = {details["loc"][:n] for details in found for n in range(len(details["loc"]))}
    # a list whose entries are wrong counts as too short for pydantic, which counts the right ones
    told = [details for details in found if details["type"] != "too_short" or details["loc"] not in inside]
    return "\n".join(_one(path, details, lines, valid_keys) for details in told)


def _one(path: str, details: Any, lines: Mapping[KeyPath, int], valid_keys: Mapping[str, Sequence[str]]) -> str:
    cause = details.get("ctx", {}).get("error")
    location: KeyPath = cause.location if isinstance(cause, MistakeAt) else tuple(details["loc"])
    line = _line(location, lines)
    place = f"{path}:{line}: `{_dotted(location)}`" if location else f"{path}:{line}"
    received = details["input"]
    match details["type"]:
        case "extra_forbidden":
            valid = valid_keys.get(str(location[0]) if len(location) > 1 else "", ())
            return f"{place}: unknown key, expected one of {', '.join(valid)}{nearest(str(location[-1]), valid)}"
        case "missing":
            return f"{place}: missing; this key has no default."
        case "value_error" | "assertion_error":
            return f"{place}: {details['ctx']['error']}"
        case _:
            message = details["msg"].replace("tuple", "list").replace("dictionary", "mapping")
            if message.startswith("Input should be "):
                return f"{place}: expected {message.removeprefix('Input should be ')}, got {_shown(received)}."
            return f"{place}: {message[0].lower() + message[1:]}; got {_shown(received)}."


def _dotted(location: KeyPath) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _walk(node: yaml.Node, prefix: KeyPath, lines: dict[KeyPath, int], path: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*prefix, str(key.value))
            if here in lines:
                place = f"{path}:{key.start_mark.line + 1}: `{_dotted(here)}`"
                raise StudyError(f"{place}: written twice, first on line {lines[here]}; keep one.")
            lines[here] = key.start_mark.line + 1
            _walk(value, here, lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            lines[(*prefix, number)] = value.start_mark.line + 1
            _walk(value, (*prefix, number), lines, path)


def _check_json(value: Any, here: KeyPath, lines: Mapping[KeyPath, int], path: Path) -> None:
    """A study is kept as JSON in every record, so YAML's dates, sets, bytes, .nan and .inf have no place in it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                place = f"{path}:{_line(here, lines)}: `{_dotted(here)}`"
                raise StudyError(f"{place}: expected a text as key, got {key!r}; put it in quotes.")
            _check_json(inner, (*here, key), lines, path)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check_json(inner, (*here, number), lines, path)
    elif not (value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))):
        kind = "" if isinstance(value, float) else f"the {type(value).__name__} "
        raise StudyError(
            f"{path}:{_line(here, lines)}: `{_dotted(here)}`: expected a text, a finite number, true, false, null, a "
            f"list or a mapping, got {kind}{_shown(value)}; put a text in quotes."
        )


def _line(location: KeyPath, lines: Mapping[KeyPath, int]) -> int:
    """The line of a key path, or of the nearest that stands above it."""
    return next(lines[location[:n]] for n in range(len(location), -1, -1) if location[:n] in lines)


def _yaml_message(path: Path, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    place = f"{path}:{mark.line + 1}" if mark is not None else str(path)
    hint = "; indent with spaces, YAML allows no tabs" if "\\t" in problem else ""
    return f"{place}: not valid YAML: {problem}{hint}."
