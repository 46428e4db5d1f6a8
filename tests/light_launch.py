"""Launching light ranks: manifests for them, a process that launches, and who of them is alive.

python light_launch.py RUN_DIR RANKS [options of light_rank.py]
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from paceline.errors import PacelineError
from paceline.identity import PARENT_PID, this_rank
from paceline.launch.base import Outcome, Progress
from paceline.launch.local import LocalLauncher
from paceline.records.codec import write_record
from paceline.records.folder import RunFolder
from paceline.records.run import Manifest
from paceline.records.study import DataSettings, ModelSettings, Point, TrainSettings

LIGHT_RANK = Path(__file__).with_name("light_rank.py")
HOST = this_rank().host
ENDLESS = ("--steps", "1000000")


def light(*options: object) -> tuple[str, ...]:
    """The command of a light rank."""
    return (sys.executable, str(LIGHT_RANK), *map(str, options))


def point(ranks: int, *, threads: int = 1, pin: bool = True) -> Point:
    return Point(
        data=DataSettings(dataset="digits"),
        data_digest="none",
        model=ModelSettings(name="mlp"),
        model_digest="",
        train=TrainSettings(batch_global=8, epochs=1),
        ranks=ranks,
        threads=threads,
        pin=pin,
    )


def manifest(point: Point, cores: tuple[tuple[int, ...], ...] | None = None, attempt: int = 1) -> Manifest:
    return Manifest(
        study="light",
        point_id=point.point_id,
        point=point,
        run=1,
        seed=0,
        data_folder="",
        model_file=None,
        cores=cores,
        placement="",
        launched_at_ns=time.monotonic_ns(),
        launched_at="2024-01-01T00:00:00",
        attempt=attempt,
    )


def launch(
    path: Path, told: Manifest, launcher, *, heartbeat_s: float = 20.0, progress=lambda progress: None
) -> Outcome:
    """Write the manifest as a study would, and run."""
    folder = RunFolder(path)
    write_record(folder.manifest, told)
    return launcher.run(folder, told, heartbeat_s=heartbeat_s, progress=progress)


def running_ranks(launcher_pid: int, among: Iterable[psutil.Process] | None = None) -> dict[int, psutil.Process]:
    """The ranks that a launcher started and that are still alive, by number: also when it is gone itself."""
    found = {}
    for process in psutil.process_iter() if among is None else among:
        try:
            environment = process.environ()
            if environment.get(PARENT_PID) == str(launcher_pid) and process.status() != psutil.STATUS_ZOMBIE:
                found[int(environment["PACELINE_RANK"])] = process
        except (psutil.Error, OSError):
            continue
    return found


def wait_for(condition, within_s: float, every_s: float = 0.01):
    """The first true value of a condition; the last false one when the time is over."""
    deadline = time.monotonic() + within_s
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(every_s)
    return value


def main() -> int:
    path, ranks, options = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    path.mkdir(parents=True, exist_ok=True)

    def show(progress: Progress) -> None:
        (path / "progress").write_text(str(progress.step))

    (path / "launching").touch()
    try:
        launch(path, manifest(point(ranks)), LocalLauncher(light(*options)), progress=show)
    except PacelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
