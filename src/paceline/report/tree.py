"""The efficiency tree over points: which factor of the efficiency is lost where, and what is left unexplained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape

from paceline.records.anatomy import Efficiencies
from paceline.records.results import PointResult, StudyResults
from paceline.report.about import about_html
from paceline.report.cells import NONE
from paceline.report.choice import drawn_points
from paceline.report.facts import Fact
from paceline.report.table_html import boxed
from paceline.units import finite, percent_text

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
_LOW = 0.8
"""A factor below this is in another colour: where to look first."""
_MEASURED = "Speed-up ÷ ideal, median over repeats: what the tree is to explain."
_LEFT = "Measured − global: the tree is of one run, what was measured of all."


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
    """What was measured less what the factors multiply to."""


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


def tree_html(tree: Tree, definitions: Iterable[Fact] = ()) -> str:
    """The tree as a table with a bar in every cell; nothing where no point has one."""
    if not tree.labels:
        return ""
    head = "".join(f'<th scope="col">{escape(label)}</th>' for label in tree.labels)
    rows = [
        _row(factor.name, factor.depth, [_cell(*cell) for cell in _cells(factor)], factor.meaning)
        for factor in tree.factors
    ]
    rows.append(_row("left unexplained", 0, [f"<td>{_points(value)}</td>" for value in tree.left], _LEFT))
    caption = "Efficiency of the timed steps of the median runs in factors; beside each its share of what is lost"
    table = (
        f'<table class="tree"><thead><tr><th scope="col">factor</th>{head}<th scope="col" class="meaning">what it is'
        f"</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    terms = ("efficiency", *(factor.name for factor in tree.factors))
    return boxed(caption, table, about=about_html(caption, terms, definitions))


def _row(name: str, depth: int, cells: list[str], meaning: str) -> str:
    return (
        f'<tr class="depth-{depth}"><th scope="row">{escape(name)}</th>{"".join(cells)}'
        f'<td class="meaning">{escape(meaning)}</td></tr>'
    )


def _cells(factor: Factor) -> list[tuple[float | None, float | None]]:
    return list(zip(factor.values, factor.lost or (None,) * len(factor.values), strict=True))


def _cell(value: float | None, lost: float | None) -> str:
    text = percent_text(value, 0).replace(" ", "\u00a0")
    if value is None:
        return f"<td>{text}</td>"
    low = " low" if value < _LOW else ""
    share = "" if lost is None else f"<small>{percent_text(lost, 0).replace(' ', chr(0xA0))} of the loss</small>"
    return f'<td class="bar{low}" style="--part:{min(max(value, 0.0), 1.0):.3f}"><span>{text}</span>{share}</td>'


def _points(value: float | None) -> str:
    """`+3 points`, of a hundred."""
    if value is None:
        return NONE
    return "0 points" if abs(value) < 0.005 else f"{100 * value:+.0f} points".replace("-", "−")
