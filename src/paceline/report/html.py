"""ReportModel as one HTML file that opens offline: style, plots and Plotly's script are in it.

A policy in the page forbids every request and every script but the two whose digests it names, so
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
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from string import Template

from paceline.errors import StorageError
from paceline.report.canvas import Figure
from paceline.report.facts import Fact
from paceline.report.figures import figures
from paceline.report.legend import legend_html
from paceline.report.model import ReportModel
from paceline.report.steps import Step
from paceline.report.tables import Cell, Table
from paceline.report.words import ShownFinding

_BROWSERS_END_SCRIPT_AT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


def render(model: ReportModel) -> str:
    """The report as the text of a self-contained page."""
    drawn = figures(model)
    script, plotly = _script(_asset("report.js")), _script(_plotly())
    return Template(_asset("page.html")).substitute(
        policy=escape(_policy(script, plotly)),
        title=escape(model.title),
        slug=re.sub(r"[^a-z0-9]+", "-", model.name.lower()).strip("-") or "study",
        style=_asset("report.css"),
        body="\n".join(_sections(model, drawn)),
        figures=embedded_json({name: {"data": figure.data, "layout": figure.layout} for name, figure in drawn.items()}),
        script=script,
        plotly=plotly,
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


def _asset(name: str) -> str:
    return (importlib.resources.files("paceline.report") / "assets" / name).read_text(encoding="utf-8")


def _sections(model: ReportModel, drawn: Mapping[str, Figure]) -> Iterable[str]:
    main = next((name for name in ("speedup", "ranking") if name in drawn), "accuracy")
    yield _header(model)
    yield _plots([drawn.get(main), drawn.get("ledger")])
    yield _next(model.next_step)
    sections = [
        ("results", "Results", _table(model.figures) + _table(model.extras) + _table(model.ledger, compact=True)),
        ("compare", "Side by side", _side_by_side(model, drawn, main)),
        ("learning", "Learning curves", _plots([drawn.get(name) for name in ("accuracy", "loss") if name != main])),
        ("speed", "Epoch time and throughput", _plots([drawn.get("epoch"), drawn.get("throughput")])),
        ("ranks", "Each rank's time", _rank_ledgers(model, drawn)),
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


def _header(model: ReportModel) -> str:
    facts = "".join(f"<li>{escape(text)}</li>" for text in model.headline)
    question = f'<p class="question">{escape(model.question)}</p>' if model.question else ""
    remarks = f'<p class="remarks">{_text(" ".join(model.remarks))}</p>' if model.remarks else ""
    return (
        f'<header><ul class="headline"><li class="brand">Paceline</li>{facts}</ul><h1>{escape(model.title)}</h1>'
        f'{question}<p class="verdict">{_text(model.verdict)}</p>{remarks}{_notice(model.findings)}</header>'
    )


def _notice(findings: tuple[ShownFinding, ...]) -> str:
    """What a reader must not overlook, on the first screen; the rest is below."""
    pressing = [finding for finding in findings if finding.severity in ("error", "warning")]
    if not pressing:
        return ""
    more = f" And {len(pressing) - 1} more." if len(pressing) > 1 else ""
    first = pressing[0]
    severity = first.severity.capitalize()
    return f'<p class="notice {first.severity}"><a href="#findings">{severity}</a>: {_text(first.summary)}{more}</p>'


def _text(text: str) -> str:
    """Text of the model as HTML; a sign stays on the line of its number."""
    return escape(text).replace(" %", "\u00a0%").replace("± ", "±\u00a0").replace(" ×", "\u00a0×")


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
    parts = (f'{_table(part.table)}<p class="told">{_text(part.sentence)}</p>' for part in model.side_by_side)
    return "".join(parts) + plots


def _steps(steps: Iterable[Step]) -> str:
    return f'<div class="steps card">{"".join(f"<p>{escape(step.text)}</p>{_command(step)}" for step in steps)}</div>'


def _table(table: Table, *, compact: bool = False) -> str:
    if not table.rows:
        return ""
    named = {index for index, column in enumerate(table.columns) if column in table.words}
    head = "".join(f'<th scope="col"{_word(i in named)}>{escape(c)}</th>' for i, c in enumerate(table.columns))
    rows = "".join(_row(row, named) for row in table.rows)
    notes = "".join(f'<p class="footnote">{_text(note)}</p>' for note in table.footnotes)
    kind = ' class="compact"' if compact else ""
    return (
        f'<div class="card"><div class="scroll" role="region" tabindex="0" aria-label="{escape(table.caption)}">'
        f"<table{kind}><caption>{escape(table.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"</div>{notes}</div>\n"
    )


def _word(named: bool) -> str:
    return ' class="word"' if named else ""


def _row(row: tuple[Cell, ...], named: set[int]) -> str:
    first, *rest = row
    cells = "".join(f"<td{_word(i in named)}>{_cell(cell)}</td>" for i, cell in enumerate(rest, start=1))
    return f'<tr><th scope="row">{escape(first.figure)}</th>{cells}</tr>'


def _cell(cell: Cell) -> str:
    return _text(cell.figure) + (f" <small>{_text(cell.beside)}</small>" if cell.beside else "")


def _rank_ledgers(model: ReportModel, drawn: Mapping[str, Figure]) -> str:
    plots = _plots([drawn.get(f"ranks-{index}") for index in range(len(model.rank_ledgers))])
    tables = "".join(
        f"<details><summary>The same as a table: {escape(ledger.title)}</summary>"
        f"{_table(ledger.table, compact=True)}</details>"
        for ledger in model.rank_ledgers
    )
    return plots + tables


def _findings(findings: Iterable[ShownFinding]) -> str:
    return f'<div class="findings">{"".join(_finding(finding) for finding in findings)}</div>' if findings else ""


def _finding(finding: ShownFinding) -> str:
    about = f" · {escape(finding.about)}" if finding.about else ""
    more = "".join(f"<p>{_text(text)}</p>" for text in (finding.cause, finding.remedy) if text)
    severity = finding.severity if finding.severity in ("error", "warning", "info") else "info"
    return (
        f'<div class="finding card {severity}"><p class="severity">{escape(finding.severity)}{about}</p>'
        f'<p class="summary">{_text(finding.summary)}</p>{more}</div>'
    )


def _facts(facts: tuple[Fact, ...], *, names: bool = False) -> str:
    if not facts:
        return ""
    rows = "".join(f"<dt>{escape(fact.label)}</dt><dd>{_text(fact.text)}</dd>" for fact in facts)
    return f'<dl class="facts card{" names" if names else ""}">{rows}</dl>'
