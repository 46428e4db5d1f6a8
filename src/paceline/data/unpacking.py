"""Unpacks archives of images into a folder of the cache.

Only plain files below that folder are written: absolute names, names with `..`, links and devices are refused, and so
is an archive larger than the free disk space. Declared sizes are not trusted: bytes are counted during unpacking.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from paceline.data.bounded_reads import FETCH_AGAIN
from paceline.data.cache import partial_folder
from paceline.errors import DataError
from paceline.units import bytes_text, count_text

ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
MAX_FILES = 2_000_000
_MIN_FREE_BYTES = 1 << 28
"""Disk space that stays free."""
_PIECE_BYTES = 1 << 20
_LONGEST_NAME = 4096
# RuntimeError: an encrypted archive, or (NotImplementedError) an unknown compression. lzma and bz2 raise the last;
# a null byte in a name is a ValueError.
_READ_ERRORS = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
_READ_ERRORS += (ValueError, OverflowError, IndexError)


def is_archive(path: Path) -> bool:
    """Whether a file has the extension of a supported archive."""
    return path.name.lower().endswith(ENDINGS)


@contextlib.contextmanager
def unpacked(archive: Path, cache: Path) -> Iterator[Path]:
    """Context with a temporary folder that has the files of an archive."""
    folder = partial_folder(cache, archive.name)
    try:
        unpack(archive, folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive below a folder."""
    try:
        limit = max(0, shutil.disk_usage(folder).free - _MIN_FREE_BYTES)
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, folder, limit)
        else:
            _unpack_tar(archive, folder, limit)
    except _READ_ERRORS as error:
        raise _damaged(archive, getattr(error, "strerror", None) or str(error)) from error


def _unpack_tar(archive: Path, folder: Path, limit: int) -> None:
    left, count = limit, 0
    # As a stream: an archive is read once, without a list of its members.
    with tarfile.open(archive, "r|*") as tar:
        for member in tar:
            tar.members = []  # pyright: ignore[reportAttributeAccessIssue]  it keeps them all otherwise
            place = _target(archive, folder, member.name)
            if member.isdir() or place is None:
                continue
            if not member.isreg():
                kind = "a link" if member.islnk() or member.issym() else "no file"
                raise _refused(archive, f"{_quoted(member.name)} is {kind}")
            source = tar.extractfile(member)
            assert source is not None
            count = _counted(archive, count)
            left -= _write(archive, source, place, left, member.size)


def _unpack_zip(archive: Path, folder: Path, limit: int) -> None:
    left, count = limit, 0
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            place = _target(archive, folder, member.filename)
            if member.is_dir() or place is None:
                continue
            if (member.external_attr >> 16) & 0o170000 == 0o120000:
                raise _refused(archive, f"{_quoted(member.filename)} is a link")
            count = _counted(archive, count)
            with packed.open(member) as source:
                left -= _write(archive, source, place, left, member.file_size)


def _target(archive: Path, folder: Path, name: str) -> Path | None:
    """Path of a member; None for files of operating systems and editors."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if name.startswith(("/", "\\")) or ".." in parts or len(name) > _LONGEST_NAME:
        raise _refused(archive, f"{_quoted(name)} would lie outside of it")
    if not parts or any(part.startswith(".") or part == "__MACOSX" for part in parts):
        return None
    return folder.joinpath(*parts)


def _write(archive: Path, source: IO[bytes], place: Path, left: int, declared: int) -> int:
    """Bytes of one member, which is written."""
    if declared > left:
        raise _too_large(archive)
    place.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    # Exclusive: a repeated name must not replace a file.
    with place.open("xb") as file:
        for piece in _pieces(source):
            written += len(piece)
            if written > left:
                raise _too_large(archive)
            file.write(piece)
    return written


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    while piece := source.read(_PIECE_BYTES):
        yield piece


def _counted(archive: Path, count: int) -> int:
    if count >= MAX_FILES:
        raise _refused(archive, f"it holds more than {count_text(MAX_FILES)} files")
    return count + 1


def _quoted(name: str) -> str:
    return ascii(name[:100])


def _too_large(archive: Path) -> DataError:
    size = bytes_text(os.path.getsize(archive))
    return DataError(
        f"{archive} ({size}) holds more than the disk of the cache has space for.",
        right="Its files are unpacked for as long as they are decoded.",
        next="Set PACELINE_CACHE to a folder with more space.",
    )


def _refused(archive: Path, reason: str) -> DataError:
    return DataError(
        f"{archive} is not unpacked: {reason}.",
        right="An archive of images holds plain files below folders that are named after classes.",
        next="Unpack it yourself after a look at it, and name the folder.",
    )


def _damaged(archive: Path, reason: str) -> DataError:
    line = reason.splitlines()[0].rstrip(".") if reason else "it breaks off"
    return DataError(
        f"{archive} cannot be unpacked: {line}.",
        right=f"An archive is a whole file that ends in {', '.join(ENDINGS)}.",
        next=FETCH_AGAIN,
    )
