"""Console: what goes where, and in which form."""

from __future__ import annotations

import io
import json

import pytest

from paceline.cli.console import Console, grid
from paceline.errors import RequestError


@pytest.fixture
def streams() -> tuple[io.StringIO, io.StringIO]:
    return io.StringIO(), io.StringIO()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_results_and_everything_else_go_different_ways(streams: tuple[io.StringIO, io.StringIO]) -> None:
    out, err = streams
    console = Console(out, err)
    console.result("a result\n\n")
    console.say("a line")
    console.status("OK", "done")
    console.fact("Folder", "runs/x")
    console.error(RequestError("Wrong.", next="Try again."))
    assert out.getvalue() == "a result\n"
    assert err.getvalue() == "a line\n[ OK ] done\nFolder     runs/x\nWrong.\nTry again.\n"


def test_json_is_one_object_without_nan(streams: tuple[io.StringIO, io.StringIO]) -> None:
    out, err = streams
    Console(out, err).json({"a": float("nan"), "b": [float("inf"), 1.5, (2, None)], "ü": {"c": True}})
    assert json.loads(out.getvalue()) == {"a": None, "b": [None, 1.5, [2, None]], "ü": {"c": True}}
    assert err.getvalue() == ""


def test_long_lines_are_not_broken_and_brackets_are_no_markup(streams: tuple[io.StringIO, io.StringIO]) -> None:
    out, err = streams
    console = Console(out, err)
    console.say("[bold]x[/bold] " + "word " * 100 + "end")
    console.status("WARN", "[red]y[/red]")
    assert err.getvalue().count("\n") == 2
    assert "[bold]x[/bold]" in err.getvalue() and "[red]y[/red]" in err.getvalue()


def test_further_lines_of_a_status_are_indented(streams: tuple[io.StringIO, io.StringIO]) -> None:
    out, err = streams
    Console(out, err).status("FAIL", "what\nwhy")
    assert err.getvalue() == "[FAIL] what\n       why\n"


def test_names_cannot_steer_the_terminal(streams: tuple[io.StringIO, io.StringIO]) -> None:
    out, err = streams
    console = Console(out, err)
    console.say("a\x1b[31mb\x07\x9bc\u2028d")
    console.status("OK", "e\x1b]8;;x\x07f")
    assert err.getvalue() == "a [31mb  c d\n[ OK ] e ]8;;x f\n"


@pytest.mark.parametrize(
    ("variables", "color", "interactive"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colours_and_bars_follow_the_terminal(
    variables: dict[str, str], color: bool, interactive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    console = Console(Terminal(), Terminal())
    assert (console.color, console.interactive) == (color, interactive)


def test_without_a_terminal_there_is_neither_colour_nor_bar(streams: tuple[io.StringIO, io.StringIO]) -> None:
    console = Console(*streams)
    assert (console.color, console.interactive, console.width) == (False, False, 100)


def test_grid() -> None:
    text = grid(["name", "count"], [("a", "1"), ("bcdef", "1,000")], right=(1,))
    assert text == "name   count\n────────────\na          1\nbcdef  1,000"
