"""Faults in the learning curves of the active run, reported while it runs.

    rank 0 ──▶ curves.csv, a line per epoch ──▶ CurveWatch ──▶ "after epoch 1 it is at chance: ..."

The curves are read at every progress event and at the end of the run. Each fault of a run is reported once.
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
        # Lines of an earlier attempt are ignored until this attempt rewrites the file.
        self._read_at_ns = written_at_ns(path)
        self._seen = 0
        self._reported: set[str] = set()

    def look(self) -> list[str]:
        """New faults in the file; one system call if the file has not changed."""
        changed_at_ns = written_at_ns(self._path)
        if changed_at_ns is None or changed_at_ns == self._read_at_ns:
            return []
        self._read_at_ns = changed_at_ns
        return self.faults(read_epochs(self._path))

    def faults(self, epochs: Iterable[Epoch]) -> list[str]:
        """New faults in the epochs of a run, each as a clause without a full stop."""
        found = []
        for epoch in epochs:
            if epoch.epoch <= self._seen:
                continue
            self._seen = epoch.epoch
            for name, why in (("diverged", diverged(epoch)), ("dead", dead(epoch, self._classes))):
                if why and name not in self._reported:
                    self._reported.add(name)
                    found.append(note_text(why))
        return found


def written_at_ns(path: Path) -> int | None:
    """Modification time of a file; None if it cannot be read."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
