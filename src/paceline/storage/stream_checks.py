"""Whether an Arrow stream is what was written: a kill cuts files short, bad disks and copies change bits.

pyarrow follows an index that leads out of its dictionary, and an offset that leads out of its text, to wherever in
memory that is. So nothing of a batch may be looked at that did not come through `sound`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from paceline.errors import StorageError

_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""What a stream ends with that was closed: a message of no length."""


def check_types(path: Path, found: pa.Schema, written: pa.Schema, *, later: Collection[str] = ()) -> None:
    """Raise StorageError where a column has another type than it is written with, or is gone.

    Files of earlier versions may lack those of `later`.
    """
    try:
        _ = found.names  # decodes them all, those that nobody asks for too
        for name in written.names:
            types = [found.field(place).type for place in found.get_all_field_indices(name)]
            if types != [written.field(name).type] and (types or name not in later):
                raise StorageError(f"{path} is damaged: its column {name} is not what was written.")
    except UnicodeDecodeError as error:
        raise StorageError(f"{path} is damaged: a column of it has no name.") from error


def sound(batches: Iterable[pa.RecordBatch], path: Path) -> Iterator[pa.RecordBatch]:
    """The batches of a stream as long as their values can have been written; StorageError where not even the first can.

    ArrowInvalid ends it, as where a stream breaks off.
    """
    for number, batch in enumerate(batches):
        try:
            _check(batch)
        except pa.ArrowInvalid as error:
            if number:
                raise
            raise StorageError(f"{path} is damaged: {error}.") from error
        yield batch


def _check(batch: pa.RecordBatch) -> None:
    """Raise ArrowInvalid where a value of a batch cannot have been written."""
    batch.validate(full=True)
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column.dictionary.validate(full=True)
            if column.dictionary.null_count:
                raise pa.ArrowInvalid("a word of a dictionary is missing")


def is_ended(source: pa.NativeFile) -> bool:
    """Whether the stream in a file was closed by its writer; the place to read from stays where it is."""
    place = source.tell()
    source.seek(max(0, source.size() - len(_END)))
    ended = source.read() == _END
    source.seek(place)
    return ended
