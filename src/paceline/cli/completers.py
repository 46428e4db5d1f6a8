"""What a shell offers for a word that is being typed, where it cannot be known beforehand.

A shell asks `paceline __complete WORDS...` while somebody waits: nothing here imports more than the standard library
and our own tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline import catalog

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

Completer = Callable[["CompletionContext"], Sequence[str]]

_MOST = 200
"""Candidates that anybody would look at."""


def studies(context: CompletionContext) -> list[str]:
    """The shipped studies, and the study files where the word points to."""
    from paceline.studies.load.source import shipped_files

    files = _matching(context.incomplete, "*.toml")
    return [*(path.stem for path in shipped_files()), *map(str, files)]


def study_folders(context: CompletionContext) -> list[str]:
    """Folders of studies: here, below runs/, and below what has been typed."""
    word = context.incomplete
    found = [*_matching(word, "*/study.toml"), *_matching(word, "*/*/study.toml")]
    return [str(path.parent) for path in found][:_MOST]


def names(kind: str) -> Completer:
    """The names of a kind of the catalog, as the last of a list, too."""
    return lambda context: _listed(context.incomplete, catalog.names(kind))


def choices(*known: str) -> Completer:
    """Names that may be given several at a time, separated by commas."""
    return lambda context: _listed(context.incomplete, known)


def sites(context: CompletionContext) -> list[str]:
    """The site profiles of this user."""
    from paceline.studies.load.sites import site_names

    return list(site_names())


def _listed(word: str, known: Sequence[str]) -> list[str]:
    """`md,t` goes on with `md,tex`."""
    before, comma, _ = word.rpartition(",")
    return [f"{before}{comma}{name}" for name in known if name not in before.split(",")]


def _matching(word: str, pattern: str) -> list[Path]:
    """Paths below the folder that the word names; the shell leaves out those that do not begin with it."""
    folder = Path(word) if word.endswith("/") else Path(word).parent
    try:
        return sorted(folder.expanduser().glob(pattern))[:_MOST]
    except OSError:
        return []
