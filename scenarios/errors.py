"""What can be wrong with a user's files.

TableError
├── RulesError
└── TextsError
"""

from __future__ import annotations


class TableError(ValueError):
    """A table of applicants, or the description beside it, cannot be used.

    The message names the file, then the column and the row where there is one, what was expected, what was found and
    the way out.

    Attributes:
        file: file that has to be changed.
        column: column of a table, or None.
        key: key of a description, or None.
        row: data row, counted from 1 without the header, or None.
    """

    def __init__(
        self, file: str, problem: str, *, column: str | None = None, key: str | None = None, row: int | None = None
    ) -> None:
        place = file
        if key is not None:
            place += f", key `{key}`"
        if column is not None:
            place += f", column `{column}`"
        if row is not None:
            place += f", data row {row} (counted from 1, without the header)"
        super().__init__(f"{place}: {problem}")
        self.file, self.column, self.key, self.row = file, column, key, row


class RulesError(TableError):
    """A scorecard names a field, label or action that the world does not have, or contradicts itself."""


class TextsError(TableError):
    """The texts of a world lack one that is needed, hold one that is not, or name a place that nothing fills."""
