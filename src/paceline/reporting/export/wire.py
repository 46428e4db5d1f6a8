"""Protocol buffers on the wire, as far as messages made of numbers and text need them.

    field      key, then value                key = number of the field << 3 | wire type
    varint     7 bits a byte, lowest first    the highest bit says that another byte follows
    text       length as varint, bytes        and so with messages inside messages

A negative int32 or int64 is written as the 64-bit number that it is in two's complement: ten bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

_VARINT, _LENGTH = 0, 2
_SHORT = tuple(bytes((low,)) for low in range(0x80)) + tuple(
    bytes((value & 0x7F | 0x80, value >> 7)) for value in range(0x80, 1 << 14)
)
"""What one or two bytes hold."""
_MORE = tuple(bytes((value & 0x7F | 0x80, value >> 7 | 0x80)) for value in range(1 << 14))
"""The lowest 14 bits of what takes more."""


def varint(value: int) -> bytes:
    """A whole number of at most 64 bits."""
    if 0 <= value < 1 << 14:
        return _SHORT[value]
    value &= (1 << 64) - 1
    encoded = b""
    while value >= 1 << 14:
        encoded += _MORE[value & 0x3FFF]
        value >>= 14
    return encoded + _SHORT[value]


@cache
def _key(field: int, wire_type: int) -> bytes:
    return varint(field << 3 | wire_type)


def number(field: int, value: int) -> bytes:
    """A field that is a whole number, an enumeration or a truth value."""
    return _key(field, _VARINT) + varint(value)


def scalar(field: int, value: int) -> bytes:
    """The same outside of a choice of fields, where 0 is what a field that is left out stands for."""
    return number(field, value) if value else b""


def block(field: int, value: bytes) -> bytes:
    """A field that is a message, or bytes."""
    return _key(field, _LENGTH) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """A field that is text; half a character, which UTF-8 does not have, is replaced."""
    return block(field, value.encode("utf-8", "replace"))


def numbers(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of whole numbers, packed as version 3 of the language has it; nothing where there are none."""
    packed = b"".join(map(varint, values))
    return block(field, packed) if packed else b""


def delimited(message: bytes) -> bytes:
    """A message in a file of several: its length before it."""
    return varint(len(message)) + message
