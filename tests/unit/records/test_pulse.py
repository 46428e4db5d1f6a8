from __future__ import annotations

from paceline.storage.pulse import Pulse, PulseWriter, pulse


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "ranks" / "rank-0000.pulse"
    assert pulse(path) is None
    writer = PulseWriter(path)
    assert pulse(path) is None
    writer.beat(phase="compute", step=3, total_steps=10)
    writer.beat(phase="communicate", collectives=7)
    assert pulse(path) == Pulse(beats=2, step=3, total_steps=10, collectives=7, phase="communicate")


def test_a_file_that_is_no_pulse_is_none(tmp_path):
    (tmp_path / "x").write_bytes(b"short")
    assert pulse(tmp_path / "x") is None
