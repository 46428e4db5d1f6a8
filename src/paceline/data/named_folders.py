"""Image folders with a name: flowers, fruits and caltech256.

They are looked up below `sources/` in the cache, as a folder or as an archive. If there is none, the archive is fetched
from its publisher and stored there, since another image size needs it again. Files of the user are used unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paceline.data.folders import has_folders
from paceline.data.sources import NoSourceError, SourceFailure, download_file
from paceline.data.unpacking import ENDINGS, is_archive


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFolder:
    """Source of a set of images, and their default size."""

    title: str
    side: int
    """Default height and width in pixels."""
    url: str
    archive: str
    """Name of the file at that address."""
    md5: str = ""
    """From its publisher; empty if unknown."""
    page: str
    """Web page of the data set."""


FLOWERS = NamedFolder(
    title="Flowers",
    side=224,
    url="https://storage.googleapis.com/download.tensorflow.org/example_images/flower_photos.tgz",
    archive="flower_photos.tgz",
    page="https://www.tensorflow.org/tutorials/load_data/images",
)
FRUITS = NamedFolder(
    title="Fruits-360",
    side=100,
    url="https://github.com/fruits-360/fruits-360-100x100/archive/refs/heads/main.zip",
    archive="fruits-360-100x100.zip",
    page="https://github.com/fruits-360",
)
CALTECH256 = NamedFolder(
    title="Caltech-256",
    side=128,
    url="https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar",
    archive="256_ObjectCategories.tar",
    md5="67b4f42ca05d46448c6bb8ecd2220f6d",
    page="https://data.caltech.edu/records/nyy15-4j048",
)
_SUBSTITUTE = "cifar10"
"""Colour images that are available from a package registry."""


def local_files(name: str, sources: Path) -> Path | None:
    """Folder or archive of a named set below `sources`; None without one."""
    folder = sources / name
    if os.path.isdir(folder):
        archives = sorted(path for path in folder.iterdir() if is_archive(path) and not path.name.startswith("."))
        if archives:
            return archives[0]
        if has_folders(folder):
            return folder
    beside = (sources / f"{name}{ending}" for ending in ENDINGS)
    return next((path for path in beside if os.path.isfile(path)), None)


def fetch(named: NamedFolder, folder: Path, say: Callable[[str], None]) -> None:
    """Download the archive of a named set to a path where `local_files` finds it."""
    say(f"{named.title}: trying {named.url}")
    try:
        download_file(named.url, folder / named.archive, say=say, md5=named.md5)
    except SourceFailure as failure:
        raise NoSourceError(
            named.title,
            (f"your files: {folder}: nothing is there", f"official download: {failure}"),
            next=f"Get {named.archive} from {named.page} and put it, or the class folders in it, into {folder}. "
            f'In its place: dataset = "{_SUBSTITUTE}", which a registry carries, or a folder of your own images.',
        ) from failure
