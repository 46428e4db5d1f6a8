"""`[data]` of a study as a request: path, decoding function, and key.

    mnist, cifar10, digits       a name of the catalog
    flowers, fruits, caltech256  a name of an image folder or archive below `sources/` in the cache
    arrays.npz  npz:FILE         NumPy arrays
    folder      idx:FOLDER       the usual four IDX files
    folder      images:FOLDER    an image folder, or an archive of one

The key contains the sizes and times of all files and all relevant settings: it changes if the data could.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from paceline import catalog
from paceline.data.arrays import Arrays, normalised
from paceline.data.decoding import decoded_folder
from paceline.data.folders import ImageFolder, fingerprint, has_folders, image_folder
from paceline.data.idx import idx_files, read_idx_folder
from paceline.data.named_folders import NamedFolder, fetch, local_files
from paceline.data.npz import read_npz
from paceline.data.unpacking import is_archive, unpacked
from paceline.errors import DataError
from paceline.records.settings import DataSettings

DEFAULT_SIDE = 64
"""Height and width of images of a user folder: small enough for training without a GPU."""
# Part of every key: increased when decoding changes, which invalidates old caches.
_DECODER = 1
_IMAGES_DECODER = 1
_OWN = "an .npz file, a folder of IDX files, or a folder of images"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A data set, with a key that changes if the data could."""

    name: str
    key: str
    decode: Callable[[], Arrays]
    fetch: Callable[[], None] | None = None
    """Fetches missing files; the request then has another key."""


def request(settings: DataSettings, base: Path, cache: Path, say: Callable[[str], None]) -> Request:
    """The request of settings. Relative paths start at `base`."""
    name = settings.dataset
    entry = catalog.dataset(name)
    if not entry.made and (settings.shape, settings.classes, settings.samples) != (None, None, None):
        raise DataError(
            f"shape, classes and samples are given for the data set {name!r}.",
            right="They are settings of synthetic alone: other sets have a shape of their own.",
            next='Remove them from [data], or use dataset = "synthetic".',
        )
    if entry.image_folder:
        return _named_request(settings, cache, say)
    if catalog.known("dataset", name):
        _refuse_image_settings(settings)
        options = [settings.shape, settings.classes, settings.samples] if entry.made else None
        make = catalog.load("dataset", name)
        return Request(
            name=name,
            key=json.dumps([entry.version, name, options]),
            decode=lambda: make(settings, sources=cache / "sources", say=say),
        )
    return _path_request(settings, base, cache, say)


def _named_request(settings: DataSettings, cache: Path, say: Callable[[str], None]) -> Request:
    name, sources = settings.dataset, cache / "sources"
    named: NamedFolder = catalog.load("dataset", name)
    path = local_files(name, sources)
    if path is None:
        bring = functools.partial(fetch, named, sources / name, say)
        return Request(name=name, key=json.dumps([_IMAGES_DECODER, name]), decode=_not_fetched, fetch=bring)
    return _images_request(name, path, settings, named.side, cache, say)


def _path_request(settings: DataSettings, base: Path, cache: Path, say: Callable[[str], None]) -> Request:
    """Request for files of the user."""
    form, _, rest = settings.dataset.partition(":")
    path = Path(rest if form in catalog.DATA_FORMS else settings.dataset).expanduser()
    path = path if path.is_absolute() else base / path
    if form == "npz" or (form not in catalog.DATA_FORMS and path.suffix == ".npz"):
        return _array_request(settings, path, path.stem, read_npz, [path])
    folder = os.path.isdir(path)
    found = idx_files(path) if folder or form == "idx" else {}
    if form == "idx" or found or (folder and form != "images" and not has_folders(path)):
        return _array_request(settings, path, path.resolve().name, read_idx_folder, list(found.values()))
    if folder or (os.path.isfile(path) and is_archive(path)):
        return _images_request(path.resolve().name, path, settings, DEFAULT_SIDE, cache, say)
    raise _unknown_dataset(settings.dataset, path)


def _array_request(
    settings: DataSettings, path: Path, name: str, read: Callable[[Path], Arrays], files: list[Path]
) -> Request:
    _refuse_image_settings(settings)
    stats = [(str(file), *_stamp(file)) for file in files if os.path.isfile(file)]
    return Request(
        name=name,
        key=json.dumps([_DECODER, str(path.absolute()), stats]),
        decode=lambda: normalised(read(path), str(path)),
    )


def _images_request(
    name: str, path: Path, settings: DataSettings, side: int, cache: Path, say: Callable[[str], None]
) -> Request:
    side = settings.image_size or side
    decode = functools.partial(
        decoded_folder,
        name=name,
        side=side,
        test=settings.test,
        damaged=settings.damaged,
        source=f"your files: {path}",
        cache=cache,
        say=say,
    )
    wanted = [_IMAGES_DECODER, str(path.absolute()), side, settings.test, settings.damaged]
    if os.path.isdir(path):
        found = image_folder(path)
        return Request(name=name, key=json.dumps([*wanted, fingerprint(found)]), decode=lambda: decode(found))
    return Request(
        name=name, key=json.dumps([*wanted, *_stamp(path)]), decode=lambda: _from_archive(path, cache, decode, say)
    )


def _from_archive(
    path: Path, cache: Path, decode: Callable[[ImageFolder], Arrays], say: Callable[[str], None]
) -> Arrays:
    say(f"{path.name}: unpacking")
    with unpacked(path, cache) as folder:
        return decode(image_folder(folder, path))


def _not_fetched() -> Arrays:
    raise AssertionError("it has to be fetched first, which gives another request")


def _refuse_image_settings(settings: DataSettings) -> None:
    """Refuse settings of image decoding for arrays."""
    usual = DataSettings()
    given = [key for key in ("image_size", "test", "damaged") if getattr(settings, key) != getattr(usual, key)]
    if given:
        raise DataError(
            f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'} given for the data set {settings.dataset!r}.",
            right="They are settings of image folders alone: other sets come as arrays.",
            next="Remove them from [data].",
        )


def _unknown_dataset(name: str, path: Path) -> DataError:
    if os.path.isfile(path):
        return DataError(
            f"{path} is neither an .npz file nor a folder of IDX files or images.",
            right=f"A data set of your own is {_OWN}, also as an archive.",
            next="For IDX files or images name their folder.",
        )
    if len(Path(name).parts) > 1:
        return DataError(
            f"There is no file or folder {path}.",
            right=f"dataset names a data set, {_OWN}; a relative path starts at the study file's folder.",
            next=f"See what is there: ls {shlex.quote(str(path.parent))}",
        )
    return DataError(
        catalog.unknown("dataset", name), right=f"A path works too: {_OWN}.", next="See them all: paceline data list"
    )


def _stamp(file: Path) -> tuple[int, int, int]:
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
