"""Which rank is the cause when a run fails, and the sentence that names it. Pure: no clocks, no files.

When one rank dies the others fail within milliseconds, because their collectives break: the cause is

    1. a rank that a signal killed, that raised an error of its own, or that left without a word
    2. else a rank whose error blames a peer
       and within these the one that ended first.

When no rank moves at all, the cause is the one that the others wait for: one that the operating
system has stopped, else one that is not waiting in a collective, else the one that issued the fewest
(a rank, because servers and a coordinator only answer).
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import RankError
from paceline.records import roles
from paceline.records.pulse import Pulse
from paceline.records.run import RankReport
from paceline.records.study import Point
from paceline.units import duration_text

# A process's state in psutil's words -> how it is said.
_STATES = {
    "stopped": "It is stopped by a signal (state T).",
    "tracing-stop": "It is stopped by a debugger (state t).",
    "zombie": "Its main thread has ended, other threads have not (state Z).",
    "disk-sleep": "It waits in the kernel for a disk or a network file system (state D).",
}
# These prove that it cannot go on by itself; any rank may be seen waiting for a disk.
_STUCK = {"stopped", "tracing-stop", "zombie"}

_MANY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView:
    """What is to be seen of one rank from outside."""

    rank: int
    host: str
    log: Path
    code: int | None = None
    """Exit code, minus the signal's number where one killed it; None while it runs."""
    ended_at_ns: int | None = None
    """Instant at which its end was seen."""
    pulse: Pulse | None = None
    report: RankReport | None = None
    state: str | None = None
    """Of the running process, in psutil's words."""
    point: Point | None = None
    """Says what its role is; a rank where None."""

    @property
    def name(self) -> str:
        """'rank 3', 'server 0'."""
        return roles.name(self.point, self.rank) if self.point else f"rank {self.rank}"

    def title(self, size: int) -> str:
        """'Rank 3 of 4', 'Server 0 (process 4 of 6)'."""
        return roles.title(self.point, self.rank) if self.point else f"Rank {self.rank} of {size}"

    @property
    def phase(self) -> str:
        return self.pulse.phase if self.pulse else "startup"

    @property
    def done(self) -> bool:
        """Whether it ended as it should."""
        return self.code == 0 and self.report is not None and self.report.status == "done"

    @property
    def failed(self) -> bool:
        """Whether it ended otherwise, or has said that it will."""
        if self.code is None:
            return self.report is not None and self.report.status != "done"
        return not self.done

    @property
    def blames_a_peer(self) -> bool:
        """Whether it says that its end follows from another rank's, whatever its teardown came to after that."""
        return self.report is not None and self.report.error_kind == "peer"


def first_cause(sights: Sequence[RankView]) -> RankView:
    """The rank that failed first by itself; at least one of `sights` has failed."""
    return min((s for s in sights if s.failed), key=lambda s: (s.blames_a_peer, _failed_at_ns(s), s.rank))


def awaited_rank(sights: Sequence[RankView]) -> RankView:
    """The rank that all others wait for; at least one of `sights` still runs."""
    return min(
        (s for s in sights if s.code is None),
        key=lambda s: (
            s.state not in _STUCK,
            s.phase == "communicate",
            not s.name.startswith("rank"),
            s.pulse.collectives if s.pulse else 0,
            s.rank,
        ),
    )


def failure_error(cause: RankView, size: int, log_tail: str) -> RankError:
    """The error for a rank that died, raised, or left without a word."""
    who, where = f"{cause.title(size)} on {cause.host}", _place(cause)
    report, code, right = cause.report, cause.code, ""
    if report is not None and report.status != "done":
        ended = "" if code is None else f" ({_end_text(code)})"
        what = "\n".join([f"{who} failed {where}{ended}: {report.error or 'no reason given'}", *_origin(report)])
        if cause.blames_a_peer:
            right = "It lost its connection to another rank, and no rank has given a better reason."
        return RankError(what, right=right, next=_log_text(cause.log, ""))
    assert code is not None
    if code == 0:
        what = f"{who} ended without saying that it was done, {where} ({_end_text(code)})."
        right = "A rank writes its report before it ends: something made it leave early."
    elif code > 0:
        said = "left no report" if report is None else "had said that it was done"
        what = f"{who} ended with {_end_text(code)} {where} and {said}."
    else:
        what = f"{who} was {_end_text(code)} {where}."
        if -code == signal.SIGKILL:
            right = "If nobody sent that signal, the kernel did because memory ran out: fewer ranks need less."
    return RankError(what, right=right, next=_log_text(cause.log, log_tail))


def hang_error(
    cause: RankView, sights: Sequence[RankView], *, silence_s: float, heartbeat_s: float, log_tail: str
) -> RankError:
    """The error for ranks that all stand still, with where each of them stands."""
    title = cause.title(len(sights))
    who, evidence = f"{title} on {cause.host} hangs", _STATES.get(cause.state or "", "")
    if not evidence and cause.phase == "communicate":
        evidence = "It waits in a collective, like all that run, and has issued the fewest."
        if len({s.pulse.collectives for s in sights if s.code is None and s.pulse}) == 1:
            who = f"All ranks hang, {title[0].lower()}{title[1:]} on {cause.host}"
            evidence = "Each waits in the same collective: communication itself does not go on."
    elif not evidence:
        doing = f"It is in phase {cause.phase!r}, not in a collective."
        evidence = "It has finished its work but does not end." if cause.phase == "done" else doing
    what = f"{who} {_place(cause)}: no rank has moved for {duration_text(silence_s)}. {evidence}"
    stands = [_stand(s) for s in sights[:_MANY]] + ["…"] * (len(sights) > _MANY)
    right = (
        f"Ranks show progress at least every {duration_text(heartbeat_s)} (run.heartbeat_s), ten times that while "
        "they start or write a checkpoint. If a step takes longer, raise it."
    )
    return RankError("\n  ".join([what, *stands]), right=right, next=_log_text(cause.log, log_tail))


def _failed_at_ns(sight: RankView) -> int:
    """When it failed: as the rank itself said, which is before its process was gone; on rank 0's clock."""
    if sight.report is not None and sight.report.status != "done":
        return sight.report.ended_at_ns - sight.report.clock_offset_ns
    return sight.ended_at_ns or 0


def _place(sight: RankView) -> str:
    """How far it had come: 'after step 57 of 188'."""
    step, total = (sight.pulse.step, sight.pulse.total_steps) if sight.pulse else (0, 0)
    if sight.report is not None:
        step = max(step, sight.report.steps)
    if sight.phase == "startup" and not step:
        return "while starting"
    return f"after step {step} of {total}" if total else f"after step {step}"


def _stand(sight: RankView) -> str:
    """One line on a rank that stands still."""
    if sight.code is not None:
        return f"{sight.name}: ended"
    collectives = sight.pulse.collectives if sight.pulse else 0
    return f"{sight.name}: {sight.phase}, {_place(sight)}, {collectives} collectives issued"


def _origin(report: RankReport) -> list[str]:
    """The traceback's last place, and its last line where the error does not say the same."""
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
