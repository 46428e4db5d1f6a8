"""Ranks that another program started: where their spans go is only known while the script runs.

    --out DIR given                        there
    the script joins a process group       rank 0 makes a folder and tells the others through the group's store
    it never does, and is alone            runs/<script>-<date>-<time>
    it never does, and is one of several   the same with the start of the program that started the ranks: that they have
                                           in common, on one host; under SLURM, with the number of the job's step

Until then spans are kept in memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.errors import FolderError
from paceline.identity import Identity, restarts, step_of_job
from paceline.probe.counters import Counters
from paceline.probe.recorder import Recorder
from paceline.records.codec import storage_error
from paceline.records.folder import RunFolder
from paceline.records.pulse import PulseWriter
from paceline.records.spans import SpanRow, SpanWriter

if TYPE_CHECKING:
    from paceline.probe.watch import Watcher

_KEY = "paceline/folder"
_PATIENCE = timedelta(seconds=60)
_RUNS = Path("runs")


class ExternalRank:
    """Where one rank that was started by others leaves its record."""

    def __init__(self, script: Path | str, out: Path | None, identity: Identity) -> None:
        self._name = script.stem if isinstance(script, Path) else script.replace(".", "-")
        self._identity = identity
        self._writer = DeferredSpanWriter()
        self._counters: Counters | None = None
        self._rank = identity.rank
        self.folder: RunFolder | None = None
        self.recorder = Recorder(self._writer, _NoPulse())
        self._out = None if out is None else _of_this_attempt(out)
        if self._out is not None:
            _refuse_used(RunFolder(self._out), identity.rank)

    def joined(self, watch: Watcher) -> None:
        """The script has its process group: agree with the other ranks."""
        assert watch.rank is not None and watch.size is not None
        if self.folder is None:
            self._rank = watch.rank
            self._settle(self._out or self._agreed(watch.rank, watch.size))

    def end(self) -> RunFolder:
        """The script is over: settle for a folder if there is none yet, and close the record."""
        if self.folder is None:
            self._settle(self._out or self._unagreed())
        assert self.folder is not None
        if self._counters is not None:
            self._counters.close()
        self.recorder.close()
        return self.folder

    def _settle(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self._writer.open(self.folder.rank_spans(self._rank))
        first_here = self._identity.local_rank == 0
        self._counters = Counters(self.folder.rank_counters(self._rank), host_energy=first_here)
        self._counters.start()

    def _agreed(self, rank: int, size: int) -> Path:
        """What rank 0 has chosen; told through the store that the group has met at."""
        from torch.distributed import DistError, distributed_c10d  # the script has loaded it long ago

        if size == 1:
            return _new_folder(self._name, datetime.now())
        store = distributed_c10d._get_default_store()
        if rank == 0:
            path = _new_folder(self._name, datetime.now())
            store.set(_KEY, str(path))
            return path
        try:
            store.wait([_KEY], _PATIENCE)
        except DistError:  # rank 0 runs without the probe
            return self._unagreed()
        return Path(store.get(_KEY).decode())

    def _unagreed(self) -> Path:
        """A folder that every rank of this launch finds by itself."""
        if self._identity.size == 1:
            return _new_folder(self._name, datetime.now())
        return (_RUNS / f"{self._name}-{step_of_job() or _stamp(_parent_started())}").absolute()


class DeferredSpanWriter(SpanWriter):
    """Keeps spans until it is told where they go."""

    def __init__(self) -> None:
        self._kept: list[SpanRow] = []
        self._writer: SpanWriter | None = None
        self._lock = threading.Lock()

    def open(self, path: Path) -> None:
        """Write what was kept, and everything from now on."""
        with self._lock:
            self._writer = SpanWriter(path)
            self._writer.write(self._kept)
            self._kept.clear()

    def write(self, rows: Sequence[SpanRow]) -> None:
        with self._lock:
            if self._writer is None:
                self._kept += rows
            else:
                self._writer.write(rows)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _NoPulse(PulseWriter):
    """Nobody watches the pulse of a rank that Paceline has not started."""

    def __init__(self) -> None:
        pass

    def beat(self, **changed: object) -> None:
        pass


def _of_this_attempt(out: Path) -> Path:
    """The folder that was asked for, or beside it where the launcher starts the ranks anew."""
    again = restarts()
    return (out.with_name(f"{out.name}-restart-{again}") if again else out).absolute()


def _refuse_used(folder: RunFolder, rank: int) -> None:
    """Raise FolderError where a rank of the same number has left its spans already."""
    if folder.rank_spans(rank).exists():
        raise FolderError(
            f"{folder.path} holds the spans of a run already.",
            right="Every run has a folder of its own.",
            next="Name another with --out DIR, or leave it out.",
        )


def _new_folder(name: str, at: datetime) -> Path:
    """Make `runs/<name>-<date>-<time>`, with a number where two runs begin in the same second."""
    for number in range(1, 1000):
        path = (_RUNS / f"{name}-{_stamp(at)}{'' if number == 1 else f'-{number}'}").absolute()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise storage_error(path, error) from error
        return path
    raise FolderError(f"There are a thousand runs of {name} in {_RUNS} that began this second.")


def _stamp(at: datetime) -> str:
    return at.strftime("%Y%m%d-%H%M%S")


def _parent_started() -> datetime:
    """When the program that started this rank was started."""
    import psutil  # needed by ranks alone that never talk to one another

    return datetime.fromtimestamp(psutil.Process(os.getppid()).create_time())
