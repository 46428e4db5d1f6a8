"""Every error a user can cause, and the exit code that it ends a command with.

    PacelineError
    ├── RequestError      exit 2: the request was wrong, nothing was started
    │   ├── StudyFileError    unknown keys, impossible values: all of them at once
    │   ├── DataError         a data set that is missing, damaged or does not fit
    │   ├── ModelError        a model that does not import, build or fit the data
    │   └── FolderError       a folder that is not a study, is locked or cannot be written
    └── RunError          exit 1: it was started and it failed
        ├── RankError         a rank died, hung or raised
        └── StorageError      a file could not be written or read back

A message has three parts: what is wrong, with the actual value; what would be right; the next
command or path to look at. Where an error has no next step of its own, its class has one.
"""

from __future__ import annotations


class PacelineError(Exception):
    """Base of every error that is shown as a sentence instead of a traceback."""

    exit_code = 1
    otherwise = "See: {command} --help"
    """The next step where none is given; {command} is the program with its verb."""

    def __init__(self, what: str, *, right: str = "", next: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.right = right
        self.next = next

    def __str__(self) -> str:
        return "\n".join(part for part in (self.what, self.right, self.next) if part)


class RequestError(PacelineError):
    """The request was wrong: nothing was started, nothing was changed."""

    exit_code = 2


class StudyFileError(RequestError):
    """A study file or an override that cannot be understood or carried out."""


class DataError(RequestError):
    """A data set that cannot be had, is damaged, or does not fit the request."""


class ModelError(RequestError):
    """A model that does not import, does not build, or does not fit the data."""


class FolderError(RequestError):
    """A folder that is not a study, is in use, or cannot be written to."""


class RunError(PacelineError):
    """A run was started and failed."""

    otherwise = "See what this machine has: paceline doctor. The same command goes on: what is finished is kept."


class RankError(RunError):
    """A rank died, hung or raised; the message names it."""


class StorageError(RunError):
    """A file could not be written or read back: disk full, damaged, vanished."""

    otherwise = "Remove the folder of its run and run the study again: that run is made anew, the others are kept."
