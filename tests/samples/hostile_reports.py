"""Reports with something in every section, and hostile strings in every text that they are made of."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from paceline.published.section.published_section import published_section
from paceline.records.allocation import Link
from paceline.records.finding import Finding
from paceline.records.results import Effect, Gain, NotRun, PhaseResult, PointResult, Spread, StudyResults
from paceline.records.run import CachedFeatures
from paceline.records.run_picture import Picture
from paceline.reporting.model import ReportModel, report_model
from paceline.reporting.wording.characters import printable
from samples import published_samples
from samples.hostile_strings import filled, hostile_results, in_front
from samples.twelve_points import twelve_points

# Strings of the model that choose a colour, a curve or a mark of ours: they come from no file.
_OURS = frozenset(("kinds", "measure", "part", "color", "dash", "marker", "pattern", "picture", "law", "html"))


@cache
def everything() -> tuple[StudyResults, dict[str, Picture]]:
    """Results that have something in every section: failures, findings, links, what was not run, effects, phases, and
    a published study."""
    results, pictures = twelve_points(steps=30)
    found = (
        Finding(code="failed", severity="error", values={"failure": "Seen.\nBecause."}, points=("p",)),
        Finding(code="baseline-missing", severity="warning", values={"used": "2", "wanted": "1"}, points=("p",)),
        Finding(code="more-ranks-than-cores", severity="info", values={"cores": 2, "threads": (("4 ranks", 1),)}),
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
            study=replace(results.study, full={"train.epochs": "5"}),
            points=(_extended(replace(first, failure="It failed.\nIts log: x")), *map(_extended, others)),
            findings=found,
            machine=replace(results.machine, hosts=("a", "b"), gpus=("gpu",), links=(link,)),
            not_run=(left_out,),
            effects=_effects(),
        ),
        pictures,
    )


def _extended(point: PointResult) -> PointResult:
    """The point with a second phase, cached features, a pretrained network, a queue and staleness."""
    assert point.test_accuracy is not None and point.test_loss is not None
    loss: Spread = point.test_loss
    frozen = PhaseResult(
        name="train", epoch_s=point.epoch_s, test_accuracy=point.test_accuracy, test_loss=loss, gain=None
    )
    tuned = replace(frozen, name="finetune", gain=Gain(mean=0.01, low=0.005, high=0.02, n=5))
    return replace(
        point,
        phases=(frozen, tuned),
        features=CachedFeatures(samples=100, size=10, ready_s=2.0, found=False),
        network={"network": "resnet", "weights": "a file"},
        queue_s=point.epoch_s,
        staleness_max=2,
    )


def _effects() -> tuple[Effect, ...]:
    """Those of a study of one factor at a time, and one whose values are words."""
    effects = published_samples.usual("fashion-parameters").effects
    first, other = (next(effect for effect in effects if effect.is_baseline is held) for held in (True, False))
    return (*effects, *(replace(e, factor="model.kind", value=f"value {e.value}") for e in (first, other)))


def of_records(text: str) -> ReportModel:
    """The report on records in which every string has this text in front."""
    results, pictures = everything()
    made = hostile_results(results, text)
    # Paths of settings are ours; and where a cell has no reason to have no figure, it has a figure.
    full = dict(zip(results.study.full, made.study.full.values(), strict=True))
    beside = filled(
        published_samples.beside_of(published_samples.usual("mnist-mpi")), lambda own: own and in_front(text)(own)
    )
    made = replace(made, study=replace(made.study, full=full))
    return report_model(made, filled(pictures, in_front(text)), published=published_section(beside, made))


def of_model(text: str) -> ReportModel:
    """The report whose own strings have it: whatever wrote them."""
    return hostile_model(
        report_model(*everything(), published=published_samples.section_of(published_samples.usual("mnist-mpi"))), text
    )


def hostile_model(model: ReportModel, text: str) -> ReportModel:
    """The same with this text in front of every string, printable as all of a model is."""
    return filled(model, in_front(printable(text)), keep=_OURS)
