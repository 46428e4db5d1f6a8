"""Records of the registry: a metric, and a metric that every point of a study has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

INTERVAL = ("median", "low", "high")
SPREAD = ("mean", "std")
_UNITS_IN_HEADINGS = ("s", "J", "points", "%")
"""Units that a table writes above the column. Other units are part of the cells or of the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure or another term that tables and plots use."""

    name: str
    definition: str
    """One sentence."""
    formula: str = ""
    """Right side of the equation; empty where the definition says it all."""
    unit: str = ""
    """s, B, J, fraction, points, %, samples/s, samples, steps, epochs or rank-hours; empty for ratios and counts."""
    unit_if_short: str = ""
    """Unit of a column in which every value is below 1; empty where it is the same."""
    page: str
    """Page that explains it, relative to docs/; it may end in an anchor."""
    short: str = ""
    """Heading in a table whose other columns make the meaning clear; empty where that is the name."""

    @property
    def heading(self) -> str:
        """Heading of a column."""
        return self.heading_in(self.unit)

    def heading_in(self, unit: str) -> str:
        """Heading of a column whose cells are in another unit: ms in place of s."""
        name = self.short or self.name
        return f"{name} ({unit})" if self.unit in _UNITS_IN_HEADINGS else name

    @property
    def headings(self) -> tuple[str, ...]:
        """Every heading that stands for it."""
        other = (self.heading_in(self.unit_if_short),) if self.unit_if_short else ()
        return (self.name, self.heading, *other)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the report has a column for a metric."""

    table: Literal["results", "extras"]
    """The results, or what happens before and beside the training."""
    shown: Literal["measured", "always", "training", "script", "scaled", "compared", "loading"] = "measured"
    """measured: where a point has a value. training, script: in studies of that kind. scaled: where the study asks for
    speed-ups; compared: there, where a point besides the baseline has a value. loading: where ranks do not map data."""
    before: str = ""
    """Key of the metric whose column follows; empty for the order of the registry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointMetric(Metric):
    """A metric of a point: a key of JSON and one or more columns of CSV and Parquet."""

    key: str
    source: str | Callable[[Any], Any] = ""
    """Path of attributes and keys from the result, or a function of the result; empty where the key is the path."""
    record: Literal["point", "effect"] = "point"
    """Which result has it: PointResult, or Effect in a study of one factor at a time."""
    parts: tuple[str, ...] = ()
    """Attributes of the value, each with a column `key_part`; empty where the value is the one column `key`."""
    type: type = float
    """Of each column."""
    digits: int = 3
    """Significant digits in tables."""
    place: Place | None = None
    """Column in a table of the report; None where a table names the metric itself, or no table has it."""

    def value(self, result: Any) -> Any:
        """The value of a result; None where it was not measured."""
        if not isinstance(self.source, str):
            return self.source(result)
        for name in (self.source or self.key).split("."):
            result = result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)
        return result

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(f"{self.key}_{part}" for part in self.parts) or (self.key,)

    def row(self, result: Any) -> dict[str, Any]:
        """Its columns of one row."""
        value = self.value(result)
        values = [getattr(value, part, None) for part in self.parts] or [value]
        return dict(zip(self.columns, values, strict=True))

    @property
    def in_json(self) -> bool:
        """Whether JSON has it under its own key; else it is inside the object that its path begins with."""
        return self.record == "point" and not (isinstance(self.source, str) and "." in self.source)
