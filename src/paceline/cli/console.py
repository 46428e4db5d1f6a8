"""All printing: results on standard output, everything else on standard error.

With `--json`, standard output has one object and nothing else. A closed pipe stops the printing but not the command:
`paceline study | head -1` completes the study.
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
    """Prints results to standard output, and progress, warnings and errors to standard error."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = _Stream(out)
        self._err = _Stream(err)

    @classmethod
    def standard(cls) -> Console:
        """The console of this process."""
        return cls(sys.stdout, sys.stderr)

    def result(self, text: str) -> None:
        """Print a result."""
        self._out.write(text.rstrip("\n") + "\n")
        self._out.flush()

    def json(self, value: dict[str, Any]) -> None:
        """Print the object of `--json`; NaN and infinity become null."""
        from paceline.reporting.export.json_view import json_ready

        self.result(json.dumps(json_ready(value), indent=2, ensure_ascii=False, allow_nan=False))

    def copy(self, text: str, *, result: bool) -> None:
        """Print the output of another program unchanged."""
        stream = self._out if result else self._err
        stream.write(text)
        stream.flush()

    def say(self, text: str, style: str | None = None) -> None:
        """Print a progress line."""
        self.terminal.print(_safe(text), style=style, markup=False, highlight=False, soft_wrap=True)

    def fact(self, name: str, text: str) -> None:
        """Print a line of the opening block."""
        self.say(f"{name:<10} {text}")

    def status(self, mark: str, text: str, *, result: bool = False) -> None:
        """Print a line that begins with `[ OK ]`, `[FAIL]`, `[WARN]` or another mark of four letters."""
        from rich.text import Text

        style = {"OK": "green", "FAIL": "bold red", "WARN": "yellow"}.get(mark, "")
        text = _safe(text).replace("\n", "\n" + " " * 7)
        line = Text.assemble(("[", ""), (f"{mark:^4}", style), ("] ", ""), text)
        (self.page if result else self.terminal).print(line, highlight=False, soft_wrap=True)

    def error(self, error: PacelineError) -> None:
        """Print the three parts of an error."""
        self.say(error.what, style="bold red")
        for part in (error.right, error.next):
            if part:
                self.say(part)

    def bug(self, error: Exception) -> None:
        """Print one line about an unexpected exception; its traceback is written to a file."""
        text = "".join(traceback.format_exception(error))
        what = f"This is a bug in Paceline: {type(error).__name__}: {error}."
        try:
            handle, path = tempfile.mkstemp(prefix="paceline-", suffix=".txt")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError:
            self.say(f"{text}{what}")
            return
        self.say(f"{what} Please report it with its traceback in {path}")

    @cached_property
    def terminal(self) -> RichConsole:
        """Standard error as a rich console, which respects NO_COLOR, TERM=dumb and redirection."""
        from rich.console import Console as RichConsole

        return RichConsole(file=self._err, stderr=True)  # pyright: ignore[reportArgumentType]

    @cached_property
    def page(self) -> RichConsole:
        """Standard output as a rich console."""
        from rich.console import Console as RichConsole

        return RichConsole(file=self._out)  # pyright: ignore[reportArgumentType]

    @property
    def interactive(self) -> bool:
        """Whether standard error is a terminal on which a line can be redrawn."""
        return self._err.isatty() and not self.terminal.is_dumb_terminal

    @property
    def color(self) -> bool:
        """Whether results may be coloured."""
        return self.page.is_terminal and not self.page.is_dumb_terminal and not self.page.no_color

    @property
    def width(self) -> int:
        """Columns for results: those of the terminal, at most 120; 100 without a terminal."""
        return min(self.page.width, 120) if self._out.isatty() else 100


class _Stream:
    """A stream that ignores a closed pipe, and replaces characters that its encoding lacks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except UnicodeEncodeError:
            return self._stream.write(text.encode(self.encoding, "replace").decode(self.encoding))
        except BrokenPipeError:
            return self._discard(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._discard("")

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def _discard(self, text: str) -> int:
        """Redirect the descriptor to /dev/null: buffered text would fail again when Python exits."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)
        return len(text)


def _safe(text: str) -> str:
    """The text without control characters, except newlines and tabs."""
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
