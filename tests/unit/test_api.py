"""paceline.study, its results, and what is written beside them."""

from __future__ import annotations

import csv
import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

import paceline
from paceline.app import study_execution
from paceline.app.results_view import Results, open_results
from paceline.app.study_loading import load, study_folder
from paceline.errors import FolderError, RequestError, RunError, StudyFileError
from paceline.rebuild import rebuild
from paceline.reporting.export.rows import columns
from samples.finished_study import finished_study


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def finished(tmp_path: Path, cache: Path) -> Results:
    finished_study(tmp_path / "study", cache)
    return open_results(tmp_path / "study")


def in_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_paceline_imports_almost_nothing() -> None:
    heavy = {
        "torch",
        "numpy",
        "pyarrow",
        "pydantic",
        "cyclopts",
        "rich",
        "plotly",
        "paceline.app.results_view",
        "paceline.studies",
    }
    loaded = set(in_new_process("import sys, paceline; print(*sys.modules)").split())
    assert not heavy & loaded


def test_every_public_name_is_there() -> None:
    for name in paceline.__all__:
        assert getattr(paceline, name) is not None
    assert set(paceline.__all__) <= set(dir(paceline))
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = paceline.trian  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "first", ["import paceline", "import paceline.studies.load.load", "from paceline.studies.execute import events"]
)
def test_study_can_be_called_whatever_was_imported_before(first: str) -> None:
    shown = "print(callable(paceline.study), paceline.studies.expand.expand.__name__)"
    code = f"{first}\nimport paceline, paceline.studies.expand.expand\n{shown}"
    assert in_new_process(code).split() == ["True", "paceline.studies.expand.expand"]


def test_study_shows_its_own_signature() -> None:
    names = "source script arguments out ranks hosts strategy launcher site repeats set size budget force fresh events"
    assert list(inspect.signature(paceline.study).parameters) == names.split()


def test_a_finished_study_comes_back_without_running_anything(tmp_path: Path, cache: Path) -> None:
    file = finished_study(tmp_path / "study", cache)
    results = paceline.study(file, out=tmp_path / "study")
    assert [point.runs for point in results.points] == [3, 3]
    assert results.report == tmp_path / "study" / "report.html"
    assert not results.failures and not results.notes


def test_the_table_has_a_line_per_point_and_the_dictionary_the_same_figures(finished: Results) -> None:
    lines = finished.table().splitlines()
    assert "speed-up" in finished.table()
    assert [line.split()[0] for line in lines if line.strip()[:1].isdigit()] == ["1", "2"]
    points = finished.to_dict()["points"]
    assert [point["speedup"]["median"] for point in points] == [1.0, 2.0]
    assert json.loads(json.dumps(finished.to_dict(), allow_nan=False))["study"] == "instant"
    assert str(finished) == finished.table()


def test_a_data_frame_has_a_row_per_point_or_says_what_it_needs(finished: Results) -> None:
    if importlib.util.find_spec("pandas") is None:
        with pytest.raises(RequestError, match="needs pandas") as refused:
            finished.to_pandas()
        assert "results.csv" in refused.value.right
        return
    frame = finished.to_pandas()
    assert list(frame.columns) == list(columns()) and list(frame["ranks"]) == [1, 2]


def test_the_ledger_sums_to_the_median_run(finished: Results) -> None:
    for point in finished.points:
        assert point.ledger_s is not None and point.median_run is not None
        runs = finished.folder / "points" / point.point_id / "runs"
        wall_s = json.loads((runs / str(point.median_run) / "result.json").read_text())["wall_s"]
        assert sum(value or 0.0 for value in point.ledger_s.values()) == pytest.approx(wall_s, rel=1e-9)


def test_csv_and_parquet_hold_the_same_rows(finished: Results) -> None:
    with (finished.folder / "results.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    table = parquet.read_table(finished.folder / "results.parquet")
    assert table.column_names == list(columns()) == list(lines[0])
    assert [float(line["epoch_s_median"]) for line in lines] == table["epoch_s_median"].to_pylist() == [1.0, 0.5]
    assert [float(line["efficiency_low"]) for line in lines] == table["efficiency_low"].to_pylist()
    assert [line["ranks"] for line in lines] == ["1", "2"]
    # Nothing was measured here; the column is there all the same, and has its type.
    assert table["failure"].to_pylist() == [None, None] and str(table.schema.field("failure").type) == "string"
    assert [line["failure"] for line in lines] == ["", ""]


def test_everything_derived_can_be_deleted_and_rebuilt(finished: Results) -> None:
    names = ("results.csv", "report.html")
    before = {name: (finished.folder / name).read_bytes() for name in names}
    for name in (*names, "results.parquet"):
        (finished.folder / name).unlink()
    results, model = rebuild(finished.folder)
    assert results == finished.results and model.verdict == finished.model.verdict
    assert {name: (finished.folder / name).read_bytes() for name in names} == before
    assert (finished.folder / "results.parquet").exists()


def test_a_rank_without_spans_costs_the_ledger_nothing_else(finished: Results) -> None:
    point = finished.points[1]
    runs = finished.folder / "points" / point.point_id / "runs" / str(point.median_run)
    (runs / "spans" / "rank-0001.arrows").unlink()
    again = open_results(finished.folder)
    assert again.points[1].speedup == point.speedup
    assert any(
        gap.code == "spans-of-some-ranks" and (gap.values["found"], gap.values["ranks"]) == (1, 2)
        for finding in again.results.findings
        for gap in finding.values.get("gaps", ())
    )


def test_a_folder_that_cannot_be_written_to_is_still_read(finished: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise FolderError(f"{path.parent} cannot be written to (Read-only file system).")

    monkeypatch.setattr("paceline.rebuild.write_atomically", refuse)
    (finished.folder / "report.html").unlink()
    results = open_results(finished.folder)
    assert results.points == finished.points
    assert results.report is None and results.to_dict()["report"] is None
    assert len(results.notes) == 1 and "not written" in results.notes[0]


def test_failures_of_some_points_are_in_the_results(tmp_path: Path, cache: Path) -> None:
    finished_study(tmp_path / "study", cache, fails_at=2)
    results = open_results(tmp_path / "study")
    assert [point.runs for point in results.points] == [3, 0]
    assert list(results.failures) == [results.points[1].point_id]
    assert "Rank 0 of 2 died" in results.failures[results.points[1].point_id]


def test_a_study_without_a_single_finished_run_is_an_error(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = finished_study(tmp_path / "study", cache, fails_at=1, overrides=("run.ranks=1",))
    monkeypatch.setattr(study_execution, "execute_study", lambda loaded, folder, **options: open_results(folder))
    with pytest.raises(RunError, match="No run of the study 'instant'") as refused:
        paceline.study(file, out=tmp_path / "study", ranks=1)
    assert "Rank 0 of 1 died" in refused.value.right


def test_overrides_of_python_are_those_of_the_command_line(tmp_path: Path) -> None:
    values = {"train.lr": 0.25, "run.strategy": "flat", "run.pin": False, "model.layers": 3, "train.batch_per_rank": 4}
    loaded = load("digits", ranks=[1, 4], repeats=2, set=values).study
    assert (loaded.train.lr, loaded.run.strategy, loaded.run.pin) == (0.25, "flat", False)
    assert (loaded.model.options["layers"], loaded.train.batch_per_rank) == (3, 4)
    assert (loaded.run.ranks, loaded.run.repeats) == ((1, 4), 2)
    assert load("digits", ranks=range(1, 3), set=["train.lr=0.25"]).study.run.ranks == (1, 2)
    assert load("digits", ranks=2, set=["train.lr=0.25"]).study.run.ranks == (2,)
    several = load("digits", strategy=("flat", "ddp"), launcher=["local", "mpi"], set={"run.pin": [True, False]})
    assert several.study.vary == {
        "run.pin": (True, False),
        "run.strategy": ("flat", "ddp"),
        "run.launcher": ("local", "mpi"),
    }
    assert load("digits", ranks=3, set=["run.ranks=1,2"]).study.run.ranks == (3,)


def test_wrong_overrides_are_refused() -> None:
    for values in ({"train.lr": float("nan")}, {"train.lr": None}, {"train.rl": 1}, {"train.lr": "fast"}):
        with pytest.raises(StudyFileError):
            load("digits", set=values)


def test_folders_are_named_after_the_study() -> None:
    loaded = load("digits")
    assert study_folder(loaded) == Path("runs/digits")
    assert study_folder(loaded, prefix="train-") == Path("runs/train-digits")
    assert study_folder(loaded, "~/x") == Path.home() / "x"
