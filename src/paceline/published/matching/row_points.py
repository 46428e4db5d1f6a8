"""Which of our points stands for a row of a published table, or the reason why none does.

A row asks for settings (`run.ranks = 4`) and perhaps for hardware. Of several points that have the settings, the one is
taken that is at the study's first values in everything else. Where the hardware is not here, the first row of equal
settings is compared with what is, and says so; the others do not repeat its figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.published.records import PublishedRow, PublishedTable, Scalar
from paceline.records.results import PointResult, StudyResults
from paceline.records.study import Point, factor_value
from paceline.units import counted

Asked = Mapping[str, tuple[Scalar, ...]]
"""Path of a setting -> the values that will do."""

_GPUS = {"T4", "V100", "GPU"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The point of a row, or why it has none."""

    point: PointResult | None = None
    reason: str = ""
    note: str = ""
    """What it is compared with in place of what was published."""


def match(table: PublishedTable, index: int, results: StudyResults, further: Mapping[str, Scalar]) -> Match:
    """The point that stands for a row; `further` are settings that a column asks for besides."""
    row = table.rows[index]
    asked = {**row.settings, **{path: (value,) for path, value in further.items()}}
    note = ""
    if row.hardware and not _is_here(row.hardware, results):
        if not row.stand_in or _taken(table, index, results):
            return Match(reason=_absent(row, results))
        note = f"{_device(results)} in place of {row.hardware}"
    found = _closest([point for point in results.points if has_settings(point.point, asked)], results)
    if found is None:
        return Match(reason=_why_none(row, asked, results))
    if not found.runs:
        return Match(reason=_first_sentence(found.failure) if found.failure else "Not run yet.")
    return Match(point=found, note=note)


def has_settings(point: Point, asked: Asked) -> bool:
    """Whether a point has one of the values that are asked for, of every setting."""
    return all(setting_value(point, path) in values for path, values in asked.items())


def setting_value(point: Point, path: str) -> Scalar | None:
    """Value of a setting of a point; also `servers`, and both batch sizes, whichever is configured."""
    if path == "servers":
        return point.servers
    if path == "batch_global":
        return point.batch_global
    if path == "batch_per_rank":
        return point.train.batch_per_rank or point.batch_global // point.data_size
    return factor_value(point, path)


def _closest(points: Sequence[PointResult], results: StudyResults) -> PointResult | None:
    """The point with the most settings at the study's first values; finished points are preferred."""

    def distance(found: PointResult) -> tuple[bool, int]:
        changed = sum(setting_value(found.point, path) != values[0] for path, values in results.study.vary.items())
        return not found.runs, changed

    return min(points, key=distance, default=None)


def _is_here(hardware: str, results: StudyResults) -> bool:
    """Whether the ranks computed on such a GPU; any will do for `GPU`."""
    if results.machine is None or not any("cuda" in device for device in results.machine.devices):
        return False
    return any(hardware in name or hardware == "GPU" for name in results.machine.gpus)


def _taken(table: PublishedTable, index: int, results: StudyResults) -> bool:
    """Whether another row with the same settings has what is here: its own hardware, or as a stand-in before this."""
    alike = [i for i, row in enumerate(table.rows) if row.settings == table.rows[index].settings and i != index]
    return any(i < index or _is_here(table.rows[i].hardware, results) for i in alike)


def _device(results: StudyResults) -> str:
    gpus = results.machine.gpus if results.machine else ()
    used = results.machine is not None and any("cuda" in device for device in results.machine.devices)
    return gpus[0] if used and gpus else "CPU cores of this machine"


def _absent(row: PublishedRow, results: StudyResults) -> str:
    if row.hardware == "GPU":
        return "No GPU here."
    what = f"No {row.hardware} here" if row.hardware in _GPUS else f"No second machine here ({row.names[0]})"
    return f"{what}: what ran in its place stands in the row of equal settings." if row.stand_in else f"{what}."


def _why_none(row: PublishedRow, asked: Asked, results: StudyResults) -> str:
    """Why no point has these settings."""
    for left_out in results.not_run:
        if all(_value_of(left_out.settings, path, values) for path, values in asked.items()):
            return left_out.reason
    if row.study and row.study != results.study.name:
        return f"In another study: paceline study {row.study}"
    missing = next((path for path in asked if not _occurs(path, asked[path], results)), None)
    if missing is None:
        return "This study has no point with these settings together."
    size = f" at the size {results.study.size}" if results.study.size else ""
    return f"This study has no point with {_words(missing, asked[missing][0])}{size}."


def _value_of(settings: Mapping[str, Scalar | None], path: str, values: tuple[Scalar, ...]) -> bool:
    """Whether a point that was not run has the value, as far as it is known."""
    names = [path, path.rpartition(".")[2], f"run.{path}", f"train.{path}"]
    known = [settings[name] for name in names if name in settings]
    return not known or known[0] in values


def _occurs(path: str, values: tuple[Scalar, ...], results: StudyResults) -> bool:
    """Whether a point of the study, run or not, has one of the values."""
    left_out = any(one.settings.get(path) in values for one in results.not_run)
    return left_out or any(setting_value(point.point, path) in values for point in results.points)


def _words(path: str, value: Scalar) -> str:
    """A setting in words: `8 ranks`, `batch 2048`."""
    key = path.rpartition(".")[2]
    if key in ("ranks", "hosts", "servers", "epochs", "threads", "neurons", "layers") and isinstance(value, int):
        return counted(value, key.removesuffix("s"))
    return f"{key.replace('_', ' ')} {value}"


def _first_sentence(text: str) -> str:
    return "Failed: " + text.strip().split("\n", 1)[0]
