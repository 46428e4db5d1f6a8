"""Text that is safe to show."""

from __future__ import annotations

from paceline.reporting.wording.characters import printable


def test_what_a_terminal_would_obey_is_a_space() -> None:
    assert printable("a\x1b[31mb\x07\x9bc\u2028d\ne\tf") == "a [31mb  c d e f"
    assert printable("a\x1b\nb\tc\r", keep="\n\t") == "a \nb\tc "


def test_nothing_turns_the_text_around_or_breaks_it() -> None:
    assert printable("1\u202e2\u2067 \udcff") == "12 \ufffd"


def test_letters_of_all_scripts_stay() -> None:
    assert printable("é×→ 数据 ñ") == "é×→ 数据 ñ"
