"""A plot of the report as a static SVG drawn by Matplotlib, for places that run no script: a notebook, a mail, a wiki.

It shows what Plotly shows of the same Figure: lines with dashes and markers, bars of intervals, areas, stacked bars
with patterns, and the keys below. A plot has some ten kilobytes, against 4.8 MB of Plotly's script. Colours are those
of the light theme and the background is white: it is readable in a dark notebook.
"""

from __future__ import annotations

import importlib.resources
import io
import re
import warnings
from collections.abc import Sequence
from functools import cache
from html import unescape
from typing import TYPE_CHECKING, Any

from paceline.reporting.figures.canvas import Figure
from paceline.reporting.figures.legend import DASHES, Key
from paceline.reporting.html.markup import fragment
from paceline.reporting.wording.characters import printable

if TYPE_CHECKING:
    from matplotlib import figure as drawn
    from matplotlib.axes import Axes

_WIDTH = 640
_LETTER = 6.7
"""Mean width of a letter of 12 pixels."""
_LINE_HEIGHT = 14
"""Rows that are lower have no text in their bars, and not every one has a label."""
_MOST_LABEL = 34
_MOST_PLACES = 2_000
"""Of one line: more than there are pixels."""
_KEY_HEIGHT = 20
_PIXEL = 1 / 72
"""Of an inch: a point of Matplotlib is then a pixel of the drawing."""
_FAMILY = "DejaVu Sans"
_VARIABLE = re.compile(r"var\(--([a-z-]+)\)")
_MARKERS: dict[str, Any] = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P", "x": "X", "pentagon": "p",
    "triangle-down": "v", "star": "*", "triangle-left": "<", "triangle-right": ">", "star-diamond": (4, 1, 0),
    "hourglass": ((-1, 1), (1, 1), (-1, -1), (1, -1), (-1, 1)),
    "bowtie": ((-1, 1), (-1, -1), (1, 1), (1, -1), (-1, 1)),
}  # fmt: skip
_RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "paceline",
    "font.family": [_FAMILY],
    "font.size": 12,
    "hatch.linewidth": 0.8,
    "lines.scale_dashes": False,
    "text.parse_math": False,  # a name with a dollar sign is a name
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.handlelength": 2.5,
}


def figure_svg(figure: Figure) -> str:
    """The plot as the text of an SVG element; traces that are hidden by default are omitted."""
    from matplotlib import style

    sink = io.StringIO()
    with style.context(["default", _RC]), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of characters that the font lacks: the reader's font is used
        drawing = figure_drawing(figure)
        drawing.savefig(sink, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        height = round(drawing.get_figheight() / _PIXEL)
    inside = sink.getvalue().partition("<svg")[2].partition(">")[2]
    # A style sheet would apply to the whole notebook, and identifiers of groups occur in every plot.
    inside = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>|(?<=<g) id=\"[^\"]*\"", "", inside, flags=re.DOTALL)
    inside = re.sub(r"(?<= d=\")[^\"]*", _short_path, inside)
    inside = inside.replace(f"font-family: '{_FAMILY}'", "font-family: system-ui, sans-serif")
    title, label = printable(figure.title), printable(f"{figure.title}. {figure.caption}")
    return str(fragment("notebook", "svg", title, label, _WIDTH, height, inside))


def figure_drawing(figure: Figure) -> drawn.Figure:
    """The plot as a figure of Matplotlib, 640 pixels wide."""
    from matplotlib.figure import Figure as Drawing
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    keys = [key for key in figure.keys if not key.off]
    longest = max((len(_short(key.label, 2 * _MOST_LABEL)) for key in keys), default=0)
    across = max(1, int(_WIDTH // (54 + _LETTER * longest)))
    height = figure.layout["height"] + _KEY_HEIGHT * -(-len(keys) // across)
    layout = ConstrainedLayoutEngine(w_pad=8 * _PIXEL, h_pad=6 * _PIXEL)
    drawing = Drawing(figsize=(_WIDTH * _PIXEL, height * _PIXEL), dpi=72, layout=layout)
    axes: Any = drawing.subplots()
    hidden = {key.label for key in figure.keys if key.off}
    traces = [trace for trace in figure.data if trace.get("meta", trace.get("name")) not in hidden]
    for letter in "xy":
        if figure.layout[f"{letter}axis"].get("type") == "log":
            getattr(axes, f"set_{letter}scale")("log")
    names = list(dict.fromkeys(name for trace in traces if trace["type"] == "bar" for name in trace["y"]))
    every = -(-len(names) * _LINE_HEIGHT // figure.layout["height"])
    _draw_traces(axes, traces, names)
    if names:
        axes.set_yticks(range(0, len(names), every), [_label(name) for name in names[::every]])
    _set_axis(axes, "x", figure.layout["xaxis"])
    _set_axis(axes, "y", figure.layout["yaxis"])
    if every == 1:
        _write_in_bars(axes, traces, names)
    _draw_marks(axes, figure.layout)
    _draw_keys(drawing, keys, across)
    return drawing


def _short_path(path: re.Match[str]) -> str:
    """Places of a path with two digits behind the point: a hundredth of a pixel."""
    return " ".join(re.sub(r"(\.\d\d)\d+", r"\1", path[0]).split())


@cache
def colours() -> dict[str, str]:
    """Colours of the report on light paper, by their names in its style sheet."""
    sheet = (importlib.resources.files("paceline.reporting") / "assets" / "light.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]+);", sheet))


def _draw_traces(axes: Axes, traces: Sequence[dict[str, Any]], names: list[str]) -> None:
    reached = [0.0] * len(names)
    for trace in traces:
        if trace["type"] == "bar":
            _draw_bars(axes, trace, names, reached)
        elif trace.get("fill") == "toself":
            color, opacity = _colour(trace["fillcolor"]), trace.get("opacity", 1)
            axes.fill(trace["x"], trace["y"], color=color, alpha=opacity, linewidth=0)
        else:
            _draw_scatter(axes, trace)


def _draw_scatter(axes: Axes, trace: dict[str, Any]) -> None:
    across, up = trace["x"], [float("nan") if value is None else value for value in trace["y"]]
    across = [float("nan") if value is None else value for value in across]
    for letter in "xy":
        if error := trace.get(f"error_{letter}"):
            ends = [error["arrayminus"], error["array"]]
            style = {"color": _colour(error["color"]), "elinewidth": 1.5, "capsize": 4, "capthick": 1}
            axes.errorbar(across, up, **{f"{letter}err": ends}, fmt="none", **style)
    if "lines" in trace["mode"]:
        line, every = trace["line"], -(-len(up) // _MOST_PLACES)
        style = {"linewidth": line.get("width", 2), "alpha": trace.get("opacity", 1)}
        axes.plot(
            across[::every], up[::every], color=_colour(line["color"]), linestyle=_dash(line.get("dash")), **style
        )
    if "markers" in trace["mode"] and "symbol" in trace["marker"]:
        _draw_markers(axes, trace, across, up)


def _draw_markers(axes: Axes, trace: dict[str, Any], across: list[float], up: list[float]) -> None:
    marker = trace["marker"]
    fills = marker["color"] if isinstance(marker["color"], list) else [marker["color"]] * len(up)
    every = -(-len(up) // marker.get("maxdisplayed", len(up) or 1))
    axes.scatter(
        across[::every],
        up[::every],
        s=marker.get("size", 8) ** 2 * 0.8,
        marker=_MARKERS[marker["symbol"]],
        c=[_colour(fill) for fill in fills[::every]],
        edgecolors=_colour(marker["line"]["color"]),
        linewidths=1.2,
        zorder=3,
        clip_on=False,
    )
    for x, y, text in zip(across, up, trace.get("text") or (), strict=False):
        if text:
            axes.annotate(_label(text), (x, y), xytext=(7, -7), textcoords="offset points", va="top")


def _draw_bars(axes: Axes, trace: dict[str, Any], names: list[str], reached: list[float]) -> None:
    """Bars that begin where the last ones of the same name ended; those of one pattern are one path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    marker, rows = trace["marker"], [names.index(name) for name in trace["y"]]
    shapes = marker["pattern"]["shape"]
    shapes = shapes if isinstance(shapes, list) else [shapes] * len(rows)
    color, hatch = _colour(marker["color"]), _colour(marker["pattern"]["fgcolor"])
    bars: dict[str, list[Path]] = {}
    for index, (row, length) in enumerate(zip(rows, trace["x"], strict=True)):
        begin = reached[row]
        reached[row] += length or 0.0
        if not length:
            continue
        left, right, low, high = begin, reached[row], row - 0.325, row + 0.325
        corners = [(left, low), (right, low), (right, high), (left, high), (left, low)]
        bars.setdefault(shapes[index], []).append(Path(corners, closed=True))
        if error := trace.get("error_x"):
            ends = [[error["arrayminus"][index]], [error["array"][index]]]
            axes.errorbar([reached[row]], [row], xerr=ends, fmt="none", color=_colour(error["color"]), elinewidth=1.5)
    for shape, paths in bars.items():
        together = Path.make_compound_path(*paths)
        axes.add_patch(PathPatch(together, facecolor=color, edgecolor="#ffffff", linewidth=1))
        if shape:  # beside the white edge, which would colour the pattern
            axes.add_patch(PathPatch(together, fill=False, edgecolor=hatch, linewidth=0, alpha=0.4, hatch=shape))
    axes.autoscale_view()


def _write_in_bars(axes: Axes, traces: Sequence[dict[str, Any]], names: list[str]) -> None:
    """The figures of the bars that have room for them."""
    reached: dict[str, float] = {}
    low, high = axes.get_xlim()
    for trace in traces:
        for name, length, text in zip(trace["y"], trace["x"], trace.get("text", ()), strict=False):
            if trace["type"] != "bar":
                continue
            begin = reached.get(name, 0.0)
            reached[name] = begin + (length or 0.0)
            if text and length and _LETTER * len(text) < 0.7 * _WIDTH * length / (high - low):
                color = _colour(trace.get("insidetextfont", {}).get("color", "var(--ink)"))
                axes.text(begin + length / 2, names.index(name), text, ha="center", va="center", color=color)


def _set_axis(axes: Axes, letter: str, setting: dict[str, Any]) -> None:
    """Range, ticks and title of an axis."""
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    own = getattr(axes, f"{letter}axis")
    logarithmic = setting.get("type") == "log"
    if "tickvals" in setting:
        texts = setting.get("ticktext") or [f"{value:,g}" for value in setting["tickvals"]]
        own.set_ticks(setting["tickvals"], [_label(text) for text in texts])
    elif setting.get("type") != "category":
        if "dtick" in setting:
            own.set_major_locator(MultipleLocator(setting["dtick"]))
        suffix = setting.get("ticksuffix", "")
        own.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value, 10):,g}{suffix}"))
    axes.minorticks_off()
    limit = getattr(axes, f"set_{letter}lim")
    if "range" in setting:
        limit(*(10**end if logarithmic else end for end in setting["range"]))
    elif setting.get("rangemode") == "tozero" and not logarithmic:
        limit(min(0.0, getattr(axes, f"get_{letter}lim")()[0]), None)
    if setting.get("autorange") == "reversed":
        own.set_inverted(True)
    own.label.set(text=_label(setting.get("title", {}).get("text", ""), 200), color=_colour("var(--muted)"))
    own.set_tick_params(color=_colour("var(--muted)"), labelcolor=_colour("var(--ink)"))
    axes.spines["bottom"].set_color(_colour("var(--muted)"))
    if setting.get("showgrid", True):
        own.grid(True, color=_colour("var(--line)"), linewidth=1)


def _draw_marks(axes: Axes, layout: dict[str, Any]) -> None:
    """Vertical lines and the notes beside them."""
    muted = _colour("var(--muted)")
    for shape in layout.get("shapes", ()):
        axes.axvline(shape["x0"], color=muted, linewidth=1, linestyle=_dash(shape["line"].get("dash")))
    for note in layout.get("annotations", ()):
        at = 10 ** note["x"] if layout["xaxis"].get("type") == "log" else note["x"]
        axes.text(at, 0.02, f" {_label(note['text'].strip())}", transform=axes.get_xaxis_transform(), color=muted)


def _draw_keys(drawing: drawn.Figure, keys: Sequence[Key], across: int) -> None:
    """Below the plot; names are written afterwards, because Matplotlib leaves out those that begin with `_`."""
    if not keys:
        return
    legend = drawing.legend(
        [_handle(key) for key in keys], list(map(str, range(len(keys)))), loc="outside lower left", ncols=across
    )
    for text, key in zip(legend.get_texts(), keys, strict=True):
        text.set_text(_short(key.label, 2 * _MOST_LABEL))


def _handle(key: Key) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    color = _colour(f"var(--{key.color})")
    if key.pattern is not None:
        hatch = _colour(f"var(--on-{key.color})") if key.pattern else color
        return Patch(facecolor=color, edgecolor=hatch, linewidth=0, hatch=key.pattern or None)
    fill = "#ffffff" if key.dash == "dash" else color
    marker = _MARKERS[key.marker] if key.marker else ""
    return Line2D([], [], color=color, linewidth=2.5, linestyle=_dash(key.dash), marker=marker, markerfacecolor=fill)


def _colour(text: str) -> str:
    """A colour of the report's style sheet as Matplotlib reads it."""
    return _VARIABLE.sub(lambda found: colours()[found[1]], text)


def _dash(name: str | None) -> Any:
    return (0, tuple(map(float, DASHES[name].split()))) if name in DASHES else "-"


def _label(text: str, most: int = _MOST_LABEL) -> str:
    """A label in Plotly's small HTML as plain lines."""
    return "\n".join(_short(unescape(line), most) for line in text.split("<br>"))


def _short(text: str, most: int) -> str:
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
