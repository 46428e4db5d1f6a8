"""Records within a record: typed parts in Python, whose fields are beside the others in JSON."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

Record = TypeVar("Record")


def part(cls: type[Record]) -> Record:
    """A field that is a record of its own in Python, and whose fields stand beside the others in JSON."""
    return dataclasses.field(default_factory=cls, metadata={"part": cls})
