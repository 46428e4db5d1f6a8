"""`published.json` of a study folder: what its report needs of the package, copied when the study starts.

A report is rebuilt from its folder alone. Neither a newer version of the published tables nor another edition of the
shipped study changes the report of a study that was run before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from paceline.published.records import PublishedStudy
from paceline.published.table_files import published_study
from paceline.storage.codec import read_record, write_record
from paceline.storage.folder import StudyFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCopy:
    """The published study that a study is compared with."""

    SCHEMA = "paceline.published/1"

    published: PublishedStudy
    overridden: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Path of a setting that differs from the shipped study -> its value here, and its value there, as TOML."""


def write_copy(folder: StudyFolder, name: str, overridden: dict[str, tuple[str, str]]) -> None:
    """Copy the published study of this name into a study folder; nothing for an empty name."""
    if name:
        write_record(folder.published, PublishedCopy(published=published_study(name), overridden={**overridden}))


def read_copy(folder: StudyFolder) -> PublishedCopy | None:
    """The copy in a study folder; None where the study is not compared with a published one."""
    return read_record(folder.published, PublishedCopy) if folder.published.exists() else None
