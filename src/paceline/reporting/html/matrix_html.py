"""The communication matrix of a run as a table with shades: bytes and time by sender and receiver, rank or host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from paceline.records.trace_summary import Exchange, TraceSummary
from paceline.reporting.cells import NONE
from paceline.units import bytes_text, counted, duration_text

_MOST_PROCESSES = 64
_MOST_WITH_FIGURES = 12
"""Columns that still have room for a figure in every cell; with more there are shades alone."""
Value = Callable[[Exchange], float | None]
"""What a cell is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """One cell: from the process of its row to that of its column."""

    text: str
    about: str
    """The cell in a sentence."""
    level: float
    """How dark: 1 for the largest of the matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Shades by sender (rows) and receiver (columns)."""

    title: str
    caption: str
    names: tuple[str, ...]
    """Of the processes, in the order of rows and columns."""
    heads: tuple[str, ...]
    """Names above the columns: short where there are many."""
    places: tuple[str, ...]
    """The host of each; empty where there is one, or they are not known."""
    rows: tuple[tuple[Shade | None, ...], ...]
    """None where nothing went from one to the other."""
    figures: bool
    """Whether cells have room for their text."""

    @property
    def spans(self) -> list[tuple[str, int]]:
        """Neighbours on one host: its name and their number."""
        return [(place, len(list(own))) for place, own in groupby(self.places)]


def matrices(run: TraceSummary, hosts: Sequence[str]) -> tuple[Matrix, ...]:
    """Payload and time from rank to rank, from host to host where there are several; empty where nothing was sent."""
    if not run.matrix:
        return ()
    whole = sorted({number for cell in run.matrix for number in (cell.source, cell.target)} | set(range(run.ranks)))
    places = {rank: host for rank, host in enumerate(hosts)} if len(set(hosts)) > 1 else {}
    met = list(dict.fromkeys(hosts))
    by_host = sorted(whole, key=lambda number: (met.index(places[number]) if number in places else len(met), number))
    shown = by_host[:_MOST_PROCESSES]
    names = {number: _name(number, run.ranks) for number in shown}
    grouped = tuple(places.get(number, "servers") for number in shown) if places else ()
    left_out = "" if len(shown) == len(whole) else f" The first {len(shown)} of {len(whole)} processes."
    short = {number: _short_name(number, run.ranks) for number in shown}
    found = _pair("ranks", "the rank", run.matrix, names, grouped, left_out, short)
    if len(run.host_names) > 1 and run.host_matrix:
        found += _pair("hosts", "all ranks of the host", run.host_matrix, dict(enumerate(run.host_names)), (), "")
    return found


def _pair(
    whom: str,
    from_whom: str,
    cells: Sequence[Exchange],
    names: Mapping[int, str],
    places: tuple[str, ...],
    note: str,
    short: Mapping[int, str] | None = None,
) -> tuple[Matrix, ...]:
    """Payload and time of the same exchanges."""
    if any(cell.estimated for cell in cells):
        note = (
            " Estimated (≈) where collectives are in it: what a backend sends for one is not seen, and is divided as "
            f"the usual algorithm would, a ring for an all-reduce.{note}"
        )

    has_figures = len(names) <= _MOST_WITH_FIGURES
    heads = names if has_figures or short is None else short

    def matrix(title: str, caption: str, value: Value, text: Callable[[float], str]) -> Matrix:
        return Matrix(
            title=f"{title} between {whom}",
            caption=caption + note,
            names=tuple(names.values()),
            heads=tuple(heads.values()),
            places=places,
            rows=_rows(cells, names, value, text),
            figures=has_figures,
        )

    return (
        matrix("Payload", f"Bytes from {from_whom} of a row to that of a column.", _payload, bytes_text),
        matrix(
            "Time",
            "How long these messages were under way after all sides had issued them; those that overlap count each.",
            _seconds,
            duration_text,
        ),
    )


def _rows(
    cells: Sequence[Exchange], names: Mapping[int, str], value: Value, text: Callable[[float], str]
) -> tuple[tuple[Shade | None, ...], ...]:
    by_pair = {(cell.source, cell.target): cell for cell in cells}
    most = max((found for cell in cells if (found := value(cell)) is not None), default=0.0)

    def shade(source: int, target: int) -> Shade | None:
        cell = by_pair.get((source, target))
        if cell is None:
            return None
        found = value(cell)
        shown = NONE if found is None else ("≈ " if cell.estimated else "") + text(found)
        sent = counted(cell.messages, "message")
        about = f"{names[source]} to {names[target]}: {shown}, {sent}"
        return Shade(text=shown, about=about, level=round((found or 0.0) / most, 3) if most else 0.0)

    return tuple(tuple(shade(source, target) for target in names) for source in names)


def _payload(cell: Exchange) -> float:
    return float(cell.payload_bytes)


def _seconds(cell: Exchange) -> float | None:
    return cell.seconds


def _name(number: int, ranks: int) -> str:
    return f"rank {number}" if number < ranks else f"server {number}"


def _short_name(number: int, ranks: int) -> str:
    return str(number) if number < ranks else f"s{number}"
