"""The interface of every launcher, and the records that it returns.

A launcher starts `python -m paceline.training.worker RUN_DIR` once per rank, passes each rank its identity through
environment variables, and watches. Everything else passes through the run folder:

    manifest.json ──▶ rank ──▶ ranks/*.pulse (while it runs) ──▶ ranks/*.json (how it ended)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from paceline.errors import RunError
from paceline.records.run import Manifest, RankReport
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.storage.codec import storage_error
from paceline.storage.folder import RunFolder

WORKER = "paceline.training.worker"


class Interrupted(RunError):
    """A run that was stopped from outside and can resume: pre-empted, requeued, or warned by its scheduler."""

    def __init__(self, what: str, *, step: int | None, right: str = "", next: str = "") -> None:
        super().__init__(what, right=right, next=next)
        self.step = step
        """Of the checkpoint that the next attempt resumes from; None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The cores of each rank, with the reason."""

    cores: tuple[tuple[int, ...], ...] | None
    """Cores of each local rank; None if the operating system chooses."""
    text: str
    """The policy in words, printed at the start of a study."""
    oversubscribed: bool
    """Whether there are more threads than logical cores: such figures are excluded from fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The position of the slowest rank."""

    step: int
    total_steps: int
    """0 until the ranks know."""
    phase: str


Listener = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run in which every rank reported that it was done."""

    started_at_ns: int
    """Instant from which the run's time counts: `launched_at_ns` of the manifest, or the first rank's start if a
    scheduler had queued the run."""
    ended_at_ns: int
    """Instant on the same clock (time.monotonic_ns) at which the last rank had ended."""
    reports: tuple[RankReport, ...]
    """In order of rank."""


def ignore(progress: Progress) -> None:
    """The default listener."""


class Launcher(ABC):
    """One way of starting ranks. Its catalog entry says what it can do; `LocalLauncher` is the simplest one."""

    name: str
    """As in the catalog."""

    def __init__(self, command: tuple[str, ...] | None = None, settings: LaunchSettings = LaunchSettings()) -> None:
        """`command` replaces that of the worker, RUN_DIR is appended to it; `settings` is `[launch]` of the study."""
        self._command = command or ()
        self._settings = settings

    @abstractmethod
    def placement(self, point: Point) -> Placement:
        """Where the ranks of a point would run, with the reason."""

    def check(self, point: Point) -> None:
        """Raise RequestError if the ranks of a point can never run here, before any run of a study starts."""
        return None

    def pending(self, folder: RunFolder) -> Manifest | None:
        """The manifest of ranks that an earlier process started and that still run by themselves.

        `run` with that manifest then takes them over. None if no rank outlives the launcher.
        """
        return None

    def cancel(self, folder: RunFolder) -> None:
        """End the ranks of this run that still run by themselves, if any."""
        return None

    @abstractmethod
    def run(self, folder: RunFolder, manifest: Manifest, *, heartbeat_s: float, progress: Listener = ignore) -> Outcome:
        """Start the ranks, wait for them, and return their reports.

        `manifest.json` is in place already. Raises RankError for a rank that dies, hangs or raises. When
        this returns or raises, KeyboardInterrupt included, no rank runs any more.
        """


def clear_attempt(folder: RunFolder) -> None:
    """Remove the files of an earlier attempt, except checkpoints (to resume from) and logs."""
    for place in (folder.ranks, folder.spans, folder.counters, folder.logs):
        try:
            place.mkdir(parents=True, exist_ok=True)
            if place != folder.logs:
                for path in place.iterdir():
                    path.unlink()
        except OSError as error:
            raise storage_error(place / "rank-0000", error) from error
