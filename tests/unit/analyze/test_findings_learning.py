"""Findings about learning: named where the data show them, with the cause that the settings show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from paceline.analyze.study.learning_findings import accuracy_falls, dead_network, diverged, overfitting
from paceline.analyze.study.measured import Measured
from paceline.records.finding import Note
from paceline.records.learning import AccuracyCheck, Fault, Learning, LearningSummary, Turn
from paceline.records.results import PointResult
from paceline.records.study import Point
from paceline.reporting.wording.finding_words import finding_words
from paceline.studies.expand.expand import expand
from paceline.studies.load.load import load_study

NAN = Note(code="loss-not-finite", values={"part": "training", "loss": float("nan"), "epoch": 1})
WHY = ("why", "batch_ratio", "scaled", "same_rate")


def row(point: Point, learning: Learning | None = None) -> PointResult:
    unknown = ("epoch_s", "total_s", "samples_per_s", "speedup", "efficiency", "load_s", "test_accuracy", "test_loss")
    nothing = dict.fromkeys((*unknown, "ledger_s", "median_run", "parameters"))
    fields = {"rank_ledgers_s": (), "curves": (), "oversubscribed": False, "learning": learning, "runs": 5}
    label = f"{point.ranks} ranks"
    return PointResult(point_id=point.point_id, point=point, label=label, **nothing, **fields)  # pyright: ignore[reportArgumentType]


def measured(*rows: PointResult, checks: tuple[AccuracyCheck, ...] = (), runs=()) -> Measured:
    return Measured(
        rows=rows,
        runs={rows[0].point_id: tuple(runs)},
        timed={},
        baseline=None,
        machines=(),
        commits=(),
        expected_runs=10,
        gaps={},
        lesson=LearningSummary(checks=checks),
    )


def fallen(own: Point, other: Point, **changed) -> AccuracyCheck:
    ratio = own.batch_global / other.batch_global
    found = AccuracyCheck(
        point_id=own.point_id,
        against=other.point_id,
        difference=-0.0477,
        low=-0.05,
        high=-0.045,
        n=5,
        margin=0.005,
        p_different=0.001,
        p_equal=1.0,
        different=True,
        equal=False,
        batch_ratio=ratio,
    )
    return replace(found, **changed)


def test_a_fall_with_the_batch_names_the_batch_and_the_rate(point) -> None:
    small, large = (replace(point(n), train=replace(point(n).train, batch_global=128 * n)) for n in (1, 8))
    found = accuracy_falls(measured(row(small), row(large), checks=(fallen(large, small),)))
    assert found is not None and found.points == (large.point_id,)
    assert (found.values["worst"], found.values["against"]) == ("8 ranks", "1 ranks")
    assert found.values["check"].difference == -0.0477
    assert [found.values[name] for name in WHY] == ["larger-batch", 8.0, False, True]


def test_a_fall_with_ranks_at_the_same_batch_does_not_blame_the_batch(point) -> None:
    one, four = point(1), point(4)
    found = accuracy_falls(measured(row(one), row(four), checks=(fallen(four, one),)))
    assert found is not None and found.values["why"] == "more-ranks"
    divided = replace(four, train=replace(four.train, epochs_rule="divide-by-ranks"))
    found = accuracy_falls(measured(row(one), row(divided), checks=(fallen(divided, one),)))
    assert found is not None and (found.values["why"], found.values["batch_ratio"]) == ("fewer-epochs", None)
    both = replace(divided, train=replace(divided.train, batch_global=4 * one.batch_global))
    found = accuracy_falls(measured(row(one), row(both), checks=(fallen(both, one),)))
    assert found is not None and (found.values["why"], found.values["batch_ratio"]) == ("fewer-epochs", 4.0)


def test_a_fall_with_another_strategy_names_it(point) -> None:
    one, local = point(1), point(4, "local-sgd")
    found = accuracy_falls(measured(row(one), row(local), checks=(fallen(local, one),)))
    assert found is not None and found.values["strategies"] == ("local-sgd", "ddp")


@pytest.mark.parametrize(
    "changed", [{"different": False}, {"equal": True}, {"difference": 0.02}], ids=["unsure", "within-margin", "higher"]
)
def test_what_is_not_shown_to_fall_is_not_called_so(point, changed) -> None:
    check = fallen(point(4), point(1), **changed)
    assert accuracy_falls(measured(row(point(1)), row(point(4)), checks=(check,))) is None


def test_faults_are_called_by_their_names(point, run) -> None:
    lost = Fault(name="diverged", run=2, epoch=1, why=NAN)
    dull = Fault(name="dead", run=1, epoch=1, why=Note(code="at-chance"))
    runs = [run(point(1), number) for number in (1, 2)]
    told = measured(row(point(1), Learning(faults=(dull, lost))), runs=runs)
    first, second = diverged(told), dead_network(told)
    assert first is not None and second is not None and first.severity == second.severity == "error"
    assert [first.values[name] for name in ("found", "runs", "label", "first")] == [1, 2, "1 ranks", lost]
    assert [second.values[name] for name in ("found", "runs", "label", "first")] == [1, 2, "1 ranks", dull]
    quiet = measured(row(point(1), Learning()), runs=runs)
    assert diverged(quiet) is None and dead_network(quiet) is None and overfitting(quiet) is None


STUDY = """
[study]
name = "astray"
[data]
dataset = "digits"
[model]
name = "mlp"
[train]
batch_global = 64
epochs = 1
[run]
ranks = [1, 2]
"""


@pytest.mark.parametrize(
    ("said", "ways"),
    [
        ([], ["train.recipe=scale", "train.clip_norm=1"]),
        (
            ["train.recipe=as-published", "train.epochs_rule=divide-by-ranks"],
            ["train.recipe=scale", "train.clip_norm=1"],
        ),
        (
            ["train.lr_rule=adascale", "train.optimizer=sgd", "train.lr_batch=32", "run.ranks=2"],
            ["train.recipe=scale", "train.clip_norm=1"],
        ),
        (["train.lr_rule=none,linear", "train.schedule=one-cycle"], ["train.recipe=scale", "train.clip_norm=1"]),
        (["train.recipe=scale"], ["train.clip_norm=1"]),
        (["run.strategy=ddp,parameter-server"], ["train.recipe=scale"]),
    ],
    ids=lambda value: " ".join(value) or "plain",
)
def test_what_is_advised_where_runs_diverge_is_accepted_there(tmp_path: Path, run, said, ways) -> None:
    path = tmp_path / "astray.toml"
    path.write_text(STUDY)
    first, *others = expand(load_study(path, said).study, data_digest="d", model_digest="")
    lost = Fault(name="diverged", run=1, epoch=1, why=NAN)
    rows = row(first, Learning(faults=(lost,))), *(row(other, Learning()) for other in others)
    found = diverged(measured(*rows, runs=[run(first)]))
    assert found is not None
    assert list(found.values["advice"]) == ways
    assert re.findall(r"--set (train\.(?!lr)\S+)", finding_words(found).remedy) == ways
    for way in ways:
        key = way.partition("=")[0]
        load_study(path, [*(each for each in said if not each.startswith(f"{key}=")), way])


def test_overfitting_says_since_when(point) -> None:
    told = measured(row(point(1), Learning(turn=Turn(epoch=7, rise=0.2, fall=0.05))), row(point(2), Learning()))
    found = overfitting(told)
    assert found is not None and found.points == (point(1).point_id,)
    assert (found.values["found"], found.values["points"], found.values["turn"].epoch) == (1, 2, 7)
