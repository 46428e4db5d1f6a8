"""One factor at a time: every value of every factor in per cent of the baseline, as a table; and what was not run."""

from __future__ import annotations

from paceline.records.results import Effect, Percent, StudyResults
from paceline.records.study import shown_value
from paceline.report.cells import Cell, interval_cell
from paceline.report.facts import Fact
from paceline.report.learning_words import LEFT_OUT
from paceline.report.one_factor_words import FIGURES, called
from paceline.report.tables import Table, factor_cell, factor_heading
from paceline.units import percent_text

DIGITS = 4
_MEANINGS = {
    "loss_pct": "Median loss on the test set after the last epoch, in % of the baseline's: below 100 is better.",
    "accuracy_pct": "Median accuracy on the test set after the last epoch, in % of the baseline's, not in points.",
    "time_pct": "Median training time in % of the baseline's: below 100 is faster.",
}
"""Fields of an effect -> what their columns mean, which is not what the same words mean without a per cent sign."""


def effects_table(results: StudyResults) -> Table:
    """One row per value of every factor: loss, accuracy and time in % of the baseline, and which effects are real."""
    effects, shown = results.effects, _shown(results)
    rows = [
        (
            Cell(factor_heading(effect.factor)),
            factor_cell(shown_value(effect.factor, effect.value)),
            *(_cell(getattr(effect, name)) for name in shown),
            Cell(called(effect)),
        )
        for effect in effects
    ]
    return Table(
        caption="In % of the baseline, which has the first value of every factor",
        columns=("factor", "value", *(_heading(name) for name in shown), "real effect"),
        rows=tuple(rows),
        footnotes=(*_notes(effects), *_unsound(results)) if rows else (),
        keys=2,
        words=("factor", "value", "real effect"),
    )


def not_run_table(results: StudyResults) -> Table:
    """One row per point that the machine or cluster could not hold; without rows where there is none."""
    return Table(
        caption="Not run",
        columns=("point", "reason"),
        rows=tuple((Cell(left_out.label), Cell(left_out.reason)) for left_out in results.not_run),
        words=("point", "reason"),
    )


def definitions(results: StudyResults) -> tuple[Fact, ...]:
    """What the table means, where there is one."""
    if not results.effects:
        return ()
    return (
        Fact("factor", "The one setting that is changed; all others are as at the baseline."),
        Fact("value", "What the factor is set to; its first value is the baseline's."),
        Fact(
            "% of the baseline",
            "The median over repeats against that of the point with the first value of every factor; its interval is "
            "that of the ratios within each repeat.",
        ),
        *(Fact(_heading(name), _MEANINGS[name]) for name in _shown(results)),
        Fact("training time", "Of all epochs of a run, evaluation left out; of a script, of whole runs."),
        Fact(
            "real effect",
            "Called so by Student's test of the logarithms of the ratios within repeats, at 5 % and corrected by "
            "Holm's method for all rows, where the interval leaves out 100 as well.",
        ),
    )


def _shown(results: StudyResults) -> list[str]:
    """The figures that an effect is known on."""
    return [name for name in FIGURES if any(getattr(effect, name) for effect in results.effects)]


def _heading(name: str) -> str:
    return f"{FIGURES[name]} (%)"


def _cell(percent: Percent | None) -> Cell:
    return interval_cell(percent and percent.interval, digits=DIGITS)


def _notes(effects: tuple[Effect, ...]) -> list[str]:
    found = [p for e in effects if not e.is_baseline for name in FIGURES if (p := getattr(e, name)) is not None]
    coverages = [percent.interval.coverage for percent in found]
    if not found:
        return []
    if any(each is None for each in coverages):
        return ["[ ] is the range of the ratios within repeats: fewer than five give no interval, and no test."]
    lowest = min(each for each in coverages if each is not None)
    return [f"[ ] is an interval of the ratio within repeats that holds with {percent_text(lowest)} confidence."]


def _unsound(results: StudyResults) -> list[str]:
    """That runs are missing from losses and accuracies, where some are."""
    return [LEFT_OUT] if any(p.learning and p.learning.faults for p in results.points) else []
