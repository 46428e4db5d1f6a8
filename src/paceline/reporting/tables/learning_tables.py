"""Tables about learning: when each point is stable and at the target, and its test accuracy against another's."""

from __future__ import annotations

from dataclasses import replace

from paceline.metrics import metric
from paceline.records.learning import AccuracyCheck, Learning, NoiseScale, Stable, Target
from paceline.records.results import Gain, Interval, PhaseResult, StudyResults
from paceline.reporting.cells import (
    Cell,
    Form,
    fraction_cell,
    interval_cell,
    number_cell,
    percent_cell,
    points_cell,
    spread_cell,
)
from paceline.reporting.tables.point_tables import Table, key_cells, key_columns, time_unit, word_columns
from paceline.reporting.wording.choice import point_by_id
from paceline.reporting.wording.facts import Fact, term_facts
from paceline.reporting.wording.learning_words import EXCLUDED_RUNS_NOTE, check_is_of_fewer, check_outcome, margin_text
from paceline.units import percent_text

_STABLE = metric("epochs to stable").heading
_TO_TARGET = ("steps to the target", "time to the target", "rank-hours", "statistical efficiency")
_NOISE = ("noise scale", "sample efficiency")


def learning_table(results: StudyResults) -> Table:
    """One row per point with a validation curve or a noise scale: epochs to stable, the target, the noise."""
    known = [(point, point.learning) for point in results.points if point.learning]
    shown = [(point, learning) for point, learning in known if learning.stable or learning.noise]
    target, noise = results.lesson.target, any(learning.noise for _, learning in shown)
    columns = [*key_columns(results), _STABLE]
    if target is not None:
        columns += [f"epochs to {percent_text(target)}", *(metric(name).heading for name in _TO_TARGET)]
    columns += [metric(name).heading for name in _NOISE] if noise else []
    rows = [
        (
            *key_cells(results, point),
            _stable_cell(learning.stable),
            *(_target_cells(learning) if target is not None else ()),
            *(_noise_cells(learning.noise) if noise else ()),
        )
        for point, learning in shown
    ]
    stable = any(learning.stable and learning.stable.epoch for _, learning in shown)
    return Table(
        caption="Learning: when validation is stable, and what the target takes; medians over repeats",
        columns=tuple(columns),
        rows=tuple(rows),
        footnotes=tuple(_notes([learning for _, learning in shown], target)),
        blank=() if stable else (_STABLE,),
        meant={} if target is None else {f"epochs to {percent_text(target)}": "epochs to the target"},
        keys=len(key_columns(results)),
        words=word_columns(results),
    )


def accuracy_table(results: StudyResults) -> Table:
    """One row per point that is compared: the difference of its test accuracy, and what the repeats say of it."""
    checks = results.lesson.checks
    margin = f", equal within {margin_text(checks[0].margin)}" if checks else ""
    columns = ("against", "repeats", metric("difference").heading, "p different", "p equal", "called")
    pairs = [(point, check) for check in checks if (point := point_by_id(results, check.point_id))]
    notes = ["[ ] is a 95 % interval of the mean difference within repeats; p are corrected for all rows."]
    if any(check.p_different is None for check in checks):
        notes.append("Fewer than five repeats are too few to call two accuracies different or equal.")
    if any(check_is_of_fewer(results, check) for check in checks):
        notes.append(EXCLUDED_RUNS_NOTE)
    return Table(
        caption=f"Test accuracy against its reference: different{margin}, or neither shown",
        columns=(*key_columns(results), *columns),
        rows=tuple((*key_cells(results, point), *_check_cells(results, check)) for point, check in pairs),
        footnotes=tuple(notes) if pairs else (),
        keys=len(key_columns(results)),
        words=(*word_columns(results), "against", "called"),
    )


def definitions(results: StudyResults) -> tuple[Fact, ...]:
    """What the figures about learning mean, where there are any."""
    known, target = [point.learning for point in results.points if point.learning], results.lesson.target
    facts = term_facts("epochs to stable") if any(learning.stable for learning in known) else ()
    if target is not None:
        facts += (Fact("target", f"{percent_text(target)} validation accuracy: {results.lesson.rule}."),)
        facts += term_facts("time to the target", "statistical efficiency", "effective speed-up")
    facts += term_facts(*_NOISE) if any(learning.noise for learning in known) else ()
    return (*facts, *(term_facts("different, equal") if results.lesson.checks else ()))


def _stable_cell(stable: Stable | None) -> Cell:
    if stable is None or stable.epoch is None:
        return Cell(None)
    return Cell(stable.epoch, interval=None if stable.low == stable.high else (stable.low, stable.high))


def _noise_cells(noise: NoiseScale | None) -> list[Cell]:
    if noise is None:
        return [Cell(None)] * 2
    interval = None if noise.low is None else (noise.low, noise.high)
    return [
        Cell(noise.samples, form=Form(digits=3, apart=True), interval=interval),
        fraction_cell(noise.efficiency, 0),
    ]


def _target_cells(learning: Learning) -> list[Cell]:
    target = learning.target
    if target is None:
        return [Cell(None)] * 5
    return [
        _bounded(target, target.epochs),
        _bounded(target, target.steps, digits=4),
        _bounded(target, target.time_s),
        _bounded(target, target.rank_hours),
        percent_cell(learning.statistical_efficiency),
    ]


def _bounded(target: Target, figure: Interval | None, digits: int = 3) -> Cell:
    """A figure, called an upper bound where it is only one."""
    cell = interval_cell(figure, digits=digits)
    return replace(cell, bound="≤ ") if target.at_most and figure is not None else cell


def _notes(shown: list[Learning], target: float | None) -> list[str]:
    notes, targets = [], [learning.target for learning in shown if learning.target]
    stables = [learning.stable for learning in shown if learning.stable]
    if any(stable.epoch is not None and stable.high is None for stable in stables):
        notes.append("[n, –] is open: it may become stable later, or not within the epochs that were trained.")
    notes += [f"Epochs to stable: {why}." for why in dict.fromkeys(stable.why for stable in stables if stable.why)]
    notes += [f"{why[0].upper()}{why[1:]}." for why in dict.fromkeys(found.why for found in targets if found.why)]
    if target is not None and any(found.interpolated for found in targets):
        notes.append("Figures to the target are interpolated between two epochs.")
    if any(found.at_most for found in targets):
        notes.append("≤ reached within the first epoch: how much earlier is not known, and so no efficiency.")
    return notes


def _check_cells(results: StudyResults, check: AccuracyCheck) -> list[Cell]:
    other = point_by_id(results, check.against)
    return [
        Cell(other.label if other else check.against),
        Cell(check.n),
        points_cell(check.difference, check.low, check.high),
        _p_cell(check.p_different),
        _p_cell(check.p_equal),
        Cell(check_outcome(check)),
    ]


def _p_cell(p: float | None) -> Cell:
    if p is not None and p < 0.001:
        return Cell(0.001, form=Form(decimals=3), bound="<")
    return number_cell(p, 2)


_WORDS = {"train": "base frozen", "finetune": "fine-tuned"}
_LOSS = Form(general=4)


def phase_table(results: StudyResults) -> Table:
    """One row per point and phase, where any point has more than one phase."""
    points = [point for point in results.points if len(point.phases) > 1]
    unit, factor = time_unit(results.points)
    rows = [(*key_cells(results, point), *_cells(phase, factor)) for point in points for phase in point.phases]
    notes = [
        "[ ] beside a gain is the 95 % interval of its mean over repeats, wider where several points have one. "
        "Speed-ups are of the first phase."
    ]
    return Table(
        caption="Phases: the test after each, and what the second one gained within each repeat",
        columns=(
            *(*key_columns(results), "phase", metric("epoch time").heading_in(unit)),
            *(metric(name).heading for name in ("test accuracy", "test loss", "gain")),
        ),
        rows=tuple(rows),
        footnotes=tuple(notes) if rows else (),
        keys=len(key_columns(results)) + 1,
        words=(*word_columns(results), "phase"),
    )


def _cells(phase: PhaseResult, factor: float) -> list[Cell]:
    loss = Cell(phase.test_loss.mean, form=_LOSS)
    return [
        Cell(_WORDS.get(phase.name, phase.name)),
        interval_cell(phase.epoch_s, factor),
        spread_cell(phase.test_accuracy),
        loss,
        _gain_cell(phase.gain),
    ]


def _gain_cell(gain: Gain | None) -> Cell:
    return Cell(None) if gain is None else points_cell(gain.mean, gain.low, gain.high)
