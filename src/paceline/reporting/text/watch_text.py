"""A study that runs, as text for a terminal: how far it is, what its ranks do, what they have learned, where time went.

Control characters of all names are replaced here: names are read from files of unknown origin.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from paceline.metrics import metric
from paceline.records.live_study import OVER, PointNow, RankNow, RunNow, Watched
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.run import Epoch
from paceline.reporting.cells import (
    NONE,
    Cell,
    count_cell,
    duration_cell,
    fraction_cell,
    interval_cell,
    number_cell,
    share_cell,
    spread_cell,
)
from paceline.reporting.tables.point_tables import Table
from paceline.reporting.text.report_text import table_blocks
from paceline.reporting.wording.characters import printable
from paceline.units import count_text, counted, duration_text, finite, number_text

_MOST_POINTS, _MOST_RANKS, _MOST_EPOCHS = 12, 8, 5
_FEW = 2
"""Ranks on a screen that is too low for more."""
_BAR = 24
_STILL_S = 3.0
"""Seconds without a heartbeat after which a rank is shown as silent."""
_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 40


def render(seen: Watched, *, width: int = 100, color: bool = False, height: int | None = None) -> str:
    """What is known at one moment as text of at most `width` columns; without the points where it is too high."""
    text = _rendered(seen, width, color, brief=False)
    return text if height is None or text.count("\n") < height else _rendered(seen, width, color, brief=True)


def _rendered(seen: Watched, width: int, color: bool, *, brief: bool) -> str:
    blocks = [_heading(seen, width)]
    blocks += table_blocks([_points_table(seen.points)] if seen.points and not brief else [], width, color)
    if seen.run is not None and seen.state != "finished":
        blocks.append(_wrapped([_run_line(seen.run, over=seen.state in OVER)], width))
        blocks += table_blocks(
            [_ranks_table(seen, brief), _epochs_table(seen.run.epochs, brief), ledger_table(seen.run, brief)],
            width,
            color,
        )
        blocks += [_wrapped(seen.run.notes, width)] if seen.run.notes else []
    blocks.append(_closing(seen))
    return "\n\n".join(filter(None, blocks)) + "\n"


def _heading(seen: Watched, width: int) -> str:
    lines = [f"{seen.name}  {seen.folder}" if seen.name != seen.folder else seen.folder, seen.told]
    if seen.of:
        filled = round(_BAR * seen.done / seen.of)
        left = f", {remaining_text(seen.left_s)}" if seen.left_s is not None else ""
        lines.append(f"{'█' * filled}{'░' * (_BAR - filled)} {seen.done} of {counted(seen.of, 'run')}{left}")
    elif seen.left_s is not None:
        lines.append(remaining_text(seen.left_s))
    if seen.unread:
        lines.append(f"{counted(seen.unread, 'finished run')} not read yet.")
    return _wrapped(lines, width)


def remaining_text(left_s: float) -> str:
    """`about 2 min 10 s left`: an estimate, to the second."""
    return f"about {_whole_text(max(1.0, left_s))} left"


def _whole_text(value_s: float) -> str:
    """Time in whole seconds."""
    return duration_text(value_s) if value_s >= 60 else f"{round(value_s)} s"


def _points_table(points: Sequence[PointNow]) -> Table:
    """One row a point; of many those that are on, failed or last in turn."""
    chosen = sorted(points, key=lambda point: ("running", "failed", "done", "waiting").index(point.state))
    wanted = {point.point for point in chosen[:_MOST_POINTS]}
    shown = [point for point in points if point.point in wanted]
    factor = 1.0 if max((p.epoch_s.median for p in shown if p.epoch_s), default=1.0) >= 1 else 1e3
    rows = tuple(
        (
            Cell(printable(point.label)),
            Cell(f"{point.done} of {point.of}"),
            Cell(point.state),
            interval_cell(point.epoch_s, factor),
            interval_cell(point.samples_per_s, digits=4),
            spread_cell(point.test_accuracy),
        )
        for point in shown
    )
    notes = [f"{counted(len(points) - len(shown), 'more point')}: --json."] if len(points) > len(shown) else []
    notes += [printable(f"{point.label}: {point.failure}") for point in shown if point.failure]
    times = [interval for point in shown for interval in (point.epoch_s, point.samples_per_s) if interval]
    if any(interval.n > 1 and interval.coverage is None for interval in times):
        notes.append("[ ] is the range of the runs that are finished.")
    elif any(interval.n > 1 for interval in times):
        notes.append("[ ] is an interval of the median of the runs that are finished.")
    return Table(
        caption="Points",
        columns=(
            "point",
            "runs",
            "state",
            metric("epoch time").heading_in("s" if factor == 1 else "ms"),
            "samples/s",
            "test accuracy",
        ),
        rows=rows,
        footnotes=tuple(notes),
        words=("point", "state"),
    )


def _run_line(run: RunNow, *, over: bool) -> str:
    """`2 ranks, run 3: step 120 of 188, 1,650 samples/s, launched 12.3 s ago.`"""
    name = f"{run.label}, run {run.run}" if run.run else run.label
    name += f", attempt {run.attempt}" if run.attempt > 1 else ""
    parts = [_step_text(run.step, run.total_steps) if run.step else run.phase]
    if run.samples_per_s is not None and not over:
        parts.append(f"{number_text(run.samples_per_s, 4)} samples/s")
    if run.elapsed_s is not None:
        parts.append(f"launched {duration_text(run.elapsed_s)} ago")
    return printable(f"{name}{', which is not finished' if over else ''}: {', '.join(parts)}.")


def _step_text(step: int | None, total: int | None) -> str:
    if step is None:
        return NONE
    return f"step {count_text(step)} of {count_text(total)}" if total else f"step {count_text(step)}"


def _ranks_table(seen: Watched, brief: bool) -> Table:
    run, over = seen.run, seen.state in OVER
    assert run is not None
    shown = run.ranks[: _FEW if brief else _MOST_RANKS]
    rows = tuple(
        (
            Cell(rank.rank),
            Cell(printable(_doing(rank, over=over))),
            count_cell(rank.step),
            number_cell(rank.steps_per_s),
            number_cell(rank.samples_per_s, 4),
        )
        for rank in shown
    )
    return Table(
        caption="Where each rank was" if over else "Throughput of each rank, over the last seconds",
        columns=("rank", "doing", "steps", "steps/s", "samples/s"),
        rows=rows,
        footnotes=_more_ranks(run, len(shown)),
        words=("doing",),
    )


def _doing(rank: RankNow, *, over: bool) -> str:
    if rank.ended is not None:
        return rank.ended
    if rank.phase is None:
        return "starting"
    if not over and rank.still_s is not None and rank.still_s > _STILL_S and rank.phase != "done":
        return f"{rank.phase}, no sign of life for {_whole_text(rank.still_s)}"
    return rank.phase


def _epochs_table(epochs: Sequence[Epoch], brief: bool) -> Table:
    shown = epochs[-1 if brief else -_MOST_EPOCHS :]
    rows = tuple(
        (
            Cell(epoch.epoch),
            number_cell(finite(epoch.train_loss)),
            fraction_cell(finite(epoch.train_accuracy)),
            number_cell(finite(epoch.validation_loss)),
            fraction_cell(finite(epoch.validation_accuracy)),
            duration_cell(finite(epoch.epoch_s)),
        )
        for epoch in shown
    )
    losses = [loss for epoch in epochs if (loss := finite(epoch.train_loss)) is not None][-_MOST_BARS:]
    curve = _curve(losses)
    bad = [epoch.epoch for epoch in epochs if finite(epoch.train_loss) is None]
    notes = [f"Training loss of {len(losses)} epochs: {curve}"] if len(losses) > 2 and curve else []
    notes += [f"The training loss of epoch {bad[0]} is not a number: it has diverged."] if bad else []
    return Table(
        caption="Epochs"
        if len(shown) == len(epochs)
        else f"The last {len(shown) if len(shown) > 1 else ''} of {len(epochs)} epochs".replace("  ", " "),
        columns=("epoch", "loss", "accuracy", "validation loss", "validation accuracy", "time"),
        rows=rows,
        footnotes=tuple(notes),
    )


def _curve(values: Sequence[float]) -> str:
    """Values as a row of bars; empty where all are the same."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return "".join(_BARS[min(7, int(8 * (value - low) / (high - low)))] for value in values) if high > low else ""


def ledger_table(run: RunNow, brief: bool) -> Table:
    """Where the time of every rank went until now, as shares of it."""
    counted_ranks = [rank for rank in run.ranks if rank.ledger_s]
    ledgers = [
        (str(rank.rank), rank.ledger_s) for rank in counted_ranks[: _FEW if brief else _MOST_RANKS] if rank.ledger_s
    ]
    if run.ledger_s and len(counted_ranks) > 1:
        ledgers.append(("mean", run.ledger_s))
    rows = tuple((Cell(name), *map(_share_cell, _shares(ledger))) for name, ledger in ledgers)
    blank = tuple(
        kind for column, kind in enumerate(LEDGER_KINDS, start=1) if all(row[column].value == 0 for row in rows)
    )
    unmeasured = any(cell.value is None for row in rows for cell in row)
    return Table(
        caption=f"Ledger so far: from the launch to step {count_text(run.ledger_step)}, "
        f"{duration_text(run.ledger_reaches_s)}; spans are flushed every ten seconds",
        columns=("rank", *LEDGER_KINDS),
        rows=rows,
        blank=blank,
        footnotes=(*(("– not measured",) if unmeasured else ()), *_more_ranks(run, _FEW if brief else _MOST_RANKS)),
    )


def _shares(ledger_s: dict[str, float | None]) -> list[float | None]:
    whole_s = sum(value for value in ledger_s.values() if value is not None)
    values = [ledger_s.get(kind) for kind in LEDGER_KINDS]
    return [None if value is None else value / whole_s if whole_s > 0 else 0.0 for value in values]


def _share_cell(share: float | None) -> Cell:
    return Cell(0) if share == 0 else share_cell(share)


def _more_ranks(run: RunNow, shown: int) -> tuple[str, ...]:
    more = len(run.ranks) - shown
    return (f"{counted(more, 'more rank')}: --json.",) if more > 0 else ()


def _closing(seen: Watched) -> str:
    if seen.state not in OVER:
        return ""
    lines = [f"Report  {printable(seen.report)}"] if seen.report else []
    return "\n".join([*lines, f"Next    {printable(seen.next)}"])


def _wrapped(sentences: Iterable[str], width: int) -> str:
    return "\n".join(
        textwrap.fill(printable(each), width, break_long_words=True, break_on_hyphens=False) for each in sentences
    )
