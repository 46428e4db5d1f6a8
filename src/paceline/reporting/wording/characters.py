"""Text without control characters: names are read from files, and a terminal would execute escape sequences."""

from __future__ import annotations

import unicodedata

# Characters that reverse the text around them: in a name they could make a figure read as another.
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def printable(text: str, *, keep: str = "") -> str:
    """The text with spaces for control characters, but for those in `keep`, and nothing that turns it around."""
    return "".join(c if c in keep or " " <= c <= "~" else _printable(c) for c in text)


def _printable(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cs":  # half a character, which no file can be written with
        return "\ufffd"
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "" if character in _BIDI else character
