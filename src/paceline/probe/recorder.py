"""Recorder: the activity of this rank as spans, at low cost.

    with recorder.span("forward"):
        ...

    number = recorder.message("allreduce_", 4096, "0", dtype="float32")      when it is issued
    recorder.completed(number)                                               when it has ended, from any thread

A span costs under two microseconds: two clock readings and an append. A separate thread writes the rows as an Arrow
batch every ten seconds, so that the file of a rank that hangs has the spans before it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from paceline.errors import StorageError
from paceline.records.rank_trace import SPAN_KINDS
from paceline.storage.pulse import PulseWriter
from paceline.storage.span_stream import SpanRow, SpanWriter

_KIND = {name: index for index, name in enumerate(SPAN_KINDS)}
# The phase of the pulse while a span is open; other spans are computation.
_PHASE = {"communicate": "communicate", "checkpoint": "checkpoint", "startup": "startup", "load": "startup"}
FLUSH_EVERY_S = 10.0


class Recorder:
    """Collects the spans of one rank and updates its pulse."""

    def __init__(
        self, writer: SpanWriter, pulse: PulseWriter, *, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._writer = writer
        self._pulse = pulse
        self.clock_ns = clock_ns
        # Threads of autograd and gloo append rows while a flush removes them: a deque needs no lock for that.
        self._rows: deque[SpanRow] = deque()
        self._unfinished: dict[int, SpanRow] = {}
        self._written_unfinished: set[int] = set()
        self._issued: dict[str, int] = {}
        self._num_messages = 0
        self._writing = threading.Lock()
        self._problem: StorageError | None = None
        self._over = threading.Event()
        self._flusher: threading.Thread | None = None
        self.step = -1
        self.phase = "startup"

    def flush_every(self, interval_s: float = FLUSH_EVERY_S) -> None:
        """Write the spans periodically, from a separate thread, until the recorder is closed."""

        def flush() -> None:
            while not self._over.wait(interval_s):
                try:
                    self.flush()
                except StorageError as error:
                    self._problem = error  # the main thread raises it at the end of a step
                    return

        self._flusher = threading.Thread(target=flush, name="paceline-flush", daemon=True)
        self._flusher.start()

    def span(self, kind: str, operation: str | None = None) -> Span:
        """A context manager that records one span of `kind`."""
        return Span(self, kind, operation)

    def add(
        self, kind: str, start_ns: int, end_ns: int, operation: str | None = None, *, step: int | None = None
    ) -> None:
        """Record a span that has ended, of this step or of an earlier one."""
        step = self.step if step is None else step
        self._rows.append((_KIND[kind], start_ns, end_ns, step, operation, -1, -1, None, -1, -1, None))

    def message(
        self,
        operation: str,
        payload_bytes: int,
        group: str,
        *,
        symmetric: bool = True,
        peer: int = -1,
        dtype: str | None = None,
        ends: bool = True,
    ) -> int:
        """Record that a collective, or a message to or from `peer`, is issued now; returns the number for `completed`.

        `ends`: whether `completed` will be called.
        """
        sequence = -1
        if symmetric:
            sequence = self._issued.get(group, 0)
            self._issued[group] = sequence + 1
        number = self._num_messages = self._num_messages + 1
        issued = (_KIND["collective"], self.clock_ns(), -1, self.step)
        row: SpanRow = (*issued, operation, payload_bytes, sequence, group, peer, -1, dtype)
        if ends:
            self._unfinished[number] = row
        else:
            self._rows.append(row)
        # Until the end of the enclosing span, backward for instance, this rank may be waiting for others.
        if self.phase == "compute":
            self.phase = "communicate"
        self._pulse.beat(phase=self.phase, collectives=number)
        return number

    def group(self, name: str, ranks: Sequence[int]) -> None:
        """Record the members of a process group, before its first message."""
        now, members = self.clock_ns(), " ".join(map(str, ranks))
        self._rows.append((_KIND["group"], now, now, self.step, members, -1, -1, name, -1, -1, None))

    def completed(self, number: int) -> None:
        """Record that a message has ended now."""
        row = self._unfinished.pop(number, None)
        if row is not None:
            self._rows.append((*row[:2], self.clock_ns(), *row[3:]))

    def end_unknown(self, number: int) -> None:
        """Record that the end of a message will not be known."""
        row = self._unfinished.pop(number, None)
        if row is not None and number not in self._written_unfinished:
            self._rows.append(row)

    def beat(self, phase: str | None = None) -> None:
        """Update the pulse, and its phase if one is given."""
        self.phase = phase or self.phase
        self._pulse.beat(phase=self.phase)

    def begin_steps(self, step: int, total_steps: int) -> None:
        """Begin training at `step` of `total_steps`."""
        self.step = step
        self.phase = "compute"
        self._pulse.beat(step=step, total_steps=total_steps, phase=self.phase)

    def end_step(self, step: int) -> None:
        """Count an optimizer step; raises the error of a failed write."""
        self.step = step
        self._pulse.beat(step=step)
        if self._problem is not None:
            raise self._problem

    def flush(self) -> None:
        """Write the collected rows; messages that have not ended are written once, without their end."""
        with self._writing:
            rows = [self._rows.popleft() for _ in range(len(self._rows))]
            unfinished = {n: row for n, row in list(self._unfinished.items()) if n not in self._written_unfinished}
            self._written_unfinished = set(unfinished) | (self._written_unfinished & set(self._unfinished))
            self._writer.write([*rows, *unfinished.values()])

    def close(self) -> None:
        """Write the rest and end the file."""
        self._over.set()
        if self._flusher is not None:
            self._flusher.join()
        self.flush()
        self._writer.close()


class Span:
    """One open span, from `Recorder.span`."""

    __slots__ = ("_kind", "_operation", "_outer_phase", "_recorder", "_started_at_ns", "_step")

    def __init__(self, recorder: Recorder, kind: str, operation: str | None = None) -> None:
        self._recorder = recorder
        self._kind = kind
        self._operation = operation

    def __enter__(self) -> None:
        recorder = self._recorder
        self._outer_phase = recorder.phase
        recorder.beat(_PHASE.get(self._kind, "compute"))
        self._step = recorder.step
        self._started_at_ns = recorder.clock_ns()

    def __exit__(self, *_: object) -> None:
        recorder = self._recorder
        recorder.add(self._kind, self._started_at_ns, recorder.clock_ns(), self._operation, step=self._step)
        recorder.beat(self._outer_phase)
