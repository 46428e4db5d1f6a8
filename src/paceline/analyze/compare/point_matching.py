"""Matching of the points of two studies, and the differences between the studies.

A setting differs between the studies if no value that it has in A occurs in B. Points match if they agree in all other
settings. The number of ranks is never such a difference.

    A: ddp on 1, 2, 4 ranks        apart: run.strategy        pairs: 1 rank, 2 ranks
    B: flat on 1, 2, 8 ranks                                  only in A: 4 ranks; only in B: 8 ranks
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from paceline.records.changes import Difference
from paceline.records.run import Machine
from paceline.records.study import Point
from paceline.units import bytes_text

RANKS = "run.ranks"
_SECTIONS = {"options": "run", "site": "launch"}
_DIGESTS = {"data_digest": "data.digest", "model_digest": "model.digest", "script_digest": "script.digest"}
# Files are compared by digest and name, not by folder.
_FILES = ("data.dataset", "model.name", "script.path")
_DIGEST_SHOWN = 12
_MACHINE = ("hosts", "cpu", "cores", "logical_cores", "memory_bytes", "gpus", "platform", "backend")

Settings = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Matched points of two studies."""

    pairs: tuple[tuple[Point, Point], ...]
    """In order of ranks."""
    apart: tuple[Difference, ...]
    """Settings without a common value."""
    only_a: tuple[Point, ...]
    only_b: tuple[Point, ...]


def matching(a: Sequence[Point], b: Sequence[Point]) -> Matching:
    """Pairs of points that agree in all settings with a common value."""
    apart = settings_apart([settings(point) for point in a], [settings(point) for point in b], keep=(RANKS,))
    ignored = {difference.name for difference in apart}
    first, second = _by_settings(a, ignored), _by_settings(b, ignored)
    # If several points of a side agree in these settings, the match is ambiguous.
    common = [key for key, own in first.items() if len(own) == 1 and len(second.get(key, ())) == 1]
    pairs = sorted(((first[key][0], second[key][0]) for key in common), key=lambda pair: pair[0].ranks)
    return Matching(
        pairs=tuple(pairs),
        apart=apart,
        only_a=_unmatched(first, common),
        only_b=_unmatched(second, common),
    )


def settings(point: Point) -> Settings:
    """Key of a study file -> value of a point."""
    found: dict[str, object] = {}
    # A script has its own data, model and training: these sections are unused.
    unused = (
        ("script", "script_digest")
        if point.script is None
        else ("data", "augment", "model", "train", "finetune", "data_digest", "model_digest")
    )
    for name, value in asdict(point).items():
        if name in unused:
            continue
        if isinstance(value, dict):
            section = _SECTIONS.get(name, name)
            options = value.pop("options", None)
            found |= {f"{section}.{key}": item for key, item in {**value, **(options or {})}.items()}
        elif name in _DIGESTS:
            found[_DIGESTS[name]] = value[:_DIGEST_SHOWN] or None if isinstance(value, str) else value
        else:
            found[f"run.{name}"] = value
    for name in _FILES:
        if isinstance(path := found.get(name), str):
            found[name] = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return found


def settings_apart(a: Sequence[Settings], b: Sequence[Settings], keep: Sequence[str] = ()) -> tuple[Difference, ...]:
    """Settings without a value that occurs on both sides, except for those in `keep`."""
    found = []
    for name in dict.fromkeys(name for each in (*a, *b) for name in each):
        first, second = ({_text(each.get(name)): None for each in side} for side in (a, b))
        if name not in keep and not first.keys() & second.keys():
            found.append(Difference(section="setting", name=name, a=_values(first), b=_values(second)))
    return tuple(found)


def machines_apart(a: Machine | None, b: Machine | None) -> tuple[Difference, ...]:
    """Differences of machines and versions; a single one if a machine is unknown."""
    if a is None or b is None:
        if a is b:
            return ()
        known = [None if machine is None else machine.cpu for machine in (a, b)]
        return (Difference(section="machine", name="machine", a=known[0], b=known[1]),)
    first, second = asdict(a), asdict(b)
    found = [
        Difference(
            section="machine", name=name, a=_machine_text(name, first[name]), b=_machine_text(name, second[name])
        )
        for name in _MACHINE
        if first[name] != second[name]
    ]
    return (*found, *versions_apart(a.versions, b.versions))


def versions_apart(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[Difference, ...]:
    """Versions that differ, or that only one side has."""
    names = dict.fromkeys((*a, *b))
    return tuple(
        Difference(section="version", name=name, a=a.get(name), b=b.get(name))
        for name in names
        if a.get(name) != b.get(name)
    )


def commits_apart(a: str | None, b: str | None) -> tuple[Difference, ...]:
    """The commits of Paceline, if they differ."""
    return () if a == b else (Difference(section="commit", name="commit", a=a, b=b),)


def _by_settings(points: Sequence[Point], ignored: set[str]) -> dict[str, list[Point]]:
    """Points by their settings, without ignored and empty ones."""
    found: dict[str, list[Point]] = {}
    for point in points:
        own = {name: value for name, value in settings(point).items() if name not in ignored and value is not None}
        found.setdefault(_text(own), []).append(point)
    return found


def _unmatched(by_settings: Mapping[str, Sequence[Point]], common: Sequence[str]) -> tuple[Point, ...]:
    unmatched = [point for key, own in by_settings.items() if key not in common for point in own]
    return tuple(sorted(unmatched, key=lambda point: point.ranks))


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _values(texts: Mapping[str, None]) -> str | None:
    """The values as text; None if there are none but null."""
    return ", ".join(text for text in texts if text != "null") or None


def _machine_text(name: str, value: object) -> str | None:
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or None
    return bytes_text(value) if name == "memory_bytes" and isinstance(value, int) else str(value)
