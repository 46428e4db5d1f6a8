"""Reports with something in every section, and hostile strings in every text that they are made of."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hostile_strings import filled, hostile_results, in_front
from paceline.records.finding import Finding
from paceline.records.given import Link
from paceline.records.picture import Picture
from paceline.records.results import NotRun, StudyResults
from paceline.report.characters import printable
from paceline.report.model import ReportModel, report_model
from twelve_points import twelve_points

# Strings of the model that choose a colour, a curve or a mark of ours: they come from no file.
_OURS = frozenset(("kinds", "measure", "part", "color", "dash", "marker", "pattern", "picture", "law"))


@cache
def everything() -> tuple[StudyResults, dict[str, Picture]]:
    """Results that have something in every section: failures, findings, links, what was not run."""
    results, pictures = twelve_points(steps=30)
    found = tuple(
        Finding(name=f"found-{level}", severity=level, summary="Seen.", cause="Because.", remedy="Do.", points=("p",))
        for level in ("error", "warning", "info")
    )
    first, *others = results.points
    assert results.machine is not None
    link = Link(
        kind="between",
        source=0,
        target=1,
        source_host="a",
        target_host="b",
        latency_s=1e-4,
        latency_low_s=1e-4,
        latency_high_s=1e-4,
        bandwidth=1e8,
        bandwidth_low=1e8,
        bandwidth_high=1e8,
        sizes=(8,),
        times_s=(1e-4,),
        repeats=5,
    )
    left_out = NotRun(label="64 ranks", settings={"run.ranks": 64}, reason="This machine has no cores for them.")
    return (
        replace(
            results,
            points=(replace(first, failure="It failed.\nIts log: x"), *others),
            findings=found,
            machine=replace(results.machine, hosts=("a", "b"), gpus=("gpu",), links=(link,)),
            not_run=(left_out,),
        ),
        pictures,
    )


def of_records(text: str) -> ReportModel:
    """The report on records in which every string has this text in front."""
    results, pictures = everything()
    return report_model(hostile_results(results, text), filled(pictures, in_front(text)))


def of_model(text: str) -> ReportModel:
    """The report whose own strings have it: whatever wrote them."""
    return hostile_model(report_model(*everything()), text)


def hostile_model(model: ReportModel, text: str) -> ReportModel:
    """The same with this text in front of every string, printable as all of a model is."""
    return filled(model, in_front(printable(text)), keep=_OURS)
