"""Completion candidates that depend on the file system, the catalog or the user's site profiles.

A shell calls `paceline __complete WORDS...` while the user waits: only the standard library and the catalog are
imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paceline import catalog

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

Completer = Callable[["CompletionContext"], Sequence[str]]

_MAX_CANDIDATES = 200


def studies(context: CompletionContext) -> list[str]:
    """Names of shipped studies, and study files in the folder of the typed word."""
    from paceline.studies.load.source import shipped_files

    files = _matching(context.incomplete, "*.toml")
    return [*(path.stem for path in shipped_files()), *map(str, files)]


def study_folders(context: CompletionContext) -> list[str]:
    """Study folders in and one level below the folder of the typed word."""
    word = context.incomplete
    found = [*_matching(word, "*/study.toml"), *_matching(word, "*/*/study.toml")]
    return [str(path.parent) for path in found][:_MAX_CANDIDATES]


def names(kind: str) -> Completer:
    """A completer of the catalog names of a kind, also inside a comma-separated list."""
    return lambda context: _listed(context.incomplete, catalog.names(kind))


def choices(*known: str) -> Completer:
    """A completer of fixed names, also inside a comma-separated list."""
    return lambda context: _listed(context.incomplete, known)


def sites(context: CompletionContext) -> list[str]:
    """The site profiles of this user."""
    from paceline.studies.load.sites import site_names

    return list(site_names())


def _listed(word: str, known: Sequence[str]) -> list[str]:
    """Completions of the last name of a list: `md,t` becomes `md,tex`."""
    before, comma, _ = word.rpartition(",")
    return [f"{before}{comma}{name}" for name in known if name not in before.split(",")]


def _matching(word: str, pattern: str) -> list[Path]:
    """Paths that match a pattern in the folder of the word; the shell filters by prefix."""
    folder = Path(word) if word.endswith("/") else Path(word).parent
    try:
        return sorted(folder.expanduser().glob(pattern))[:_MAX_CANDIDATES]
    except OSError:
        return []
