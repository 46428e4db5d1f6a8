"""Groups of ranks that wait for their turn, so that what they do can be timed in blocks that alternate.

    Turns(name, launcher, point, blocks)    starts the ranks, under a real launcher, and leaves them waiting
    turns.take("flat", steps)               seconds that a block took: the others sleep meanwhile
    turns.close()                           lets them end

A turn is told through a file of the run folder, `turn-0007`, which rank 0 looks for 20 times a second and
answers with `turn-0007.json`. Ranks of any launcher, host and environment can so take part in one interleaved run.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.launch.launcher import Launcher
from paceline.records.run import Manifest
from paceline.records.settings import LaunchSettings
from paceline.records.study import Point
from paceline.storage.codec import write_atomically, write_record
from paceline.storage.folder import RunFolder

COMMAND = (sys.executable, str(Path(__file__).with_name("turn_rank.py")))
PATIENCE_S = 300.0
LOOK_S = 0.05
"""Between two looks for a turn or an answer. Those who wait must not take time from those who work."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a group of ranks is asked for: so many steps of a block; a block without a name ends them."""

    block: str
    steps: int


class TurnFolder:
    """Both ends of the exchange of turns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._number = 0

    def ask(self, turn: Turn) -> None:
        self._number += 1
        write_atomically(self._asked(), json.dumps([turn.block, turn.steps]).encode())

    def await_answer(self, alive: threading.Thread) -> float:
        deadline = time.monotonic() + PATIENCE_S
        while not self._answered().exists():
            if not alive.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"The ranks in {self.path} did not answer: see {self.path / 'logs'}")
            time.sleep(LOOK_S)
        return json.loads(self._answered().read_text())

    def await_turn(self) -> Turn:
        self._number += 1
        while not self._asked().exists():
            time.sleep(LOOK_S)
        return Turn(*json.loads(self._asked().read_text()))

    def answer(self, seconds: float) -> None:
        write_atomically(self._answered(), json.dumps(seconds).encode())

    def _asked(self) -> Path:
        return self.path / f"turn-{self._number:04d}"

    def _answered(self) -> Path:
        return self.path / f"turn-{self._number:04d}.json"


class Turns:
    """A group of ranks, from its start to its end."""

    def __init__(
        self,
        launcher: Launcher,
        point: Point,
        *,
        folder: Path,
        data: Path,
        blocks: Sequence[str],
        settings: LaunchSettings = LaunchSettings(),
    ) -> None:
        run = RunFolder(folder)
        placement = launcher.placement(point)
        manifest = Manifest(
            study="bench",
            point_id=point.point_id,
            point=point,
            run=1,
            seed=1,
            data_folder=str(data),
            model_file=None,
            cores=placement.cores,
            placement=placement.text,
            launched_at_ns=time.monotonic_ns(),
            launched_at="",
            launch=settings,
            force=True,
        )
        write_record(run.manifest, manifest)
        write_atomically(folder / "blocks.json", json.dumps(list(blocks)).encode())
        self._turns = TurnFolder(folder)
        self._thread = threading.Thread(target=launcher.run, args=(run, manifest), kwargs={"heartbeat_s": 3600.0})
        self._thread.start()

    def take(self, block: str, steps: int) -> float:
        """Seconds that so many steps of a block took."""
        self._turns.ask(Turn(block, steps))
        return self._turns.await_answer(self._thread)

    def close(self) -> None:
        self._turns.ask(Turn("", 0))
        self._thread.join(60)
