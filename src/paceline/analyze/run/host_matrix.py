"""The matrix between hosts: what went from the ranks of one to those of another, and among its own."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.records.trace_summary import Exchange


def between_hosts(matrix: Sequence[Exchange], hosts: Sequence[str]) -> tuple[tuple[str, ...], tuple[Exchange, ...]]:
    """The hosts in the order of their ranks, and a cell for each pair that exchanged something, by their places there.

    `hosts` names that of each rank; what went to or from a server, whose host it does not name, is left out.
    """
    names = tuple(dict.fromkeys(hosts))
    place = [names.index(host) for host in hosts]
    cells: dict[tuple[int, int], list[Exchange]] = {}
    for cell in matrix:
        if 0 <= cell.source < len(place) and 0 <= cell.target < len(place):
            cells.setdefault((place[cell.source], place[cell.target]), []).append(cell)
    return names, tuple(_sum(source, target, found) for (source, target), found in sorted(cells.items()))


def _sum(source: int, target: int, cells: Sequence[Exchange]) -> Exchange:
    known = [cell.seconds for cell in cells if cell.seconds is not None]
    return Exchange(
        source=source,
        target=target,
        payload_bytes=sum(cell.payload_bytes for cell in cells),
        seconds=sum(known) if known else None,
        messages=sum(cell.messages for cell in cells),
        estimated=any(cell.estimated for cell in cells),
    )
