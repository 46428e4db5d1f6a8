"""Read and write records: atomically, with a schema version, never by pickle.

A file is written under a temporary name, synced and renamed, and the folder is synced: a reader
sees the old contents or the new ones, also after a kill or a power failure.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import secrets
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TypeVar

from paceline.errors import FolderError, StorageError

Record = TypeVar("Record")


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically, and sync it to the disk."""
    with whole_file(path) as file:
        file.write(data)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A temporary file to write to, which is renamed to `path` atomically when the block ends."""
    try:
        make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise storage_error(path, error) from error


def make_folder(path: Path) -> None:
    """Create a folder and its parents, and sync each new entry to the disk."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Sync the entries of a folder to the disk: otherwise a power failure can undo a rename."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def storage_error(path: Path, error: OSError) -> FolderError | StorageError:
    """The error for an operating-system error while writing `path`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(
            f"No space left while writing {path}.",
            right="Nothing that was finished is lost.",
            next="Free some space and run the same command again: it continues where it stopped.",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return FolderError(
            f"{path.parent} cannot be written to ({error.strerror}).",
            right="Paceline writes its runs and reports there.",
            next="Choose another folder with --out DIR.",
        )
    return StorageError(
        f"Writing {path} failed: {error.strerror or error}.",
        next="Run the same command again: it continues where it stopped.",
    )


def write_record(path: Path, record: object) -> None:
    """Write a dataclass that has a SCHEMA as JSON."""
    fields = {"schema": record.SCHEMA, **plain(record)}  # pyright: ignore[reportAttributeAccessIssue]
    write_atomically(path, (json.dumps(fields, indent=2, allow_nan=True) + "\n").encode())


def read_record(path: Path, cls: type[Record]) -> Record:
    """Read what `write_record` wrote; StorageError if the file is missing, damaged or of another kind."""
    try:
        fields = json.loads(path.read_bytes())
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    schema = cls.SCHEMA  # pyright: ignore[reportAttributeAccessIssue]
    if not isinstance(fields, dict) or fields.pop("schema", None) != schema:
        raise _damaged(path, f"it is not a {schema} file")
    try:
        return from_plain(cls, fields)
    except (TypeError, ValueError, KeyError) as error:
        raise _damaged(path, str(error)) from error


def optional_record(path: Path, cls: type[Record]) -> Record | None:
    """The record at `path`; None if it is missing or cannot be read."""
    with contextlib.suppress(StorageError):
        return read_record(path, cls)
    return None


def names(cls: type) -> list[str]:
    """The keys of a record in JSON."""
    found: list[str] = []
    for each in dataclasses.fields(cls):
        found += names(each.metadata["part"]) if "part" in each.metadata else [each.name]
    return found


def plain(record: object) -> dict[str, typing.Any]:
    """A dataclass as JSON-ready values."""
    values: dict[str, typing.Any] = dataclasses.asdict(record)  # pyright: ignore[reportArgumentType]
    for each in dataclasses.fields(record):  # pyright: ignore[reportArgumentType]
        if "part" in each.metadata:
            values |= values.pop(each.name)
    return values


def from_plain(cls: type[Record], fields: Mapping[str, typing.Any]) -> Record:
    """A dataclass from JSON values, with nested records, tuples and optional values."""
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(fields) - set(names(cls)))
    if unknown:
        raise ValueError(f"unknown fields {', '.join(unknown)}")
    values: dict[str, typing.Any] = {}
    for each in dataclasses.fields(cls):  # pyright: ignore[reportArgumentType]
        if own := each.metadata.get("part"):
            values[each.name] = from_plain(own, {name: fields[name] for name in names(own) if name in fields})
        elif each.name in fields:
            values[each.name] = _value(hints[each.name], fields[each.name])
    return cls(**values)


def _value(hint: typing.Any, value: typing.Any) -> typing.Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        choices = [a for a in arguments if a is not type(None)]
        return _value(next((a for a in choices if type(value) is a), choices[0]), value)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, dict):
            raise ValueError(f"expected an object, found {value!r}")
        return from_plain(typing.cast(type, hint), value)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"expected a list, found {value!r}")
        return tuple(_value(arguments[0], item) for item in value)
    if origin is dict and isinstance(value, dict):
        return {key: _value(arguments[1], item) for key, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (int, float, str, bool) and type(value) is not hint:
        raise ValueError(f"expected {hint.__name__}, found {value!r}")
    return value


def _damaged(path: Path, reason: str) -> StorageError:
    return StorageError(
        f"{path} is damaged or was written by another version: {reason}.",
        next="Move the folder away and run the study again, or use the version that wrote it.",
    )
