"""`paceline.trace`: where the time of one run went, by rank and by message."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paceline.app.run_choice import read_chosen
from paceline.app.shown import NOTEBOOK_WIDTH, ShownText
from paceline.errors import RequestError
from paceline.units import counted

if TYPE_CHECKING:
    from paceline.records.counters import CpuTimes
    from paceline.records.slow_cause import SlowCause
    from paceline.records.trace_summary import RunTrace, TraceSummary


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceView(ShownText):
    """The analysis of the trace of one run."""

    run: RunTrace
    """The spans of every rank, on one time line."""
    summary: TraceSummary
    explained: dict[str, float]
    """How much of the lost efficiency each factor explains, as a fraction."""
    causes: tuple[SlowCause, ...]
    """Causes of lost time, the largest first."""
    cpu: CpuTimes | None
    """CPU times of its processes; None if they were not measured."""
    chosen: str
    """The selected run and the reason; empty if it was named."""
    top: int = 10
    """Maximum rows of long tables."""
    whole_matrix: bool = False

    @property
    def headline(self) -> str:
        return f"{self.run.name}, {counted(len(self.run.traces), 'rank')}"

    def text(self, *, width: int = NOTEBOOK_WIDTH, color: bool = False) -> str:
        """Ledger, efficiency tree, messages, stragglers and critical path as text tables."""
        from paceline.reporting.text.trace_text import render

        return render(
            self.run,
            self.summary,
            self.explained,
            cpu=self.cpu,
            suspects=self.causes,
            top=self.top,
            whole_matrix=self.whole_matrix,
            width=width,
            color=color,
        )

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        from paceline.storage.codec import plain

        return {
            "folder": self.run.name,
            "hosts": self.run.hosts,
            "explained": self.explained,
            **plain(self.summary),
            "suspects": [plain(each) for each in self.causes],
            "cpu": plain(self.cpu) if self.cpu else None,
        }


def trace(
    folder: str | Path, *, point: str | None = None, run: int | None = None, top: int = 10, matrix: bool = False
) -> TraceView:
    """Where the time of one run went; `folder` is that of a run, or of a study.

    In a study folder, it is the median run of the point with the most ranks, unless `point` or `run` select another.
    `top` limits the rows of long tables. `matrix` shows all pairs of ranks, for any number of ranks. The trace of a
    killed run is read up to its end.
    """
    from paceline.analyze.run.cpu_time import cpu_times
    from paceline.analyze.run.efficiencies import explained
    from paceline.analyze.run.run_summary import run_analysis
    from paceline.analyze.run.slow_causes import slow_causes
    from paceline.storage.folder import RunFolder
    from paceline.storage.run_counters import read_counters

    if top < 1:
        raise RequestError(
            f"Tables cannot be limited to {top} rows.", right="For example: --top 20", next="See: paceline trace --help"
        )
    read, chosen = read_chosen(Path(folder), point, run)
    dissected = run_analysis(read)
    tree = dissected.summary.efficiencies
    counters = read_counters(RunFolder(Path(read.name)))
    cpu = cpu_times(
        counters,
        ranks=read.ranks,
        started_at_ns=read.started_at_ns,
        ended_at_ns=read.ended_at_ns,
        lines=dissected.lines,
    )
    return TraceView(
        run=read,
        summary=dissected.summary,
        explained=dict(explained(tree)) if tree else {},
        causes=slow_causes(read, dissected, counters),
        cpu=cpu,
        chosen=chosen,
        top=top,
        whole_matrix=matrix,
    )
