"""What can go wrong in a study, as exceptions whose text is the message for the user."""


class ExperimentError(ValueError):
    """Base of the errors of this folder; its text says what was expected, what was received and the way out."""


class StudyError(ExperimentError):
    """A study that cannot be run as it is written."""


class RecordError(ExperimentError):
    """A record that is damaged, incomplete, newer than this version, or not there."""


class NewerRecordError(RecordError):
    """A record of a format that only a newer version reads; it is whole, so it must not be written over."""
