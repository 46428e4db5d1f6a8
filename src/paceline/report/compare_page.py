"""A comparison as a page of its own: what changed and whether it is real, the plots, each side against A, and what
could not be compared."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from paceline.records.changes import Change, Changes, Comparison
from paceline.report.canvas import Figure
from paceline.report.change_tables import (
    accuracy_table,
    efficiencies_table,
    messages_table,
    parts_table,
    times_table,
)
from paceline.report.changes_text import only_in, percent_interval, sentence, side_text
from paceline.report.compare_plots import compare_figures
from paceline.report.figure_html import figure_html, plots_html
from paceline.report.page import page
from paceline.report.phrases import listed
from paceline.report.side_tables import all_differences_table, letters, num_tests, sides_table
from paceline.report.table_html import table_html, text_html

Drawn = Mapping[str, Figure]
_MOST_NAME = 60
_PROTOCOL = (
    (
        "Time",
        "that of the timed epochs, the first of a run left out, divided by their steps or samples; of single runs, "
        "that of their steps after the first, taken together in blocks.",
    ),
    (
        "Real",
        "where Mann and Whitney's rank test gives a p of 0.05 or less, corrected by Holm's method for all that are "
        "tested together, and the interval of the ratio leaves out 1. Else the two cannot be told apart, which is not "
        "to say that they are equal.",
    ),
    (
        "Interval",
        "of a ratio or difference: the same test turned round, over all pairs of a value of A and one of the other "
        "side. Of a median: two of the runs between which it lies; with fewer than five runs their range.",
    ),
    ("By kind", "the ledger of the run whose time is the median: its rows sum to the difference of the two medians."),
)


def render(found: Comparison) -> str:
    """The comparison as the text of a self-contained page."""
    drawn = {figure.name: figure for figure in compare_figures(found)}
    title = f"{listed([_name(side.name) for side in found.sides[1:]])} against {_name(found.sides[0].name)}"
    sections = [
        ("results", "What changed?", _changed(found, drawn)),
        ("time", "Where does it come from?", _sources(found, drawn)),
        ("accuracy", "What did it cost in accuracy?", _accuracies(found, drawn)),
        ("gaps", "What could not be compared?", _gaps(found)),
        ("measured", "How was it tested?", _protocol()),
    ]
    links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in sections)
    contents = f'<nav class="contents" aria-label="Contents"><ul>{links}</ul></nav>'
    body = [_first(found, title, drawn), contents]
    body += [
        f'<section id="{name}" class="question"><h2>{heading}</h2>{text}</section>' for name, heading, text in sections
    ]
    return page(title=title, name=f"compare-{title}", body="\n".join(body), drawn=drawn.values())


def _first(found: Comparison, title: str, drawn: Drawn) -> str:
    """The answer for every side, and the two plots that show it."""
    names = zip(letters(found), found.sides, strict=True)
    sides = "<br>".join(escape(side_text(letter, side)) for letter, side in names)
    answer = text_html(_answer(found))
    shown = [(drawn.get("ratio"), "main"), (drawn.get("ledger"), "beside")]
    plots = "".join(figure_html(figure, kind=kind, level=2) for figure, kind in shown if figure is not None)
    alone = " alone" if sum(figure is not None for figure, _ in shown) == 1 else ""
    return (
        f'<div class="first{alone}"><header><ul class="headline"><li class="brand">Paceline</li></ul>'
        f'<h1>{escape(title)}</h1><p class="verdict">{answer}</p></header><p class="remarks">{sides}</p>{plots}</div>'
    )


def _answer(found: Comparison) -> str:
    """The answer of two sides in a sentence; of more, which differ from A and which cannot be told apart from it."""
    if len(found.against) == 1:
        (changes,) = found.against
        return sentence(_telling(changes), "B") if changes.changes else "B has no time that could be compared with A's."
    real = [changes for changes in found.against if changes.changes and _telling(changes).time_s.real]
    others = [changes for changes in found.against if changes.changes and changes not in real]
    few = [changes.letter for changes in others if _telling(changes).time_s.change.coverage is None]
    alike = [changes.letter for changes in others if changes.letter not in few]
    refused = [changes.letter for changes in found.against if not changes.changes]
    parts = [_short(_telling(changes), changes.letter) for changes in real]
    parts += [f"{listed(alike)} cannot be told apart from A"] if alike else []
    parts += [f"{listed(few)} {'have' if len(few) > 1 else 'has'} too few runs to tell"] if few else []
    parts += [f"{listed(refused)} could not be compared with it"] if refused else []
    return f"{'; '.join(parts)}."


def _telling(changes: Changes) -> Change:
    """The pair with the most ranks that differs, or with the most ranks."""
    return ([change for change in changes.changes if change.time_s.real] or list(changes.changes))[-1]


def _short(change: Change, letter: str) -> str:
    word = "slower" if change.time_s.change.median > 1 else "faster"
    return f"{letter} is {percent_interval(change.time_s)} {word} than A with {change.label}"


def _changed(found: Comparison, drawn: Drawn) -> str:
    told = "".join(
        f'<p class="told">{text_html(sentence(change, changes.letter))}</p>'
        for changes in found.against
        for change in changes.changes
    )
    plots = plots_html([drawn.get("throughput"), drawn.get("epoch")])
    return table_html(all_differences_table(found)) + table_html(sides_table(found)) + told + plots


def _sources(found: Comparison, drawn: Drawn) -> str:
    """Of every pair the parts, the efficiencies and the messages; each folded, but for those that differ."""
    further = plots_html([figure for name, figure in drawn.items() if name.startswith("ledger-")])
    folds = "".join(_pair(change, changes, found) for changes in found.against for change in changes.changes)
    return (further + folds) or '<p class="told">Nothing was timed on both sides.</p>'


def _pair(change: Change, changes: Changes, found: Comparison) -> str:
    letter = changes.letter
    tables = (
        times_table([change], change.unit, letter, num_tests(found)),
        parts_table(change, letter),
        efficiencies_table(change, letter),
        messages_table(change, letter),
    )
    notes = "".join(f'<p class="told">{text_html(note)}</p>' for note in (change.gap, *change.notes) if note)
    opened = " open" if change.time_s.real else ""
    return (
        f'<details class="fold"{opened}><summary>{escape(f"{letter} against A with {change.label}")}</summary>'
        f"{''.join(map(table_html, tables))}{notes}</details>"
    )


def _accuracies(found: Comparison, drawn: Drawn) -> str:
    tables = "".join(table_html(accuracy_table(changes.changes, changes.letter)) for changes in found.against)
    nothing = '<p class="told">No side has a test accuracy that the other has, too.</p>'
    return plots_html([drawn.get("accuracy")]) + (tables or nothing)


def _gaps(found: Comparison) -> str:
    """Points without a counterpart, what was not measured, and what the tests cannot tell."""
    rows = "".join(
        f"<dt>{changes.letter} against A</dt><dd>{text_html(' '.join((*only_in(changes), *changes.notes)))}</dd>"
        for changes in found.against
        if changes.notes or changes.only_a or changes.only_b
    )
    return f'<dl class="facts card">{rows}</dl>' if rows else '<p class="told">Every point has its counterpart.</p>'


def _protocol() -> str:
    rows = "".join(f"<dt>{name}</dt><dd>{text_html(text)}</dd>" for name, text in _PROTOCOL)
    return f'<dl class="facts card">{rows}</dl>'


def _name(folder: str) -> str:
    """The last part of a folder's path that says something: that of a run is a number."""
    parts = [part for part in folder.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    kept = parts[-1:] if not parts or not parts[-1].isdecimal() else [parts[-3], parts[-1]] if len(parts) > 2 else parts
    name = " ".join(kept) or folder
    return name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 1]}…"
