"""Shipped studies of published ones, run to their end by the command line with real ranks on a few made-up images.

Every one of them    ends with 0 and a report; the printed table beside ours, cell by cell; the open questions by name
Each for itself      the launcher, strategy and roles that it is about, and figures that can be known without a clock
"""

from __future__ import annotations

import csv
import importlib.util
import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from short_studies import ALLREDUCE, PICKLED, SHORT, Finished, begins, run_short, write_data

import paceline.published
from checks.ci import in_ci
from paceline.published.table_files import published_study
from paceline.studies.load.load import load_study

PRINTED = Path(paceline.published.__file__).parent / "tables"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Finished]:
    """Runs a study when it is first asked for."""
    place = tmp_path_factory.mktemp("published")
    write_data(place)
    done: dict[str, Finished] = {}

    def of(name: str) -> Finished:
        if load_study(name).study.run.launcher == "mpi" and importlib.util.find_spec("mpi4py") is None:
            (pytest.fail if in_ci() else pytest.skip)("mpi4py is not installed")
        if name not in done:
            done[name] = run_short(name, place)
        return done[name]

    return of


@pytest.fixture(params=SHORT)
def each(request: pytest.FixtureRequest, finished: Callable[[str], Finished]) -> Finished:
    return finished(request.param)


def test_it_ends_with_a_report_and_leaves_no_process(each: Finished) -> None:
    points, study = SHORT[each.name].points, load_study(each.name).study
    assert each.code == 0, each.err
    assert each.left == () and "Traceback" not in each.err
    assert each.err.count("[ OK ]") == points and f"[ OK ] ({points}/{points})" in each.err
    assert each.out.startswith(f"{study.title}\n{study.question}\n")
    assert f"Report {each.folder.report} Next Run 5 repeats" in each.said
    assert each.page.startswith("<!doctype html>") and study.question in each.page_words
    assert len(each.runs) == len(each.rows) == points
    for row in each.rows:
        assert (row["study"], row["runs"], row["failure"]) == (each.name, "1", "")
        assert math.isfinite(float(row["test_loss_mean"])) and float(row["samples_per_s_median"]) > 0


def test_the_published_table_is_beside_ours_cell_by_cell(each: Finished) -> None:
    tables = published_study(load_study(each.name).study.published).tables
    printed = [
        (table.name, column.name, line[column.name])
        for table in tables
        for line in csv.DictReader((PRINTED / f"{table.name}.csv").read_text().splitlines())
        for column in table.columns
    ]
    assert [(cell["table"], cell["column"]) for cell in each.cells] == [(table, column) for table, column, _ in printed]
    for cell, (_, _, text) in zip(each.cells, printed, strict=True):
        assert cell["published"] == text or float(cell["published"]) == float(text)
        why = SHORT[each.name].reason(cell["row"], cell["column"])
        assert cell["reason"] == why, cell
        assert cell["value"] == "" if why else math.isfinite(float(cell["value"])), cell
    for keys in SHORT[each.name].measured:
        assert any(begins(cell["row"], keys) and cell["value"] for cell in each.cells), keys


def test_text_and_page_show_every_cell_and_every_reason(each: Finished) -> None:
    not_run = [cell for cell in each.cells if cell["reason"] and not cell["point_id"]]
    for table in published_study(load_study(each.name).study.published).tables:
        caption = f"Published, and here: {table.caption[0].lower()}{table.caption[1:]}"
        assert caption in each.said and caption in each.page_words
    assert len(re.findall(r"\bhere (?:not run [a-z]|– [a-z]|\d)", each.said)) == len(each.cells)
    assert len(re.findall(r"\bhere not run [a-z]", each.said)) == len(not_run) > 0
    assert each.page.count('<span class="printed">') == len(each.cells)
    assert len(re.findall(r"<small>not run [a-z]</small>", each.page)) == len(not_run)
    for why in {cell["reason"] for cell in each.cells} - {""}:
        assert re.search(rf"\b[a-z]: {re.escape(why)}", each.said) and why in each.page_words


def test_open_questions_are_answered_or_said_to_be_open(each: Finished) -> None:
    questions = published_study(load_study(each.name).study.published).questions
    assert questions and set(SHORT[each.name].answered) <= {question.name for question in questions}
    for question in questions:
        elsewhere = question.studies and each.name not in question.studies
        opening = f"The study {question.studies[0]} answers it." if elsewhere else "Not answered yet."
        said = re.search(rf"^{question.name}: (.*)", each.out, re.MULTILINE)
        assert said is not None, question.name
        assert said[1].startswith(opening) == (question.name not in SHORT[each.name].answered), said[0]
        asked = f"<code>{question.name}</code></dt><dd>{re.escape(question.text)}"
        shown = re.search(f"{asked}<br><strong>(.*?)<", each.page_words)
        assert shown is not None, question.name
        assert (shown[1] == opening) == (question.name not in SHORT[each.name].answered)


def assert_open_for_want_of_repeats(done: Finished, *names: str) -> None:
    """A figure is there, and that one repeat makes no test of it."""
    for name in names:
        verdict = re.split(r"\n[a-z0-9-]+: |\n\n", done.out.partition(f"\n{name}: ")[2])[0]
        assert re.match(r"Not answered yet\. .*\d.* With 1 repeat ", " ".join(verdict.split())), name


def test_mnist_over_mpi(finished: Callable[[str], Finished]) -> None:
    done = finished("mnist-mpi")
    points = [run.manifest.point for run in done.runs]
    assert [(point.ranks, point.hosts) for point in points] == [(1, 1), (2, 1)]
    assert {(point.launcher, point.strategy, point.data.read) for point in points} == {("mpi", PICKLED, "whole")}
    assert [run.roles for run in done.runs] == [["rank"], ["rank", "rank"]]
    for rank in (0, 1):
        assert {"mpi_reduce_pickled", "mpi_bcast_pickled"} <= done.runs[1].operations(rank)
    assert [row["batch_global"] for row in done.rows] == ["128", "256"]
    assert {row["parameters"] for row in done.rows} == {"690590"}
    for hosts, ranks in ((2, 2), (2, 4), (4, 4), (4, 8)):
        label = f"{ranks} ranks on {hosts} hosts"
        assert f"{label} It needs {hosts} hosts, and launch.machines names none." in done.said
    assert "What differs: Hardware and software are others" in done.said
    changed = done.said.partition("Changed for this run, with what the study has in brackets: ")[2]
    for each in ("data.train_samples 256 (12800)", "train.epochs 2 (3)", "run.ranks_per_host [1, 2] ([1, 2, 4, 8])"):
        assert each in changed


def test_other_ways_to_exchange_and_to_read(finished: Callable[[str], Finished]) -> None:
    done = finished("mnist-mpi-exchange")
    points = {(run.manifest.point.data.read, run.manifest.point.strategy): run for run in done.runs}
    assert set(points) == {("whole", PICKLED), ("mpi-io", PICKLED), ("whole", ALLREDUCE)}
    assert {(run.manifest.point.launcher, len(run.roles)) for run in done.runs} == {("mpi", 2)}
    sent = {PICKLED: {"mpi_reduce_pickled", "mpi_bcast_pickled"}, ALLREDUCE: {"mpi_allreduce"}}
    for (_, strategy), run in points.items():
        assert {name for name in run.operations(1) if name.startswith("mpi_")} == sent[strategy]
    whole, other = (points["whole", strategy].result for strategy in (PICKLED, ALLREDUCE))
    assert whole.test_loss == pytest.approx(other.test_loss, rel=1e-4), "sums are sums, however they are exchanged"
    parts, all_of_it = points["mpi-io", PICKLED].result.read_bytes, whole.read_bytes
    assert parts is not None and all_of_it is not None and parts < 0.8 * all_of_it
    assert_in_per_cent_of_the_baseline(done, {"data.read": ["mpi-io"], "run.strategy": [ALLREDUCE]})
    assert_open_for_want_of_repeats(done, "allreduce-instead", "partial-reads")


def test_one_parameter_at_a_time(finished: Callable[[str], Finished]) -> None:
    done = finished("fashion-parameters")
    points = sorted((run.manifest.point.threads, run.manifest.point.train.epochs) for run in done.runs)
    assert points == [(1, 1), (1, 5), (2, 1)]
    assert {(run.manifest.point.launcher, run.manifest.point.ranks) for run in done.runs} == {("local", 1)}
    assert {tuple(run.manifest.point.model.options.values()) for run in done.runs} == {(1, 32)}
    assert_in_per_cent_of_the_baseline(done, {"train.epochs": ["5"], "run.threads": ["2"]})
    cells = {(cell["row"], cell["column"]): cell["value"] for cell in done.cells}
    longer = next(row for row in done.rows if row["factor"] == "train.epochs")
    for column in ("loss_pct", "accuracy_pct", "time_pct"):
        assert float(cells["factor epochs, value 1", column]) == 100
        assert cells["factor epochs, value 5", column] == longer[f"{column}_median"]
    assert float(longer["loss_pct_median"]) < 100, "four epochs more have taught it something"
    assert_open_for_want_of_repeats(done, "more-cores-slower")


def assert_in_per_cent_of_the_baseline(done: Finished, factors: dict[str, list[str]]) -> None:
    """Loss and accuracy are the quotients of what was measured, and the table has a line for every value."""
    baseline, *changed = done.rows
    assert baseline["factor"] == "" and {row["factor"] for row in changed} == set(factors)
    assert len(changed) == sum(map(len, factors.values()))
    for row in done.rows:
        for figure in ("loss", "accuracy"):
            quotient = float(row[f"test_{figure}_mean"]) / float(baseline[f"test_{figure}_mean"])
            assert float(row[f"{figure}_pct_median"]) == pytest.approx(100 * quotient)
        assert float(row["time_pct_median"]) > 0
    assert float(baseline["time_pct_median"]) == 100
    table = done.out.partition("In % of the baseline, which has the first value of every factor")[2]
    table = table.partition("\n\n")[0]
    for factor, values in factors.items():
        name = factor.partition(".")[2]
        assert re.search(rf"\n{name} +\S+ +100\.0 +100\.0 +100\.0 +baseline\n", table)
        for value in values:
            assert re.search(rf"\n{name} +{value} +[\d.,]+ +[\d.,]+ +[\d.,]+ +not tested\n", table), value


def test_workers_and_parameter_servers(finished: Callable[[str], Finished]) -> None:
    done = finished("flowers-cloud")
    runs = {(run.manifest.point.strategy, run.manifest.point.ranks): run for run in done.runs}
    assert {key: run.roles for key, run in runs.items()} == {
        ("ddp", 1): ["rank"],
        ("ddp", 2): ["rank", "rank"],
        ("parameter-server", 1): ["rank", "server", "coordinator"],
        ("parameter-server", 2): ["rank", "rank", "server", "coordinator"],
    }
    assert {run.manifest.point.launcher for run in done.runs} == {"local"}
    assert runs["parameter-server", 2].operations(0) == {"send", "recv_"}
    assert "allreduce_" in runs["ddp", 2].operations(0)
    for ranks in (1, 2):
        alike = [runs[strategy, ranks].result.test_loss for strategy in ("ddp", "parameter-server")]
        assert alike[0] == pytest.approx(alike[1], rel=1e-4), "servers add up what an all-reduce does"
    assert "a: CPU cores of this machine in place of local (12 hyperthreads)." in done.said
    assert [row["servers"] for row in done.rows if row["strategy"] == "parameter-server"] == ["1", "1"]
    own = [cell["value"] for cell in done.cells if cell["value"]]
    assert own == ["100.0", "100.0"], "the laptop's row is what the others are in per cent of"


def test_epochs_divided_by_ranks(finished: Callable[[str], Finished]) -> None:
    done = finished("cifar10-nodes")
    points = [run.manifest.point for run in done.runs]
    assert [(point.ranks, point.train.epochs) for point in points] == [(1, 4), (2, 2)]
    assert [len(run.result.epochs) for run in done.runs] == [4, 2]
    assert {(point.launcher, point.strategy) for point in points} == {("local", "ddp")}
    chosen = {choice.path: (choice.value, choice.facts) for choice in points[1].chosen}
    assert chosen["train.epochs"] == (2, {"epochs": 4, "ranks": 2})
    assert chosen["highest_lr"] == (0.002, {"lr": 0.001, "factor": 2.0})
    cells = {cell["column"]: cell for cell in done.cells if cell["row"] == "model cnn"}
    assert cells["total_params"]["value"] == cells["total_params"]["published"] == "1626442"
    for column, row in zip(("time_1_node_s", "time_2_nodes_s"), done.rows, strict=True):
        assert (cells[column]["value"], cells[column]["point_id"]) == (row["total_s_median"], row["point_id"])
    assert_open_for_want_of_repeats(done, "two-nodes-slower")


def test_a_network_is_trained_frozen_and_then_fine_tuned(finished: Callable[[str], Finished]) -> None:
    done = finished("fruits-gpus")
    assert [run.manifest.point.ranks for run in done.runs] == [1, 2]
    for run in done.runs:
        point, result = run.manifest.point, run.result
        assert (point.model.name, point.augment.zoom, point.data.validation) == ("efficientnet-lite0", 0.01, 0.2)
        assert result.network["base"] == "frozen" and result.network["network"] == "efficientnet-lite0"
        assert [phase.name for phase in result.phases] == ["train", "finetune"]
        assert [epoch.phase for epoch in result.epochs] == ["train", "train", "finetune"]
        assert len(run.roles) == point.ranks
    assert re.search(r" 1 base frozen .* 1 fine-tuned .* 2 base frozen .* 2 fine-tuned ", done.said)
    assert done.said.count("CPU cores of this machine in place of T4.") == 1
    cells = [cell for cell in done.cells if cell["column"] == "batch_per_gpu" and cell["value"]]
    assert [cell["value"] for cell in cells] == [cell["published"] for cell in cells] == ["32", "32"]
