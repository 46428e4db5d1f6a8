"""Image folders: one folder per class, with or without separate training, validation and test sets.

    photos/daisy/*.jpg  photos/roses/*.jpg             a fixed selection is held out as the test set
    photos/train/daisy/*.jpg  photos/test/daisy/*.jpg  train or training; val, valid or validation; test or testing

Images are sorted with interleaved classes: the position of an image within its class follows from a hash of its name,
and classes are merged in proportion. Any range of this order has the class balance of the whole. A set is divided by
cutting it, and the division does not depend on the path of the folder.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.data.pictures import EXTENSIONS, has_image_signature
from paceline.errors import DataError
from paceline.units import counted

_ROLES = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "test": "test",
    "testing": "test",
}
_SYSTEM_FOLDERS = ("__MACOSX",)
_MAX_WRAPPERS = 4
_RIGHT = "A folder of images has one folder per class, or train and test folders that have."


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Images of one of the sets, by class."""

    folder: str
    by_class: dict[str, tuple[str, ...]]
    """Name of a class -> its files, relative to the folder of the class."""

    def path(self, label: str, name: str) -> str:
        """Path of an image."""
        return os.path.join(self.folder, label, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFolder:
    """Classes and files of a folder."""

    root: str
    """The folder that holds the class folders, or those of the sets."""
    where: str
    """Folder or archive in messages."""
    classes: tuple[str, ...]
    """Sorted names of the class folders; the index is the label."""
    parts: dict[str, Part]
    """train, and validation and test if the folder has them."""
    notes: tuple[str, ...]
    """Files and folders that are not used."""


def image_folder(path: Path, where: Path | None = None) -> ImageFolder:
    """Classes and files of a folder, which was unpacked from the archive `where` if set; nothing is decoded."""
    try:
        return _image_folder(path, str(where or path))
    except OSError as error:
        unreadable = Path(error.filename or path)
        raise DataError(
            f"{unreadable} cannot be read: {error.strerror or error}.",
            right="Every class folder has to be readable.",
            next=f"Check its permissions: ls -ld {shlex.quote(str(unreadable))}",
        ) from error


def has_folders(path: Path) -> bool:
    """Whether a folder contains folders, as an image folder does."""
    try:
        return bool(_folders(str(path)))
    except OSError:
        return False


def fingerprint(found: ImageFolder) -> str:
    """SHA-256 over the paths, sizes and times of all images: it changes if one of them could have."""
    digest = hashlib.sha256()
    for role, part in found.parts.items():
        for label, names in part.by_class.items():
            for name in names:
                try:
                    stat = os.stat(part.path(label, name))
                    stamp = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
                except OSError:
                    stamp = ()
                # A null byte is the one that no name has.
                digest.update(os.fsencode(f"{role}\0{label}\0{name}\0{stamp}\0"))
    return digest.hexdigest()


def interleaved(part: Part, classes: Sequence[str]) -> list[tuple[int, str]]:
    """Label and path of every image, in the order described above."""
    places = []
    for number, label in enumerate(classes):
        drawn = sorted(part.by_class.get(label, ()), key=_draw)
        places += [((2 * i + 1) / (2 * len(drawn)), number, part.path(label, name)) for i, name in enumerate(drawn)]
    return [(number, path) for _, number, path in sorted(places)]


def printable(name: str) -> str:
    """A name with unprintable characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)


def _draw(name: str) -> bytes:
    return hashlib.sha256(os.fsencode(name)).digest()


def _image_folder(path: Path, where: str) -> ImageFolder:
    root = _unwrapped(str(path))
    folders = _folders(root)
    roles = _roles(folders, root, where)
    notes: list[str] = []
    if "train" in roles:
        parts = {role: _part(os.path.join(root, name), notes) for role, name in roles.items()}
        others = [name for name in folders if name not in roles.values()]
        if others:
            notes.append(f"{counted(len(others), 'other folder')} left out: {_first_names(others)}")
    else:
        parts = {"train": _part(root, notes)}
    classes = tuple(sorted(parts["train"].by_class))
    _refuse_classes(parts, classes, where)
    return ImageFolder(root=root, where=where, classes=classes, parts=parts, notes=tuple(notes))


def _unwrapped(root: str) -> str:
    """The folder, or its only subfolder with folders: archives often have such a wrapper."""
    for _ in range(_MAX_WRAPPERS):
        inner = _folders(root)
        if len(inner) != 1 or inner[0].lower() in _ROLES or not _folders(os.path.join(root, inner[0])):
            break
        root = os.path.join(root, inner[0])
    return root


def _roles(folders: Sequence[str], root: str, where: str) -> dict[str, str]:
    """Set -> name of its folder; empty if the folders are classes."""
    roles: dict[str, str] = {}
    for name in folders:
        role = _ROLES.get(name.lower())
        if role is None or not _folders(os.path.join(root, name)):
            continue
        if role in roles:
            raise DataError(
                f"{where} has two folders for one set: {printable(roles[role])} and {printable(name)}.",
                right="There is one folder each for training, validation and test.",
                next="Rename one of them, or put their images together.",
            )
        roles[role] = name
    order = ("train", "validation", "test")
    return {role: roles[role] for role in order if role in roles} if "train" in roles else {}


def _part(folder: str, notes: list[str]) -> Part:
    """Images of all class folders in a folder."""
    by_class: dict[str, tuple[str, ...]] = {}
    empty: list[str] = []
    strange: list[str] = []
    for label in _folders(folder):
        names: list[str] = []
        for name in _files_below(os.path.join(folder, label)):
            path = os.path.join(folder, label, name)
            # By extension or contents: a text file is not a damaged image.
            image = os.path.splitext(name)[1].lower() in EXTENSIONS or has_image_signature(path)
            (names if image else strange).append(name)
        if names:
            by_class[label] = tuple(sorted(names))
        else:
            empty.append(label)
    beside = [name for name in _names(folder) if os.path.splitext(name)[1].lower() in EXTENSIONS]
    if empty:
        notes.append(f"{counted(len(empty), 'class folder')} without an image left out: {_first_names(empty)}")
    if strange:
        notes.append(f"{counted(len(strange), 'file')} left out as no images: {_first_names(strange)}")
    if beside:
        notes.append(f"{counted(len(beside), 'image')} beside the class folders left out: {_first_names(beside)}")
    return Part(folder=folder, by_class=by_class)


def _refuse_classes(parts: dict[str, Part], classes: tuple[str, ...], where: str) -> None:
    if len(classes) < 2:
        found = f"only one class, {printable(classes[0])}" if classes else "no class folder with an image in it"
        raise DataError(
            f"{where} has {found}.",
            right=f"{_RIGHT} Two classes are the least.",
            next="Put the images of each class into a folder of its own, or name the folder that holds those.",
        )
    for role, part in parts.items():
        unknown = sorted(set(part.by_class) - set(classes))
        if unknown:
            raise DataError(
                f"The {role} set of {where} has classes that the training set has not: {_first_names(unknown)}.",
                right="Each class of the validation and test sets has images in the training set, under the same name.",
                next="Rename or remove those folders.",
            )


def _folders(folder: str) -> list[str]:
    """Names of the folders in a folder, sorted; includes links to folders."""
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if _wanted(e.name) and _is_folder(e))


def _names(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(e.name for e in entries if _wanted(e.name) and not _is_folder(e))


def _files_below(folder: str) -> Iterator[str]:
    """Paths of all files below a class folder, relative to it; each linked folder is visited once."""
    waiting, seen = [""], set()
    while waiting:
        below = waiting.pop()
        place = os.path.join(folder, below)
        stat = os.stat(place)
        if (stat.st_dev, stat.st_ino) in seen:
            continue
        seen.add((stat.st_dev, stat.st_ino))
        with os.scandir(place) as entries:
            for entry in entries:
                if not _wanted(entry.name):
                    continue
                name = os.path.join(below, entry.name)
                if _is_folder(entry):
                    waiting.append(name)
                elif _is_file(entry) or os.path.splitext(name)[1].lower() in EXTENSIONS:
                    yield name


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circular link
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False


def _wanted(name: str) -> bool:
    return not name.startswith(".") and name not in _SYSTEM_FOLDERS


def _first_names(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(printable, names[:most])) + more
