"""The process that runs a study in a folder, from its lock file, and whether it is alive.

A lock is stale if its process was on this machine and has ended, or if it was on another
machine and its heartbeat, the modification time of the lock file, has stopped. Hosts that
share a disk may share a name: this machine is identified by its boot ID, too.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import socket
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil

from paceline.errors import StorageError
from paceline.storage.codec import read_record

BEAT_S = 5.0
SILENT_S = 60.0
"""The lock of another machine is stale after this time without a heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The process that runs a study."""

    SCHEMA = "paceline.lock/1"

    host: str
    boot_id: str
    """Of the running kernel; empty if it has none."""
    pid: int
    pid_space: str
    """PID namespace: a PID is valid only within one."""
    started_at: float
    """Start of the process, seconds since 1970: PIDs are reused."""
    since: str
    """ISO 8601."""
    token: str
    command: str


def this_process() -> Holder:
    """This process, with a new token."""
    return Holder(
        host=socket.gethostname(),
        boot_id=_boot_id(),
        pid=os.getpid(),
        pid_space=_pid_space(),
        started_at=psutil.Process().create_time(),
        since=datetime.now().astimezone().isoformat(timespec="seconds"),
        token=secrets.token_hex(8),
        command=shlex.join(sys.argv)[:200],
    )


def _boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def read_holder(path: Path) -> Holder | None:
    """The holder in a lock file; None if there is no file. An unreadable one has a token of its inode and time."""
    try:
        holder = read_record(path, Holder)
        if re.fullmatch(r"[0-9a-f]{16}", holder.token) and 0 < holder.pid < 2**31:
            return holder
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from error
    with contextlib.suppress(FileNotFoundError):
        status = path.stat()
        token = f"unreadable-{status.st_ino}-{status.st_mtime_ns}"
        return Holder(host="", boot_id="", pid=0, pid_space="", started_at=0.0, since="", token=token, command="")
    return None


def is_stale(holder: Holder, path: Path, *, now_s: float) -> bool:
    """Whether a lock is stale."""
    silent_s = since_heartbeat_s(path, now_s)
    if not is_local(holder):
        return silent_s > SILENT_S
    try:
        process = psutil.Process(holder.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return True
        # Setting the clock shifts the start time of a process: its heartbeat decides then.
        return abs(process.create_time() - holder.started_at) > 1 and silent_s > 3 * BEAT_S
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:
        return False


def is_local(holder: Holder) -> bool:
    """Whether a holder's PID is valid here."""
    here = (socket.gethostname(), _boot_id(), _pid_space())
    return (holder.host, holder.boot_id, holder.pid_space) == here


def since_heartbeat_s(path: Path, now_s: float) -> float:
    """Seconds since the last heartbeat of a lock; 0 if the file is missing."""
    try:
        return now_s - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
