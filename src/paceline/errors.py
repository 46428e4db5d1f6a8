"""The errors that are shown to the user, with their exit codes.

    PacelineError
    ├── RequestError      exit 2: the request was wrong, nothing was started
    │   ├── StudyFileError    unknown keys and impossible values, all in one message
    │   ├── DataError         a data set that is missing, damaged or does not fit
    │   ├── ModelError        a model that does not import, build or fit the data
    │   └── FolderError       a folder that is not a study, is locked or cannot be written
    └── RunError          exit 1: a run was started and failed
        ├── RankError         a rank died, hung or raised
        └── StorageError      a file could not be written or read back

A message has three parts: what is wrong, with the actual value; what would be right; the next command or path. Each
class has a default for the third part.
"""

from __future__ import annotations


class PacelineError(Exception):
    """Base of all errors that are shown as a message instead of a traceback."""

    exit_code = 1
    otherwise = "See: {command} --help"
    """The default of `next`; {command} is the program with its verb."""

    def __init__(self, what: str, *, right: str = "", next: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.right = right
        self.next = next

    def __str__(self) -> str:
        return "\n".join(part for part in (self.what, self.right, self.next) if part)


class RequestError(PacelineError):
    """The request was wrong: nothing was started or changed."""

    exit_code = 2


class StudyFileError(RequestError):
    """A study file or an override that is invalid or cannot be executed."""


class DataError(RequestError):
    """A data set that is unavailable, is damaged, or does not fit the request."""


class ModelError(RequestError):
    """A model that does not import, does not build, or does not fit the data."""


class FolderError(RequestError):
    """A folder that is not a study, is in use, or cannot be written to."""


class RunError(PacelineError):
    """A run was started and failed."""

    otherwise = "Check this machine: paceline doctor. The same command continues; finished runs are not repeated."


class RankError(RunError):
    """A rank died, hung or raised; the message names it."""


class StorageError(RunError):
    """A file could not be written or read: disk full, damaged or missing."""

    otherwise = "Delete the folder of this run and run the study again: only this run is repeated."
