"""Ranks that another program started: the folder of their spans is chosen while the script runs.

    --out DIR                               DIR
    the script joins a process group        rank 0 makes a folder and passes its path through the group's store
    no process group, one rank              runs/<script>-<date>-<time>
    no process group, several ranks         runs/<script>-<start of the parent process>, which the ranks of one host
                                            share; under SLURM, runs/<script>-<job step>

Until then spans are buffered in memory.
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
from paceline.probe.counter_sampler import Counters
from paceline.probe.recorder import Recorder
from paceline.storage.codec import storage_error
from paceline.storage.folder import RunFolder
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanRow, SpanWriter

if TYPE_CHECKING:
    from paceline.probe.watcher import Watcher

_KEY = "paceline/folder"
_PATIENCE = timedelta(seconds=60)
_RUNS = Path("runs")


class ExternalRank:
    """The recorder and run folder of a rank that another program started."""

    def __init__(self, script: Path | str, out: Path | None, identity: Identity) -> None:
        self._name = script.stem if isinstance(script, Path) else script.replace(".", "-")
        self._identity = identity
        self._writer = DeferredSpanWriter()
        self._counters: Counters | None = None
        self._rank = identity.rank
        self.folder: RunFolder | None = None
        self.recorder = Recorder(self._writer, _NoPulse())
        self._out = None if out is None else _attempt_folder(out)
        if self._out is not None:
            _refuse_used(RunFolder(self._out), identity.rank)

    def joined(self, watcher: Watcher) -> None:
        """The script has joined a process group: agree on a folder with the other ranks."""
        assert watcher.rank is not None and watcher.size is not None
        if self.folder is None:
            self._rank = watcher.rank
            self._open(self._out or self._agreed_folder(watcher.rank, watcher.size))

    def end(self) -> RunFolder:
        """The script has ended: choose a folder if there is none yet, and close the record."""
        if self.folder is None:
            self._open(self._out or self._own_folder())
        assert self.folder is not None
        if self._counters is not None:
            self._counters.close()
        self.recorder.close()
        return self.folder

    def _open(self, path: Path) -> None:
        self.folder = RunFolder(path)
        self._writer.open(self.folder.rank_spans(self._rank))
        first_here = self._identity.local_rank == 0
        self._counters = Counters(self.folder.rank_counters(self._rank), host_energy=first_here)
        self._counters.start()

    def _agreed_folder(self, rank: int, size: int) -> Path:
        """The folder that rank 0 chose, from the store of the process group."""
        from torch.distributed import DistError, distributed_c10d  # the script has imported it already

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
            return self._own_folder()
        return Path(store.get(_KEY).decode())

    def _own_folder(self) -> Path:
        """A folder that every rank of this launch finds without communication."""
        if self._identity.size == 1:
            return _new_folder(self._name, datetime.now())
        return (_RUNS / f"{self._name}-{step_of_job() or _stamp(_parent_started())}").absolute()


class DeferredSpanWriter(SpanWriter):
    """Holds spans in memory until `open`."""

    def __init__(self) -> None:
        self._rows: list[SpanRow] = []
        self._writer: SpanWriter | None = None
        self._lock = threading.Lock()

    def open(self, path: Path) -> None:
        """Write the buffered spans; later ones are written immediately."""
        with self._lock:
            self._writer = SpanWriter(path)
            self._writer.write(self._rows)
            self._rows.clear()

    def write(self, rows: Sequence[SpanRow]) -> None:
        with self._lock:
            if self._writer is None:
                self._rows += rows
            else:
                self._writer.write(rows)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _NoPulse(PulseWriter):
    """Writes nothing: no launcher watches the pulse of such a rank."""

    def __init__(self) -> None:
        pass

    def beat(self, **changed: object) -> None:
        pass


def _attempt_folder(out: Path) -> Path:
    """The requested folder; after a restart by the launcher, a new folder next to it."""
    restarted = restarts()
    return (out.with_name(f"{out.name}-restart-{restarted}") if restarted else out).absolute()


def _refuse_used(folder: RunFolder, rank: int) -> None:
    """Raise FolderError if the folder has spans of this rank already."""
    if folder.rank_spans(rank).exists():
        raise FolderError(
            f"{folder.path} has the spans of a run already.",
            right="Every run needs its own folder.",
            next="Name another with --out DIR, or omit it.",
        )


def _new_folder(name: str, at: datetime) -> Path:
    """Make `runs/<name>-<date>-<time>`, with a number if several runs begin in the same second."""
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
    """When the parent process was started."""
    import psutil  # only needed by ranks without a process group

    return datetime.fromtimestamp(psutil.Process(os.getppid()).create_time())
