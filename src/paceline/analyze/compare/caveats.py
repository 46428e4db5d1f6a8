"""Caveats of a comparison of two studies or runs, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from paceline.analyze.stats.two_samples import LEVEL, least_p
from paceline.records.changes import Change, Compared, Difference

_ENVIRONMENT = {"machine": "machines", "version": "versions", "commit": "commits of Paceline"}


def standing_caveats(
    a: Compared, b: Compared, changes: Sequence[Change], differences: Sequence[Difference], letter: str = "B"
) -> tuple[str, ...]:
    """Caveats of the whole comparison of A with the side `letter`."""
    found = []
    other = [words for section, words in _ENVIRONMENT.items() if any(each.section == section for each in differences)]
    if a.name == b.name:
        found.append(f"A and {letter} are the same folder.")
    if other:
        found.append(f"A and {letter} ran with different {' and '.join(other)}: a difference may come from there.")
    if any(change.over == "steps" for change in changes):
        found.append(
            "Where a side is a single run, its steps are the sample: how far two runs of the same settings differ is "
            "not in the test, and a difference that is real for these two runs may be gone in the next two."
        )
    if any(change.over == "runs" for change in changes) and not _took_turns(a, b):
        found.append(f"A and {letter} did not take turns: what else the machine did meanwhile is in the difference.")
    return tuple(found)


def size_caveat(n: int, m: int, values: str) -> str | None:
    """A sentence if n and m values are too few for a significant difference."""
    least = least_p(n, m)
    if least <= LEVEL:
        return None
    return (
        f"With {n} and {m} {values} the test gives no p below {least:.2g}: no difference can be called real, however "
        "large. Four of each are the fewest that can show one."
    )


def _took_turns(a: Compared, b: Compared) -> bool:
    """Whether the runs of both overlap in time."""
    instants = [a.first_at, a.last_at, b.first_at, b.last_at]
    try:
        first_a, last_a, first_b, last_b = (datetime.fromisoformat(each or "") for each in instants)
        return first_a <= last_b and first_b <= last_a
    except (TypeError, ValueError):
        return False
