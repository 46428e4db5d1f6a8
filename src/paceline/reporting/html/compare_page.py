"""The page of a comparison: changes with their tests, plots, each side against A, and what was not compared."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.records.changes import Change, Changes, Comparison
from paceline.reporting.figures.compare_plots import compare_figures
from paceline.reporting.html.markup import fragment
from paceline.reporting.html.page import page
from paceline.reporting.tables.change_tables import (
    accuracy_table,
    efficiencies_table,
    messages_table,
    parts_table,
    times_table,
)
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.tables.side_tables import all_differences_table, letters, num_tests, sides_table
from paceline.reporting.text.changes_text import only_in, percent_interval, sentence, side_text
from paceline.reporting.wording.facts import Fact
from paceline.reporting.wording.phrases import listed

_MOST_NAME = 60
_PROTOCOL = (
    Fact(
        "Time",
        "that of the timed epochs, the first of a run left out, divided by their steps or samples; of single runs, "
        "that of their steps after the first, taken together in blocks.",
    ),
    Fact(
        "Real",
        "where Mann and Whitney's rank test gives a p of 0.05 or less, corrected by Holm's method for all that are "
        "tested together, and the interval of the ratio leaves out 1. Otherwise the two cannot be told apart, which "
        "does not mean that they are equal.",
    ),
    Fact(
        "Interval",
        "of a ratio or difference: the same test turned round, over all pairs of a value of A and one of the other "
        "side. Of a median: two of the runs between which it lies; with fewer than five runs their range.",
    ),
    Fact(
        "By kind", "the ledger of the run whose time is the median: its rows sum to the difference of the two medians."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A change with its tables; those that are real are open on the page."""

    heading: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    is_open: bool


def render(found: Comparison) -> str:
    """The comparison as the text of a self-contained page."""
    drawn = {figure.name: figure for figure in compare_figures(found)}
    title = f"{listed([_name(side.name) for side in found.sides[1:]])} against {_name(found.sides[0].name)}"
    changes = [(each, change) for each in found.against for change in each.changes]
    body = fragment(
        "compare",
        "page",
        title=title,
        answer=_answer(found),
        sides=[side_text(letter, side) for letter, side in zip(letters(found), found.sides, strict=True)],
        drawn=drawn,
        differences=(all_differences_table(found), sides_table(found)),
        sentences=[sentence(change, each.letter) for each, change in changes],
        ledgers=[figure for name, figure in drawn.items() if name.startswith("ledger-")],
        pairs=[_pair(change, each.letter, found) for each, change in changes],
        accuracies=[accuracy_table(each.changes, each.letter) for each in found.against],
        gaps=_gaps(found),
        protocol=_PROTOCOL,
    )
    return page(title=title, name=f"compare-{title}", body=body, drawn=drawn.values())


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


def _pair(change: Change, letter: str, found: Comparison) -> Pair:
    return Pair(
        heading=f"{letter} against A with {change.label}",
        tables=(
            times_table([change], change.unit, letter, num_tests(found)),
            parts_table(change, letter),
            efficiencies_table(change, letter),
            messages_table(change, letter),
        ),
        notes=tuple(note for note in (change.gap, *change.notes) if note),
        is_open=bool(change.time_s.real),
    )


def _gaps(found: Comparison) -> list[Fact]:
    """Points without a counterpart, what was not measured, and what the tests cannot tell."""
    return [
        Fact(f"{changes.letter} against A", " ".join((*only_in(changes), *changes.notes)))
        for changes in found.against
        if changes.notes or changes.only_a or changes.only_b
    ]


def _name(folder: str) -> str:
    """The last part of a folder's path that says something: that of a run is a number."""
    parts = [part for part in folder.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    named_parts = (
        parts[-1:] if not parts or not parts[-1].isdecimal() else [parts[-3], parts[-1]] if len(parts) > 2 else parts
    )
    name = " ".join(named_parts) or folder
    return name if len(name) <= _MOST_NAME else f"{name[: _MOST_NAME - 1]}…"
