"""Figures of the traces of a run, for `paceline trace`, the report and `--json`.

    RunTrace   the spans of all ranks on one time line            storage/run_trace.py reads it from a run folder
    TraceSummary  what analysis makes of it                       analyze/run/run_summary.py

A figure that the traces cannot give is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.records.rank_trace import RankTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrace:
    """One run as its ranks recorded it, on the clock of rank 0's host."""

    name: str
    """Its folder."""
    ranks: int
    """Ranks that train; some of their traces may be missing."""
    started_at_ns: int
    ended_at_ns: int
    """The window of the ledger: from the launch to the last rank's end."""
    traces: tuple[RankTrace, ...]
    """In order of rank; servers and a coordinator after the ranks."""
    hosts: tuple[str, ...] = ()
    """Of each rank; empty if unknown."""
    clock_error_ns: int = 0
    """Upper bound of the clock error between two ranks: 0 if all read one clock."""
    device: str = "cpu"
    problems: tuple[str, ...] = ()
    """Missing or damaged files, a sentence each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageKind:
    """Messages of one operation and size: a row of the message table. Times are of one message on one rank."""

    operation: str
    group: str
    dtype: str | None
    payload_bytes: int
    """Of one message, on one rank."""
    count: int
    """Messages of the run; one that four ranks take part in counts once."""
    total_s: float | None
    """Median from issue to completion."""
    total_p99_s: float | None
    wait_s: float | None
    """Median from issue until the last rank issued it."""
    transfer_s: float | None
    """Median from then to the completion."""
    hidden_share: float | None
    """Fraction of all transfer time in which the rank computed."""
    algorithm_bytes_per_s: float | None
    """Size by nccl-tests' convention over the median transfer time."""
    bus_bytes_per_s: float | None
    """Algorithm bandwidth times nccl-tests' factor for the operation: comparable with the speed of a link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One cell of the matrix: traffic from one rank to another."""

    source: int
    target: int
    payload_bytes: int
    seconds: float | None
    """Time in which messages were in flight after both sides had issued them."""
    messages: int
    estimated: bool
    """Whether it includes collectives, divided as in a ring: the algorithm of the backend is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """How one rank arrived at the collectives of the timed steps."""

    rank: int
    last: int
    """Collectives at which it was the straggler, by more than the clock error."""
    of: int
    """Collectives in the traces of all ranks of a group."""
    late_s: float | None
    """Median delay after the second to last rank, as the straggler."""
    caused_wait_s: float
    """Total time that other ranks waited for it, from the second to last arrival on."""
    doing: dict[str, float] = field(default_factory=dict)
    """Kinds of the ledger in which it spent more time than the others' median between two collectives, as shares of
    that excess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPart:
    """A share of the critical path over ranks."""

    rank: int
    kind: str
    """A kind of the ledger."""
    share: float
    """Of the length of the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiencies:
    """The efficiency tree of a point, after the POP centre of excellence. Each is a fraction; global is their product.

    global                  useful time per rank of the baseline, ÷ wall time here, scaled to the same work
    computation_scaling     useful rank-seconds per sample of the baseline ÷ here
    load_balance            mean ÷ maximum of the ranks' useful time
    serialisation           maximum of the useful time ÷ the wall time of a replay with instant messages
    transfer                the wall time of that replay ÷ the measured one
    """

    global_: float
    computation_scaling: float | None
    """None without a baseline."""
    load_balance: float
    serialisation: float
    transfer: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    """Delay of observed completions: other ranks after the earliest, for messages that end simultaneously."""

    median_s: float
    p99_s: float
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """Figures of the traces of one run."""

    ranks: int
    wall_s: float
    steps: int
    ledgers_s: tuple[dict[str, float | None], ...]
    messages: tuple[MessageKind, ...]
    matrix: tuple[Exchange, ...]
    """Between ranks; servers are numbered after them."""
    host_names: tuple[str, ...]
    """In the order of their ranks; empty if unknown."""
    host_matrix: tuple[Exchange, ...]
    """Between hosts, as indices into `host_names`."""
    arrivals: tuple[Arrivals, ...]
    path: tuple[PathPart, ...]
    """Largest share first."""
    efficiencies: Efficiencies | None
    lateness: Lateness | None
    clock_error_s: float
    problems: tuple[str, ...]
