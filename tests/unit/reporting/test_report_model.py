"""The model: tables, series and facts from results of every sort."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import pytest

from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import Interval
from paceline.reporting.cells import Cell, share_cell
from paceline.reporting.figures.report_figures import figures
from paceline.reporting.figures.scaling import Estimate
from paceline.reporting.model import ReportModel, report_model
from paceline.reporting.tables.point_tables import MOST_RANKS
from samples import published_samples
from samples import report_samples as samples
from samples.series_samples import ALL


def row(model: ReportModel, ranks: str) -> dict[str, Cell]:
    """The cells of one row of the figures, by heading."""
    cells = next(cells for cells in model.figures.rows if cells[0].figure == ranks)
    return dict(zip(model.figures.columns, cells, strict=True))


def test_the_row_of_a_point() -> None:
    cells = row(report_model(samples.two_points()), "2")
    assert cells["epoch time (s)"].text == "5.25 [5.19, 5.29]"
    assert cells["samples/s"].text == "2,286 [2,258, 2,305]"
    assert cells["speed-up"].text == "1.88 [1.83, 1.91]"
    assert cells["efficiency"].text == "94 % [91, 96]"
    assert cells["test accuracy"].text == "97.74 ± 0.21 %"


def test_the_baseline_has_no_interval_around_one() -> None:
    cells = row(report_model(samples.two_points()), "1")
    assert cells["speed-up"].text == "1.00" and cells["efficiency"].text == "100 %"


def test_short_epochs_are_shown_in_milliseconds() -> None:
    results = samples.two_points()
    short = Interval(median=0.0512, low=0.0501, high=0.053, n=5, coverage=0.9375)
    model = report_model(replace(results, points=tuple(replace(p, epoch_s=short) for p in results.points)))
    assert row(model, "1")["epoch time (ms)"].text == "51.2 [50.1, 53.0]"
    assert model.epoch_time.unit == "ms" and model.epoch_time.lines[0].measured[0] == Estimate(51.2, 50.1, 53.0)


def test_runs_are_counted_only_where_some_are_missing() -> None:
    assert "runs" not in report_model(samples.typical()).figures.columns
    assert row(report_model(samples.partial()), "2")["runs"].text == "1 of 5"


def test_intervals_and_ranges_are_called_by_their_names() -> None:
    interval, few = report_model(samples.typical()), report_model(samples.few_repeats())
    assert "93.8 % confidence" in interval.figures.footnotes[0]
    assert "range" in few.figures.footnotes[0] and "confidence" not in few.figures.footnotes[0]
    protocol = {fact.label: fact.text for fact in few.protocol}
    assert "range" in protocol["Intervals"]


@pytest.mark.parametrize("name", ALL)
def test_a_ledger_shows_every_kind_and_sums_to_its_run(name: str) -> None:
    results = ALL[name]()
    model = report_model(results)
    factors = len(results.study.vary)
    assert model.ledger.columns[0] == "ranks" and model.ledger.columns[1 + factors :] == ("whole run", *LEDGER_KINDS)
    assert all(len(cells) == len(model.ledger.columns) for cells in model.ledger.rows)
    for index, whole in enumerate(model.point_ledger.wholes):
        parts = [values[index] for values in model.point_ledger.seconds]
        assert math.isclose(sum(value for value in parts if value is not None), whole)


def test_what_was_not_measured_is_not_zero() -> None:
    table = report_model(samples.diverged()).ledger
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    assert cells["comm-wait"].text == "–" and cells["checkpoint"].text == "0"
    assert "checkpoint" in table.blank and "comm-wait" not in table.blank
    assert table.footnotes == ("– not measured",)


def test_shares_are_never_rounded_to_nothing() -> None:
    assert [share_cell(x).figure for x in (0.004, 0.006, 0.5)] == ["<1 %", "1 %", "50 %"]


def test_curves_hold_every_run_and_their_mean() -> None:
    curves = report_model(samples.two_points()).curves
    assert {(c.label, c.measure, c.part) for c in curves} == {
        (label, measure, part)
        for label in ("1 rank", "2 ranks")
        for measure in ("loss", "accuracy")
        for part in ("train", "validation")
    }
    first = curves[0]
    assert len(first.runs) == 5 and first.epochs == (1, 2)
    assert first.mean[0] == pytest.approx(sum(run[0] or 0.0 for run in first.runs) / 5)


def test_a_mean_is_not_bent_by_a_run_that_ended_early() -> None:
    results = samples.two_points()
    point = results.points[0]
    short = replace(point.curves[0], epochs=point.curves[0].epochs[:1])
    results = replace(results, points=(replace(point, curves=(short, *point.curves[1:])),))
    curve = report_model(results).curves[0]
    assert curve.runs[0][1] is None and curve.mean[0] is not None and curve.mean[1] is None


def test_a_loss_that_is_not_a_number_is_not_drawn() -> None:
    curves = report_model(samples.diverged()).curves
    assert {curve.measure for curve in curves} == {"accuracy"}


def test_ideal_lines() -> None:
    model = report_model(samples.typical(ranks=(2, 4)))
    assert model.speedup.ideal == (1.0, 2.0)
    assert model.epoch_time.ideal == pytest.approx((9.87, 9.87 / 2))
    assert model.throughput.ideal == pytest.approx((12_000 / 9.87, 24_000 / 9.87))
    assert report_model(samples.nothing_finished()).speedup.ideal == (None, None, None)


def test_only_so_many_ranks_are_shown_one_by_one() -> None:
    results = samples.typical(ranks=(1, 2 * MOST_RANKS))
    (ledger,) = report_model(results).rank_ledgers
    assert len(ledger.table.rows) == len(ledger.series.labels) == MOST_RANKS
    assert ledger.table.caption.startswith(f"The first {MOST_RANKS} ranks of run 3 with {2 * MOST_RANKS} ranks")


def test_settings_carry_the_names_of_set() -> None:
    settings = {fact.label: fact.text for fact in report_model(samples.typical()).settings}
    assert settings["train.lr"] == "0.001" and settings["run.ranks"] == "1, 2, 4"
    assert settings["data.train_samples"] == "12000"
    assert "train.steps" not in settings
    assert settings["parameters of the model"] == "690,590"


@pytest.mark.parametrize(
    ("strategies", "backend", "said"),
    [
        (("ddp",), "gloo", "gloo"),
        (("mpi-reduce-broadcast-pickled",), "gloo", "gradients by MPI, all else by gloo"),
        (("ddp", "mpi-allreduce"), "gloo", "gradients by MPI (mpi-allreduce), all else by gloo"),
        (("mpi-allreduce",), "none", "none"),
        (("parameter-server",), "nccl", "nccl"),
    ],
)
def test_what_carries_the_gradients_is_said_by_strategy(strategies: tuple[str, ...], backend: str, said: str) -> None:
    results = samples.typical()
    assert results.machine is not None
    study = replace(results.study, vary={"run.strategy": strategies})
    found = report_model(replace(results, study=study, machine=replace(results.machine, backend=backend)))
    assert {fact.label: fact.text for fact in found.machine}["Communication"] == said


def test_ranks_that_share_an_epoch_show_its_strong_scaling() -> None:
    model = published_samples.model_of(published_samples.usual("mnist-mpi"))
    assert "speed-up of an epoch" in model.figures.columns and model.strong_epoch in model.figures.footnotes
    assert "weak scaling, strong by the epoch" in model.headline
    drawn = figures(model)
    assert "over ranks it is strong scaling" in drawn["epoch"].caption and drawn["run"].numbers is not None
    assert "run" not in figures(published_samples.model_of(published_samples.usual("cifar10-nodes")))
    strong = report_model(samples.typical())
    assert not strong.strong_epoch and "speed-up" in strong.figures.columns and "strong scaling" in strong.headline


def test_every_kind_and_figure_is_defined() -> None:
    model = report_model(samples.typical())
    defined = {fact.label for fact in model.definitions}
    assert set(LEDGER_KINDS) <= defined
    assert {"epoch time", "samples/s", "speed-up", "efficiency", "median run", "ideal"} <= defined


def test_strings_are_printable_everywhere() -> None:
    for text in samples.HOSTILE:
        shown = repr(report_model(samples.hostile(text)))
        assert "\\x1b" not in shown and "\\udcff" not in shown and "\\u202e" not in shown and "\\n" not in shown


def test_importing_the_report_loads_nothing_heavy() -> None:
    code = (
        "import sys, paceline.reporting.model, paceline.reporting.html.report_page;"
        "import paceline.reporting.text.report_text, paceline.reporting.export.json_view;"
        "print(sorted({'torch', 'plotly', 'pyarrow', 'pandas', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
