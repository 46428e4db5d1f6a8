"""The rank that caused the failure of a run, and the error that names it. Pure: no clocks, no files.

When one rank dies the others fail within milliseconds, because their collectives break. The cause is

    1. a rank that a signal killed, that raised an error of its own, or that exited without a report
    2. else a rank whose error blames a peer
       and within these the one that ended first.

When no rank makes progress, the cause is the rank that the others wait for: one that the operating system has stopped,
else one that is not waiting in a collective, else the one that issued the fewest collectives (a rank, because servers
and a coordinator only answer).
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import RankError
from paceline.records import process_roles
from paceline.records.run import RankReport
from paceline.records.study import Point
from paceline.storage.pulse import Pulse
from paceline.units import duration_text

# A process's state in psutil's words -> sentence.
_STATES = {
    "stopped": "It is stopped by a signal (state T).",
    "tracing-stop": "It is stopped by a debugger (state t).",
    "zombie": "Its main thread has ended, other threads have not (state Z).",
    "disk-sleep": "It waits in the kernel for a disk or a network file system (state D).",
}
# States that a process cannot leave by itself; waiting for a disk is not one of them.
_STUCK = {"stopped", "tracing-stop", "zombie"}

_MANY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView:
    """One rank as its launcher sees it."""

    rank: int
    host: str
    log: Path
    code: int | None = None
    """Exit code, negative for a signal; None while it runs."""
    ended_at_ns: int | None = None
    """Instant at which the launcher found that it had ended."""
    pulse: Pulse | None = None
    report: RankReport | None = None
    state: str | None = None
    """Of the running process, in psutil's words."""
    point: Point | None = None
    """Defines its role; a rank if None."""

    @property
    def name(self) -> str:
        """'rank 3', 'server 0'."""
        return process_roles.name(self.point, self.rank) if self.point else f"rank {self.rank}"

    def title(self, size: int) -> str:
        """'Rank 3 of 4', 'Server 0 (process 4 of 6)'."""
        return process_roles.title(self.point, self.rank) if self.point else f"Rank {self.rank} of {size}"

    @property
    def phase(self) -> str:
        return self.pulse.phase if self.pulse else "startup"

    @property
    def done(self) -> bool:
        """Whether it ended successfully."""
        return self.code == 0 and self.report is not None and self.report.status == "done"

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise, or has reported a failure."""
        if self.code is None:
            return self.report is not None and self.report.status != "done"
        return not self.done

    @property
    def blames_a_peer(self) -> bool:
        """Whether its report says that it failed because of another rank."""
        return self.report is not None and self.report.error_kind == "peer"


def first_cause(ranks: Sequence[RankView]) -> RankView:
    """The rank that failed first by itself; at least one of `ranks` has failed."""
    return min((r for r in ranks if r.failed), key=lambda r: (r.blames_a_peer, _failed_at_ns(r), r.rank))


def awaited_rank(ranks: Sequence[RankView]) -> RankView:
    """The rank that all others wait for; at least one of `ranks` still runs."""
    return min(
        (r for r in ranks if r.code is None),
        key=lambda r: (
            r.state not in _STUCK,
            r.phase == "communicate",
            r.point is not None and r.point.role(r.rank) != "rank",
            r.pulse.collectives if r.pulse else 0,
            r.rank,
        ),
    )


def failure_error(cause: RankView, size: int, log_tail: str) -> RankError:
    """The error for a rank that died, raised, or exited without a report."""
    who, where = f"{cause.title(size)} on {cause.host}", _place(cause)
    report, code, right = cause.report, cause.code, ""
    if report is not None and report.status != "done":
        ended = "" if code is None else f" ({_end_text(code)})"
        what = "\n".join([f"{who} failed {where}{ended}: {report.error or 'no reason given'}", *_origin(report)])
        if cause.blames_a_peer:
            right = "It lost its connection to another rank, and no rank reported another cause."
        return RankError(what, right=right, next=_log_text(cause.log, ""))
    assert code is not None
    if code == 0:
        what = f"{who} ended without a report, {where} ({_end_text(code)})."
        right = "A rank writes its report before it ends: something made it exit early."
    elif code > 0:
        reported = "wrote no report" if report is None else "had reported that it was done"
        what = f"{who} ended with {_end_text(code)} {where} and {reported}."
    else:
        what = f"{who} was {_end_text(code)} {where}."
        if -code == signal.SIGKILL:
            right = "If no user sent this signal, the kernel did, because memory ran out: use fewer ranks."
    return RankError(what, right=right, next=_log_text(cause.log, log_tail))


def hang_error(
    cause: RankView, ranks: Sequence[RankView], *, silence_s: float, heartbeat_s: float, log_tail: str
) -> RankError:
    """The error for ranks that all hang, with the position of each."""
    title = cause.title(len(ranks))
    who, evidence = f"{title} on {cause.host} hangs", _STATES.get(cause.state or "", "")
    if not evidence and cause.phase == "communicate":
        evidence = "It waits in a collective, like all that run, and has issued the fewest."
        if len({r.pulse.collectives for r in ranks if r.code is None and r.pulse}) == 1:
            who = f"All ranks hang, {title[0].lower()}{title[1:]} on {cause.host}"
            evidence = "Each waits in the same collective: the communication itself hangs."
    elif not evidence:
        doing = f"It is in phase {cause.phase!r}, not in a collective."
        evidence = "It has finished its work but does not end." if cause.phase == "done" else doing
    what = f"{who} {_place(cause)}: no rank has made progress for {duration_text(silence_s)}. {evidence}"
    positions = [_position(rank) for rank in ranks[:_MANY]] + ["…"] * (len(ranks) > _MANY)
    right = (
        f"Ranks show progress at least every {duration_text(heartbeat_s)} (run.heartbeat_s), ten times that while "
        "they start or write a checkpoint. If a step takes longer, raise it."
    )
    return RankError("\n  ".join([what, *positions]), right=right, next=_log_text(cause.log, log_tail))


def _failed_at_ns(rank: RankView) -> int:
    """When it failed, on rank 0's clock: from its own report, which is earlier than the end of its process."""
    if rank.report is not None and rank.report.status != "done":
        return rank.report.ended_at_ns - rank.report.clock_offset_ns
    return rank.ended_at_ns or 0


def _place(rank: RankView) -> str:
    """Its progress: 'after step 57 of 188'."""
    step, total = (rank.pulse.step, rank.pulse.total_steps) if rank.pulse else (0, 0)
    if rank.report is not None:
        step = max(step, rank.report.steps)
    if rank.phase == "startup" and not step:
        return "while starting"
    return f"after step {step} of {total}" if total else f"after step {step}"


def _position(rank: RankView) -> str:
    """One line on a rank that hangs."""
    if rank.code is not None:
        return f"{rank.name}: ended"
    collectives = rank.pulse.collectives if rank.pulse else 0
    return f"{rank.name}: {rank.phase}, {_place(rank)}, {collectives} collectives issued"


def _origin(report: RankReport) -> list[str]:
    """The last place of the traceback, and its last line if that is not in the error."""
    lines = [line.strip() for line in (report.traceback or "").strip().splitlines()]
    places = [line for line in lines if line.startswith("File ")]
    last = [line for line in lines[-1:] if line not in (report.error or "") and line not in places]
    return [f"  {line}" for line in (*places[-1:], *last)]


def _end_text(code: int) -> str:
    """'exit code 3' or 'killed by SIGKILL'."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _log_text(log: Path, tail: str) -> str:
    if not tail:
        return f"Its log: {log}"
    return f"Its log, {log}, ends with:\n" + "\n".join(f"  {line}" for line in tail.splitlines())
