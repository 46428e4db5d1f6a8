"""The efficiency tree over points: the factors of efficiency, their loss, and the unexplained rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.records.results import PointResult, StudyResults
from paceline.records.trace_summary import Efficiencies
from paceline.reporting.cells import NONE
from paceline.reporting.wording.choice import drawn_points
from paceline.units import finite

_FACTORS = (
    (
        "global_",
        "global",
        0,
        "The four factors below, multiplied.",
    ),
    (
        "computation_scaling",
        "computation scaling",
        1,
        "Useful rank-seconds per sample, baseline ÷ here: low where cores slow down.",
    ),
    ("load_balance", "load balance", 1, "Useful time, mean ÷ busiest rank: low where work is divided unevenly."),
    (
        "serialisation",
        "serialisation",
        1,
        "Busiest rank ÷ replay with instant messages: low where ranks wait in turn.",
    ),
    ("transfer", "transfer", 1, "That replay ÷ the time measured: low where messages cost time."),
)
_MEASURED = "Speed-up ÷ ideal, median over repeats: what the tree is to explain."


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One row of the tree: a value for each point, None where it is not known."""

    name: str
    depth: int
    meaning: str
    values: tuple[float | None, ...]
    lost: tuple[float | None, ...] = ()
    """The share of the loss that it explains; empty where it is no factor of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Factors of the efficiency, one column a point; without columns where no point has any."""

    labels: tuple[str, ...]
    factors: tuple[Factor, ...]
    left: tuple[float | None, ...]
    """Measured efficiency minus the product of the factors."""

    @property
    def left_texts(self) -> list[str]:
        """`left` in points of a hundred."""
        return [_points(value) for value in self.left]


def efficiency_tree(results: StudyResults, lost_to: Mapping[str, Mapping[str, float]]) -> Tree:
    """The trees of the points that are drawn and have one, side by side.

    `lost_to` says by point_id how much of the lost efficiency each factor explains.
    """
    found = [(point, point.efficiencies) for point in drawn_points(results) if point.efficiencies is not None]
    measured = tuple(_efficiency(point) for point, _ in found)
    shares = [lost_to.get(point.point_id, {}) for point, _ in found]
    factors = [
        Factor(
            name=shown,
            depth=depth,
            meaning=meaning,
            values=tuple(finite(getattr(tree, name)) for _, tree in found),
            lost=tuple(finite(share.get(name)) for share in shares) if depth else (),
        )
        for name, shown, depth, meaning in _FACTORS
    ]
    factors.append(Factor(name="measured", depth=0, meaning=_MEASURED, values=measured))
    return Tree(
        labels=tuple(point.label for point, _ in found),
        factors=tuple(factors) if found else (),
        left=tuple(_left(value, tree) for value, (_, tree) in zip(measured, found, strict=True)),
    )


def _efficiency(point: PointResult) -> float | None:
    return finite(point.efficiency.median) if point.efficiency else None


def _left(measured: float | None, tree: Efficiencies) -> float | None:
    return None if measured is None else finite(measured - tree.global_)


def _points(value: float | None) -> str:
    """`+3 points`, of a hundred."""
    if value is None:
        return NONE
    return "0 points" if abs(value) < 0.005 else f"{100 * value:+.0f} points".replace("-", "−")
