from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import StorageError
from paceline.records.rank_trace import SPAN_KINDS
from paceline.storage.span_stream import SpanWriter, read_spans

big = st.integers(0, 2**55)
rows = st.tuples(
    st.integers(0, len(SPAN_KINDS) - 1),
    big,
    st.just(-1) | big,
    st.integers(-1, 2**31 - 1),
    st.none() | st.sampled_from(["allreduce_", "broadcast_"]),
    st.just(-1) | big,
    st.just(-1) | st.integers(0, 2**31 - 1),
    st.none() | st.sampled_from(["0", "1"]),
    st.just(-1) | st.integers(0, 2**31 - 1),
    st.just(-1) | big,
    st.none() | st.sampled_from(["float32", "int64"]),
)


def written(path, batches):
    writer = SpanWriter(path)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return path


@given(st.lists(st.lists(rows, max_size=20), max_size=4))
def test_spans_come_back_as_they_were(tmp_path_factory, batches):
    # Each begins at an instant of its own: a message that stands there twice is one whose end was seen later.
    numbers = itertools.count()
    batches = [[(row[0], row[1] * 128 + next(numbers), *row[2:]) for row in batch] for batch in batches]
    path = written(tmp_path_factory.mktemp("spans") / "rank-0000.arrows", batches)
    trace = read_spans(path, 3)
    assert (trace.rank, trace.truncated) == (3, False)
    columns = (trace.kind, trace.start_ns, trace.end_ns, trace.step, trace.operation)
    columns += (trace.bytes, trace.sequence, trace.group, trace.peer, trace.begun_ns, trace.dtype)
    assert list(zip(*(list(c) for c in columns), strict=True)) == [row for batch in batches for row in batch]


def test_cut_at_any_byte_it_is_readable_up_to_the_last_full_batch(tmp_path):
    batch = [(i % 9, i, i + 1, i, None, -1, -1, None, -1, -1, None) for i in range(50)]
    path = written(tmp_path / "whole.arrows", [batch, batch, batch])
    data = path.read_bytes()
    sizes = set()
    for length in range(0, len(data), 7):  # every byte: tests/property/test_bad_traces.py
        cut = tmp_path / "cut.arrows"
        cut.write_bytes(data[:length])
        try:
            trace = read_spans(cut, 0)
        except StorageError:
            assert length < len(data) // 2
            continue
        assert len(trace) in (0, 50, 100, 150)
        sizes.add(len(trace))
    assert sizes == {0, 50, 100, 150}


def test_what_is_flushed_can_be_read_while_the_writer_goes_on(tmp_path):
    writer = SpanWriter(tmp_path / "live.arrows")
    writer.write([(0, 1, 2, 0, None, -1, -1, None, -1, -1, None)])
    assert len(read_spans(tmp_path / "live.arrows", 0)) == 1
    writer.close()


def test_a_file_that_lacks_a_column_is_refused(tmp_path):
    path = written(tmp_path / "whole.arrows", [[(9, 1, -1, 0, "send", 40, -1, "0", 3, -1, "float32")]])
    with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
        table = stream.read_all().drop_columns(["peer"])
    with pa.ipc.new_stream(tmp_path / "less.arrows", table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(StorageError, match="peer"):
        read_spans(tmp_path / "less.arrows", 0)


@pytest.mark.parametrize("data", [b"", b"not arrow at all", bytes(100)])
def test_what_is_no_trace_is_refused(tmp_path, data):
    path = tmp_path / "x.arrows"
    path.write_bytes(data)
    with pytest.raises(StorageError):
        read_spans(path, 0)
