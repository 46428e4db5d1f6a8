"""Reads a study file, by its path or by the name of a shipped study."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from paceline import catalog
from paceline.errors import StudyFileError
from paceline.studies.load.files import expanded
from paceline.studies.load.overrides import Tables

_SHIPPED = Path(__file__).parents[1] / "shipped"
_MAX_BYTES = 1_000_000


def shipped_files() -> tuple[Path, ...]:
    """The files of the shipped studies, by name."""
    return tuple(sorted(_SHIPPED.glob("*.toml")))


def study_path(source: str | Path) -> Path:
    """The file of a study; StudyFileError if there is none."""
    names = [path.stem for path in shipped_files()]
    if str(source) in names:
        return _SHIPPED / f"{source}.toml"
    path = expanded(source)
    if os.path.isfile(path):  # unlike Path.is_file, returns False for a name that is too long
        return path
    if os.path.isdir(path):
        resume = f"To go on with the study in it: paceline study {path / 'study.toml'} --out {path}"
        raise StudyFileError(
            f"{path} is a folder.",
            right="A study is a file that ends in .toml, or the name of a shipped study.",
            next=resume if (path / "study.toml").is_file() else "paceline studies lists the shipped ones.",
        )
    if path.suffix == ".toml" or len(path.parts) > 1:
        what = f"{path} is not a file." if os.path.exists(path) else f"There is no study file {path}."
    else:
        near = catalog.nearest(str(source), names)
        what = f"There is no study called {str(source)!r}." + (f" Did you mean {near!r}?" if near else "")
    raise StudyFileError(
        what,
        right="A study is a file that ends in .toml, or the name of a shipped study.",
        next="paceline studies lists the shipped ones.",
    )


def study_tables(path: Path) -> Tables:
    """The tables of a study file; StudyFileError if it is not TOML."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise StudyFileError(
                f"{path} has {path.stat().st_size:,} bytes: it is not a study file.",
                right="A study file is a page of TOML.",
                next="paceline studies lists examples.",
            )
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise StudyFileError(f"{path} cannot be read: {error.strerror}.", next="Check its permissions.") from error
    except UnicodeDecodeError as error:
        raise StudyFileError(
            f"{path} is not UTF-8 text (byte {error.start} is 0x{error.object[error.start]:02x}).",
            right="A study file is TOML, which is always UTF-8.",
            next="Save it as UTF-8 in your editor.",
        ) from error
    except RecursionError as error:
        raise StudyFileError(f"{path} nests its lists too deeply.", right="A study file is flat.") from error
    except ValueError as error:
        raise _syntax_error(path, str(error)) from error


def _syntax_error(path: Path, message: str) -> StudyFileError:
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, flags=re.DOTALL)
    reason = found[1] if found else message
    where = "" if not found else f", line {found[2]}, column {found[3]}" if found[2] else ", at its end"
    return StudyFileError(
        f"{path}{where}: this is not TOML ({reason[:1].lower()}{reason[1:]}).",
        right='Sections look like [train], values like lr = 0.001 or dataset = "mnist".',
        next="paceline studies lists examples.",
    )
