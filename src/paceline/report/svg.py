"""A plot of the report as a static SVG, for places that run no script: a notebook, a mail, a wiki.

What is drawn is what Plotly would draw of the same Figure, as far as Paceline's plots go: lines with dashes, markers
and bars of intervals, areas, stacked bars with patterns, and the keys below. Some kilobytes, against 4.8 MB of
Plotly's script; colours are those of light paper, and the background is white, so it can be read in a dark notebook.
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from typing import Any

from paceline.report.canvas import Figure
from paceline.report.legend import DASHES, MARKERS, PATTERNS, Key
from paceline.report.svg_axes import Axis, axis, lines_of

_WIDTH = 640
_TOP, _RIGHT, _BOTTOM = 12, 26, 48
_LETTER = 6.7
"""Mean width of a letter at 12 pixels: what a label takes is not known before it is drawn."""
_MOST_LABEL = 34
_MOST_PLACES = 2_000
"""Of one line: more than there are pixels."""
_KEY_HEIGHT = 20
_VARIABLE = re.compile(r"var\(--([a-z-]+)\)")


def figure_svg(figure: Figure) -> str:
    """The plot as the text of an SVG element; what is hidden until a reader asks for it is left out."""
    hidden = {key.label for key in figure.keys if key.off}
    data = [trace for trace in figure.data if trace.get("meta", trace.get("name")) not in hidden]
    shown = Figure(
        name=figure.name, title=figure.title, caption=figure.caption, keys=figure.keys, data=data, layout=figure.layout
    )
    height = int(figure.layout["height"])
    x, y = _axes(shown, height)
    keys = list(_keys([key for key in figure.keys if not key.off], height + 14, x.start))
    whole = height + 14 + _KEY_HEIGHT * (1 + max((row for row, _ in keys), default=-1))
    defs = f"<defs>{_patterns()}</defs>" if any(trace["type"] == "bar" for trace in data) else ""
    parts = [defs, *_grid(shown, x, y, height), *_traces(shown, x, y), *(text for _, text in keys)]
    drawing = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {whole}" width="{_WIDTH}" height="{whole}" '
        f'role="img" aria-label="{escape(f"{figure.title}. {figure.caption}")}" '
        'font-family="system-ui, sans-serif" font-size="12" style="max-width:100%;height:auto;background:#ffffff">'
        f"<title>{escape(figure.title)}</title>{''.join(parts)}</svg>"
    )
    return _VARIABLE.sub(lambda found: colours().get(found[1], found[0]), drawing)


@cache
def colours() -> dict[str, str]:
    """Colours of the report on light paper, by their names in its style sheet."""
    sheet = (importlib.resources.files("paceline.report") / "assets" / "light.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--([a-z-]+):\s*(#[0-9a-f]+);", sheet))


def _axes(figure: Figure, height: int) -> tuple[Axis, Axis]:
    """Both axes, the vertical one with as much room beside it as its labels need."""
    vertical = axis(figure, "y", 0, 1)
    longest = max((len(line[:_MOST_LABEL]) for _, text in vertical.ticks for line in lines_of(text)), default=1)
    titled = 22 if figure.layout["yaxis"].get("title") else 4
    left = titled + 10 + _LETTER * longest
    ends = (height - _BOTTOM, _TOP)
    if figure.layout["yaxis"].get("autorange") == "reversed":
        ends = (_TOP, height - _BOTTOM)
    return axis(figure, "x", left, _WIDTH - _RIGHT), axis(figure, "y", *ends)


def _grid(figure: Figure, x: Axis, y: Axis, height: int) -> Iterator[str]:
    bottom, quiet = height - _BOTTOM, "var(--muted)"
    for place, text in y.ticks:
        at = _place(y, place)
        if figure.layout["yaxis"].get("showgrid", True):
            yield _line(x.start, at, x.end, at, "var(--line)")
        lines = [line if len(line) <= _MOST_LABEL else f"{line[: _MOST_LABEL - 1]}…" for line in lines_of(text)]
        yield _text(x.start - 6, at + 4 - 7 * (len(lines) - 1), lines, anchor="end")
    yield _line(x.start, bottom, x.end, bottom, "var(--muted)")
    for place, text in x.ticks:
        at = _place(x, place)
        yield _line(at, bottom, at, bottom + 4, quiet) + _text(at, bottom + 17, [text], anchor="middle")
    for name, where in (("xaxis", (x.start + x.end) / 2), ("yaxis", (_TOP + bottom) / 2)):
        title = lines_of(figure.layout[name].get("title", {}).get("text", ""))
        turned = "" if name == "xaxis" else f' transform="rotate(-90 14 {where:.1f})"'
        across, down = (where, bottom + 36) if name == "xaxis" else (14, where)
        yield _text(across, down, title, anchor="middle", fill=quiet, more=turned)
    for shape in figure.layout.get("shapes", ()):
        at = x.at(shape["x0"])
        yield _line(at, _TOP, at, bottom, quiet, dash="dot")
    for note in figure.layout.get("annotations", ()):
        yield _text(_place(x, note["x"]) + 4, bottom - 6, lines_of(note["text"].strip()), fill=quiet)


def _traces(figure: Figure, x: Axis, y: Axis) -> Iterator[str]:
    reached: dict[str, float] = {}
    for trace in figure.data:
        if trace["type"] == "bar":
            yield from _bars(trace, x, y, reached)
        elif trace.get("fill") == "toself":
            places = " ".join(_places(trace, x, y)[0])
            yield f'<polygon points="{places}" fill="{trace["fillcolor"]}" opacity="{trace.get("opacity", 1)}"/>'
        else:
            yield from _scatter(trace, x, y)


def _scatter(trace: dict[str, Any], x: Axis, y: Axis) -> Iterator[str]:
    mode = trace["mode"]
    if error := trace.get("error_y"):
        ends = zip(trace["x"], trace["y"], error["array"], error["arrayminus"], strict=True)
        for at, value, above, below in ends:
            yield _bar_of_interval(x.at(at), y.at(value + above), y.at(value - below), error["color"])
    if error := trace.get("error_x"):
        ends = zip(trace["x"], trace["y"], error["array"], error["arrayminus"], strict=True)
        for value, at, above, below in ends:
            yield _line(x.at(value - below), y.at(at), x.at(value + above), y.at(at), error["color"], width=1.5)
    if "lines" in mode:
        line = trace["line"]
        dash = f' stroke-dasharray="{DASHES[line["dash"]]}"' if line.get("dash") in DASHES else ""
        for run in _places(trace, x, y):
            yield (
                f'<polyline points="{" ".join(run)}" fill="none" stroke="{line["color"]}" '
                f'stroke-width="{line.get("width", 2)}" opacity="{trace.get("opacity", 1)}"{dash}/>'
            )
    if "markers" in mode and "symbol" in trace["marker"]:
        yield from _markers(trace, x, y)


def _markers(trace: dict[str, Any], x: Axis, y: Axis) -> Iterator[str]:
    marker, shown = trace["marker"], list(zip(trace["x"], trace["y"], strict=True))
    fills = marker["color"] if isinstance(marker["color"], list) else [marker["color"]] * len(shown)
    labels = trace.get("text") or [""] * len(shown)
    every = -(-len(shown) // marker.get("maxdisplayed", len(shown) or 1))
    for (across, up), fill, label in list(zip(shown, fills, labels, strict=True))[::every]:
        if up is None:
            continue
        at, height = x.at(across), y.at(up)
        path, edge = MARKERS[marker["symbol"]], marker["line"]["color"]
        yield f'<path d="{path}" transform="translate({at:.1f} {height:.1f})" fill="{fill}" stroke="{edge}"/>'
        if label:
            yield _text(at + 7, height + 15, lines_of(label))


def _bars(trace: dict[str, Any], x: Axis, y: Axis, reached: dict[str, float]) -> Iterator[str]:
    """Bars that begin where the last ones of the same name ended."""
    thick = min(30.0, 0.65 * abs(y.end - y.start) / max(1, len(y.names)))
    marker, font = trace["marker"], trace.get("insidetextfont", {})
    shapes = marker["pattern"]["shape"]
    for index, (name, length) in enumerate(zip(trace["y"], trace["x"], strict=True)):
        begin = reached.get(name, 0.0)
        reached[name] = begin + (length or 0.0)
        left, right, at = x.at(begin), x.at(reached[name]), y.at(name)
        if right <= left:
            continue
        box = f'x="{left:.1f}" y="{at - thick / 2:.1f}" width="{right - left:.1f}" height="{thick:.1f}"'
        yield f'<rect {box} fill="{marker["color"]}" stroke="#ffffff" stroke-width="1"/>'
        shape = shapes[index] if isinstance(shapes, list) else shapes
        yield _patterned(shape, box)
        text = trace["text"][index]
        if text and _LETTER * len(text) < right - left - 4:
            yield _text((left + right) / 2, at + 4, [text], anchor="middle", fill=font.get("color", "var(--ink)"))
        if error := trace.get("error_x"):
            above, below = x.at(reached[name] + error["array"][index]), x.at(reached[name] - error["arrayminus"][index])
            yield _line(below, at, above, at, error["color"])


def _patterns() -> str:
    """Every pattern of a bar, black and half seen, so that one does for all colours."""
    return "".join(
        f'<pattern id="{_pattern_name(shape)}" width="14" height="14" patternUnits="userSpaceOnUse">'
        f'<path d="{path}" stroke="#000000" stroke-opacity="0.3" stroke-linecap="round" fill="none"/></pattern>'
        for shape, path in PATTERNS.items()
        if path
    )


def _patterned(shape: str, box: str) -> str:
    """The pattern over a bar; nothing for a plain one."""
    return f'<rect {box} fill="url(#{_pattern_name(shape)})"/>' if PATTERNS.get(shape) else ""


def _pattern_name(shape: str) -> str:
    """The same in every plot of a page: so is what it names."""
    return f"paceline-pattern-{ord(shape)}"


def _keys(keys: Sequence[Key], top: float, left: float) -> Iterator[tuple[int, str]]:
    """The keys in rows, each with its row and its drawing."""
    row, at = 0, left
    for key in keys:
        label = key.label if len(key.label) <= 2 * _MOST_LABEL else f"{key.label[: 2 * _MOST_LABEL - 1]}…"
        width = 46 + _LETTER * len(label)
        if at > left and at + width > _WIDTH - _RIGHT:
            row, at = row + 1, left
        yield row, f"{_sample(key, at, top + _KEY_HEIGHT * row)}{_text(at + 36, top + _KEY_HEIGHT * row + 4, [label])}"
        at += width + 8


def _sample(key: Key, at: float, down: float) -> str:
    color = f"var(--{key.color})"
    if key.pattern is not None:
        box = f'x="{at + 16:.1f}" y="{down - 7:.1f}" width="14" height="14"'
        return f'<rect {box} fill="{color}"/>{_patterned(key.pattern, box)}'
    drawn = _line(at, down, at + 30, down, color, dash=key.dash, width=2.5)
    if key.marker:
        fill = "#ffffff" if key.dash == "dash" else color
        where = f"translate({at + 15:.1f} {down:.1f})"
        drawn += f'<path d="{MARKERS[key.marker]}" transform="{where}" fill="{fill}" stroke="{color}"/>'
    return drawn


def _places(trace: dict[str, Any], x: Axis, y: Axis) -> list[list[str]]:
    """The places of a trace, one list for each stretch without a gap."""
    runs: list[list[str]] = [[]]
    for across, up in zip(trace["x"], trace["y"], strict=True):
        if across is None or up is None:
            runs.append([])
        else:
            runs[-1].append(f"{x.at(across):.1f},{y.at(up):.1f}")
    every = -(-sum(map(len, runs)) // _MOST_PLACES) or 1
    return [run[::every] for run in runs if run]


def _place(axis: Axis, tick: float) -> float:
    """Where a tick stands, which a logarithmic axis counts in powers of ten and one of names by their number."""
    return axis.start + (tick - axis.low) / (axis.high - axis.low) * (axis.end - axis.start)


def _bar_of_interval(at: float, high: float, low: float, color: str) -> str:
    caps = _line(at - 4, high, at + 4, high, color) + _line(at - 4, low, at + 4, low, color)
    return _line(at, high, at, low, color, width=1.5) + caps


def _line(x1: float, y1: float, x2: float, y2: float, color: str, *, dash: str = "", width: float = 1) -> str:
    dashes = f' stroke-dasharray="{DASHES[dash]}"' if dash in DASHES else ""
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{color}" stroke-width="{width}"{dashes}/>'


def _text(
    x: float, y: float, lines: Sequence[str], *, anchor: str = "start", fill: str = "var(--ink)", more: str = ""
) -> str:
    spans = "".join(
        f'<tspan x="{x:.1f}" dy="{0 if index == 0 else 14}">{escape(line)}</tspan>' for index, line in enumerate(lines)
    )
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{more}>{spans}</text>'
