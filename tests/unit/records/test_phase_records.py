"""Records from before there were phases are read, and say nothing about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.records.run import CachedFeatures, Epoch, PhaseEnd, RankReport
from paceline.storage.codec import from_plain, plain, read_record, write_record
from paceline.training.checkpoint import CheckpointState

EPOCH = {
    "epoch": 1,
    "step": 4,
    "samples": 40,
    "train_loss": 1.0,
    "train_accuracy": 0.5,
    "validation_loss": None,
    "validation_accuracy": None,
    "epoch_s": 1.0,
    "evaluate_s": 0.1,
    "whole": True,
}
REPORT = {
    "rank": 0,
    "status": "done",
    "host": "h",
    "pid": 1,
    "device": "cpu",
    "backend": "gloo",
    "threads": 1,
    "affinity": [0],
    "versions": {},
    "steps": 4,
    "ended_at_ns": 5,
}
STANDING = {
    "point_id": "p",
    "seed": 0,
    "layout": {"data": 1},
    "step": 4,
    "epochs": [EPOCH],
    "epoch_elapsed_s": 0.0,
    "host": "h",
    "versions": {},
}


def test_records_without_a_phase_are_of_the_first() -> None:
    assert from_plain(Epoch, EPOCH).phase == "train"
    report = from_plain(RankReport, REPORT)
    assert (report.training.phases, report.training.features) == ((), None)
    standing = from_plain(CheckpointState, STANDING)
    assert (standing.phase, standing.phases) == ("train", ())


def test_phases_are_read_as_they_were_written(tmp_path: Path) -> None:
    end = PhaseEnd(name="train", steps=4, test_loss=0.5, test_accuracy=0.75)
    made = CachedFeatures(samples=4, size=2, ready_s=0.5, found=True)
    report = from_plain(RankReport, {**REPORT, "phases": [plain(end)], "features": plain(made)})
    write_record(tmp_path / "r.json", report)
    assert read_record(tmp_path / "r.json", RankReport) == report
    assert (report.training.phases, report.training.features) == ((end,), made)


def test_half_of_one_is_refused() -> None:
    with pytest.raises((TypeError, ValueError)):
        from_plain(RankReport, {**REPORT, "phases": [{"name": "train"}]})
