"""Launching light ranks: manifests for them, a process that launches, and who of them is alive.

python -m light_ranks.light_launch LAUNCHER RUN_DIR RANKS [options of light_rank.py]

LAUNCHER is a name of tests/contract/launchers.py that needs no fixture.
"""

import contextlib
import os
import sys
import time
from pathlib import Path

import psutil

from paceline.errors import PacelineError
from paceline.identity import this_rank
from paceline.launch.launcher import Outcome, Progress
from paceline.records.run import Manifest
from paceline.records.settings import DataSettings, LaunchSettings, ModelSettings, TrainSettings
from paceline.records.study import Point
from paceline.storage.codec import write_record
from paceline.storage.folder import RunFolder

LIGHT_RANK = Path(__file__).with_name("light_rank.py")
HOST = this_rank().host
ENDLESS = ("--steps", "1000000")


def light(*options: object) -> tuple[str, ...]:
    """The command of a light rank."""
    return (sys.executable, str(LIGHT_RANK), *map(str, options))


def point(ranks: int, *, threads: int = 1, pin: bool = True, hosts: int = 1) -> Point:
    return Point(
        data=DataSettings(dataset="digits"),
        data_digest="none",
        model=ModelSettings(name="mlp"),
        model_digest="",
        train=TrainSettings(batch_global=8, epochs=1),
        ranks=ranks,
        hosts=hosts,
        threads=threads,
        pin=pin,
    )


def manifest(
    point: Point,
    cores: tuple[tuple[int, ...], ...] | None = None,
    attempt: int = 1,
    settings: LaunchSettings = LaunchSettings(),
) -> Manifest:
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
        launch=settings,
    )


def launch(
    path: Path, told: Manifest, launcher, *, heartbeat_s: float = 20.0, progress=lambda progress: None
) -> Outcome:
    """Write the manifest as a study would, and run."""
    folder = RunFolder(path)
    write_record(folder.manifest, told)
    return launcher.run(folder, told, heartbeat_s=heartbeat_s, progress=progress)


def running_ranks(path: Path) -> dict[int, psutil.Process]:
    """The ranks of a run folder that are still alive, by number, whoever started them."""
    folder, found = str(path.resolve()), {}
    for process in running_processes(path):
        with contextlib.suppress(psutil.Error, OSError, KeyError, IndexError):
            if process.cmdline()[-1] == folder:
                found[int(process.environ()["PACELINE_RANK"])] = process
    return found


def running_processes(path: Path) -> list[psutil.Process]:
    """All processes that were started for a folder or one below it: ranks, wrappers, mpiexec, torchrun."""
    folder, found = str(path.resolve()), []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and any(_is_about(word, folder) for word in process.cmdline()):
                found.append(process)
    return [process for process in found if _is_alive(process)]


def _is_about(word: str, folder: str) -> bool:
    return word == folder or f"{folder}/" in word or word.endswith(folder)


def _is_alive(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def wait_for(condition, within_s: float, every_s: float = 0.01):
    """The first true value of a condition; the last false one when the time is over."""
    deadline = time.monotonic() + within_s
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(every_s)
    return value


def main() -> int:
    name, path, ranks, options = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    from contract.launchers import LAUNCHERS

    path.mkdir(parents=True, exist_ok=True)

    def show(progress: Progress) -> None:
        (path / "progress").write_text(str(progress.step))

    (path / "launching").touch()
    try:
        launch(path, manifest(point(ranks)), LAUNCHERS[name].launcher(light(*options)), progress=show)
    except PacelineError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
