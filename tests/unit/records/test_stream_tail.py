"""Spans that are still being written: whole batches as they come, and nothing of what is not whole."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from paceline.errors import StorageError
from paceline.records.rank_trace import SPAN_KINDS, RankTrace
from paceline.records.trace_rows import joined
from paceline.storage.span_stream import SpanRow, SpanTail, SpanWriter, read_spans

FORWARD, MESSAGE = SPAN_KINDS.index("forward"), SPAN_KINDS.index("collective")


def forward(number: int, text: str | None = None) -> SpanRow:
    return (FORWARD, 10 * number, 10 * number + 5, number, text, -1, -1, None, -1, -1, None)


def flushes(path: Path, count: int, rows: int = 20) -> list[int]:
    """A file of so many batches, each with words of its own; its size after each."""
    writer, sizes = SpanWriter(path), []
    for number in range(count):
        writer.write([forward(number * rows + row, f"part {number}") for row in range(rows)])
        sizes.append(path.stat().st_size)
    writer.close()
    return sizes


def read(tail: SpanTail, most_bytes: int = 1 << 20) -> RankTrace:
    found = tail.read(most_bytes)
    assert found is not None
    return found


def test_a_look_finds_what_was_flushed_since_the_last(tmp_path: Path) -> None:
    path = tmp_path / "rank-0003.arrows"
    tail, writer = SpanTail(path, 3), SpanWriter(path)
    assert len(read(tail)) == 0, "nothing but a schema"
    writer.write([forward(1, "imports"), forward(2)])
    first = read(tail)
    assert first.rank == 3 and first.start_ns.tolist() == [10, 20] and list(first.operation) == ["imports", None]
    assert len(read(tail)) == 0
    writer.write([forward(3, "model")])
    writer.write([forward(4, "imports")])
    assert list(read(tail).operation) == ["model", "imports"]
    writer.close()
    assert len(read(tail)) == 0 and tail.caught_up


def test_a_file_that_is_not_there_yet_has_nothing_new(tmp_path: Path) -> None:
    tail = SpanTail(tmp_path / "spans" / "rank-0000.arrows", 0)
    assert len(read(tail)) == 0


def test_half_a_message_waits_for_its_other_half_wherever_it_is_cut(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.arrows", tmp_path / "growing.arrows"
    flushes(whole, 2, rows=2)
    data, wanted = whole.read_bytes(), read_spans(whole, 0)
    for cut in range(0, len(data), 37):
        path.unlink(missing_ok=True)
        tail = SpanTail(path, 0)
        path.write_bytes(data[:cut])
        first = read(tail)
        with path.open("ab") as file:
            file.write(data[cut:])
        both = joined(first, read(tail))
        assert both.start_ns.tolist() == wanted.start_ns.tolist() and list(both.operation) == list(wanted.operation)


def test_a_look_reads_no_more_than_it_may_and_goes_on_at_the_next(tmp_path: Path) -> None:
    path = tmp_path / "rank-0000.arrows"
    sizes = flushes(path, 6)
    tail, looks, rows = SpanTail(path, 0), 0, 0
    while not looks or not tail.caught_up:
        rows += len(read(tail, sizes[0] + 64))
        looks += 1
    assert rows == 120 and 3 <= looks <= 12


def test_a_message_that_is_larger_than_a_look_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "rank-0000.arrows"
    flushes(path, 1, rows=4000)
    tail, rows = SpanTail(path, 0), 0
    for _ in range(50):
        rows += len(read(tail, 128))
    assert rows == 4000


@pytest.mark.parametrize("way", ["truncated", "renamed"])
def test_another_file_in_its_place_is_said_and_then_read(tmp_path: Path, way: str) -> None:
    path = tmp_path / "rank-0000.arrows"
    flushes(path, 3)
    tail = SpanTail(path, 0)
    assert len(read(tail)) == 60
    if way == "truncated":
        flushes(path, 1)
    else:
        flushes(tmp_path / "other", 4)
        os.replace(tmp_path / "other", path)
    assert tail.read() is None
    assert len(read(tail)) == (20 if way == "truncated" else 80)


def test_what_is_no_trace_is_refused_and_noise_is_never_read(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "rank-0000.arrows"
    with pa.ipc.new_stream(str(path), pa.schema([("other", pa.int64())])) as stream:
        stream.write_batch(pa.record_batch({"other": [1]}))
    with pytest.raises(StorageError, match=r"is not a paceline\.spans"):
        SpanTail(path, 0).read()
    for noise in (b"", b"\x00" * 4096, b"\xff" * 4096, b"ARROW1" * 100, np.random.default_rng(0).bytes(100_000)):
        path.write_bytes(noise)
        assert len(read(SpanTail(path, 0))) == 0


def test_changed_bytes_give_a_sentence_or_less_and_no_other_error(tmp_path: Path) -> None:
    path = tmp_path / "rank-0000.arrows"
    flushes(path, 2, rows=5)
    data, random = path.read_bytes(), np.random.default_rng(1)
    for _ in range(150):
        changed = bytearray(data)
        changed[int(random.integers(len(data)))] ^= 1 << int(random.integers(8))
        path.write_bytes(changed)
        tail = SpanTail(path, 0)
        try:
            assert len(read(tail)) <= 10
        except StorageError as error:
            assert "damaged" in str(error) or "is not a" in str(error)


def test_a_message_told_twice_is_joined_to_one() -> None:
    def trace(end: int) -> RankTrace:
        from paceline.records.rank_trace import Words

        column = np.array([7])
        return RankTrace(
            rank=0,
            kind=np.array([MESSAGE], np.int8),
            start_ns=np.array([100]),
            end_ns=np.array([end]),
            step=column,
            operation=Words.of(["allreduce_"]),
            bytes=column,
            sequence=column,
            group=Words.of(["0"]),
            peer=np.array([-1]),
            begun_ns=np.array([-1]),
            dtype=Words.of([None]),
        )

    assert joined(trace(-1), trace(200)).end_ns.tolist() == [200]
    assert joined(trace(-1), trace(-1)).end_ns.tolist() == [-1]
