from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from paceline.errors import StorageError
from paceline.storage.streams import check_schema, is_ended, validated

WORDS = pa.dictionary(pa.int8(), pa.string())
SCHEMA = pa.schema([pa.field("at", pa.int64()), pa.field("word", WORDS), pa.field("peer", pa.int32())])


def batch_of(word: pa.Array) -> pa.RecordBatch:
    return pa.record_batch([word], names=["word"])


def words(indices: list[int], known: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), known, safe=False)


WHOLE = batch_of(words([0, 1, 0], pa.array(["a", "b"])))


def refused(damaged: pa.RecordBatch) -> None:
    """Alone it is an error; after a whole one, the stream breaks off."""
    with pytest.raises(StorageError):
        list(validated([damaged], Path("x")))
    stream = validated([WHOLE, damaged], Path("x"))
    assert next(stream) is WHOLE
    with pytest.raises(pa.ArrowInvalid):
        next(stream)


def test_whole_batches_pass() -> None:
    batches = [WHOLE, batch_of(pa.array(["a", None, "b"]).dictionary_encode())]
    assert list(validated(batches, Path("x"))) == batches


@pytest.mark.parametrize("indices", [[0, 2], [-1, 0], [100]])
def test_an_index_that_leads_out_of_its_dictionary_is_refused(indices) -> None:
    refused(batch_of(words(indices, pa.array(["a", "b"]))))


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xe5"])
def test_words_that_are_no_text_are_refused(text) -> None:
    data, offsets = pa.py_buffer(text), pa.py_buffer(bytes(4) + len(text).to_bytes(4, "little"))
    known = pa.StringArray.from_buffers(1, offsets, data)
    refused(batch_of(words([0], known)))


def test_a_dictionary_that_lacks_a_word_is_refused() -> None:
    refused(batch_of(words([0], pa.array([None], pa.string()))))


def test_columns_have_to_be_what_they_are_written_as() -> None:
    check_schema(Path("x"), SCHEMA, SCHEMA)
    at = pa.field("at", pa.int64())
    for damaged in (SCHEMA.remove(2), SCHEMA.set(0, pa.field("at", pa.float64())), SCHEMA.append(at)):
        with pytest.raises(StorageError):
            check_schema(Path("x"), damaged, SCHEMA)


def test_a_stream_has_ended_when_its_writer_closed_it(tmp_path) -> None:
    path = tmp_path / "x.arrows"
    batch = pa.record_batch([pa.array([1, 2])], names=["at"])
    with path.open("wb") as file:
        stream = pa.ipc.new_stream(file, batch.schema)
        stream.write_batch(batch)
        file.flush()
        with pa.memory_map(str(path)) as source:
            assert not is_ended(source)
        stream.close()
    with pa.memory_map(str(path)) as source:
        assert is_ended(source)
        assert source.tell() == 0
