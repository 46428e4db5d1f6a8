"""What launchers and strategies cost, and the published program beside ours: groups of ranks that take turns.

Every group is started by the launcher it stands for, does the same steps of `cnn-690k`, 128 samples per rank, and
sleeps while another has its turn (bench/turns.py). Two groups that do the same differ by several per cent, all
through their lives, with where their memory happens to lie: so everything is started afresh several times, and each
start gives one ratio.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.turns import COMMAND, Turn, TurnFolder, Turns
from paceline import catalog
from paceline.analyze.stats.intervals import median_interval
from paceline.records.results import Interval
from paceline.records.settings import DataSettings, LaunchSettings, ModelSettings, TrainSettings
from paceline.records.study import Point

if TYPE_CHECKING:
    from testbeds.net_hosts import NetHosts

BATCH_PER_RANK = 128
BLOCK = 4
"""Steps of one block: a third of a second, so that what is compared sees the same noise."""
REQUIREMENTS = Path(__file__).parent / "peers" / "published-requirements.txt"
ENVIRONMENT = Path(__file__).parent / "peers" / ".venv"
TESTS = Path(__file__).parents[1] / "tests"

# Strategies that one group of ranks under mpiexec can take in turn.
IN_ONE_GROUP = (
    "ddp",
    "flat",
    "mpi-allreduce",
    "mpi-reduce-broadcast",
    "mpi-reduce-broadcast-pickled",
    "local-sgd",
    "ddp-fp16",
    "ddp-powersgd",
)
WITH_SERVERS = ("parameter-server", "parameter-server-async")

Seconds = dict[str, list[float]]
"""What takes turns -> seconds of one step, round by round."""


def point(launcher: str, strategy: str = "ddp", ranks: int = 2, **settings: object) -> Point:
    return Point(
        data=DataSettings(dataset="mnist", train_samples=12_000),
        data_digest="",
        model=ModelSettings(name="cnn-690k"),
        model_digest="",
        train=TrainSettings(batch_per_rank=BATCH_PER_RANK, epochs=1_000),
        ranks=ranks,
        strategy=strategy,
        launcher=launcher,
        options=dict(catalog.strategy(strategy).options),
        **settings,  # pyright: ignore[reportArgumentType]
    )


@contextmanager
def group(
    wanted: Point, data: Path, blocks: Sequence[str], settings: LaunchSettings = LaunchSettings()
) -> Iterator[Turns]:
    """Ranks that wait for their turn, under the launcher of the point."""
    launcher = catalog.load("launcher", wanted.launcher)(COMMAND, settings)
    folder = Path(tempfile.mkdtemp(prefix="paceline-bench-"))
    turns = Turns(launcher, wanted, folder=folder, data=data, blocks=blocks, settings=settings)
    try:
        yield turns
    finally:
        turns.close()
        shutil.rmtree(folder, ignore_errors=True)


def rounds_of(takers: Mapping[str, tuple[Turns | Published, str]], rounds: int) -> Seconds:
    """Seconds of a step of each: all take their turn once a round, in an order of its own."""
    for taker, block in takers.values():
        taker.take(block, 5)
    seconds: Seconds = {name: [] for name in takers}
    chance = random.Random(rounds)
    for _ in range(rounds):
        for name in chance.sample(list(takers), len(takers)):
            taker, block = takers[name]
            seconds[name].append(taker.take(block, BLOCK) / BLOCK)
    return seconds


def ratios(starts: Sequence[Seconds], base: str) -> dict[str, Interval]:
    """A step of each against that of `base`: the median over starts of the ratio of medians."""
    return {
        name: median_interval([median(start[name]) / median(start[base]) for start in starts])
        for name in starts[0]
        if name != base
    }


def launchers(data: Path, rounds: int) -> Seconds:
    """The same steps under every launcher that this machine has; `local` is what they are measured against."""
    kinds = {name: (name, LaunchSettings()) for name in ("local", "torchrun", "ray")}
    kinds["local, again"] = ("local", LaunchSettings())
    kinds["mpi (MPICH)"] = ("mpi", LaunchSettings())
    if shutil.which("mpiexec.openmpi"):
        kinds["mpi (Open MPI)"] = ("mpi", LaunchSettings(mpiexec="mpiexec.openmpi"))
    with ExitStack() as stack:
        if shutil.which("slurmctld"):
            kinds["slurm"] = ("slurm", stack.enter_context(slurm_nodes()))
        takers: dict[str, tuple[Turns | Published, str]] = {
            name: (stack.enter_context(group(point(launcher), data, ["ddp"], settings)), "ddp")
            for name, (launcher, settings) in kinds.items()
        }
        return rounds_of(takers, rounds)


def strategies(data: Path, rounds: int, **settings: object) -> Seconds:
    """Every strategy at two ranks, and one rank alone, the ideal: all in one run. And two that never talk."""
    launch = settings.pop("launch", LaunchSettings())
    assert isinstance(launch, LaunchSettings)
    with ExitStack() as stack:
        blocks = ("alone", "apart", *IN_ONE_GROUP)
        together = stack.enter_context(group(point("mpi", **settings), data, blocks, launch))
        takers: dict[str, tuple[Turns | Published, str]] = {name: (together, name) for name in blocks}
        for name in WITH_SERVERS:
            own = stack.enter_context(group(point("mpi", name, **settings), data, [name], launch))
            takers[name] = (own, name)
        return rounds_of(takers, rounds)


class Published:
    """The published program, in an environment of its own."""

    def __init__(self, data: Path) -> None:
        python = environment()
        self._folder = Path(tempfile.mkdtemp(prefix="paceline-published-"))
        self._turns = TurnFolder(self._folder)
        program = Path(__file__).parent / "peers" / "published_mpi.py"
        command = [str(python.with_name("mpiexec")), "-n", "2", str(python), str(program), str(self._folder), str(data)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self._alive = threading.Thread(target=self._process.wait)
        self._alive.start()

    def take(self, block: str, steps: int) -> float:
        self._turns.ask(Turn(block, steps))
        return self._turns.await_answer(self._alive)

    def close(self) -> None:
        self._turns.ask(Turn("", 0))
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._alive.join()
        shutil.rmtree(self._folder, ignore_errors=True)


def against_published(data: Path, rounds: int) -> Seconds:
    """Two ranks of ours, and two of the published program: the same network, the same batch."""
    published = Published(data)
    try:
        with group(point("mpi"), data, ["ddp", "mpi-reduce-broadcast-pickled"]) as ours:
            takers: dict[str, tuple[Turns | Published, str]] = {
                "ddp": (ours, "ddp"),
                "mpi-reduce-broadcast-pickled": (ours, "mpi-reduce-broadcast-pickled"),
                "published": (published, "published"),
            }
            return rounds_of(takers, rounds)
    finally:
        published.close()


@contextmanager
def slurm_nodes() -> Iterator[LaunchSettings]:
    """A SLURM on this machine, as the tests have it: root's to start."""
    sys.path.insert(0, str(TESTS))
    from testbeds.slurm_cluster import Cluster

    with tempfile.TemporaryDirectory(prefix="paceline-slurm-") as folder:
        cluster = Cluster(Path(folder))
        os.environ["SLURM_CONF"] = str(cluster.conf)
        try:
            cluster.start()
            yield cluster.settings
        finally:
            cluster.stop()
            del os.environ["SLURM_CONF"]


@contextmanager
def two_hosts() -> Iterator[NetHosts]:
    """Hosts that are network namespaces of this machine, as the tests have them: root's to make."""
    sys.path.insert(0, str(TESTS))
    from testbeds.net_hosts import NetHosts

    with tempfile.TemporaryDirectory(prefix="paceline-hosts-") as folder:
        hosts = NetHosts(Path(folder))
        try:
            hosts.up()
            yield hosts
        finally:
            hosts.down()


def over_links(data: Path, rounds: int, rates: Sequence[str]) -> dict[str, Seconds]:
    """The strategies with one rank on each of two hosts, for every rate of the links between them."""
    # Left alone, MPICH sees that its two hosts are one machine, and goes through its memory.
    os.environ |= {"UCX_TLS": "tcp,self", "FI_PROVIDER": "tcp"}
    found = {}
    with two_hosts() as hosts:
        for rate in rates:
            with hosts.shaped(rate):
                found[rate] = strategies(data, rounds, hosts=2, pin=False, launch=hosts.settings)
    return found


def environment() -> Path:
    """The Python of the published program's environment, which is made when it is first needed."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--requirement", str(REQUIREMENTS)], check=True, stdout=sys.stderr)
    return python
