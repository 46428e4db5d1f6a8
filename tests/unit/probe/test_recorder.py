from __future__ import annotations

import numpy as np

from light_ranks.light_launch import wait_for
from paceline.errors import StorageError
from paceline.probe.recorder import Recorder
from paceline.records.rank_trace import SPAN_KINDS
from paceline.storage.pulse import PulseWriter, pulse
from paceline.storage.span_stream import SpanWriter, read_spans


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1
        return self.now


def recorder(tmp_path, clock):
    return Recorder(SpanWriter(tmp_path / "spans"), PulseWriter(tmp_path / "pulse"), clock_ns=clock)


def test_spans_nest_and_carry_their_step(tmp_path):
    record = recorder(tmp_path, Clock())
    with record.span("evaluate"), record.span("communicate"):
        record.completed(record.message("allreduce_", 40, "0", symmetric=True))
    record.begin_steps(0, 5)
    with record.span("forward"):
        pass
    record.close()
    trace = read_spans(tmp_path / "spans", 0)
    names = [SPAN_KINDS[kind] for kind in trace.kind]
    assert names == ["collective", "communicate", "evaluate", "forward"]
    issued, inner, outer, _ = zip(trace.start_ns, trace.end_ns, strict=True)
    assert outer[0] < inner[0] < issued[0] < inner[1] < outer[1]
    assert trace.step.tolist() == [-1, -1, -1, 0]
    assert (trace.bytes[0], trace.sequence[0], trace.group[0]) == (40, 0, "0")


def test_sequence_numbers_count_per_group_and_leave_messages_between_two_ranks_out(tmp_path):
    record = recorder(tmp_path, Clock())
    for group, symmetric in (("a", True), ("b", True), ("a", True), ("a", False), ("a", True)):
        record.message("x", 1, group, symmetric=symmetric)
    record.close()
    assert read_spans(tmp_path / "spans", 0).sequence.tolist() == [0, 0, 1, -1, 2]


def test_a_message_between_two_carries_its_peer(tmp_path):
    record = recorder(tmp_path, Clock())
    record.message("send", 8, "0", symmetric=False, peer=4)
    record.message("allreduce_", 8, "0", symmetric=True)
    record.close()
    assert read_spans(tmp_path / "spans", 0).peer.tolist() == [4, -1]


def test_the_pulse_follows(tmp_path):
    record = recorder(tmp_path, Clock())
    record.begin_steps(2, 9)
    with record.span("checkpoint"):
        assert pulse(tmp_path / "pulse").phase == "checkpoint"
    record.message("allreduce_", 1, "0", symmetric=True)
    now = pulse(tmp_path / "pulse")
    assert (now.phase, now.collectives, now.step, now.total_steps) == ("communicate", 1, 2, 9)
    with record.span("forward"):
        assert pulse(tmp_path / "pulse").phase == "compute"
    record.end_step(3)
    assert pulse(tmp_path / "pulse").step == 3
    record.close()


def test_a_span_gives_the_phase_back(tmp_path):
    """Rank 0 writes its checkpoint after an exchange inside it: it must not look as if it waited."""
    record = recorder(tmp_path, Clock())
    record.begin_steps(0, 9)
    with record.span("checkpoint"):
        with record.span("communicate"):
            record.message("allgather_", 1, "0", symmetric=True)
        assert pulse(tmp_path / "pulse").phase == "checkpoint"
    with record.span("startup"):
        record.message("broadcast_", 1, "0", symmetric=True)
        assert pulse(tmp_path / "pulse").phase == "startup"
    with record.span("backward"):
        record.message("allreduce_", 1, "0", symmetric=True)
        assert pulse(tmp_path / "pulse").phase == "communicate"
    assert pulse(tmp_path / "pulse").phase == "compute"
    record.close()


def test_spans_reach_the_disk_while_the_rank_hangs(tmp_path):
    record = recorder(tmp_path, Clock())
    with record.span("forward"):
        pass
    record.flush_every(0.01)
    assert wait_for(lambda: _spans_on_disk(tmp_path) == 1, 10)
    record.close()
    assert len(read_spans(tmp_path / "spans", 0)) == 1


def _spans_on_disk(folder):
    try:
        return len(read_spans(folder / "spans", 0))
    except StorageError:
        return 0


def test_a_full_disk_is_told_to_the_rank(tmp_path):
    class Full(SpanWriter):
        full = True

        def write(self, rows):
            if self.full:
                raise StorageError("The disk is full.")

    writer = Full(tmp_path / "spans")
    record = Recorder(writer, PulseWriter(tmp_path / "pulse"), clock_ns=Clock())
    record.flush_every(0.01)

    def told():
        try:
            record.end_step(1)
        except StorageError:
            return True

    assert wait_for(told, 10)
    writer.full = False
    record.close()


def test_a_message_ends_when_it_is_said_to(tmp_path):
    record = recorder(tmp_path, Clock())
    first = record.message("allreduce_", 8, "0", dtype="float32")
    second = record.message("allreduce_", 8, "0", dtype="float32")
    record.message("barrier", 0, "0", ends=False)
    record.completed(second)
    record.completed(first)
    record.completed(first)
    record.close()
    trace = read_spans(tmp_path / "spans", 0)
    assert dict(zip(trace.sequence.tolist(), trace.end_ns.tolist(), strict=True)) == {2: -1, 1: 4, 0: 5}
    assert [trace.dtype[row] for row in np.argsort(trace.sequence)] == ["float32", "float32", None]


def test_a_message_that_outlasts_a_flush_is_read_once(tmp_path):
    record = recorder(tmp_path, Clock())
    slow, lost = (record.message("allreduce_", 8, "0") for _ in range(2))
    record.flush()
    assert read_spans(tmp_path / "spans", 0).end_ns.tolist() == [-1, -1]
    record.flush()
    record.completed(slow)
    record.close()
    trace = read_spans(tmp_path / "spans", 0)
    assert sorted(zip(trace.sequence.tolist(), trace.end_ns.tolist(), strict=True)) == [(0, 3), (1, -1)]
    assert lost == 2


def test_groups_are_known_by_their_ranks(tmp_path):
    record = recorder(tmp_path, Clock())
    record.group("0", range(3))
    record.group("5", [0, 2])
    record.close()
    assert read_spans(tmp_path / "spans", 0).groups == {"0": (0, 1, 2), "5": (0, 2)}


def test_a_span_is_recorded_when_its_block_raises(tmp_path):
    record = recorder(tmp_path, Clock())
    try:
        with record.span("backward"):
            raise ValueError
    except ValueError:
        pass
    record.close()
    assert len(read_spans(tmp_path / "spans", 0)) == 1
