"""What the recipes of a study's points chose, as lines: said once where it is the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable


def choice_lines(points: Iterable[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Labels of points with their choices -> a line for each choice, naming its points where it is not that of all."""
    labels: dict[str, list[str]] = {}
    num_points = 0
    for label, choices in points:
        num_points += 1
        for choice in choices:
            labels.setdefault(choice, []).append(label)
    return tuple(
        choice if len(where) == num_points else f"{choice} ({'; '.join(where)})" for choice, where in labels.items()
    )
