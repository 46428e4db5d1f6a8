"""A running run: its heartbeats, curves and spans. Nothing is written.

A poll reads only what was written since the last one. Missing, incomplete or damaged files are skipped: the next
poll may find them complete. Heartbeats and curves of an earlier attempt, which are older than
the manifest, are ignored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from paceline.errors import StorageError
from paceline.records.allocation import AllocationCheck, Clock
from paceline.records.live_study import RankLook, RunLook
from paceline.records.rank_trace import RankTrace
from paceline.records.run import Epoch, Job, Manifest, RankEnd
from paceline.records.script_outcome import ScriptOutcome
from paceline.storage.codec import read_record
from paceline.storage.curve_file import read_epochs
from paceline.storage.folder import RunFolder, instant_s
from paceline.storage.pulse import pulse
from paceline.units import counted

Record = TypeVar("Record")
_MOST_RANKS = 4096
"""Files of this many ranks are read at most."""
_EARLIER_S = 2.0
"""Tolerated difference between the clocks of the file server and this host."""
_NUMBER = re.compile(r"rank-(\d{4,6})\.")


class RunWatcher:
    """Polls one run folder."""

    def __init__(self, folder: RunFolder, label: str = "") -> None:
        self._folder = folder
        self._label = label
        self._read: dict[Path, tuple[tuple[int, int] | None, object]] = {}
        self._key = ""
        self._begin(0)

    def _begin(self, ranks: int) -> None:
        """Reset the spans: those that were read are of an earlier attempt."""
        from paceline.storage.span_stream import SpanTail  # pyarrow

        self._ranks = ranks
        self._tails = {rank: SpanTail(self._folder.rank_spans(rank), rank) for rank in range(ranks)}
        self._damaged: dict[int, str] = {}

    def look(self) -> RunLook:
        """The current state of the run."""
        manifest = self._record(self._folder.manifest, Manifest)
        ranks = min(manifest.point.ranks if manifest else self._num_ranks(), _MOST_RANKS)
        since_s = instant_s(manifest.launched_at) if manifest else None
        key = f"{self._folder.path}:{manifest.launched_at_ns if manifest else ranks}"
        if key != self._key:
            self._key, _ = key, self._begin(ranks)
        spans = self._spans()
        return RunLook(
            key=self._key,
            label=self._label or counted(ranks, "rank"),
            point_id=manifest.point_id if manifest else "",
            number=manifest.run if manifest else 0,
            attempt=manifest.attempt if manifest else 1,
            batch_per_rank=_batch_per_rank(manifest),
            launched_at_ns=manifest.launched_at_ns if manifest else None,
            elapsed_s=None if since_s is None else max(0.0, time.time() - since_s),
            phase=self._phase(manifest),
            ranks=tuple(self._rank(rank, manifest, since_s) for rank in range(ranks)),
            epochs=self._epochs(since_s),
            spans=spans,
            caught_up=all(tail.caught_up for tail in self._tails.values()),
            notes=tuple(self._notes(manifest)),
        )

    def _num_ranks(self) -> int:
        """Number of ranks that another program started: from their outcome, or from their files."""
        outcome = self._record(self._folder.rank_script(0), ScriptOutcome)
        files = (*_names(self._folder.spans), *_names(self._folder.ranks))
        seen = {int(found[1]) for name in files if (found := _NUMBER.match(name))}
        return max(outcome.size if outcome else 0, max(seen, default=-1) + 1)

    def _phase(self, manifest: Manifest | None) -> str:
        """The phase of a queued run; empty if its ranks report it."""
        job = self._record(self._folder.job, Job)
        if manifest and job and job.launched_at_ns == manifest.launched_at_ns and not job.over and not job.started_at:
            return f"queued as job {job.job_id}" if job.job_id else "queued"
        return ""

    def _rank(self, rank: int, manifest: Manifest | None, since_s: float | None) -> RankLook:
        place = self._folder.rank_pulse(rank)
        # A memory-mapped heartbeat does not change the file's modification time, which is the start of its rank.
        beating = pulse(place) if _is_of(place, since_s) else None
        return RankLook(rank=rank, pulse=beating, ended=self._ended(rank, manifest, since_s))

    def _ended(self, rank: int, manifest: Manifest | None, since_s: float | None) -> str | None:
        """How the process of a rank ended, from its wrapper or from a script's probe; None if it runs."""
        if manifest is None:
            outcome = self._record(self._folder.rank_script(rank), ScriptOutcome)
            return None if outcome is None else _exit_text(outcome.exit_code)
        place = self._folder.rank_end(rank)
        end = self._record(place, RankEnd) if _is_of(place, since_s) else None
        return None if end is None else _exit_text(end.code)

    def _epochs(self, since_s: float | None) -> tuple[Epoch, ...]:
        place = self._folder.curves
        if not _is_of(place, since_s):
            return ()
        changed = _status(place)
        if self._read.get(place, (None, ()))[0] != changed:
            self._read[place] = changed, tuple(read_epochs(place))
        epochs = self._read[place][1]
        assert isinstance(epochs, tuple)
        return epochs

    def _spans(self) -> tuple[RankTrace, ...]:
        """The spans that were flushed since the last poll, on one clock; all of them if a file was replaced."""
        from paceline.storage.run_trace import check_trace, on_one_clock

        clocks, found = self._clocks(), []
        for rank, tail in self._tails.items():
            if rank in self._damaged:
                continue
            try:
                new = tail.read()
                if new is None:
                    self._key = f"{self._key}+"
                    self._begin(self._ranks)
                    return ()
                if len(new):
                    check_trace(new)
                    found.append(on_one_clock(new, clocks.get(rank, ())))
            except StorageError as error:
                self._damaged[rank] = error.what
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                self._damaged[rank] = f"{self._folder.rank_spans(rank)} is damaged: {error}."
        return tuple(found)

    def _clocks(self) -> dict[int, list[Clock]]:
        check = self._record(self._folder.allocation_check, AllocationCheck)
        clocks: dict[int, list[Clock]] = {}
        for clock in check.clocks if check else ():
            clocks.setdefault(clock.rank, []).append(clock)
        return clocks

    def _notes(self, manifest: Manifest | None) -> Iterable[str]:
        yield from self._damaged.values()
        if manifest and manifest.point.device == "cuda":
            yield "On a GPU the ledger shows when the host queued its work, not when it was done."
        if manifest and manifest.point.script is not None:
            yield "Loss and accuracy of a script are not seen."

    def _record(self, path: Path, cls: type[Record]) -> Record | None:
        """A record of the run, cached until its file changes; None if it is missing or damaged."""
        changed = _status(path)
        if changed is None:
            return None
        known = self._read.get(path)
        if known is None or known[0] != changed:
            try:
                found: object = read_record(path, cls)
            except (StorageError, RecursionError):
                found = None
            self._read[path] = changed, found
        value = self._read[path][1]
        return value if isinstance(value, cls) else None


def _status(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_ino


def _is_of(path: Path, since_s: float | None) -> bool:
    """Whether a file was written after an instant, in seconds since 1970."""
    changed = _status(path)
    return changed is not None and (since_s is None or changed[0] / 1e9 >= since_s - _EARLIER_S)


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _exit_text(code: int) -> str:
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}" if code else "done"


def _batch_per_rank(manifest: Manifest | None) -> float | None:
    if manifest is None or manifest.point.script is not None:
        return None
    return manifest.point.batch_global / manifest.point.data_size
