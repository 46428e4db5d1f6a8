"""`paceline VERB`: runs a verb; errors become a message and an exit code.

    0   done
    1   the command was started and failed
    2   the request was wrong: nothing was started
    130 interrupted: finished runs stay in the folder

Importing cyclopts and rich takes 0.15 s, so the overview is built from the table below without them.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from paceline import __version__
from paceline.cli.console import Console
from paceline.errors import PacelineError, RequestError

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console as RichConsole
    from rich.console import ConsoleOptions

# verb -> ("module:attribute", usage after the verb, summary)
VERBS = {
    "study": (
        "paceline.cli.study:study",
        "[STUDY] [OPTIONS] [-- ARGUMENTS]",
        "Run a scaling study, or continue one, and report its results.",
    ),
    "studies": ("paceline.cli.studies:studies", "[--json]", "List the studies included in Paceline."),
    "train": (
        "paceline.cli.train:train",
        "[STUDY] [OPTIONS]",
        "Train once: one run of one point of a study.",
    ),
    "tune": ("paceline.cli.tune:verb", "", "Find a learning rate for a study with a range test."),
    "run": (
        "paceline.cli.run:run",
        "[OPTIONS] -- SCRIPT [ARGUMENTS]",
        "Run any PyTorch script on N ranks and show where its time goes.",
    ),
    "watch": (
        "paceline.cli.watch:watch",
        "DIR [OPTIONS]",
        "Watch a study while it runs, from another shell.",
    ),
    "report": (
        "paceline.cli.report:report",
        "DIR [OPTIONS]",
        "Rebuild the tables and the report of a study from its folder.",
    ),
    "trace": (
        "paceline.cli.trace:trace",
        "DIR [OPTIONS]",
        "Show where the time of one run went, by rank and by message.",
    ),
    "export": (
        "paceline.cli.export:export",
        "DIR --format NAME [OPTIONS]",
        "Write the trace of a run, or all runs, for Perfetto, TensorBoard, MLflow, ...",
    ),
    "compare": (
        "paceline.cli.compare:compare",
        "A B [MORE] [OPTIONS]",
        "Show what changed between studies or runs, and which changes are significant.",
    ),
    "data": ("paceline.cli.data:app", "", "List, fetch and check data sets."),
    "models": (
        "paceline.cli.models:models",
        "[NAME] [OPTIONS]",
        "List the models, or show the layers and parameters of one.",
    ),
    "doctor": (
        "paceline.cli.doctor:doctor",
        "[--site NAME] [--json]",
        "Check this machine, or a cluster's site profile, for training.",
    ),
    "completion": (
        "paceline.cli.completion:completion",
        "SHELL [--json]",
        "Print a shell script that completes verbs, options, studies and folders.",
    ),
}
_LEFT = 26  # a wider name gets a line of its own
_WIDTH = 100
_COMPLETE = "__complete"
"""The hidden verb that the scripts of `paceline completion` call to get names."""

_INTRODUCTION = "Paceline measures how distributed training scales, where the time goes, and what it costs."

_EXAMPLES = """\
    paceline study digits                     a first study: takes seconds, needs no download
    paceline study my-study.toml --ranks 1,2,4
    paceline run -n 2 -- train.py             any PyTorch script on two ranks
    paceline study --help                     the help of one verb"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    console, words = Console.standard(), list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(words, console)
    except PacelineError as error:
        error.next = error.next or error.otherwise.format(command=" ".join(["paceline", *words[:1]]))
        console.error(error)
        return error.exit_code
    except KeyboardInterrupt:
        console.say("Interrupted. Finished runs stay in the folder; the same command continues from there.")
        return 130
    except OSError as error:
        return _system_error(error, console)
    except Exception as error:  # noqa: BLE001  the user gets a message, and the traceback is written to a file
        console.bug(error)
        return 1


def _run(arguments: list[str], console: Console) -> int:
    if not arguments or arguments in (["--help"], ["-h"], ["help"]):
        console.result(overview())
        return 0
    if arguments == ["--version"]:
        console.result(__version__)
        return 0
    if arguments[0] in ("--help", "-h", "help"):
        arguments = [*arguments[1:], "--help"]
    if arguments[0] not in (*VERBS, _COMPLETE):
        raise _unknown(arguments[0])
    from cyclopts import CycloptsError

    from paceline.cli.options import doubled

    try:
        outcome = application(console)(
            doubled(arguments), result_action="return_value", print_error=False, exit_on_error=False
        )
    except CycloptsError as error:
        raise _refusal(error) from error
    return outcome if isinstance(outcome, int) else 0


def application(console: Console) -> App:
    """The cyclopts application; the module of a verb is imported when the verb is used."""
    from cyclopts import App

    app = App(
        name="paceline",
        version_flags=(),
        console=console.page,
        group_parameters="Options",
        help_format="plaintext",
        help_formatter=Plain(),
        suppress_keyboard_interrupt=False,
    )
    for verb, (path, usage, _) in VERBS.items():
        app.command(path, name=verb, **({"usage": f"paceline {verb} {usage}"} if usage else {}))
    return app


def overview() -> str:
    """The text of `paceline --help`."""
    verbs = columns((verb, summary) for verb, (_, _, summary) in VERBS.items())
    options = columns([("--help, -h", "Show this help, or that of a verb."), ("--version", "Show the version.")])
    return (
        f"Usage: paceline VERB ...\n\n{_INTRODUCTION}\n\nVerbs:\n{verbs}\n\nOptions:\n{options}\n\n"
        f"For example:\n\n{_EXAMPLES}\n"
    )


def _unknown(word: str) -> RequestError:
    from paceline.catalog import nearest

    near = nearest(word, list(VERBS))
    hint = f" Did you mean {near!r}?" if near else ""
    return RequestError(
        f"There is no {'option' if word.startswith('-') else 'verb'} called {word!r}.{hint}",
        right=f"Verbs: {', '.join(VERBS)}.",
        next="See: paceline --help",
    )


def _refusal(error: CycloptsError) -> RequestError:
    """The RequestError for a command line that cyclopts rejects."""
    from cyclopts import UnknownOptionError, UnusedCliTokensError

    error.verbose = False
    verbs: Sequence[Any] = error.command_chain or ()
    what = str(error).strip()
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        what = f"Unexpected argument: {' '.join(error.unused_tokens)}"
    right = ""
    if isinstance(error, UnknownOptionError) and [*verbs] == ["run"]:
        right = "The script and its arguments come after --: paceline run -n 2 -- train.py --epochs 3"
    return RequestError(what, right=right, next=f"See: {' '.join(['paceline', *verbs])} --help")


def _system_error(error: OSError, console: Console) -> int:
    """Exit code after a system error; a full disk or missing permission is printed as an error, not as a bug."""
    import errno
    from pathlib import Path

    from paceline.storage.codec import storage_error

    known = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)
    if error.errno not in known:
        console.bug(error)
        return 1
    refusal = storage_error(Path(str(error.filename or "the output")), error)
    console.error(refusal)
    return refusal.exit_code


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

    def __call__(self, console: RichConsole, options: ConsoleOptions, panel: HelpPanel) -> None:
        rows = [(_name(entry), _text(entry)) for entry in panel.entries]
        if rows:
            _put(console, f"{panel.title}:\n{columns(rows, console.width)}\n")

    def render_usage(self, console: RichConsole, options: ConsoleOptions, usage: Any) -> None:
        _put(console, f"Usage: {str(usage).strip()}\n")

    def render_description(self, console: RichConsole, options: ConsoleOptions, description: Any) -> None:
        """Print the description: paragraphs are wrapped, indented lines (commands) are not."""
        paragraphs = str(description.primary_renderable).strip().split("\n\n")
        width = min(console.width, _WIDTH)
        _put(console, "\n\n".join(p if p.startswith(" ") else textwrap.fill(p, width) for p in paragraphs) + "\n")


def _put(console: RichConsole, text: str) -> None:
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
