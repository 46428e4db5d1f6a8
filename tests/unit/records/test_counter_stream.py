from __future__ import annotations

import contextlib
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import StorageError
from paceline.records.allocation import Clock, ProcessFacts
from paceline.records.counters import COUNTERS
from paceline.records.run import Machine
from paceline.storage.codec import write_record
from paceline.storage.counter_stream import CounterWriter, read_counter_file
from paceline.storage.folder import RunFolder
from paceline.storage.run_counters import read_counters

readings = st.dictionaries(st.sampled_from(COUNTERS), st.none() | st.integers(0, 2**62))
samples = st.tuples(st.integers(0, 2**62), readings)


def written(path, batches):
    writer = CounterWriter(path)
    for batch in batches:
        writer.write(batch)
    writer.close()
    return path


@settings(max_examples=20)
@given(st.lists(st.lists(samples, max_size=12), max_size=4))
def test_samples_come_back_as_they_were(tmp_path_factory, batches) -> None:
    path = written(tmp_path_factory.mktemp("counters") / "rank-0000.arrows", batches)
    counters = read_counter_file(path, 3)
    expected = [sample for batch in batches for sample in batch]
    assert (counters.rank, counters.truncated, len(counters)) == (3, False, len(expected))
    assert counters.at_ns.tolist() == [at_ns for at_ns, _ in expected]
    for name in COUNTERS:
        told = [sample.get(name) for _, sample in expected]
        assert counters.values[name].tolist() == [-1 if value is None else value for value in told]


def test_cut_at_any_byte_it_is_readable_up_to_the_last_full_batch(tmp_path) -> None:
    batch = [(at, {"user_ns": at * 7}) for at in range(10)]
    data = written(tmp_path / "whole.arrows", [batch, batch, batch]).read_bytes()
    sizes = set()
    for length in range(0, len(data), 29):
        (tmp_path / "cut.arrows").write_bytes(data[:length])
        try:
            sizes.add(len(read_counter_file(tmp_path / "cut.arrows", 0)))
        except StorageError:
            assert length < len(data) // 2
    assert sizes == {0, 10, 20, 30}


def test_what_is_written_can_be_read_while_the_writer_goes_on(tmp_path) -> None:
    writer = CounterWriter(tmp_path / "live.arrows")
    writer.write([(1, {"user_ns": 5})])
    assert read_counter_file(tmp_path / "live.arrows", 0).last("user_ns") == 5
    writer.close()


def test_a_counter_that_was_given_up_has_no_last_reading(tmp_path) -> None:
    rows = [(1, {"peak_bytes": 9, "user_ns": 1}), (2, {"peak_bytes": 4}), (3, {"user_ns": 7})]
    counters = read_counter_file(written(tmp_path / "some.arrows", [rows]), 0)
    assert (counters.last("peak_bytes"), counters.most("peak_bytes")) == (None, 9)
    assert (counters.last("user_ns"), counters.most("user_ns")) == (7, 7)
    assert (counters.last("gpu_uj"), counters.most("gpu_uj")) == (None, None)


def test_a_file_that_lacks_a_counter_is_refused(tmp_path) -> None:
    path = written(tmp_path / "whole.arrows", [[(1, {"user_ns": 5, "major_faults": 2})]])
    with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as stream:
        table = stream.read_all().drop_columns(["major_faults"])
    with pa.ipc.new_stream(tmp_path / "less.arrows", table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(StorageError, match="major_faults"):
        read_counter_file(tmp_path / "less.arrows", 0)


def foreign(path, schema: pa.Schema, *columns) -> None:
    with pa.ipc.new_stream(path, schema) as stream:
        stream.write_batch(pa.record_batch([pa.array(column) for column in columns], schema=schema))


def test_foreign_files_are_refused(tmp_path) -> None:
    ours = {"schema": "paceline.counters/1"}
    foreign(tmp_path / "spans", pa.schema([("at_ns", pa.int64())], metadata={"schema": "paceline.spans/2"}), [1])
    foreign(tmp_path / "words", pa.schema([("at_ns", pa.string())], metadata=ours), ["noon"])
    (tmp_path / "noise").write_bytes(b"\x00" * 100)
    foreign(tmp_path / "twice", pa.schema([("at_ns", pa.int64())] * 2, metadata=ours), [1], [2])
    whole = written(tmp_path / "whole", [[(1, {})]]).read_bytes()
    (tmp_path / "no-text").write_bytes(whole.replace(b"gpu_uj", b"gpu\xe8uj"))
    for name in ("spans", "words", "noise", "twice", "no-text", "missing"):
        with pytest.raises(StorageError):
            read_counter_file(tmp_path / name, 0)


def test_damaged_bytes_are_refused_or_cut_off_and_never_more(tmp_path) -> None:
    data = written(tmp_path / "whole", [[(at, {"user_ns": at}) for at in range(20)]] * 2).read_bytes()
    chance = random.Random(1)
    for _ in range(100):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[chance.randrange(len(data))] = chance.randrange(256)
        (tmp_path / "damaged").write_bytes(damaged)
        with contextlib.suppress(StorageError):
            assert len(read_counter_file(tmp_path / "damaged", 0)) in (0, 20, 40)


def machine(**changed) -> Machine:
    facts = {"hosts": ("a",), "cpu": "", "cores": 1, "logical_cores": 1, "memory_bytes": 1, "gpus": (), "platform": ""}
    return Machine(**facts, affinity=(), threads=(), devices=(), backend="gloo", versions={}, **changed)


def test_the_counters_of_a_run_stand_on_one_clock_and_know_their_place(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    for rank in (1, 0):
        written(folder.rank_counters(rank), [[(1000, {"user_ns": 5})]])
    clocks = (
        Clock(rank=0, offset_ns=0, error_ns=0, method="same"),
        Clock(rank=1, offset_ns=30, error_ns=1, method="x"),
    )
    ranks = tuple(ProcessFacts(rank=rank, host="h", node=f"n{rank}", boot_id="boot", threads=2) for rank in (0, 1))
    write_record(folder.machine, machine(clocks=clocks, ranks=ranks))
    first, second = read_counters(folder)
    assert (first.rank, first.at_ns.tolist(), first.host, first.machine, first.threads) == (0, [1000], "n0", "boot", 2)
    assert (second.rank, second.at_ns.tolist(), second.host) == (1, [970], "n1")


def test_a_run_without_a_machine_or_without_counters_is_read_as_far_as_it_goes(tmp_path) -> None:
    folder = RunFolder(tmp_path)
    assert read_counters(folder) == ()
    written(folder.rank_counters(0), [[(1000, {})]])
    folder.rank_counters(1).write_bytes(b"noise")
    (folder.counters / "rank-x.arrows").write_bytes(b"")
    whole, damaged = read_counters(folder)
    assert (len(whole), whole.truncated, whole.host, whole.threads) == (1, False, "", None)
    assert (damaged.rank, len(damaged), damaged.truncated, damaged.last("user_ns")) == (1, 0, True, None)
