"""Copies the output of a rank from its log while it is written, in a background thread.

    rank ──▶ logs/rank-0000.log ──▶ Follower ──▶ write(text)

The header line that a launcher writes before every attempt is removed. Everything else is copied unchanged, including
incomplete lines and carriage returns.
"""

from __future__ import annotations

import codecs
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from paceline.launch.child import LOG_HEADER

POLL_S = 0.1
_CHUNK_BYTES = 1 << 16
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")  # a carriage return does not begin a line


class Follower:
    """Copies text that is appended to the log of a rank from now on."""

    def __init__(self, path: Path, rank: int, write: Callable[[str], None], *, every_s: float = POLL_S) -> None:
        self._path = path
        self._header = f"{LOG_HEADER}rank {rank} of ".encode()
        self._write = write
        self._every_s = every_s
        self._start_offset = path.stat().st_size if path.exists() else 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pending = b""
        self._at_line_start = True
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="paceline-follow", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Copy the rest and end the thread; may be called again."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _follow(self) -> None:
        file: BinaryIO | None = None
        try:
            while True:
                over = self._over.is_set()  # read before the last poll, which then copies everything
                if file is None and self._path.exists():
                    file = self._path.open("rb")
                    file.seek(self._start_offset)
                while file is not None and (chunk := file.read(_CHUNK_BYTES)):
                    self._copy(chunk)
                if over:
                    break
                self._over.wait(self._every_s)
        finally:
            self._put(self._pending)
            self._write(self._decoder.decode(b"", final=True))
            if file is not None:
                file.close()

    def _copy(self, chunk: bytes) -> None:
        """Write all lines but headers; an incomplete line that may be a header is buffered."""
        text, self._pending = self._pending + chunk, b""
        for line in _LINE.findall(text):
            begins = self._at_line_start and self._header.startswith(line[: len(self._header)])
            if begins and not line.endswith(b"\n"):
                self._pending = line
                return
            if not (begins and line.startswith(self._header)):
                self._put(line)
            self._at_line_start = line.endswith(b"\n")

    def _put(self, text: bytes) -> None:
        if text:
            self._write(self._decoder.decode(text))
