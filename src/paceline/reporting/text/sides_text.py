"""Three sides or more as text for a terminal: a column for each, then each against A."""

from __future__ import annotations

from paceline.records.changes import Comparison
from paceline.reporting.tables.change_tables import parts_table
from paceline.reporting.tables.side_tables import all_differences_table, letters, sides_table
from paceline.reporting.text.changes_text import only_in, sentence, shown_changes, side_text, table_blocks, wrapped


def render(found: Comparison, *, width: int = 100, color: bool = False) -> str:
    """The comparison as text of at most `width` columns."""
    blocks = ["\n".join(side_text(letter, side) for letter, side in zip(letters(found), found.sides, strict=True))]
    blocks += table_blocks([all_differences_table(found), sides_table(found)], width, color)
    for changes in found.against:
        told = [text for change in changes.changes for text in (sentence(change, changes.letter), *change.notes)]
        blocks.append(wrapped([f"{changes.letter} against A", *told, *only_in(changes), *changes.notes], width))
        for change in shown_changes(changes.changes):
            blocks += table_blocks([parts_table(change, changes.letter)], width, color)
            if change.gap:
                blocks.append(wrapped([change.gap], width))
    return "\n\n".join(filter(None, blocks)) + "\n"
