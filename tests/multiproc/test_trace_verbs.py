"""`paceline trace` and `paceline export` on what two real ranks recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import paceline
from checks.export_checks import COLL, COMP, check_chrome, decoded
from paceline.cli.app import main

STEPS = 6


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of one run on two ranks."""
    folder = tmp_path_factory.mktemp("traced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PACELINE_CACHE", str(folder / "cache"))
        small = {"train.steps": STEPS, "train.batch_global": 64}
        results = paceline.study("digits", ranks=2, repeats=1, set=small, out=folder / "study")
    assert not results.failures
    return folder / "study"


@pytest.fixture
def found(study: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["trace", str(study), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_trace_of_real_ranks_accounts_for_every_second(found: dict[str, Any]) -> None:
    result = json.loads((Path(found["folder"]) / "result.json").read_text())
    assert found["problems"] == []
    assert (found["ranks"], found["steps"]) == (2, result["steps"]) == (2, STEPS)
    assert found["wall_s"] == pytest.approx(result["wall_s"])
    for ledger in found["ledgers_s"]:
        assert None not in ledger.values()
        assert sum(ledger.values()) == pytest.approx(found["wall_s"])
    gradients = [kind for kind in found["messages"] if kind["payload_bytes"] >= 4 * result["parameters"]]
    assert sum(kind["count"] for kind in gradients) >= STEPS
    assert all(kind["total_s"] > 0 and kind["wait_s"] >= 0 for kind in gradients)
    assert [process["process"] for process in found["cpu"]["processes"]] == [0, 1] and found["cpu"]["sentence"]
    tree = found["efficiencies"]
    assert 0 < tree["global_"] <= 1 and sum(found["explained"].values()) == pytest.approx(1)
    assert sum(part["share"] for part in found["path"]) == pytest.approx(1)


def test_the_text_shows_the_same(study: Path, found: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(study)]) == 0
    out = capsys.readouterr().out
    assert f"{STEPS} steps on every rank" in out and "allreduce_" in out
    assert f"{found['efficiencies']['global_'] * 100:.1f} %" in out
    assert "missing or damaged" not in out


def test_exports_of_real_ranks_are_valid(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for format, name in (("chrome", "run.json"), ("parquet", "run.parquet"), ("chakra", "et")):
        assert main(["export", str(study), "--format", format, "--out", str(tmp_path / name)]) == 0
    capsys.readouterr()
    table = parquet.read_table(tmp_path / "run.parquet").to_pylist()
    assert {row["rank"] for row in table} == {0, 1} and all(row["start_ns"] >= 0 for row in table)
    forwards = [row for row in table if row["kind"] == "forward"]

    trace = json.loads((tmp_path / "run.json").read_text())
    check_chrome(trace)
    drawn = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == "forward"]
    assert len(drawn) == len(forwards) >= 2 * STEPS
    assert any(event["ph"] == "f" for event in trace["traceEvents"])

    messages = [row for row in table if row["kind"] == "collective" and row["operation"] == "allreduce_"]
    for rank in range(2):
        metadata, nodes = decoded((tmp_path / "et" / f"trace.{rank}.et").read_bytes())
        assert metadata["version"] == "0.0.4"
        own = [row for row in messages if row["rank"] == rank]
        sums = [node for node in nodes if node["type"] == COLL and node["name"] == "allreduce_"]
        assert [node["comm_size"] for node in sums] == [row["bytes"] for row in own]
        assert sum(node["type"] == COMP for node in nodes) > STEPS
