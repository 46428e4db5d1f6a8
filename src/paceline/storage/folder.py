"""Paths of every file of a study folder and of a run folder.

STUDY/study.toml                      the resolved study, to read and to run again
STUDY/points.json                     the study and its points: a report is rebuilt from it
STUDY/published.json                  the published study that it is compared with, as of the start of the study
STUDY/points/<point-id>/runs/<n>/     one run folder
STUDY/results.csv  results.parquet  report.html     derived: may be deleted and rebuilt
STUDY/published.csv                   a published table, cell by cell, with our results: derived, too
STUDY/report.md  report.tex  report-body.tex  tables/  figures/     for a proposal or a paper: derived, too
STUDY/lr-range.html                   the curves of range tests: derived, too
STUDY/lock                            the process that runs this study
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path


class File:
    """An attribute of a folder record: the path of one of its files."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: RunFolder | StudyFolder, owner: type | None = None) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run."""

    path: Path

    manifest = File("manifest.json")
    machine = File("machine.json")
    result = File("result.json")
    failure = File("failure.json")
    attempts = File("attempts.csv")
    curves = File("curves.csv")
    noise = File("noise.csv")
    lr_range = File("lr-range.csv")
    job = File("job.json")
    job_script = File("job.sh")
    checkpoints = File("checkpoints")
    ranks = File("ranks")
    spans = File("spans")
    counters = File("counters")
    logs = File("logs")
    launcher_log = File("logs/launcher.log")
    rendezvous = File("ranks/rendezvous.json")
    allocation_check = File("ranks/allocation-check.json")
    stop = File("ranks/stop")
    """Created by a launcher to end its ranks on any host: every rank wrapper polls for it."""
    notice = File("ranks/notice")
    """Created by a job that is warned before its end: every rank wrapper passes it on to its rank."""
    exit_code = File("ranks/exit-code")
    """Written by the job script: the exit code of srun or mpiexec."""

    def rank_start(self, rank: int) -> Path:
        return self.ranks / f"rank-{rank:04d}.start"

    def rank_end(self, rank: int) -> Path:
        return self.ranks / f"rank-{rank:04d}.end"

    def rank_report(self, rank: int) -> Path:
        return self.ranks / f"rank-{rank:04d}.json"

    def rank_script(self, rank: int) -> Path:
        return self.ranks / f"rank-{rank:04d}.script.json"

    def rank_pulse(self, rank: int) -> Path:
        return self.ranks / f"rank-{rank:04d}.pulse"

    def rank_spans(self, rank: int) -> Path:
        return self.spans / f"rank-{rank:04d}.arrows"

    def rank_counters(self, rank: int) -> Path:
        return self.counters / f"rank-{rank:04d}.arrows"

    def rank_log(self, rank: int) -> Path:
        return self.logs / f"rank-{rank:04d}.log"


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """The files of one study."""

    path: Path

    study = File("study.toml")
    points_file = File("points.json")
    lock = File("lock")
    results_csv = File("results.csv")
    results_parquet = File("results.parquet")
    published = File("published.json")
    published_csv = File("published.csv")
    report = File("report.html")
    report_md = File("report.md")
    report_tex = File("report.tex")
    """The LaTeX document that includes the body."""
    report_body = File("report-body.tex")
    tables = File("tables")
    """One CSV file per table of the report."""
    figures = File("figures")
    """Plots for a paper, each with its caption."""
    lr_range = File("lr-range.html")
    """Curves of range tests."""

    def point(self, point_id: str) -> Path:
        return self.path / "points" / point_id

    def run(self, point_id: str, number: int) -> RunFolder:
        return RunFolder(self.point(point_id) / "runs" / str(number))


def modified_at_s(path: Path) -> float:
    """When a file was modified, in seconds since 1970; 0 if it does not exist."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def instant_s(text: str) -> float | None:
    """An ISO 8601 time of a record in seconds since 1970; None if it is not one."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None
