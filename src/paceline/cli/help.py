"""Help pages: the options of a verb in the layout of the overview.

Usage: paceline VERB ...

Options:
  --out DIR    help text, wrapped to the width of the terminal
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

_LEFT = 26  # a wider name gets a line of its own
_WIDTH = 100


def columns(rows: Iterable[tuple[str, str]], width: int = _WIDTH) -> str:
    """Two columns as text: names, and descriptions wrapped to `width`."""
    rows = list(rows)
    left = min(_LEFT, max((len(name) for name, _ in rows), default=0))
    lines = []
    for name, text in rows:
        wrapped = textwrap.wrap(text, max(20, min(width, _WIDTH) - left - 4), break_on_hyphens=False) or [""]
        if len(name) > left:
            lines.append(f"  {name}")
            name = ""
        lines.append(f"  {name:<{left}}  {wrapped[0]}".rstrip())
        lines.extend(" " * (left + 4) + line for line in wrapped[1:])
    return "\n".join(lines)


class Plain:
    """Formats the help of cyclopts as plain text without boxes."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        rows = [(_name(entry), _text(entry)) for entry in panel.entries]
        if rows:
            _put(console, f"{panel.title}:\n{columns(rows, console.width)}\n")

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        _put(console, f"Usage: {str(usage).strip()}\n")

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """Print the description: paragraphs are wrapped, indented lines (commands) are not."""
        paragraphs = str(description.primary_renderable).strip().split("\n\n")
        width = min(console.width, _WIDTH)
        _put(console, "\n\n".join(p if p.startswith(" ") else textwrap.fill(p, width) for p in paragraphs) + "\n")


def _put(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _name(entry: HelpEntry) -> str:
    if entry.positional_label:
        return entry.positional_label
    names = ", ".join((*entry.positive_shorts, *entry.positive_names))
    return f"{names} {entry.metavar}" if entry.metavar else names


def _text(entry: HelpEntry) -> str:
    text = str(getattr(entry.description, "primary_renderable", entry.description) or "")
    if entry.default is not None:
        text += f" [default: {entry.default}]"
    return text
