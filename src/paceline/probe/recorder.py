"""Recorder: what this rank does, as spans, at a cost that does not show.

    with recorder.span("forward"):
        ...

A span costs under two microseconds: two clock readings and an append. Rows become an Arrow batch
every ten seconds, between two steps.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import TracebackType

from paceline.records.pulse import PulseWriter
from paceline.records.spans import SpanRow, SpanWriter
from paceline.records.trace import SPAN_KINDS
from paceline.units import nanoseconds

_KIND = {name: index for index, name in enumerate(SPAN_KINDS)}
# What the pulse says while a span is open; other spans are computation.
_PHASE = {"communicate": "communicate", "checkpoint": "checkpoint", "startup": "startup", "load": "startup"}
FLUSH_EVERY_NS = nanoseconds(10)


class Recorder:
    """Collects the spans and beats the pulse of one rank."""

    def __init__(
        self, writer: SpanWriter, pulse: PulseWriter, *, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._writer = writer
        self._pulse = pulse
        self.clock_ns = clock_ns
        # Rows may come from autograd's threads while a flush takes them out: a deque needs no lock for that.
        self._rows: deque[SpanRow] = deque()
        self._flushed_at = clock_ns()
        self._issued: dict[str, int] = {}
        self._num_collectives = 0
        self.step = -1
        self.phase = "startup"

    def span(self, kind: str) -> Span:
        """A context manager that records one span of `kind`."""
        return Span(self, kind)

    def add(self, kind: str, start_ns: int, end_ns: int) -> None:
        """Record a span that is already over."""
        self._rows.append((_KIND[kind], start_ns, end_ns, self.step, None, -1, -1, None, -1))

    def collective(self, operation: str, payload_bytes: int, group: str, *, symmetric: bool, peer: int = -1) -> None:
        """Record that a collective, or a message to or from `peer`, is being issued, now. Its end is not seen."""
        sequence = -1
        if symmetric:
            sequence = self._issued.get(group, 0)
            self._issued[group] = sequence + 1
        self._num_collectives += 1
        now_at_ns = self.clock_ns()
        row = (_KIND["collective"], now_at_ns, -1, self.step, operation, payload_bytes, sequence, group, peer)
        self._rows.append(row)
        # From here to the end of the span, backward say, this rank may be waiting for the others.
        if self.phase == "compute":
            self.phase = "communicate"
        self._pulse.beat(phase=self.phase, collectives=self._num_collectives)

    def beat(self, phase: str | None = None) -> None:
        """Show a sign of life, in a phase of its own where one is given."""
        self.phase = phase or self.phase
        self._pulse.beat(phase=self.phase)

    def begin_steps(self, step: int, total_steps: int) -> None:
        """Say how many steps there will be."""
        self.step = step
        self.phase = "compute"
        self._pulse.beat(step=step, total_steps=total_steps, phase=self.phase)

    def end_step(self, step: int) -> None:
        """Count an optimizer step; now and then hand the spans to the disk."""
        self.step = step
        self._pulse.beat(step=step)
        if self.clock_ns() - self._flushed_at > FLUSH_EVERY_NS:
            self.flush()

    def flush(self) -> None:
        """Write what has been collected so far."""
        rows = [self._rows.popleft() for _ in range(len(self._rows))]
        self._writer.write(rows)
        self._flushed_at = self.clock_ns()

    def close(self) -> None:
        """Write the rest and end the file."""
        self.flush()
        self._writer.close()


class Span:
    """One open span; made by `Recorder.span`."""

    __slots__ = ("_kind", "_outer_phase", "_recorder", "_started_at_ns")

    def __init__(self, recorder: Recorder, kind: str) -> None:
        self._recorder = recorder
        self._kind = kind

    def __enter__(self) -> None:
        self._outer_phase = self._recorder.phase
        self._recorder.beat(_PHASE.get(self._kind, "compute"))
        self._started_at_ns = self._recorder.clock_ns()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._recorder.add(self._kind, self._started_at_ns, self._recorder.clock_ns())
        self._recorder.beat(self._outer_phase)
