from __future__ import annotations

import itertools

from paceline.probe.recorder import FLUSH_EVERY_NS, Recorder
from paceline.records.pulse import PulseWriter, pulse
from paceline.records.spans import SpanWriter, read_spans
from paceline.records.trace import SPAN_KINDS


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
        record.collective("allreduce_", 40, "0", symmetric=True)
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
        record.collective("x", 1, group, symmetric=symmetric)
    record.close()
    assert read_spans(tmp_path / "spans", 0).sequence.tolist() == [0, 0, 1, -1, 2]


def test_a_message_between_two_carries_its_peer(tmp_path):
    record = recorder(tmp_path, Clock())
    record.collective("send", 8, "0", symmetric=False, peer=4)
    record.collective("allreduce_", 8, "0", symmetric=True)
    record.close()
    assert read_spans(tmp_path / "spans", 0).peer.tolist() == [4, -1]


def test_the_pulse_follows(tmp_path):
    record = recorder(tmp_path, Clock())
    record.begin_steps(2, 9)
    with record.span("checkpoint"):
        assert pulse(tmp_path / "pulse").phase == "checkpoint"
    record.collective("allreduce_", 1, "0", symmetric=True)
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
            record.collective("allgather_", 1, "0", symmetric=True)
        assert pulse(tmp_path / "pulse").phase == "checkpoint"
    with record.span("startup"):
        record.collective("broadcast_", 1, "0", symmetric=True)
        assert pulse(tmp_path / "pulse").phase == "startup"
    with record.span("backward"):
        record.collective("allreduce_", 1, "0", symmetric=True)
        assert pulse(tmp_path / "pulse").phase == "communicate"
    assert pulse(tmp_path / "pulse").phase == "compute"
    record.close()


def test_spans_reach_the_disk_between_steps(tmp_path):
    clock = Clock()
    record = recorder(tmp_path, clock)
    for step in itertools.count(1):
        with record.span("forward"):
            clock.now += FLUSH_EVERY_NS // 3
        record.end_step(step)
        if step == 8:
            break
    assert 3 <= len(read_spans(tmp_path / "spans", 0)) < 8
    record.close()
    assert len(read_spans(tmp_path / "spans", 0)) == 8


def test_a_span_is_recorded_when_its_block_raises(tmp_path):
    record = recorder(tmp_path, Clock())
    try:
        with record.span("backward"):
            raise ValueError
    except ValueError:
        pass
    record.close()
    assert len(read_spans(tmp_path / "spans", 0)) == 1
