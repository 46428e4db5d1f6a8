"""The documentation as tests see it: pages, their fenced blocks, the commands and links in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.cli.app import application
from paceline.cli.console import Console
from paceline.cli.options import doubled

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEEDS = re.compile(r"<!-- needs: (.+) -->\n\Z")
_NAME = re.compile(r"# ([\w./-]+\.(?:py|toml))\n")
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: Path
    language: str
    text: str
    file: str | None
    """The name in its first line, where it is a file of the reader's."""
    needs: str = ""
    """What no test machine has, by the mark above it: its commands are not run."""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.file or self.text.split(chr(10), 1)[0]}"


def blocks(*languages: str) -> list[Block]:
    """The fenced blocks of all pages in some languages."""
    found = []
    for page in PAGES:
        whole = page.read_text(encoding="utf-8")
        for fence in _FENCE.finditer(whole):
            language, text = fence.groups()
            if language in languages:
                name, needs = _NAME.match(text), _NEEDS.search(whole[: fence.start()])
                found.append(Block(page, language, text, name[1] if name else None, needs[1] if needs else ""))
    return found


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links() -> Iterator[tuple[Path, str]]:
    """Every link and picture, with its page."""
    for page in PAGES:
        for target in _LINK.findall(prose(page)):
            yield page, target


def commands() -> Iterator[tuple[Block, list[str]]]:
    """Every command in a shell block, as words, without comments and redirections."""
    for block in blocks("sh"):
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield block, words[: words.index(">")] if ">" in words else words


def shell_lines() -> Iterator[tuple[Path, list[str]]]:
    """Every command in a shell block, with its page."""
    for block, words in commands():
        yield block.page, words


def inline_commands(program: str) -> Iterator[tuple[Path, list[str]]]:
    """Every command of a program that stands in running text, as words."""
    for page in PAGES:
        for code in _INLINE.findall(prose(page)):
            if code.split()[0] == program:
                yield page, shlex.split(code)


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def section(page: str, heading: str) -> str:
    """The text below a heading of a page of docs/, up to the next one of the same level or higher."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}$(.*?)(?=^\1 |^# |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{page} has no heading {heading!r}"
    return found[2]


def table(text: str) -> list[list[str]]:
    """The cells of all table rows in a text, without headings."""
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"]
    ruled = [index for index, row in enumerate(rows) if set("".join(row)) <= set("|-: ")]
    return [row for index, row in enumerate(rows) if index not in ruled and index + 1 not in ruled]


def names(text: str) -> list[str]:
    """What stands in backticks."""
    return _INLINE.findall(text)


def parsed(words: list[str]) -> tuple[str, dict[str, Any]]:
    """A verb and its arguments, as the program itself would understand them; nothing is run."""
    program, *arguments = words
    assert program == "paceline"
    if arguments in (["--help"], ["--version"]):
        return "", {}
    app = application(Console.standard())
    command, bound, _ = app.parse_args(doubled(arguments), print_error=False, exit_on_error=False)
    return command.__name__, dict(bound.arguments)
