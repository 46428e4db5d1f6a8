"""The public surface, pinned: a change here is a change for every user, and is made on purpose.

After such a change: python tests/golden/test_cli_surface.py > tests/golden/cli_help.txt
"""

from __future__ import annotations

import io
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console as RichConsole

import paceline
from paceline.cli.app import VERBS, application, overview
from paceline.cli.console import Console

HELP = Path(__file__).with_name("cli_help.txt")

SURFACE = {
    "study": [
        "STUDY",
        "ARGUMENTS",
        "--script",
        "--ranks",
        "--hosts",
        "--strategy",
        "--launcher",
        "--site",
        "--repeats",
        "--size",
        "--set",
        "--out",
        "--budget",
        "--dry-run",
        "--force",
        "--fresh",
        "--json",
    ],
    "studies": ["--json"],
    "train": [
        "STUDY",
        "--ranks",
        "--strategy",
        "--launcher",
        "--site",
        "--set",
        "--out",
        "--force",
        "--fresh",
        "--json",
    ],
    "tune lr": [
        "STUDY",
        "--ranks",
        "--from",
        "--to",
        "--steps",
        "--repeats",
        "--strategy",
        "--launcher",
        "--site",
        "--set",
        "--out",
        "--force",
        "--fresh",
        "--json",
    ],
    "run": [
        "SCRIPT",
        "--ranks",
        "-n",
        "--launcher",
        "--site",
        "--threads",
        "--set",
        "--out",
        "--force",
        "--fresh",
        "--json",
    ],
    "watch": ["DIR", "--every", "--once", "--json"],
    "report": ["DIR", "--target", "--margin", "--format", "--figures", "--width", "--json"],
    "trace": ["DIR", "--point", "--run", "--top", "--matrix", "--json"],
    "export": ["DIR", "--format", "--out", "--point", "--run", "--force", "--json"],
    "compare": ["A", "B", "MORE", "--out", "--fail-if-slower", "--json"],
    "data list": ["--json"],
    "data fetch": ["NAME", "--image-size", "--test", "--damaged", "--json"],
    "data check": ["NAME", "--image-size", "--test", "--damaged", "--json"],
    "data show": ["NAME", "--image-size", "--test", "--damaged", "--json"],
    "models": ["NAME", "--shape", "--classes", "--set", "--json"],
    "doctor": ["--site", "--json"],
    "completion": ["SHELL", "--json"],
}

ALL = [
    "PacelineError",
    "Results",
    "__version__",
    "compare",
    "doctor",
    "errors",
    "export",
    "open_results",
    "report",
    "run",
    "study",
    "trace",
    "train",
    "tune",
    "watch",
]


def app():
    return application(Console(io.StringIO(), io.StringIO()))


def options(verb: str) -> list[str]:
    """Arguments and options of a verb, in the order of its help; "*" is a group of options."""
    found = app()
    for word in verb.split():
        found = found[word]
    return [name for argument in found.assemble_argument_collection() for name in argument.names if name != "*"]


def help_text(verb: str) -> str:
    page = RichConsole(file=io.StringIO(), width=100)
    app().help_print(verb.split(), console=page)
    return page.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def all_help() -> str:
    pages = [("paceline --help", overview())]
    pages += [(f"paceline {group} --help", help_text(group)) for group in ("data", "tune")]
    pages += [(f"paceline {verb} --help", help_text(verb)) for verb in SURFACE]
    return "\n".join(f"$ {command}\n\n{page.rstrip()}\n" for command, page in pages)


def examples(text: str) -> list[str]:
    """Commands, without what a shell does with their output."""
    return re.findall(r"^    (paceline .*?)(?: {3,}.*| > .*)?$", text, flags=re.MULTILINE)


def test_the_public_names_are_these() -> None:
    assert paceline.__all__ == ALL
    assert len(ALL) <= 15


def test_the_verbs_are_these() -> None:
    assert list(VERBS) == list(dict.fromkeys(verb.split()[0] for verb in SURFACE))


@pytest.mark.parametrize("verb", SURFACE)
def test_the_options_are_these(verb: str) -> None:
    assert options(verb) == SURFACE[verb]


@pytest.mark.parametrize("verb", SURFACE)
def test_every_verb_can_answer_a_program(verb: str) -> None:
    assert "--json" in options(verb)


def test_the_help_is_this() -> None:
    assert all_help() == HELP.read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", [*SURFACE, "data", "tune"])
def test_every_verb_has_two_examples_that_can_be_given(verb: str) -> None:
    found = examples(help_text(verb))
    assert len(found) >= 2
    for command in found:
        assert command.startswith(f"paceline {verb}")
        app().parse_args(shlex.split(command)[1:], print_error=False, exit_on_error=False)


def test_the_examples_of_the_overview_can_be_given() -> None:
    found = [command for command in examples(overview()) if not command.endswith("--help")]
    assert len(found) >= 2
    for command in found:
        app().parse_args(shlex.split(command)[1:], print_error=False, exit_on_error=False)


def test_help_takes_less_than_a_third_of_a_second_of_a_core() -> None:
    """Of processor time, the best of a few: how long a busy machine lets it wait says nothing about it."""
    times_s = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "paceline", "--help"], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times_s) < 0.3, times_s


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from paceline.cli.app import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "pyarrow", "pydantic", "plotly", "psutil", "cyclopts", "rich", "scipy", "jinja2"}
    assert not heavy & set(done.stderr.split())


if __name__ == "__main__":
    sys.stdout.write(all_help())
