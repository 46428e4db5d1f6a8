"""One study at a time in a folder: `STUDY/lock` names its process.

The file is created exclusively and atomically (a hard link to a complete file; O_EXCL without
hard links), because flock fails on some parallel file systems. Its modification time is a heartbeat.

Every lock has a token. The only successor of a stale lock is the process that creates the file
named after its token:

    lock           {token: a}      stale: of a killed study
    lock.a         {token: b}      b is the successor of a; then b renames its file to lock
    lock.b         {token: c}      c is the successor of b, if b was killed before that

So two processes never both succeed, and the lock is visible at any time. The file of a successor
is not removed before `lock` is replaced: a process that creates one too late detects that, and withdraws.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from paceline.errors import FolderError
from paceline.storage.codec import storage_error, sync_folder, write_record
from paceline.studies.folder.lock_holder import (
    BEAT_S,
    SILENT_S,
    Holder,
    is_local,
    is_stale,
    read_holder,
    since_heartbeat_s,
    this_process,
)
from paceline.units import duration_text

_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
# `lock.TOKEN` of a successor; `.lock.TOKEN.tmp` of a candidate, and its temporary file.
_OTHER_NAMES = re.compile(
    r"lock\.([0-9a-f]{16}|unreadable-\d+-\d+)|\.lock\.[0-9a-f]{16}\.tmp|\.\.lock\.[0-9a-f]{16}\..*\.tmp"
)


class StudyLock:
    """A context manager; FolderError if another process has the lock."""

    def __init__(self, path: Path, *, say: Callable[[str], None] = lambda text: None, beat_s: float = BEAT_S) -> None:
        self.path = path
        self._say = say
        self._beat_s = beat_s
        self._me = this_process()
        self._stop = threading.Event()
        self._lost = False
        # A thread, so the lock does not become stale while the ranks are silent.
        self._heart = threading.Thread(target=self._beat, name="study-lock", daemon=True)

    def __enter__(self) -> StudyLock:
        try:
            with contextlib.ExitStack() as undo:
                undo.callback(self._release)
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._take()
                self._heart.start()
                undo.pop_all()
        except OSError as error:
            raise storage_error(self.path, error) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._heart.join()
        self._release()

    def check(self) -> None:
        """Raise FolderError if the lock file was removed, or taken over during a long suspension."""
        if self._lost:
            raise FolderError(
                f"The lock {self.path} was removed or taken over by another process.",
                right="One study at a time writes into a folder; this one stops, and keeps what is finished.",
                next="See that no other study runs there, and run the same command again: it continues.",
            )

    def move(self, path: Path) -> None:
        """Use the new path of the lock after its folder was moved."""
        self.path = path

    def _release(self) -> None:
        # A file that cannot be removed becomes a stale lock.
        with contextlib.suppress(OSError):
            if self._is_mine():
                self.path.unlink()

    def _take(self) -> None:
        draft = self.path.with_name(f".lock.{self._me.token}.tmp")
        try:
            write_record(draft, self._me)
            while not self._try(draft):
                time.sleep(0.01)  # released or taken in between: try again
            sync_folder(self.path.parent)
        finally:
            draft.unlink(missing_ok=True)
        self._sweep()

    def _try(self, draft: Path) -> bool:
        """Take the lock; False if its holder changed during the attempt."""
        if _create(draft, self.path):
            return True
        last, place = read_holder(self.path), self.path
        chain: list[tuple[Holder, Path]] = []
        while last is not None and is_stale(last, place, now_s=_server_time(draft)):
            chain.append((last, place))
            place = self.path.with_name(f"lock.{last.token}")
            if _create(draft, place):
                return self._succeed(draft, place, chain)
            last = read_holder(place)
        if last is None:
            return False
        raise in_use(self.path.parent, last)

    def _succeed(self, draft: Path, claim: Path, chain: list[tuple[Holder, Path]]) -> bool:
        """Replace the stale holders by this process; False if another process was faster."""
        first, silent = chain[0][0], since_heartbeat_s(chain[0][1], _server_time(draft))
        current = read_holder(self.path)
        if current is None or current.token != first.token:
            claim.unlink(missing_ok=True)
            return False
        os.replace(draft, self.path)
        if not is_local(first):
            self._say(
                f"Took {self.path.parent} over from process {first.pid} on {first.host or 'an unknown host'}, "
                f"which gave no sign of life for {duration_text(silent)}."
            )
        return True

    def _sweep(self) -> None:
        """Remove files of earlier successors."""
        now_s = _server_time(self.path)
        for path in self.path.parent.iterdir():
            if _OTHER_NAMES.fullmatch(path.name):
                # A recent draft may belong to a process that is taking the lock.
                is_draft = path.name.startswith(".")
                if not is_draft or since_heartbeat_s(path, now_s) > SILENT_S:
                    path.unlink(missing_ok=True)

    def _is_mine(self) -> bool:
        holder = read_holder(self.path)
        return holder is not None and holder.token == self._me.token

    def _beat(self) -> None:
        while not self._stop.wait(self._beat_s):
            try:
                if not self._is_mine():
                    self._lost = True
                    return
                os.utime(self.path)
            except OSError:
                continue  # the file server may respond at the next beat


def holder_of(path: Path) -> Holder | None:
    """The holder of a lock; None if it is free or stale. Writes nothing."""
    holder = read_holder(path)
    return None if holder is None or is_stale(holder, path, now_s=time.time()) else holder


def in_use(folder: Path, holder: Holder) -> FolderError:
    """The error for a second study in a folder."""
    if not holder.pid:
        return FolderError(
            f"{folder} is in use: its lock is not readable yet.",
            right="One study at a time writes into a folder.",
            next=f"Try again in {SILENT_S:.0f} s: a lock that nobody keeps alive is taken over then.",
        )
    end = f"end it (kill {holder.pid})" if is_local(holder) else f"end it on {holder.host}"
    return FolderError(
        f"{folder} is in use: process {holder.pid} on {holder.host} has run a study in it since {holder.since} "
        f"({holder.command}).",
        right="One study at a time writes into a folder.",
        next=f"Wait for it, {end}, or choose another folder with --out DIR.",
    )


def _create(draft: Path, path: Path) -> bool:
    """Create `path` with the contents of `draft`; False if it exists."""
    try:
        os.link(draft, path)
        return True
    except FileExistsError:
        # A network file system may repeat a request after a lost response, and report its success as this error.
        return _same_file(draft, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "wb") as file:
        file.write(draft.read_bytes())
        file.flush()
        os.fsync(file.fileno())
    return True


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except FileNotFoundError:
        return False


def is_lock_file(path: Path) -> bool:
    """Whether a file belongs to a lock: by its name, and `lock` itself by its contents."""
    if path.name != "lock":
        return _OTHER_NAMES.fullmatch(path.name) is not None
    holder = read_holder(path)
    return holder is None or holder.pid != 0 or path.stat().st_size == 0


def _server_time(draft: Path) -> float:
    """The time of the file server: the clocks of two hosts may differ."""
    os.utime(draft)
    return draft.stat().st_mtime
