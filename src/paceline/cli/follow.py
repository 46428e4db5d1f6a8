"""What a rank prints, as it comes: copied out of its log by a thread of its own.

    rank ──▶ logs/rank-0000.log ──▶ Follower ──▶ write(text)

The line that a launcher puts before every attempt is left out: what is seen is what the program itself has printed,
to the last character, whether it ends its lines or draws over them.
"""

from __future__ import annotations

import codecs
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from paceline.launch.child import LOG_HEADER

EVERY_S = 0.1
"""Between two looks: short for a reader, long for a machine."""
_CHUNK_BYTES = 1 << 16
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")  # a carriage return draws over a line and begins none


class Follower:
    """Copies what is added to a rank's log from now on."""

    def __init__(self, path: Path, rank: int, write: Callable[[str], None], *, every_s: float = EVERY_S) -> None:
        self._path = path
        self._header = f"{LOG_HEADER}rank {rank} of ".encode()
        self._write = write
        self._every_s = every_s
        self._begun_at = path.stat().st_size if path.exists() else 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = b""
        self._at_line_start = True
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="paceline-follow", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Copy the rest, and end; may be called again."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _follow(self) -> None:
        file: BinaryIO | None = None
        try:
            while True:
                over = self._over.is_set()  # before the last look: what was written until then is in it
                if file is None and self._path.exists():
                    file = self._path.open("rb")
                    file.seek(self._begun_at)
                while file is not None and (chunk := file.read(_CHUNK_BYTES)):
                    self._copy(chunk)
                if over:
                    break
                self._over.wait(self._every_s)
        finally:
            self._put(self._held)
            self._write(self._decoder.decode(b"", final=True))
            if file is not None:
                file.close()

    def _copy(self, chunk: bytes) -> None:
        """Hand on what is no header; the beginning of what may be one is held back until its line is whole."""
        text, self._held = self._held + chunk, b""
        for line in _LINE.findall(text):
            begins = self._at_line_start and self._header.startswith(line[: len(self._header)])
            if begins and not line.endswith(b"\n"):
                self._held = line
                return
            if not (begins and line.startswith(self._header)):
                self._put(line)
            self._at_line_start = line.endswith(b"\n")

    def _put(self, text: bytes) -> None:
        if text:
            self._write(self._decoder.decode(text))
