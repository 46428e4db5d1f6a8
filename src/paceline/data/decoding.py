"""Decodes an image folder into the cache: every file once, by several threads, written in order.

    files in order ─▶ threads decode a few ahead ─▶ rows of train-images.npy ─▶ mapped, hashed, described, renamed

Memory use is that of a few dozen images. Threads, because Pillow releases the GIL while it decodes and resizes, and
processes would have to start and to send every image back: 1,500 photos of 224 pixels took 1.4 s in sequence, 1.1 s in
two threads and 1.3 s in two processes, on two shared cores.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from paceline import host
from paceline.data.arrays import TEST_SHARE, Arrays, normalised
from paceline.data.cache import partial_folder, storage_errors
from paceline.data.folders import ImageFolder, interleaved, printable
from paceline.data.pictures import Damaged, pillow, pixels, without_warnings
from paceline.errors import DataError
from paceline.storage.codec import write_atomically
from paceline.units import bytes_text, count_text, counted

_THREADS = 8
"""Maximum: beyond it the writing thread is the bottleneck."""
_QUEUE_PER_THREAD = 4
"""Decoded images per thread that may wait for the writer."""
_MAX_NAMED = 5
"""Damaged images named in a message; a file in the cache lists all."""
_MAX_DAMAGED = 100
"""Decoding stops after so many damaged images if they are refused."""
_REPORT_FROM = 1000


@dataclass(slots=True)
class _Progress:
    """Decoded images, reported in tenths."""

    name: str
    total: int
    say: Callable[[str], None]
    done: int = 0

    def one_more(self) -> None:
        self.done += 1
        if self.total >= _REPORT_FROM and self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            self.say(f"{self.name}: {self.done:,} of {self.total:,} images decoded")


@dataclass(slots=True)
class _Outcome:
    """Labels and damaged files of one part."""

    labels: list[int] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    """Path within the folder -> what is wrong with it."""


def decoded_folder(
    found: ImageFolder,
    *,
    name: str,
    side: int,
    test: float,
    damaged: str,
    source: str,
    cache: Path,
    say: Callable[[str], None],
) -> Arrays:
    """The images of a folder, side × side × 3, as arrays in the cache.

    `test` is the fraction held out if the folder has no test set; `damaged` is skip or refuse.
    """
    pillow()
    plan = _plan(found, test)
    total = sum(map(len, plan.files.values()))
    with storage_errors(cache / name):
        making = partial_folder(cache, name)
        try:
            _refuse_space(cache, total * side * side * 3, name)
            progress = _Progress(name, total, say)
            outcomes = {
                part: _write(files, making / f"{part}-images.npy", side, damaged, progress, found.root)
                for part, files in plan.files.items()
            }
            failures = outcomes["train"].damaged | outcomes["test"].damaged
            if failures and damaged == "refuse":
                raise _refused(found, failures, progress)
            notes = [*found.notes, *plan.notes, *_skipped(failures, cache)]
            return normalised(_arrays(found, making, outcomes, plan.validation, notes, source), found.where)
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            raise


@dataclass(frozen=True, slots=True)
class _Plan:
    files: dict[str, list[tuple[int, str]]]
    """train and test -> label and path of every file, in the order in which they are stored."""
    validation: int
    notes: list[str]


def _plan(found: ImageFolder, test: float) -> _Plan:
    """Assignment of files to training and test set."""
    parts = {role: interleaved(part, found.classes) for role, part in found.parts.items()}
    train, validation = parts["train"], parts.get("validation", [])
    if "test" in parts:
        if test:
            raise DataError(
                f"data.test is {test:g}, and {found.where} has a test folder.",
                right="A test set is held out only where a folder brings none.",
                next="Leave data.test out, or rename that folder.",
            )
        return _Plan({"train": validation + train, "test": parts["test"]}, len(validation), [])
    num_test = max(1, round(len(train) * test) if test else len(train) // TEST_SHARE)
    if num_test >= len(train):
        raise DataError(
            f"{found.where} has {counted(len(train), 'image')}, of which {num_test:,} would be the test set.",
            right="At least one has to be left to train on.",
            next="Add images, or hold out a smaller fraction with data.test.",
        )
    note = f"{found.where} has no test set: {num_test:,} of its {len(train):,} images were held out as one, by class"
    return _Plan({"train": validation + train[num_test:], "test": train[:num_test]}, len(validation), [note])


def _write(
    files: Sequence[tuple[int, str]], path: Path, side: int, damaged: str, progress: _Progress, root: str
) -> _Outcome:
    """Decode files in order and write them as one array; damaged files leave no gap."""
    outcome = _Outcome()
    with path.open("wb") as file:
        start = _header(file, len(files), side)
        for (label, name), result in zip(files, _in_order(files, side), strict=True):
            progress.one_more()
            if isinstance(result, Damaged):
                outcome.damaged[printable(os.path.relpath(name, root))] = str(result)
                # One label per file: the validation set is counted by position.
                outcome.labels.append(-1)
                if damaged == "refuse" and len(outcome.damaged) >= _MAX_DAMAGED:
                    break
                continue
            outcome.labels.append(label)
            file.write(result.data)
        if outcome.damaged:
            file.seek(0)
            again = _header(file, len(files) - len(outcome.damaged), side)
            assert again == start
        file.flush()
        os.fsync(file.fileno())
    return outcome


def _header(file: BinaryIO, count: int, side: int) -> int:
    """Length of the header of a .npy file, which is written; equal for any number of rows."""
    described = {"descr": "|u1", "fortran_order": False, "shape": (count, side, side, 3)}
    np.lib.format.write_array_header_1_0(file, described)
    return file.tell()


def _in_order(files: Sequence[tuple[int, str]], side: int) -> Iterator[np.ndarray | Damaged]:
    """Result of each file in order, with a bounded number decoded ahead."""
    threads = min(_THREADS, len(host.affinity()))
    waiting: deque[Future[np.ndarray | Damaged]] = deque()
    with without_warnings(), ThreadPoolExecutor(threads, thread_name_prefix="decode") as pool:
        try:
            for _, name in files:
                waiting.append(pool.submit(_pixels_or_reason, name, side))
                if len(waiting) > threads * _QUEUE_PER_THREAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _pixels_or_reason(name: str, side: int) -> np.ndarray | Damaged:
    try:
        return np.ascontiguousarray(pixels(name, side))
    except Damaged as damage:
        return damage


def _arrays(
    found: ImageFolder, making: Path, outcomes: dict[str, _Outcome], validation: int, notes: list[str], source: str
) -> Arrays:
    labels_of = {part: [label for label in outcome.labels if label >= 0] for part, outcome in outcomes.items()}
    for part, labels in labels_of.items():
        if not labels:
            raise DataError(
                f"No image of the {part} set of {found.where} can be decoded.",
                right="At least one is needed.",
                next="Check the files: open one of them in an image viewer.",
            )
    train, test = (np.load(making / f"{part}-images.npy", mmap_mode="r") for part in ("train", "test"))
    return Arrays(
        train_images=train,
        train_labels=np.array(labels_of["train"], dtype=np.int64),
        test_images=test,
        test_labels=np.array(labels_of["test"], dtype=np.int64),
        source=source,
        classes=len(found.classes),
        note="; ".join(notes) or None,
        class_names=tuple(map(printable, found.classes)),
        validation=sum(label >= 0 for label in outcomes["train"].labels[:validation]),
        mixed=True,
        made=making,
    )


def _refuse_space(cache: Path, needed: int, name: str) -> None:
    free = shutil.disk_usage(cache).free
    if needed > free:
        raise DataError(
            f"The images of {name} take {bytes_text(needed)} decoded, and {cache} has {bytes_text(free)}.",
            right="The decoded images are kept there, for every rank to map.",
            next="Choose a smaller data.image_size, or set PACELINE_CACHE to a folder with more space.",
        )


def _refused(found: ImageFolder, failures: dict[str, str], progress: _Progress) -> DataError:
    seen = "" if progress.done == progress.total else f" the first {count_text(progress.done)} of"
    return DataError(
        f"{counted(len(failures), 'damaged image')} in{seen} {count_text(progress.total)}: {_named(failures)}.",
        right=f"Every image of {found.where} has to be decodable.",
        next='Replace or remove them, or leave them out: data.damaged = "skip"',
    )


def _skipped(failures: dict[str, str], cache: Path) -> list[str]:
    if not failures:
        return []
    listed = f", all of them listed in {_listed(failures, cache)}" if len(failures) > _MAX_NAMED else ""
    return [f"{counted(len(failures), 'damaged image')} left out: {_named(failures)}{listed}"]


def _named(failures: dict[str, str]) -> str:
    lines = [f"{path} {reason}" for path, reason in failures.items()]
    more = f"; and {len(lines) - _MAX_NAMED:,} more" if len(lines) > _MAX_NAMED else ""
    return "; ".join(lines[:_MAX_NAMED]) + more


def _listed(failures: dict[str, str], cache: Path) -> Path:
    """Path of a file with the names of all damaged images, named by its contents.

    It is not in the folder of the arrays: equal arrays may exist with other damaged images.
    """
    text = "".join(f"{path}\n" for path in sorted(failures)).encode()
    file = cache / "damaged" / f"{hashlib.sha256(text).hexdigest()[:12]}.txt"
    write_atomically(file, text)
    return file
