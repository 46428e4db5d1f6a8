"""Changes as text for a terminal: what differed beforehand, what changed, what of that is real, where it comes from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from paceline.records.changes import Change, Changes, Compared, Comparison, Versus
from paceline.reporting.tables.change_tables import (
    accuracy_table,
    differences_table,
    efficiencies_table,
    messages_table,
    p_cell,
    parts_table,
    times_table,
)
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.tables.side_tables import all_differences_table, letters, sides_table
from paceline.reporting.text.report_text import table_blocks
from paceline.reporting.wording.phrases import interval_phrase
from paceline.units import counted, interval_text, number_text

_MOST_PARTS = 4
_TIMES_FROM = 2
"""Smallest ratio that is written as a factor instead of per cent."""
_SMALLEST_PART = 0.005
"""Smallest share of A's time that is named."""


def render(found: Changes, *, width: int = 100, color: bool = False) -> str:
    """The comparison of two as text of at most `width` columns."""
    blocks = [side_text("A", found.a) + "\n" + side_text("B", found.b)]
    tables: list[Table] = [differences_table(found.differences)]
    tables += [times_table(found.changes, unit) for unit in dict.fromkeys(change.unit for change in found.changes)]
    blocks += table_blocks(tables, width, color)
    blocks += [wrapped((sentence(change), *change.notes), width) for change in found.changes]
    for change in shown_changes(found.changes):
        shown = (parts_table(change), efficiencies_table(change), messages_table(change))
        blocks += table_blocks(shown, width, color)
        if change.gap:
            blocks.append(wrapped([change.gap], width))
    blocks += table_blocks([accuracy_table(found.changes)], width, color)
    blocks.append(wrapped((*only_in(found), *found.notes), width))
    return "\n\n".join(filter(None, blocks)) + "\n"


def render_sides(found: Comparison, *, width: int = 100, color: bool = False) -> str:
    """The comparison of more than two sides as text of at most `width` columns."""
    blocks = ["\n".join(side_text(letter, side) for letter, side in zip(letters(found), found.sides, strict=True))]
    blocks += table_blocks([all_differences_table(found), sides_table(found)], width, color)
    for changes in found.against:
        sentences_of_side = [
            text for change in changes.changes for text in (sentence(change, changes.letter), *change.notes)
        ]
        blocks.append(
            wrapped([f"{changes.letter} against A", *sentences_of_side, *only_in(changes), *changes.notes], width)
        )
        for change in shown_changes(changes.changes):
            blocks += table_blocks([parts_table(change, changes.letter)], width, color)
            if change.gap:
                blocks.append(wrapped([change.gap], width))
    return "\n\n".join(filter(None, blocks)) + "\n"


def only_in(found: Changes) -> list[str]:
    """The points that have no counterpart, a sentence a side."""
    sides = (("A", found.letter, found.only_a), (found.letter, "A", found.only_b))
    return [
        f"Only in {side}: {'; '.join(labels)}."
        if found.letter == "B"
        else f"Only in {side}, not in {other}: {'; '.join(labels)}."
        for side, other, labels in sides
        if labels
    ]


def sentence(change: Change, letter: str = "B") -> str:
    """The answer at one pair: by how much B is slower or faster, whether that is real, and through which kinds."""
    where, per = f"with {change.label}", f"per {change.unit}"
    ratio = change.time_s.change
    if not change.time_s.real:
        longer = f"{letter} takes {number_text(ratio.median)} times as long {per} {interval_phrase(ratio)}"
        if ratio.coverage is None:
            few = "runs" if change.over == "runs" else "blocks of steps"
            return f"{where[0].upper()}{where[1:]} {longer}: too few {few} to call that a difference."
        text = f"{where[0].upper()}{where[1:]} A and {letter} cannot be told apart: {longer}"
        return f"{text}, p {p_cell(change.time_s).figure}{_unseen(change)}."
    if ratio.median >= _TIMES_FROM:
        text = f"{letter} takes {interval_text(ratio.median, ratio.low, ratio.high, 2)} times as long {per} {where}"
    else:
        word = "slower" if ratio.median > 1 else "faster"
        text = f"{letter} is {percent_interval(change.time_s)} {word} {per} {where}"
    parts = _named_parts(change)
    return f"{text}: {', '.join(parts)}." if parts else f"{text}."


def percent_interval(found: Versus) -> str:
    """`18 % [15, 21]`, of A's time, without a sign."""
    ratio = found.change
    ends = sorted(abs(end - 1) * 100 for end in (ratio.low, ratio.high))
    figure = abs(ratio.median - 1) * 100
    decimals = 0 if figure >= 10 else 1
    return f"{figure:.{decimals}f} % [{ends[0]:.{decimals}f}, {ends[1]:.{decimals}f}]"


def _named_parts(change: Change) -> list[str]:
    """The kinds that clearly changed, the largest first, and the rest: `+12 points comm-wait`, `+5 input-wait`."""
    clear = [
        part
        for part in change.parts
        if part.change_s is not None
        and part.share is not None
        and not part.change_s.low <= 0 <= part.change_s.high
        and abs(part.share) >= _SMALLEST_PART
    ]
    named = sorted(clear, key=lambda part: -abs(part.share or 0.0))[:_MOST_PARTS]
    if not named:
        return []
    rest = sum(part.share or 0.0 for part in change.parts) - sum(part.share or 0.0 for part in named)
    shares = [(part.kind, part.share or 0.0) for part in named]
    shares += [("the rest", rest)] if abs(rest) >= _SMALLEST_PART else []
    return [
        f"{points_text(share)}{' points' if not index else ''} {kind}" for index, (kind, share) in enumerate(shares)
    ]


def points_text(share: float) -> str:
    """A share of A's time as percentage points with a sign: `+12`, `−0.8`."""
    points = share * 100
    text = f"{abs(points):.0f}" if abs(points) >= 9.95 else f"{abs(points):.1f}"
    return ("−" if points < 0 else "+") + text if float(text) else "0"


def _unseen(change: Change) -> str:
    """The smallest difference that the test can detect."""
    if change.smallest_seen is None:
        return ""
    return f"; less than {number_text(change.smallest_seen * 100, 2)} % would not have been seen"


def side_text(letter: str, side: Compared) -> str:
    """`A  runs/narrow: a study of 5 finished runs, 2026-11-16 08:57 to 2026-11-16 09:04`."""
    when = ""
    if side.first_at:
        first, last = (_minute(instant) for instant in (side.first_at, side.last_at or side.first_at))
        when = f", {first}" + (f" to {last}" if last != first else "")
    runs = f" of {counted(side.runs, 'finished run')}" if side.what == "study" else ""
    return f"{letter}  {side.name}: a {side.what}{runs}{when}"


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")


def shown_changes(changes: Sequence[Change]) -> list[Change]:
    """Changes whose parts are shown: the significant ones, or the last one without any."""
    return [change for change in changes if change.time_s.real] or list(changes[-1:])


def wrapped(sentences: Iterable[str], width: int) -> str:
    """Sentences wrapped to `width`, one per line."""
    return "\n".join(textwrap.fill(each, width, break_long_words=False, break_on_hyphens=False) for each in sentences)
