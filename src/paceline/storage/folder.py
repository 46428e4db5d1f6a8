"""Names every file of a study and of a run, once.

STUDY/study.toml                      the resolved study, to read and to run again
STUDY/points.json                     the same study and its points: what a report is rebuilt from
STUDY/published.json                  the published study that it is compared with, as of the start of the study
STUDY/points/<point-id>/runs/<n>/     one run folder
STUDY/results.csv  results.parquet  report.html     derived: may be deleted and rebuilt
STUDY/published.csv                   a published table, cell by cell, with ours beside it: derived too
STUDY/report.md  report.tex  report-body.tex  tables/  figures/     the same for a proposal or a paper, derived too
STUDY/lr-range.html                   the curves of range tests, derived too
STUDY/lock                            who is running this study
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def manifest(self) -> Path:
        return self.path / "manifest.json"

    @property
    def machine(self) -> Path:
        return self.path / "machine.json"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def failure(self) -> Path:
        return self.path / "failure.json"

    @property
    def attempts(self) -> Path:
        return self.path / "attempts.csv"

    @property
    def curves(self) -> Path:
        return self.path / "curves.csv"

    @property
    def noise(self) -> Path:
        return self.path / "noise.csv"

    @property
    def lr_range(self) -> Path:
        return self.path / "lr-range.csv"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def ranks(self) -> Path:
        return self.path / "ranks"

    @property
    def spans(self) -> Path:
        return self.path / "spans"

    @property
    def counters(self) -> Path:
        return self.path / "counters"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def meeting(self) -> Path:
        return self.ranks / "meeting.json"

    @property
    def roll_call(self) -> Path:
        return self.ranks / "roll-call.json"

    @property
    def stop(self) -> Path:
        """Made by a launcher to end its ranks on whatever host they run: the keeper beside each looks for it."""
        return self.ranks / "stop"

    @property
    def notice(self) -> Path:
        """Made by a job that is warned before its end: every keeper passes it on to its rank."""
        return self.ranks / "notice"

    @property
    def exit_code(self) -> Path:
        """Written by a job's script for itself: what srun or mpiexec ended with."""
        return self.ranks / "exit-code"

    @property
    def job(self) -> Path:
        return self.path / "job.json"

    @property
    def job_script(self) -> Path:
        return self.path / "job.sh"

    @property
    def launcher_log(self) -> Path:
        return self.logs / "launcher.log"

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

    @property
    def study(self) -> Path:
        return self.path / "study.toml"

    @property
    def points_file(self) -> Path:
        return self.path / "points.json"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def results_csv(self) -> Path:
        return self.path / "results.csv"

    @property
    def results_parquet(self) -> Path:
        return self.path / "results.parquet"

    @property
    def published(self) -> Path:
        return self.path / "published.json"

    @property
    def published_csv(self) -> Path:
        return self.path / "published.csv"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def report_md(self) -> Path:
        return self.path / "report.md"

    @property
    def report_tex(self) -> Path:
        """A document that takes the body."""
        return self.path / "report.tex"

    @property
    def report_body(self) -> Path:
        return self.path / "report-body.tex"

    @property
    def tables(self) -> Path:
        """One CSV file for each table of the report."""
        return self.path / "tables"

    @property
    def figures(self) -> Path:
        """Plots for print, each with its caption."""
        return self.path / "figures"

    @property
    def lr_range(self) -> Path:
        """Of range tests: their curves."""
        return self.path / "lr-range.html"

    def point(self, point_id: str) -> Path:
        return self.path / "points" / point_id

    def run(self, point_id: str, number: int) -> RunFolder:
        return RunFolder(self.point(point_id) / "runs" / str(number))
