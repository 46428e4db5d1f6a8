"""`paceline trace` and `paceline export`: which run they take, what they print and write, and what they refuse."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from paceline.cli.app import main
from paceline.launch.launcher import Outcome
from paceline.records.run import Manifest
from paceline.storage.folder import RunFolder
from paceline.studies.execute.execute import execute
from paceline.studies.load.load import load_study
from samples.export_samples import STARTED_AT, US, rank_rows, write_rank, write_run
from samples.finished_study import STUDY, InstantLauncher, report


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(place: Path) -> Path:
    """The folder of a run that left nothing but spans."""
    return write_run(place / "run")


class TracedLauncher(InstantLauncher):
    """Says at once what ranks would say, and leaves the spans of a few steps; the third run is the slowest."""

    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress=lambda progress: None):
        ranks = manifest.point.ranks
        reports = []
        for rank in range(ranks):
            write_rank(folder.path, rank, rank_rows(rank))
            said = report(rank, ranks, manifest)
            epochs = tuple(replace(epoch, epoch_s=epoch.epoch_s * manifest.run) for epoch in said.training.epochs)
            reports.append(replace(said, training=replace(said.training, epochs=epochs)))
        ended_at_ns = max(time.monotonic_ns(), manifest.launched_at_ns)
        return Outcome(started_at_ns=manifest.launched_at_ns, ended_at_ns=ended_at_ns, reports=tuple(reports))


@pytest.fixture
def study(place: Path) -> Path:
    """A study of two points with three runs each."""
    (place / "instant.toml").write_text(STUDY)
    loaded = load_study(place / "instant.toml", ())
    execute(loaded, place / "study", launcher=TracedLauncher(), preflight=False, cache=place / "cache")
    return place / "study"


def json_of(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 0) -> dict[str, Any]:
    assert main([*map(str, words), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 2) -> str:
    """What is said of a request that is refused."""
    assert main([*map(str, words)]) == code
    out, err = capsys.readouterr()
    assert out == "" and "bug" not in err
    return err


def test_the_trace_of_a_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(run)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for part in (
        f"Run {run}",
        "Seconds of each rank",
        "load balance",
        "allreduce_",
        "busbw",
        "from \\ to",
        "Rank 1 was last to",
        "The critical path",
        "The clocks of the ranks were not compared",
    ):
        assert part in out


def test_json_is_the_anatomy_and_nothing_else(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json_of(capsys, "trace", run)
    assert (found["folder"], found["ranks"], found["steps"], found["hosts"]) == (str(run), 2, 4, [])
    assert len(found["ledgers_s"]) == 2 and found["matrix"] and found["path"]
    assert sum(found["explained"].values()) == pytest.approx(1.0)
    assert {kind["operation"] for kind in found["messages"]} == {"allreduce_", "send", "recv_"}


def test_of_a_study_it_is_the_median_run_of_the_widest_point(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(study)]) == 0
    out, err = capsys.readouterr()
    first, others, *rest = err.splitlines()
    assert first.startswith("This is run 2 of 2-ranks-ddp-") and first.endswith("(2 ranks), the median of 3 by speed.")
    assert "--point and --run" in others
    assert [line.rpartition(": ")[2] for line in rest] == ["run 1, 2, 3", "run 1, 3"]
    assert "/runs/2\n" in out


def test_a_point_and_a_run_can_be_chosen(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json_of(capsys, "trace", study, "--point", "1-rank-", "--run", "3")["ranks"] == 1
    folder = json_of(capsys, "trace", study, "--point", "2 ranks", "--run", "3")["folder"]
    assert Path(folder).name == "3" and "2-ranks" in folder
    assert json_of(capsys, "trace", folder)["ranks"] == 2
    assert main(["trace", str(study), "--point", "1-rank-", "--run", "3"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--point", "9-ranks"], "No point '9-ranks' has spans.\nPoints: 1-rank-ddp-"),
        (["--run", "7"], "with spans.\nRuns: 1, 2, 3."),
        (["--run", "x"], "--run x is not a whole number."),
        (["--top", "0"], "Tables cannot be limited to 0 rows."),
    ],
)
def test_a_choice_that_is_not_there_is_refused(
    words: list[str], said: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "trace", study, *words)


def test_a_name_that_fits_several_points_is_refused(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "ambiguous: 1-rank-ddp-" in refused(capsys, "trace", study, "--point", "")


@pytest.mark.parametrize("verb", [["trace"], ["export", "--format", "csv"]])
def test_folders_that_hold_no_run_are_refused_in_three_parts(
    verb: list[str], run: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "There is no folder" in refused(capsys, *verb, place / "nowhere")
    (place / "empty").mkdir()
    said = refused(capsys, *verb, place / "empty").splitlines()
    assert len(said) == 3 and "neither a run folder nor a study folder" in said[0]
    assert "only be selected in a study folder" in refused(capsys, *verb, run, "--run", "1")
    (place / "file").write_text("")
    assert "neither" in refused(capsys, *verb, place / "file")
    (place / "bare" / "spans").mkdir(parents=True)
    assert "There are no spans in" in refused(capsys, *verb, place / "bare")


def test_a_folder_in_which_nothing_can_be_read_ends_with_1(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (run / "spans").iterdir():
        path.write_bytes(b"\xff" * 100)
    said = refused(capsys, "trace", run, code=1)
    assert said.startswith("No spans in") and "rank-0001.arrows cannot be read" in said


def test_a_study_without_spans_says_how_to_go_on(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for spans in study.glob("points/*/runs/*/spans"):
        for path in spans.iterdir():
            path.unlink()
        spans.rmdir()
    assert "Continue it: paceline study" in refused(capsys, "trace", study)


def test_a_run_that_is_not_finished_is_read_as_far_as_it_got(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for result in study.glob("points/2-ranks*/runs/*/result.json"):
        result.unlink()
    assert main(["trace", str(study), "--point", "2-ranks"]) == 0
    assert "This is run 3 of 2-ranks-ddp-" in (err := capsys.readouterr().err) and "which is not finished." in err
    # Of itself a finished one is taken.
    assert json_of(capsys, "trace", study)["ranks"] == 1


def test_chrome_is_compressed_where_its_name_says_so(
    run: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(run), "--format", "chrome"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Wrote trace.json.gz (68 spans of 2 ranks, ") and "ui.perfetto.dev" in out
    assert "[WARN] The clocks of the ranks were not compared" in err
    packed = json.loads(gzip.decompress((place / "trace.json.gz").read_bytes()))
    assert main(["export", str(run), "--format", "chrome", "--out", "plain.json"]) == 0
    assert json.loads((place / "plain.json").read_text()) == packed


def test_tables_go_where_they_are_told_to(run: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrote = json_of(capsys, "export", run, "--format", "parquet", "--out", "a/b/all.parquet")
    assert (wrote["files"], wrote["spans"], wrote["format"]) == (["a/b/all.parquet"], 68, "parquet")
    assert parquet.read_table("a/b/all.parquet").num_rows == 68
    (place / "there").mkdir()
    assert main(["export", str(run), "--format", "csv", "--out", "there"]) == 0
    with (place / "there" / "spans.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 68
    assert main(["export", str(run), "--format", "csv", "--out", "spans.csv.gz"]) == 0
    assert gzip.decompress((place / "spans.csv.gz").read_bytes()) == (place / "there" / "spans.csv").read_bytes()


def test_chakra_is_a_file_for_each_rank(run: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrote = json_of(capsys, "export", run, "--format", "chakra", "--out", "et")
    assert wrote["files"] == ["et/trace.0.et", "et/trace.1.et"]
    assert all(b"0.0.4" in (place / path).read_bytes()[:10] for path in wrote["files"])
    (place / "file").write_text("mine")
    assert "is a file." in refused(capsys, "export", run, "--format", "chakra", "--out", "file")


@pytest.mark.parametrize(("format", "there"), [("csv", "spans.csv"), ("chakra", "chakra/trace.1.et")])
def test_a_file_that_is_there_is_kept_unless_it_is_to_be_replaced(
    format: str, there: str, run: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = place / there
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    assert f"{there} already exists." in refused(capsys, "export", run, "--format", format)
    assert mine.read_text() == "mine"
    assert sorted(path.name for path in mine.parent.iterdir() if path != run) == [mine.name]
    assert main(["export", str(run), "--format", format, "--force"]) == 0
    assert mine.read_bytes() != b"mine"


def test_a_format_that_is_unknown_is_refused(run: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean 'parquet'?" in refused(capsys, "export", run, "--format", "parket")
    assert "--format" in refused(capsys, "export", run)
    assert [path.name for path in place.iterdir()] == ["run"]


def test_a_folder_that_cannot_be_written_leaves_nothing_behind(
    run: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "file").write_text("")
    refused(capsys, "export", run, "--format", "csv", "--out", "file/spans.csv", code=1)
    assert sorted(path.name for path in place.iterdir()) == ["file", "run"]


def test_a_run_of_hours_and_one_of_nothing_can_be_exported(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rank(place / "empty", 0, [])
    write_rank(place / "single", 0, rank_rows(0)[:1])
    for folder in ("empty", "single"):
        assert main(["trace", folder]) == 0
        for format in ("chrome", "parquet", "csv", "chakra"):
            assert main(["export", folder, "--format", format, "--out", f"{folder}-{format}"]) == 0
    assert "has no spans in it" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["trace", "run"], ["export", "run", "--format", "csv"]])
def test_reading_traces_imports_no_torch(words: list[str], run: Path) -> None:
    code = f"import sys; from paceline.cli.app import main; main({words!r}); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_instants_are_since_the_launch(run: Path, place: Path) -> None:
    assert main(["export", str(run), "--format", "parquet"]) == 0
    starts = parquet.read_table("spans.parquet")["start_ns"].to_pylist()
    first = STARTED_AT + US
    assert min(starts) == 0 and max(starts) == max(row.start for row in rank_rows(0)) - first
