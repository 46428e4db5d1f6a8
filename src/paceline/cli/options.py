"""Options that several verbs share, and parsers of their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token

from paceline.cli import completers
from paceline.errors import RequestError

Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative="",
        show_default=False,
        help="Print one JSON object on standard output and nothing else.",
    ),
]
Source = Annotated[
    str,
    Parameter(
        completer=completers.studies,
        help="Name of a shipped study (see `paceline studies`), or a file such as my.toml.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        metavar="KEY=VALUE",
        negative="",
        help="Override a value of the study file, such as train.lr=0.01; repeatable.",
    ),
]
Strategy = Annotated[
    str | None,
    Parameter(metavar="NAME", completer=completers.names("strategy"), help="How ranks share the work: ddp, flat, ..."),
]
Launcher = Annotated[
    str | None,
    Parameter(
        metavar="NAME", completer=completers.names("launcher"), help="What starts the ranks: local, mpi, slurm, ..."
    ),
]
Site = Annotated[
    str | None,
    Parameter(
        metavar="NAME",
        completer=completers.sites,
        help="Site profile of a cluster, with defaults for launcher, partition, ...",
    ),
]
Force = Annotated[
    bool,
    Parameter(
        negative="",
        show_default=False,
        help="Run even if the allocation makes the figures meaningless, such as two ranks on one core.",
    ),
]
Fresh = Annotated[
    bool,
    Parameter(
        name="--fresh",
        negative="",
        show_default=False,
        help="Start over: an earlier study in the folder is renamed, not deleted.",
    ),
]
Out = Annotated[
    Path | None,
    Parameter(name="--out", metavar="DIR", help="Folder for the runs and the report; default: a folder below runs/."),
]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of a verb that executes one point of a study."""

    strategy: Strategy = None
    launcher: Launcher = None
    site: Site = None
    set: Overrides = None
    out: Out = None
    force: Force = False
    fresh: Fresh = False


DEFAULT_OPTIONS = RunOptions()


def strict_int(_: Any, tokens: Sequence[Token]) -> int:
    """The whole number of an option; cyclopts would round 1.5 to 2."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise RequestError(
            f"{tokens[0].keyword} {tokens[0].value} is not a whole number.",
            right=f"For example: {tokens[0].keyword} 2",
            next="See the help of the verb, such as: paceline study --help",
        ) from None


Count = Annotated[int, Parameter(metavar="N", converter=strict_int)]

RunOrStudy = Annotated[
    Path,
    Parameter(
        name="DIR",
        completer=completers.study_folders,
        help="Folder of a run, or of a study such as runs/mnist-scaling.",
    ),
]
PointName = Annotated[
    str | None,
    Parameter(
        name="--point",
        metavar="NAME",
        help="Point of the study: name of its folder, or a prefix of it; default: the point with the most ranks.",
    ),
]
RunNumber = Annotated[
    int | None,
    Parameter(name="--run", metavar="N", converter=strict_int, help="Run of the point; default: the median run."),
]


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """The numbers of a list such as `1,2,4`."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise RequestError(
            f"{option} {text!r} is not a list of whole numbers.",
            right=f"Separate them by commas, without spaces: {option} 1,2,4",
            next="See the help of the verb, such as: paceline study --help",
        ) from None


def doubled(arguments: Sequence[str]) -> list[str]:
    """A command line with its first `--` doubled: cyclopts removes one, and the verb still sees the other."""
    words = list(arguments)
    return [*words[: words.index("--")], "--", *words[words.index("--") :]] if "--" in words else words


def divided(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words before `--` and the words after it."""
    at = list(words).index("--") if "--" in words else len(words)
    return tuple(words[:at]), tuple(words[at + 1 :])


def words(text: str | None) -> str | list[str] | None:
    """The names of a list such as `ddp,flat`; a single name as text."""
    return text.split(",") if text is not None and "," in text else text
