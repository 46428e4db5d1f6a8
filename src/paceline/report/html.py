"""ReportModel as one HTML file that opens offline: style, plots and Plotly's script are in it.

A policy in the page forbids every request and every script but those whose digests it names, so
that even text that slipped through escaping could not run. Plotly's script is read from its
installed package, which is never imported.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import importlib.util
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from paceline.errors import StorageError
from paceline.report.canvas import Figure
from paceline.report.facts import Fact
from paceline.report.figures import figures
from paceline.report.inside import insides_html
from paceline.report.legend import legend_html
from paceline.report.model import ReportModel
from paceline.report.steps import Step
from paceline.report.table_html import table_html, text_html
from paceline.report.timeline import timeline_object
from paceline.report.tree import tree_html
from paceline.report.words import ShownFinding

_TIMELINE = ("timeline_lanes", "timeline_drawing", "timeline_words", "timeline")
_BROWSERS_END_SCRIPT_AT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


def render(model: ReportModel) -> str:
    """The report as the text of a self-contained page."""
    drawn = figures(model)
    plots = {name: {"data": figure.data, "layout": figure.layout} for name, figure in drawn.items()}
    timelines = [timeline_object(run.timeline) for run in model.inside if run.timeline]
    own = [_asset("report.js"), *([_timeline_script()] if model.inside else [])]
    body = "\n".join(_sections(model, drawn))
    return _page(title=model.title, name=model.name, body=body, plots=plots, timelines=timelines, own=own)


def render_parts(title: str, name: str, drawn: Sequence[Figure], *parts: str) -> str:
    """A page of its own with a heading, plots side by side, and whatever HTML comes after them."""
    plots = {figure.name: {"data": figure.data, "layout": figure.layout} for figure in drawn}
    head = f'<header><ul class="headline"><li class="brand">Paceline</li></ul><h1>{escape(title)}</h1></header>'
    body = "\n".join((head, _plots(drawn), *parts))
    return _page(title=title, name=name, body=body, plots=plots, timelines=[], own=[_asset("report.js")])


def _page(
    *, title: str, name: str, body: str, plots: dict[str, Any], timelines: list[dict[str, Any]], own: list[str]
) -> str:
    # Plotly's is by far the largest, and last: what does not need it is there before it is read.
    scripts = [_script(text) for text in (*own, _plotly())]
    return Template(_asset("page.html")).substitute(
        policy=escape(_policy(*scripts)),
        title=escape(title),
        slug=re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "study",
        style=_asset("report.css"),
        body=body,
        figures=embedded_json(plots),
        timelines=embedded_json(timelines),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def embedded_json(value: object) -> str:
    """JSON that cannot end the script element around it; what is not a number becomes an error here, not there."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(*scripts: str) -> str:
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    # Plotly styles what it draws by attributes; images are the plots that a reader saves.
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _script(text: str) -> str:
    """A script as an element can hold it: `<\\/script` is the same to JavaScript, and not the end of it."""
    return _BROWSERS_END_SCRIPT_AT.sub(r"<\\", text.replace("\r\n", "\n").replace("\r", "\n"))


def _plotly() -> str:
    found = importlib.util.find_spec("plotly")
    places = list(found.submodule_search_locations or ()) if found else []
    for place in places:
        path = Path(place) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise StorageError(
        f"The plots need plotly.min.js, and it is not in {', '.join(places) or 'any installed package'}.",
        right="It comes with the package plotly, version 6 or newer.",
        next="Install it again: pip install --force-reinstall plotly",
    )


def _timeline_script() -> str:
    """The parts of the timeline's script as one, whose names are nobody else's."""
    parts = "\n".join(_asset(f"{name}.js") for name in _TIMELINE)
    return f'(() => {{\n"use strict";\n{parts}}})();'


def _asset(name: str) -> str:
    return (importlib.resources.files("paceline.report") / "assets" / name).read_text(encoding="utf-8")


def _sections(model: ReportModel, drawn: Mapping[str, Figure]) -> Iterable[str]:
    main = next((name for name in ("speedup", "ranking") if name in drawn), "accuracy")
    yield _header(model)
    yield _plots([drawn.get(main), drawn.get("ledger")])
    yield _next(model.next_step)
    speed = "Epoch time and throughput" if drawn.get("epoch") else "Throughput"  # of a script no epochs are known
    sections = [
        ("results", "Results", _results(model)),
        ("compare", "Side by side", _side_by_side(model, drawn, main)),
        ("efficiency", "Efficiency tree", tree_html(model.tree)),
        ("inside", "Inside a run", insides_html(model.inside)),
        ("ranks", "Each rank's time", _rank_ledgers(model, drawn)),
        ("learning", "Learning", _learning(model, drawn, main)),
        ("speed", speed, _plots([drawn.get("epoch"), drawn.get("throughput")])),
        ("findings", "Findings", _findings(model.findings)),
        ("machine", "Machine", _facts(model.machine)),
        ("settings", "Settings", _facts(model.settings, names=True)),
        ("repeat", "How to repeat it", _steps(model.repeat)),
        ("protocol", "Protocol", _facts(model.protocol)),
        ("definitions", "Definitions", _facts(model.definitions)),
    ]
    present = {name: (heading, body) for name, heading, body in sections if body}
    links = "".join(f'<a href="#{name}">{heading}</a>' for name, (heading, _) in present.items())
    yield f'<nav class="contents" aria-label="Contents">{links}</nav>'
    yield from (
        f'<section id="{name}"><h2>{heading}</h2>\n{body}</section>' for name, (heading, body) in present.items()
    )


def _learning(model: ReportModel, drawn: Mapping[str, Figure], main: str) -> str:
    plots = _plots([drawn.get(name) for name in ("accuracy", "loss") if name != main])
    return plots + table_html(model.learning) + table_html(model.accuracies) + table_html(model.phases)


def _results(model: ReportModel) -> str:
    return table_html(model.figures) + table_html(model.extras) + table_html(model.ledger, compact=True)


def _header(model: ReportModel) -> str:
    facts = "".join(f"<li>{escape(text)}</li>" for text in model.headline)
    question = f'<p class="question">{escape(model.question)}</p>' if model.question else ""
    remarks = f'<p class="remarks">{text_html(" ".join(model.remarks))}</p>' if model.remarks else ""
    return (
        f'<header><ul class="headline"><li class="brand">Paceline</li>{facts}</ul><h1>{escape(model.title)}</h1>'
        f'{question}<p class="verdict">{text_html(model.verdict)}</p>{remarks}{_notice(model.findings)}</header>'
    )


def _notice(findings: tuple[ShownFinding, ...]) -> str:
    """What a reader must not overlook, on the first screen; the rest is below."""
    pressing = [finding for finding in findings if finding.severity in ("error", "warning")]
    if not pressing:
        return ""
    more = f" And {len(pressing) - 1} more." if len(pressing) > 1 else ""
    first = pressing[0]
    severity = first.severity.capitalize()
    return (
        f'<p class="notice {first.severity}"><a href="#findings">{severity}</a>: {text_html(first.summary)}{more}</p>'
    )


def _plots(drawn: Iterable[Figure | None]) -> str:
    present = [figure for figure in drawn if figure is not None]
    if not present:
        return ""
    single = " single" if len(present) == 1 else ""
    return f'<div class="plots{single}">{"".join(_figure(figure) for figure in present)}</div>'


def _figure(figure: Figure) -> str:
    name, title = escape(figure.name), escape(figure.title)
    return (
        f'<figure class="card"><div class="plot-head"><h3>{title}</h3>'
        f'<button type="button" data-save="{name}" aria-label="Save the plot {title} as SVG">Save as SVG</button></div>'
        f'<div data-figure="{name}" role="img" aria-label="{escape(f"{figure.title}. {figure.caption}")}" '
        f'style="min-height:{figure.layout["height"]}px"></div>{legend_html(figure.keys)}'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def _next(step: Step) -> str:
    return f'<section class="next card"><h2>What comes next</h2><p>{escape(step.text)}</p>{_command(step)}</section>'


def _command(step: Step) -> str:
    return f'<code class="command" tabindex="0">{escape(step.command)}</code>'


def _side_by_side(model: ReportModel, drawn: Mapping[str, Figure], main: str) -> str:
    plots = "".join(_plots([drawn.get(name)]) for name in ("ranking", "all-ledgers") if name != main)
    parts = (f'{table_html(part.table)}<p class="told">{text_html(part.sentence)}</p>' for part in model.side_by_side)
    return "".join(parts) + plots


def _steps(steps: Iterable[Step]) -> str:
    return f'<div class="steps card">{"".join(f"<p>{escape(step.text)}</p>{_command(step)}" for step in steps)}</div>'


def _rank_ledgers(model: ReportModel, drawn: Mapping[str, Figure]) -> str:
    plots = _plots([drawn.get(f"ranks-{index}") for index in range(len(model.rank_ledgers))])
    tables = "".join(
        f"<details><summary>The same as a table: {escape(ledger.title)}</summary>"
        f"{table_html(ledger.table, compact=True)}</details>"
        for ledger in model.rank_ledgers
    )
    return plots + tables


def _findings(findings: Iterable[ShownFinding]) -> str:
    return f'<div class="findings">{"".join(_finding(finding) for finding in findings)}</div>' if findings else ""


def _finding(finding: ShownFinding) -> str:
    about = f" · {escape(finding.about)}" if finding.about else ""
    more = "".join(f"<p>{text_html(text)}</p>" for text in (finding.cause, finding.remedy) if text)
    severity = finding.severity if finding.severity in ("error", "warning", "info") else "info"
    return (
        f'<div class="finding card {severity}"><p class="severity">{escape(finding.severity)}{about}</p>'
        f'<p class="summary">{text_html(finding.summary)}</p>{more}</div>'
    )


def _facts(facts: tuple[Fact, ...], *, names: bool = False) -> str:
    if not facts:
        return ""
    rows = "".join(f"<dt>{escape(fact.label)}</dt><dd>{text_html(fact.text)}</dd>" for fact in facts)
    return f'<dl class="facts card{" names" if names else ""}">{rows}</dl>'
