"""The curves of the run that is on, looked at line by line as they appear: what is wrong is said while it runs.

    rank 0 ──▶ curves.csv, a line per epoch ──▶ CurveWatch ──▶ "after epoch 1 it is at chance: ..."

The launcher's side looks whenever a rank says that it moves, and once more when the run is over, so that no fault of
a short run is missed. Each fault of a run is said once.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from paceline.analyze.learning.faults import dead, diverged
from paceline.records.run import Epoch
from paceline.reporting.wording.note_words import note_text
from paceline.storage.curve_file import read_epochs


class CurveWatch:
    """Finds faults in the epochs of one run."""

    def __init__(self, path: Path, classes: int | None) -> None:
        self._path = path
        self._classes = classes
        # Lines that an earlier attempt left: they count when this one writes them again.
        self._read_at_ns = _written_at_ns(path)
        self._seen = 0
        self._told: set[str] = set()

    def look(self) -> list[str]:
        """Faults in what was added to the file since the last look; costs a system call where nothing was."""
        written_at_ns = _written_at_ns(self._path)
        if written_at_ns is None or written_at_ns == self._read_at_ns:
            return []
        self._read_at_ns = written_at_ns
        return self.faults(read_epochs(self._path))

    def faults(self, epochs: Iterable[Epoch]) -> list[str]:
        """Faults, each in a sentence without its end, in those epochs of a run that were not looked at yet."""
        found = []
        for epoch in epochs:
            if epoch.epoch <= self._seen:
                continue
            self._seen = epoch.epoch
            for name, why in (("diverged", diverged(epoch)), ("dead", dead(epoch, self._classes))):
                if why and name not in self._told:
                    self._told.add(name)
                    found.append(note_text(why))
        return found


def _written_at_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
