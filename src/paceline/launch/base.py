"""What every launcher promises, and what it hands back.

A launcher starts `python -m paceline.train.worker RUN_DIR` once per rank, tells each who it is
through the environment, and watches. Everything else passes through the run folder:

    manifest.json ──▶ rank ──▶ ranks/*.pulse (while it runs) ──▶ ranks/*.json (how it ended)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from paceline.records.codec import storage_error
from paceline.records.folder import RunFolder
from paceline.records.run import Manifest, RankReport
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point

WORKER = "paceline.train.worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Which rank gets which cores, and why."""

    cores: tuple[tuple[int, ...], ...] | None
    """Cores of each local rank; None leaves placement to the operating system."""
    text: str
    """The policy in words: printed at the start of a study."""
    oversubscribed: bool
    """Whether there are more threads than logical cores: such figures are kept out of fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where the slowest rank is."""

    step: int
    total_steps: int
    """0 until the ranks know."""
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run in which every rank said that it was done."""

    started_at_ns: int
    """Instant from which the run's time counts: `launched_at_ns` of the manifest, or the first rank's start where a
    scheduler had queued it."""
    ended_at_ns: int
    """Instant on the same clock (time.monotonic_ns) at which the last rank had ended."""
    reports: tuple[RankReport, ...]
    """In order of rank."""


def ignore(progress: Progress) -> None:
    """The default listener to progress."""


class Launcher(ABC):
    """One way of starting ranks. What it can do is in its entry of the catalog; see `LocalLauncher`."""

    name: str
    """As in the catalog."""

    @abstractmethod
    def __init__(self, command: tuple[str, ...] | None = None, settings: LaunchSettings = LaunchSettings()) -> None:
        """`command` replaces that of the worker, RUN_DIR is appended to it; `settings` is `[launch]` of the study."""

    @abstractmethod
    def placement(self, point: Point) -> Placement:
        """Where the ranks of a point would run, with the reason."""

    def check(self, point: Point) -> None:
        """Raise RequestError where the ranks of a point can never run here, before any of a study is started."""
        return None

    def pending(self, folder: RunFolder) -> Manifest | None:
        """What the ranks of this run were told where they go on by themselves, started by an earlier process.

        `run` with that manifest then takes them over. None where nobody outlives the launcher.
        """
        return None

    def cancel(self, folder: RunFolder) -> None:
        """End the ranks of this run that go on by themselves, where there are any."""
        return None

    @abstractmethod
    def run(
        self,
        folder: RunFolder,
        manifest: Manifest,
        *,
        heartbeat_s: float,
        progress: Callable[[Progress], None] = ignore,
    ) -> Outcome:
        """Start the ranks, wait for them, and bring their reports.

        `manifest.json` is in place already. Raises RankError for a rank that dies, hangs or raises. When
        this returns or raises, KeyboardInterrupt included, no rank is left.
        """


def clear_attempt(folder: RunFolder) -> None:
    """Remove what an earlier attempt said, so that none of it is taken for this one's.

    Checkpoints are kept to resume from, logs to be read.
    """
    for place in (folder.ranks, folder.spans, folder.counters, folder.logs):
        try:
            place.mkdir(parents=True, exist_ok=True)
            if place != folder.logs:
                for path in place.iterdir():
                    path.unlink()
        except OSError as error:
            raise storage_error(place / "rank-0000", error) from error
