"""Studies as data, the runner, records, statistics, report and command line.

Nothing is imported here: the command line starts in a fraction of a second, and whoever wants a part imports its
module.
"""

__all__: list[str] = []
