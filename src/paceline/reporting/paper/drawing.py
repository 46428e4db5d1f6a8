"""Plots of a paper by matplotlib: vector files without a browser, made by what most authors draw with anyway.

y  ┤      · ideal (dashed)        one line per series, a bar for each interval;
   ┤   ●──┼──○                    hollow where ranks shared cores or hosts are one machine
   └──┬───┬───┬── ranks
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

from paceline.reporting.figures.scaling import Line, Scaling
from paceline.reporting.paper.content import Panel, Plot
from paceline.reporting.paper.style import INK, MARKS, METADATA, MOST_LINES, MUTED, RC, SIDE_BY_SIDE_MM, WIDTH_MM, Mark
from paceline.reporting.wording.characters import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = tuple(METADATA)
_MM = 1 / 25.4
_PANEL_MM = 48.0
_LEGEND_MM = 4.2
"""Height of one line of the legend."""
_LOG_FROM = 8
"""Ratio of most to fewest ranks from which both axes are logarithmic, as on the page."""
_MOST_LABEL = 36
"""Characters of a series' name: one column has no room for more."""


def drawn(plot: Plot, kind: str, width_mm: float = WIDTH_MM) -> bytes:
    """A plot as the bytes of an SVG, PDF or PNG file, which depend on nothing but the plot and the width."""
    from matplotlib import style

    sink = io.BytesIO()
    with style.context(["default", RC]), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of characters that the font lacks: they are drawn as boxes
        _figure(plot, width_mm).savefig(sink, format=kind, metadata=METADATA[kind])
    return sink.getvalue()


def _figure(plot: Plot, width_mm: float) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    first = plot.panels[0].scaling
    lines = _shown(first)
    beside = width_mm >= SIDE_BY_SIDE_MM and len(plot.panels) > 1
    rows, columns = (1, len(plot.panels)) if beside else (len(plot.panels), 1)
    across = max(1, int(width_mm // 42)) if len(lines) > 1 else 3
    height_mm = rows * _PANEL_MM + _LEGEND_MM * -(-(len(lines) + 1) // across)
    layout = ConstrainedLayoutEngine(w_pad=1.2 * _MM, h_pad=1.2 * _MM)
    figure = Figure(figsize=(width_mm * _MM, height_mm * _MM), layout=layout)
    grid: Any = figure.subplots(rows, columns, sharex=not beside, squeeze=False)
    for axes, panel in zip(grid.flat, plot.panels, strict=True):
        _draw(axes, panel)
    for axes in grid.flat if beside else grid[-1]:
        axes.set_xlabel("ranks and servers" if first.servers else "ranks")
    _legend(figure, first, lines, across)
    return figure


def _shown(scaling: Scaling) -> list[Line]:
    return [line for line in scaling.lines if any(line.measured)][:MOST_LINES]


def _draw(axes: Axes, panel: Panel) -> None:
    """One figure over ranks: the ideal behind it, then every series with its intervals."""
    scaling, lines = panel.scaling, _shown(panel.scaling)
    ranks = sorted({n for line in lines for n, e in zip(line.ranks, line.measured, strict=True) if e is not None})
    logarithmic = max(ranks) >= _LOG_FROM * min(ranks)
    ideal = [(n, value) for n, value in zip(scaling.ranks, scaling.ideal, strict=True) if value and n in ranks]
    axes.plot([n for n, _ in ideal], [value for _, value in ideal], color=MUTED, linestyle="--", linewidth=0.9)
    for number, line in enumerate(lines):
        _line(axes, line, MARKS[number], _shift(number, len(lines), ranks, logarithmic=logarithmic))
    if logarithmic:
        axes.set_xscale("log", base=2)
        if not panel.from_zero:
            axes.set_yscale("log", base=10)
    axes.set_xticks(ranks, [str(n) for n in ranks])
    axes.minorticks_off()
    low, high = min(ranks), max(ranks)
    axes.set_xlim((low / 1.25, high * 1.25) if logarithmic else (low - (high - low) * 0.1, high + (high - low) * 0.1))
    _vertical(axes, panel, [value for _, value in ideal], logarithmic=logarithmic)


def _vertical(axes: Axes, panel: Panel, ideal: list[float], *, logarithmic: bool) -> None:
    """The axis of the figure: from zero unless it is logarithmic, with numbers that are written out."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

    axes.set_ylabel(panel.axis)
    if logarithmic and not panel.from_zero:
        # A speed-up is read against the ranks: where it has an ideal, its ticks are theirs.
        own = panel.scaling.unit == "×" and ideal
        axes.yaxis.set_major_locator(FixedLocator(ideal) if own else LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        tops = [e.high for line in _shown(panel.scaling) for e in line.measured if e is not None]
        axes.set_ylim(0, 1.08 * max((*tops, *ideal)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _shift(number: int, count: int, ranks: list[int], *, logarithmic: bool) -> Any:
    """Where the points of one series of several stand: side by side, so that no bar hides another."""
    share = (number - (count - 1) / 2) * min(0.02, 0.08 / count)
    if logarithmic:
        return lambda n: n * (max(ranks) / min(ranks)) ** share
    return lambda n: n + (max(ranks) - min(ranks)) * share


def _line(axes: Axes, line: Line, mark: Mark, place: Any) -> None:
    shown = [
        (place(n), estimate, crowded)
        for n, estimate, crowded in zip(line.ranks, line.measured, line.crowded, strict=True)
        if estimate is not None
    ]
    axes.plot([x for x, _, _ in shown], [e.value for _, e, _ in shown], color=mark.color, linestyle=mark.dash)
    for x, estimate, crowded in shown:
        around = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
        axes.errorbar(
            [x],
            [estimate.value],
            yerr=around if estimate.low < estimate.high else None,
            color=mark.color,
            marker=mark.marker,
            markerfacecolor="white" if crowded else mark.color,
            markeredgewidth=1.0,
            elinewidth=0.8,
            capsize=2.6,
            capthick=0.8,
            zorder=3,
        )


def _legend(figure: Figure, scaling: Scaling, lines: list[Line], across: int) -> None:
    """Below all panels, with the names put in afterwards: matplotlib leaves out those that begin with `_`."""
    from matplotlib.lines import Line2D

    keys = [
        Line2D([], [], color=mark.color, marker=mark.marker, linestyle=mark.dash)
        for mark, _ in zip(MARKS, lines, strict=False)
    ]
    names = [_name(line) for line in lines] if len(scaling.lines) > 1 else ["measured"]
    if any(scaling.ideal):
        keys.append(Line2D([], [], color=MUTED, linestyle="--", linewidth=0.9))
        names.append("ideal")
    if any(crowded for line in lines for crowded in line.crowded):
        keys.append(Line2D([], [], color=INK, marker="o", markerfacecolor="white", linestyle="none"))
        names.append("shared cores or hosts")
    legend = figure.legend(keys, [str(number) for number in range(len(keys))], loc="outside lower center", ncols=across)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set_text(name)


def _name(line: Line) -> str:
    name = printable(line.name) or "–"
    return name if len(name) <= _MOST_LABEL else name[: _MOST_LABEL - 1] + "…"
