"""Loading a study by name, file or script, with the values that a call overrides; the folder of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import RequestError

if TYPE_CHECKING:
    from paceline.studies.load.load import LoadedStudy

Values = Mapping[str, Any] | Sequence[str] | None
"""Overrides of a study file: {"train.lr": 0.01}, or ["train.lr=0.01"] as after --set."""
DEFAULT_STUDY = "mnist-scaling"


def load(
    source: str | Path,
    *,
    ranks: int | Sequence[int] | None = None,
    hosts: int | Sequence[int] | None = None,
    strategy: str | Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
    site: str | None = None,
    repeats: int | None = None,
    set: Values = None,
    size: str | None = None,
) -> LoadedStudy:
    """The study of a name or file with everything that was overridden; StudyFileError where it is wrong.

    `size` is small or full, of a study that has both; small where None.
    """
    from paceline.studies.load.load import load_study

    named = {
        "run.ranks": ranks,
        "run.hosts": hosts,
        "run.strategy": strategy,
        "run.launcher": launcher,
        "launch.site": site,
        "run.repeats": repeats,
    }
    texts, values = _overrides(set, named)
    return load_study(source, texts, values=values, size=size)


def load_script(
    script: str | Path,
    arguments: Sequence[str] = (),
    *,
    ranks: int | Sequence[int] | None = None,
    hosts: int | Sequence[int] | None = None,
    strategy: str | Sequence[str] | None = None,
    launcher: str | Sequence[str] | None = None,
    site: str | None = None,
    repeats: int | None = None,
    threads: int | None = None,
    set: Values = None,
) -> LoadedStudy:
    """The study of a script of the user's own, named after its file; RequestError where it is no script."""
    from paceline.studies.load.load import load_script

    named = {
        "run.ranks": ranks,
        "run.hosts": hosts,
        "run.strategy": strategy,
        "run.launcher": launcher,
        "launch.site": site,
        "run.repeats": repeats,
        "run.threads": threads,
    }
    texts, values = _overrides(set, named)
    return load_script(script, arguments, texts, values=values)


def load_either(
    source: str | Path | None,
    script: str | Path | None,
    arguments: Sequence[str] = (),
    *,
    size: str | None = None,
    **options: Any,
) -> LoadedStudy:
    """The study of a name or file, or that of a script; RequestError where both are named."""
    if script is None and arguments:
        raise RequestError(
            f"There is nothing that {arguments[0]!r} could stand for here.",
            right="Words after -- are those of a script, which --script names.",
            next="See: paceline study --help",
        )
    if script is None:
        return load(source or DEFAULT_STUDY, size=size, **options)
    if source is not None:
        raise RequestError(
            f"{source} and --script {script} are both given: a study is made of one of them.",
            right="What belongs to the script comes after --.",
            next="For example: paceline study --script train.py --ranks 1,2 -- --epochs 3",
        )
    if size is not None:
        raise RequestError(
            f"--size and --script {script} are both given: a script has one size.",
            right="Two sizes are those of a study file that has [small].",
            next="Give the script other words after --, or leave --size out.",
        )
    return load_script(script, arguments, **options)


def study_folder(loaded: LoadedStudy, out: str | Path | None = None, *, prefix: str = "") -> Path:
    """Where a study's runs go: the folder that was asked for, or runs/NAME below the current one.

    The full size of a study that has two goes beside the small one, to runs/NAME-full.
    """
    suffix = "-full" if loaded.study.size == "full" else ""
    return Path("runs") / f"{prefix}{loaded.study.name}{suffix}" if out is None else Path(out).expanduser()


def _overrides(given: Values, named: Mapping[str, Any]) -> tuple[Sequence[str], dict[str, Any]]:
    """What `set` gives as `section.key=value`, and all values by path: those of options win over those of `set`."""
    options = {path: value for path, value in named.items() if value is not None}
    return ((), {**given, **options}) if isinstance(given, Mapping) else (given or (), options)
