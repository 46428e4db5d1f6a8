"""The only printer: results on standard output, everything else on standard error.

`--json` asks for one object on standard output and nothing else, so whoever prints says which of
the two it is: `result` or `say`. A reader that closes its end of a pipe ends the printing, not the
work: a study goes on to its end after `paceline study | head -1`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TextIO

from paceline.reporting.wording.characters import printable

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from paceline.errors import PacelineError


class Console:
    """Standard output for results, standard error for what happens on the way to them."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = _Stream(out)
        self._err = _Stream(err)

    @classmethod
    def standard(cls) -> Console:
        """The console of this process."""
        return cls(sys.stdout, sys.stderr)

    def result(self, text: str) -> None:
        """Print what was asked for."""
        self._out.write(text.rstrip("\n") + "\n")
        self._out.flush()

    def json(self, value: dict[str, Any]) -> None:
        """Print the one object of `--json`; what is not a number is null, as JSON has no NaN."""
        from paceline.reporting.export.json_view import json_ready

        self.result(json.dumps(json_ready(value), indent=2, ensure_ascii=False, allow_nan=False))

    def copy(self, text: str, *, result: bool) -> None:
        """Print what another program has printed, as it stands."""
        stream = self._out if result else self._err
        stream.write(text)
        stream.flush()

    def say(self, text: str, style: str | None = None) -> None:
        """Print a line about what is going on."""
        self.terminal.print(_lines(text), style=style, markup=False, highlight=False, soft_wrap=True)

    def fact(self, name: str, text: str) -> None:
        """Print a line of the opening block."""
        self.say(f"{name:<10} {text}")

    def status(self, mark: str, text: str, *, result: bool = False) -> None:
        """Print a line that begins with `[ OK ]`, `[FAIL]`, `[WARN]` or another mark of four letters."""
        from rich.text import Text

        style = {"OK": "green", "FAIL": "bold red", "WARN": "yellow"}.get(mark, "")
        text = _lines(text).replace("\n", "\n" + " " * 7)
        line = Text.assemble(("[", ""), (f"{mark:^4}", style), ("] ", ""), text)
        (self.page if result else self.terminal).print(line, highlight=False, soft_wrap=True)

    def error(self, error: PacelineError) -> None:
        """Print what is wrong, what would be right and what to do next."""
        self.say(error.what, style="bold red")
        for part in (error.right, error.next):
            if part:
                self.say(part)

    def bug(self, error: Exception) -> None:
        """Print one line about an error of our own; its traceback goes into a file."""
        text = "".join(traceback.format_exception(error))
        what = f"This is a bug in Paceline: {type(error).__name__}: {error}."
        try:
            handle, path = tempfile.mkstemp(prefix="paceline-", suffix=".txt")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            self.say(f"{text}{what}")
            return
        self.say(f"{what} Please report it with {path}, where its traceback is.")

    @cached_property
    def terminal(self) -> RichConsole:
        """Standard error as rich sees it: NO_COLOR, TERM=dumb and redirection are honoured there."""
        from rich.console import Console as RichConsole

        return RichConsole(file=self._err, stderr=True)  # pyright: ignore[reportArgumentType]

    @cached_property
    def page(self) -> RichConsole:
        """Standard output as rich sees it."""
        from rich.console import Console as RichConsole

        return RichConsole(file=self._out)  # pyright: ignore[reportArgumentType]

    @property
    def interactive(self) -> bool:
        """Whether somebody watches standard error, so that a line can be drawn over."""
        return self._err.isatty() and not self.terminal.is_dumb_terminal

    @property
    def color(self) -> bool:
        """Whether results may be coloured."""
        return self.page.is_terminal and not self.page.is_dumb_terminal and not self.page.no_color

    @property
    def width(self) -> int:
        """Columns for results: those of the terminal, 100 where there is none."""
        return min(self.page.width, 120) if self._out.isatty() else 100


class _Stream:
    """A stream that goes quiet when nobody reads it any more, and can write any character."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:
            return self._stream.write(text.encode(self.encoding, "replace").decode(self.encoding))
        except BrokenPipeError:
            return self._deafen(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._deafen("")

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def _deafen(self, text: str) -> int:
        """Point the descriptor at nothing: what is buffered would fail again when Python exits."""
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self._stream.fileno())
        os.close(nothing)
        return len(text)


def _lines(text: str) -> str:
    """Text that is safe to print, with its lines and columns."""
    return printable(text, keep="\n\t")


def grid(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """A table as text; the columns named in `right` are aligned to the right."""
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    texts = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([texts[0], "─" * (sum(widths) + 2 * len(widths) - 2), *texts[1:]])
