"""Counters: CPU time, memory, context switches, page faults and energy of this rank, sampled once a second by a thread.

    with Counters(folder.rank_counters(rank), host_energy=local_rank == 0):
        ...

A sample reads a file per thread of the process and two others, some 0.2 ms in all. With hundreds of threads samples are
less frequent, so that they never cost more than a thousandth of a core. There is a sample at the start and one at the
end. An error here does not affect the training: sampling ends, and the log has the reason.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from paceline.errors import PacelineError
from paceline.probe.energy import Rapl
from paceline.probe.gpus import Nvml, gpu_memory, nvml
from paceline.probe.process_counters import ProcessCounters
from paceline.records.counters import Sample
from paceline.storage.counter_stream import CounterWriter

EVERY_S = 1.0
WRITE_EVERY = 10
"""Samples in a batch: a single one takes as many bytes on the disk as ten."""
_MOST_OF_A_CORE = 0.001

Source = Callable[[], Sample]


class Counters:
    """Samples this process into a file from `start` to `close`.

    `host_energy`: whether to read the energy meters of the host too; one rank of each host does.
    """

    def __init__(
        self,
        path: Path,
        *,
        host_energy: bool,
        every_s: float = EVERY_S,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        sources: Sequence[Source] | None = None,
    ) -> None:
        self._path = path
        self._host_energy = host_energy
        self._every_s = every_s
        self._clock_ns = clock_ns
        self._sources = sources
        self._samples: list[tuple[int, Sample]] = []
        self._num_samples = 0
        self._cost_s = 0.0
        """CPU time of the last sample."""
        self._writer: CounterWriter | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()
        self.problem: str | None = None
        """Why sampling ended early; None otherwise."""

    def start(self) -> None:
        """Take the first sample, then one per second until `close`."""
        if self._attempt(self._open):
            self._thread = threading.Thread(target=self._run, name="paceline-count", daemon=True)
            self._thread.start()

    def look(self) -> None:
        """Take an extra sample now, before threads end: their counters end with them."""
        if self._thread is not None and self.problem is None and os.getpid() == self._pid:
            self._attempt(self._sample)

    def close(self) -> None:
        """Take the last sample and end the file. A forked child does nothing."""
        if self._thread is None or os.getpid() != self._pid:
            return
        self._over.set()
        self._thread.join()
        self._thread = None
        if self.problem is None:
            self._attempt(self._end)

    def __enter__(self) -> Counters:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        if self._sources is None:
            self._sources = sources(host_energy=self._host_energy)
        self._writer = CounterWriter(self._path)
        self._sample()

    def _run(self) -> None:
        while not self._over.wait(max(self._every_s, self._cost_s / _MOST_OF_A_CORE)):
            began_s = time.thread_time()
            if not self._attempt(self._sample):
                return
            self._cost_s = time.thread_time() - began_s

    def _sample(self) -> None:
        with self._lock:
            at_ns, sample = self._clock_ns(), {}
            for source in self._sources or ():
                sample |= source()
            self._samples.append((at_ns, sample))
            self._num_samples += 1
            if self._num_samples % WRITE_EVERY == 1:  # the first one at once, for ranks that die early
                self._write()

    def _write(self) -> None:
        assert self._writer is not None, "`start` opens the file"
        samples, self._samples = self._samples, []
        self._writer.write(samples)

    def _end(self) -> None:
        assert self._writer is not None, "`start` opens the file"
        self._sample()
        self._write()
        self._writer.close()

    def _attempt(self, act: Callable[[], None]) -> bool:
        """Whether `act` succeeded; otherwise sampling ends."""
        try:
            act()
        except Exception as error:  # noqa: BLE001 - no error of the counters may end the training
            what = error.what if isinstance(error, PacelineError) else f"{type(error).__name__}: {error}"
            self.problem = f"Counters are not sampled any more: {what}"
            sys.stderr.write(f"{self.problem}\n")
            if self._writer is not None:
                with contextlib.suppress(Exception):  # the file may be the problem, which is reported already
                    self._write()
                with contextlib.suppress(Exception):
                    self._writer.close()
            return False
        return True


def sources(*, host_energy: bool) -> tuple[Source, ...]:
    """All counters that exist here: of this process, and of the host with `host_energy`."""
    own: tuple[Source, ...] = (ProcessCounters().sample, gpu_memory)
    return (*own, Rapl().sample, Nvml(nvml()).sample) if host_energy else own
