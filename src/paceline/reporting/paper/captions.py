"""Captions that state the protocol: who reads a figure in a proposal has nothing else to go by.

what was trained · what stays the same over ranks · how ranks were started · repeats and intervals · machine and
versions · what was emulated, and what was left out
"""

from __future__ import annotations

from collections.abc import Iterator

from paceline.records.results import PointResult, StudyResults
from paceline.reporting.figures.scaling import Scaling
from paceline.reporting.model import ReportModel
from paceline.reporting.paper.style import MOST_LINES, MOST_NAMED
from paceline.reporting.wording.choice import has_several_series, is_script, is_weak
from paceline.reporting.wording.facts import communication_text, versions_text
from paceline.reporting.wording.phrases import factor_heading, listed, parameters_text
from paceline.reporting.wording.verdict_words import finished_runs
from paceline.units import bytes_text, count_text, counted


def plot_lead(results: StudyResults, what: str, shown: str, figure: Scaling) -> str:
    """How the caption of a plot begins: what of what it shows, and what its marks mean."""
    marks = [f"{what}{_of_what(results)}: {shown}."]
    if figure.around:
        marks.append(f"Points are medians of the repeats, bars their {figure.around}.")
    else:
        marks.append("Points are medians of the repeats.")
    if any(figure.ideal):
        marks.append("Dashed: ideal.")
    if any(crowded for line in figure.lines for crowded in line.crowded):
        marks.append(f"Hollow, because emulated and no evidence of scaling: {_unfair(results)}.")
    if len(figure.lines) > MOST_LINES:
        marks.append(f"The first {MOST_LINES} of {len(figure.lines)} series are drawn; the table has all.")
    return " ".join(marks)


def table_lead(results: StudyResults) -> str:
    """How the caption of the table begins: what it is about, and which rows are no evidence."""
    parts = [f"{scaling_word(results)}{_of_what(results)}: medians over repeats."]
    if any(not point.fair for point in results.points):
        parts.append(f"Emulated, and no evidence of scaling: {_unfair(results)}.")
    return " ".join(parts)


def conditions(results: StudyResults, report: ReportModel) -> str:
    """The protocol: how everything was measured, on what, and what was left out."""
    return " ".join(_protocol(results, report))


def scaling_word(results: StudyResults) -> str:
    """Strong or weak scaling; what stays the same over ranks in a script is known only where the study says it."""
    if is_script(results) and results.study.run.scaling is None:
        return "Scaling"
    return "Weak scaling" if is_weak(results) else "Strong scaling"


def _of_what(results: StudyResults) -> str:
    """' of cnn-690k (690,590 parameters) on mnist', or of a script."""
    study = results.study
    if study.script is not None:
        return f" of the script {study.script.path}"
    parameters = parameters_text(results)
    size = f" ({parameters} parameters)" if parameters != "–" and "model.name" not in study.vary else ""
    model = "several models" if "model.name" in study.vary else study.model.name
    data = "several data sets" if "data.dataset" in study.vary else study.data.dataset
    return f" of {model}{size} on {data}"


def _protocol(results: StudyResults, report: ReportModel) -> Iterator[str]:
    if results.study.script is None:
        yield _training(results)
    yield _ranks(results)
    yield _repeats(results, report)
    yield _machine(results)
    left = [f"{point.label} ({point.reason.rstrip('.')})" for point in results.not_run]
    if left:
        # More would fill the page; the table of what was not run has all.
        yield f"Not run: {'; '.join(left) if len(left) <= MOST_NAMED else counted(len(left), 'point')}."


def _training(results: StudyResults) -> str:
    """'Global batch of 128 at every point, 12,000 training samples, adam at 0.001, 4 epochs.'"""
    study, vary = results.study, results.study.vary
    train = study.train
    if train.batch_per_rank is not None:
        batch = "train.batch_per_rank", f"batch of {count_text(train.batch_per_rank)} per rank at every point"
    else:
        batch = "train.batch_global", f"global batch of {count_text(train.batch_global)} at every point"
    samples = f"{count_text(study.data.train_samples)} training samples" if study.data.train_samples else ""
    length = f"{count_text(train.steps)} steps" if train.steps else counted(train.epochs or 1, "epoch")
    rule = f", grown with the batch by the rule {train.lr_rule}" if train.lr_rule != "none" else ""
    settings = {
        batch[0]: batch[1],
        "data.train_samples": samples,
        "train.optimizer": train.optimizer,
        "train.lr": f"learning rate {train.lr:g}{rule}",
        "train.recipe": f"recipe {train.recipe}" if train.recipe else "",
        "train.epochs": length,
        "train.precision": train.precision,
    }
    listed_settings = ", ".join(text for path, text in settings.items() if text and path not in vary)
    varied = [factor_heading(path) for path in vary if not path.endswith(("hosts", "ranks_per_host"))]
    more = f"; varied: {listed(varied)}" if varied else ""
    size = f" This is the {study.size} size of the study." if study.size else ""
    return f"{listed_settings[0].upper()}{listed_settings[1:]}{more}.{size}"


def _ranks(results: StudyResults) -> str:
    """'Strategy ddp, ranks started by local, 1 thread per rank.'"""
    run, vary = results.study.run, results.study.vary
    settings = {
        "run.strategy": f"strategy {run.strategy}" if results.study.script is None else "",
        "run.launcher": f"ranks started by {run.launcher}",
        "run.threads": f"{counted(run.threads, 'thread')} per rank",
    }
    listed_settings = (
        ", ".join(text for path, text in settings.items() if text and path not in vary) or "one process per rank"
    )
    return f"{listed_settings[0].upper()}{listed_settings[1:]}."


def _repeats(results: StudyResults, report: ReportModel) -> str:
    """How often and how it was measured, in the report's own words for intervals."""
    facts = {fact.label: fact.text for fact in report.protocol}
    repeats = counted(results.study.run.repeats, "repeat")
    partial = finished_runs(results) < results.expected_runs
    runs = f" ({finished_runs(results)} of {results.expected_runs} runs finished)" if partial else ""
    parts = [f"{repeats} per point, each in processes of its own{runs}.", facts.get("Warm-up", "")]
    return " ".join(filter(None, (*parts, facts.get("Intervals", ""))))


def _machine(results: StudyResults) -> str:
    machine = results.machine
    if machine is None:
        return "The machine was not recorded."
    gpus = f", GPUs: {', '.join(dict.fromkeys(machine.gpus))}" if machine.gpus else ""
    hosts = counted(len(set(machine.hosts)), "host")
    commits = ", ".join(commit.strip()[:12] for commit in (results.commit or "").split(",") if commit.strip())
    commit = f", commit {commits}" if commits else ""
    return (
        f"Machine: {hosts} with {machine.cpu or 'a processor of unknown name'}, {counted(machine.cores, 'core')}, "
        f"{bytes_text(machine.memory_bytes)} of memory{gpus}, communication: {communication_text(results) or 'none'}; "
        f"{versions_text(machine)}{commit}."
    )


def _unfair(results: StudyResults) -> str:
    """Which points had no cores or hosts of their own."""
    crowded = [_name(results, point) for point in results.points if point.oversubscribed]
    emulated = [_name(results, point) for point in results.points if point.emulated and not point.oversubscribed]
    parts = [f"more ranks or threads than cores ({'; '.join(crowded)})"] if crowded else []
    parts += [f"hosts that are one machine ({'; '.join(emulated)})"] if emulated else []
    return " and ".join(parts)


def _name(results: StudyResults, point: PointResult) -> str:
    return point.label if has_several_series(results) else counted(point.point.ranks, "rank")
