"""Loading a study by name, file or script, with overridden values; the folder of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.errors import RequestError
from paceline.studies.load import load as loading

if TYPE_CHECKING:
    from paceline.studies.load.load import LoadedStudy

Values = Mapping[str, Any] | Sequence[str] | None
"""Overrides of a study file: {"train.lr": 0.01}, or ["train.lr=0.01"] as after --set."""
DEFAULT_STUDY = "mnist-scaling"
_KEYS = {
    "ranks": "run.ranks",
    "hosts": "run.hosts",
    "strategy": "run.strategy",
    "launcher": "run.launcher",
    "site": "launch.site",
    "repeats": "run.repeats",
    "threads": "run.threads",
}
"""Options of a call -> keys of a study file."""


def load(source: str | Path, *, set: Values = None, size: str | None = None, **options: Any) -> LoadedStudy:
    """The study of a name or file with overridden values; StudyFileError if it is wrong.

    `options` are those of _KEYS. `size` is small or full, for a study that has both; small if None.
    """
    texts, values = _overrides(set, options)
    return loading.load_study(source, texts, values=values, size=size)


def load_script(
    script: str | Path, arguments: Sequence[str] = (), *, set: Values = None, **options: Any
) -> LoadedStudy:
    """The study of the user's script, named after its file; RequestError if it is not a script."""
    texts, values = _overrides(set, options)
    return loading.load_script(script, arguments, texts, values=values)


def load_either(
    source: str | Path | None,
    script: str | Path | None,
    arguments: Sequence[str] = (),
    *,
    size: str | None = None,
    **options: Any,
) -> LoadedStudy:
    """The study of a name or file, or that of a script; RequestError if both are named."""
    if script is None and arguments:
        raise RequestError(
            f"Unexpected argument: {arguments[0]}",
            right="Only a script takes arguments, and --script (in Python: script=) names it.",
            next="See: paceline study --help",
        )
    if script is None:
        return load(source or DEFAULT_STUDY, size=size, **options)
    if source is not None:
        raise RequestError(
            f"Both a study ({source}) and a script ({script}) are named.",
            right="Use one of them. The arguments of a script come after --.",
            next="For example: paceline study --script train.py --ranks 1,2 -- --epochs 3",
        )
    if size is not None:
        raise RequestError(
            f"The size {size!r} cannot be used with a script ({script}).",
            right="Only a study file with [small] has two sizes.",
            next="Leave the size out, and change the arguments of the script instead.",
        )
    return load_script(script, arguments, **options)


def study_folder(loaded: LoadedStudy, out: str | Path | None = None, *, prefix: str = "") -> Path:
    """The folder of a study: `out`, or runs/NAME; runs/NAME-full for the full size of a study that has two."""
    suffix = "-full" if loaded.study.size == "full" else ""
    return Path("runs") / f"{prefix}{loaded.study.name}{suffix}" if out is None else Path(out).expanduser()


def _overrides(given: Values, options: Mapping[str, Any]) -> tuple[Sequence[str], dict[str, Any]]:
    """The overrides `section.key=value`, and all other values by key; options take precedence over `given`."""
    named = {_KEYS[name]: value for name, value in options.items() if value is not None}
    return ((), {**given, **named}) if isinstance(given, Mapping) else (given or (), named)
