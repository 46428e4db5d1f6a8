"""Commands that a report offers: what to run next, and how to repeat what was run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from paceline import catalog
from paceline.records.results import StudyResults
from paceline.reporting.wording.choice import is_script, verdict_point
from paceline.reporting.wording.verdict_words import finished_runs

ENOUGH_REPEATS = 5
"""The fewest with which the median has an interval and not only a range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something to run, and what for."""

    text: str
    command: str


def next_step(results: StudyResults, next_part: Step | None = None) -> Step:
    """What is most worth running now, and why; `next_part` is the study that continues this one at the small size."""
    study = results.study
    fair = [p.point.ranks for p in results.points if p.fair]
    if finished_runs(results) < results.expected_runs:
        cause = "Fix what failed, then finish" if any(p.failure for p in results.points) else "Finish"
        return Step(text=f"{cause} the study: it continues where it stopped.", command=study_command(results))
    if study.run.repeats < ENOUGH_REPEATS:
        text = f"Run {ENOUGH_REPEATS} repeats: then there is an interval instead of a range. Finished runs are kept."
        return Step(text=text, command=study_command(results, "--repeats", str(ENOUGH_REPEATS)))
    if study.size == "small" and next_part:
        return next_part
    if study.size == "small":
        text = "Run it at its full size, as it is written: this says first what that takes."
        return Step(text=text, command=study_command(results, "--size", "full", "--dry-run", folder=_full(results)))
    if results.effects or study.asks == "accuracy":
        text = f"More repeats show smaller {'effects' if results.effects else 'differences'}. Finished runs are kept."
        return Step(text=text, command=study_command(results, "--repeats", str(2 * study.run.repeats)))
    return _wider(results, fair) or _other_strategy(results)


def _full(results: StudyResults) -> str:
    return f"{results.folder.rstrip('/')}-full"


def _wider(results: StudyResults, fair: list[int]) -> Step | None:
    """More points, where the machine has room for them or there is nothing to compare with."""
    point, most = verdict_point(results), max(fair, default=1)
    free = results.machine.cores // results.study.run.threads if results.machine else 2
    if len({p.point.ranks for p in results.points}) == 1 and most > 1:
        text = "Measure one rank as well: a speed-up needs something to compare with. Finished runs are kept."
        return Step(text=text, command=study_command(results, "--ranks", f"1,{most}"))
    worthwhile = point is None or (point.efficiency is not None and point.efficiency.median >= 0.5)
    if free >= 2 * most and worthwhile:
        ranks = ",".join(str(n) for n in sorted({*fair, 2 * most}))
        text = f"This machine has cores for {2 * most} ranks: see whether it still scales. Finished runs are kept."
        return Step(text=text, command=study_command(results, "--ranks", ranks))
    if most == 1:
        text = (
            "No second rank can have cores of its own here: see what this machine offers, or take the study to another."
        )
        return Step(text=text, command="paceline doctor")
    return None


def _other_strategy(results: StudyResults) -> Step:
    """Another strategy that the study's launcher can carry; more repeats where all have been compared, or a script
    has its own."""
    study = results.study
    if is_script(results):
        text = "More repeats tell smaller differences apart. Finished runs are kept."
        return Step(text=text, command=study_command(results, "--repeats", str(2 * study.run.repeats)))
    tried = {point.point.strategy for point in results.points} | {study.run.strategy}
    untried = [name for name in catalog.names("strategy") if name not in tried]
    other = next((name for name in untried if study.run.launcher in catalog.carriers(name)), None)
    if other is None:
        more = str(2 * study.run.repeats)
        text = "Every strategy that this launcher carries was compared: more repeats tell smaller differences apart."
        return Step(text=text, command=study_command(results, "--repeats", more))
    text = f"Compare with strategy {other}: {catalog.description('strategy', other)}."
    folder = f"{results.folder}-{other}"
    return Step(text=text, command=study_command(results, "--set", f"run.strategy={other}", folder=folder))


def repeat_steps(results: StudyResults) -> tuple[Step, ...]:
    """Commands that repeat the study, continue it, and rebuild its report."""
    again = study_command(results, folder=f"{results.folder}-again")
    return (
        Step(text="Repeat the whole study into a new folder, with the settings as they were resolved.", command=again),
        Step(
            text="Continue in this folder: finished runs are kept.",
            command=study_command(results),
        ),
        Step(text="Rebuild this report and the tables from the folder alone.", command=_line("report", results.folder)),
    )


def study_command(results: StudyResults, *options: str, folder: str | None = None) -> str:
    """The command that runs this study from its resolved file."""
    source = f"{results.folder.rstrip('/')}/study.toml"
    return _line("study", source, *options, "--out", folder or results.folder)


def _line(*words: str) -> str:
    return shlex.join(("paceline", *words))
