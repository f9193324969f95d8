"""What can go wrong with a stored memory.

MemoryFileError
 |- DamagedFileError     the file is not what was written
 |- NewerFileError       written by a newer version
 '- MismatchError        a sound file of another memory
"""


class MemoryFileError(Exception):
    """A memory could not be read from a file."""


class DamagedFileError(MemoryFileError):
    """The file is no archive of a memory, lacks a member, or a member is not what was written."""


class NewerFileError(MemoryFileError):
    """The file follows a newer schema than this version can read."""


class MismatchError(MemoryFileError):
    """The file holds a memory of other nodes, actions or observations than the ones at hand."""
