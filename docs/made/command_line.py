"""The command line as a page: every verb, its arguments and options, from the help that the program itself prints."""

from __future__ import annotations

from typing import Any

from docstrings import cell

from paceline.cli.app import VERBS, application
from paceline.cli.console import Console


def page() -> str:
    """All verbs in the order of `paceline --help`, those below them as sections of their own."""
    app = application(Console.standard())
    lines = ["| verb | what it does |", "|------|--------------|"]
    lines += [f"| [`paceline {verb}`](#paceline-{verb}) | {cell(about)} |" for verb, (_, _, about) in VERBS.items()]
    for verb in VERBS:
        lines += ["", *_section(app, (verb,))]
        for name in _below(app, verb):
            lines += ["", *_section(app, (verb, name))]
    return "\n".join(lines)


def _below(app: Any, verb: str) -> list[str]:
    return [name for name in app[verb] if not name.startswith("-")]


def _section(app: Any, words: tuple[str, ...]) -> list[str]:
    collected = Markdown()
    app.help_formatter = collected
    app.help_print(list(words))
    return [f"{'#' * (len(words) + 1)} paceline {' '.join(words)}", "", *collected.lines]


class Markdown:
    """Takes what cyclopts knows about a verb, and keeps it as the lines of a page."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, console: Any, options: Any, panel: Any) -> None:
        if panel.format == "command" or not panel.entries:
            return
        self.lines += [f"| {panel.title.lower()[:-1]} | default | meaning |", "|-----|---------|---------|"]
        for entry in panel.entries:
            default = "" if entry.default is None else f"`{entry.default}`"
            self.lines.append(f"| {_name(entry)} | {default} | {cell(_text(entry.description))} |")
        self.lines.append("")

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:
        self.lines += ["```text", str(usage).strip(), "```", ""]

    def render_description(self, console: Any, options: Any, description: Any) -> None:
        """Paragraphs stay what they are, indented ones are commands."""
        for paragraph in _text(description).strip().split("\n\n"):
            if paragraph.startswith(" "):
                commands = [line.strip() for line in paragraph.splitlines()]
                self.lines += ["```sh", *commands, "```", ""]
            else:
                self.lines += [" ".join(paragraph.split()), ""]


def _text(shown: Any) -> str:
    return str(getattr(shown, "primary_renderable", shown) or "")


def _name(entry: Any) -> str:
    if entry.positional_label:
        return f"`{entry.positional_label}`"
    names = ", ".join(f"`{name}`" for name in (*entry.positive_shorts, *entry.positive_names))
    return f"{names} {cell(entry.metavar)}" if entry.metavar else names
