"""YAML as plain text: every scalar stays the string that was written.

Column names and outcome labels are text to us. YAML's own reading turns `good: no` into False, `2020` into a number and
forgets the first of two equal keys without a word; all three would be mistakes about somebody's table.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from .errors import TableError

_NULLS = ("", "~", "null")


class _TextLoader(yaml.BaseLoader):
    """Scalars as strings, an unquoted null as None, equal keys refused."""

    def construct_scalar(self, node: Any) -> Any:
        text = super().construct_scalar(node)
        return None if node.style is None and text in _NULLS else text

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            line = key_node.start_mark.line + 1
            if key_node.value in seen:
                first = seen[key_node.value]
                raise yaml.MarkedYAMLError(
                    problem=f"the key `{key_node.value}` stands here and in line {first}",
                    problem_mark=key_node.start_mark,
                )
            seen[str(key_node.value)] = line
        return super().construct_mapping(node, deep)


_TextLoader.add_constructor("tag:yaml.org,2002:null", lambda loader, node: None)


def parse_yaml(text: str, file: str) -> Any:
    """Parses YAML in which every scalar is text.

    Args:
        text: contents of the file.
        file: its name, for messages.

    Returns:
        Nested dicts, lists, strings and None.

    Raises:
        TableError: the text is not YAML, or a mapping holds a key twice.
    """
    try:
        return yaml.load(text, _TextLoader)  # a subclass of BaseLoader, which builds nothing but text
    except yaml.YAMLError as error:
        raise TableError(file, f"expected YAML, but {_told(error)}.") from error


def _told(error: yaml.YAMLError) -> str:
    """What the parser met, and what it was in the midst of: an open bracket is often noticed only lines later."""
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)
    if problem is None or mark is None:
        return str(error)
    told = f"in line {mark.line + 1}: {problem}"
    context, begin = getattr(error, "context", None), getattr(error, "context_mark", None)
    return f"{told} ({context} that begins in line {begin.line + 1})" if context and begin else told
